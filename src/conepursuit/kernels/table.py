"""Non-negative least squares of many targets on at most eight atoms, by a table of all supports.

For each support S the table holds the matrix M that takes c = A'b to the weights of the atoms in S
and the slopes of those outside. S is the solution's if exactly its own entries of M c are positive;
if not, the positive ones are the next S. The entries count as positive beyond their rounding, which
for an atom in S and the same atom outside is the same condition, so that the order in which
supports are tried does not matter.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.batch import REDO
from conepursuit.kernels.certificate import tilt
from conepursuit.kernels.factor import EPS, REORDERED, append, backward_solve, dot, forward_solve
from conepursuit.kernels.nonnegative import ILL_CONDITIONED, OPTIMAL, in_range

WIDTH = 8
"""The most atoms: entries are padded to this, one vector register."""

DELICATE = 1e-3
"""Squared sine of an angle below which a support is left to the kernels that use the residual."""

CANCELLED = 1e-4
"""Share of ||b||^2 below which ||r||^2 is computed from r."""


@njit(cache=True, nogil=True)
def tabulate(
    G: Array, inverse_norms: Vector, m: int
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """Return, for all supports, what `fit_few` needs.

    Returns
    -------
    M, slack, level, functional, squares, repaired, delicate : arrays
        The matrices, transposed; the rounding of the entries of M c, and of the slopes of the
        atoms in S, for a target of norm 1; A't and ||t||^2 for the t with <t, a> = ||a|| on S; the
        largest part of S that is independent; whether S asks for more accuracy.
    """
    n = len(inverse_norms)
    count, noise = 1 << n, EPS * (16.0 + np.sqrt(m))
    M, slack = np.zeros((count, WIDTH, WIDTH)), np.zeros((count, WIDTH))
    level, functional = np.zeros((count, WIDTH)), np.zeros((count, WIDTH))
    squares, norms = np.zeros(count), np.zeros(n)
    repaired, delicate = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    C, order, column = np.zeros((n + 1, n + 1)), np.zeros(n + 1, np.int64), np.zeros(n)
    for atom in range(n):
        norms[atom] = np.sqrt(G[atom, atom])
    for support in range(count):
        k = 0
        for atom in range(n):
            if support >> atom & 1 and append(C, order, k, G[atom], atom, ILL_CONDITIONED):
                repaired[support] |= 1 << atom
                delicate[support] |= DELICATE * C[k, k] ** 2 * G[atom, atom] > 1.0
                k += 1
        if repaired[support] != support:
            continue
        for i in range(k):  # column order[i] of the inverse, and what it does to the others
            column[:k] = 0.0
            column[i] = 1.0
            forward_solve(C, k, column)
            backward_solve(C, k, column)
            for atom in range(n):
                total, size = 0.0, 0.0
                for p in range(k):
                    total += G[atom, order[p]] * column[p]
                    size += abs(G[atom, order[p]] * column[p])
                if support >> atom & 1:
                    missed = abs((1.0 if atom == order[i] else 0.0) - total) + WIDTH * EPS * size
                    level[support, atom] += missed * norms[order[i]]
                else:
                    M[support, order[i], atom] = -total
                    functional[support, atom] += total * norms[order[i]]
            for p in range(k):
                M[support, order[i], order[p]] = column[p]
                squares[support] += column[p] * norms[order[i]] * norms[order[p]]
        for atom in range(n):
            if support >> atom & 1:
                functional[support, atom] = norms[atom]
                level[support, atom] += noise * norms[atom]
            else:
                M[support, atom, atom] = 1.0
            for i in range(n):
                slack[support, atom] += noise * abs(M[support, i, atom]) * norms[i]
    return M, slack, level, functional, squares, repaired, delicate


@njit(cache=True, nogil=True, fastmath=REORDERED)
def products(atoms: Array, b: Vector, n: int, c: Vector) -> float:
    """Write A'b, three atoms at a time, and return ||b||^2."""
    m, square = len(b), 0.0
    for j in range(0, n, 3):
        first, second, third = atoms[j], atoms[j + 1], atoms[j + 2]
        u, v, w, square = 0.0, 0.0, 0.0, 0.0
        for i in range(m):
            u += first[i] * b[i]
            v += second[i] * b[i]
            w += third[i] * b[i]
            square += b[i] * b[i]
        c[j], c[j + 1], c[j + 2] = u, v, w
    return square


@njit(cache=True, nogil=True)
def try_on_block(
    M: Array, slack: Array, support: int, C: Array, n: int, sizes: Vector, V: Array, found: Array
) -> None:
    """Write M c for a support and eight targets, and which entries are positive beyond rounding.

    The sums are in registers, one for each target, and are made in the order of
    `positive_entries`, to the last bit.
    """
    for p in range(WIDTH):
        found[p] = 0
    for i in range(n):
        s, t, u, w = 0.0, 0.0, 0.0, 0.0
        x, y, z, o = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            c, scale = C[j], M[support, j, i]
            s, t, u, w = s + scale * c[0], t + scale * c[1], u + scale * c[2], w + scale * c[3]
            x, y, z, o = x + scale * c[4], y + scale * c[5], z + scale * c[6], o + scale * c[7]
        v = V[i]
        v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7] = s, t, u, w, x, y, z, o
        for p in range(WIDTH):
            found[p] |= (v[p] > sizes[p] * slack[support, i]) << i


