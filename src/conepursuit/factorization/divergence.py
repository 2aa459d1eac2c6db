"""The Kullback-Leibler divergence of a non-negative factorisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array
from conepursuit.factorization.losses import NO_PENALTIES, FactorLoss, Penalty, settled
from conepursuit.factorization.squared import SINGLE
from conepursuit.kernels import factorization as kernels
from conepursuit.low_rank import FactoredMatrix, product_at

NONE = np.empty((0, 0))
"""Stands for the weights of entries that all count the same."""

TINY = 1e-300
"""The least number that is divided by, and the least curvature, so that steps are finite."""

VANISHING = 1e-20
"""Share below which an entry of a factor is set to 0 by `cleaned`; larger entries stay.

Each component is divided by its largest entry first. The share is of the largest entry for the same
row or column of X.
"""

SHARE, RAMP, LIMIT = 0.9, 3, 2.0
"""Extrapolation by ``(new / old)^share``.

The share is age / (age + RAMP) after `age` sweeps in which the value has not risen, at most SHARE.
Quotients above LIMIT, or below its inverse, are set to these bounds.
"""


class DivergenceLoss(FactorLoss):
    """sum_ij m_ij (X_ij log(X_ij / Z_ij) - X_ij + Z_ij), Z = F'G; updates are multiplicative.

    Parameters
    ----------
    X : array or csr_array of shape (m, n)
        The data; what a sparse matrix does not store is zero.
    M : array of shape (m, n), optional
        Weights of the entries of an array.
    penalties : tuple of Penalty
        Of F and of G.
    """

    splits = True

    def __init__(
        self, X: Any, M: Any = None, penalties: tuple[Penalty, Penalty] = NO_PENALTIES
    ) -> None:
        self.shape, self.penalties, self.sparse = X.shape, penalties, sparse.issparse(X)
        if self.sparse:
            self.views = X, sparse.csr_array(X.T)
            self.sides: Any = tuple((Y.data, Y.indices, Y.indptr) for Y in self.views)
        else:
            Y, N = np.ascontiguousarray(X), NONE if M is None else np.ascontiguousarray(M)
            self.sides = (Y, N), (Y.T.copy(), N.T.copy())
        self.X, self.M = X, M

    def _step(self, F: Array, G: Array, side: int, step: bool, evaluate: bool) -> float:
        """Step factor `side` if `step`; return the divergence before if `evaluate`, else 0."""
        mine, other = (F, G) if side == 0 else (G, F)
        kernel: Any = kernels.update_sparse if self.sparse else kernels.update_dense
        return float(kernel(*self.sides[side], mine, other, *self.penalties[side], step, evaluate))

    def fit(self, F: Array, G: Array) -> float:
        return self._step(F, G, 0, False, True)

    def update(self, F: Array, G: Array, side: int) -> None:
        self._step(F, G, side, True, False)

    def corrected(
        self, F: Array, G: Array, sweeps: int, tol: float
    ) -> tuple[Array, Array, list[float], bool]:
        """Improve both factors in turn, with extrapolation; the value never rises.

        Notes
        -----
        Multiplicative steps move in the logarithms of the entries, and so does the extrapolation:
        ``F (F / its last value)^share``, the block majorisation with extrapolation of [1] in other
        coordinates. The value at a point is computed with the step from there. Where it has risen,
        the sweep is made again from the last point without extrapolation, where it is not larger.

        References
        ----------
        [1] L. T. K. Hien, V. Leplat, N. Gillis. Block majorization minimization with
        extrapolation and application to beta-NMF. SIAM J. Math. Data Sci. 2025.
        """
        at, ahead, age = (F, G), (F, G), 0
        values: list[float] = []
        for sweep in range(sweeps + 1):
            left = ahead[0].copy()
            value = self._step(left, ahead[1], 0, sweep < sweeps, True) + self.cost(*ahead)
            if values and value > values[-1] and age:
                ahead, age, left = at, 0, at[0].copy()
                value = self._step(left, at[1], 0, sweep < sweeps, True) + self.cost(*at)
            if values and value > values[-1]:
                return *at, values, True  # by rounding: nothing moves
            values.append(value)
            if sweep == sweeps or settled(values, tol):
                return *ahead, values, sweep < sweeps or sweeps == 0
            right = ahead[1].copy()
            self._step(left, right, 1, True, False)
            share, age = min(SHARE, age / (age + RAMP)), age + 1
            ahead = self._beyond(left, at[0], share), self._beyond(right, at[1], share)
            at = left, right
        raise AssertionError("the last sweep returns")

    def cleaned(self, F: Array) -> Array:
        """Return a factor with 0 for entries that multiplicative steps have made `VANISHING`."""
        shares = F / np.maximum(F.max(axis=1, keepdims=True), TINY)
        return np.where(shares < VANISHING * shares.max(axis=0), 0.0, F)

    @staticmethod
    def _beyond(new: Array, old: Array, share: float) -> Array:
        """Return about new (new / old)^share."""
        if share == 0:
            return new
        out = np.empty_like(new)
        kernels.extrapolate(new, old, share, LIMIT, out)
        return out

    def first(self) -> tuple[Array, Array]:
        """Return the sums of rows and columns, the best factors of rank one without weights."""
        X = self.X if self.M is None else self.X * self.M
        rows, columns = np.asarray(X.sum(axis=1)), np.asarray(X.sum(axis=0))
        root = np.sqrt(float(rows.sum())) or 1.0
        return rows[None, :] / root, columns[None, :] / root

    def descent(self, F: Array, G: Array) -> Any:
        if self.sparse:
            data, indices, indptr = self.sides[0]
            model = product_at(self.X, F, G)
            quotients = np.divide(data, model, out=np.zeros_like(data), where=model > 0)
            lost = (data > 0) & (model <= 0)
            quotients[lost] = max(float(quotients.max(initial=1.0)), 1.0)
            ratio = sparse.csr_array((quotients, indices, indptr), self.shape)
            return FactoredMatrix(-np.ones((1, self.shape[0])), np.ones((1, self.shape[1])), ratio)
        model = F.T @ G
        out = np.empty(self.shape, np.float32 if model.size >= SINGLE else np.float64)
        X, M = self.sides[0]
        kernels.slopes(X, M, model, out)
        return out

    def smoothness(self, F: Array, G: Array, old: int, descent: Any) -> float:
        if self.sparse:
            quotients, X = descent.base.data, self.X
            share = np.divide(
                quotients * quotients, X.data, out=np.zeros_like(quotients), where=X.data > 0
            )
            bend = sparse.csr_array((share, X.indices, X.indptr), self.shape)
            found = np.einsum("ki,ki->k", F[old:] ** 2 @ bend, G[old:] ** 2)
            return max(float(found.max()), TINY)
        (data, M), model = self.sides[0], F[:old].T @ G[:old]
        new = zip(F[old:], G[old:], strict=True)
        return max(max(kernels.curvature(data, M, model, u, v) for u, v in new), TINY)
