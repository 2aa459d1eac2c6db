"""The active set for one of many targets, with an explicit inverse.

The inverse H of the Gram matrix of the passive atoms, those that may have weight, is kept: adding
and removing an atom are then updates of rank one, which run faster than solves with short
triangles.

The inner functions call only functions that are inlined, and return only at their end: otherwise
numba counts references to each of their arrays, atomically, which costs as much as the arithmetic.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import (
    ILL_CONDITIONED,
    MAX_ATOMS,
    MAX_STEPS,
    OPTIMAL,
    STALLED,
)
from conepursuit.kernels.shared.triangular import REORDERED

PURSUING = -2
"""The code of a fit that has not ended."""

SHARE = 0.7
"""Atoms enter with the steepest one if their slopes are at least this share of its; others wait."""

LANES, WIDTH = 4, 8
"""Rows that a product with a vector treats together, and numbers in a vector register.

Loops run over multiples of the width, so that there is no remainder; zeros follow the entries in
use.
"""


@njit(cache=True, nogil=True)
def padded(n: int) -> int:
    """Return n, rounded up to a multiple of the width."""
    return (n + WIDTH - 1) >> 3 << 3


@njit(cache=True, nogil=True)
def aligned(rows: int, width: int) -> Array:
    """Return zeros; every row begins at a line of the cache if `width` is a multiple of WIDTH."""
    memory = np.zeros(rows * width + WIDTH)
    first = -(memory.ctypes.data >> 3) % WIDTH
    return memory[first : first + rows * width].reshape(rows, width)


@njit(cache=True, nogil=True)
def end(v: Vector, k: int) -> None:
    """Write zeros into the WIDTH entries that follow the first k."""
    for i in range(k, k + WIDTH):
        v[i] = 0.0


@njit(cache=True, nogil=True, fastmath=REORDERED)
def multiply(rows: Array, v: Vector, n: int, m: int, out: Vector) -> None:
    """Write the products of v with the first n rows, and up to 3 more, over m entries."""
    for i in range(0, n, LANES):
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        s, t, u, w = 0.0, 0.0, 0.0, 0.0
        for j in range(m):
            s += a[j] * v[j]
            t += b[j] * v[j]
            u += c[j] * v[j]
            w += d[j] * v[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = s, t, u, w


@njit(cache=True, nogil=True, fastmath=REORDERED)
def multiply_some(rows: Array, order: Array, v: Vector, k: int, m: int, out: Vector) -> None:
    """Write the products of v with rows[order[i]] over m entries, for i < k and up to 3 more."""
    for i in range(0, k, LANES):
        a, b, c, d = rows[order[i]], rows[order[i + 1]], rows[order[i + 2]], rows[order[i + 3]]
        s, t, u, w = 0.0, 0.0, 0.0, 0.0
        for j in range(m):
            s += a[j] * v[j]
            t += b[j] * v[j]
            u += c[j] * v[j]
            w += d[j] * v[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = s, t, u, w


@njit(cache=True, nogil=True, fastmath=REORDERED)
def subtract_rows(rows: Array, order: Array, weights: Vector, k: int, n: int, out: Vector) -> None:
    """Subtract sum_i weights[i] * rows[order[i]], i < k, from `out`; zeros follow the weights."""
    for i in range(0, k, LANES):
        a, b, c, d = rows[order[i]], rows[order[i + 1]], rows[order[i + 2]], rows[order[i + 3]]
        s, t, u, w = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(n):
            out[j] -= (s * a[j] + t * b[j]) + (u * c[j] + w * d[j])


@njit(cache=True, nogil=True)
def price(g: Vector, scale: Vector, n: int, slopes: Vector, tops: Vector) -> float:
    """Write the slopes g * scale and the largest of every eight; return the largest, at least 0."""
    for j in range(n):
        slopes[j] = g[j] * scale[j]
    steepest = 0.0
    for i in range(n >> 3):
        j = i << 3
        a, b = max(slopes[j], slopes[j + 1]), max(slopes[j + 2], slopes[j + 3])
        c, d = max(slopes[j + 4], slopes[j + 5]), max(slopes[j + 6], slopes[j + 7])
        tops[i] = max(max(a, b), max(c, d))
        steepest = max(steepest, tops[i])
    return steepest


@njit(cache=True, nogil=True)
def locate(slopes: Vector, tops: Vector, n: int, cut: float, room: int, steep: Array) -> int:
    """Write the atoms whose slopes are at least `cut`; return how many to use, at most `room`."""
    count = 0
    for i in range(n >> 3):
        if tops[i] >= cut:
            for j in range(i << 3, (i << 3) + WIDTH):
                steep[count] = j
                count += slopes[j] >= cut
    return min(count, room)


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def smallest(values: Vector, k: int) -> float:
    """Return the smallest of the first k values."""
    least = np.inf
    for i in range(k):
        least = min(least, values[i])
    return least


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def drop(order: Array, H: Array, x: Vector, z: Vector, k: int, place: int, u: Vector) -> None:
    """Remove the passive atom at `place` from H, and make z the solution without it.

    The last passive atom takes its place in the order. u is work space.
    """
    last, width, pivot = k - 1, padded(k), 1.0 / H[place, place]
    weight = z[place] * pivot
    for i in range(k):
        u[i] = H[place, i]
    end(u, k)
    for i in range(width):
        z[i] -= weight * u[i]
    for i in range(k):
        factor = pivot * u[i]
        for j in range(width):
            H[i, j] -= factor * u[j]
    for i in range(last):
        H[place, i] = H[last, i]
    for i in range(last):
        H[i, place] = H[last, i]
    H[place, place] = H[last, last]
    order[place], x[place], z[place] = order[last], x[last], z[last]
    x[last], z[last] = 0.0, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def descend(
    order: Array,
    H: Array,
    x: Vector,
    z: Vector,
    k: int,
    settled: int,
    scale: Vector,
    full: Vector,
    n: int,
    u: Vector,
) -> tuple[int, int]:
    """Move x to z; atoms whose weight reaches zero leave, as in `active_set.descend`.

    Return how many atoms stay, and the number of steps. `scale` is 0 for atoms that may not enter,
    which are the passive ones and those that are idle before x has moved, and `full` for others.
    """
    steps, moving = 0, True
    while moving:
        steps += 1
        before = k
        for i in range(k - 1, -1, -1):
            if z[i] <= 0.0 and x[i] == 0.0:
                drop(order, H, x, z, k, i, u)
                k -= 1
        if k < before:
            moving = k != settled
        else:
            settled, step, blocking = -1, 1.0, -1
            for i in range(k):
                if z[i] <= 0.0 and x[i] <= step * (x[i] - z[i]):
                    step, blocking = x[i] / (x[i] - z[i]), i
            for i in range(k):
                x[i] = z[i] if blocking < 0 else x[i] + step * (z[i] - x[i])
            for j in range(n):
                scale[j] = full[j]
            for i in range(k):
                scale[order[i]] = 0.0
            moving = blocking >= 0
            if moving:
                x[blocking] = 0.0
                for i in range(k - 1, -1, -1):
                    if x[i] <= 0.0:
                        scale[order[i]] = full[order[i]]
                        drop(order, H, x, z, k, i, u)
                        k -= 1
    return k, steps


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def admit(
    G: Array,
    c: Vector,
    order: Array,
    H: Array,
    z: Vector,
    k: int,
    steep: Array,
    count: int,
    scale: Vector,
    u: Vector,
    v: Vector,
) -> int:
    """Make the steep atoms passive, and z the solution with them; return how many are passive.

    Each gets the scale 0, so that it cannot enter again before x has moved. One that depends on the
    passive atoms (`ILL_CONDITIONED`) stays out. If u are the weights of its projection on them, H
    grows by a multiple of (-u, 1)(-u, 1)'.
    """
    for place in range(count):
        atom, width = steep[place], padded(k)
        scale[atom] = 0.0
        for i in range(k):
            v[i] = G[atom, order[i]]
        end(v, k)
        for i in range(0, k, LANES):
            a, b, e, f = 0.0, 0.0, 0.0, 0.0
            for j in range(width):
                a += H[i, j] * v[j]
                b += H[i + 1, j] * v[j]
                e += H[i + 2, j] * v[j]
                f += H[i + 3, j] * v[j]
            u[i], u[i + 1], u[i + 2], u[i + 3] = a, b, e, f
        end(u, k)
        pivot, slope = G[atom, atom], c[atom]
        for i in range(width):
            pivot -= u[i] * v[i]
            slope -= z[i] * v[i]
        if pivot > ILL_CONDITIONED * G[atom, atom]:
            inverse = 1.0 / pivot
            for i in range(k):
                factor = inverse * u[i]
                for j in range(width):
                    H[i, j] += factor * u[j]
                H[i, k] = -factor
                H[k, i] = -factor
                z[i] -= slope * factor
            H[k, k], z[k], order[k] = inverse, slope * inverse, atom
            k += 1
    return k


@njit(cache=True, nogil=True)
def pursue(
    G: Array,
    c: Vector,
    full: Vector,
    tolerance: float,
    n: int,
    limit: int,
    max_steps: int,
    order: Array,
    steep: Array,
    H: Array,
    x: Vector,
    z: Vector,
    g: Vector,
    scale: Vector,
    u: Vector,
    v: Vector,
) -> tuple[int, int, int]:
    """Admit the steepest atoms and descend until none is left, as in `active_set.pursue`.

    x holds the weights of the passive atoms in their order, and `full` one over the norms of all.
    Return how many atoms are passive, why the fit ended, and the number of steps.
    """
    width = padded(n)
    for j in range(len(x)):
        x[j], z[j] = 0.0, 0.0
    for j in range(width):
        scale[j] = full[j]
    k, steps, room, code = 0, 0, 1, PURSUING
    while code == PURSUING:
        for j in range(width):
            g[j] = c[j]
        subtract_rows(G, order, x, k, width, g)
        steepest, before, count = price(g, scale, width, u, v), k, 0
        descending = steepest > tolerance
        if descending and k < limit and steps < max_steps:
            cut = steepest if room == 1 else SHARE * steepest
            count = locate(u, v, width, cut, room, steep)
            k = admit(G, c, order, H, z, k, steep, count, scale, u, v)
        if k == before:
            code = STALLED if count > 0 else OPTIMAL
            if descending and count == 0:
                code = MAX_ATOMS if k >= limit else MAX_STEPS
        else:
            entered = k
            if smallest(z, k) > 0.0:
                for i in range(k):
                    x[i] = z[i]
                steps += 1
            else:
                k, more = descend(order, H, x, z, k, before, scale, full, n, u)
                steps += more
            if limit >= n:
                room = 2 * room if k == entered else (room + 1) // 2
    return k, code, steps
