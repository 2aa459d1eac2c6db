"""The choice of a rank by entries that are held out."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import kl_div

from conepursuit.arrays import Array, Vector
from conepursuit.factorization.data import FactorData
from conepursuit.factorization.greedy import factorize
from conepursuit.factorization.losses import FactorLoss, Factors, Penalty
from conepursuit.tensors import Places, SparseTensor

SHARE = 0.1
"""Share of the entries, or of those that a sparse matrix stores, that is held out."""

ZEROS = 2
"""Zeros of a sparse matrix that are held out for each entry that it stores."""

FLOOR = 1e-3
"""Share of the mean of the entries held out to which a smaller model is raised.

It is for the divergence alone, where one entry with a model near zero could decide. A larger model
is used as it is.
"""

SWEEPS = 50, 200
"""Most sweeps at a rank, for least squares and for the divergence.

They are many: if the sweeps at one rank end too early, the next rank seems better than it is.
"""

EXACT = 1e-8
"""Share of the loss without components up to which a fit is exact, and no more ranks are tried."""

MOST = 200_000
"""The largest number of entries that are held out."""

PATIENCE = 3
"""The search ends after so many ranks that are not better than the best one before."""


class Entries(NamedTuple):
    """Entries that are held out: their places along each axis, values and weights."""

    places: tuple[Array, ...]
    values: Vector
    weights: Vector

    def model(self, factors: Factors) -> Vector:
        """Return the sum of all components at the places."""
        parts = [factor[:, place] for factor, place in zip(factors, self.places, strict=True)]
        return np.asarray(np.prod(parts, axis=0).sum(axis=0))

    def losses(self, factors: Factors, divergence: bool) -> Vector:
        """Return the loss of each entry.

        Models are clipped at twice the largest value and, for the divergence, at `FLOOR`, so that
        no single entry decides: one that no component reaches, or one of a row with few data.
        """
        model = self.model(factors)
        least = FLOOR * float(self.values.mean()) if divergence else 0.0
        model = np.clip(model, least, 2.0 * float(self.values.max()))
        losses: Vector = kl_div(self.values, model)
        return losses if divergence else 0.5 * (self.values - model) ** 2


def choose_rank(
    data: FactorData, penalties: tuple[Penalty, ...], rng: Any, **options: Any
) -> tuple[int, Vector]:
    """Return the rank chosen by entries held out, and their mean loss at every rank tried.

    It is the least rank at which that loss exceeds the least one by at most the standard error of
    the difference.

    Parameters
    ----------
    data : FactorData
        The data.
    penalties : tuple of Penalty
        Of both factors.
    rng : numpy.random.RandomState
        For the choice of entries.
    **options
        Of `factorize`.
    """
    entries, loss = held_out(data, penalties, rng)
    zeros, sweeps = tuple(np.zeros((1, n)) for n in data.shape), SWEEPS[data.divergence]
    shares = entries.weights / entries.weights.sum()
    nothing = entries.losses(zeros, data.divergence)
    path: list[Vector] = []

    def watch(factors: Factors, value: float) -> bool:
        path.append(entries.losses(factors, data.divergence))
        means = [shares @ losses for losses in path]
        exact = means[-1] <= EXACT * (shares @ nothing)
        return exact or len(means) - 1 - int(np.argmin(means)) >= PATIENCE

    most = prod(data.shape) // max(data.shape)  # so many components reproduce all data
    factorize(loss, most, watch=watch, max_iter=sweeps, rank_sweeps=sweeps, **options)
    means = np.array([shares @ losses for losses in path])
    best = path[int(means.argmin())]
    differences = [losses - best for losses in path]
    enough = (
        shares @ worse <= np.sqrt(shares**2 @ (worse - shares @ worse) ** 2)
        for worse in differences
    )
    return next(rank for rank, good in enumerate(enough, start=1) if good), means


def held_out(
    data: FactorData, penalties: tuple[Penalty, ...], rng: Any
) -> tuple[Entries, FactorLoss]:
    """Return entries chosen at random to be held out, and the loss of all others."""
    if not isinstance(data.X, np.ndarray) and data.M is None:
        return _of_sparse(data, penalties, rng)
    if sparse.issparse(data.X):
        M, flat = data.M, np.ravel_multi_index(_stored(data.X), data.shape)
        values, weights = data.X.data, data.M.data
    else:
        M = np.ones(data.shape) if data.M is None else data.M
        flat = np.flatnonzero(M)
        values, weights = data.X.ravel()[flat], M.ravel()[flat]
    count = min(max(1, int(SHARE * len(flat))), MOST)
    chosen, M = rng.choice(len(flat), count, replace=False), M.copy()
    places = np.unravel_index(flat[chosen], data.shape)
    entries = Entries(places, values[chosen], weights[chosen])
    if sparse.issparse(data.X):
        M.data[chosen] = 0.0
    else:
        M[places] = 0.0
    return entries, replace(data, M=M).loss(penalties)


def _of_sparse(
    data: FactorData, penalties: tuple[Penalty, ...], rng: Any
) -> tuple[Entries, FactorLoss]:
    """Hold out some of the stored entries of sparse data, and some of their zeros.

    The weight of an entry is the number of entries of its kind, divided by how many are held out.
    """
    X, size = data.X, prod(data.shape)
    stored = np.ravel_multi_index(_stored(X), X.shape)
    count = min(max(1, int(SHARE * len(stored))), MOST // (1 + ZEROS))
    chosen = rng.choice(len(stored), count if len(stored) else 0, replace=False)
    some = stored[chosen]
    zeros = np.setdiff1d(rng.randint(0, size, 2 * ZEROS * count), stored)
    zeros = rng.permutation(zeros)[: ZEROS * count]
    values = np.zeros(len(some) + len(zeros))
    values[: len(some)] = X.data[chosen]
    stands_for = len(stored) / max(len(some), 1), (size - len(stored)) / max(len(zeros), 1)
    weights = np.repeat(stands_for, (len(some), len(zeros)))
    places = np.unravel_index(np.concatenate([some, zeros]), X.shape)
    entries = Entries(places, values, weights)
    return entries, Imputed(X, entries, data.divergence, penalties)


def _stored(X: Any) -> tuple[Array, ...]:
    """Return the places that sparse data store, in the order of their data."""
    if sparse.issparse(X):
        return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices.astype(np.intp)
    return tuple(X.places.indices)


class Imputed(FactorLoss):
    """The loss of sparse data without the entries held out, which the model replaces.

    Notes
    -----
    With X replaced by the present model at the entries held out, the loss of all entries is at
    least that of the others, and equal to it for the present model. So a step that lowers the loss
    of all entries lowers that of the others.

    Parameters
    ----------
    X : csr_array or SparseTensor
        The data.
    entries : Entries
        What is held out.
    divergence, penalties
        As in `FactorData`.
    """

    def __init__(
        self, X: Any, entries: Entries, divergence: bool, penalties: tuple[Penalty, ...]
    ) -> None:
        self.shape, self.penalties, self.entries = X.shape, penalties, entries
        stored = np.ravel_multi_index(_stored(X), X.shape)
        own = np.ravel_multi_index(entries.places, X.shape)
        places = np.union1d(stored, own)
        full = np.zeros(len(places))
        full[np.searchsorted(places, stored)] = X.data
        self.slots: tuple[Array, ...] = (np.searchsorted(places, own),)
        if sparse.issparse(X):
            m, n = X.shape
            ends = np.searchsorted(places, n * np.arange(m + 1))
            data: Any = sparse.csr_array((full, places % n, ends), X.shape)
            across = np.sort(places % n * m + places // n)
            self.slots += (np.searchsorted(across, own % n * m + own // n),)
        else:
            data = SparseTensor(Places(X.shape, np.array(np.unravel_index(places, X.shape))), full)
        self.X = data
        self.inner = FactorData(data, None, divergence).loss(penalties)

    def _imputed(self, factors: Factors) -> FactorLoss:
        """Return the loss of all entries, with the model for those held out."""
        self.inner.rewrite(self.slots, self.entries.model(factors))
        return self.inner

    def fit(self, factors: Factors) -> float:
        return self._imputed(factors).fit(factors)

    def descent(self, factors: Factors) -> Any:
        return self._imputed(factors).descent(factors)

    def update(self, factors: Factors, axis: int) -> None:
        self._imputed(factors).update(factors, axis)

    def smoothness(self, factors: Factors, old: int, descent: Any) -> float:
        return self.inner.smoothness(factors, old, descent)

    def first(self) -> Factors | None:
        return self.inner.first()
