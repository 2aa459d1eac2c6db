"""Minimise the loss of a non-negative combination of atoms, for many targets.

The objective F is that of `fit`, the steps are those of `newton`.

Where F or its gradient is not finite at c = 0, a fit starts at a multiple of the sum of all atoms.
They are scaled to about the same length first, so that a long one does not hide the others. The sum
is kept as one more atom, after the others, and loses its weight to them like any other. So the
models have few atoms from the first step on.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import INFEASIBLE, KULLBACK_LEIBLER, ONE_SIDED, SQUARED
from conepursuit.kernels.least_squares.inverse import WIDTH, aligned, padded
from conepursuit.kernels.loss_fits.fit import (
    Fit,
    Problem,
    combine,
    empty_fit,
    inside,
    objective,
    paid,
)
from conepursuit.kernels.loss_fits.losses import loss
from conepursuit.kernels.loss_fits.newton import bend, build, pursue

SHARED = 1024
"""Up to this many atoms a Hessian that all targets share is computed once; else in every step."""

HIGHEST = 1e300
"""The largest price of the sum of all atoms; an infinite one times a weight of 0 would be NaN."""

MOST = 1000
"""The largest exponent of two by which an atom is scaled; a shorter atom stays shorter than 1."""

LEAST_SCALE = 1e-6
"""The least start, as a share of the best multiple without a penalty; see `scale`.

