"""Bounds on the suboptimality f(x) - f*, each marked as proven or as an estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite, isnan, nan, prod
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import lstsq

from conepursuit.arrays import EPS, Array, Vector, is_finite, magnitude, norm, overlap, quiet
from conepursuit.objectives.base import LARGEST_SCALE, Objective, check_real
from conepursuit.pursuit.domains import Domain
from conepursuit.pursuit.iterate import Iterate, Local
from conepursuit.pursuit.starts import check_fit, point_to_certify
from conepursuit.rounding import product_rounding
from conepursuit.status import Certificate

FIRST_SLACK, ATTEMPTS = 1e-4, 3
"""How far `local_bound` makes atoms with weight ascend, and how often it tries.

At first they ascend by FIRST_SLACK times the steepest of their slopes, plus rounding. While other
atoms still descend that is multiplied by 100, until ATTEMPTS have been made.
"""

UNDERFLOW = 1e-290
"""Added to every gap, since products of tiny numbers may be lost to underflow."""

Certifier: TypeAlias = Callable[..., Certificate]
"""Takes a `Local`, f(x) without the penalty, and how far x may be from the sum of its atoms."""


def certifier(objective: Objective, domain: Domain) -> Certifier:
    """Return the function that certifies the points of one problem.

    Notes
    -----
    With g the gradient, m <= 0 a lower bound on <g, a> over the atoms and lambda the penalty, let
    h = <g, x> + lambda * sum(w). Let t be a positive functional, with <t, a> > 0 on every atom, and
    c >= 0 its shift, so that <g + c t, a> >= -lambda on every atom.

    *radius*: ``h + rho * max(0, -m - lambda)``, where rho bounds the sum of weights of a minimiser;
    or ``h + c <t, x*> <= h + c ||t|| ||x*||``, where the objective bounds ||x*||. Where g is
    a gradient up to an `Objective.imbalance` only, its duality gap takes the place of h.

    *dual*: u = s (g + c t) satisfies <u, a> >= -lambda on every atom for 0 <= s <= 1, and for all s
    without a penalty, so that ``f(x) + lambda * sum(w) + f*(u)`` is a bound. With a penalty
    u = s g serves as well, for s <= lambda / -m, and where no atom descends no t is needed.

    u = 0 is a dual point of every domain; its bound is f(x) minus the infimum of f.

    *estimate*: ``|<g, x>| + ||x|| * max_a (-<g, a> - lambda) / ||a||``, where neither is known. The
    second term is the decrease over a distance ||x|| at the slope of the steepest atom.

    m and c allow for the rounding of the scores. All other rounding is added to every bound
    (`allowance`).
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
        most = value - floor + local.cost  # above the infimum of f, without the rounding of that
        if not isfinite(rough + height + local.score):  # numbers overflow: nothing is proved
            return Certificate(violation, height, most, "estimate", local.accuracy)
        worst = _worst_descent(local, rough, margin)
        shift = 0.0 if t is None else atoms.shift(gradient, local.answer, penalty)
        tilt = shift * t if shift and t is not None else None
        # For a quadratic the norm is enough; entries of other gradients may differ by much.
        size = norm(gradient) + shift * length if objective.quadratic else magnitude(gradient, tilt)
        extra = allowance(objective, penalty, w.x, value, w.size, len(w.weights), size, drift)
        bounds = [(inf, "estimate")]
        beyond = domain.radius * worst if worst else 0.0
        if margin > 0.0:  # the gradient is one of f up to an imbalance only, which has no bound
            dual = objective.duality_gap(w.x, value, gradient, None, 1.0)
            if dual is not None and beyond < inf:
                bounds.append((dual + local.cost + beyond, "radius"))
        elif beyond < inf:
            bounds.append((height + beyond, "radius"))
        if t is not None and margin == 0.0:
            bounds.append((height + (reach * shift if shift else 0.0), "radius"))
        for along, largest in _dual_points(domain, tilt, t is not None, worst):
            if along is not None and objective.imbalance(gradient + along) > 0.0:
                continue  # `duality_gap` would move it, which the shift does not allow for
            dual = objective.duality_gap(w.x, value, gradient, along, largest)
            if dual is not None:
                bounds.append((dual + local.cost, "dual"))
        gap, method = min(bounds)
        gap = max(float(gap), 0.0) + extra
        above = most + extra
        known = local.floor is not None and isfinite(gap)
        if not (known and gap < above):
            guess = likely_gain(local)
            gap, method = (above, "dual") if known or above <= guess else (guess, "estimate")
        if not isfinite(gap):
            gap, method = most, "estimate"
        rounding = extra + min(shift, noise if worst else 0.0) * length * norm(w.x)
        if domain.radius < inf:
            rounding += rough * domain.radius
        return Certificate(
            violation, height, max(float(gap), 0.0), method, local.accuracy, rounding
        )

    return certify


def _worst_descent(local: Local, rough: float, margin: float) -> float:
    """Return how steeply an atom may descend beyond the penalty, 0 if none does.

    `rough` bounds the errors of the scores. They include `margin`, times the length of the atom,
    which is the objective's `imbalance`; the rest is rounding.
    """
    domain = local.domain
    upward = local.score >= 0 and not domain.signed
    if upward and domain.atoms.ascends(local.gradient, local.answer, domain.penalty, margin):
        return 0.0
    least = min(local.score - domain.penalty, 0.0) if local.floor is None else local.floor
    return max(0.0, rough - least - domain.penalty)


