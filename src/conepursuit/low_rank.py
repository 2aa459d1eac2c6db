"""Matrices that are kept as data plus a product of thin factors, and never formed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array
from conepursuit.kernels import factorization as kernels


class FactoredMatrix:
    """``scale * base + left.T @ right``, with the operations that algorithms use on arrays.

    The iterates of a factorisation, their gradients (the model minus sparse data) and the matrix
    of ones are all of this kind, and so are their sums. Only `toarray` makes an array of its
    shape.

    Parameters
    ----------
    left, right : arrays of shape (k, m) and (k, n)
        One component per row; k may be 0.
    base : array or csr_array of shape (m, n), optional
        A matrix that is added to the product; never copied, never changed.
    scale : float
        The factor of `base`.
    """

    __array_ufunc__ = None  # so that ``array @ matrix`` asks this class
    __slots__ = ("base", "left", "right", "scale")

    def __init__(self, left: Array, right: Array, base: Any = None, scale: float = 1.0) -> None:
        self.left, self.right, self.base, self.scale = left, right, base, scale

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.left.shape[1], self.right.shape[1]

    @property
    def T(self) -> FactoredMatrix:  # noqa: N802  # as arrays call it
        """The transpose."""
        base = None if self.base is None else self.base.T
        return FactoredMatrix(self.right, self.left, base, self.scale)

    @property
    def factors(self) -> tuple[Array, Array]:
        """The pair (left, right)."""
        return self.left, self.right

    def __repr__(self) -> str:
        base = "" if self.base is None else f"{type(self.base).__name__} + "
        return f"FactoredMatrix({base}rank {len(self.left)}, shape {self.shape})"

    def __matmul__(self, other: Array) -> Array:
        product: Array = self.left.T @ (self.right @ other)
        return product if self.base is None else product + self.scale * (self.base @ other)

    def __rmatmul__(self, other: Array) -> Array:
        product: Array = (other @ self.left.T) @ self.right
        return product if self.base is None else product + self.scale * (other @ self.base)

    def __mul__(self, factor: float) -> FactoredMatrix:
        return FactoredMatrix(factor * self.left, self.right, self.base, factor * self.scale)

    __rmul__ = __mul__

    def __neg__(self) -> FactoredMatrix:
        return -1.0 * self

    def __add__(self, other: FactoredMatrix) -> FactoredMatrix:
        base, scale = self.base, self.scale
        if base is None:
            base, scale = other.base, other.scale
        elif other.base is base:
            scale += other.scale
        elif other.base is not None:
            raise ValueError("two matrices with different data have no sum of this kind.")
        if self.right is other.right:
            return FactoredMatrix(self.left + other.left, self.right, base, scale)
        left, right = (self.left, other.left), (self.right, other.right)
        return FactoredMatrix(np.concatenate(left), np.concatenate(right), base, scale)

    def __sub__(self, other: FactoredMatrix) -> FactoredMatrix:
        return self + -1.0 * other

    def inner(self, other: Any) -> float:
        """Return <self, other>, where other is of this kind, an array or sparse."""
        if not isinstance(other, FactoredMatrix):
            other = FactoredMatrix(self.left[:0], self.right[:0], other)
        total = float(np.vdot(self.left @ other.left.T, self.right @ other.right.T))
        for one, two in ((self, other), (other, self)):
            if one.base is not None and one.scale and len(two.left):
                total += one.scale * float(np.vdot(two.left @ one.base, two.right))
        if self.base is not None and other.base is not None:
            total += self.scale * other.scale * _inner(self.base, other.base)
        return total

    def is_finite(self) -> bool:
        """Return whether the factors are finite; `base` is checked where the data are read."""
        return bool(np.isfinite(self.left).all() and np.isfinite(self.right).all())

    def toarray(self) -> Array:
        """Return the matrix as an array of its full size."""
        full: Array = self.left.T @ self.right
        if self.base is not None:
            full += self.scale * (self.base.toarray() if sparse.issparse(self.base) else self.base)
        return full

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.toarray() if dtype is None else self.toarray().astype(dtype)

    def positive_part(self) -> Any:
        """Return max(self, 0) as a csr_array, None unless it is known to be sparse.

        It is where `base` is sparse with a positive scale and the product of the factors has no
        positive entry: `right` is non-negative and `left` has no positive entry.
        """
        if not sparse.issparse(self.base) or self.scale <= 0:
            return None
        if (self.left > 0).any() if len(self.left) and (self.right >= 0).all() else len(self.left):
            return None
        found = np.maximum(self.scale * self.base.data + product_at(self.base, *self.factors), 0.0)
        return sparse.csr_array((found, self.base.indices, self.base.indptr), self.shape)


def row_products(factors: Sequence[Array]) -> Array:
    """Return the outer products of the rows of the factors, each flattened into a row.

    Row k of the result is the outer product of row k of every factor, in the order of memory.
    """
    rows: Array = np.ones((len(factors[0]), 1))
    for factor in factors:
        rows = (rows[:, :, None] * factor[:, None, :]).reshape(len(factor), -1)
    return rows


def outer_sum(weights: Array, factors: Sequence[Array]) -> Array:
    """Return sum_k weights[k] u_k v_k w_k ..., a dense tensor; row k of each factor is a vector.

    The outer products are formed without the longest axis, and multiplied with that.
    """
    longest = max(range(len(factors)), key=lambda axis: factors[axis].shape[1])
    others = [factor for axis, factor in enumerate(factors) if axis != longest]
    flat = (factors[longest].T * weights) @ row_products(others)
    shape = (factors[longest].shape[1], *(factor.shape[1] for factor in others))
    return np.ascontiguousarray(np.moveaxis(flat.reshape(shape), 0, longest))


def product_at(places: Any, left: Array, right: Array) -> Array:
    """Return the entries of ``left.T @ right`` at the places that a csr_array stores."""
    rows, columns = np.ascontiguousarray(left.T), np.ascontiguousarray(right.T)
    return kernels.entries(places.indices, places.indptr, rows, columns)


def _inner(one: Any, two: Any) -> float:
    """Return the inner product of two matrices, each an array or sparse."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return float(np.vdot(one, two))
    if one is two:
        return float(np.vdot(one.data, one.data))
    return float((one.multiply(two) if sparse.issparse(one) else two.multiply(one)).sum())
