"""The data of a factorisation: what counts, in which units, and the best weights for H."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import EPS, Array
from conepursuit.factors.base import FactorLoss, Penalty
from conepursuit.factors.divergence import DivergenceLoss
from conepursuit.factors.squared import ObservedSquaredLoss, SquaredLoss, WeightedSquaredLoss
from conepursuit.nnfit import nnfit
from conepursuit.nnls import nnls, nnls_gram
from conepursuit.objectives import KullbackLeibler, LeastSquares

SMALL, LARGE = 1e-60, 1e60
"""Beyond these the squares of data are not safe, and other units are used."""

ROWS = 1e-12
"""How close to its least loss a row is brought, relative to its sum or to the loss of zero."""

SETTLING = 2000
"""Most sweeps over weights where no solver ends after finitely many steps."""


@dataclass(frozen=True)
class FactorData:
    """Data X >= 0 of shape (m, n), with weights for the entries.

    Attributes
    ----------
    X : array or csr_array
        The data in units of `unit`, finite where they are missing.
    M : array or csr_array or None
        The weights; None if all entries count the same.
    divergence : bool
        Whether the loss is the Kullback-Leibler divergence, not least squares.
    unit : float
        What X was divided by.
    """

    X: Any
    M: Any
    divergence: bool
    unit: float = 1.0

    @classmethod
    def of(cls, X: Any, M: Any, divergence: bool, *, scale: bool) -> FactorData:
        """Return the data in units in which their squares are safe, if they may be scaled."""
        largest = float(X.max()) if min(X.shape) else 0.0
        unit = largest if scale and largest > 0 and not SMALL < largest < LARGE else 1.0
        return cls(X if unit == 1.0 else X / unit, M, divergence, unit)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.X.shape
        return rows, columns

    def transposed(self) -> FactorData:
        """Return the data with rows and columns swapped."""
        turned = sparse.csr_array if sparse.issparse(self.X) else np.asarray
        M = None if self.M is None else turned(self.M.T)
        return FactorData(turned(self.X.T), M, self.divergence, self.unit)

    def loss(self, penalties: tuple[Penalty, Penalty], *, greedy: bool = False) -> FactorLoss:
        """Return the loss that updates factors of these data."""
        if self.divergence:
            return DivergenceLoss(self.X, self.M, penalties)
        if self.M is None:
            return SquaredLoss(self.X, penalties, greedy=greedy)
        if sparse.issparse(self.X):
            return ObservedSquaredLoss(self.X, self.M, penalties)
        return WeightedSquaredLoss(self.X, self.M, penalties)

    def weights(self, G: Array, penalty: Penalty) -> Array:
        """Return the F >= 0 that is best for a given G, of shape (k, m)."""
        dense = not sparse.issparse(self.X)
        if not G.any():
            return np.zeros((len(G), self.shape[0]))
        if dense and not penalty.squared and (self.divergence or self.M is not None):
            return self._fitted(G, penalty)
        if self.M is not None:
            return self._settled(G, penalty)
        if self.divergence:
            return self._by_rows(G, penalty)
        if penalty.linear and not penalty.squared:  # no A'b need be G X' less a constant
            return self._fitted(G, penalty) if dense else self._settled(G, penalty)
        if dense and not penalty.squared:
            return np.asarray(nnls(G.T, self.X.T).x)
        gram = G @ G.T + penalty.squared * np.eye(len(G))
        target = np.asarray((self.X @ G.T).T) - penalty.linear
        return np.asarray(nnls_gram(gram, target).x)

    def _by_rows(self, G: Array, penalty: Penalty) -> Array:
        """Return the weights of sparse rows by Newton steps, which look at stored entries alone."""
        from conepursuit.kernels.divergence_weights import fit_rows

        X = sparse.csr_array(self.X)
        F = np.zeros((len(G), self.shape[0]))
        fit_rows(X.data, X.indices, X.indptr, F, np.ascontiguousarray(G), *penalty, ROWS, SETTLING)
        return F

    def _fitted(self, G: Array, penalty: Penalty) -> Array:
        """Return the weights by the solver of many targets; what nothing reaches does not count."""
        reached = G.any(axis=0)
        X, M = self.X[:, reached].T, None if self.M is None else self.M[:, reached].T
        counts = np.ones(X.shape[1], dtype=bool) if M is None else (M > 0).any(axis=0)
        F = np.zeros((len(G), X.shape[1]))
        if counts.any():
            kind = KullbackLeibler if self.divergence else LeastSquares
            objective = kind(X[:, counts], weights=None if M is None else M[:, counts])
            atoms = G[:, reached].T
            F[:, counts] = nnfit(objective, atoms, penalty=penalty.linear, tol=ROWS).x
        return F

    def _settled(self, G: Array, penalty: Penalty) -> Array:
        """Return the weights by sweeps until nothing moves."""
        loss = self.loss((penalty, Penalty()))
        level = np.sqrt(float(self.X.sum()) / max(float(G.sum()), 1e-300) / self.shape[0])
        F = np.full((len(G), self.shape[0]), level)
        for _ in range(SETTLING):
            before = F.copy()
            loss.update(F, G, 0)
            if np.abs(F - before).max() <= 10 * EPS * F.max():
                break
        return F
