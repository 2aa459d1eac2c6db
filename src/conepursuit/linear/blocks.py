"""A matrix beyond memory, in the blocks of a Dask array.

A question goes to all blocks at once, and short answers return: one pass over the matrix. Dask
decides where and when the blocks are read and computed; nothing here imports it before a Dask array
arrives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from conepursuit.arrays import Array, Vector, as_real_array, inside
from conepursuit.linear import (
    as_matrix_unchecked,
    check_finite,
    column,
    is_sparse,
    matvec,
    measures,
    rmatvec,
)
from conepursuit.linear.blas import ONE_BLAS_THREAD

MANY_BLOCKS, SMALL_BLOCK = 256, 1 << 16
"""More blocks than this, of fewer bytes than this on average, cause a warning.

A block costs about half a millisecond besides its numbers, in which a core reads several
megabytes.
"""

BLOCK_COST = 5e-4
"""Seconds that Dask's threads take for a block without numbers, for the message of that warning."""


class Facts(NamedTuple):
    """What the first pass finds out about the columns of a block, and what stays where it is.

    Attributes
    ----------
    squares, sums : arrays
        The squared norms of the columns, and the sums of their entries.
    zero : array of bool
        Which columns are zero; the square of a column that is not may still underflow to zero.
    """

    squares: Vector
    sums: Vector
    zero: Array


class Question(NamedTuple):
    """What a pass asks of the blocks; the fields are the arguments of `BlockMatrix.ask`."""

    function: Callable[..., Any]
    vectors: Array
    together: Callable[[list[Any]], Any]
    with_columns: Callable[..., Any] | None
    options: dict[str, Any]


class Place(NamedTuple):
    """Which rows and columns of the matrix a block has, and the name of the matrix in messages."""

    rows: slice
    columns: slice
    name: str

    def __str__(self) -> str:
        rows, columns = self.rows, self.columns
        where = f"{rows.start}:{rows.stop}, {columns.start}:{columns.stop}"
        return f"the block [{where}] of {self.name}"


