"""How far a fit under one of the `losses` may be from the best one.

With g_i = w_i l'(x_i), every u with <u, a> >= -penalty for each atom a, and u_i = 0 where w_i = 0,
proves

    F(c) - F* <= sum_i w_i (l(x_i) + l*(u_i / w_i) - u_i x_i / w_i) + <u, x> + penalty sum_j c_j.

The points tried are u = s (g + k t), where t has positive inner products with the atoms that g
violates, k is the least shift with which no atom is violated, and s keeps u in the domain of l*.
With a penalty, a small enough s repairs all atoms without a shift. u = 0 is one more point: as no
loss is negative, F(c) itself is a bound.

As in `least_squares.certificate`, an atom counts as violated if it may be so by the rounding of its
products. All other rounding is added to the bound at the end (`allowance`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from conepursuit.arrays import Vector
from conepursuit.kernels.constants import BETA, EPS, KULLBACK_LEIBLER, LOGISTIC
from conepursuit.kernels.least_squares.certificate import least_tilt
from conepursuit.kernels.least_squares.inverse import multiply
from conepursuit.kernels.loss_fits.fit import Fit, Problem, objective, paid, rounding
from conepursuit.kernels.loss_fits.losses import attained, curvature, margin, reach, slope, young
from conepursuit.kernels.shared.rounding import product_rounding
from conepursuit.kernels.shared.triangular import backward_solve, dot, forward_solve

SLIGHT = 1e-8
"""Share of the largest |g_i| up to which the slope of an entry is slight.

