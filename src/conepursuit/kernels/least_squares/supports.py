"""Non-negative least squares of many targets on at most eight atoms, by a table of all supports.

For each support S the table holds the matrix M that takes c = A'b to the weights of the atoms in S
and the slopes of those outside. S is the support of the solution if the entries of M c for its own
atoms, and no others, are positive; if not, the atoms with positive entries are the next S. An entry
counts as positive if it is above its rounding. The weight of an atom in S, and its slope with S
less that atom, differ by a positive factor, and so do their roundings: both give the same answer.
Every target starts from all atoms, so that its result does not depend on other targets.

The targets are treated in tiles. Arrays over a tile have a row for each atom and a column for each
target, and the loops run over the targets, in vector registers. Only targets for which the first
support fails are searched one by one, without branches, which would be mispredicted. Functions for
one target take the arrays and its index in them: numba counts a reference to each row that is
passed, which takes longer than to try a support.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import ILL_CONDITIONED, OPTIMAL, REDO
from conepursuit.kernels.least_squares.active_set import in_range
from conepursuit.kernels.least_squares.certificate import tilted_gap
from conepursuit.kernels.shared.rounding import expected_rounding, product_rounding, resolution
from conepursuit.kernels.shared.triangular import REORDERED, append, backward_solve, forward_solve

WIDTH = 8
"""The most atoms; arrays over the atoms are padded to this with zeros."""

TILE = 128
"""Targets treated together; the arrays over them fit into the first-level cache."""

ROW = TILE + 8
"""Numbers in a row of an array over a tile; a power of two would use few sets of the cache."""

MOST_TRIES = 20 * WIDTH
"""Supports that are tried for a target before it is left to another kernel."""

DELICATE = 1e-3
"""Squared sine of the angle between an atom of a support and those before it.

If it is below this for any atom, the support is left to kernels that correct weights by the
residual; above, the table is accurate enough.
"""

CANCELLED = 1e-4
"""Share of ||b||^2 below which ||r||^2 is computed from r.