class BlockMatrix:
    """A matrix in the blocks of a Dask array, which may be dense or of ``scipy.sparse``.

    Parameters
    ----------
    array : dask.array.Array or xarray.DataArray with one inside, shape (m, n)
        The matrix. Integers become float64, block by block.
    name : str
        Its name in messages.

    Attributes
    ----------
    array : dask.array.Array
        The matrix.
    passes : float
        How often the blocks were read: the number of blocks read so far over that of all blocks.
    """

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, array: Any, name: str = "A") -> None:
        self.array, self.name, self.passes = check_blocks(inside(array), name), name, 0.0
        self.shape = tuple(int(n) for n in self.array.shape)
        if 0 in self.shape:
            raise ValueError(
                f"{name} must be a matrix with at least one row and one column; got shape "
                f"{self.shape}."
            )
        sizes = tuple(tuple(size for size in axis if size) for axis in self.array.chunks)
        if sizes != self.array.chunks:  # some blocks are empty
            self.array = self.array.rechunk(sizes)
        (m, n), blocks = self.shape, self.array.npartitions
        average = self.array.dtype.itemsize * m * n / blocks
        if blocks > MANY_BLOCKS and average < SMALL_BLOCK:
            warn(
                f"{name} has {blocks} blocks of {average / 1000:.3g} kB on average, for which a "
                f"pass takes at least {BLOCK_COST * blocks:.1f} s. Use {name}.rechunk('auto').",
                stacklevel=4,
            )
        self._rows, self._columns = map(_slices, sizes)
        self._blocks = self.array.to_delayed()
        self._facts: list[Any] | None = None
        self._all_facts: Facts | None = None
        self._recent: dict[int, Any] = {}

    def __repr__(self) -> str:
        return f"BlockMatrix({self.shape[0]} x {self.shape[1]}, {self.array.npartitions} blocks)"

    @property
    def column_blocks(self) -> int:
        """Into how many parts the columns are divided."""
        return len(self._columns)

    def ask(
        self,
        function: Callable[..., Any],
        *vectors: Vector,
        together: Callable[[list[Any]], Any],
        with_columns: Callable[..., Any] | None = None,
        **options: Any,
    ) -> Any:
        """Put a question to every block of columns, in one pass; return the answers as one.

        Parameters
        ----------
        function : callable
            ``function(products, facts, first, **options)`` returns the answer, which should be
            short. `products`, of shape (k, n of the block), are those of the k vectors with the
            columns, and `first` is the index of the first column.
        *vectors : arrays of shape (m,)
            What to multiply the columns with.
        together : callable
            Returns some answers as one. It is applied to the answers of blocks in one place, and
            then to what it has returned; neither their order nor their number must matter.
        with_columns : callable, optional
            ``with_columns(answer, take)`` returns an answer with columns in it, where
            ``take(indices)`` returns columns as `linear.column` does. It is called in the place of
            the blocks, and not where a column has several blocks, which may be in several places.
        **options
            For the function.

        Raises
        ------
        ValueError
            If a block has another shape than the array says or, in the first pass, an entry that is
            NaN or infinite. The message names the block.
        """
        stacked = np.stack(vectors) if vectors else np.empty((0, self.shape[0]))
        given = Question(function, stacked, together, with_columns, options)
        self.passes += 1.0
        self._recent = {}
        if self._facts is None or not in_reach(self._facts):
            return together(self._ask_first(given))
        held = held_blocks(self.array) if len(self._rows) == 1 else None
        return together(self._ask_again(given) if held is None else held.ask(self, given))

    def _ask_first(self, question: Question) -> list[Any]:
        """Put a question to all blocks, and find out the facts, which stay where they are."""
        from dask.base import compute, persist
        from dask.delayed import delayed

        given = delayed(question, traverse=False, pure=False)
        asked = [self._asked(j, None, given) for j in range(self.column_blocks)]
        both = persist(*asked)
        answers = list(compute(*(each[0] for each in both)))
        self._facts = list(persist(*(each[1] for each in both)))
        return answers

    def _ask_again(self, question: Question) -> list[Any]:
        """Put a question to all blocks when their facts are known."""
        from dask.base import compute
        from dask.delayed import delayed

        assert self._facts is not None
        given = delayed(question, traverse=False, pure=False)
        return list(compute(*(self._asked(j, own, given) for j, own in enumerate(self._facts))))

    def place(self, j: int, row: int = 0) -> Place:
        """Return the place of the block in a row of blocks and in column j of blocks."""
        return Place(self._rows[row], self._columns[j], self.name)

    def _asked(self, j: int, facts: Any, given: Any) -> Any:
        """Return the task that answers a question for the columns of block j."""
        from dask.delayed import delayed

        places = [self.place(j, row) for row in range(len(self._rows))]
        if len(places) == 1:
            block = self._blocks[0, j]
            return delayed(_answered, pure=False)(block, places[0], facts, given)
        measured = delayed(_measured, pure=False)
        parts = [
            measured(block, place, facts is None, given)
            for block, place in zip(self._blocks[:, j], places, strict=True)
        ]
        return delayed(_combined, pure=False)(parts, places[0], facts, given)

    def facts(self) -> Facts:
        """Return the facts of all columns; the first call makes a pass, if there was none."""
        from dask.base import compute

        if self._facts is None:
            self.ask(_nothing, together=_nothing)
        if self._all_facts is None:
            assert self._facts is not None
            found = zip(*compute(*self._facts), strict=True)
            self._all_facts = Facts(*(np.concatenate(parts) for parts in found))
        return self._all_facts

    def remember(self, columns: dict[int, Any]) -> None:
        """Keep columns that came with an answer, until the next ones come, for `column`."""
        self._recent = columns

    def fetch(self, indices: Array) -> None:
        """Read columns that are not at hand, all at once; they are kept as those of an answer."""
        from dask.base import compute
        from dask.delayed import delayed

        missing = np.array([j for j in indices if int(j) not in self._recent], dtype=np.intp)
        if not len(missing):
            return
        read, owners = [], np.searchsorted([part.stop for part in self._columns], missing, "right")
        take = delayed(_taken, pure=False)
        for owner in np.unique(owners):
            own = missing[owners == owner]
            places = own - self._columns[owner].start
            parts = [take(block, places, self.name) for block in self._blocks[:, owner]]
            read.append((own, parts))
        self.passes += len(read) * len(self._rows) / self.array.npartitions
        found = compute(*(parts for _, parts in read))
        for (own, _), parts in zip(read, found, strict=True):
            for i, j in enumerate(own):
                self._recent[int(j)] = _joined([part[i] for part in parts])

    def products(self, vector: Vector) -> Any:
        """Return the products of all columns with a vector, as a Dask array that is not computed.

        To compute it takes a pass.
        """
        from dask import array

        along = array.from_array(vector[:, None], chunks=(self.array.chunks[0], 1))
        parts = array.map_blocks(
            _row_of_products, self.array, along, dtype=np.float64,
            chunks=((1,) * len(self._rows), self.array.chunks[1]), meta=np.empty((0, 0)),
        )  # fmt: skip
        return parts.sum(axis=0)

    def times_rows(self, rows: Vector) -> BlockMatrix:
        """Return the matrix with each row multiplied by a number."""
        from dask import array

        along = array.from_array(rows[:, None], chunks=(self.array.chunks[0], 1))
        scaled = array.map_blocks(
            _scaled_rows, self.array, along, dtype=np.float64, meta=np.empty((0, 0))
        )
        return BlockMatrix(scaled, self.name)


