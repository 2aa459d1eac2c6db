"""Non-negative factorisation, one atom at a time: the oracle, the weights, then all atoms.

This is the loop of `minimize` on `NonnegativeRankOne` with corrected atoms, arranged so that each
product with the data serves all that need it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.atoms.power import nonnegative_pair
from conepursuit.factors.base import FactorLoss

PASSING = 3e-4
"""The relative gain of a sweep that ends them at a rank on the way up."""


@dataclass(frozen=True)
class Factorization:
    """What a greedy factorisation found.

    Attributes
    ----------
    left, right : arrays of shape (k, m) and (k, n)
        The factors, one component per row; X is approximated by ``left.T @ right``.
    path : array of shape (k,)
        The value at every rank on the way up, the last one after all sweeps.
    accuracy : array of shape (k,)
        delta of the oracle's answer behind each atom.
    values : list of float
        The value after every sweep at the last rank.
    converged : bool
        Whether the last sweeps gained less than the tolerance.
    """

    left: Array
    right: Array
    path: Vector
    accuracy: Vector
    values: list[float]
    converged: bool


def factorize(
    loss: FactorLoss,
    n_components: int,
    *,
    algorithm: str = "fcmp",
    rank_sweeps: int = 3,
    max_iter: int = 200,
    tol: float = 1e-5,
    rounds: int = 0,
    extra: Array | None = None,
    watch: Callable[[int, Array, Array], bool] | None = None,
) -> Factorization:
    """Add one rank-one atom at a time, and correct all of them by sweeps after each.

    Parameters
    ----------
    loss : FactorLoss
        What to minimise.
    n_components : int
        The last rank.
    algorithm : {"fcmp", "pwmp"}
        How weights are fitted when an atom joins.
    rank_sweeps : int
        Sweeps at every rank but the last.
    max_iter, tol : int, float
        Most sweeps at the last rank, and the relative gain of one that ends them.
    rounds, extra
        Of the oracle; see `NonnegativeRankOne`.
    watch : callable, optional
        Called with the rank and the factors at every rank; True stops there.
    """
    F, G = np.zeros((0, loss.shape[0])), np.zeros((0, loss.shape[1]))
    path: list[float] = []
    accuracy: list[float] = []
    values, converged = [np.inf], True
    for rank in range(1, n_components + 1):
        sweeps, least = (max_iter, tol) if rank == n_components else (rank_sweeps, PASSING)
        before = F, G, values[-1]
        F, G, delta = _extended(loss, F, G, algorithm, rounds, extra)
        F, G, values, converged = loss.corrected(F, G, sweeps, least)
        if values[-1] > before[2]:  # a penalty can make an atom more than it is worth
            F, G = _padded(before[0]), _padded(before[1])
            values = [before[2]]
        accuracy.append(delta)
        path.append(values[-1])
        if watch is not None and watch(rank, F, G):
            break
    return Factorization(F, G, np.array(path), np.array(accuracy), values, converged)


def _extended(
    loss: FactorLoss, F: Array, G: Array, algorithm: str, rounds: int, extra: Array | None
) -> tuple[Array, Array, float]:
    """Return the factors with one atom more, all weights fitted, and the oracle's accuracy."""
    first = loss.first() if not len(F) else None
    if first is not None:
        return *first, 1.0
    descent = loss.descent(F, G)
    found, bound = nonnegative_pair(descent, rounds=rounds, extra=extra)
    delta = max(found.value, 0.0) / bound if bound > 0 else 1.0
    if not found.value > 0:
        return _padded(F), _padded(G), delta
    F, G = np.vstack([F, found.left]), np.vstack([G, found.right])
    return *loss.join(F, G, algorithm, descent), delta


def _padded(F: Array) -> Array:
    """Return a factor with a component more, which is zero."""
    return np.vstack([F, np.zeros((1, F.shape[1]))])