Such entries count as separable: x goes to infinity there, and the dual point is set to 0. At other
entries the dual point stays near g_i; see `settle_separable`.
"""

HALVINGS = 30
"""How often the interval is halved in which the best s is sought, at most."""


@njit(cache=True, nogil=True)
def certify(
    P: Problem, S: Fit, passive: int, low: float, enough: float, last: bool
) -> tuple[float, bool, float]:
    """Return a bound of F(c) - F*, whether it is proved up to the `allowance`, and a size.

    The size is a bound on the norms of g and of the dual points tried, which `allowance` needs. A
    bound that is not proved is an estimate.

    Parameters
    ----------
    P, S : Problem, Fit
        With x, g and the derivatives at c.
    passive : int
        How many atoms the factor of the last model holds.
    low : float
        An estimate of F(c) from below. F(c) is a bound as well; it is computed only if `low` is at
        most `enough`, or in the last call.
    enough : float
        Once a bound is at most this, no better one is sought.
    last : bool
        Whether this is the last call for a fit, in which all proofs are tried. Before, a shift is
        tried only if an estimate says that its bound would be at most `enough`; if no bound is, the
        estimate is returned.
    """
    n, slack, cost = len(P.norms) - 1, dot(S.c, S.dual, len(P.norms)), paid(P, S.c)
    size = math.sqrt(dot(S.g, S.g, len(S.g)))
    violation = 0.0
    bound_products(P, S.g, S.descent_error)
    for j in range(n):
        S.descent[j] = -S.dual[j]
        S.descent_error[j] += 4.0 * EPS * P.penalty
        violation = max(violation, S.descent[j] + S.descent_error[j])
    gap, hope = np.inf, np.inf
    if P.penalty > 0.0:
        gap = bound(P, S, 0.0, P.penalty / (P.penalty + violation), slack, cost)
    for attempt in range(3 if P.code == LOGISTIC and last else 2):
        if gap <= enough or (hope < np.inf and not last):
            break
        shift = find_shift(P, S, passive, attempt)
        if shift >= 0.0:
            size = max(size, 4.0 * (size + shift * math.sqrt(dot(S.t, S.t, len(S.t)))))
            hope = slack + shift * dot(S.t, S.x, len(S.t))
            if hope <= enough or last:
                gap = min(gap, best_bound(P, S, shift, slack, cost, enough))
    if not gap <= enough and (last or low <= enough):
        gap = min(gap, objective(P, S))
    if not gap <= enough and (hope == np.inf or not last):
        hope = min(hope, estimate(P, S, slack))
        if hope < gap:
            return hope, False, size
    return max(gap, 0.0), True, size


@njit(cache=True, nogil=True, error_model="numpy")
def allowance(P: Problem, S: Fit, size: float) -> float:
    """Return how far a bound that was computed in double precision may be below the exact one.

    `size` bounds the norms of the gradient and of the dual point. Each entry of the computed x
    differs from the exact one by at most the rounding of a sum of |c_j a_j|. That changes <u, x> by
    u times the difference, and the loss, beyond its tangent, by half its curvature times the square
    of it. The allowance is infinite if the difference is not small against the distance to the end
    of the domain. `pursuit.certify.allowance` does the same for any objective.
    """
    n, m, total, away = len(P.norms), len(S.x), 0.0, 0.0
    S.spread[:] = 0.0
    for j in range(n):
        if S.c[j] != 0.0:
            row, weight = P.rows[j], S.c[j]
            for i in range(m):
                S.spread[i] += weight * abs(row[i])
    noise = product_rounding(n)
    for i in range(m):
        if S.w[i] > 0.0:
            drift, bend = noise * S.spread[i], 1.0
            away += drift**2
            if P.code in (KULLBACK_LEIBLER, BETA) and drift > 0.0:
                room = margin(P.code, P.parameter, S.y[i], S.x[i])
                bend = 1.4 * curvature(P.code, P.parameter, S.y[i], max(S.x[i], drift))
                if not drift <= 0.1 * room:
                    bend = np.inf
            total += S.w[i] * bend * drift**2
    length = math.sqrt(dot(S.x, S.x, m))
    total += size * (product_rounding(m) * length + 3.0 * math.sqrt(away))
    return float(total + 2.0 * rounding(P, S) + 4.0 * EPS * n * paid(P, S.c))


@njit(cache=True, nogil=True)
def bound_products(P: Problem, v: Vector, error: Vector) -> None:
    """Write how far the computed products of the atoms with v may be from the exact ones.

    The rounding is bounded by the product of the norms. For the logistic loss it is bounded by the
    sum of |a_i v_i|, since slopes differ by many orders of magnitude there, and the product of the
    norms may be far too large for an atom that is zero where slopes are large.
    """
    n, m = len(P.norms) - 1, len(v)
    length = math.sqrt(dot(v, v, m))
    for j in range(n):
        error[j] = P.norms[j] * length
        if P.code == LOGISTIC:
            row, error[j] = P.rows[j], 0.0
            for i in range(m):
                error[j] += abs(row[i] * v[i])
        error[j] *= product_rounding(m)


@njit(cache=True, nogil=True)
def find_shift(P: Problem, S: Fit, passive: int, attempt: int) -> float:
    """Write a vector t, and return the least k >= 0 for which g + k t violates no atom; -1 if none.

    Attempt 0 is 1 for every entry with weight. For the logistic loss it is |g|, since its slopes
    may be as small as exp(-x), and the domain of its conjugate ends at 0. Attempt 1 is the
    `functional` of the passive atoms, attempt 2 is `settle_separable`.
    """
    n = len(P.norms) - 1
    if attempt == 2:
        return settle_separable(P, S)
    if attempt == 1:
        functional(P, S, passive)
    else:
        for i in range(len(S.t)):
            S.t[i] = abs(S.g[i]) if P.code == LOGISTIC else (1.0 if S.w[i] > 0.0 else 0.0)
    multiply(P.rows, S.t, n, len(S.t), S.products)
    bound_products(P, S.t, S.products_error)
    return least_tilt(S.descent[:n], S.descent_error[:n], S.products[:n], S.products_error[:n])


@njit(cache=True, nogil=True)
def settle_separable(P: Problem, S: Fit) -> float:
    """Write a t for which g + t is 0 at separable entries and violates no atom; return 1, or -1.

    Separable entries are those of slight slopes (`SLIGHT`). An atom that is zero at all others has
    the product 0 with g + t, exactly. At the other entries t is the least multiple of |g| with
    which no atom is violated. -1 is returned if that is not less than |g|, or if there is a
    penalty.
    """
    n, m, steepest, share, noise = len(P.norms) - 1, len(S.t), 0.0, 0.0, product_rounding(len(S.t))
    for i in range(m):
        steepest = max(steepest, abs(S.g[i]))
    for j in range(n):
        row, total, size = P.rows[j], 0.0, 0.0
        for i in range(m):
            if abs(S.g[i]) > SLIGHT * steepest:
                total += row[i] * S.g[i]
                size += abs(row[i] * S.g[i])
        if size > 0.0:
            share = max(share, (noise * size - total) / ((1.0 - 2.0 * noise) * size))
    for i in range(m):
        slight = abs(S.g[i]) <= SLIGHT * steepest
        S.t[i] = -S.g[i] if slight else share * abs(S.g[i])
    return 1.0 if share < 1.0 and P.penalty == 0.0 else -1.0


@njit(cache=True, nogil=True)
def functional(P: Problem, S: Fit, k: int) -> None:
    """Write t = diag(metric) A z with <t, a> = ||a|| for the passive atoms of the last model."""
    z = np.empty(k)
    for i in range(k):
        z[i] = P.norms[S.members[S.order[i]]]
    forward_solve(S.C, k, z)
    backward_solve(S.C, k, z)
    S.t[:] = 0.0
    for i in range(k):
        row = P.rows[S.members[S.order[i]]]
        for j in range(len(S.t)):
            S.t[j] += z[i] * row[j]
    for j in range(len(S.t)):
        S.t[j] *= S.metric[j]


@njit(cache=True, nogil=True)
def best_bound(P: Problem, S: Fit, shift: float, slack: float, cost: float, enough: float) -> float:
    """Return the bound for the largest s up to 1 or, if that is above `enough`, for the best s.

    The bound is convex in s, so that the best s is found by bisection of its derivative. Without a
    penalty s may be larger than 1.
    """
    most = np.inf
    for i in range(len(S.y)):
        if S.w[i] > 0.0:
            v = slope(P.code, P.parameter, S.y[i], S.x[i]) + shift * S.t[i] / S.w[i]
            most = min(most, reach(P.code, P.parameter, S.y[i], S.x[i], v))
    most *= 1.0 - 4.0 * EPS  # so that rounding does not lead out of the domain
    if not most > 0.0:
        return np.inf
    s = min(most, 1.0)
    best, low, high = bound(P, S, shift, s, slack, cost), 0.0, s
    if best > enough and P.penalty == 0.0 and steepness(P, S, shift, s) < 0.0:
        low, high = s, min(most, 4.0 * s)
    for _ in range(HALVINGS):
        if best <= enough:
            break
        s = 0.5 * (low + high)
        best = min(best, bound(P, S, shift, s, slack, cost))
        if steepness(P, S, shift, s) > 0.0:
            high = s
        else:
            low = s
    return best


@njit(cache=True, nogil=True)
def bound(P: Problem, S: Fit, shift: float, s: float, slack: float, cost: float) -> float:
    """Return the bound of u = s (g + k t), where k is the shift.

    `slack` is <g, x> + penalty sum_j c_j, and `cost` its second term.
    """
    gap, tilted = 0.0, 0.0
    for i in range(len(S.y)):
        if S.w[i] > 0.0:
            tangent, tilt = slope(P.code, P.parameter, S.y[i], S.x[i]), shift * S.t[i]
            change = (s - 1.0) * tangent + s * tilt / S.w[i]
            gap += S.w[i] * young(P.code, P.parameter, S.y[i], S.x[i], change)
            tilted += tilt * S.x[i]
    return gap + s * (slack + tilted) + (1.0 - s) * cost


@njit(cache=True, nogil=True)
def steepness(P: Problem, S: Fit, shift: float, s: float) -> float:
    """Return the derivative of the bound in s: <g + k t, z>, where w l'(z) = s (g + k t)."""
    total = 0.0
    for i in range(len(S.y)):
        if S.w[i] > 0.0:
            v = slope(P.code, P.parameter, S.y[i], S.x[i]) + shift * S.t[i] / S.w[i]
            if v != 0.0:
                total += S.w[i] * v * attained(P.code, P.parameter, S.y[i], s * v)
    return total


@njit(cache=True, nogil=True)
def estimate(P: Problem, S: Fit, slack: float) -> float:
    """Return an estimate of F(c) - F*, not a bound: |slack| + length * max_j -dual_j / ||a_j||.

    The second term is the gain along the steepest atom on the way to a fit of that length, which is
    the norm of x, or of the fit that the last model proposed if that is longer.
    """
    steepest = 0.0
    for j in range(len(P.norms) - 1):
        if S.dual[j] < 0.0:
            steepest = max(steepest, -S.dual[j] / P.norms[j])
    square = max(dot(S.x, S.x, len(S.x)), dot(S.ahead, S.ahead, len(S.ahead)))
    return abs(slack) + steepest * math.sqrt(square)