def check_blocks(array: Any, name: str) -> Any:
    """Return a Dask array of real numbers with known chunk sizes, or raise a ValueError."""
    if np.isnan(array.shape).any():
        raise ValueError(
            f"{name} has blocks of unknown size; its shape is {array.shape}. Call "
            f"{name}.compute_chunk_sizes() first."
        )
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers; got a Dask array of dtype {array.dtype}. Use "
            f"{name}.astype(float)."
        )
    return array


class HeldBlocks(NamedTuple):
    """Blocks of whole columns that are in the memory of a cluster.

    A task for each of them would cost more than a look at it. So there is one for each thread of a
    worker, which looks at blocks that the worker has.
    """

    client: Any
    futures: list[Any]

    def ask(self, matrix: BlockMatrix, given: Question) -> list[Any]:
        """Put a question to all blocks of a matrix whose facts are known."""
        assert matrix._facts is not None
        known = [future_of(facts) for facts in matrix._facts]
        tasks = [
            self.client.submit(
                _all_answered, [self.futures[j] for j in group], [matrix.place(j) for j in group],
                [known[j] for j in group], given, pure=False,
            )
            for group in self.groups()
        ]  # fmt: skip
        return list(self.client.gather(tasks))

    def groups(self) -> list[list[int]]:
        """Return the indices of the blocks that each task looks at."""
        owners, threads = self.client.who_has(self.futures), self.client.nthreads()
        held: dict[Any, list[int]] = {}
        for j, future in enumerate(self.futures):
            own = owners.get(future.key) or ("",)
            held.setdefault(own[0], []).append(j)
        parts = ((own, max(1, threads.get(place, 1))) for place, own in held.items())
        return [own[i::count] for own, count in parts for i in range(min(count, len(own)))]


def held_blocks(array: Any) -> HeldBlocks | None:
    """Return the first row of blocks of an array, if all are in the memory of a cluster."""
    futures = _futures(array)
    keys = array.__dask_keys__()[0]
    if not all(key in futures for key in keys):
        return None
    return HeldBlocks(futures[keys[0]].client, [futures[key] for key in keys])


def future_of(task: Any) -> Any:
    """Return what stands for the value of a persisted task: a future, or the value itself."""
    return next(iter(_futures(task).values()), task)


def in_reach(tasks: list[Any]) -> bool:
    """Return whether persisted tasks can still be used: not if they are on another cluster."""
    futures = [future for task in tasks[:1] for future in _futures(task).values()]
    if not futures:
        return True
    from distributed import Client

    try:
        current: Any = Client.current()  # type: ignore[no-untyped-call]  # it has few types
    except ValueError:
        return False
    return all(future.client is current for future in futures)


