"""Newton steps on an active set for the objective F of `fit`.

A step minimises a quadratic model of F over c >= 0, among the atoms that have weight and those that
descend, and searches the line to its solution; F never rises. The fall of F is summed from
divergences, in which nothing cancels, and not computed as a difference of values.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from conepursuit.kernels.constants import (
    BETA,
    CONVERGED,
    EPS,
    KULLBACK_LEIBLER,
    MAX_STEPS,
    OPTIMAL,
    STALLED,
)
from conepursuit.kernels.least_squares.inverse import PURSUING, multiply
from conepursuit.kernels.loss_fits.certificate import allowance, certify
from conepursuit.kernels.loss_fits.fit import Fit, Problem, combine, differentiate, inside, rounding
from conepursuit.kernels.loss_fits.losses import chord, curvature, divergence, margin, slope
from conepursuit.kernels.shared.quadratic_programs import solve
from conepursuit.kernels.shared.triangular import dot

LEVELLED = 0.1
"""Slope of F at the end of a step, relative to the size of its slope at the start of the line.

A step at which F has fallen is accepted if it is at most this; if F rises more steeply, a shorter
step is tried.
"""

SHORE = 0.01
"""Share of its distance to the end of the domain that an entry with y > 0 keeps in a step.

A step that would leave less is shortened: next to the end, Newton's method only doubles x in a
step. An entry with y = 0 may go to the end.
"""

DRIFT = 1e-6
"""Share of F at the start by which the fall of F, summed over the steps, may be wrong."""

POLISH = 4
"""A fit ends after so many steps that neither lower F by more than rounding nor halve the gap."""


@njit(cache=True, nogil=True)
def bend(P: Problem, S: Fit, share: float, cautious: bool) -> float:
    """Write the curvatures of the model as `metric`; return the rounding of slopes against them.

    They lie between those of the loss, w l''(x), at `share` 0, and those of its chords, which take
    account of the loss further away, at `share` 1. A `cautious` model is nowhere less curved than
    the loss. By the inequality of Cauchy and Schwarz the rounding of <a, g> is at most the returned
    number times the length of a in the metric.
    """
    least, square = 0.0, 0.0
    if P.code in (KULLBACK_LEIBLER, BETA):  # at x = 0 and y = 0 curvatures are not finite
        least = 1e-9 * np.max(S.x)
    for i in range(len(S.y)):
        S.metric[i] = 0.0
        if S.w[i] > 0.0:
            x = max(S.x[i], least) if S.y[i] == 0.0 else S.x[i]
            bent = curvature(P.code, P.parameter, S.y[i], x)
            if share > 0.0:
                more = chord(P.code, P.parameter, S.y[i], x) - bent
                bent += share * (max(more, 0.0) if cautious else more)
            S.metric[i] = S.w[i] * bent
            if S.metric[i] > 0.0:
                square += S.g[i] ** 2 / S.metric[i]
    return 4.0 * EPS * math.sqrt(square)


@njit(cache=True, nogil=True)
def gather(P: Problem, S: Fit) -> int:
    """List the atoms that have weight or descend, with their weights; return how many they are.

    An atom descends if its slope, a sum of terms g_i a_i, is above the rounding of that sum. The
    rounding is bounded by the product of the norms and, only where the slope is below that, by the
    sum of |g_i a_i|. The latter is much less where entries have little weight or none, or an atom
    is small where g is large. The sum of all atoms is listed only if it has weight.
    """
    k, noise = 0, 4.0 * EPS * math.sqrt(dot(S.g, S.g, len(S.g)))
    last = len(P.norms) - 1
    for j in range(last + 1):
        least = -S.dual[j] - 4.0 * EPS * P.penalty
        descends = least > noise * P.norms[j]
        if not descends and least > 0.0 and S.c[j] == 0.0:
            total, row = 0.0, P.rows[j]
            for i in range(len(S.g)):
                total += abs(S.g[i] * row[i])
            descends = least > 4.0 * EPS * total
        if S.c[j] > 0.0 or (descends and j < last):
            S.members[k], S.v[k], S.descent[k] = j, S.c[j], S.dual[j]
            k += 1
    return k


@njit(cache=True, nogil=True)
def build(P: Problem, S: Fit, k: int) -> None:
    """Write the Hessian of the model, A' diag(metric) A, for its k members."""
    if len(P.gram):
        for a in range(k):
            for b in range(k):
                S.Q[a, b] = P.gram[S.members[a], S.members[b]]
        return
    count = 0
    for i in range(len(S.metric)):
        if S.metric[i] > 0.0:
            S.t[count] = math.sqrt(S.metric[i])
            S.where[count] = i
            count += 1
    for a in range(k):
        row, scaled = P.rows[S.members[a]], S.B[a]
        for i in range(count):
            scaled[i] = S.t[i] * row[S.where[i]]
    for a in range(k):
        multiply(S.B, S.B[a], a + 1, count, S.Q[a])
        for b in range(a):
            S.Q[b, a] = S.Q[a, b]


@njit(cache=True, nogil=True)
def look_ahead(P: Problem, S: Fit, k: int) -> tuple[float, float]:
    """Write the fit of the weights v as `ahead`; return the slopes of F and the penalty to it."""
    steep, dearer = 0.0, 0.0
    S.ahead[:] = 0.0
    for a in range(k):
        atom, weight = S.members[a], S.v[a]
        steep += (weight - S.c[atom]) * S.dual[atom]
        dearer += (weight - S.c[atom]) * P.prices[atom]
        if weight != 0.0:
            row = P.rows[atom]
            for i in range(len(S.x)):
                S.ahead[i] += weight * row[i]
    return steep, dearer


