"""The choice of a rank by entries that are held out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import kl_div

from conepursuit.arrays import Array, Vector
from conepursuit.factorization.data import FactorData
from conepursuit.factorization.greedy import factorize
from conepursuit.factorization.losses import FactorLoss, Penalty

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
    """Entries that are held out: their places, values and weights."""

    rows: Array
    columns: Array
    values: Vector
    weights: Vector

    def losses(self, F: Array, G: Array, divergence: bool) -> Vector:
        """Return the loss of each entry.

        Models are clipped at twice the largest value and, for the divergence, at `FLOOR`, so that
        no single entry decides: one that no component reaches, or one of a row with few data.
        """
        model = np.einsum("ki,ki->i", F[:, self.rows], G[:, self.columns])
        least = FLOOR * float(self.values.mean()) if divergence else 0.0
        model = np.clip(model, least, 2.0 * float(self.values.max()))
        losses: Vector = kl_div(self.values, model)
        return losses if divergence else 0.5 * (self.values - model) ** 2


def choose_rank(
    data: FactorData, penalties: tuple[Penalty, Penalty], rng: Any, **options: Any
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
    zeros, sweeps = [np.zeros((1, n)) for n in data.shape], SWEEPS[data.divergence]
    shares = entries.weights / entries.weights.sum()
    nothing = entries.losses(zeros[0], zeros[1], data.divergence)
    path: list[Vector] = []

    def watch(rank: int, F: Array, G: Array) -> bool:
        path.append(entries.losses(F, G, data.divergence))
        means = [shares @ losses for losses in path]
        exact = means[-1] <= EXACT * (shares @ nothing)
        return exact or rank - 1 - int(np.argmin(means)) >= PATIENCE

    factorize(loss, min(data.shape), watch=watch, max_iter=sweeps, rank_sweeps=sweeps, **options)
    means = np.array([shares @ losses for losses in path])
    best = path[int(means.argmin())]
    differences = [losses - best for losses in path]
    enough = (
        shares @ worse <= np.sqrt(shares**2 @ (worse - shares @ worse) ** 2)
        for worse in differences
    )
    return next(rank for rank, good in enumerate(enough, start=1) if good), means


def held_out(
    data: FactorData, penalties: tuple[Penalty, Penalty], rng: Any
) -> tuple[Entries, FactorLoss]:
    """Return entries chosen at random to be held out, and the loss of all others."""
    if sparse.issparse(data.X) and data.M is None:
        return _of_sparse(data, penalties, rng)
    if sparse.issparse(data.X):
        rows, columns = _stored(data.X)
        values, weights = data.X.data, data.M.data
    else:
        M = np.ones(data.shape) if data.M is None else data.M
        rows, columns = np.nonzero(M)
        values, weights = data.X[rows, columns], M[rows, columns]
    count = min(max(1, int(SHARE * len(rows))), MOST)
    chosen = rng.choice(len(rows), count, replace=False)
    entries = Entries(rows[chosen], columns[chosen], values[chosen], weights[chosen])
    if sparse.issparse(data.X):
        M = data.M.copy()
        M.data[chosen] = 0.0
    else:
        M = M.copy()
        M[entries.rows, entries.columns] = 0.0
    return entries, replace(data, M=M).loss(penalties)


def _of_sparse(
    data: FactorData, penalties: tuple[Penalty, Penalty], rng: Any
) -> tuple[Entries, FactorLoss]:
    """Hold out some of the stored entries of a sparse matrix, and some of its zeros.

    The weight of an entry is the number of entries of its kind, divided by how many are held out.
    """
    X = sparse.csr_array(data.X)
    m, n = X.shape
    count = min(max(1, int(SHARE * X.nnz)), MOST // (1 + ZEROS))
    stored = np.ravel_multi_index(_stored(X), X.shape)
    some = rng.choice(stored, count, replace=False) if len(stored) else stored
    zeros = np.setdiff1d(rng.randint(0, m * n, 2 * ZEROS * count), stored)
    zeros = rng.permutation(zeros)[: ZEROS * count]
    places = np.concatenate([some, zeros])
    values = np.asarray(X[places // n, places % n]).reshape(-1)
    stands_for = X.nnz / max(len(some), 1), (m * n - X.nnz) / max(len(zeros), 1)
    weights = np.repeat(stands_for, (len(some), len(zeros)))
    entries = Entries(places // n, places % n, values, weights)
    return entries, Imputed(X, entries, data.divergence, penalties)


def _stored(X: Any) -> tuple[Array, Array]:
    """Return the rows and columns of the entries that a csr_array stores, in their order."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices.astype(np.intp)


class Imputed(FactorLoss):
    """The loss of a sparse matrix without the entries held out, which the model replaces.

    Notes
    -----
    With X replaced by the present model at the entries held out, the loss of all entries is at
    least that of the others, and equal to it for the present model. So a step that lowers the loss
    of all entries lowers that of the others.

    Parameters
    ----------
    X : csr_array
        The data.
    entries : Entries
        What is held out.
    divergence, penalties
        As in `FactorData`.
    """

    def __init__(
        self, X: Any, entries: Entries, divergence: bool, penalties: tuple[Penalty, Penalty]
    ) -> None:
        self.shape, self.penalties, self.entries = X.shape, penalties, entries
        (m, n), rows, columns = X.shape, entries.rows, entries.columns
        stored = np.ravel_multi_index(_stored(X), X.shape)
        places = np.union1d(stored, rows * n + columns)
        full = np.zeros(len(places))
        full[np.searchsorted(places, stored)] = X.data
        ends = np.searchsorted(places, n * np.arange(m + 1))
        self.inner = FactorData(
            sparse.csr_array((full, places % n, ends), X.shape), None, divergence
        ).loss(penalties)
        across = np.sort(places % n * m + places // n)
        self.slots = (
            np.searchsorted(places, rows * n + columns),
            np.searchsorted(across, columns * m + rows),
        )

    def _imputed(self, F: Array, G: Array) -> FactorLoss:
        """Return the loss of all entries, with the model for those held out."""
        model = np.einsum("ki,ki->i", F[:, self.entries.rows], G[:, self.entries.columns])
        self.inner.rewrite(self.slots, model)
        return self.inner

    def fit(self, F: Array, G: Array) -> float:
        return self._imputed(F, G).fit(F, G)

    def descent(self, F: Array, G: Array) -> Any:
        return self._imputed(F, G).descent(F, G)

    def update(self, F: Array, G: Array, side: int) -> None:
        self._imputed(F, G).update(F, G, side)

    def smoothness(self, F: Array, G: Array, old: int, descent: Any) -> float:
        return self.inner.smoothness(F, G, old, descent)

    def first(self) -> tuple[Array, Array] | None:
        return self.inner.first()
