"""Tensors and matrices that are kept as data plus a product of thin factors, and never formed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array
from conepursuit.kernels import factorization as kernels
from conepursuit.tensors import (
    SparseTensor,
    component_grams,
    component_products,
    contracted,
    outer_sum,
)


class FactoredTensor:
    """``scale * base`` plus the sum of the components of some factors, never formed.

    It has the operations that algorithms use on arrays. The iterates of a factorisation, their
    gradients (the model minus sparse data) and the tensor of ones are all of this kind, and so are
    their sums. Only `toarray` makes an array of its shape.

    Parameters
    ----------
    *factors : arrays of shape (k, n), n the length of an axis
        One component per row; k may be 0.
    base : array or SparseTensor, optional
        A tensor that is added; never copied, never changed.
    scale : float
        The factor of `base`.
    """

    __array_ufunc__ = None  # so that ``array @ matrix`` asks this class
    __slots__ = ("base", "factors", "scale")

    def __init__(self, *factors: Array, base: Any = None, scale: float = 1.0) -> None:
        self.factors, self.base, self.scale = factors, base, scale

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(factor.shape[1] for factor in self.factors)

    def __repr__(self) -> str:
        base = "" if self.base is None else f"{type(self.base).__name__} + "
        return f"{type(self).__name__}({base}rank {len(self.factors[0])}, shape {self.shape})"

    def __mul__(self, factor: float) -> Any:
        first, *others = self.factors
        return type(self)(factor * first, *others, base=self.base, scale=factor * self.scale)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return -1.0 * self

    def __add__(self, other: Any) -> Any:
        base, scale = self.base, self.scale
        if base is None:
            base, scale = other.base, other.scale
        elif other.base is base:
            scale += other.scale
        elif other.base is not None:
            raise ValueError("two tensors with different data have no sum of this kind.")
        pairs = list(zip(self.factors, other.factors, strict=True))
        if all(one is two for one, two in pairs[1:]):
            first, factors = pairs[0][0] + pairs[0][1], list(self.factors[1:])
        else:
            first, *factors = (np.concatenate(pair) for pair in pairs)
        return type(self)(first, *factors, base=base, scale=scale)

    def __sub__(self, other: Any) -> Any:
        return self + -1.0 * other

    def inner(self, other: Any) -> float:
        """Return <self, other>, where other is of this kind, an array or sparse."""
        if not isinstance(other, FactoredTensor):
            other = type(self)(*(factor[:0] for factor in self.factors), base=other)
        total = float(component_grams(self.factors, other.factors).sum())
        for one, two in ((self, other), (other, self)):
            if one.base is not None and one.scale and len(two.factors[0]):
                total += one.scale * float(component_products(one.base, two.factors).sum())
        if self.base is not None and other.base is not None:
            total += self.scale * other.scale * _inner(self.base, other.base)
        return total

    def is_finite(self) -> bool:
        """Return whether the factors are finite; `base` is checked where the data are read."""
        return all(bool(np.isfinite(factor).all()) for factor in self.factors)

    def contracted(self, factors: Sequence[Array], axis: int) -> Array:
        """Return what the function `contracted` does, without forming the tensor."""
        others = [b for b in range(len(factors)) if b != axis]
        gram = component_grams([factors[b] for b in others], [self.factors[b] for b in others])
        product: Array = gram @ self.factors[axis]
        if self.base is None:
            return product
        return product + self.scale * contracted(self.base, factors, axis)

    def toarray(self) -> Array:
        """Return the tensor as an array of its full size."""
        full = outer_sum(self.factors)
        if self.base is not None:
            base = self.base if isinstance(self.base, np.ndarray) else self.base.toarray()
            full += self.scale * base
        return full

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.toarray() if dtype is None else self.toarray().astype(dtype)

    def positive_part(self) -> Any:
        """Return max(self, 0), sparse like `base`, or None unless it is known to be sparse.

        It is where `base` is sparse with a positive scale and the sum of the components has no
        positive entry: the first factor has none, and the others have no negative one.
        """
        if self.base is None or isinstance(self.base, np.ndarray) or self.scale <= 0:
            return None
        first, *others = self.factors
        if len(first) and ((first > 0).any() or any((factor < 0).any() for factor in others)):
            return None
        return self._positive_part()

    def _positive_part(self) -> Any:
        found = np.maximum(self.scale * self.base.data + self.base.at(self.factors), 0.0)
        return SparseTensor(self.base.places, found)


class FactoredMatrix(FactoredTensor):
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

    __slots__ = ()

    def __init__(self, left: Array, right: Array, base: Any = None, scale: float = 1.0) -> None:
        super().__init__(left, right, base=base, scale=scale)

    @property
    def left(self) -> Array:
        """The factor of the rows."""
        return self.factors[0]

    @property
    def right(self) -> Array:
        """The factor of the columns."""
        return self.factors[1]

    @property
    def T(self) -> FactoredMatrix:  # noqa: N802  # as arrays call it
        """The transpose."""
        base = None if self.base is None else self.base.T
        return FactoredMatrix(self.right, self.left, base, self.scale)

    def __matmul__(self, other: Array) -> Array:
        product: Array = self.left.T @ (self.right @ other)
        return product if self.base is None else product + self.scale * (self.base @ other)

    def __rmatmul__(self, other: Array) -> Array:
        product: Array = (other @ self.left.T) @ self.right
        return product if self.base is None else product + self.scale * (other @ self.base)

    def _positive_part(self) -> Any:
        found = np.maximum(self.scale * self.base.data + product_at(self.base, *self.factors), 0.0)
        return sparse.csr_array((found, self.base.indices, self.base.indptr), self.shape)


def kept_as_factors(
    factors: Sequence[Array], base: Any = None, scale: float = 1.0
) -> FactoredTensor:
    """Return ``scale * base`` plus the sum of all components; a FactoredMatrix for two axes."""
    if len(factors) == 2:
        return FactoredMatrix(factors[0], factors[1], base, scale)
    return FactoredTensor(*factors, base=base, scale=scale)


def product_at(places: Any, left: Array, right: Array) -> Array:
    """Return the entries of ``left.T @ right`` at the places that a csr_array stores."""
    rows, columns = np.ascontiguousarray(left.T), np.ascontiguousarray(right.T)
    return kernels.entries(places.indices, places.indptr, rows, columns)


def _inner(one: Any, two: Any) -> float:
    """Return the inner product of two tensors, each an array or sparse."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return float(np.vdot(one, two))
    if one is two:
        return float(np.vdot(one.data, one.data))
    if sparse.issparse(one) or sparse.issparse(two):
        return float((one.multiply(two) if sparse.issparse(one) else two.multiply(one)).sum())
    full, stored = (one, two) if isinstance(one, np.ndarray) else (two, one)
    return float(stored.data @ np.asarray(full)[tuple(stored.places.indices)])
