"""Sums of outer products, and tensors that store some of their entries only.

Everywhere, `factors` are one array for each axis, of shape (k, n) for an axis of length n. Row r
of all of them is component r, the outer product of these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector, as_real_array, check_stored

BLOCK = 1 << 18
"""Non-zeros of a sparse tensor that are treated at a time; work space is this times k."""


def is_sparse_tensor(data: Any) -> bool:
    """Return whether data are a sparse array of at least three axes, of SciPy or of `sparse`."""
    if isinstance(data, np.ndarray) or len(getattr(data, "shape", ())) < 3:
        return False
    return isinstance(data, SparseTensor) or sparse.issparse(data) or hasattr(data, "fill_value")


def as_tensor(data: Any, name: str) -> Any:
    """Return a finite real tensor of at least three axes: a float array or a SparseTensor."""
    if is_sparse_tensor(data):
        tensor: Any = data if isinstance(data, SparseTensor) else SparseTensor.of(data, name)
    else:
        tensor = as_real_array(data, name)
    if len(tensor.shape) < 3 or 0 in tensor.shape:
        raise ValueError(
            f"{name} must have at least three axes, and an entry; got shape {tuple(tensor.shape)}."
        )
    if not np.isfinite(tensor.data if isinstance(tensor, SparseTensor) else tensor).all():
        raise ValueError(f"{name} must be finite; it holds NaN or infinity.")
    return tensor


def without(factors: Sequence[Array], axis: int) -> tuple[Array, ...]:
    """Return all factors but that of one axis."""
    return *factors[:axis], *factors[axis + 1 :]


def row_products(factors: Sequence[Array]) -> Array:
    """Return the outer products of the rows of the factors, each flattened into a row.

    Row k of the result is the outer product of row k of every factor, in the order of memory.
    """
    rows: Array = factors[0]
    for factor in factors[1:]:
        size = rows.shape[1] * factor.shape[1]
        rows = (rows[:, :, None] * factor[:, None, :]).reshape(len(factor), size)
    return rows


def outer_sum(factors: Sequence[Array]) -> Array:
    """Return the sum of all components, a dense tensor.

    The outer products are formed without one axis, and multiplied with that: the longer one of the
    first and the last.
    """
    shape = tuple(factor.shape[1] for factor in factors)
    if shape[0] >= shape[-1]:
        product: Array = factors[0].T @ row_products(factors[1:])
    else:
        product = row_products(factors[:-1]).T @ factors[-1]
    return product.reshape(shape)


def component_grams(factors: Sequence[Array], others: Sequence[Array] | None = None) -> Array:
    """Return the inner products of all components with all of `others`, by default their own."""
    others = factors if others is None else others
    gram: Array = factors[0] @ others[0].T
    for one, two in zip(factors[1:], others[1:], strict=True):
        gram = gram * (one @ two.T)
    return gram


def component_products(T: Any, factors: Sequence[Array]) -> Vector:
    """Return <T, component> for each component; T is an array, sparse, or kept as factors."""
    if len(factors) == 2:
        products: Vector = np.einsum("ki,ki->k", factors[0] @ T, factors[1])
        return products
    ends: Vector = np.einsum("ki,ki->k", contracted(T, factors, 0), factors[0])
    return ends


def contracted(T: Any, factors: Sequence[Array], axis: int) -> Array:
    """Return the products of T with the rows of all factors but one, shape (k, n) for its axis.

    Row k is ``sum T[..., i, ...] u_k v_k ...`` over all axes but that of i. It is minus the
    derivative of 1/2 ||T - Z||^2 at Z = 0 along the factor of the axis.
    """
    if not isinstance(T, np.ndarray):
        found: Array = T.contracted(factors, axis)
        return found
    outer = 0 if axis else T.ndim - 1
    return contracted_rest(contracted_end(T, factors[outer], outer), factors, outer, axis)


def contracted_end(T: Array, factor: Array, axis: int) -> Array:
    """Return the products of T with the rows of a factor along its first or its last axis.

    The shape is (k, lengths of the other axes). It is one product of matrices without a copy of T.
    """
    factor = factor.astype(T.dtype, copy=False)
    if axis == 0:
        product: Array = factor @ T.reshape(T.shape[0], -1)
        return product.reshape(-1, *T.shape[1:])
    product = factor @ T.reshape(-1, T.shape[-1]).T
    return product.reshape(-1, *T.shape[:-1])


def contracted_rest(P: Array, factors: Sequence[Array], done: int, axis: int) -> Array:
    """Return `contracted` from P, the answer of `contracted_end` for the axis `done`."""
    k, size = len(P), prod(P.shape[1:])
    left = [b for b in range(len(factors)) if b != done]
    for b in reversed(left[left.index(axis) + 1 :]):
        factor = factors[b].astype(P.dtype, copy=False)
        size //= factor.shape[1]
        P = np.matmul(P.reshape(k, size, factor.shape[1]), factor[:, :, None])
    for b in left[: left.index(axis)]:
        factor = factors[b].astype(P.dtype, copy=False)
        size //= factor.shape[1]
        P = np.matmul(factor[:, None, :], P.reshape(k, factor.shape[1], size))
    return P.reshape(k, size).astype(np.float64, copy=False)


def marginals(X: Any) -> tuple[Array, ...]:
    """Return factors of rank one, the sums of X over all axes but one; their product sums as X."""
    axes = range(len(X.shape))
    if isinstance(X, SparseTensor):
        sums = [X.sums(axis) for axis in axes]
    elif len(axes) == 2:
        sums = [np.asarray(X.sum(axis=1)), np.asarray(X.sum(axis=0))]
    else:
        sums = [X.sum(axis=tuple(b for b in axes if b != axis)) for axis in axes]
    scale = float(sums[0].sum()) ** (1.0 - 1.0 / len(sums)) or 1.0
    return tuple(each[None, :] / scale for each in sums)


class Unfoldings:
    """Dense data and their weights as matrices with one axis as rows.

    Those of a matrix are kept. Those of a tensor are made when they are asked for, since a step
    with them takes much longer than the copy.

    Parameters
    ----------
    *arrays : arrays of one shape, or of shape (0, 0)
        The data, and what belongs to them; (0, 0) stands for nothing.
    """

    def __init__(self, *arrays: Array) -> None:
        self.arrays = tuple(np.ascontiguousarray(array) for array in arrays)
        self.kept: dict[int, tuple[Array, ...]] = {}

    def __getitem__(self, axis: int) -> tuple[Array, ...]:
        if axis in self.kept:
            return self.kept[axis]
        found = tuple(
            np.ascontiguousarray(np.moveaxis(array, axis, 0)).reshape(array.shape[axis], -1)
            if array.size else array
            for array in self.arrays
        )  # fmt: skip
        if self.arrays[0].ndim == 2:
            self.kept[axis] = found
        return found


class Places:
    """Where the entries of a sparse tensor are; shared by all tensors with entries there.

    Parameters
    ----------
    shape : tuple of int
        The lengths of the axes.
    indices : array of shape (n_axes, n_entries)
        The places, in the order of memory (by the first axis first), without repetition.
    """

    def __init__(self, shape: tuple[int, ...], indices: Array) -> None:
        self.shape, self.indices = shape, indices
        self._orders: dict[int, tuple[Any, Array]] = {}
        self._columns: dict[int, tuple[Array, int]] = {}

    def order(self, axis: int) -> tuple[Any, Array]:
        """Return what sorts the entries by an axis, and where each index of the axis begins."""
        if axis not in self._orders:
            found: Any = slice(None)
            if axis:
                found = np.argsort(self.indices[axis], kind="stable")
            counts = np.bincount(self.indices[axis], minlength=self.shape[axis])
            self._orders[axis] = found, np.concatenate([[0], np.cumsum(counts)])
        return self._orders[axis]

    def columns(self, axis: int) -> tuple[Array, int]:
        """Return the columns of the entries in the unfolding by an axis, and their number.

        Columns without an entry are left out, but for one if there is no entry at all.
        """
        if axis not in self._columns:
            others = [b for b in range(len(self.shape)) if b != axis]
            flat = np.ravel_multi_index(
                tuple(self.indices[b] for b in others), tuple(self.shape[b] for b in others)
            )
            distinct, inverse = np.unique(flat, return_inverse=True)
            self._columns[axis] = inverse, max(len(distinct), 1)
        return self._columns[axis]

    def rows(self, factors: Sequence[Array], where: Any, skipped: int | None = None) -> Array:
        """Return the products of the entries of all components at some places, shape (n, k).

        The factors are given with one component per column; that of `skipped` is left out.
        """
        found: Any = None
        for axis, factor in enumerate(factors):
            if axis != skipped:
                part = np.take(factor, self.indices[axis][where], axis=0)
                found = part if found is None else np.multiply(found, part, out=found)
        return np.asarray(found)

    def blocks(self, axis: int) -> Iterator[tuple[slice, Any, Array]]:
        """Yield parts of an axis: its indices, the entries with them, and where each begins.

        There are about `BLOCK` entries in a part, or those of a single index.
        """
        order, ends = self.order(axis)
        start = 0
        while start < self.shape[axis]:
            stop = int(np.searchsorted(ends, ends[start] + BLOCK, side="right")) - 1
            stop = min(max(stop, start + 1), self.shape[axis])
            entries = slice(int(ends[start]), int(ends[stop]))
            where = entries if isinstance(order, slice) else order[entries]
            yield slice(start, stop), where, ends[start : stop + 1] - ends[start]
            start = stop


class SparseTensor:
    """A tensor of which only some entries are stored; the others are zero.

    Parameters
    ----------
    places : Places
        Where they are.
    data : array of shape (n_entries,)
        The entries, in float64.
    """

    __slots__ = ("data", "places")

    def __init__(self, places: Places, data: Vector) -> None:
        self.places, self.data = places, data

    @classmethod
    def of(cls, T: Any, name: str = "X") -> SparseTensor:
        """Return a tensor from a sparse array of SciPy or of pydata's `sparse`."""
        if getattr(T, "fill_value", 0.0) != 0.0:
            raise ValueError(
                f"{name} must be zero where nothing is stored; got fill_value {T.fill_value!r}."
            )
        if np.dtype(T.dtype).kind not in "biuf":
            raise ValueError(f"{name} must hold real numbers; got dtype {T.dtype}.")
        check_stored(T, name)
        T = T if hasattr(T, "coords") else T.tocoo()
        shape = tuple(int(n) for n in T.shape)
        indices: Any = np.array(T.coords)
        data = np.asarray(T.data, dtype=np.float64)
        flat = np.ravel_multi_index(tuple(indices), shape)
        if (np.diff(flat) <= 0).any():  # SciPy keeps any order, and adds up entries of one place
            flat, inverse = np.unique(flat, return_inverse=True)
            data = np.bincount(inverse, data, len(flat)).astype(np.float64)
            indices = np.array(np.unravel_index(flat, shape))
        kind = np.int32 if max(shape) < 2**31 else np.int64
        return cls(Places(shape, indices.astype(kind)), data)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.places.shape

    def __repr__(self) -> str:
        return f"SparseTensor({len(self.data)} entries, shape {self.shape})"

    def __truediv__(self, factor: float) -> SparseTensor:
        return SparseTensor(self.places, self.data / factor)

    def max(self) -> float:
        """Return the largest entry, at least 0."""
        return float(self.data.max(initial=0.0))

    def sums(self, axis: int) -> Vector:
        """Return the sum over all axes but one."""
        return np.bincount(self.places.indices[axis], self.data, self.shape[axis]).astype(float)

    def transposed(self, axes: Sequence[int]) -> SparseTensor:
        """Return the tensor with its axes in another order."""
        shape = tuple(self.shape[axis] for axis in axes)
        indices = self.places.indices[list(axes)]
        order = np.argsort(np.ravel_multi_index(tuple(indices), shape))
        return SparseTensor(Places(shape, indices[:, order]), self.data[order])

    def at(self, factors: Sequence[Array]) -> Vector:
        """Return the sum of all components at the places of the entries."""
        columns, out = by_columns(factors), np.empty(len(self.data))
        for start in range(0, len(out), BLOCK):
            where = slice(start, start + BLOCK)
            out[where] = self.places.rows(columns, where).sum(axis=1)
        return out

    def contracted(self, factors: Sequence[Array], axis: int) -> Array:
        """Return what the function `contracted` does, over the entries that are stored."""
        columns = by_columns(factors)
        out = np.empty((len(factors[0]), self.shape[axis]))
        for indices, where, ends in self.places.blocks(axis):
            rows = self.places.rows(columns, where, skipped=axis)
            entries = self.data[where], np.arange(len(rows)), ends
            out[:, indices] = (sparse.csr_array(entries, (len(ends) - 1, len(rows))) @ rows).T
        return out

    def unfolded(self, axis: int) -> sparse.csr_array:
        """Return the matrix with an axis as rows, and a column for all places with an entry."""
        columns, count = self.places.columns(axis)
        entries = self.data, (self.places.indices[axis], columns)
        return sparse.csr_array(entries, shape=(self.shape[axis], count))

    def rows(self) -> sparse.csr_array:
        """Return the matrix with the first axis as rows, and all others as columns."""
        others = tuple(self.places.indices[1:]), self.shape[1:]
        _, ends = self.places.order(0)
        shape = self.shape[0], prod(self.shape[1:])
        return sparse.csr_array((self.data, np.ravel_multi_index(*others), ends), shape)

    def toarray(self) -> Array:
        """Return an array of its full size."""
        full = np.zeros(self.shape)
        full[tuple(self.places.indices)] = self.data
        return full


def by_columns(factors: Sequence[Array]) -> list[Array]:
    """Return the factors with one component per column, so that all at one place lie together."""
    return [np.ascontiguousarray(factor.T) for factor in factors]
