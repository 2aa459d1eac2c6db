"""Non-negative factorisation, one atom at a time: the oracle, the weights, then all atoms.

This is the loop of `minimize` on `NonnegativeRankOne` with corrected atoms, arranged so that each
product with the data serves all that need it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.atoms.power import leading_pair, nonnegative_pairs
from conepursuit.factorization.losses import FactorLoss, settled

PASSING = 1e-4
"""Sweeps at a rank below the last end when their relative gain is at most this."""

BALANCED = 10
"""Sweeps after which the scales of penalised factors are balanced again."""

TRIAL, TRIALS = 5, 4
"""Most sweeps after which ways to reach a new rank are compared, and how many ways there are."""

ROUNDED = 1e-6
"""Relative gains and rises of the value up to this may be the rounding of float32.

Sweeps in float32 end when they gain no more. A new rank is kept if the value rises by no more, and
otherwise gets components that are zero.
"""


@dataclass(frozen=True)
class Factorization:
    """What a greedy factorisation found.

    Attributes
    ----------
    left, right : arrays of shape (k, m) and (k, n)
        The factors, one component per row; X is approximated by ``left.T @ right``.
    path : array of shape (k,)
        The value at every rank on the way up, the last one after all sweeps. Where several atoms
        joined at a time, the ranks between have the value from before.
    accuracy : array of shape (k,)
        delta, the accuracy of the oracle's answer, for each atom.
    values : list of float
        The value after every sweep at the last rank.
    converged : bool
        Whether the last sweeps gained less than the tolerance.
    fit : float
        The loss without penalties, computed afresh.
    """

    left: Array
    right: Array
    path: Vector
    accuracy: Vector
    values: list[float]
    converged: bool
    fit: float


def factorize(
    loss: FactorLoss,
    n_components: int,
    *,
    algorithm: str = "fcmp",
    growth: float = 0.0,
    rank_sweeps: int = 3,
    max_iter: int = 200,
    tol: float = 1e-5,
    rounds: int = 0,
    extra: Array | None = None,
    watch: Callable[[int, Array, Array], bool] | None = None,
) -> Factorization:
    """Add rank-one atoms, and correct all of them by sweeps after each.

    Parameters
    ----------
    loss : FactorLoss
        What to minimise.
    n_components : int
        The last rank.
    algorithm : {"fcmp", "pwmp"}
        How weights are fitted when an atom joins.
    growth : float
        How many atoms join at a time, as a share of those that are there; at least one.
    rank_sweeps : int
        Most sweeps at every rank but the last.
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
    zero = np.zeros((1, loss.shape[0])), np.zeros((1, loss.shape[1]))
    values, converged = [loss.value(*zero)], True
    while len(F) < n_components:
        before = F, G, values[-1]
        more = min(1 + int(growth * len(F)), n_components - len(F))
        F, G, deltas = _extended(loss, F, G, more, algorithm, rounds, extra)
        if loss.splits and rank_sweeps and growth == 0 and len(F) > 1:
            F, G = _best(loss, (F, G), before[:2], min(rank_sweeps, TRIAL))
        if len(F) < n_components:
            F, G, values, converged = _swept(loss, F, G, rank_sweeps, PASSING)
        else:
            F, G, values, converged = _finished(loss, F, G, max_iter, tol)
        if values[-1] > before[2] * (1 + ROUNDED):  # the penalty of an atom can exceed its gain
            F, G = _padded(before[0], more), _padded(before[1], more)
            values = [before[2]]
        accuracy += deltas
        path += (len(deltas) - 1) * [before[2]] + [values[-1]]
        if watch is not None and watch(len(F), F, G):
            break
    F, G = loss.cleaned(F), loss.cleaned(G)
    fit = loss.audit(F, G)
    return Factorization(F, G, np.array(path), np.array(accuracy), values, converged, fit)


