"""Bounds on the suboptimality: a gap that is a proof says so, one that is not says that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, prod
from typing import TypeAlias

import numpy as np
from scipy.linalg import lstsq

from conepursuit.arrays import EPS, Array, Vector, magnitude, norm, overlap
from conepursuit.domains import Domain
from conepursuit.iterate import Local
from conepursuit.objectives.base import LARGEST_SCALE, Objective
from conepursuit.rounding import product_rounding


@dataclass(frozen=True, slots=True)
class Certificate:
    """First-order optimality at a point, and what follows from it.

    Attributes
    ----------
    violation : float
        max(0, -min_z <g, z>): how steeply the best atom descends (over lambda, if penalised).
    complementarity : float
        <g, x>, with the penalty's share. On a cone or a span both are zero exactly at a minimiser.
    gap : float
        A bound on f(x) - f*, or an estimate of one.
    method : str
        "radius" where a bound on the weights of a minimiser proves the gap, or where none is
        needed as no atom descends; "dual" where a dual point does; "estimate" where nothing does.
    accuracy : float
        delta of the oracle's answer, promised or measured; nan where nothing is known of it.
    rounding : float
        How much of the gap, at most, is there for the rounding of what it was computed from.
    """

    violation: float
    complementarity: float
    gap: float
    method: str
    accuracy: float = 1.0
    rounding: float = 0.0

    @property
    def proven(self) -> bool:
        """Whether f(x) - f* <= gap is proved, with the rounding of everything it is made of."""
        return self.method != "estimate"


SLACK, ATTEMPTS = 1e-4, 3
"""The share of their slopes by which atoms are made to ascend, and how often it is made larger."""

UNDERFLOW = 1e-290
"""Added to every gap: what products of tiny numbers may have lost to underflow."""

Certifier: TypeAlias = Callable[..., Certificate]
"""Takes what is known at an iterate, f(x) without the penalty, and how far x may be off."""


def certifier(objective: Objective, domain: Domain) -> Certifier:
    """Return the function that certifies the points of one problem.

    Notes
    -----
    With g the gradient, m <= 0 a lower bound on <g, a> over the atoms and lambda the penalty, let
    h = <g, x> + lambda * sum(w). Let t be a positive functional and c its shift, so that
    <g + c t, a> >= -lambda on every atom.

    *radius*: ``h + rho * max(0, -m - lambda)``, where rho bounds the sum of weights of a minimiser;
    or ``h + c <t, x*> <= h + c ||t|| ||x*||``, where the objective bounds ||x*||.

    *dual*: u = s (g + c t) satisfies <u, a> >= -lambda on every atom for 0 <= s <= 1, and for all s
    without a penalty, so that ``f(x) + lambda * sum(w) + f*(u)`` is a bound. With a penalty
    u = s g serves as well, for s <= lambda / -m, and where no atom descends no t is needed.

    Every domain has u = 0 as a dual point, which compares f(x) with the infimum of f.

    *estimate*: ``|<g, x>| + ||x|| * max_a (-<g, a> - lambda) / ||a||``, where neither is to be had:
    what would be gained on the way of length ||x|| along the steepest atom.

    m and c have the rounding of the scores in them, and what else may be wrong in double
    precision is added to every bound (`allowance`).
    """
    atoms, penalty = domain.atoms, domain.penalty
    t = None if domain.signed else atoms.positive_functional()
    length, reach, floor = 0.0 if t is None else norm(t), inf, -objective.excess(0.0)
    if t is not None and objective.minimizer_bound is not None:
        reach = length * objective.minimizer_bound

    def certify(local: Local, value: float, drift: Array | float = 0.0) -> Certificate:
        w, gradient, height = local.iterate, local.gradient, local.height
        margin, violation = objective.imbalance(gradient), max(0.0, -local.score)
        noise = atoms.noise(gradient) + margin
        rough = noise * (atoms.radius or float(local.answer.norms()[0]))
        if not isfinite(rough + height + local.score):  # numbers overflow: nothing is known
            return Certificate(violation, height, inf, "estimate", local.accuracy)
        worst = _worst_descent(local, rough, margin)
        shift = 0.0 if t is None else atoms.shift(gradient, local.answer, penalty)
        tilt = shift * t if shift and t is not None else None
        # Slopes of a quadratic are all of one size; those of other losses may differ by much.
        size = norm(gradient) + shift * length if objective.quadratic else magnitude(gradient, tilt)
        extra = allowance(objective, penalty, w.x, value, w.size, len(w.weights), size, drift)
        bounds = [(inf, "estimate")]
        if worst == 0.0 or domain.radius < inf:
            bounds.append((height + (domain.radius * worst if worst else 0.0), "radius"))
        if t is not None:
            bounds.append((height + (reach * shift if shift else 0.0), "radius"))
        for along, largest in _dual_points(domain, tilt, t is not None, worst):
            if along is not None and objective.imbalance(gradient + along) > 0.0:
                continue  # the shift has no room for it
            dual = objective.duality_gap(w.x, value, gradient, along, largest)
            if dual is not None:
                bounds.append((dual + penalty * w.size, "dual"))
        gap, method = min(bounds)
        gap = max(float(gap), 0.0) + extra
        above = value - floor + penalty * w.size + extra
        known = local.floor is not None and isfinite(gap)
        if not (known and gap < above):
            guess = likely_gain(local)
            gap, method = (above, "dual") if known or above <= guess else (guess, "estimate")
        rounding = extra + min(shift, noise if worst else 0.0) * length * norm(w.x)
        if domain.radius < inf:
            rounding += rough * domain.radius
        return Certificate(
            violation, height, max(float(gap), 0.0), method, local.accuracy, rounding
        )

    return certify


def _worst_descent(local: Local, rough: float, margin: float) -> float:
    """Return how steeply an atom may descend beyond the penalty.

    `rough` is what scores are off, of which `margin` for unit atoms is not their own rounding.
    """
    domain = local.domain
    upward = local.score >= 0 and not domain.signed
    if upward and domain.atoms.ascends(
        local.gradient, local.answer, domain.penalty, margin
    ):
        return 0.0
    least = min(local.score - domain.penalty, 0.0) if local.floor is None else local.floor
    return max(0.0, rough - least - domain.penalty)


def _dual_points(
    domain: Domain, tilt: Array | None, tilted: bool, worst: float
) -> list[tuple[Array | None, float]]:
    """Return what to add to the gradient, and by how much to scale it at most, for dual points.

    `worst` is how steeply atoms may descend beyond the penalty; with a functional the gradient is
    `tilted`, if need be, so that none does.
    """
    points: list[tuple[Array | None, float]] = []
    largest = 1.0 if domain.penalty else inf
    if tilted:
        points.append((tilt, largest))
    elif not domain.signed and worst == 0.0:
        points.append((None, largest))
    if domain.penalty and worst > 0.0:
        points.append((None, (1.0 - 4 * EPS) * domain.penalty / (domain.penalty + worst)))
    return points


def likely_gain(local: Local) -> float:
    """Return the estimate: what would be gained on the way of length ||x|| along one atom."""
    domain, atoms = local.domain, local.domain.atoms
    steepness = atoms.steepness(local.gradient, local.answer, domain.penalty, domain.signed)
    far = (norm(local.iterate.x) or inf) * steepness / (atoms.accuracy or 1.0) if steepness else 0.0
    return abs(local.height) + far


def allowance(
    objective: Objective,
    penalty: float,
    x: Array,
    value: float,
    total: float,
    count: int,
    size: Array | float,
    drift: Array | float,
) -> float:
    """Return how far a gap that was computed in double precision may be below the exact one.

    Parameters
    ----------
    x, value : array, float
        The point, and f there.
    total, count : float, int
        The sum of the weights, and how many they are.
    size : array or float
        A bound on the entries of the gradient and of the dual point, before that is scaled; a
        number bounds their norms.
    drift : array or float
        How far each entry of x may be from that of the sum of its atoms.

    Notes
    -----
    A gap is <u, x> plus what f(x) + f*(u) exceeds <u, x> by. The first term is wrong by the
    rounding of an inner product and by u times the drift; the second one is the objective's.
    """
    scale = 1.0 if penalty else LARGEST_SCALE
    rounding = product_rounding(prod(objective.shape)) * overlap(size, x) + overlap(size, drift)
    rounding *= scale
    rounding += 4 * EPS * (1 + count) * penalty * total
    return rounding + objective.gap_rounding(x, value, (1 + scale) * size, drift) + UNDERFLOW


def own_rounding(objective: Objective, x: Array, value: float) -> float:
    """Return a gap that rounding of f(x) alone may leave at a minimiser."""
    return 2 * (objective.gap_rounding(x, value, 0.0, 0.0) + UNDERFLOW)


def least_tilt(scores: Vector, products: Vector) -> float:
    """Return the least c >= 0 with scores + c * products >= 0, inf if there is none."""
    descending, away = scores < 0, products < 0
    with np.errstate(divide="ignore"):
        least = float((-scores[descending] / np.maximum(products[descending], 0.0)).max(initial=0))
    most = float((np.maximum(scores[away], 0.0) / -products[away]).min(initial=inf))
    return least if least <= most else inf


def local_bound(
    objective: Objective, local: Local, value: float, drift: Array | float
) -> float | None:
    """Return a proven gap from the atoms with weight, None where they do not prove one.

    Notes
    -----
    With H the Hessian, the Newton step z on the atoms with weight, <a, g + H A z> = c ||a|| for a
    small c > 0, leads to a point whose gradient u = g + H A z, up to second order, makes all of
    them level. Close to a solution that is not degenerate the other atoms ascend by more than the
    step can take away, so that u is a dual point; the oracle is asked whether it is. As H is zero
    where an entry of x does not matter, so is the tilt H A z.
    """
    domain, atoms, x = local.domain, local.iterate.atoms, local.iterate.x
    if domain.signed or domain.atoms.accuracy is None or not len(atoms):
        return None
    hessian, norms = objective.hessian(x), atoms.norms()
    metric = None if hessian is None else objective.model(x, atoms, atoms)
    if metric is None or hessian is None or not np.isfinite(metric).all():
        return None
    long = norms > 0  # a start may put weight on an atom that is zero
    steepest = float((np.abs(local.scores[long]) / norms[long]).max(initial=0.0))
    noise = domain.atoms.noise(local.gradient) + objective.imbalance(local.gradient)
    slack = SLACK * steepest + 4 * noise
    for _ in range(ATTEMPTS):
        if not np.isfinite(slack * norms - local.scores).all():
            return None
        tilt = hessian(atoms.combine(lstsq(metric, slack * norms - local.scores)[0]))
        u = local.gradient + tilt
        if domain.atoms.ascends(u, domain.atoms.lmo(u), domain.penalty, objective.imbalance(u)):
            largest = 1.0 if domain.penalty else inf
            gap = objective.duality_gap(x, value, local.gradient, tilt, largest)
            if gap is None or not isfinite(gap):
                return None
            size, w = magnitude(local.gradient, tilt), local.iterate
            extra = allowance(
                objective, domain.penalty, x, value, w.size, len(w.weights), size, drift
            )
            return max(0.0, gap + domain.penalty * local.iterate.size) + extra
        slack *= 100.0
    return None