Where the penalty asks for a smaller multiple, this one is taken.
"""


@njit(cache=True, nogil=True)
def fit_losses(
    code: int,
    parameter: float,
    atoms: Array,
    targets: Array,
    entry_weights: Array,
    penalty: float,
    tol: float,
    max_steps: int,
    c: Array,
    dual: Array,
    value: Vector,
    gap: Vector,
    proven: Array,
    status: Array,
    n_iter: Array,
) -> None:
    """Minimise F for every row of `targets`; c, dual and the rest are written, a row for each.

    Parameters
    ----------
    code, parameter : int, float
        The loss, as in `losses`.
    atoms, targets : arrays of shape (n, m) and (T, m)
        Contiguous.
    entry_weights : array of shape (T, m) or (1, m)
        Non-negative; an entry of weight 0 does not count.
    penalty : float
        The price of a unit of weight.
    tol : float
        A fit ends when its gap is at most `tol` times what F has lost since the start.
    max_steps : int
        How many Newton steps a target may take.
    c : array of shape (T, n)
        On entry the weights to start from, or zeros; on return the solution.
    dual : array of shape (T, n)
        The derivative of F by each weight.
    value, gap, proven : arrays of shape (T,)
        F, a bound of F - F*, and whether that is proved.
    status, n_iter : arrays of shape (T,)
        CONVERGED; OPTIMAL if rounding leaves no descent, though the gap is larger; STALLED,
        MAX_STEPS, or INFEASIBLE, when F is infinite and c zero; and the number of Newton steps.
    """
    P, touched = share(code, parameter, atoms, entry_weights, penalty)
    n, m = atoms.shape
    S, free, none, shares = empty_fit(n, m), np.zeros(n + 1), np.empty((0, 0)), np.zeros(n)
    positive = Problem(ONE_SIDED, 0.0, 0.0, P.rows, P.norms, free, none)
    for i in range(len(targets)):
        weights = entry_weights[i % len(entry_weights)]
        constant = load(P, S, targets[i], weights, touched)
        if i < len(entry_weights):
            measure(P, S, shares)
        known = constant < np.inf
        if known and not begin(P, S):
            half = level(S)
            pursue(positive, S, 0.4 / half, max_steps, half, 0.0)
            load(P, S, targets[i], weights, touched)
            known = scale(P, S)
        if known:
            start = objective(P, S)
            fall = resume(P, S, c[i], start)
            status[i], gap[i], proven[i], n_iter[i] = pursue(P, S, tol, max_steps, start, fall)
            value[i] = objective(P, S) + constant
        else:
            S.c[:], S.dual[:] = 0.0, np.nan
            status[i], gap[i], proven[i], n_iter[i], value[i] = INFEASIBLE, np.inf, False, 0, np.inf
        for j in range(n):
            c[i, j], dual[i, j] = S.c[j] + S.c[n] * shares[j], S.dual[j]


@njit(cache=True, nogil=True)
def share(
    code: int, parameter: float, atoms: Array, entry_weights: Array, penalty: float
) -> tuple[Problem, Array]:
    """Return the problem that targets share, and for each entry whether an atom is not zero there.

    The norms and the sum of all atoms are left to `measure`.
    """
    n, m = atoms.shape
    rows, norms, prices = (
        aligned(padded(n + 1) + WIDTH, padded(m)),
        np.zeros(n + 1),
        np.zeros(n + 1),
    )
    touched = np.zeros(m, np.bool_)
    for j in range(n):
        prices[j] = penalty
        for i in range(m):
            rows[j, i] = atoms[j, i]
            touched[i] |= atoms[j, i] != 0.0
    P = Problem(code, parameter, penalty, rows, norms, prices, np.empty((0, 0)))
    if code == SQUARED and len(entry_weights) == 1 and n <= SHARED:
        S = empty_fit(n, m)
        for i in range(m):
            S.w[i] = entry_weights[0, i] if touched[i] else 0.0
        bend(P, S, 0.0, False)
        for j in range(n):
            S.members[j] = j
        build(P, S, n)
        P = Problem(code, parameter, penalty, rows, norms, prices, S.Q)
    return P, touched


@njit(cache=True, nogil=True)
def measure(P: Problem, S: Fit, shares: Vector) -> None:
    """Write the norms of the atoms over the entries with weight, and the sum of all atoms into P.

    `shares` receives the weights of the atoms in that sum: powers of two that bring them to about
    length 1, and 0 for zero atoms.
    """
    n, width = len(shares), len(S.w)
    P.rows[n], P.prices[n] = 0.0, 0.0
    for j in range(n):
        P.norms[j], shares[j] = length(P.rows[j], S.w), 0.0
        if P.norms[j] > 0.0:
            shares[j] = math.ldexp(1.0, min(-math.frexp(P.norms[j])[1], MOST))
        for i in range(width):
            P.rows[n, i] += shares[j] * P.rows[j, i]
        P.prices[n] = min(P.prices[n] + shares[j] * P.penalty, HIGHEST)
    P.norms[n] = length(P.rows[n], S.w)


@njit(cache=True, nogil=True)
def length(row: Vector, weights: Vector) -> float:
    """Return the norm over the entries with weight; squares do not overflow or underflow."""
    largest, total = 0.0, 0.0
    for i in range(len(row)):
        if weights[i] > 0.0:
            largest = max(largest, abs(row[i]))
    if largest > 0.0:
        for i in range(len(row)):
            if weights[i] > 0.0:
                total += (row[i] / largest) ** 2
    return largest * math.sqrt(total)


@njit(cache=True, nogil=True)
def load(P: Problem, S: Fit, target: Vector, weights: Vector, touched: Array) -> float:
    """Copy a target into S; return the loss of the entries at which all atoms are zero.

    There x = 0 whatever the weights c are, and S gives these entries the weight 0. Their loss is
    infinite if that of one of them is at x = 0.
    """
    constant = 0.0
    for i in range(len(target)):
        S.y[i], S.w[i] = target[i], weights[i] if touched[i] else 0.0
        if weights[i] > 0.0 and not touched[i]:
            constant += weights[i] * loss(P.code, P.parameter, target[i], 0.0)
    return constant


@njit(cache=True, nogil=True)
def resume(P: Problem, S: Fit, given: Vector, start: float) -> float:
    """Take the given weights if F is at most `start` there; return by how much it is less.

    Otherwise, or if all of them are zero, keep the present weights and return 0.
    """
    n, total = len(given), 0.0
    for j in range(n):
        S.v[j], S.c[j] = S.c[j], given[j]
        total += given[j]
    S.v[n], S.c[n] = S.c[n], 0.0
    combine(P, S.c, S.x)
    fall = start - objective(P, S) if total > 0.0 and inside(P, S) else -1.0
    if not fall >= 0.0:
        fall = 0.0
        for j in range(n + 1):
            S.c[j] = S.v[j]
        combine(P, S.c, S.x)
    return fall


@njit(cache=True, nogil=True)
def begin(P: Problem, S: Fit) -> bool:
    """Start at 0 or at a multiple of the sum of all atoms; False if neither is in the domain."""
    S.c[:], S.x[:] = 0.0, 0.0
    if inside(P, S):
        return True
    S.c[len(P.norms) - 1] = 1.0
    return scale(P, S)


@njit(cache=True, nogil=True)
def level(S: Fit) -> float:
    """Set up a one-sided fit that looks for an x > 0; return its loss at c = 0.

    The loss is sum_i min(x_i - 1, 0)^2 / 2 over the entries with weight. If it is less than 1/2,
    all of these x_i are positive. If any combination of the atoms is positive there, a multiple of
    it has the loss 0.
    """
    total = 0.0
    S.c[:], S.x[:] = 0.0, 0.0
    for i in range(len(S.y)):
        S.y[i] = 1.0
        if S.w[i] > 0.0:
            S.w[i] = 1.0
            total += 0.5
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def scale(P: Problem, S: Fit) -> bool:
    """Multiply c by the factor that minimises F and write x; False if x is not in the domain.

    With z the present fit, the factor f is the root of
    ``f^(b-1) sum w z^b + cost = f^(b-2) sum w y z^(b-1)``, where b = 1 for the Kullback-Leibler
    loss. The difference of the logarithms of the two sides is convex and increasing in log f, so
    that Newton's method does not overshoot. For b > 1, f is at least `LEAST_SCALE` times the best
    factor without a penalty: from an x next to zero, Newton steps in c would take long to lead
    away.
    """
    combine(P, S.c, S.x)
    if not inside(P, S):
        return False
    power = 1.0 if P.code == KULLBACK_LEIBLER else P.parameter
    grown, shrunk, cost = 0.0, 0.0, paid(P, S.c)
    for i in range(len(S.y)):
        if S.w[i] > 0.0 and S.x[i] > 0.0:
            grown += S.w[i] * S.x[i] ** power
            shrunk += S.w[i] * S.y[i] * S.x[i] ** (power - 1.0)
    factor = shrunk / (grown + cost)
    if power > 1.0:
        s = np.log(shrunk / grown)
        least = s + np.log(LEAST_SCALE)
        for _ in range(50 if cost > 0.0 else 0):
            rising = grown * np.exp((power - 1.0) * s)
            miss = np.log((rising + cost) / shrunk) + (2.0 - power) * s
            s -= miss / ((power - 1.0) * rising / (rising + cost) + 2.0 - power)
        factor = np.exp(max(s, least))
    for j in range(len(P.prices)):
        S.c[j] *= factor
    combine(P, S.c, S.x)
    return True
