"""How far a non-negative least-squares fit may be from the best one.

With r = b - A x, every u with A'u <= 0 proves f* >= <u, b> - 1/2 ||u||^2. If t has positive inner
products with the atoms that r violates, u = r - v t is such a vector for a small v.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.factor import backward_solve, dot, forward_solve


@njit(cache=True, nogil=True)
def tilt(g: Vector, sums: Vector) -> float:
    """Return the least v >= 0 with g - v * sums <= 0, where g = A'r and sums = A't; -1 if none."""
    v = 0.0
    for j in range(len(g)):
        if not g[j] <= 0.0:
            if not (sums[j] > 0.0 and g[j] > 0.0):
                return -1.0
            v = max(v, g[j] / sums[j])
    if v > 0.0:
        for j in range(len(g)):
            if sums[j] < 0.0 and g[j] > v * sums[j]:
                return -1.0
    return v


@njit(cache=True, nogil=True)
def bound(r: Vector, fitted: Vector, t: Vector, v: float) -> tuple[float, bool]:
    """Return f(x) minus the dual value of r - v t, or f(x) if that is less, and that it is proved.

    With fitted = A x it is ``-<r, A x> + v <t, A x> + v^2/2 ||t||^2``, in which nothing cancels.
    """
    m = len(r)
    gap = v * (dot(t, fitted, m) + 0.5 * v * dot(t, t, m)) - dot(r, fitted, m)
    return max(0.0, min(gap, 0.5 * dot(r, r, m))), True


@njit(cache=True, nogil=True)
def estimate(g: Vector, inverse_norms: Vector, r: Vector, fitted: Vector) -> tuple[float, bool]:
    """Return |<r, A x>| + ||b|| max_j <a_j, r> / ||a_j||, which is not a proof.

    It is what would be gained along the steepest atom on the way to a fit no longer than b. Where
    f(x) is less, that is the bound, and it is proved, as f* >= 0.
    """
    m, steepest, square = len(r), 0.0, 0.0
    for i in range(m):
        square += (r[i] + fitted[i]) ** 2
    for j in range(len(g)):
        steepest = max(steepest, g[j] * inverse_norms[j])
    gap = abs(dot(r, fitted, m)) + steepest * np.sqrt(square)
    value = 0.5 * dot(r, r, m)
    return min(gap, value), value <= gap


@njit(cache=True, nogil=True)
def functional(
    atoms: Array, inverse_norms: Vector, order: Array, k: int, C: Array, t: Vector
) -> None:
    """Write the t in the span of the passive atoms with <t, a> = ||a|| for each of them."""
    z = np.empty(k)
    for i in range(k):
        z[i] = 1.0 / inverse_norms[order[i]]
    forward_solve(C, k, z)
    backward_solve(C, k, z)
    t[:] = 0.0
    for i in range(k):
        column = atoms[order[i]]
        for j in range(len(t)):
            t[j] += z[i] * column[j]