@njit(cache=True, nogil=True, error_model="numpy")
def search(P: Problem, S: Fit, steep: float, dearer: float) -> tuple[float, float]:
    """Return the share of the way from x to the fit ahead to go, and by how much F falls.

    `steep` is the slope of F at x, `dearer` that of the penalty. With the divergence D from x, F
    falls by -step steep - D. A step is accepted if D is at most nine tenths of -step steep, or if F
    has fallen and its slope is about level at the end of the step (`LEVELLED`). The second test
    serves where the slope at x says little about F further on. Otherwise Newton's method for the
    least F on the line proposes a shorter step. If no step is accepted, 0 is returned.
    """
    code, parameter, step = P.code, P.parameter, 1.0
    for i in range(len(S.y)):
        if S.w[i] > 0.0:
            room = margin(code, parameter, S.y[i], S.x[i])
            left = margin(code, parameter, S.y[i], S.ahead[i])
            if left < room and not left > (SHORE * room if S.y[i] > 0.0 else 0.0):
                step = min(step, (1.0 - SHORE) * room / (S.x[i] - S.ahead[i]))
    for _ in range(60):
        rise = 0.0
        for i in range(len(S.y)):
            if S.w[i] > 0.0:
                x = (1.0 - step) * S.x[i] + step * S.ahead[i]
                rise += S.w[i] * divergence(code, parameter, S.y[i], x, S.x[i])
        if rise <= -0.9 * step * steep:
            return step, -step * steep - rise
        tangent, bent = dearer, 0.0
        for i in range(len(S.y)):
            if S.w[i] > 0.0:
                x, move = (1.0 - step) * S.x[i] + step * S.ahead[i], S.ahead[i] - S.x[i]
                tangent += S.w[i] * slope(code, parameter, S.y[i], x) * move
                bent += S.w[i] * curvature(code, parameter, S.y[i], x) * move**2
        gain = -step * steep - rise
        if tangent <= -LEVELLED * steep and gain > 64.0 * EPS * abs(steep):
            return step, gain
        newton = step - tangent / bent if bent > 0.0 else 0.0
        step = min(max(newton, 0.1 * step), 0.9 * step)
    return 0.0, 0.0


@njit(cache=True, nogil=True)
def advance(P: Problem, S: Fit, k: int, step: float) -> float:
    """Move c by the step, and write x; shorten it if rounding would lead x out of the domain.

    Returns
    -------
    float
        The share of the step that was made. As F is convex, at least this share of its fall is
        kept.
    """
    for a in range(k):
        S.descent[a] = S.c[S.members[a]]
    share = 1.0
    while True:
        part = share * step
        for a in range(k):
            before, after = S.descent[a], S.v[a]
            S.c[S.members[a]] = after if part == 1.0 else (1.0 - part) * before + part * after
        combine(P, S.c, S.x)
        if inside(P, S) or share == 0.0:
            return share
        share = 0.9 * share if share > EPS else 0.0


@njit(cache=True, nogil=True)
def pursue(
    P: Problem, S: Fit, tol: float, max_steps: int, start: float, fall: float
) -> tuple[int, float, bool, int]:
    """Make Newton steps from c until the gap is at most tol times the fall of F, or its rounding.

    Parameters
    ----------
    start, fall : float
        F where its fall is measured from, and by how much F is less at c.

    Returns
    -------
    int, float, bool, int
        Why it ended, the gap, whether that is proved, and the number of steps.
    """
    steps, passive, idle, code, share, cautious = 0, 0, 0, PURSUING, 1.0, False
    gap, proven, best, noise, enough, size = np.inf, False, np.inf, 0.0, 0.0, 0.0
    while code == PURSUING:
        differentiate(P, S)
        noise = rounding(P, S)
        enough = max(tol * fall, noise)
        low = (1.0 - DRIFT) * start - fall
        gap, proven, size = certify(P, S, passive, low, enough, False)
        if gap < 0.5 * best:
            best, idle = gap, 0
        if gap <= enough and proven:
            code = CONVERGED
        elif steps >= max_steps:
            code = MAX_STEPS
        else:
            tolerance = bend(P, S, share, cautious)
            k = gather(P, S)
            build(P, S, k)
            passive = solve(S.Q, S.descent[:k], S.v[:k], S.C, S.order, 0, False, tolerance)
            steep, dearer = look_ahead(P, S, k)
            step, gain = 0.0, 0.0
            if steep < 0.0 and idle < POLISH:
                step, gain = search(P, S, steep, dearer)
                fall += gain * advance(P, S, k, step)
            if gain == 0.0:
                code = STALLED if steep < -noise else OPTIMAL
            idle = idle + 1 if gain < noise else 0
            cautious |= step < 1.0
            share = 0.1 * share if step == 1.0 else min(1.0, 2.0 * share)
            steps += step > 0.0
    if code != CONVERGED:
        gap, proven, size = certify(P, S, passive, 0.0, enough, True)
        if gap <= enough and (proven or code == OPTIMAL):
            code = CONVERGED
    if proven:
        gap += allowance(P, S, size)
        proven = gap < np.inf
    return code, gap, proven, steps
