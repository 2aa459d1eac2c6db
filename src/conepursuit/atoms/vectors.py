"""Atoms that are plain vectors, and the sets of vectors with an oracle in closed form."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from math import inf
from typing import Any, Self

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector, as_float_array, check_stored, norm
from conepursuit.atoms.base import Atoms, AtomSet, is_index, packed_keys, unpacked_keys
from conepursuit.atoms.table import Table
from conepursuit.linear import gram, matvec, rmatvec
from conepursuit.rounding import product_rounding

Lookup = Callable[[tuple[Any, ...]], Vector] | Any


class Vectors(Atoms):
    """A batch of vectors (arrays of one shape, flattened), rows of a shared table.

    Parameters
    ----------
    shape : tuple of int
        Shape of one atom.
    keys : tuple of hashable
        Identity of each atom.
    table : Table
        Where the vectors are.
    slots : ndarray of int
        The row of each atom.
    lookup : callable, optional
        For the answer of an oracle: maps keys of the set to their scores at the gradient asked. If
        it is no callable, it is what else the oracle has found, and scores are computed.
    """

    __slots__ = ("keys", "lookup", "shape", "slots", "table")

    def __init__(
        self,
        shape: tuple[int, ...],
        keys: tuple[Any, ...],
        table: Table,
        slots: Array,
        lookup: Lookup | None = None,
    ) -> None:
        self.shape, self.keys, self.table = shape, keys, table
        self.slots, self.lookup = slots, lookup

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Self:
        """Return a batch without atoms on a table of its own."""
        return cls(shape, (), Table(cls.row_size(shape)), np.empty(0, dtype=np.intp))

    @staticmethod
    def row_size(shape: tuple[int, ...]) -> int:
        """Return how many numbers describe an atom."""
        return int(np.prod(shape))

    @classmethod
    def single(
        cls, shape: tuple[int, ...], key: Hashable, row: Any, lookup: Lookup | None = None
    ) -> Vectors:
        """Return a batch of one."""
        return cls(shape, (key,), Table.single(row), _FIRST, lookup)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} of shape {self.shape}, keys={self.keys})"

    def inner(self, gradient: Array) -> Vector:
        scores: Vector = matvec(self.table.rows, gradient.reshape(-1))[self.slots]
        return scores

    def combine(self, weights: Vector) -> Array:
        rows = self.table.rows
        if len(self.slots) == 1 and isinstance(rows, np.ndarray):
            x: Array = weights[0] * rows[self.slots[0]]
        else:
            spread = np.zeros(self.table.count)
            spread[self.slots] = weights
            x = rmatvec(rows, spread)
        return x if len(self.shape) == 1 else x.reshape(self.shape)

    def drift(self, weights: Vector) -> Array | float:
        rows = abs(self.table.rows[self.slots])
        drift = product_rounding(len(self)) * rmatvec(rows, np.abs(weights))
        return drift.reshape(self.shape)

    def gram(self, other: Atoms | None = None) -> Array:
        if other is None:
            return gram(self.table.rows[self.slots].T)
        assert isinstance(other, Vectors)
        block = [self.inner(other[[j]].combine(np.ones(1))) for j in range(len(other))]
        return np.stack(block, axis=1)

    def weighted_gram(self, weights: Array, other: Atoms) -> Array:
        rows = self.table.rows
        if other is not self:
            return super().weighted_gram(weights, other)
        scaled, roots = rows[self.slots], np.sqrt(weights.reshape(-1))
        if isinstance(scaled, np.ndarray):
            scaled *= roots
        else:
            scaled = scaled.multiply(roots)
        return gram(scaled.T)  # of a matrix and its own transpose, at half the cost

    def join(self, other: Atoms) -> Self:
        assert isinstance(other, Vectors)
        table, slots = self.table, self.slots
        if table.count > 2 * len(self) + 32:  # mostly dropped atoms: start afresh
            table = Table(self.row_size(self.shape))
            slots = self._copy_to(table)
        fresh = other._copy_to(table)
        return type(self)(self.shape, self.keys + other.keys, table, np.append(slots, fresh))

    def _copy_to(self, table: Table) -> Array:
        """Write the atoms into another table and return where they lie."""
        places = zip(self.keys, self.slots, strict=True)
        return np.array([table.add(key, self.table.row(slot)) for key, slot in places], np.intp)

    def __getitem__(self, indices: Sequence[int] | Array) -> Self:
        keys = tuple(self.keys[i] for i in indices)
        return type(self)(self.shape, keys, self.table, self.slots[indices])

    def norms(self) -> Vector:
        return self.table.norms(self.slots)

    def rescore(self, gradient: Array, answer: Atoms) -> Vector:
        lookup = getattr(answer, "lookup", None)
        return lookup(self.keys) if callable(lookup) else self.inner(gradient)

    def saved(self) -> dict[str, Any]:
        saved: dict[str, Any] = {"keys": packed_keys(self.keys)}
        if all(is_index(key) for key in self.keys):
            return saved
        rows = self.table.rows[self.slots]
        if isinstance(rows, np.ndarray):
            return saved | {"rows": rows}
        return saved | {"rows": rows.data, "columns": rows.indices, "ends": rows.indptr}

    def restored(self, saved: Any) -> Self | None:
        if not hasattr(saved, "rows"):
            return None
        rows, size = saved.rows, self.row_size(self.shape)
        if hasattr(saved, "columns"):
            parts = (rows, saved.columns, saved.ends)
            rows = sparse.csr_array(parts, shape=(len(saved.keys), size), dtype=np.float64)
            check_stored(rows, "the atoms in it")
        else:
            rows = as_float_array(rows, "the atoms in it")
        if rows.shape != (len(saved.keys), size):
            raise ValueError(
                f"its atoms have {rows.shape[-1]} numbers each, those of this problem {size}: it "
                "is the checkpoint of another problem."
            )
        slots = np.arange(len(saved.keys), dtype=np.intp)
        return type(self)(self.shape, unpacked_keys(saved.keys), Table.of(rows), slots)

    def answering(self, lookup: Lookup) -> Vectors:
        """Return these atoms as an oracle's answer, with a lookup of the scores it has computed."""
        return Vectors(self.shape, self.keys, self.table, self.slots, lookup)

    def tagged(self, tag: Hashable, sign: float = 1.0, lookup: Lookup | None = None) -> Vectors:
        """Return this atom, times `sign`, under the key (tag, key)."""
        (key,), row = self.keys, self.table.row(self.slots[0])
        return Vectors.single(self.shape, (tag, key), row if sign == 1.0 else sign * row, lookup)


