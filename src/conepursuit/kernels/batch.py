"""Non-negative least squares of many targets on one dictionary, one target after the other.

Every target starts afresh, so that neither the order of the targets nor the number of threads
changes a bit of the result. The inverse H of the Gram matrix of the passive atoms is kept
explicitly: adding and removing an atom are then updates of rank one, which run faster than solves
with short triangles. What it loses in accuracy is made good by the residual; a target for which
that does not suffice is left to `nonnegative.fit`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.certificate import bound, estimate, tilt
from conepursuit.kernels.factor import EPS, REORDERED, dot
from conepursuit.kernels.nonnegative import (
    AGREEMENT,
    ILL_CONDITIONED,
    MAX_ATOMS,
    MAX_STEPS,
    OPTIMAL,
    STALLED,
    in_range,
)

REDO = -1
"""The code of a target that asks for the accuracy of `nonnegative.fit`."""

SHARE = 0.7
"""Atoms enter together if they are this steep relative to the steepest."""

LANES = 4
"""Rows of a product that share a reading of the vector."""


@njit(cache=True, nogil=True)
def padded(n: int) -> int:
    """Return the next multiple of the lanes."""
    return (n + LANES - 1) // LANES * LANES


@njit(cache=True, nogil=True, fastmath=REORDERED)
def multiply(rows: Array, v: Vector, n: int, m: int, out: Vector) -> None:
    """Write the inner products of v with the first n rows, and a few more to fill the lanes."""
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
def subtract_rows(rows: Array, order: Array, weights: Vector, k: int, out: Vector) -> None:
    """Subtract sum_i weights[i] * rows[order[i]], for i < k."""
    n, i = len(out), 0
    while i + LANES <= k:
        a, b, c, d = rows[order[i]], rows[order[i + 1]], rows[order[i + 2]], rows[order[i + 3]]
        s, t, u, w = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(n):
            out[j] -= (s * a[j] + t * b[j]) + (u * c[j] + w * d[j])
        i += LANES
    while i < k:
        a, s = rows[order[i]], weights[i]
        for j in range(n):
            out[j] -= s * a[j]
        i += 1


@njit(cache=True, nogil=True, fastmath=REORDERED)
def update(H: Array, u: Vector, factor: float, k: int) -> None:
    """Add factor * u u' to the first k rows and columns of H."""
    for i in range(k):
        row, scale = H[i], factor * u[i]
        for j in range(k):
            row[j] += scale * u[j]


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def largest(values: Vector, least: float) -> float:
    """Return the largest value, or `least` if none is larger."""
    best = least
    for value in values:
        best = max(best, value)
    return best


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def smallest(values: Vector, k: int) -> float:
    """Return the smallest of the first k values."""
    least = np.inf
    for i in range(k):
        least = min(least, values[i])
    return least


@njit(cache=True, nogil=True, fastmath=REORDERED)
def add(
    G: Array, c: Vector, order: Array, H: Array, z: Vector, k: int, atom: int, u: Vector, v: Vector
) -> bool:
    """Make an atom passive, and z the solution with it; False if it depends on the passive ones."""
    gram, slope = G[atom], c[atom]
    for i in range(k):
        v[i] = gram[order[i]]
        slope -= v[i] * z[i]
    multiply(H, v, k, k, u)
    pivot = gram[atom] - dot(u, v, k)
    if not pivot > ILL_CONDITIONED * gram[atom]:
        return False
    scale = 1.0 / pivot
    update(H, u, scale, k)
    weight, last = slope * scale, H[k]
    for i in range(k):
        z[i] -= weight * u[i]
        last[i] = -scale * u[i]
        H[i, k] = last[i]
    last[k], z[k], order[k] = scale, weight, atom
    return True


