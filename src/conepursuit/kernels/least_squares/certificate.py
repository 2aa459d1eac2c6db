"""How far a non-negative least-squares fit may be from the best one, rounding included.

With r = b - A x, every u with A'u <= 0 proves f* >= <u, b> - 1/2 ||u||^2, and so

    f(x) - f* <= sum_j x_j (-<a_j, u>) + 1/2 ||r - u||^2.

Here u = q - v t. The vector q is the residual as computed, t has positive inner products with the
atoms that q violates, and v is the least number with which no atom is violated. Everything that is
computed on the way comes with a bound on its error (`rounding`): products with q and with t, and
the distance ||r - q||. Errors always count against the proof: an atom counts as satisfied only
if <a, q> + error <= v (<a, t> - error), and all errors are added to the bound.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import EPS
from conepursuit.kernels.least_squares.refinement import accurate_slopes
from conepursuit.kernels.shared.rounding import (
    doubled_rounding,
    lane_rounding,
    product_rounding,
    resolution,
)
from conepursuit.kernels.shared.triangular import backward_solve, dot, forward_solve
from conepursuit.rounding import FLOOR, LANES, UNIT

EXACT = 1e-12
"""Share of ||b||^2 up to which f(x) itself is returned as a bound, which f* >= 0 proves.

