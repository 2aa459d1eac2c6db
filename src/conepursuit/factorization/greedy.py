"""Non-negative factorisation, one atom at a time: the oracle, the weights, then all atoms.

This is the loop of `minimize` on `NonnegativeRankOne` or `NonnegativeRankOneTensor` with corrected
atoms, arranged so that each product with the data serves all that need it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.atoms.power import leading_pair
from conepursuit.factorization.losses import FactorLoss, Factors, Watch, settled
from conepursuit.tensors import marginals

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


Progress: TypeAlias = Callable[[int, int, Factors, float], bool]
"""Called with a rank, the number of sweeps at the last rank, the factors and their value.

The number is 0 at a rank below the last. True stops the run there.
"""


@dataclass(frozen=True)
class Factorization:
    """What a greedy factorisation found.

    Attributes
    ----------
    factors : tuple of arrays of shape (k, n), n the length of an axis
        One component per row. A matrix X is approximated by ``factors[0].T @ factors[1]``.
    path : array of shape (k,)
        The value at every rank on the way up, the last one after all sweeps. Where several atoms
        joined at a time, the ranks between have the value from before.
    accuracy : array of shape (k,)
        delta, the accuracy of the oracle's answer, for each atom; NaN where it was not asked.
    values : list of float
        The value after every sweep at the last rank.
    converged : bool
        Whether the last sweeps gained less than the tolerance.
    fit : float
        The loss without penalties, computed afresh.
    """

    factors: Factors
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
    extra: Any = None,
    seed: int = 0,
    start: Factors | None = None,
    watch: Watch | None = None,
    progress: Progress | None = None,
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
        How many atoms join at a time, as a share of those that are there; at least one. For a
        tensor, the heaviest components are divided instead where this is positive.
    rank_sweeps : int
        Most sweeps at every rank but the last.
    max_iter, tol : int, float
        Most sweeps at the last rank, and the relative gain of one that ends them.
    rounds, extra
        Of the oracle; see `NonnegativeRankOne`.
    seed : int
        Of the parts into which components are divided.
    start : tuple of arrays, optional
        Factors with some components to start from, or all; then no rank below is fitted.
    watch : callable, optional
        Called with the factors and their value at every rank; True stops there.
    progress : callable, optional
        Called at every rank below the last, and after every sweep at the last that lowers the
        value; see `Progress`.
    """
    factors = loss.zeros(0)
    divides, rng = growth > 0 and len(loss.shape) > 2, np.random.default_rng(seed)
    path: list[float] = []
    accuracy: list[float] = []
    values, converged = [loss.value(loss.zeros(1))], True
    shown = None if progress is None else _Shown(progress, n_components)
    if start is not None:
        path, accuracy = (len(start[0]) - 1) * values, len(start[0]) * [np.nan]
        factors, values = start, [loss.value(start)]
        if len(start[0]) == n_components:
            factors, values, converged = _finished(loss, start, max_iter, tol, shown)
        path.append(values[-1])
    while (rank := len(factors[0])) < n_components:
        before, last = loss.noted(factors), values[-1]
        more = min(1 + int(growth * rank), n_components - rank)
        if divides:
            more = min(more, rank) or 1
            factors = _halved(factors, more, rng) if rank else marginals(loss.X)
            deltas = more * [np.nan]
        else:
            factors, deltas = _extended(loss, factors, more, algorithm, rounds, extra)
            if loss.splits and rank_sweeps and more == 1 and rank:
                factors = _best(loss, factors, before, min(rank_sweeps, TRIAL), seed)
        if rank + more < n_components:
            factors, values, converged = _swept(loss, factors, rank_sweeps, PASSING)
        else:
            factors, values, converged = _finished(loss, factors, max_iter, tol, shown)
        if values[-1] > last * (1 + ROUNDED):  # the penalty of an atom can exceed its gain
            factors, values = _padded(loss, loss.restored(before), more), [last]
        accuracy += deltas
        path += (len(deltas) - 1) * [last] + [values[-1]]
        if watch is not None and watch(factors, values[-1]):
            break
        last_rank = rank + more == n_components  # whose sweeps were shown
        if not (progress is None or last_rank) and progress(rank + more, 0, factors, values[-1]):
            break
    factors = tuple(loss.cleaned(factor) for factor in factors)
    fit = loss.audit(factors)
    return Factorization(factors, np.array(path), np.array(accuracy), values, converged, fit)


