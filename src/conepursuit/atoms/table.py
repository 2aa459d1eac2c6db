"""The table in which the vectors of a run are kept."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector


class Table:
    """The vectors of one run, one row each, only ever added to.

    All batches of a run share one table, so that joining an atom copies one row and dropping one
    copies nothing. Rows are dense, or sparse where the first one is.

    Attributes
    ----------
    rows : array or csr_array
        The matrix of all rows, a view.
    count : int
        How many there are.
    """

    __slots__ = ("_norms", "_slots", "_store", "count", "rows")

    def __init__(self, size: int) -> None:
        self.rows: Any = np.empty((0, size))
        self.count = 0
        self._store: _DenseRows | _SparseRows | None = None
        self._slots: dict[Hashable, int] = {}
        self._norms: Vector = np.empty(0)

    @classmethod
    def single(cls, row: Any) -> Table:
        """Return a table of one row that is not copied; none can be added."""
        return cls.of(row if sparse.issparse(row) else row.reshape(1, -1))

    @classmethod
    def of(cls, rows: Any) -> Table:
        """Return a table of rows that are not copied; none can be added."""
        table = cls.__new__(cls)
        table.rows, table.count, table._norms = rows, int(rows.shape[0]), np.empty(0)
        return table

    def row(self, slot: int) -> Any:
        """Return one row: a vector, or a sparse matrix of one row."""
        return self.rows[slot] if isinstance(self.rows, np.ndarray) else self.rows[[slot]]

    def add(self, key: Hashable, row: Any) -> int:
        """Store a row under its key, unless it is there already, and return where it lies."""
        slot = self._slots.get(key)
        if slot is None:
            if self._store is None:
                kind = _SparseRows if sparse.issparse(row) else _DenseRows
                self._store = kind(self.rows.shape[1])
            slot, self._slots[key] = self.count, self.count
            self.count += 1
            self.rows = self._store.append(row)
        return slot

    def norms(self, slots: Array) -> Vector:
        """Return the norms of some rows; each is computed once."""
        known = len(self._norms)
        if known < self.count:
            fresh = self.rows[known:]
            if isinstance(fresh, np.ndarray):
                squares = np.einsum("ij,ij->i", fresh, fresh)
            else:
                squares = np.asarray(fresh.multiply(fresh).sum(axis=1))
            self._norms = np.concatenate([self._norms, np.sqrt(squares)])
        norms: Vector = self._norms[slots]
        return norms


class _DenseRows:
    """A matrix that grows by rows, doubling its memory when it is full."""

    def __init__(self, size: int) -> None:
        self.count, self.buffer = 0, np.empty((8, size))

    def append(self, row: Any) -> Array:
        """Add a row and return all of them."""
        self.buffer = _with_room(self.buffer, self.count, 1)
        self.buffer[self.count] = row.toarray()[0] if sparse.issparse(row) else row
        self.count += 1
        return self.buffer[: self.count]


class _SparseRows:
    """A CSR matrix that grows by rows, doubling its memory when it is full."""

    def __init__(self, size: int) -> None:
        self.size, self.count = size, 0
        self.data, self.indices = np.empty(64), np.empty(64, dtype=np.int64)
        self.ends = np.zeros(8, dtype=np.int64)

    def append(self, row: Any) -> Any:
        """Add a row and return all of them."""
        row = sparse.csr_array(row.reshape(1, -1))
        start, stop = int(self.ends[self.count]), int(self.ends[self.count]) + row.nnz
        self.data = _with_room(self.data, start, row.nnz)
        self.indices = _with_room(self.indices, start, row.nnz)
        self.ends = _with_room(self.ends, self.count + 1, 1)
        self.data[start:stop], self.indices[start:stop] = row.data, row.indices
        self.count += 1
        self.ends[self.count] = stop
        parts = (self.data[:stop], self.indices[:stop], self.ends[: self.count + 1])
        return sparse.csr_array(parts, shape=(self.count, self.size))


def _with_room(buffer: Array, used: int, more: int) -> Array:
    """Return the buffer, or a larger copy of its first `used` entries if `more` do not fit."""
    if used + more <= len(buffer):
        return buffer
    grown = np.empty((2 * (used + more), *buffer.shape[1:]), dtype=buffer.dtype)
    grown[:used] = buffer[:used]
    return grown