def _futures(collection: Any) -> dict[Any, Any]:
    """Return the futures of a Dask collection by their keys."""
    if "distributed" not in sys.modules:
        return {}
    from distributed.client import futures_of

    found: Any = futures_of(collection)  # type: ignore[no-untyped-call]  # it has few types
    return {future.key: future for future in found}


def _slices(sizes: tuple[int, ...]) -> list[slice]:
    """Return the ranges that chunks of these sizes cover."""
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def as_block(block: Any, name: str, place: Place | None = None) -> Any:
    """Return a block as a float array, or as a csr_array or csc_array of float64.

    A ValueError says so if the block has not the shape of its `place`.
    """
    if hasattr(block, "to_scipy_sparse"):  # an array of the library sparse
        block = block.to_scipy_sparse()
    if not is_sparse(block):
        block = as_real_array(block, name)
    elif block.format not in ("csr", "csc") or block.dtype != np.float64:
        from scipy.sparse import csr_array

        block = csr_array(block, dtype=np.float64)
    if place is not None:
        shape = tuple(part.stop - part.start for part in (place.rows, place.columns))
        if block.shape != shape:
            raise ValueError(
                f"{place} has the shape {block.shape}, and the Dask array says {shape}. Give "
                "map_blocks or from_delayed the chunks that the blocks have."
            )
    return block


def _measured(
    block: Any, place: Place, first_time: bool, given: Question
) -> tuple[Array, Facts | None]:
    """Return the products of a block with the vectors of a question, and its facts if wanted."""
    with ONE_BLAS_THREAD:
        block, vectors = as_block(block, place.name, place), given.vectors[:, place.rows]
        if not first_time:
            return _products(block, vectors), None
        return _first_measures(block, place, vectors)


def _products(block: Any, vectors: Array) -> Array:
    """Return the products of vectors, as rows, with the columns of a block."""
    if not len(vectors):
        return np.empty((0, block.shape[1]))
    return np.stack([rmatvec(block, vector) for vector in vectors])


def _first_measures(block: Any, place: Place, vectors: Array) -> tuple[Array, Facts]:
    """Return the products of a block with vectors, and its facts; refuse NaN and infinity."""
    if is_sparse(block):
        block = as_matrix_unchecked(block, place.name)  # entries that are stored twice are added
    elif not block.flags.forc:
        block = np.ascontiguousarray(block)
    with np.errstate(all="ignore"):
        first = vectors[0] if len(vectors) else np.zeros(block.shape[0])
        products, squares, sums = measures(block, np.ascontiguousarray(first))
    if not (np.isfinite(squares).all() and np.isfinite(sums).all()):
        check_finite(block, str(place))
    zero = squares == 0
    for j in np.flatnonzero(zero) if block.shape[0] else ():  # a block may have no rows
        zero[j] = not abs(column(block, int(j))).max()
    others = _products(block, vectors[1:])
    return np.vstack([products[None], others])[: len(vectors)], Facts(squares, sums, zero)


def _answered(block: Any, place: Place, facts: Facts | None, given: Question) -> Any:
    """Return the answer of a block that has whole columns, in the first pass with the facts."""
    products, found = _measured(block, place, facts is None, given)
    known = found if facts is None else facts
    answer = given.function(products, known, place.columns.start, **given.options)
    answer = _with_columns(answer, [block], [place], given)
    return answer if found is None else (answer, found)


def _all_answered(
    blocks: list[Any], places: list[Place], facts: list[Facts], given: Question
) -> Any:
    """Return the answers of several blocks that have whole columns, as one."""
    answers, plain = [], given._replace(with_columns=None)
    with ONE_BLAS_THREAD:  # set once for all of them
        for block, place, known in zip(blocks, places, facts, strict=True):
            answers.append(_answered(block, place, known, plain))
        return _with_columns(given.together(answers), blocks, places, given)


