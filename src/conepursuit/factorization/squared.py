"""Least squares of a non-negative factorisation: plain, weighted, and of observed entries alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector
from conepursuit.factorization.losses import NO_PENALTIES, FactorLoss, Factors, Penalty
from conepursuit.kernels import factorization as kernels
from conepursuit.least_squares.gram import nnls_gram
from conepursuit.low_rank import FactoredTensor, kept_as_factors, product_at
from conepursuit.tensors import (
    SparseTensor,
    Unfoldings,
    component_grams,
    contracted_end,
    contracted_rest,
    outer_sum,
    row_products,
    without,
)

INNER = 4
"""Sweeps over a factor for each product with the data, which costs more than the sweeps."""

SINGLE = 100_000
"""Number of entries from which on dense data have a float32 copy, half the memory to read.

The oracle works with it, and so do products with the data until the sweeps settle. Smaller data
have none.
"""

AUDITED = 1 << 20
"""Entries of the residual that `audit` forms at a time."""

NARROW = 1e-12
"""Data have a float32 copy only if their largest entry lies between this and its inverse."""

COARSE = 1e-3
"""Share of ||X||^2 below which the loss would show the rounding of float32.

From then on, products with the data are computed in float64.
"""


class SquaredLoss(FactorLoss):
    """1/2 ||X - Z||^2, X an array or sparse; updates by hierarchical least squares (HALS) [1].

    Parameters
    ----------
    X : array, csr_array or SparseTensor
        The data. The first axis of a tensor should be the longest, and the last the next one.
    penalties : tuple of Penalty
        Of each factor.
    correction : {"hals", "gcd", "bpp"}
        How a factor is updated: by HALS, by greedy coordinate descent [2], or to its minimiser, by
        block principal pivoting [3].

    Notes
    -----
    An update needs the products of the data with all factors but one. They come from the product
    with the first factor or, for the first axis, from that with the last one, which is kept: two
    products with the data for a sweep, whatever the number of axes.

    References
    ----------
    [1] A. Cichocki, A.-H. Phan. Fast local algorithms for large scale nonnegative matrix and
    tensor factorizations. IEICE 2009; N. Gillis, F. Glineur, Accelerated multiplicative updates
    and hierarchical ALS algorithms. Neural Computation 2012.
    [2] C.-J. Hsieh, I. S. Dhillon. Fast coordinate descent methods with variable selection for
    non-negative matrix factorization. KDD 2011.
    [3] J. Kim, H. Park. Fast nonnegative tensor factorization with an active-set-like method.
    High-Performance Scientific Computing, Springer 2012.
    """

    def __init__(
        self,
        X: Any,
        penalties: tuple[Penalty, ...] = NO_PENALTIES,
        *,
        correction: str = "hals",
    ) -> None:
        self.shape, self.penalties, self.correction = X.shape, penalties, correction
        self.splits = self.tensor = len(self.shape) > 2
        self.sparse = not isinstance(X, np.ndarray)
        self.X = sparse.csr_array(X) if sparse.issparse(X) else X
        if sparse.issparse(X):
            self.views = self.X, sparse.csr_array(X.T)
        elif self.sparse:
            self.views = (X,)
        data = self.X.data if self.sparse else X.ravel(order="K")
        self.square = float(np.vdot(data, data))
        self.single = None
        if not self.sparse and X.size >= SINGLE and NARROW < X.max() < 1.0 / NARROW:
            self.single = X.astype(np.float32, order="C")
        self.coarse = self.single is not None
        if self.tensor and not self.sparse and not self.coarse:
            self.X = np.ascontiguousarray(X)
        self._last: tuple[Any, int, Any] = (None, -1, None)

    def products(self, factors: Factors, axis: int) -> Array:
        """Return the products of the data with all factors but that of an axis; see `contracted`.

        For matrices these are G X' for the rows and F X for the columns.
        """
        if isinstance(self.X, SparseTensor):
            return self.X.contracted(factors, axis)
        done = 0 if axis else len(factors) - 1
        if self._last[0] is not factors[done] or self._last[1] != done:
            self._last = factors[done], done, self._end(factors[done], done)
        return contracted_rest(self._last[2], factors, done, axis)

    def _end(self, factor: Array, axis: int) -> Array:
        """Return the products of the data with a factor along the first or the last axis."""
        if self.sparse:
            view = self.views[1 - axis]
            return np.ascontiguousarray((view @ np.ascontiguousarray(factor.T)).T)
        data = self.single if self.coarse and self.single is not None else self.X
        return contracted_end(data, factor, axis)

    def rewrite(self, slots: tuple[Array, ...], values: Vector) -> None:
        super().rewrite(slots, values)
        self.square = float(np.vdot(self.X.data, self.X.data))
        self._last = (None, -1, None)

    def fit(self, factors: Factors) -> float:
        cross = float(np.vdot(self.products(factors, 0), factors[0]))
        value = 0.5 * self.square - cross + 0.5 * float(component_grams(factors).sum())
        return max(value, 0.0)

    def audit(self, factors: Factors) -> float:
        if self.sparse:
            return self.fit(factors)
        first, *others = factors
        total, rows = 0.0, max(1, AUDITED * len(first[0]) // self.X.size)
        for start in range(0, len(self.X), rows):
            part = self.X[start : start + rows]
            rest = part - outer_sum([first[:, start : start + rows], *others])
            total += float(np.vdot(rest, rest))
        return 0.5 * total

    def descent(self, factors: Factors) -> Any:
        if self.sparse:
            return kept_as_factors((-factors[0], *factors[1:]), self.X)
        if self.single is None:
            model = outer_sum(factors)
            np.subtract(self.X, model, out=model)
            return model
        model = outer_sum([factor.astype(np.float32) for factor in factors])
        np.subtract(self.single, model, out=model)
        return model

    def update(self, factors: Factors, axis: int) -> float:
        mine, others = factors[axis], without(factors, axis)
        gram, target = component_grams(others), self.products(factors, axis)
        penalty, value = self.penalty(axis), 0.0
        if self.penalties:
            value = self.penalty(1 - axis)(others[0])
        if penalty.linear:
            target = target - penalty.linear
        if penalty.squared:
            gram[np.diag_indices(len(gram))] += penalty.squared
        self._sweep(gram, target, mine)
        value += 0.5 * self.square - float(np.vdot(target, mine))
        value += 0.5 * float(np.vdot(gram, mine @ mine.T))
        value = max(value, 0.0)  # terms of the size of ||X||^2 cancel
        if value < COARSE * self.square:
            self.refine()
        return value

    def refine(self) -> None:
        super().refine()
        self._last = (None, -1, None)
        if self.tensor and self.single is not None:  # one copy of the data is enough
            self.single = None  # before the other one is made
            self.X = np.ascontiguousarray(self.X)

    def _sweep(self, gram: Array, target: Array, F: Array) -> None:
        if self.correction == "gcd":
            kernels.greedy_sweep(gram, target, F, 0.0, 0.0, 1e-3, len(gram) ** 2)
        elif self.correction == "bpp":
            F[:] = nnls_gram(gram, target).x
        else:
            kernels.hals(gram, target, F, INNER)

    def smoothness(self, factors: Factors, old: int, descent: Any) -> float:
        return 1.0

    def scores(self, factors: Factors, weights: Vector, descent: Any) -> Vector:
        # the descent may be rounded to float32; this product is needed for the next sweep anyhow
        fitted = component_grams(factors[1:]) @ (weights[:, None] * factors[0])
        scores: Vector = np.einsum("ki,ki->k", factors[0], fitted - self.products(factors, 0))
        return scores


class WeightedSquaredLoss(FactorLoss):
    """1/2 sum_i m_i (X_i - Z_i)^2 over all entries; where the weight is 0 the entry is missing.

    Parameters
    ----------
    X, M : arrays of one shape
        The data and their weights; missing entries must hold finite numbers.
    penalties : tuple of Penalty
        Of each factor.
    """

    def __init__(self, X: Array, M: Array, penalties: tuple[Penalty, ...] = NO_PENALTIES) -> None:
        self.shape, self.penalties = X.shape, penalties
        self.splits = len(self.shape) > 2
        self.sides = Unfoldings(X, M)
        self.X, self.M = self.sides.arrays

    def fit(self, factors: Factors) -> float:
        (X, M), other = self.sides[0], row_products(factors[1:])
        return kernels.weighted_value(X, M, factors[0], other, 0.0, 0.0)

    def descent(self, factors: Factors) -> Array:
        rest: Array = self.M * (self.X - outer_sum(factors))
        return rest

    def update(self, factors: Factors, axis: int) -> None:
        other, (l1, l2) = row_products(without(factors, axis)), self.penalty(axis)
        X, M = self.sides[axis]
        kernels.sweep_weighted(X, M, factors[axis], other, l1, l2, INNER)

    def smoothness(self, factors: Factors, old: int, descent: Any) -> float:
        return float(self.M.max())


class ObservedSquaredLoss(FactorLoss):
    """1/2 sum m_ij (X_ij - (F'G)_ij)^2 over the stored entries of a sparse matrix alone.

    Parameters
    ----------
    X : csr_array of shape (m, n)
        The observed entries; stored zeros are observed.
    M : csr_array of shape (m, n)
        Their weights, stored at the same places.
    penalties : tuple of Penalty
        Of F and of G.
    """

    def __init__(self, X: Any, M: Any, penalties: tuple[Penalty, ...] = NO_PENALTIES) -> None:
        self.shape, self.penalties, self.X = X.shape, penalties, X
        order = sparse.csr_array((np.arange(X.nnz), X.indices, X.indptr), X.shape).tocsc()
        across = X.data[order.data], M.data[order.data], order.indices, order.indptr
        self.sides = (X.data, M.data, X.indices, X.indptr), across
        self.most = float(M.data.max())

    def fit(self, factors: Factors) -> float:
        F, G = factors
        return kernels.observed_value(*self.sides[0], F, G, 0.0, 0.0)

    def descent(self, factors: Factors) -> FactoredTensor:
        data, weights, indices, indptr = self.sides[0]
        rest = weights * (data - product_at(self.X, factors[0], factors[1]))
        rest = sparse.csr_array((rest, indices, indptr), self.shape)
        return kept_as_factors([factor[:0] for factor in factors], rest)

    def update(self, factors: Factors, axis: int) -> None:
        mine, other, penalty = factors[axis], factors[1 - axis], self.penalty(axis)
        kernels.sweep_observed(*self.sides[axis], mine, other, *penalty, INNER)

    def smoothness(self, factors: Factors, old: int, descent: Any) -> float:
        return self.most
