"""The data of a factorisation: entries, weights and units, and the best F for a given G."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector
from conepursuit.factorization.divergence import DivergenceLoss
from conepursuit.factorization.losses import NO_PENALTIES, FactorLoss, Penalty
from conepursuit.factorization.squared import ObservedSquaredLoss, SquaredLoss, WeightedSquaredLoss
from conepursuit.kernels import factorization as kernels
from conepursuit.least_squares.api import nnls
from conepursuit.least_squares.gram import nnls_gram
from conepursuit.loss_fits.api import nnfit
from conepursuit.objectives import KullbackLeibler, LeastSquares
from conepursuit.pursuit.weight_programs import Cholesky, nonnegative
from conepursuit.tensors import Places, SparseTensor

SMALLEST_UNIT, LARGEST_UNIT = 1e-60, 1e60
"""Bounds of the largest entry of data that are used as they are.

Outside, squares might overflow or underflow, and the data are divided by their largest entry.
"""

ROWS = 1e-12
"""How close to its least loss a row is brought.

It is relative to the sum of the row, or to the fall of the loss where `nnfit` fits the rows.
"""

SWEEPS = 200
"""Most sweeps for a row under a divergence, each followed by a Newton step."""


@dataclass(frozen=True)
class FactorData:
    """Data X >= 0, a matrix or a tensor, with weights for the entries.

    Attributes
    ----------
    X : array, csr_array or SparseTensor
        The data divided by `unit`; missing entries hold finite numbers.
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
        unit = safe_unit(float(X.max())) if scale and min(X.shape) else 1.0
        return cls(X if unit == 1.0 else X / unit, M, divergence, unit)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        shape: tuple[int, ...] = self.X.shape
        return shape

    def transposed(self, axes: Sequence[int] = (1, 0)) -> FactorData:
        """Return the data with their axes in another order, by default rows and columns swapped."""

        def turned(T: Any) -> Any:
            if isinstance(T, SparseTensor):
                return T.transposed(axes)
            if sparse.issparse(T):
                return sparse.csr_array(T.T)
            return T.transpose(axes)

        M = None if self.M is None else turned(self.M)
        return FactorData(turned(self.X), M, self.divergence, self.unit)

    def part(self, axis: int, indices: Array) -> FactorData:
        """Return the slices of an axis at some indices, which ascend."""

        def taken(T: Any) -> Any:
            if isinstance(T, SparseTensor):
                shape, own = (*T.shape[:axis], len(indices), *T.shape[axis + 1 :]), T.places.indices
                places = own[:, kept := np.isin(own[axis], indices)]
                places[axis] = np.searchsorted(indices, places[axis])
                return SparseTensor(Places(shape, places), T.data[kept])
            if sparse.issparse(T):
                return sparse.csr_array(T[indices] if axis == 0 else T[:, indices])
            return np.take(T, indices, axis)

        M = None if self.M is None else taken(self.M)
        return FactorData(taken(self.X), M, self.divergence, self.unit)

    def size(self) -> float:
        """Return what errors are relative to: ||X||^2, or the sum of X for the divergence."""
        data = self.X if isinstance(self.X, np.ndarray) else self.X.data
        weighted = data if self.M is None else self.M * data
        return float(weighted.sum() if self.divergence else np.vdot(weighted, data))

    def unfolded(self) -> FactorData:
        """Return a tensor as a matrix with its first axis as rows."""
        if isinstance(self.X, SparseTensor):
            return FactorData(self.X.rows(), None, self.divergence, self.unit)
        M = None if self.M is None else self.M.reshape(len(self.M), -1)
        return FactorData(self.X.reshape(len(self.X), -1), M, self.divergence, self.unit)

    def loss(
        self, penalties: tuple[Penalty, ...] = NO_PENALTIES, *, correction: str | None = None
    ) -> FactorLoss:
        """Return the loss that updates factors of these data."""
        if self.divergence:
            return DivergenceLoss(self.X, self.M, penalties)
        if self.M is None:
            kind = correction if correction in ("gcd", "bpp") else "hals"
            return SquaredLoss(self.X, penalties, correction=kind)
        if sparse.issparse(self.X):
            return ObservedSquaredLoss(self.X, self.M, penalties)
        return WeightedSquaredLoss(self.X, self.M, penalties)

    def weights(self, G: Array, penalty: Penalty) -> Array:
        """Return the F >= 0 that is best for a given G, of shape (k, m)."""
        F, alive = np.zeros((len(G), self.shape[0])), G.any(axis=1)
        if alive.any():
            F[alive] = self._weights(np.ascontiguousarray(G[alive]), penalty)
        return F

    def _weights(self, G: Array, penalty: Penalty) -> Array:
        """Return the best F for a G without components that are zero."""
        dense = not sparse.issparse(self.X)
        if dense and not penalty.squared and (self.divergence or self.M is not None):
            return self._fitted(G, penalty)
        if self.divergence:
            return self._by_rows(G, penalty)
        if self.M is not None or (penalty.linear and not penalty.squared):
            return self._by_grams(G, penalty)
        if dense and not penalty.squared:
            return np.asarray(nnls(G.T, self.X.T).x)
        gram = G @ G.T + penalty.squared * np.eye(len(G))
        target = np.asarray((self.X @ G.T).T) - penalty.linear
        return np.asarray(nnls_gram(gram, target).x)

    def _rows(self) -> Iterator[tuple[Array, Vector, Vector | None]]:
        """Yield for every row the places that count, the data there, and their weights."""
        if sparse.issparse(self.X):
            data, indices, ends = self.X.data, self.X.indices, self.X.indptr
            for start, end in pairwise(ends):
                M = None if self.M is None else self.M.data[start:end]
                yield indices[start:end], data[start:end], M
        else:
            for i, x in enumerate(self.X):
                M = None if self.M is None else self.M[i]
                places = np.arange(len(x)) if M is None else np.flatnonzero(M)
                yield places, x[places], None if M is None else M[places]

    def _by_grams(self, G: Array, penalty: Penalty) -> Array:
        """Return the weights by least squares, each row by an active set on its own Gram matrix."""
        F, everything = np.zeros((len(G), self.shape[0])), G @ G.T
        for i, (places, x, M) in enumerate(self._rows()):
            atoms = G[:, places]
            gram = everything if M is None else (atoms * M) @ atoms.T
            gram = gram + penalty.squared * np.eye(len(G))
            target = atoms @ (x if M is None else M * x) - penalty.linear
            F[:, i] = nonnegative(gram, -target, np.zeros(len(G)), Cholesky())
        return F

    def _by_rows(self, G: Array, penalty: Penalty) -> Array:
        """Return the weights of least divergence by Newton steps on the entries that are stored.

        Notes
        -----
        With weights m of the entries, data m x and atoms m G have the same minimisers: their
        losses differ by a constant.
        """
        F, parts = np.zeros((len(G), self.shape[0])), (*penalty, ROWS, SWEEPS)
        if self.M is None:
            X = sparse.csr_array(self.X)
            kernels.fit_rows(X.data, X.indices, X.indptr, F, G, *parts)
            return F
        for i, (places, x, M) in enumerate(self._rows()):
            assert M is not None
            own, f, ends = G[:, places] * M, F[:, [i]].copy(), np.array([0, len(x)])
            kernels.fit_rows(M * x, np.arange(len(x)), ends, f, own, *parts)
            F[:, i] = f[:, 0]
        return F

    def _fitted(self, G: Array, penalty: Penalty) -> Array:
        """Return the weights by `nnfit`, without entries at which all components of G are zero."""
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


def safe_unit(largest: float) -> float:
    """Return what data are divided by so that their squares are safe, from their largest entry."""
    safe = largest == 0 or SMALLEST_UNIT < largest < LARGEST_UNIT
    return 1.0 if safe else largest
