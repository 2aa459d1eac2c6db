"""Least squares of a non-negative factorisation: plain, weighted, and of observed entries alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector
from conepursuit.factorization.losses import NO_PENALTIES, FactorLoss, Penalty
from conepursuit.kernels import factorization as kernels
from conepursuit.low_rank import FactoredMatrix, product_at

INNER = 4
"""Sweeps over a factor for each product with the data, which costs more than the sweeps."""

SINGLE = 100_000
"""Number of entries from which on dense data have a float32 copy, half the memory to read.

The oracle works with it, and so do products with the data until the sweeps settle. Smaller data
have none.
"""

NARROW = 1e-12
"""Data have a float32 copy only if their largest entry lies between this and its inverse."""

COARSE = 5e-3
"""Share of ||X||^2 below which the loss would show the rounding of float32.

From then on, products with the data are computed in float64.
"""


class SquaredLoss(FactorLoss):
    """1/2 ||X - F'G||^2, X an array or sparse; updates by hierarchical least squares (HALS) [1].

    Parameters
    ----------
    X : array or sparse matrix of shape (m, n)
        The data.
    penalties : tuple of Penalty
        Of F and of G.
    greedy : bool
        Whether to update by greedy coordinate descent [2] instead.

    References
    ----------
    [1] A. Cichocki, A.-H. Phan. Fast local algorithms for large scale nonnegative matrix and
    tensor factorizations. IEICE 2009; N. Gillis, F. Glineur, Accelerated multiplicative updates
    and hierarchical ALS algorithms. Neural Computation 2012.
    [2] C.-J. Hsieh, I. S. Dhillon. Fast coordinate descent methods with variable selection for
    non-negative matrix factorization. KDD 2011.
    """

    def __init__(
        self, X: Any, penalties: tuple[Penalty, Penalty] = NO_PENALTIES, *,
        greedy: bool = False,
    ) -> None:  # fmt: skip
        self.shape, self.penalties, self.greedy = X.shape, penalties, greedy
        self.sparse = sparse.issparse(X)
        self.X = sparse.csr_array(X) if self.sparse else X
        self.views = (self.X, sparse.csr_array(X.T)) if self.sparse else ()
        data = self.X.data if self.sparse else X
        self.square = float(np.vdot(data, data))
        self.single = None
        if not self.sparse and X.size >= SINGLE and NARROW < X.max() < 1.0 / NARROW:
            self.single = X.astype(np.float32, order="C")
        self.coarse = self.single is not None
        self._last: tuple[Any, int, Any] = (None, -1, None)

    def products(self, other: Array, side: int) -> Array:
        """Return G X' for side 0, F X for side 1; the last answer is kept."""
        if self._last[0] is other and self._last[1] == side:
            kept: Array = self._last[2]
            return kept
        if self.sparse:
            found = np.ascontiguousarray((self.views[side] @ np.ascontiguousarray(other.T)).T)
        elif self.coarse:
            assert self.single is not None
            data = self.single.T if side == 0 else self.single
            found = (other.astype(np.float32) @ data).astype(np.float64)
        else:
            found = other @ (self.X.T if side == 0 else self.X)
        self._last = other, side, found
        return found

    def rewrite(self, slots: tuple[Array, Array], values: Vector) -> None:
        super().rewrite(slots, values)
        self.square = float(np.vdot(self.X.data, self.X.data))
        self._last = (None, -1, None)

    def fit(self, F: Array, G: Array) -> float:
        cross = float(np.vdot(self.products(G, 0), F))
        value = 0.5 * self.square - cross + 0.5 * float(np.vdot(F @ F.T, G @ G.T))
        return max(value, 0.0)

    def audit(self, F: Array, G: Array) -> float:
        if self.sparse:
            return self.fit(F, G)
        across = not self.X.flags.c_contiguous  # then its transpose is, and that is faster to read
        rest = (self.X.T - G.T @ F) if across else (self.X - F.T @ G)
        return 0.5 * float(np.vdot(rest, rest))

    def descent(self, F: Array, G: Array) -> Any:
        if self.sparse:
            return FactoredMatrix(-F, G, self.X)
        if self.single is None:
            return self.X - F.T @ G
        model = F.T.astype(np.float32) @ G.astype(np.float32)
        np.subtract(self.single, model, out=model)
        return model

    def update(self, F: Array, G: Array, side: int) -> float:
        mine, other = (F, G) if side == 0 else (G, F)
        gram, target = other @ other.T, self.products(other, side)
        penalty, value = self.penalties[side], self.penalties[1 - side](other)
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

    def _sweep(self, gram: Array, target: Array, F: Array) -> None:
        if self.greedy:
            kernels.greedy_sweep(gram, target, F, 0.0, 0.0, 1e-3, len(gram) ** 2)
        else:
            kernels.hals(gram, target, F, INNER)

    def smoothness(self, F: Array, G: Array, old: int, descent: Any) -> float:
        return 1.0

    def scores(self, F: Array, G: Array, weights: Vector, descent: Any) -> Vector:
        # the descent may be rounded to float32; this product is needed for the next sweep anyhow
        fitted = (G @ G.T) @ (weights[:, None] * F)
        scores: Vector = np.einsum("ki,ki->k", F, fitted - self.products(G, 0))
        return scores


