"""The last step of a fit, which makes the dual point that proves it."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

from conepursuit.arrays import EPS, Array, Vector, magnitude, norm
from conepursuit.linear import rmatvec
from conepursuit.loss_fits.columns import SLACK, Point, Problem
from conepursuit.pursuit.certify import allowance, least_tilt
from conepursuit.rounding import product_rounding

LEVELLINGS = 3
"""How often atoms may join that a dual point has made descend."""

MOST_LEVELLED = 256
"""So many atoms may be made level even if there are fewer rows."""

MATRIX_ATOMS = 32
"""Up to so many atoms a linear system is solved on its matrix."""


def closed(problem: Problem, point: Point, level: float, direct: bool) -> tuple[Point, float, bool]:
    """Return the point after a last Newton step, a bound on f(x) - f*, and if it is proven.

    Parameters
    ----------
    problem, point
        Where to start from.
    level : float
        The gap that is asked for.
    direct : bool
        Whether to make the Hessian, rather than products with it.

    Notes
    -----
    The Newton step on the atoms with weight makes their slopes level, up to a slack that costs
    half of `level`; the gradient of its model, u = g + H A z, is a dual point if no other
    atom descends along it, and as close to the solution as the step. A multiple of a positive
    functional does what is left, or all where there is none; with a penalty, multiples of the
    gradient serve as well.
    """
    penalty, objective = problem.penalty, problem.objective
    u, scores, weights = _levelled(problem, point, level, direct)
    moved = problem.at(weights)
    if not moved.total(penalty) <= point.total(penalty) + 4 * EPS * abs(point.value):
        moved = problem.at(point.weights)  # x has drifted: claim nothing before it is made afresh
    gap, height = _bound(problem, moved, u, scores), float(moved.weights @ moved.scores)
    if gap > level:
        gap = min(gap, _bound(problem, moved, moved.gradient, moved.scores))
    if gap < inf:
        return moved, gap, True
    steepest = max(0.0, -float((moved.scores * problem.scale).min()))
    estimate = abs(height) + ((norm(moved.x) or inf) * steepest if steepest else 0.0)
    above = float(objective.excess(moved.value)) + penalty * moved.size
    above += _allowance(problem, moved, magnitude(moved.gradient))
    return moved, min(above, estimate), above <= estimate


def _bound(problem: Problem, point: Point, u: Array, scores: Vector) -> float:
    """Return what a dual point proves, if need be after a tilt or, with a penalty, shortened.

    `scores` are those of u, with the penalty. Their rounding counts against the proof, and so does
    that of everything else in the bound.
    """
    objective, penalty = problem.objective, problem.penalty
    # u is put together from the gradient and what is added to it, rounded each time.
    size = max(norm(u), norm(point.gradient))
    moved = objective.imbalance(u)
    errors = (problem.atoms.noise(u) + 4 * EPS * size + moved) * problem.norms
    close = np.flatnonzero(scores <= errors + 4 * EPS * penalty)
    if len(close):
        # An atom may be level by entries whose slopes are far smaller than others, or zero.
        entries = np.maximum(np.abs(u), np.abs(point.gradient) * (u != 0))
        rounding = product_rounding(len(u)) + 4 * EPS
        errors[close] = rounding * rmatvec(abs(problem.matrix[:, close]), entries)
        errors[close] += moved * problem.norms[close]
    firm = scores - errors - 4 * EPS * penalty
    trials: list[tuple[Any, float]] = []
    largest, least = (1.0 if penalty else inf), float(firm.min())
    if least >= 0:
        trials.append((0.0, largest))
    else:
        functional = problem.atoms.positive_functional()
        if functional is not None:
            functional = functional * objective.counted
            products = rmatvec(problem.matrix, functional)
            shift = least_tilt(firm, products - problem.atoms.noise(functional) * problem.norms)
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

    Entries whose slope may as well be zero stay that; atoms that have only those are level.
    """
    objective, weights, involved = problem.objective, point.weights, point.weights > 0
    tiny = 0.01 * level / len(point.gradient)
    u, scores, known = objective.admissible(point.gradient, tiny), point.scores, point.fresh
    settled = (u == 0) & (point.gradient != 0)
    if settled.any():
        scores, known = problem.scores(u), True
    reach, steep = float(weights @ problem.norms), norm(u)
    # Less than the rounding of the slopes would prove nothing.
    rounding = SLACK * (problem.atoms.noise(u) + objective.imbalance(u))
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
    """Return the z for which the slopes S A' H A z are those on the right, and H A z.

    They are right up to `error`; S is the scale of the chosen atoms A, and H has no entries where
    all is settled, or, where its matrix is made, entries that hardly matter.
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
    """Return the solution of a positive semidefinite system, the least one if there are many.

    What has no curvature, compared with the rest, stays where it is, and so does everything where
    numbers overflow.
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
    """Return z with H z = right, where no entry is wrong by more than `error`.

    It ends after `most` products, and where H has no curvature, compared with before.
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