@njit(cache=True, nogil=True)
def positive_entries(
    M: Array, slack: Array, support: int, c: Vector, n: int, size: float, v: Vector
) -> int:
    """Write M c for a support, and return which entries are positive beyond rounding."""
    matrix, noise = M[support], slack[support]
    # Eight sums in registers: an array would be written and read again for every atom.
    s, t, u, w = 0.0, 0.0, 0.0, 0.0
    x, y, z, o = 0.0, 0.0, 0.0, 0.0
    for j in range(n):
        row, scale = matrix[j], c[j]
        s, t, u, w = s + scale * row[0], t + scale * row[1], u + scale * row[2], w + scale * row[3]
        x, y, z, o = x + scale * row[4], y + scale * row[5], z + scale * row[6], o + scale * row[7]
    v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7] = s, t, u, w, x, y, z, o
    low = (s > size * noise[0]) | (t > size * noise[1]) << 1 | (u > size * noise[2]) << 2
    high = (x > size * noise[4]) | (y > size * noise[5]) << 1 | (z > size * noise[6]) << 2
    return low | (w > size * noise[3]) << 3 | (high | (o > size * noise[7]) << 3) << 4


@njit(cache=True, nogil=True)
def search(
    M: Array, slack: Array, repaired: Array, support: int, c: Vector, n: int, size: float, v: Vector
) -> tuple[int, int]:
    """Return the support of the solution for c, or -1, and how many were tried; v is then M c.

    All entries of the wrong sign change sides at once (block principal pivoting). Where that has
    not led to the end soon, only the last one does (Murty 1974).
    """
    for tried in range(1, 20 * WIDTH):
        found = positive_entries(M, slack, support, c, n, size, v)
        if found == support:
            return support, tried
        if tried > 2 * WIDTH:
            wrong, last = found ^ support, 1
            while last << 1 <= wrong:
                last <<= 1
            found = support ^ last
        support = repaired[found]
    return -1, tried


@njit(cache=True, nogil=True)
def fit_few(
    atoms: Array,
    targets: Array,
    sums: Vector,
    M: Array,
    slack: Array,
    level: Array,
    functional: Array,
    squares: Array,
    repaired: Array,
    delicate: Array,
    X: Array,
    duals: Array,
    rnorms: Vector,
    gaps: Vector,
    proven: Array,
    codes: Array,
    counts: Array,
) -> None:
    """Fit and certify every row of `targets`, as `batch.fit_targets`; `atoms` has rows to spare.

    The slopes of the atoms in the support are zero but for rounding; what that may amount to is
    in the gap.
    """
    n, m, support = X.shape[1], targets.shape[1], 0
    c, C, V, v = np.zeros(WIDTH + 2), np.zeros((n, WIDTH)), np.zeros((n, WIDTH)), np.zeros(WIDTH)
    squares_b, sizes, found = np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH, np.int64)
    for start in range(0, len(targets), WIDTH):
        width = min(WIDTH, len(targets) - start)
        for p in range(width):
            squares_b[p] = products(atoms, targets[start + p], n, c)
            sizes[p] = np.sqrt(squares_b[p])
            for j in range(n):
                C[j, p] = c[j]
        tried = max(support, 0)
        try_on_block(M, slack, tried, C, n, sizes, V, found)
        for p in range(width):
            i, b, square = start + p, targets[start + p], squares_b[p]
            support, counts[i] = tried, 1
            for j in range(n):
                c[j], v[j] = C[j, p], V[j, p]
            if found[p] != tried:
                support, more = search(M, slack, repaired, repaired[found[p]], c, n, sizes[p], v)
                counts[i] += more
            if support < 0 or delicate[support] or not in_range(square, b):
                codes[i] = REDO
                continue
            codes[i], proven[i] = OPTIMAL, True
            left, rough, steep = square, 0.0, 0.0
            for j in range(n):
                inside = float(support >> j & 1)  # as a factor: a branch would be mispredicted
                weight, slope = inside * v[j], (1.0 - inside) * v[j]
                X[i, j], duals[i, j] = weight, -slope
                left -= weight * c[j]
                rough += weight * level[support, j]
                steep = max(steep, slope)
            if left < CANCELLED * square:
                left = squared_residual(atoms, b, X[i])
            rnorms[i] = np.sqrt(left)
            gap = sizes[p] * rough
            if steep > 0.0:
                gap += tilted(X[i], duals[i], sums, functional[support], m, squares[support], left)
            gaps[i] = min(gap, 0.5 * left)


@njit(cache=True, nogil=True)
def squared_residual(atoms: Array, b: Vector, x: Vector) -> float:
    """Return ||b - A x||^2."""
    r = b.copy()
    for j in range(len(x)):
        if x[j] != 0.0:
            weight, column = x[j], atoms[j]
            for i in range(len(b)):
                r[i] -= weight * column[i]
    return dot(r, r, len(r))


@njit(cache=True, nogil=True)
def tilted(
    x: Vector, dual: Vector, sums: Vector, others: Vector, m: int, square: float, left: float
) -> float:
    """Return what slopes above zero add to the gap; as in `certificate`.

    `sums` and `others` are A't for the vector of ones and for the one of the support.
    """
    for attempt in range(2):
        against, length = (sums, float(m)) if attempt == 0 else (others, square)
        v = tilt(-dual, against[: len(dual)])
        if v >= 0.0:
            reach = 0.0
            for j in range(len(x)):
                reach += x[j] * against[j]
            return max(0.0, v * (reach + 0.5 * v * length))
    return 0.5 * left
