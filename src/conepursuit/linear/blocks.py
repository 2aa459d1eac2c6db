"""A matrix beyond memory, in the blocks of a Dask array.

A question goes to all blocks at once, and short answers return: one pass over the matrix. Dask
decides where and when the blocks are read and computed; nothing here imports it before a Dask array
arrives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import Array, Vector, inside
from conepursuit.caller import warn_caller
from conepursuit.linear import column, dense_vector, is_sparse, matvec, rmatvec
from conepursuit.linear.tasks import (
    Facts,
    Place,
    Question,
    all_answered,
    answered,
    combined,
    measured,
    part_of_sum,
    row_of_products,
    taken,
    with_scaled_rows,
)

MANY_BLOCKS, SMALL_BLOCK = 256, 1 << 16
"""More blocks than this, of fewer bytes than this on average, cause a warning.

A block costs about half a millisecond besides its numbers, in which a core reads several
megabytes.
"""

BLOCK_COST = 5e-4
"""Seconds that Dask's threads take for a block without numbers, for the message of that warning."""


GO_ON = "A run with callback=Checkpoint(path) can go on: start=Checkpoint.load(path)."
"""What can be done where a cluster is lost in the middle of a run."""


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
            warn_caller(
                f"{name} has {blocks} blocks of {average / 1000:.3g} kB on average, for which a "
                f"pass takes at least {BLOCK_COST * blocks:.1f} s. Use {name}.rechunk('auto').",
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
        with said_if_lost(self.passes, self.name, GO_ON):
            return together(self._answers(given))

    def _answers(self, given: Question) -> list[Any]:
        """Return the answers of all blocks, or of those in one place together."""
        if self._facts is None or not in_reach(self._facts):
            return self._ask_first(given)
        held = held_blocks(self.array) if len(self._rows) == 1 else None
        return self._ask_again(given) if held is None else held.ask(self, given)

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
            return delayed(answered, pure=False)(block, places[0], facts, given)
        measure = delayed(measured, pure=False)
        parts = [
            measure(block, place, facts is None, given)
            for block, place in zip(self._blocks[:, j], places, strict=True)
        ]
        return delayed(combined, pure=False)(parts, places[0], facts, given)

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

    def fetch(self, indices: Array) -> dict[int, Any]:
        """Return columns by their indices, and maybe others.

        Those that are not at hand are read, all at once, and kept as those of an answer.
        """
        from dask.base import compute
        from dask.delayed import delayed

        recent = self._recent  # another thread may begin a pass meanwhile
        missing = np.array([j for j in indices if int(j) not in recent], dtype=np.intp)
        if not len(missing):
            return recent
        read, owners = [], np.searchsorted([part.stop for part in self._columns], missing, "right")
        take = delayed(taken, pure=False)
        for owner in np.unique(owners):
            own = missing[owners == owner]
            places = own - self._columns[owner].start
            parts = [take(block, places, self.name) for block in self._blocks[:, owner]]
            read.append((own, parts))
        self.passes += len(read) * len(self._rows) / self.array.npartitions
        with said_if_lost(self.passes, self.name, GO_ON):
            found = compute(*(parts for _, parts in read))
        for (own, _), parts in zip(read, found, strict=True):
            for i, j in enumerate(own):
                recent[int(j)] = _joined([part[i] for part in parts])
        return recent

    def products(self, vector: Vector) -> Any:
        """Return the products of all columns with a vector, as a Dask array that is not computed.

        To compute it takes a pass.
        """
        from dask import array

        along = array.from_array(vector[:, None], chunks=(self.array.chunks[0], 1))
        parts = array.map_blocks(
            row_of_products, self.array, along, dtype=np.float64,
            chunks=((1,) * len(self._rows), self.array.chunks[1]), meta=np.empty((0, 0)),
        )  # fmt: skip
        return parts.sum(axis=0)

    def times_rows(self, rows: Vector) -> BlockMatrix:
        """Return the matrix with each row multiplied by a number."""
        from dask import array

        along = array.from_array(rows[:, None], chunks=(self.array.chunks[0], 1))
        scaled = array.map_blocks(
            with_scaled_rows, self.array, along, dtype=np.float64, meta=np.empty((0, 0))
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


@contextmanager
def said_if_lost(passes: float, name: str, advice: str) -> Iterator[None]:
    """Raise a RuntimeError that says what can be done where a cluster is closed or fails.

    Parameters
    ----------
    passes : float
        The passes over the data so far.
    name : str
        The name of the data in the message.
    advice : str
        How to go on.
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("distributed"):
            raise  # what a block has said
        raise RuntimeError(
            f"the cluster was lost in pass {passes:.0f} over {name}: {error!r}. {advice}"
        ) from error


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
                all_answered, [self.futures[j] for j in group], [matrix.place(j) for j in group],
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
        current: Any = Client.current()
    except ValueError:
        return False
    return all(future.client is current for future in futures)


def _futures(collection: Any) -> dict[Any, Any]:
    """Return the futures of a Dask collection by their keys."""
    if "distributed" not in sys.modules:
        return {}
    from distributed.client import futures_of

    found: Any = futures_of(collection)
    return {future.key: future for future in found}


def _slices(sizes: tuple[int, ...]) -> list[slice]:
    """Return the ranges that chunks of these sizes cover."""
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _nothing(*_: Any) -> None:
    """Answer nothing, in a pass that only finds out the facts."""


def _all_products(products: Array, facts: Facts, first: int) -> dict[int, Array]:
    return {first: products[0]}


def _merged(parts: list[dict[int, Array]]) -> dict[int, Array]:
    return {first: scores for part in parts for first, scores in part.items()}


def _joined(parts: list[Any]) -> Any:
    """Return a column from its parts in several blocks."""
    if len(parts) == 1:
        return parts[0]
    if not all(map(is_sparse, parts)):
        return np.concatenate([dense_vector(part) for part in parts])
    from scipy.sparse import csr_array, hstack

    return csr_array(hstack(parts))


@rmatvec.register(BlockMatrix)
def _(matrix: BlockMatrix, vector: Array) -> Vector:
    scores = matrix.ask(_all_products, vector, together=_merged)
    return np.concatenate([scores[first] for first in sorted(scores)])


@matvec.register(BlockMatrix)
def _(matrix: BlockMatrix, vector: Array) -> Vector:
    """Read only the blocks that have a column with weight."""
    from dask.base import compute
    from dask.delayed import delayed

    parts, times = [], delayed(part_of_sum, pure=False)
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
    return matrix.fetch(np.array([index]))[int(index)]
