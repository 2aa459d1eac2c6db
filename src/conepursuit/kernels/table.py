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
from conepursuit.kernels.batch import REDO, multiply
from conepursuit.kernels.certificate import tilt
from conepursuit.kernels.factor import EPS, append, backward_solve, dot, forward_solve
from conepursuit.kernels.nonnegative import ILL_CONDITIONED, OPTIMAL, in_range

WIDTH = 8
"""The most atoms: entries are padded to this, one vector register."""

DELICATE = 1e-3
"""Squared sine of an angle below which weights are corrected by the residual."""

CANCELLED = 1e-4
"""Share of ||b||^2 below which ||r||^2 is computed from r."""


@njit(cache=True, nogil=True)
def tabulate(
    G: Array, inverse_norms: Vector, m: int
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Return, for all supports, what `fit_targets` needs.

    Returns
    -------
    M, slack, functional, squares, repaired, delicate : arrays
        The matrices, transposed; the rounding of the entries of M c for a target of norm 1; A't and
        ||t||^2 for the t with <t, a> = ||a|| on S; the largest part of S that is independent;
        whether its weights ask for a correction.
    """
    n = len(inverse_norms)
    count = 1 << n
    M, slack = np.zeros((count, WIDTH, WIDTH)), np.zeros((count, WIDTH))
    functional, squares = np.zeros((count, WIDTH)), np.zeros(count)
    repaired, delicate = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    C, order, column = np.zeros((n + 1, n + 1)), np.zeros(n + 1, np.int64), np.zeros(n)
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
            for p in range(k):
                M[support, order[i], order[p]] = column[p]
                squares[support] += column[p] / (inverse_norms[order[i]] * inverse_norms[order[p]])
            for atom in range(n):
                if not support >> atom & 1:
                    for p in range(k):
                        M[support, order[i], atom] -= G[atom, order[p]] * column[p]
        for atom in range(n):
            if not support >> atom & 1:
                M[support, atom, atom] = 1.0
            for i in range(n):
                if inverse_norms[i] > 0.0:
                    slack[support, atom] += abs(M[support, i, atom]) / inverse_norms[i]
        slack[support] *= EPS * (16.0 + np.sqrt(m))
        for i in range(k):
            length = 1.0 / inverse_norms[order[i]]
            for atom in range(n):
                if support >> atom & 1:
                    functional[support, atom] = 1.0 / inverse_norms[atom]
                else:
                    functional[support, atom] -= length * M[support, order[i], atom]
    return M, slack, functional, squares, repaired, delicate


@njit(cache=True, nogil=True)
def positive_entries(
    M: Array, slack: Array, support: int, c: Vector, size: float, v: Vector
) -> int:
    """Write M c for a support, and return which entries are positive beyond rounding."""
    matrix, rounding = M[support], slack[support]
    for i in range(WIDTH):
        v[i] = 0.0
    for j in range(WIDTH):
        row, scale = matrix[j], c[j]
        for i in range(WIDTH):
            v[i] += scale * row[i]
    found = 0
    for i in range(WIDTH):
        found |= (v[i] > size * rounding[i]) << i
    return found


@njit(cache=True, nogil=True)
def search(
    M: Array, slack: Array, repaired: Array, support: int, c: Vector, size: float, v: Vector
) -> tuple[int, int]:
    """Return the support of the solution for c, or -1 if none was found, and how many were tried.

    All entries of the wrong sign change sides at once (block principal pivoting); where that
    does not reduce their number, only the last one does.
    """
    fewest, patience = WIDTH + 1, 3
    for tried in range(1, 100):
        found = positive_entries(M, slack, support, c, size, v)
        if found == support:
            return support, tried
        wrong, count, last = found ^ support, 0, 0
        for i in range(WIDTH):
            if wrong >> i & 1:
                count, last = count + 1, i
        if count < fewest:
            fewest, patience = count, 3
        elif patience > 0:
            patience -= 1
        else:
            found = support ^ (1 << last)
        support = repaired[found]
    return -1, tried


@njit(cache=True, nogil=True)
def fit_few(
    atoms: Array,
    targets: Array,
    G: Array,
    sums: Vector,
    M: Array,
    slack: Array,
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
    """Fit and certify every row of `targets`, as `batch.fit_targets`; G and sums are padded."""
    n, m = X.shape[1], targets.shape[1]
    c, x, g, v, r = np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH), np.empty(m)
    support = 0
    for i in range(len(targets)):
        b = targets[i]
        multiply(atoms, b, n, m, c)
        square = dot(b, b, m)
        support, counts[i] = search(M, slack, repaired, support, c, np.sqrt(square), v)
        codes[i] = OPTIMAL if support >= 0 and in_range(square, b) else REDO
        if codes[i] == REDO:
            support = 0
            continue
        for j in range(WIDTH):
            x[j] = v[j] if support >> j & 1 else 0.0
        if delicate[support]:
            residual(atoms, b, x, n, r)
            multiply(atoms, r, n, m, g)
            positive_entries(M, slack, support, g, 0.0, v)
            for j in range(n):
                if support >> j & 1:
                    x[j] = max(0.0, x[j] + v[j])
        gradient(G, c, x, g)
        left = square
        for j in range(WIDTH):
            left -= x[j] * (c[j] + g[j])
        if left < CANCELLED * square:
            residual(atoms, b, x, n, r)
            left = dot(r, r, m)
        rnorms[i] = np.sqrt(left)
        gaps[i], proven[i] = certified(x, g, sums, functional[support], m, squares[support], left)
        for j in range(n):
            X[i, j], duals[i, j] = x[j], -g[j]


@njit(cache=True, nogil=True)
def residual(atoms: Array, b: Vector, x: Vector, n: int, r: Vector) -> None:
    """Write b - A x."""
    r[:] = b
    for j in range(n):
        if x[j] != 0.0:
            weight, column = x[j], atoms[j]
            for i in range(len(b)):
                r[i] -= weight * column[i]


@njit(cache=True, nogil=True)
def gradient(G: Array, c: Vector, x: Vector, g: Vector) -> None:
    """Write c - G x."""
    for i in range(WIDTH):
        g[i] = c[i]
    for j in range(WIDTH):
        row, weight = G[j], x[j]
        for i in range(WIDTH):
            g[i] -= weight * row[i]


@njit(cache=True, nogil=True)
def certified(
    x: Vector, g: Vector, sums: Vector, others: Vector, m: int, square: float, left: float
) -> tuple[float, bool]:
    """Return the gap of weights x with g = A'r, and whether it is proved; as in `certificate`.

    `sums` and `others` are A't for the vector of ones and for the one of the support.
    """
    complementarity = 0.0
    for j in range(WIDTH):
        complementarity -= x[j] * g[j]
    for attempt in range(2):
        against = sums if attempt == 0 else others
        v = tilt(g, against)
        if v >= 0.0:
            reach = 0.0
            for j in range(WIDTH):
                reach += x[j] * against[j]
            length = float(m) if attempt == 0 else square
            gap = complementarity + v * (reach + 0.5 * v * length)
            return max(0.0, min(gap, 0.5 * left)), True
    return 0.5 * left, True
