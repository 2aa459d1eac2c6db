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
    """What a pass asks of the blocks: a function, vectors to multiply with, and its options."""

    function: Callable[..., Any]
    vectors: Array
    options: dict[str, Any]


class Place(NamedTuple):
    """Which rows and columns of the matrix a block has, and the name of the matrix in messages."""

    rows: slice
    columns: slice
    name: str


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

    def ask(self, function: Callable[..., Any], *vectors: Vector, **options: Any) -> list[Any]:
        """Put a question to every block of columns, in one pass; return the answers in order.

        Parameters
        ----------
        function : callable
            ``function(products, facts, first, take, **options)`` returns the answer, which should
            be short. `products`, of shape (k, n of the block), are those of the k vectors with the
            columns, `first` is the index of the first column, and ``take(places)`` returns columns
            of the block as `linear.column` does. It is None where a column has several blocks,
            which are not in one place.
        *vectors : arrays of shape (m,)
            What to multiply the columns with.
        **options
            For the function.

        Raises
        ------
        ValueError
            In the first pass, if an entry is NaN or infinite. The message names the block.
        """
        from dask.base import compute, persist
        from dask.delayed import delayed

        stacked = np.stack(vectors) if vectors else np.empty((0, self.shape[0]))
        given = delayed(Question(function, stacked, options), traverse=False, pure=False)
        self.passes += 1.0
        if self._facts is not None:
            return self._ask_again(given)
        asked = [self._asked(j, None, given) for j in range(self.column_blocks)]
        both = persist(*asked)  # the facts stay where they are, the answers return
        answers = list(compute(*(each[0] for each in both)))
        self._facts = list(persist(*(each[1] for each in both)))
        return answers

    def _ask_again(self, given: Any) -> list[Any]:
        """Put a question to all blocks when their facts are known."""
        from dask.base import compute
        from dask.delayed import delayed

        assert self._facts is not None
        groups = blocks_in_one_place(self.array) if len(self._rows) == 1 else None
        if groups is None:
            return list(
                compute(*(self._asked(j, facts, given) for j, facts in enumerate(self._facts)))
            )
        tasks = [
            delayed(_all_answered, pure=False)(
                [self._blocks[0, j] for j in group],
                [Place(self._rows[0], self._columns[j], self.name) for j in group],
                [self._facts[j] for j in group],
                given,
            )
            for group in groups
        ]
        answers: list[Any] = [None] * self.column_blocks
        for group, found in zip(groups, compute(*tasks), strict=True):
            for j, answer in zip(group, found, strict=True):
                answers[j] = answer
        return answers

    def _asked(self, j: int, facts: Any, given: Any) -> Any:
        """Return the task that answers a question for the columns of block j."""
        from dask.delayed import delayed

        places = [Place(rows, self._columns[j], self.name) for rows in self._rows]
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
            self.ask(_nothing)
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


def blocks_in_one_place(array: Any) -> list[list[int]] | None:
    """Return the blocks of a row that one task can look at, for each thread of a cluster.

    Those are blocks that are in the memory of one worker already: a task for each of them would
    cost more than a look at it. None where some block is not in the memory of a cluster.
    """
    if "distributed" not in sys.modules:
        return None
    from distributed.client import futures_of

    found: Any = futures_of(array)  # type: ignore[no-untyped-call]  # distributed has few types
    futures = {future.key: future for future in found}
    keys = array.__dask_keys__()[0]
    if not all(key in futures for key in keys):
        return None
    client = futures[keys[0]].client
    owners, threads = client.who_has(list(futures.values())), client.nthreads()
    held: dict[Any, list[int]] = {}
    for j, key in enumerate(keys):
        own = owners.get(key) or ("",)
        held.setdefault(own[0], []).append(j)
    parts = ((own, max(1, threads.get(place, 1))) for place, own in held.items())
    return [own[i::count] for own, count in parts for i in range(min(count, len(own)))]


def _slices(sizes: tuple[int, ...]) -> list[slice]:
    """Return the ranges that chunks of these sizes cover."""
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def as_block(block: Any, name: str) -> Any:
    """Return a block as a float array, or as it is if it is sparse."""
    if is_sparse(block):
        return block
    if hasattr(block, "to_scipy_sparse"):  # an array of the library sparse
        return block.to_scipy_sparse()
    return as_real_array(block, name)


def _measured(
    block: Any, place: Place, first_time: bool, given: Question
) -> tuple[Array, Facts | None]:
    """Return the products of a block with the vectors of a question, and its facts if wanted."""
    with ONE_BLAS_THREAD:
        block, vectors = as_block(block, place.name), given.vectors[:, place.rows]
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
        rows, columns = place.rows, place.columns
        where = f"{rows.start}:{rows.stop}, {columns.start}:{columns.stop}"
        check_finite(block, f"the block [{where}] of {place.name}")
    zero = squares == 0
    for j in np.flatnonzero(zero) if block.shape[0] else ():  # a block may have no rows
        zero[j] = not abs(column(block, int(j))).max()
    others = _products(block, vectors[1:])
    return np.vstack([products[None], others])[: len(vectors)], Facts(squares, sums, zero)


def _answered(block: Any, place: Place, facts: Facts | None, given: Question) -> Any:
    """Return the answer of a block that has whole columns, in the first pass with the facts."""
    products, found = _measured(block, place, facts is None, given)

    def take(places: Array) -> list[Any]:
        return _taken(block, places, place.name)

    known = found if facts is None else facts
    answer = given.function(products, known, place.columns.start, take, **given.options)
    return answer if found is None else (answer, found)


def _all_answered(
    blocks: list[Any], places: list[Place], facts: list[Facts], given: Question
) -> Any:
    """Return the answers of several blocks that have whole columns."""
    each = zip(blocks, places, facts, strict=True)
    return [_answered(block, place, known, given) for block, place, known in each]


def _combined(
    parts: list[tuple[Array, Facts | None]], place: Place, facts: Facts | None, given: Question
) -> Any:
    """Return the answer for columns whose entries are in several blocks, as `_answered` does."""
    products = np.sum([part[0] for part in parts], axis=0)
    known = facts
    if facts is None:
        squares, sums, zero = zip(*(part[1] or () for part in parts), strict=True)
        known = Facts(np.sum(squares, axis=0), np.sum(sums, axis=0), np.all(zero, axis=0))
    answer = given.function(products, known, place.columns.start, None, **given.options)
    return answer if facts is not None else (answer, known)


def _nothing(*_: Any) -> None:
    """Answer nothing, in a pass that only finds out the facts."""


def _all_products(products: Array, *_: Any) -> Array:
    scores: Array = products[0]
    return scores


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
    if not is_sparse(parts[0]):
        return np.concatenate(parts)
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
    return np.concatenate(matrix.ask(_all_products, vector))


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