def _extended(
    loss: FactorLoss,
    F: Array,
    G: Array,
    more: int,
    algorithm: str,
    rounds: int,
    extra: Array | None,
) -> tuple[Array, Array, list[float]]:
    """Return the factors with more atoms, all weights fitted, and the accuracy of each."""
    first = loss.first() if not len(F) else None
    if first is not None:  # the minimiser of rank one, but for weights and penalties
        return *first, [1.0]
    descent = loss.descent(F, G)
    found, bounds = nonnegative_pairs(descent, more, rounds=rounds, extra=extra)
    bound = bounds.measured
    deltas = [max(pair.value, 0.0) / bound if bound > 0 else 1.0 for pair in found]
    found = [pair for pair in found if pair.value > 0]
    old, missing = len(F), more - len(found)
    deltas += (more - len(deltas)) * deltas[-1:]
    if found:
        F = np.vstack([F, *(pair.left for pair in found)])
        G = np.vstack([G, *(pair.right for pair in found)])
        F, G = loss.join(F, G, old, algorithm, descent)
    return _padded(F, missing), _padded(G, missing), deltas


def _best(
    loss: FactorLoss, joined: tuple[Array, Array], before: tuple[Array, Array], sweeps: int
) -> tuple[Array, Array]:
    """Return the best factors after a few sweeps, with one more atom or with a component divided.

    `joined` are the factors with the atom, `before` those without. An atom that descends steeply is
    often small, and leaves the others as they are. Where data fall into parts of one size, it is
    better to divide the heaviest component: by the signs of a leading pair, or at random.
    """
    (F, G), rng = before, np.random.default_rng(len(before[0]))
    pair = leading_pair(loss.descent(F, G), rng.standard_normal((G.shape[1],)))
    ways = [joined, _divided(F, G, np.sign(pair.left), np.sign(pair.right))]
    for _ in range(TRIALS - 2):
        shares = [rng.uniform(-1.0, 1.0, (factor.shape[1],)) for factor in before]
        ways.append(_divided(F, G, *shares))
    tried = [_swept(loss, *factors, sweeps, 0.0) for factors in ways]
    left, right, _, _ = min(tried, key=lambda each: each[2][-1])
    return left, right


def _divided(F: Array, G: Array, rows: Array, columns: Array) -> tuple[Array, Array]:
    """Return the factors with the heaviest component divided in two, without new zeros.

    `rows` and `columns`, between -1 and 1, say which part gets more of an entry.
    """
    heaviest = int((F.sum(axis=1) * G.sum(axis=1)).argmax())
    halves = []
    for factor, share in ((F, rows), (G, columns)):
        part, most = factor[heaviest], 0.5 + 0.3 * share
        rest = np.delete(factor, heaviest, axis=0)
        halves.append(np.vstack([rest, part * most, part * (1.0 - most)]))
    return halves[0], halves[1]


def _finished(
    loss: FactorLoss, F: Array, G: Array, sweeps: int, tol: float
) -> tuple[Array, Array, list[float], bool]:
    """Sweep until the gain is at most `tol`, in float32 at first if the loss is `coarse`."""
    rough: list[float] = []
    if loss.coarse:
        F, G, rough, _ = _swept(loss, F, G, sweeps, max(tol, ROUNDED))
        loss.refine()
    F, G, values, converged = _swept(loss, F, G, sweeps - max(len(rough) - 1, 0), tol)
    return F, G, rough[:-1] + values, converged


def _swept(
    loss: FactorLoss, F: Array, G: Array, sweeps: int, tol: float
) -> tuple[Array, Array, list[float], bool]:
    """Sweep; penalised factors are balanced every few sweeps."""
    if not loss.penalised:
        return loss.corrected(F, G, sweeps, tol)
    values: list[float] = []
    while True:
        F, G = loss.balanced(F, G)
        few = min(sweeps - max(len(values) - 1, 0), BALANCED)
        F, G, more, converged = loss.corrected(F, G, few, tol)
        values = values[:-1] + more
        if len(more) == 1 or len(values) > sweeps or (converged and settled(values, tol)):
            return F, G, values, converged


def _padded(F: Array, count: int) -> Array:
    """Return a factor with more components, which are zero."""
    return np.vstack([F, np.zeros((count, F.shape[1]))]) if count else F
