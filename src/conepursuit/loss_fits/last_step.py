"""The last step of a fit, which makes the dual point that proves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

from conepursuit.arrays import EPS, Array, Vector, magnitude, norm
from conepursuit.loss_fits.columns import SLACK_ROUNDINGS, Point, Problem
from conepursuit.pursuit.certify import allowance, least_tilt
from conepursuit.rounding import product_rounding

LEVELLINGS = 3
"""How often atoms are made level; before each time those join that descend along the dual point."""

MOST_LEVELLED = 256
"""Atoms are made level if there are at most this many, or at most as many as rows.

With more the attempt is not made: it would fail, and take long.
"""

MATRIX_ATOMS = 32
"""With up to this many atoms a linear system is solved on its matrix.

With more it is solved by conjugate gradients, unless the fit makes its steps on the Hessian.
"""


def closed(problem: Problem, point: Point, level: float, direct: bool) -> tuple[Point, float, bool]:
    """Return the point after a last Newton step, a bound on f(x) - f*, and if it is proven.

    Parameters
    ----------
    problem, point
        Where to start from.
    level : float
        The gap that is asked for.
    direct : bool
        Whether to make the Hessian, rather than only products with it.

    Notes
    -----
    The Newton step z on the atoms with weight makes their slopes level, up to a slack that costs
    half of `level`. The gradient of its model, u = g + H A z, is a dual point if no other atom
    descends along it. If one does, a multiple of a positive functional is added or, with a penalty,
    u is scaled down. If the gap is still above `level`, the gradient is tried in place of u. If
    nothing is proved, the bound is f(x) minus the infimum of f, or an estimate if that is less.
    """
    penalty = problem.penalty
    u, scores, weights = _levelled(problem, point, level, direct)
    moved = problem.at(weights)
    if not moved.total(penalty) <= point.total(penalty) + 4 * EPS * abs(point.value):
        moved = problem.at(point.weights)  # x may have drifted from A w: it is computed afresh
    gap, height = _bound(problem, moved, u, scores), float(moved.weights @ moved.scores)
    if gap > level:
        gap = min(gap, _bound(problem, moved, moved.gradient, moved.scores))
    if gap < inf:
        return moved, gap, True
    steepest = max(0.0, -float((moved.scores * problem.scale).min()))
    estimate = abs(height) + ((norm(moved.x) or inf) * steepest if steepest else 0.0)
    _, above, proven = above_infimum(problem, moved)
    if proven and above <= estimate:
        return moved, above, True
    return moved, (estimate if estimate < inf else above), False


def above_infimum(problem: Problem, point: Point) -> tuple[Point, float, bool]:
    """Return a point with f there, f minus its infimum over all x, and whether that is a proof.

    It is the bound of the dual point 0. If f is infinite, so is the bound, and nothing is proved;
    nor is anything where the gradient is, along which x may have drifted from A w.
    """
    point = replace(point, value=float(problem.objective.value(point.x)))
    above = float(problem.objective.excess(point.value)) + problem.penalty * point.size
    bound = above + _allowance(problem, point, magnitude(point.gradient))
    return point, (bound if isfinite(bound) else above), isfinite(bound)


def _bound(problem: Problem, point: Point, u: Array, scores: Vector) -> float:
    """Return the bound on f(x) - f* that a dual point u proves, inf if it proves none.

    Where an atom descends along u, a multiple of a positive functional is added or, with a penalty,
    u is scaled down. `scores` are those of u, with the penalty. Their rounding counts against the
    proof, and so does that of everything else in the bound.
    """
    objective, penalty = problem.objective, problem.penalty
    # u is the gradient plus one or more changes, rounded each time.
    size = max(norm(u), norm(point.gradient))
    moved = objective.imbalance(u)
    errors = (problem.atoms.noise(u) + 4 * EPS * size + moved) * problem.norms
    close = np.flatnonzero(scores <= errors + 4 * EPS * penalty)
    if len(close):
        # An atom may have only entries at which u is far smaller than its norm, or zero.
        entries = np.maximum(np.abs(u), np.abs(point.gradient) * (u != 0))
        rounding = product_rounding(len(u)) + 4 * EPS
        errors[close] = rounding * problem.absolute_slopes(close, entries)
        errors[close] += moved * problem.norms[close]
    firm = scores - errors - 4 * EPS * penalty
    trials: list[tuple[Any, float]] = []
    largest, least = (1.0 if penalty else inf), float(firm.min())
    if least >= 0:
        trials.append((0.0, largest))
    else:
        if problem.functional is not None:
            functional, products = problem.functional
            shift = least_tilt(firm, products)
            trials += [((1 + 8 * EPS) * shift * functional, largest)] if shift < inf else []
        if penalty:
            trials.append((0.0, (1 - 4 * EPS) * penalty / (penalty - least)))
    gaps = []
    for tilt, most in trials:
        away = u - point.gradient + tilt
        if objective.imbalance(u + tilt) > moved:
            continue
        gap = objective.duality_gap(point.x, point.value, point.gradient, away, most)
        if gap is not None:
            extra = _allowance(problem, point, magnitude(point.gradient, away))
            gaps.append(max(gap + penalty * point.size, 0.0) + extra)
    return min(gaps, default=inf)


def _allowance(problem: Problem, point: Point, size: Array | float) -> float:
    """Return how far a gap in double precision may be below the exact one; see `allowance`."""
    count = int(np.count_nonzero(point.weights))
    drift = product_rounding(count) * problem.absolute(point.weights)
    return allowance(
        problem.objective, problem.penalty, point.x, point.value, point.size, count, size, drift,
    )  # fmt: skip


def _levelled(
    problem: Problem, point: Point, level: float, direct: bool
) -> tuple[Array, Vector, Vector]:
    """Return a dual point, its scores, and the weights after the step that leads to it.

    Entries of the gradient that are too small to matter become zero and stay so; atoms that have
    only such entries are level.
    """
    objective, weights, involved = problem.objective, point.weights, point.weights > 0
    tiny = 0.01 * level / len(point.gradient)
    u, scores, known = objective.admissible(point.gradient, tiny), point.scores, point.fresh
    settled = (u == 0) & (point.gradient != 0)
    if settled.any():
        scores, known = problem.scores(u), True
    reach, steep = float(weights @ problem.norms), norm(u)
    # Less than the rounding of the slopes would prove nothing.
    rounding = SLACK_ROUNDINGS * (problem.atoms.noise(u) + objective.imbalance(u))
    slack = max(
        min(max(0.5 * level / reach if reach else inf, EPS * steep), 1e-3 * steep), rounding
    )
    change = np.zeros_like(weights)
    for _ in range(LEVELLINGS):
        if known:
            involved = involved | (scores < 0)
        count = np.count_nonzero(involved)
        # Many more atoms than rows are not made level, and the attempt would take long.
        if not 0 < count <= max(len(point.x), MOST_LEVELLED):
            break
        if np.count_nonzero(involved[problem.chosen]) < count or len(problem.chosen) > 1.5 * count:
            problem.choose(involved)
        scale = problem.scale[problem.chosen] * involved[problem.chosen]
        right = slack * (scale > 0) - scores[problem.chosen] * scale
        z, turn = _solve(problem, point.x, right, scale, slack, direct, settled)
        change[problem.chosen] += z
        u = objective.admissible(u + turn, tiny)
        scores, known = problem.scores(u), True
        if scores.min() >= 0:
            break
    return u, (scores if known else problem.scores(u)), np.maximum(weights + change, 0.0)


def _solve(
    problem: Problem,
    x: Array,
    right: Vector,
    scale: Vector,
    error: float,
    direct: bool,
    settled: Array,
) -> tuple[Vector, Array]:
    """Solve S A' H A S z = right; return S z, a change of the weights, and H A S z.

    A are the chosen atoms, S is the diagonal matrix of `scale`, H the Hessian of f at x. Entries
    of the residual are at most `error`. H is zero at the entries that are `settled`; a matrix that
    is made contains them, as they hardly matter there.
    """
    k = len(right)
    hessian, partly = problem.objective.hessian(x), bool(settled.any())
    assert hessian is not None

    def turn(z: Vector) -> Array:
        d = problem.combine(scale * z)
        return np.where(settled, 0.0, hessian(np.where(settled, 0.0, d))) if partly else hessian(d)

    if not direct and k > MATRIX_ATOMS:
        z = conjugate_gradients(lambda z: scale * problem.slopes(turn(z)), right, error, k)
    else:
        z, used = np.zeros(k), np.flatnonzero(scale)
        system = scale[used, None] * problem.hessian(x)[np.ix_(used, used)] * scale[used]
        z[used] = solved(system, right[used], error)
    return scale * z, turn(z)


def solved(system: Array, right: Vector, error: float) -> Vector:
    """Return the solution of a positive semidefinite system, a shortest one if there are many.

    Unknowns whose diagonal entry is zero, compared with the largest, are 0; all are 0 where numbers
    overflow. If the residual of a Cholesky solution exceeds half of `error`, `lstsq` is used.
    """
    diagonal = np.maximum(np.diag(system), 0.0)
    curved = diagonal > EPS * diagonal.max()
    root = np.sqrt(np.where(curved, diagonal, 1.0))
    system, scaled = system / np.outer(root, root), np.where(curved, right / root, 0.0)
    if not (np.isfinite(system).all() and np.isfinite(scaled).all()):
        return np.zeros_like(right)
    try:
        z: Vector = cho_solve(cho_factor(system), scaled)
        if np.abs(root * (system @ z - scaled)).max() > 0.5 * error:
            raise LinAlgError
    except LinAlgError:
        z = lstsq(system, scaled)[0]
    return np.where(curved, z / root, 0.0)


def conjugate_gradients(
    product: Callable[[Vector], Vector], right: Vector, error: float, most: int
) -> Vector:
    """Return z with H z = right, up to `error` in every entry.

    `product` takes z to H z. Iterations end before that after `most` products, or where H has no
    curvature along a direction, compared with the largest found before.
    """
    z, residual, d, square = np.zeros_like(right), right, right, right @ right
    largest = 0.0
    for _ in range(most):
        if np.abs(residual).max() <= error:
            break
        image = product(d)
        curvature, length = float(d @ image), float(d @ d)
        if not curvature > EPS * largest * length:
            break
        largest = max(largest, curvature / length)
        step = square / curvature
        z, residual = z + step * d, residual - step * image
        before, square = square, residual @ residual
        d = residual + (square / before) * d
    return z
