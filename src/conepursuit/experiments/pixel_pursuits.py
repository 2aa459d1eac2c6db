"""The algorithms of the paper for many targets of one small dictionary, all of them at once.

They are those of `conepursuit.pursuit` for least squares on a cone of unit atoms, which the tests
hold them to. All that an iteration needs is the Gram matrix G and the products c = A'b of each
target: the scores are ``s = G w - c``, and ``f = 1/2 w'G w - c'w`` plus a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.least_squares.gram import nnls_gram

LEVEL = 1e-13
"""Scores up to this share of ||b|| are rounding, and count as zero."""

EXACT = 1e-14
"""Share of the suboptimality at the start up to which a target is at its optimum."""


class Moves(NamedTuple):
    """One iteration of all targets.

    Attributes
    ----------
    weights : array of shape (n, n_targets)
        The weights after it.
    bad : array of bool of shape (n_targets,)
        Whether the step was clipped where an atom lost its weight.
    """

    weights: Array
    bad: Array


class Runs(NamedTuple):
    """What an algorithm did.

    Attributes
    ----------
    suboptimality : array of shape (n_iter + 1, n_targets)
        f minus its least value, at the start and after each iteration.
    steps, bad : array of int of shape (n_targets,)
        Steps made before the target was at its optimum, up to rounding, and bad ones among them.
    """

    suboptimality: Array
    steps: Array
    bad: Array


class Targets(NamedTuple):
    """The Gram matrix of the atoms, their products with the targets, and the level of rounding."""

    G: Array
    c: Array
    level: Vector

    def some(self, chosen: Array) -> Targets:
        """Return some of the targets."""
        return Targets(self.G, self.c[:, chosen], self.level[chosen])

    def scores(self, w: Array) -> Array:
        """Return the inner products of the gradients with all atoms."""
        scores: Array = self.G @ w - self.c
        return np.where(np.abs(scores) <= self.level, 0.0, scores)


def along(targets: Targets, w: Array, d: Array, slope: Vector, most: Vector) -> Moves:
    """Move along directions d in the weights, by exact steps of at most `most`."""
    bend = np.einsum("ip,ip->p", d, targets.G @ d)
    step = np.divide(-slope, bend, out=np.zeros_like(slope), where=(bend > 0) & (slope < 0))
    clipped = step >= most
    moved = np.maximum(w + np.where(clipped, most, step) * d, 0.0)
    return Moves(moved, clipped)


def units(places: Array, n: int, size: Vector) -> Array:
    """Return columns that are `size` at one place each, and zero elsewhere."""
    d = np.zeros((n, len(places)))
    d[places, np.arange(len(places))] = size
    return d


def heaviest(s: Array, w: Array, level: Vector) -> Array:
    """Return the active atom with the largest score; of a tie, up to rounding, the heaviest.

    Exact steps make ties, and the heaviest atom clips the next step least. Where no atom is active,
    it is the first.
    """
    own = np.where(w > 0, s, -np.inf)
    tied = own >= own.max(axis=0) - level
    places: Array = np.where(tied, w, -1.0).argmax(axis=0)
    return places


def nnmp(targets: Targets, w: Array) -> Moves:
    """Make a step of NNMP: to the atom of steepest descent, or towards the origin if steeper."""
    s, everyone = targets.scores(w), np.arange(w.shape[1])
    z = s.argmin(axis=0)
    ahead, size = s[z, everyone], w.sum(axis=0)
    back = np.divide(-np.einsum("ip,ip->p", w, s), size, out=np.zeros_like(size), where=size > 0)
    shrink = back < ahead
    d = np.where(shrink, -w / np.where(size > 0, size, 1.0), units(z, len(w), np.ones(len(z))))
    return along(targets, w, d, np.minimum(ahead, back), np.where(shrink, size, np.inf))


def amp(targets: Targets, w: Array) -> Moves:
    """Make a step of AMP: to the atom of steepest descent, or off that of steepest ascent."""
    s, everyone = targets.scores(w), np.arange(w.shape[1])
    z, v = s.argmin(axis=0), heaviest(s, w, targets.level)
    weight = w[v, everyone]
    ahead, back = s[z, everyone], np.where(weight > 0, -s[v, everyone], 0.0)
    away, one = back < ahead, np.ones(len(z))
    d = np.where(away, units(v, len(w), -one), units(z, len(w), one))
    return along(targets, w, d, np.minimum(ahead, back), np.where(away, weight, np.inf))


def pwmp(targets: Targets, w: Array) -> Moves:
    """Make a step of PWMP: weight moves from the atom of steepest ascent, or from the origin."""
    s, everyone = targets.scores(w), np.arange(w.shape[1])
    z, v, own = s.argmin(axis=0), heaviest(s, w, targets.level), heaviest(-s, w, targets.level)
    tied = (w[own, everyone] > 0) & (s[own, everyone] <= s[z, everyone] + targets.level)
    z = np.where(tied, own, z)
    gives = (w[v, everyone] > 0) & (s[v, everyone] > 0)
    takes = s[z, everyone] < 0
    d = units(z, len(w), takes.astype(float)) - units(v, len(w), gives.astype(float))
    slope = np.einsum("ip,ip->p", d, s)
    return along(targets, w, d, slope, np.where(gives, w[v, everyone], np.inf))


def fcmp(targets: Targets, w: Array) -> Moves:
    """Fit all active weights anew, with the atom of steepest descent; targets by their atoms."""
    s, everyone = targets.scores(w), np.arange(w.shape[1])
    allowed = w > 0
    z = s.argmin(axis=0)
    allowed[z, everyone] |= s[z, everyone] < 0
    moved, codes = w.copy(), (1 << np.arange(len(w))) @ allowed
    for code in np.unique(codes[codes > 0]):
        atoms, chosen = np.flatnonzero(code >> np.arange(len(w)) & 1), codes == code
        fit = nnls_gram(targets.G[np.ix_(atoms, atoms)], targets.c[np.ix_(atoms, chosen)])
        moved[np.ix_(atoms, chosen)] = fit.x
    return Moves(moved, np.zeros(len(everyone), dtype=bool))


def hals(targets: Targets, w: Array) -> Moves:
    """Set each weight in turn to its minimiser: hierarchical alternating least squares."""
    moved = w.copy()
    for i, row in enumerate(targets.G):
        moved[i] = np.maximum(moved[i] - (row @ moved - targets.c[i]) / row[i], 0.0)
    return Moves(moved, np.zeros(w.shape[1], dtype=bool))


ALGORITHMS: dict[str, Callable[[Targets, Array], Moves]] = {
    "NNMP": nnmp,
    "AMP": amp,
    "PWMP": pwmp,
    "FCMP": fcmp,
    "HALS": hals,
}


def run(A: Array, B: Array, algorithm: str, n_iter: int) -> Runs:
    """Run an algorithm from zero on all targets.

    Parameters
    ----------
    A : array of shape (m, n)
        The atoms; they are scaled to norm 1.
    B : array of shape (m, n_targets)
        The targets.
    algorithm : str
        A key of `ALGORITHMS`.
    n_iter : int
        Iterations.

    Notes
    -----
    With w* the optimum and s* its scores, ``f(w) - f(w*)`` is computed as
    ``<s*, w - w*> + 1/2 (w - w*)'G (w - w*)``, two terms that are not negative, so that no digits
    cancel.
    """
    A = A / np.linalg.norm(A, axis=0)
    targets = Targets(A.T @ A, A.T @ B, LEVEL * np.linalg.norm(B, axis=0))
    best = np.asarray(nnls_gram(targets.G, targets.c).x)
    slopes = np.maximum(targets.scores(best), 0.0)

    def above(w: Array) -> Vector:
        apart = w - best
        bend = np.einsum("ip,ip->p", apart, targets.G @ apart)
        above: Vector = np.maximum(np.einsum("ip,ip->p", slopes, apart), 0.0) + 0.5 * bend
        return above

    w = np.zeros_like(best)
    found, steps, bad = [above(w)], np.zeros(w.shape[1], dtype=int), np.zeros(w.shape[1], dtype=int)
    for _ in range(n_iter):
        moving = np.flatnonzero(found[-1] > EXACT * found[0])
        w[:, moving], clipped = ALGORITHMS[algorithm](targets.some(moving), w[:, moving])
        steps[moving] += 1
        bad[moving] += clipped
        found.append(above(w))
    return Runs(np.array(found), steps, bad)