def _dual_points(
    domain: Domain, tilt: Array | None, tilted: bool, worst: float
) -> list[tuple[Array | None, float]]:
    """Return the dual points to try, each as what to add to the gradient and the largest scale.

    Parameters
    ----------
    tilt, tilted : array or None, bool
        The multiple of a positive functional that makes no atom descend along the gradient, None
        if nothing has to be added; and whether the atoms have such a functional.
    worst : float
        How steeply atoms may descend beyond the penalty.
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
    """Return an estimate of f(x) - f*, which proves nothing.

    It is |<g, x>|, with the penalty, plus the decrease over a distance ||x|| at the slope of the
    steepest atom; infinite at x = 0 if an atom descends.
    """
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
    A gap is <u, x> plus the excess f(x) + f*(u) - <u, x>. The first term is wrong by the rounding
    of an inner product and by u times the drift, the excess by the objective's `gap_rounding`.
    """
    scale = 1.0 if penalty else LARGEST_SCALE
    rounding = product_rounding(prod(objective.shape)) * overlap(size, x) + overlap(size, drift)
    rounding *= scale
    rounding += 4 * EPS * (1 + count) * penalty * total
    return rounding + objective.gap_rounding(x, value, (1 + scale) * size, drift) + UNDERFLOW


def own_rounding(objective: Objective, x: Array, value: float) -> float:
    """Return the gap that the rounding of f(x) alone may cause at an exact minimiser.

    It is 0 where nothing bounds that rounding, since every gap would be within an infinite one.
    """
    rounding = 2 * (objective.gap_rounding(x, value, 0.0, 0.0) + UNDERFLOW)
    return rounding if isfinite(rounding) else 0.0


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
    step changes their slopes, so that u is a dual point; the oracle is asked whether it is. The
    tilt H A z is zero at entries of x that do not matter, since H is.
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
    slack = FIRST_SLACK * steepest + 4 * noise
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
            bound = max(0.0, gap + local.cost) + extra
            return bound if isfinite(bound) else None
        slack *= 100.0
    return None


LOOSE = 1e3
"""How many times `likely_gain` and rounding the proven gap of a quadratic may be.

`audited` keeps a smaller gap, and tries `local_bound` for a larger one.
"""


@quiet
def certify(
    objective: Objective, domain: Domain, point: Any = None, *, x: Any = None, weights: Any = None
) -> Certificate:
    """Audit anybody's answer from the problem's data alone.

    Parameters
    ----------
    objective, domain
        The problem.
    point : Result, Iterate or array_like
        A result, or x, or the weights of all atoms of a finite set; for an array the shape tells
        which.
    x, weights : array_like
        The same, with a name that says which. The gauge of the atoms tells whether an x lies in
        the domain, which takes a linear programme for a Dictionary; weights need none.

    Returns
    -------
    Certificate
        Recomputed with one call of the oracle; nothing of a solver's bookkeeping is used. Where
        it cannot be told whether x lies in the domain, the gap is an estimate.

    Raises
    ------
    ValueError
        If the point does not lie in the domain, or if f or its gradient is infinite there.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import Cone, Dictionary, LeastSquares, certify
    >>> D = Dictionary([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> round(certify(LeastSquares([2.0, 1.0, 1.0]), Cone(D), weights=[1.0, 1.0]).gap, 12)
    0.0
    """
    check_fit(objective, domain)
    iterate, inside = point_to_certify(objective, domain, point, x, weights)
    value, certificate = audited(objective, domain, iterate)
    if isnan(certificate.violation):
        which = f"the gradient of {objective!r}" if isfinite(value) else repr(objective)
        raise ValueError(
            f"{which} is infinite or NaN at the point given, so that nothing can be said about "
            "it. Give a point inside the domain of the objective."
        )
    return certificate if inside else replace(certificate, method="estimate")


def audited(objective: Objective, domain: Domain, iterate: Iterate) -> tuple[float, Certificate]:
    """Return f(x), with the penalty, and the certificate of an iterate, computed afresh.

    `local_bound` is tried where the gap is not proven, where it is large (`LOOSE`), and where f is
    not quadratic. Where f or its gradient is infinite, nothing is known: the gap is infinite, the
    rest NaN.
    """
    value, gradient = objective.value_and_gradient(iterate.x)
    check_real(value, gradient)
    if not (isfinite(value) and is_finite(gradient)):
        return value + domain.penalty * iterate.size, Certificate(nan, nan, inf, "estimate", nan)
    local, drift = Local(domain, iterate, gradient), iterate.atoms.drift(iterate.weights)
    certificate = certifier(objective, domain)(local, value, drift)
    likely = likely_gain(local) + certificate.rounding
    if not (certificate.proven and objective.quadratic) or certificate.gap > LOOSE * likely:
        gap = local_bound(objective, local, value, drift)
        if gap is not None and (gap < certificate.gap or not certificate.proven):
            certificate = replace(certificate, gap=gap, method="dual")
    return value + local.cost, certificate
