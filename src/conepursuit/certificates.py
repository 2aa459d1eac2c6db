"""Bounds on the suboptimality: a gap that is a proof says so, one that is not says that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from typing import TypeAlias

from conepursuit.arrays import norm
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
        "radius" or "dual" where the gap is a proof, "estimate" where it is not.
    """

    violation: float
    complementarity: float
    gap: float
    method: str

    @property
    def proven(self) -> bool:
        """Whether f(x) - f* <= gap is proved, up to the rounding of inner products."""
        return self.method != "estimate"


Certifier: TypeAlias = Callable[[Local, float], Certificate]
"""Takes what is known at an iterate and f(x) without the penalty."""


def certifier(objective: Objective, domain: Domain) -> Certifier:
    """Return the function that certifies the points of one problem.

    Notes
    -----
    With g the gradient, m <= 0 a lower bound on <g, a> over the atoms and lambda the penalty, let
    c = max(0, -m - lambda).

    *radius*: ``<g, x> + lambda * sum(w) + rho * c``, where rho bounds the sum of weights of a
    minimiser: the domain's, or ``||t|| * bound on ||x*||`` with a positive functional t.

    *dual*: u = s (g + c t) satisfies <u, a> >= -lambda on every atom, so that
    ``f(x) + lambda * sum(w) + f*(u)`` is a bound. Where c = 0 it needs no t, and with a penalty
    s <= lambda / -m makes u = s g feasible.

    *estimate*: ``|<g, x>| + sum(w) * c``, where neither is to be had.
    """
    accuracy, penalty = domain.atoms.accuracy, domain.penalty
    t = None if domain.signed else domain.atoms.positive_functional()
    rho = domain.radius
    if t is not None and objective.minimizer_bound is not None:
        rho = min(rho, norm(t) * objective.minimizer_bound)

    def certify(local: Local, value: float) -> Certificate:
        least = min((local.score - penalty) / accuracy, 0.0)
        worst, height = max(0.0, -least - penalty), local.height
        bounds = []
        if worst == 0.0 or rho < inf:
            bounds.append((height + (rho * worst if worst else 0.0), "radius"))
        shift = worst if t is not None else 0.0
        if not domain.signed and (t is not None or worst == 0.0 or penalty > 0):
            floor = least + shift
            largest = inf if floor >= 0 else penalty / -floor
            dual = objective.duality_gap(local.iterate.x, value, local.gradient, t, shift, largest)
            if dual is not None:
                bounds.append((dual + penalty * local.iterate.size, "dual"))
        gap, method = min(bounds, default=(inf, "estimate"))
        if not isfinite(gap):
            size = local.iterate.size
            gap, method = abs(height) + (size * worst if size else inf), "estimate"
        return Certificate(max(0.0, -local.score), height, max(gap, 0.0), method)

    return certify
