"""A matrix whose rows lie in the blocks of a Dask array, and a factor with the same blocks.

What is asked of the matrix is a pass over its blocks: one task reads a block, does all that can be
done with it, keeps its part of a factor where it is, and returns a few sums, which are added up in
a tree. Nothing is lazy beyond that: a pass is computed when it is asked for. Dask is imported by
the first pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector, as_real_array, check_stored
from conepursuit.linear.blas import ONE_BLAS_THREAD
from conepursuit.linear.blocks import said_if_lost
from conepursuit.matrix_fits.lazy import Sent

TILE = 1 << 18
"""Entries of a dense block that are treated at a time: few enough to stay in the cache.

Then the second product with them does not read the memory again. Half and twice as many were no
faster for 400 columns and 20 components.
"""

SPLIT = 16
"""How many sums are added by one task of the tree."""

Sums = dict[str, Any]
"""What the task of a block returns; sums with the same name are added with ``+``."""


class Largest(NamedTuple):
    """A number with something that belongs to it; the larger one is the sum of two."""

    size: float
    what: Any = None

    def __add__(self, other: Any) -> Largest:
        """Return the larger one, the first if they are equal."""
        return self if self.size >= other.size else other


class RowBlocks:
    """The blocks of a matrix, one below the other, and how often all of them were read.

    Parameters
    ----------
    X : dask.array.Array of shape (m, n)
        The data, with one chunk along the columns.

    Attributes
    ----------
    passes : int
        The passes over all blocks so far.
    """

    def __init__(self, X: Any) -> None:
        self.shape: tuple[int, int] = X.shape
        self.blocks = list(X.to_delayed().ravel())
        ends = np.cumsum([0, *X.chunks[0]])
        self.spans = [(int(a), int(b)) for a, b in pairwise(ends)]
        self.passes = 0

    def visit(self, work: Callable[..., tuple[Any, Sums]], *factors: RowFactor) -> Any:
        """Call ``work(block, *parts of the factors)`` for every block, in one pass.

        Returns
        -------
        kept : list
            What `work` returned first for each block, left where it was computed.
        sums : dict
            The sums over all blocks of what it returned second.
        """
        from dask.base import persist
        from dask.delayed import delayed

        answers = self._answers(work, factors)
        with self._said_if_lost():
            *kept, summed = persist(*(answer[0] for answer in answers), _total(delayed, answers))
            return kept, summed.compute()

    def sums(self, work: Callable[..., tuple[Any, Sums]], *factors: RowFactor) -> Sums:
        """Return the second answer of `visit` alone."""
        from dask.delayed import delayed

        total = _total(delayed, self._answers(work, factors))
        with self._said_if_lost():
            found: Sums = total.compute()
        return found

    def _answers(self, work: Callable[..., Any], factors: Sequence[RowFactor]) -> list[Any]:
        """Return the tasks of a pass, one for each block."""
        from dask.delayed import delayed

        self.passes += 1
        task, sent = delayed(visited, pure=False), delayed(Sent(work), pure=False, traverse=False)
        lengths = [len(factor.parts[0]) for factor in factors]
        parts = zip(self.blocks, self.spans, _side_by_side(factors, len(self.blocks)), strict=True)
        return [task(sent, lengths, block, span, *own) for block, span, own in parts]

    def keep(self, work: Callable[..., Any], *factors: RowFactor) -> list[Any]:
        """Return ``work(length of the block, *parts)`` for every block, left where it is computed.

        The matrix is not read.
        """
        from dask.base import persist
        from dask.delayed import delayed

        task, sent = delayed(_called, pure=False), delayed(Sent(work), pure=False, traverse=False)
        lengths = [len(factor.parts[0]) for factor in factors]
        parts = zip(self.spans, _side_by_side(factors, len(self.blocks)), strict=True)
        with self._said_if_lost():
            return list(persist(*(task(sent, lengths, b - a, *own) for (a, b), own in parts)))

    def _said_if_lost(self) -> AbstractContextManager[None]:
        advice = "A fit can go on from the last H that its callback has seen: fit(X, start=H)."
        return said_if_lost(self.passes, "X", advice)


class RowFactor:
    """The factor of the rows of a matrix, of shape (k, m), in the blocks of the matrix.

    Parameters
    ----------
    parts : list of lists
        For each block some arrays of shape (components, rows of the block), left where they were
        computed. Their components, one array after the other, are those of the factor.
    scale : array of shape (k,)
        What the components in the parts are multiplied with.
    length : int
        m.
    sums : dict
        Sums over all rows that were computed with the parts, without the scale. Who put them there
        knows which they are.
    """

    __array_ufunc__ = None  # so that ``array * factor`` asks this class

    def __init__(
        self, parts: list[list[Any]], scale: Vector, length: int, sums: Sums | None = None
    ) -> None:
        self.parts, self.scale, self.shape = parts, scale, (len(scale), length)
        self.sums: Sums = {} if sums is None else sums

    @classmethod
    def of(cls, kept: list[Any], k: int, length: int, sums: Sums | None = None) -> RowFactor:
        """Return a factor of k components that has one array for each block."""
        return cls([[each] for each in kept], np.ones(k), length, sums)

    def __len__(self) -> int:
        return len(self.scale)

    def __rmul__(self, weights: Array) -> RowFactor:
        """Return the factor with components multiplied by weights, of shape (k, 1)."""
        return RowFactor(self.parts, weights[:, 0] * self.scale, self.shape[1], self.sums)

    def copy(self) -> RowFactor:
        """Return the factor itself, which nothing changes."""
        return self

    def release(self) -> None:
        """Let go of the parts, which no one will ask for again."""
        self.parts = []


def zeros(rows: RowBlocks, count: int, stored: Any) -> RowFactor:
    """Return a factor with so many components that are zero, stored with this dtype."""

    def work(length: int) -> Array:
        return np.zeros((count, length), dtype=stored)

    return RowFactor.of(rows.keep(work), count, rows.shape[0])


def stacked(factors: Sequence[RowFactor]) -> RowFactor:
    """Return a factor with the components of several, one after the other; nothing is copied."""
    held = [factor for factor in factors if len(factor)] or factors[:1]
    parts = [
        [each for part in own for each in part]
        for own in zip(*(f.parts for f in held), strict=True)
    ]
    return RowFactor(parts, np.concatenate([f.scale for f in held]), held[0].shape[1])


def tile_of(F: Sequence[Array], rows: slice, scale: Vector | None = None) -> Array:
    """Return some columns of a part of a factor, times the scale if there is one, in float64."""
    own = F[0][:, rows] if len(F) == 1 else np.vstack([each[:, rows] for each in F])
    if scale is None or np.all(scale == 1.0):
        return own.astype(np.float64, order="C")
    return np.multiply(scale[:, None], own, dtype=np.float64)


def tiles(block: Any, kind: Any, unit: float, entries: int = TILE) -> Iterator[tuple[slice, Any]]:
    """Yield slices of the rows of a block with their data, divided by the unit.

    Dense data come as arrays in C order of the dtype `kind`, some rows at a time; NaN stays. Sparse
    data come as one csr_array of float64.
    """
    if sparse.issparse(block):
        X = block.astype(np.float64, copy=False)
        if X.shape[0]:
            yield slice(0, X.shape[0]), X if unit == 1.0 else X / unit
        return
    rows = max(1, entries // block.shape[1])
    for start in range(0, block.shape[0], rows):
        tile = np.ascontiguousarray(block[start : start + rows], dtype=kind)
        yield slice(start, start + len(tile)), tile if unit == 1.0 else tile / unit


def real_block(data: Any) -> Any:
    """Return a block as an array or a csr_array of real numbers, or raise a ValueError.

    Arrays that came from another process may lie at odd addresses, and are copied.
    """
    if sparse.issparse(data):
        if data.dtype.kind not in "fiub":
            raise ValueError(f"X must hold real numbers; got a sparse block of {data.dtype}.")
        check_stored(data, "X")
        X = sparse.csr_array(data)
        if not (X.data.flags.aligned and X.indices.flags.aligned and X.has_canonical_format):
            X = X.copy()  # it may share its memory with the data
            X.sum_duplicates()
        return X
    if not isinstance(data, np.ndarray):
        raise ValueError(
            "the blocks of X must be arrays of NumPy or sparse matrices of SciPy; got a "
            f"{type(data).__module__}.{type(data).__qualname__}."
        )
    usual = type(data) is np.ndarray and data.dtype.isnative and data.flags.aligned
    return data if usual and data.dtype.kind in "fiub" else as_real_array(data, "X")


def visited(
    work: Sent, lengths: Sequence[int], data: Any, span: tuple[int, int], *arrays: Array
) -> Any:
    """Return what the work does with one block; an error says which block it is.

    `arrays` has the arrays of the parts of all factors; `lengths` says how many each part has.
    """
    try:
        with ONE_BLAS_THREAD:
            return work.function(real_block(data), *_grouped(arrays, lengths))
    except ValueError as error:
        raise ValueError(f"in the rows {span[0]}:{span[1]}, a block of X: {error}") from error


def _called(work: Sent, lengths: Sequence[int], size: int, *arrays: Array) -> Any:
    return work.function(size, *_grouped(arrays, lengths))


def _side_by_side(factors: Sequence[RowFactor], count: int) -> list[list[Any]]:
    """Return for each block the arrays of all factors; Dask is quicker without lists in lists."""
    return [[each for factor in factors for each in factor.parts[i]] for i in range(count)]


def _grouped(arrays: Sequence[Array], lengths: Sequence[int]) -> Iterator[Sequence[Array]]:
    """Yield the first so many arrays, and then the next."""
    start = 0
    for length in lengths:
        yield arrays[start : start + length]
        start += length


def _total(delayed: Any, answers: list[Any]) -> Any:
    """Return the task at the root of the tree that adds the sums of all blocks."""
    level, adds = answers, delayed(_first_added, pure=False)
    while len(level) > 1 or level is answers:
        groups = [level[i : i + SPLIT] for i in range(0, len(level), SPLIT)]
        level, adds = [adds(*group) for group in groups], delayed(_added, pure=False)
    return level[0]


def _first_added(*answers: tuple[Any, Sums]) -> Sums:
    return _added(*(sums for _, sums in answers))


def _added(*group: Sums) -> Sums:
    """Return the sums of several blocks, name by name, in their order."""
    return {name: reduce(add, (each[name] for each in group)) for name in group[0]}