@njit(cache=True, nogil=True)
def drop(order: Array, H: Array, z: Vector, k: int, place: int, u: Vector) -> None:
    """Let a passive atom go, and make z the solution without it; the last one takes its place."""
    last = k - 1
    leaving, following = H[place], H[last]
    pivot = 1.0 / leaving[place]
    weight = z[place] * pivot
    for i in range(k):
        u[i] = leaving[i]
        z[i] -= weight * u[i]
    update(H, u, -pivot, k)
    if place < last:
        order[place], z[place] = order[last], z[last]
        for i in range(last):
            leaving[i] = following[i]
            H[i, place] = following[i]
        H[place, place] = H[last, last]


@njit(cache=True, nogil=True)
def descend(
    order: Array,
    H: Array,
    x: Vector,
    z: Vector,
    k: int,
    settled: int,
    scale: Vector,
    full: Vector,
    u: Vector,
) -> tuple[int, int]:
    """Go to z, letting atoms go whose weight reaches zero; as `nonnegative.descend`."""
    steps = 0
    while True:
        steps += 1
        if smallest(z, k) > 0.0 and steps == 1:
            for i in range(k):
                x[i] = z[i]
            return k, steps
        before = k
        for i in range(k - 1, -1, -1):
            if z[i] <= 0.0 and x[i] == 0.0:
                drop_weight(order, H, x, z, k, i, u)
                k -= 1
        if k == settled:
            return k, steps
        if k < before:
            continue
        settled = -1
        step, blocking = 1.0, -1
        for i in range(k):
            if z[i] <= 0.0 and x[i] <= step * (x[i] - z[i]):
                step, blocking = x[i] / (x[i] - z[i]), i
        for j in range(len(full)):
            scale[j] = full[j]
        for i in range(k):
            scale[order[i]] = 0.0
        if blocking < 0:
            for i in range(k):
                x[i] = z[i]
            return k, steps
        for i in range(k):
            x[i] += step * (z[i] - x[i])
        x[blocking] = 0.0
        for i in range(k - 1, -1, -1):
            if x[i] <= 0.0:
                scale[order[i]] = full[order[i]]
                drop_weight(order, H, x, z, k, i, u)
                k -= 1


@njit(cache=True, nogil=True)
def drop_weight(
    order: Array, H: Array, x: Vector, z: Vector, k: int, place: int, u: Vector
) -> None:
    """Let an atom go, with its weight."""
    drop(order, H, z, k, place, u)
    x[place] = x[k - 1]


@njit(cache=True, nogil=True)
def pursue(
    G: Array,
    c: Vector,
    full: Vector,
    tolerance: float,
    limit: int,
    max_steps: int,
    order: Array,
    H: Array,
    x: Vector,
    g: Vector,
    work: Array,
) -> tuple[int, int, int]:
    """Admit the steepest atoms and descend until none is left; as `nonnegative.pursue`.

    Here x holds the weights of the passive atoms in their order, and `full` one over the norms.
    """
    n = len(c)
    z, u, v, slopes, scale = work[0], work[1], work[2], work[3, :n], work[4, :n]
    scale[:] = full
    k, steps, room = 0, 0, 1
    while True:
        for j in range(n):
            g[j] = c[j]
        subtract_rows(G, order, x, k, g)
        for j in range(n):
            slopes[j] = g[j] * scale[j]
        before, refused = k, False
        steepest = largest(slopes, tolerance)
        if steepest > tolerance:
            if k >= limit:
                return k, MAX_ATOMS, steps
            cut = steepest if room == 1 else SHARE * steepest
            for atom in range(n):
                if slopes[atom] >= cut and k - before < room:
                    scale[atom] = 0.0
                    if add(G, c, order, H, z, k, atom, u, v):
                        x[k] = 0.0
                        k += 1
                    else:
                        refused = True
        if k == before:
            return k, STALLED if refused else OPTIMAL, steps
        if steps >= max_steps:
            return k, MAX_STEPS, steps
        entered = k - before
        k, more = descend(order, H, x, z, k, before, scale, full, u)
        steps += more
        if limit >= n:
            room = 2 * room if k == before + entered else (room + 1) // 2