For a larger f(x), an estimate that is less takes its place if no other proof is better than f(x).
"""


@njit(cache=True, nogil=True)
def least_tilt(g: Vector, g_error: Vector, s: Vector, s_error: Vector) -> float:
    """Return the least v >= 0 with g <= v s whatever the errors of g and s; -1 if there is none."""
    v = 0.0
    for j in range(len(g)):
        need = g[j] + g_error[j]
        if not need <= 0.0:
            firm = s[j] - s_error[j]
            if not (firm > 0.0 and need < np.inf):
                return -1.0
            v = max(v, need / firm)
    v *= 1.0 + 8.0 * EPS
    for j in range(len(g)):
        firm = s[j] - s_error[j]
        if firm < 0.0 and g[j] + g_error[j] > (1.0 + 8.0 * EPS) * v * firm:
            return -1.0
    return v


@njit(cache=True, nogil=True)
def tilted_gap(
    g: Vector,
    g_error: Vector,
    s: Vector,
    s_error: Vector,
    x: Vector,
    length: float,
    distance: float,
) -> float:
    """Return the bound on f(x) - f* that u = q - v t proves for the least v; inf if none does.

    q is the computed residual, t a vector, and v the least number for which A'u <= 0.

    Parameters
    ----------
    g, g_error : arrays of shape (n,)
        A'q as computed, and how far each entry may be from the exact one.
    s, s_error : arrays of shape (n,)
        The same of A't.
    x : array of shape (n,)
        The weights.
    length, distance : float
        Upper bounds of ||t|| and of ||r - q||.
    """
    v = least_tilt(g, g_error, s, s_error)
    if v < 0.0:
        return np.inf
    total = 0.0
    for j in range(len(g)):
        if x[j] > 0.0:
            size = abs(g[j]) + v * abs(s[j])
            total += x[j] * (v * (s[j] + s_error[j]) - g[j] + g_error[j] + 4.0 * EPS * size)
    total += 0.5 * (distance + v * length) ** 2
    return float(total * (1.0 + product_rounding(len(g))))


@njit(cache=True, nogil=True)
def settled(
    gap: float, g: Vector, norms: Vector, x: Vector, length: float, size: float
) -> tuple[float, bool]:
    """Return a bound on f(x) - f* that is proved, or else an estimate; and whether it is proved.

    `gap` is a proved bound, or inf. As f* >= 0, f(x) is another. The smaller one is returned if it
    is `gap`, or if f(x) is at most the share `EXACT` of ||b||^2. Otherwise the estimate
    |<r, A x>| + ||b|| max_j <a_j, r> / ||a_j|| is returned, if it is less than f(x): the gain along
    the steepest atom on the way to a fit no longer than b. `length` is an upper bound of ||r||,
    `size` is ||b||.
    """
    value = (0.5 + 4.0 * EPS) * length**2
    if gap < value or value <= EXACT * size**2:
        return min(gap, value), True
    steepest, height = 0.0, 0.0
    for j in range(len(g)):
        if norms[j] > 0.0:
            steepest = max(steepest, g[j] / norms[j])
        height += x[j] * g[j]
    guess = abs(height) + steepest * size
    return (value, True) if value <= guess else (guess, False)


@njit(cache=True, nogil=True)
def lane_slopes(atoms: Array, order: Array, k: int, r: Vector, lanes: Vector, g: Vector) -> None:
    """Write <a, r> for the first k atoms in `order`, summed in 16 lanes, into their places in g.

    `lanes` is memory for 16 numbers. The error is at most that of `rounding.lane_rounding`.
    """
    m = len(r)
    whole = m - m % LANES
    for i in range(k):
        row = atoms[order[i]]
        for p in range(LANES):
            lanes[p] = 0.0
        for start in range(0, whole, LANES):
            for p in range(LANES):
                lanes[p] += row[start + p] * r[start + p]
        for p in range(m - whole):
            lanes[p] += row[whole + p] * r[whole + p]
        for p in range(8):
            lanes[p] += lanes[p + 8]
        for p in range(4):
            lanes[p] += lanes[p + 4]
        g[order[i]] = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])


@njit(cache=True, nogil=True)
def double_slopes(
    atoms: Array,
    r: Vector,
    norms: Vector,
    length: float,
    inexact: float,
    g: Vector,
    g_error: Vector,
) -> None:
    """Compute the slopes that are close to zero again, in twice the precision.

    g is A'r, with errors of at most `g_error`; both are overwritten. A slope is close to zero if it
    is at most 64 times its error; others stay as they are. `length` is an upper bound of ||r||,
    `inexact` one of the relative error of the entries of the atoms.
    """
    close, k = np.empty(len(g), np.int64), 0
    noise = (doubled_rounding(len(r)) + inexact) * length
    for j in range(len(g)):
        if abs(g[j]) <= 64.0 * g_error[j]:
            close[k] = j
            k += 1
    exact = np.empty(k)
    accurate_slopes(atoms, close, k, r, exact)
    for i in range(k):
        j = close[i]
        g[j], g_error[j] = exact[i], 2.0 * UNIT * abs(exact[i]) + noise * norms[j]


@njit(cache=True, nogil=True)
def functional(atoms: Array, norms: Vector, order: Array, k: int, C: Array, t: Vector) -> None:
    """Write the t in the span of the first k atoms in `order` with <t, a> = ||a|| for each of them.

    C is the factor of their Gram matrix. t is only as accurate as C, so that proofs use its
    computed products with the atoms, not ||a||.
    """
    z = np.empty(k)
    for i in range(k):
        z[i] = norms[order[i]]
    forward_solve(C, k, z)
    backward_solve(C, k, z)
    t[:] = 0.0
    for i in range(k):
        column = atoms[order[i]]
        for j in range(len(t)):
            t[j] += z[i] * column[j]


@njit(cache=True, nogil=True)
def functional_gap(
    atoms: Array, norms: Vector, t: Vector, g: Vector, g_error: Vector, x: Vector, distance: float
) -> float:
    """Return `tilted_gap` for a functional t; inf where t is not finite."""
    length = 1.01 * np.sqrt(dot(t, t, len(t)))
    if not length < np.inf:
        return np.inf
    s = np.dot(atoms, t)
    return tilted_gap(g, g_error, s, product_rounding(len(t)) * length * norms, x, length, distance)


@njit(cache=True, nogil=True)
def certify(
    atoms: Array,
    b: Vector,
    x: Vector,
    order: Array,
    k: int,
    C: Array,
    r: Vector,
    distance: float,
    norms: Vector,
    sums: Vector,
    inexact: float,
    g: Vector,
) -> tuple[float, bool]:
    """Return a bound on f(x) - f*, or an estimate of it, and whether it is proved.

    The least of these bounds counts: that of the residual tilted along the vector of ones; that of
    the residual tilted along the functional of the atoms with weight; and f(x) itself, as f* >= 0.
    If the first two are above the `resolution`, they are computed again from more accurate slopes
    (`double_slopes`).

    Parameters
    ----------
    order, k, C : array, int, array
        The first k atoms in `order` are those with weight, C is the factor of their Gram matrix.
    r, distance : array of shape (m,), float
        The residual as computed, and a bound on its distance from b - A x.
    norms, sums : arrays of shape (n,)
        The norms of the atoms, and the sums of their entries.
    inexact : float
        A bound on the relative error of the entries of atoms and target, which is not zero if they
        were multiplied by the roots of row weights.
    g : array of shape (n,)
        A'r; slopes of atoms with weight are computed again, more accurately.
    """
    m, size = len(r), np.sqrt(dot(b, b, len(b)))
    length = (1.0 + product_rounding(m)) * np.sqrt(dot(r, r, m)) + FLOOR * size
    enough = 0.5 * resolution(m) * size**2
    lane_slopes(atoms, order, k, r, np.empty(LANES), g)
    g_error = product_rounding(m) * length * norms
    fine = min(lane_rounding(m), product_rounding(m)) * length
    for i in range(k):
        g_error[order[i]] = fine * norms[order[i]]
    t = np.ones(m)
    s_error = product_rounding(m) * np.sqrt(m) * norms
    gap = tilted_gap(g, g_error, sums, s_error, x, np.sqrt(m), distance)
    if not gap <= enough and k > 0:
        functional(atoms, norms, order, k, C, t)
        gap = min(gap, functional_gap(atoms, norms, t, g, g_error, x, distance))
    if not gap <= enough:
        double_slopes(atoms, r, norms, length, inexact, g, g_error)
        gap = min(gap, tilted_gap(g, g_error, sums, s_error, x, np.sqrt(m), distance))
        if k > 0:
            gap = min(gap, functional_gap(atoms, norms, t, g, g_error, x, distance))
    return settled(gap, g, norms, x, length + distance, size)
