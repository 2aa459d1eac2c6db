"""The Kullback-Leibler divergence of a non-negative factorisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector
from conepursuit.factorization.losses import (
    NO_PENALTIES,
    FactorLoss,
    Factors,
    Penalty,
    Watch,
    settled,
)
from conepursuit.factorization.squared import SINGLE
from conepursuit.kernels import factorization as kernels
from conepursuit.low_rank import FactoredTensor, kept_as_factors, product_at
from conepursuit.tensors import (
    SparseTensor,
    Unfoldings,
    by_columns,
    component_products,
    marginals,
    outer_sum,
    row_products,
    without,
)

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
    """sum_i m_i (X_i log(X_i / Z_i) - X_i + Z_i) over all entries; updates are multiplicative.

    Parameters
    ----------
    X : array, csr_array or SparseTensor
        The data; what is not stored is zero.
    M : array, optional
        Weights of the entries of an array.
    penalties : tuple of Penalty
        Of each factor.
    """

    splits = True

    def __init__(
        self, X: Any, M: Any = None, penalties: tuple[Penalty, ...] = NO_PENALTIES
    ) -> None:
        self.shape, self.penalties = X.shape, penalties
        self.sparse = not isinstance(X, np.ndarray)
        if sparse.issparse(X):
            self.views = X, sparse.csr_array(X.T)
        elif self.sparse:
            self.views = (X,)
        else:
            self.sides = Unfoldings(X, NONE if M is None else M)
        self.X, self.M = X, M

    def _step(self, factors: Factors, axis: int, step: bool, evaluate: bool) -> float:
        """Step the factor of an axis if `step`; return the divergence before if `evaluate`."""
        mine, others = factors[axis], without(factors, axis)
        parts: Any = (*self.penalty(axis), step, evaluate)
        if not self.sparse:
            X, M = self.sides[axis]
            return kernels.update_dense(X, M, mine, row_products(others), *parts)
        sums: Vector = np.prod([other.sum(axis=1) for other in others], axis=0)
        if isinstance(self.X, SparseTensor):
            return self._step_blocks(factors, axis, sums, parts)
        X = self.views[axis]  # a matrix
        return kernels.update_sparse(X.data, X.indices, X.indptr, mine, others[0], sums, *parts)

    def _step_blocks(self, factors: Factors, axis: int, sums: Vector, parts: Any) -> float:
        """Do what `_step` does for a sparse tensor, by parts of the axis."""
        places, total = self.X.places, 0.0
        columns = by_columns(factors)
        for indices, where, ends in places.blocks(axis):
            rows, mine = places.rows(columns, where, skipped=axis), factors[axis][:, indices].copy()
            data, each = self.X.data[where], np.arange(len(rows))
            total += kernels.update_sparse(data, each, ends, mine, rows.T, sums, *parts)
            factors[axis][:, indices] = mine
        return total

    def fit(self, factors: Factors) -> float:
        return self._step(factors, 0, False, True)

    def update(self, factors: Factors, axis: int) -> None:
        self._step(factors, axis, True, False)

    def corrected(
        self, factors: Factors, sweeps: int, tol: float, watch: Watch | None = None
    ) -> tuple[Factors, list[float], bool]:
        """Improve all factors in turn, with extrapolation; the value never rises.

        `watch` is called after every sweep.

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
        at, ahead, age = factors, factors, 0
        values: list[float] = []
        for sweep in range(sweeps + 1):
            value, first = self._first_step(ahead, sweep < sweeps)
            if values and value > values[-1] and age:
                ahead, age = at, 0
                value, first = self._first_step(at, sweep < sweeps)
            if values and value > values[-1]:
                return at, values, True  # by rounding: nothing moves
            values.append(value)
            stopped = sweep > 0 and watch is not None and watch(ahead, value)
            if stopped or sweep == sweeps or settled(values, tol):
                return ahead, values, stopped or sweep < sweeps or sweeps == 0
            new = [first, *(factor.copy() for factor in ahead[1:])]
            for axis in set(range(1, len(new))) - self.fixed:
                self.update(tuple(new), axis)
            share, age = min(SHARE, age / (age + RAMP)), age + 1
            pairs = zip(new, at, strict=True)
            ahead, at = tuple(self._beyond(one, two, share) for one, two in pairs), tuple(new)
        raise AssertionError("the last sweep returns")

    def _first_step(self, factors: Factors, step: bool) -> tuple[float, Array]:
        """Return the value, and the first factor after its step if `step`."""
        first = factors[0].copy()
        step = step and 0 not in self.fixed
        value = self._step((first, *factors[1:]), 0, step, True) + self.cost(factors)
        return value, first

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

    def first(self) -> Factors:
        """Return the sums over all axes but one, the best factors of rank one without weights."""
        return marginals(self.X if self.M is None else self.X * self.M)

    def descent(self, factors: Factors) -> Any:
        if self.sparse:
            return self._sparse_descent(factors)
        model = outer_sum(factors)
        out = np.empty(self.shape, np.float32 if model.size >= SINGLE else np.float64)
        X, M = self.sides[0]
        kernels.slopes(X, M, as_rows(model), as_rows(out))
        return out

    def _sparse_descent(self, factors: Factors) -> FactoredTensor:
        data, tensor = self.X.data, isinstance(self.X, SparseTensor)
        model = self.X.at(factors) if tensor else product_at(self.X, factors[0], factors[1])
        quotients = np.divide(data, model, out=np.zeros_like(data), where=model > 0)
        lost = (data > 0) & (model <= 0)
        quotients[lost] = max(float(quotients.max(initial=1.0)), 1.0)
        first, *others = (np.ones((1, n)) for n in self.shape)
        return kept_as_factors([-first, *others], self._stored(quotients))

    def _stored(self, data: Vector) -> Any:
        """Return sparse data with other entries at the same places."""
        if isinstance(self.X, SparseTensor):
            return SparseTensor(self.X.places, data)
        return sparse.csr_array((data, self.X.indices, self.X.indptr), self.shape)

    def smoothness(self, factors: Factors, old: int, descent: Any) -> float:
        new = tuple(factor[old:] for factor in factors)
        if self.sparse:
            quotients, data = descent.base.data, self.X.data
            share = np.divide(
                quotients * quotients, data, out=np.zeros_like(quotients), where=data > 0
            )
            found = component_products(self._stored(share), tuple(each**2 for each in new))
            return max(float(found.max()), TINY)
        model = as_rows(outer_sum(tuple(factor[:old] for factor in factors)))
        pairs = zip(new[0], row_products(new[1:]), strict=True)
        X, M = self.sides[0]
        return max(max(kernels.curvature(X, M, model, u, v) for u, v in pairs), TINY)


def as_rows(T: Array) -> Array:
    """Return a contiguous tensor as a matrix with its first axis as rows."""
    return T.reshape(len(T), -1)