Above, it is taken from inner products, since few digits cancel.
"""

ERROR, FIRM, TOP, LOWEST, SQUARE = range(5)
"""Indices of the bounds on the functional of a support that `bound_functional` writes."""


@njit(cache=True, nogil=True)
def tabulate(G: Array, n: int, m: int) -> tuple[Array, Array, Array, Array, Array]:
    """Return, for all supports of n atoms with the Gram matrix G, what `fit_few` needs.

    Returns
    -------
    M, functional, bounds, repaired, delicate : arrays
        The matrices, and in one more column the rounding of M c for a target of norm 1; A't for
        the t with <t, a> = ||a|| on S; the bounds of `bound_functional` on it; the atoms of S that
        are independent of those before them; whether S needs a more accurate kernel.
    """
    count, noise = 1 << n, expected_rounding(m)
    M, bounds = np.zeros((count, WIDTH, WIDTH + 1)), np.zeros((count, 5))
    functional, norms, z = np.zeros((count, n)), np.zeros(n), np.zeros(n)
    repaired, delicate = np.zeros(count, np.uint64), np.zeros(count, np.bool_)
    C, order, column = np.zeros((n + 1, n + 1)), np.zeros(n + 1, np.int64), np.zeros(n)
    for atom in range(n):
        norms[atom] = np.sqrt(G[atom, atom])
    for support in range(count):
        k, part = 0, 0
        for atom in range(n):
            if support >> atom & 1 and append(C, order, k, G[atom], atom, ILL_CONDITIONED):
                part |= 1 << atom
                delicate[support] |= DELICATE * C[k, k] ** 2 * G[atom, atom] > 1.0
                k += 1
        repaired[support] = part
        if part != support:
            continue
        z[:] = 0.0
        for i in range(k):  # column order[i] of the inverse, and its part in the slopes outside
            column[:k] = 0.0
            column[i] = 1.0
            forward_solve(C, k, column)
            backward_solve(C, k, column)
            for p in range(k):
                M[support, order[p], order[i]] = column[p]
                z[order[p]] += column[p] * norms[order[i]]
            for atom in range(n):
                if not support >> atom & 1:
                    for p in range(k):
                        M[support, atom, order[i]] -= G[atom, order[p]] * column[p]
        for atom in range(n):
            if not support >> atom & 1:
                M[support, atom, atom] = 1.0
            for i in range(n):
                M[support, atom, WIDTH] += noise * abs(M[support, atom, i]) * norms[i]
        bound_functional(G, norms, z, support, m, functional[support], bounds[support])
        delicate[support] |= not bounds[support, FIRM] > 0.5
    return M, functional, bounds, repaired, delicate


@njit(cache=True, nogil=True)
def bound_functional(
    G: Array, norms: Vector, z: Vector, support: int, m: int, products: Vector, bounds: Vector
) -> None:
    """Write the products of the atoms with t = sum_i z_i a_i, and bounds on them.

    ERROR bounds the rounding of <t, a> / ||a||. FIRM is the least of these numbers over the support
    minus ERROR, TOP the largest plus ERROR, LOWEST the least over the other atoms minus ERROR, and
    SQUARE is ||t||^2 plus its error.
    """
    n, size, square = len(norms), 0.0, 0.0
    for i in range(n):
        size += abs(z[i]) * norms[i]
    error = product_rounding(m + 2 * WIDTH) * size
    bounds[ERROR], bounds[FIRM], bounds[TOP], bounds[LOWEST] = error, 1.0, 1.0, np.inf
    for j in range(n):
        products[j] = 0.0
        for i in range(n):
            products[j] += z[i] * G[j, i]
        square += z[j] * products[j]
        if norms[j] > 0.0:
            unit = products[j] / norms[j]
            if support >> j & 1:
                bounds[FIRM] = min(bounds[FIRM], unit - error)
                bounds[TOP] = max(bounds[TOP], unit + error)
            else:
                bounds[LOWEST] = min(bounds[LOWEST], unit - error)
    bounds[SQUARE] = 1.01 * max(square, 0.0) + error * size


@njit(cache=True, nogil=True, fastmath=REORDERED)
def multiply_three(
    atoms: Array, first: int, targets: Array, start: int, width: int, C: Array, squares: Vector
) -> None:
    """Write the products of the targets of a tile with three atoms from `first` on, and ||b||^2."""
    for p in range(width):
        u, v, w, square = 0.0, 0.0, 0.0, 0.0
        for i in range(targets.shape[1]):
            b = targets[start + p, i]
            u += atoms[first, i] * b
            v += atoms[first + 1, i] * b
            w += atoms[first + 2, i] * b
            square += b * b
        C[first, p], C[first + 1, p], C[first + 2, p], squares[p] = u, v, w, square


@njit(cache=True, nogil=True, fastmath=REORDERED)
def multiply_six(
    atoms: Array, targets: Array, start: int, width: int, C: Array, squares: Vector
) -> None:
    """Write the products of the targets of a tile with six atoms, and ||b||^2, in one reading."""
    for p in range(width):
        u, v, w, x, y, z, square = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(targets.shape[1]):
            b = targets[start + p, i]
            u += atoms[0, i] * b
            v += atoms[1, i] * b
            w += atoms[2, i] * b
            x += atoms[3, i] * b
            y += atoms[4, i] * b
            z += atoms[5, i] * b
            square += b * b
        C[0, p], C[1, p], C[2, p], C[3, p], C[4, p], C[5, p] = u, v, w, x, y, z
        squares[p] = square


@njit(cache=True, nogil=True, fastmath={"contract"})
def try_everywhere(
    M: Array, support: int, C: Array, sizes: Vector, n: int, V: Array, found: Array
) -> None:
    """Write M c for one support and all targets of a tile, and bits for its positive entries."""
    for p in range(TILE):
        found[p] = 0
    for i in range(n):
        s, t, u, w = M[support, i, 0], M[support, i, 1], M[support, i, 2], M[support, i, 3]
        x, y, z, o = M[support, i, 4], M[support, i, 5], M[support, i, 6], M[support, i, 7]
        noise, bit = M[support, i, WIDTH], np.uint64(1 << i)
        for p in range(TILE):
            low = s * C[0, p] + t * C[1, p] + u * C[2, p] + w * C[3, p]
            V[i, p] = low + (x * C[4, p] + y * C[5, p] + z * C[6, p] + o * C[7, p])
            found[p] |= bit if V[i, p] > noise * sizes[p] else np.uint64(0)


@njit(cache=True, nogil=True, fastmath={"contract"}, inline="always")
def try_on(M: Array, support: int, C: Array, sizes: Vector, p: int, n: int, V: Array) -> np.uint64:
    """Write M c for one support and one target p, and return bits for its positive entries.

    The outcomes of the comparisons are shifted in, one by one: conditions would become branches.
    """
    a, b, c, d = C[0, p], C[1, p], C[2, p], C[3, p]
    e, f, g, h = C[4, p], C[5, p], C[6, p], C[7, p]
    found, top, size = np.uint64(0), np.uint64(n), sizes[p]
    for i in range(n):
        v = M[support, i, 0] * a + M[support, i, 1] * b
        v = v + M[support, i, 2] * c + M[support, i, 3] * d
        if n > 4:
            high = M[support, i, 4] * e + M[support, i, 5] * f
            v += high + M[support, i, 6] * g + M[support, i, 7] * h
        V[i, p] = v
        found = (found | np.uint64(v > M[support, i, WIDTH] * size) << top) >> np.uint64(1)
    return found


@njit(cache=True, nogil=True, fastmath={"contract"})
def search(
    M: Array, repaired: Array, C: Array, sizes: Vector, n: int, width: int,
    V: Array, supports: Array, pending: Array, tries: Array,
) -> None:  # fmt: skip
    """Write the support of the solution of every target, M c for it, and how many were tried.

    All atoms with an entry of the wrong sign enter or leave at once (block principal pivoting).
    After 2 WIDTH tries only the first of them does (Murty 1974). A target for which no support is
    found has MOST_TRIES tries.
    """
    start = repaired[(1 << n) - 1]
    try_everywhere(M, start, C, sizes, n, V, supports)
    count = 0
    for p in range(width):
        found = supports[p]
        supports[p], tries[p], pending[count] = repaired[found], 1, p
        count += found != start
    for tried in range(2, MOST_TRIES + 1):
        kept = 0
        for q in range(count):
            p = pending[q]
            support = supports[p]
            found = try_on(M, support, C, sizes, p, n, V)
            wrong = found ^ support
            if tried > 2 * WIDTH:
                found = support ^ (wrong & (~wrong + np.uint64(1)))
            supports[p], tries[p], pending[kept] = repaired[found], tried, p
            kept += wrong != np.uint64(0)
        count = kept
        if count == 0:
            break


@njit(cache=True, nogil=True, fastmath={"contract"})
def weigh(
    G: Array, noise: float, n: int,
    C: Array, squares: Vector, sizes: Vector, supports: Array,
    V: Array, W: Array, D: Array, left: Vector, reach: Vector, rough: Vector, steep: Vector,
) -> None:  # fmt: skip
    """Write the weights W, minus the slopes as D, and four numbers for all targets of a tile.

    These are ||r||^2 as `left`; the sum of weight times norm as `reach`; the largest size of a
    slope in the support as `rough`; and the largest slope outside as `steep`. The last two are for
    unit atoms and include their error, `noise` times the sum of ||b|| and `reach`. The slopes in
    the support are used for ||r||^2, which makes it accurate even if the weights are less so.
    """
    for p in range(TILE):
        left[p], reach[p], rough[p], steep[p] = squares[p], 0.0, 0.0, -np.inf
    for i in range(n):
        length, bit = np.sqrt(G[i, i]), np.uint64(i)
        for p in range(TILE):
            W[i, p] = V[i, p] if supports[p] >> bit & np.uint64(1) else 0.0
            reach[p] += length * W[i, p]
    for i in range(n):
        s, t, u, w = G[i, 0], G[i, 1], G[i, 2], G[i, 3]
        x, y, z, o = G[i, 4], G[i, 5], G[i, 6], G[i, 7]
        unit, bit = 1.0 / np.sqrt(G[i, i]) if G[i, i] > 0.0 else 0.0, np.uint64(i)
        least = -np.inf if G[i, i] == 0.0 else np.inf  # an atom that is zero has no slope
        for p in range(TILE):
            fitted = s * W[0, p] + t * W[1, p] + u * W[2, p] + w * W[3, p]
            fitted += x * W[4, p] + y * W[5, p] + z * W[6, p] + o * W[7, p]
            slope = C[i, p] - fitted
            inside = supports[p] >> bit & np.uint64(1)
            left[p] -= W[i, p] * (C[i, p] + slope)
            rough[p] = max(rough[p], abs(slope) * unit if inside else 0.0)
            steep[p] = max(steep[p], -np.inf if inside else min(slope * unit, least))
            D[i, p] = 0.0 if inside else -slope
    for p in range(TILE):
        error = noise * (sizes[p] + reach[p])
        rough[p] += error
        steep[p] += error


@njit(cache=True, nogil=True)
def fit_few(
    atoms: Array, targets: Array, G: Array, sums: Vector,
    M: Array, functional: Array, bounds: Array, repaired: Array, delicate: Array,
    X: Array, duals: Array, rnorms: Vector, gaps: Vector, proven: Array, codes: Array,
    counts: Array,
) -> None:  # fmt: skip
    """Fit and certify every row of `targets`, as `many_targets.fit_targets`.

    `atoms` and their Gram matrix `G` are padded with zeros, to at least eight, and to nine if there
    are more than six. The tables are those of `tabulate`. The proof is that of
    `certificate.tilted_gap` with the t of the support, by bounds that hold for all atoms at once;
    where they do not suffice, `tilted` looks at each atom.
    """
    n, m, noise = X.shape[1], targets.shape[1], product_rounding(targets.shape[1] + 2 * WIDTH)
    work, enough = np.zeros((4, n)), 0.5 * resolution(m)
    C, V = np.zeros((WIDTH + 1, ROW)), np.zeros((WIDTH, ROW))
    W, D = np.zeros((WIDTH, ROW)), np.zeros((WIDTH, ROW))
    squares_b, sizes, left, reach = np.zeros(TILE), np.zeros(TILE), np.zeros(TILE), np.zeros(TILE)
    rough, steep, tries = np.zeros(TILE), np.zeros(TILE), np.zeros(TILE, np.int64)
    supports, pending = np.zeros(TILE, np.uint64), np.zeros(TILE, np.uint64)
    for start in range(0, len(targets), TILE):
        width = min(TILE, len(targets) - start)
        if n <= 3:
            multiply_three(atoms, 0, targets, start, width, C, squares_b)
        else:
            multiply_six(atoms, targets, start, width, C, squares_b)
        if n > 6:
            multiply_three(atoms, 6, targets, start, width, C, squares_b)
        for p in range(TILE):
            sizes[p] = np.sqrt(squares_b[p])
        search(M, repaired, C, sizes, n, width, V, supports, pending, tries)
        weigh(G, noise, n, C, squares_b, sizes, supports, V, W, D, left, reach, rough, steep)
        for p in range(width):
            i, square, support = start + p, squares_b[p], supports[p]
            for j in range(n):
                X[i, j], duals[i, j] = W[j, p], D[j, p]
            value = np.inf
            if left[p] < CANCELLED * square:
                left[p] = squared_residual(atoms, targets, i, W, p)
                most = np.sqrt(left[p]) + product_rounding(n) * (sizes[p] + reach[p])
                value = (0.5 + noise) * most**2
            v = rough[p] / bounds[support, FIRM]
            gap = reach[p] * (rough[p] + v * bounds[support, TOP])
            gap = 1.01 * (gap + 0.5 * v * v * bounds[support, SQUARE])
            if not steep[p] <= v * bounds[support, LOWEST]:
                error = noise * (sizes[p] + reach[p])
                gap = tilted(
                    G, X[i], duals[i], sums, functional[support], np.int64(support), m, error,
                    rough[p], bounds[support], work,
                )  # fmt: skip
            gap = min(gap, value)
            rnorms[i], gaps[i] = np.sqrt(left[p]), gap
            counts[i], codes[i], proven[i] = tries[p], OPTIMAL, True
            if (
                delicate[support]
                or tries[p] == MOST_TRIES
                or not gap <= enough * square
                or not in_range(square, targets[i])
            ):
                codes[i] = REDO


@njit(cache=True, nogil=True, fastmath=REORDERED)
def squared_residual(atoms: Array, targets: Array, i: int, W: Array, p: int) -> float:
    """Return ||b - A x||^2 for target i, with the weights in column p of W."""
    s, t, u, w = W[0, p], W[1, p], W[2, p], W[3, p]
    x, y, z, o = W[4, p], W[5, p], W[6, p], W[7, p]
    total = 0.0
    for k in range(targets.shape[1]):
        low = s * atoms[0, k] + t * atoms[1, k] + u * atoms[2, k] + w * atoms[3, k]
        high = x * atoms[4, k] + y * atoms[5, k] + z * atoms[6, k] + o * atoms[7, k]
        r = targets[i, k] - (low + high)
        total += r * r
    return total


@njit(cache=True, nogil=True)
def tilted(
    G: Array, x: Vector, dual: Vector, sums: Vector, products: Vector, support: Any, m: int,
    error: float, rough: float, bounds: Vector, work: Array,
) -> float:  # fmt: skip
    """Return the better `certificate.tilted_gap`, along the ones or along the t of the support.

    `sums` and `products` are A't for the two. For unit atoms, slopes of the support are zero up to
    `rough`, and the others right up to `error`. `work` is memory for four rows of all atoms.
    """
    g, g_error, ones_error, t_error = work[0], work[1], work[2], work[3]
    for j in range(len(x)):
        length = np.sqrt(G[j, j])
        inside = support >> j & 1
        g[j], g_error[j] = -dual[j], length * (rough if inside else error)
        ones_error[j] = product_rounding(m) * np.sqrt(m) * length
        t_error[j] = bounds[ERROR] * length
    along = tilted_gap(g, g_error, sums, ones_error, x, np.sqrt(m), 0.0)
    span = np.sqrt(bounds[SQUARE])
    return min(along, tilted_gap(g, g_error, products, t_error, x, span, 0.0))