def _extended(
    loss: FactorLoss,
    factors: Factors,
    more: int,
    algorithm: str,
    rounds: int,
    extra: Any,
) -> tuple[Factors, list[float]]:
    """Return the factors with more atoms, all weights fitted, and the accuracy of each."""
    first, old = None if len(factors[0]) else loss.first(), len(factors[0])
    if first is not None:  # the minimiser of rank one, but for weights and penalties
        return first, [1.0]
    descent = loss.descent(factors)
    found, bounds = loss.atoms(descent, more, rounds, extra)
    bound = bounds.measured
    deltas = [max(atom.value, 0.0) / bound if bound > 0 else 1.0 for atom in found]
    new = [atom.factors for atom in found if atom.value > 0]
    deltas += (more - len(deltas)) * deltas[-1:]
    if new:
        factors = loss.join(loss.stacked(factors, *new), old, algorithm, descent)
    return _padded(loss, factors, more - len(new)), deltas


def _best(loss: FactorLoss, joined: Factors, before: Factors, sweeps: int, seed: int) -> Factors:
    """Return the best factors after a few sweeps, with one more atom or with a component divided.

    `joined` are the factors with the atom, `before` those without. An atom that descends steeply is
    often small, and leaves the others as they are. Where data fall into parts of one size, it is
    better to divide the heaviest component: by the signs of a leading pair, or at random.
    """
    rng, ways = np.random.default_rng(len(before[0]) + 1000 * seed), [joined]
    if len(before) == 2:
        pair = leading_pair(loss.descent(before), rng.standard_normal((before[1].shape[1],)))
        ways.append(_divided(before, [np.sign(pair.left)[None], np.sign(pair.right)[None]]))
    while len(ways) < TRIALS:
        shares = [rng.uniform(-1.0, 1.0, (1, factor.shape[1])) for factor in before]
        ways.append(_divided(before, shares))
    tried = [_swept(loss, factors, sweeps, 0.0) for factors in ways]
    return min(tried, key=lambda each: each[1][-1])[0]


def _halved(factors: Factors, more: int, rng: np.random.Generator) -> Factors:
    """Return the factors with so many of the heaviest components divided in two at random."""
    return _divided(factors, [rng.uniform(-1.0, 1.0, (more, f.shape[1])) for f in factors])


def _divided(factors: Factors, shares: list[Array]) -> Factors:
    """Return the factors with the heaviest components divided in two, without new zeros.

    `shares`, between -1 and 1, say which part gets more of an entry, with a row for each component
    that is divided.
    """
    masses = np.prod([factor.sum(axis=1) for factor in factors], axis=0)
    heaviest = np.argsort(masses, kind="stable")[::-1][: len(shares[0])]
    # two parts of 2^-d, for d axes, add up to the whole if the parts are multiplied with this
    scale, halves = 2.0 ** (1.0 - 1.0 / len(factors)), []
    for factor, share in zip(factors, shares, strict=True):
        part, most = scale * factor[heaviest], 0.5 + 0.3 * share
        rest = np.delete(factor, heaviest, axis=0)
        halves.append(np.vstack([rest, part * most, part * (1.0 - most)]))
    return tuple(halves)


class _Shown:
    """Shows the sweeps at the last rank to `progress`, and remembers whether it stopped them."""

    def __init__(self, progress: Progress, rank: int) -> None:
        self.progress, self.rank = progress, rank
        self.sweeps, self.stopped = 0, False

    def __call__(self, factors: Factors, value: float) -> bool:
        self.sweeps += 1
        self.stopped = bool(self.progress(self.rank, self.sweeps, factors, value))
        return self.stopped


def _finished(
    loss: FactorLoss, factors: Factors, sweeps: int, tol: float, shown: _Shown | None
) -> tuple[Factors, list[float], bool]:
    """Sweep until the gain is at most `tol`, in float32 at first if the loss is `coarse`."""
    rough: list[float] = []
    if loss.coarse:
        factors, rough, _ = _swept(loss, factors, sweeps, max(tol, ROUNDED), shown)
        loss.refine()
    left = sweeps - max(len(rough) - 1, 0)
    if shown is not None and shown.stopped:
        left = 0
    factors, values, converged = _swept(loss, factors, left, tol, shown)
    return factors, rough[:-1] + values, converged


def _swept(
    loss: FactorLoss, factors: Factors, sweeps: int, tol: float, shown: _Shown | None = None
) -> tuple[Factors, list[float], bool]:
    """Sweep; penalised factors are balanced every few sweeps."""
    if not loss.penalised:
        return loss.corrected(factors, sweeps, tol, shown)
    values: list[float] = []
    while True:
        factors = loss.balanced(factors)
        few = min(sweeps - max(len(values) - 1, 0), BALANCED)
        factors, more, converged = loss.corrected(factors, few, tol, shown)
        values = values[:-1] + more
        ended = len(more) == 1 or len(values) > sweeps or (converged and settled(values, tol))
        if ended or (shown is not None and shown.stopped):
            return factors, values, converged


def _padded(loss: FactorLoss, factors: Factors, count: int) -> Factors:
    """Return the factors with more components, which are zero."""
    return loss.stacked(factors, loss.zeros(count)) if count else factors
