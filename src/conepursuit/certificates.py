"""Bounds on the suboptimality: a gap that is a proof says so, one that is not says that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from typing import TypeAlias

import numpy as np
from scipy.linalg import lstsq

from conepursuit.arrays import Vector, norm
from conepursuit.domains import Domain
from conepursuit.iterate import Local
from conepursuit.objectives.base import Objective


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
    """

    violation: float
    complementarity: float
    gap: float
    method: str
    accuracy: float = 1.0

    @property
    def proven(self) -> bool:
        """Whether f(x) - f* <= gap is proved, up to the rounding of inner products."""
        return self.method != "estimate"


SLACK, ATTEMPTS = 1e-4, 3
"""The share of their slopes by which atoms are made to ascend, and how often it is made larger."""

NOISE = 1e-15
"""Scores below this times ||g|| ||a|| are the rounding of a sum."""

Certifier: TypeAlias = Callable[[Local, float], Certificate]
"""Takes what is known at an iterate and f(x) without the penalty."""


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
    """
    atoms, penalty = domain.atoms, domain.penalty
    t = None if domain.signed else atoms.positive_functional()
    reach, floor = inf, -objective.excess(0.0)
    if t is not None and objective.minimizer_bound is not None:
        reach = norm(t) * objective.minimizer_bound

    def certify(local: Local, value: float) -> Certificate:
        x, gradient, height = local.iterate.x, local.gradient, local.height
        known = local.floor is not None
        least = min(local.score - penalty, 0.0) if local.floor is None else local.floor
        worst = max(0.0, -least - penalty)
        shift = 0.0 if t is None else atoms.shift(gradient, local.answer, penalty)
        bounds = [(inf, "estimate")]
        if worst == 0.0 or domain.radius < inf:
            bounds.append((height + (domain.radius * worst if worst else 0.0), "radius"))
        duals = []
        if t is not None:
            bounds.append((height + (reach * shift if shift else 0.0), "radius"))
            duals.append((shift, 1.0 if penalty else inf))
        elif not domain.signed and worst == 0.0:
            duals.append((0.0, 1.0 if penalty else inf))
        if penalty and least < 0:
            duals.append((0.0, penalty / -least))
        for c, largest in duals:
            tilt = c * t if c and t is not None else None
            dual = objective.duality_gap(x, value, gradient, tilt, largest)
            if dual is not None:
                bounds.append((dual + penalty * local.iterate.size, "dual"))
        gap, method = min(bounds)
        if not (isfinite(gap) and known):
            steepness = atoms.steepness(gradient, local.answer, penalty, domain.signed)
            steepness /= atoms.accuracy or 1.0
            gap, method = abs(height) + (norm(x) or inf) * steepness, "estimate"
            if value - floor + penalty * local.iterate.size <= gap:
                gap, method = value - floor + penalty * local.iterate.size, "dual"
        violation = max(0.0, -local.score)
        return Certificate(violation, height, max(float(gap), 0.0), method, local.accuracy)

    return certify


def least_tilt(scores: Vector, products: Vector) -> float:
    """Return the least c >= 0 with scores + c * products >= 0, inf if there is none."""
    descending, away = scores < 0, products < 0
    with np.errstate(divide="ignore"):
        least = float((-scores[descending] / np.maximum(products[descending], 0.0)).max(initial=0))
    most = float((np.maximum(scores[away], 0.0) / -products[away]).min(initial=inf))
    return least if least <= most else inf


def local_bound(objective: Objective, local: Local, value: float) -> float | None:
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
    size = norm(local.gradient)
    slack = SLACK * steepest + NOISE * size
    for _ in range(ATTEMPTS):
        tilt = hessian(atoms.combine(lstsq(metric, slack * norms - local.scores)[0]))
        answer = domain.atoms.lmo(local.gradient + tilt)
        score = float(answer.inner(local.gradient + tilt)[0]) + domain.penalty
        if score >= -NOISE * size * float(answer.norms()[0]):
            largest = 1.0 if domain.penalty else inf
            gap = objective.duality_gap(x, value, local.gradient, tilt, largest)
            if gap is None or not isfinite(gap):
                return None
            return max(0.0, gap + domain.penalty * local.iterate.size)
        slack *= 100.0
    return None
