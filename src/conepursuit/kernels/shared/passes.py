"""Products and sums over a dense dictionary, each by one reading of its memory.

Sums are in float64 whatever the type of the data, so that float32 takes half the time and loses
nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.shared.triangular import REORDERED

TILE = 32768
"""Columns whose sums are held in the cache at a time."""


@njit(cache=True, nogil=True, fastmath=REORDERED)
def survey_rows(A: Array, b: Vector) -> tuple[Vector, Vector, Vector]:
    """Return A'b, the squared norms of the columns and their sums, for contiguous rows."""
    m, n = A.shape
    products, squares, sums = np.zeros(n), np.zeros(n), np.zeros(n)
    for start in range(0, n, TILE):
        end = min(start + TILE, n)
        p, s, t = products[start:end], squares[start:end], sums[start:end]
        for i in range(0, m - 3, 4):
            first, second = A[i, start:end], A[i + 1, start:end]
            third, fourth = A[i + 2, start:end], A[i + 3, start:end]
            for j in range(end - start):
                u, v = np.float64(first[j]), np.float64(second[j])
                w, z = np.float64(third[j]), np.float64(fourth[j])
                p[j] += (b[i] * u + b[i + 1] * v) + (b[i + 2] * w + b[i + 3] * z)
                s[j] += (u * u + v * v) + (w * w + z * z)
                t[j] += (u + v) + (w + z)
        for i in range(m - m % 4, m):
            row = A[i, start:end]
            for j in range(end - start):
                u = np.float64(row[j])
                p[j] += b[i] * u
                s[j] += u * u
                t[j] += u
    return products, squares, sums


@njit(cache=True, nogil=True, fastmath=REORDERED)
def moments(column: Vector, b: Vector) -> tuple[float, float, float]:
    """Return the inner product of a column with b, its squared norm and its sum."""
    product, square, total = 0.0, 0.0, 0.0
    for i in range(len(b)):
        v = np.float64(column[i])
        product += b[i] * v
        square += v * v
        total += v
    return product, square, total


@njit(cache=True, nogil=True)
def survey_columns(atoms: Array, b: Vector) -> tuple[Vector, Vector, Vector]:
    """Return what `survey_rows` does, for contiguous columns, which are the rows of `atoms`."""
    n = len(atoms)
    products, squares, sums = np.empty(n), np.empty(n), np.empty(n)
    for j in range(n):
        products[j], squares[j], sums[j] = moments(atoms[j], b)
    return products, squares, sums


@njit(cache=True, nogil=True, fastmath=REORDERED)
def transposed_times(A: Array, r: Vector) -> Vector:
    """Return A'r for contiguous rows."""
    m, n = A.shape
    out = np.zeros(n)
    for start in range(0, n, TILE):
        end = min(start + TILE, n)
        total = out[start:end]
        for i in range(0, m - 3, 4):
            first, second = A[i, start:end], A[i + 1, start:end]
            third, fourth = A[i + 2, start:end], A[i + 3, start:end]
            for j in range(end - start):
                u, v = np.float64(first[j]), np.float64(second[j])
                w, z = np.float64(third[j]), np.float64(fourth[j])
                total[j] += (r[i] * u + r[i + 1] * v) + (r[i + 2] * w + r[i + 3] * z)
        for i in range(m - m % 4, m):
            row = A[i, start:end]
            for j in range(end - start):
                total[j] += r[i] * np.float64(row[j])
    return out


@njit(cache=True, nogil=True, fastmath=REORDERED)
def times(A: Array, x: Vector) -> Vector:
    """Return A x for contiguous rows."""
    out = np.empty(len(A))
    for i in range(len(A)):
        row, total = A[i], 0.0
        for j in range(len(x)):
            total += np.float64(row[j]) * x[j]
        out[i] = total
    return out