_FIRST = np.zeros(1, dtype=np.intp)


class Pass:
    """The scores of all atoms of a finite set at one gradient g; a call maps keys to scores.

    `steepness` is max_a -<g, a> / ||a||, or None if it is not known.
    """

    __slots__ = ("scores", "steepness")

    def __init__(self, scores: Vector, steepness: float | None = None) -> None:
        self.scores, self.steepness = scores, steepness

    def __call__(self, keys: tuple[Any, ...]) -> Vector:
        found: Vector = self.scores[list(keys)]
        return found


def checked_index(key: Any, n: int, atoms: AtomSet) -> int:
    """Return the key of a finite set as an index."""
    if not isinstance(key, int | np.integer) or not 0 <= key < n:
        raise ValueError(f"{atoms!r} has no atom with the key {key!r}; its keys are 0 to {n - 1}.")
    return int(key)


def fingerprint(row: Array) -> bytes:
    """Return the key of a generated atom: equal for equal vectors, different otherwise."""
    return blake2b(np.ascontiguousarray(row).tobytes(), digest_size=16).digest()


def checked_fingerprint(key: Any, atoms: AtomSet) -> None:
    """Raise ValueError if a key cannot be that of a generated atom."""
    if not isinstance(key, bytes):
        raise ValueError(f"{atoms!r} has no atom with the key {key!r}.")


def as_shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with at least one entry."""
    full = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if not full or any(n < 1 for n in full):
        raise ValueError(f"atoms need a shape with at least one entry; got {shape!r}.")
    return tuple(int(n) for n in full)


class _NonnegativeUnits(AtomSet):
    """What the sets of non-negative unit vectors have in common."""

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        self.shape = as_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape})"

    def empty(self) -> Vectors:
        return Vectors.empty(self.shape)

    @property
    def radius(self) -> float:
        return 1.0

    def positive_functional(self) -> Array:
        return np.ones(self.shape)  # the sum of a non-negative unit vector is at least its norm


class UnitVectors(_NonnegativeUnits):
    """The unit vectors e_1, ..., e_n; their cone is the non-negative orthant.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the vectors. Keys are positions in the flattened array.
    """

    n_atoms: int

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        super().__init__(shape)
        self.n_atoms = int(np.prod(self.shape))

    def atom(self, key: Any) -> Vectors:
        index = checked_index(key, self.n_atoms, self)
        row = sparse.csr_array(([1.0], [index], [0, 1]), shape=(1, self.n_atoms))
        return Vectors.single(self.shape, index, row)

    def lmo(self, gradient: Array) -> Vectors:
        scores = gradient.reshape(-1)
        return self.atom(int(scores.argmin())).answering(Pass(scores))

    def steepest(self, gradient: Array) -> Vectors:
        scores = gradient.reshape(-1)
        return self.atom(int(np.abs(scores).argmax())).answering(Pass(scores))

    def noise(self, gradient: Array) -> float:
        return 0.0  # a score is an entry of the gradient

    def gauge(self, x: Array) -> float:
        return float(x.sum()) if (x >= 0).all() else inf


class NonnegativeSphere(_NonnegativeUnits):
    """The unit vectors of the non-negative orthant, {a : a >= 0, ||a|| = 1}.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the vectors.

    Notes
    -----
    The oracle is the normalised positive part of -g. Where g >= 0 no atom descends, and the least
    bad one is a coordinate vector.
    """

    def atom(self, key: Any) -> None:
        checked_fingerprint(key, self)

    def lmo(self, gradient: Array) -> Vectors:
        scores = gradient.reshape(-1)
        row = np.maximum(-scores, 0.0)
        largest = row.max()
        if largest > 0:
            row /= largest  # so that the norm neither overflows nor vanishes
            row /= norm(row)
        else:
            row[scores.argmin()] = 1.0
        return Vectors.single(self.shape, fingerprint(row), row)

    def gauge(self, x: Array) -> float:
        return norm(x) if (x >= 0).all() else inf