@njit(cache=True, nogil=True)
def fit_targets(
    atoms: Array,
    targets: Array,
    G: Array,
    inverse_norms: Vector,
    sums: Vector,
    limit: int,
    max_steps: int,
    X: Array,
    duals: Array,
    rnorms: Vector,
    gaps: Vector,
    proven: Array,
    codes: Array,
    counts: Array,
) -> None:
    """Fit and certify every row of `targets`; X, duals and the rest are written, a row for each.

    `atoms` and G have rows to fill the lanes.
    """
    n, m, size = len(inverse_norms), targets.shape[1], len(atoms)
    order, weights, H, work = (
        np.empty(size, np.int64), np.zeros(size), np.zeros((size, size)), np.zeros((5, 2 * size))
    )  # fmt: skip
    products, scores, r, t = np.empty(size), np.empty(size), np.empty(m), np.empty(m)
    c, g = products[:n], scores[:n]
    for i in range(len(targets)):
        b = targets[i]
        multiply(atoms, b, n, m, products)
        square = dot(b, b, m)
        tolerance = EPS * (16.0 + np.sqrt(m)) * 2.0 * np.sqrt(square)
        k, code, counts[i] = pursue(
            G, c, inverse_norms, tolerance, limit, max_steps, order, H, weights, g, work
        )
        r[:] = b
        subtract_rows(atoms, order, weights, k, r)
        multiply(atoms, r, n, m, scores)
        positive = correct(order, H, weights, k, G, g, work[0])
        level = positive and holds(g, inverse_norms, order, k, AGREEMENT * tolerance)
        if code != MAX_STEPS:
            steep = largest(g * inverse_norms, 0.0) > AGREEMENT * tolerance
            code = REDO if not level or (steep and code != MAX_ATOMS) else code
            code = OPTIMAL if code == STALLED else code
        codes[i] = code if in_range(square, b) else REDO
        X[i] = 0.0
        for j in range(k):
            X[i, order[j]] = weights[j]
        fitted = b - r
        t[:] = 1.0
        v = tilt(g, sums)
        if v < 0.0:
            functional(atoms, inverse_norms, order, H, k, work[0], t)
            multiply(atoms, t, n, m, work[0])
            v = tilt(g, work[0, :n])
        if v >= 0.0:
            gaps[i], proven[i] = bound(r, fitted, t, v)
        else:
            gaps[i], proven[i] = estimate(g, inverse_norms, r, fitted)
        rnorms[i] = np.sqrt(dot(r, r, m))
        for j in range(n):
            duals[i, j] = -g[j]


@njit(cache=True, nogil=True)
def correct(
    order: Array, H: Array, weights: Vector, k: int, G: Array, g: Vector, change: Vector
) -> bool:
    """Correct the weights by the gradient g of the data, and g with them; False if one is lost."""
    passive = change[len(g) :]
    for i in range(k):
        passive[i] = g[order[i]]
    multiply(H, passive, k, k, change)
    positive = True
    for i in range(k):
        weights[i] += change[i]
        positive &= weights[i] > 0.0
    subtract_rows(G, order, change, k, g)
    return positive


@njit(cache=True, nogil=True)
def holds(g: Vector, inverse_norms: Vector, order: Array, k: int, tolerance: float) -> bool:
    """Return whether the passive atoms are level."""
    largest_slope = 0.0
    for i in range(k):
        largest_slope = max(largest_slope, abs(g[order[i]]) * inverse_norms[order[i]])
    return largest_slope <= tolerance


@njit(cache=True, nogil=True)
def functional(
    atoms: Array, inverse_norms: Vector, order: Array, H: Array, k: int, z: Vector, t: Vector
) -> None:
    """Write the t in the span of the passive atoms with <t, a> = ||a||; as in `certificate`."""
    lengths = z[len(inverse_norms) :]
    for i in range(k):
        lengths[i] = -1.0 / inverse_norms[order[i]]
    multiply(H, lengths, k, k, z)
    t[:] = 0.0
    subtract_rows(atoms, order, z, k, t)