class WeightedSquaredLoss(FactorLoss):
    """1/2 sum_ij m_ij (X_ij - (F'G)_ij)^2; where the weight is 0 the entry is missing.

    Parameters
    ----------
    X, M : arrays of shape (m, n)
        The data and their weights; missing entries must hold finite numbers.
    penalties : tuple of Penalty
        Of F and of G.
    """

    def __init__(
        self, X: Array, M: Array, penalties: tuple[Penalty, Penalty] = NO_PENALTIES
    ) -> None:
        self.shape, self.penalties = X.shape, penalties
        self.X, self.M = np.ascontiguousarray(X), np.ascontiguousarray(M)
        self.sides = (self.X, self.M), (self.X.T.copy(), self.M.T.copy())

    def fit(self, F: Array, G: Array) -> float:
        return kernels.weighted_value(self.X, self.M, F, G, 0.0, 0.0)

    def descent(self, F: Array, G: Array) -> Array:
        rest: Array = self.M * (self.X - F.T @ G)
        return rest

    def update(self, F: Array, G: Array, side: int) -> None:
        mine, other = (F, G) if side == 0 else (G, F)
        kernels.sweep_weighted(*self.sides[side], mine, other, *self.penalties[side], INNER)

    def smoothness(self, F: Array, G: Array, old: int, descent: Any) -> float:
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

    def __init__(self, X: Any, M: Any, penalties: tuple[Penalty, Penalty] = NO_PENALTIES) -> None:
        self.shape, self.penalties, self.X = X.shape, penalties, X
        order = sparse.csr_array((np.arange(X.nnz), X.indices, X.indptr), X.shape).tocsc()
        across = X.data[order.data], M.data[order.data], order.indices, order.indptr
        self.sides = (X.data, M.data, X.indices, X.indptr), across
        self.most = float(M.data.max())

    def fit(self, F: Array, G: Array) -> float:
        return kernels.observed_value(*self.sides[0], F, G, 0.0, 0.0)

    def descent(self, F: Array, G: Array) -> FactoredMatrix:
        data, weights, indices, indptr = self.sides[0]
        rest = weights * (data - product_at(self.X, F, G))
        rest = sparse.csr_array((rest, indices, indptr), self.shape)
        return FactoredMatrix(F[:0], G[:0], rest)

    def update(self, F: Array, G: Array, side: int) -> None:
        mine, other = (F, G) if side == 0 else (G, F)
        kernels.sweep_observed(*self.sides[side], mine, other, *self.penalties[side], INNER)

    def smoothness(self, F: Array, G: Array, old: int, descent: Any) -> float:
        return self.most