def _with_columns(answer: Any, blocks: list[Any], places: list[Place], given: Question) -> Any:
    """Return an answer with the columns that it names, if it is to have them."""
    if given.with_columns is None:
        return answer
    starts = [place.columns.start for place in places]
    order = np.argsort(starts)

    def take(indices: Array) -> list[Any]:
        owners = order[np.searchsorted(np.take(starts, order), indices, "right") - 1]
        found: list[Any] = [None] * len(indices)
        for owner in np.unique(owners):
            mine = np.flatnonzero(owners == owner)
            own = _taken(blocks[owner], indices[mine] - starts[owner], places[owner].name)
            for i, each in zip(mine, own, strict=True):
                found[i] = each
        return found

    return given.with_columns(answer, take)


def _combined(
    parts: list[tuple[Array, Facts | None]], place: Place, facts: Facts | None, given: Question
) -> Any:
    """Return the answer for columns whose entries are in several blocks, as `_answered` does."""
    products = np.sum([part[0] for part in parts], axis=0)
    known = facts
    if facts is None:
        squares, sums, zero = zip(*(part[1] or () for part in parts), strict=True)
        known = Facts(np.sum(squares, axis=0), np.sum(sums, axis=0), np.all(zero, axis=0))
    answer = given.function(products, known, place.columns.start, **given.options)
    return answer if facts is not None else (answer, known)


def _nothing(*_: Any) -> None:
    """Answer nothing, in a pass that only finds out the facts."""


def _all_products(products: Array, facts: Facts, first: int) -> dict[int, Array]:
    return {first: products[0]}


def _merged(parts: list[dict[int, Array]]) -> dict[int, Array]:
    return {first: scores for part in parts for first, scores in part.items()}


def _taken(block: Any, places: Array, name: str) -> list[Any]:
    """Return columns of a block."""
    block = as_block(block, name)
    if is_sparse(block) and len(places):
        block = block.tocsc()
    return [column(block, int(j)) for j in places]


def _joined(parts: list[Any]) -> Any:
    """Return a column from its parts in several blocks."""
    if len(parts) == 1:
        return parts[0]
    if not all(map(is_sparse, parts)):
        return np.concatenate(
            [part.toarray().ravel() if is_sparse(part) else part for part in parts]
        )
    from scipy.sparse import csr_array, hstack

    return csr_array(hstack(parts))


def _row_of_products(block: Any, along: Array) -> Array:
    with ONE_BLAS_THREAD:
        return rmatvec(as_block(block, "A"), along[:, 0])[None]


def _scaled_rows(block: Any, rows: Array) -> Any:
    block = as_block(block, "A")
    return block.multiply(rows).tocsc() if is_sparse(block) else rows * block


def _part_of_sum(block: Any, places: Array, weights: Vector) -> Vector:
    with ONE_BLAS_THREAD:
        return matvec(as_block(block, "A")[:, places], weights)


@rmatvec.register(BlockMatrix)
def _(matrix: BlockMatrix, vector: Array) -> Vector:
    scores = matrix.ask(_all_products, vector, together=_merged)
    return np.concatenate([scores[first] for first in sorted(scores)])


@matvec.register(BlockMatrix)
def _(matrix: BlockMatrix, vector: Array) -> Vector:
    """Read only the blocks that have a column with weight."""
    from dask.base import compute
    from dask.delayed import delayed

    parts, times = [], delayed(_part_of_sum, pure=False)
    for j, columns in enumerate(matrix._columns):
        places = np.flatnonzero(vector[columns])
        if len(places):
            weights = vector[columns][places]
            parts.append([times(block, places, weights) for block in matrix._blocks[:, j]])
    matrix.passes += len(parts) * len(matrix._rows) / matrix.array.npartitions
    out = np.zeros(matrix.shape[0])
    for found in compute(*parts):
        for rows, part in zip(matrix._rows, found, strict=True):
            out[rows] += part
    return out


@column.register(BlockMatrix)
def _(matrix: BlockMatrix, index: int) -> Any:
    matrix.fetch(np.array([index]))
    return matrix._recent[int(index)]
