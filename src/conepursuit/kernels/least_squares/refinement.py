"""Iterative refinement of a least-squares solution, with residuals in twice the precision.

A solution computed by a QR factorisation loses digits with the square of the condition number
where the residual is not small. Refining x and r together (Björck 1967) gives them back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.shared.triangular import EPS, backward_solve, dot, forward_solve


@intrinsic
def _fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once: the fused operation of the processor."""
    signature = types.float64(types.float64, types.float64, types.float64)
    return signature, lambda context, builder, signature, given: builder.fma(*given)


fused: Any = _fused


@njit(cache=True, nogil=True)
def product_error(a: float, b: float) -> float:
    """Return a * b minus its rounded value."""
    return float(fused(a, b, -(a * b)))


@njit(cache=True, nogil=True)
def sum_error(a: float, b: float) -> float:
    """Return a + b minus its rounded value."""
    total = a + b
    share = total - a
    return (a - (total - share)) + (b - share)


@njit(cache=True, nogil=True)
def accurate_residual(
    atoms: Array, b: Vector, r: Vector, x: Vector, order: Array, k: int, out: Vector
) -> None:
    """Write b - r - A x, computed in twice the precision and rounded once.

    Only the first k atoms in `order` have weight.
    """
    low = np.zeros(len(b))
    for i in range(len(b)):
        low[i] = sum_error(b[i], -r[i])
        out[i] = b[i] - r[i]
    for p in range(k):
        weight, column = -x[order[p]], atoms[order[p]]
        for i in range(len(b)):
            term = weight * column[i]
            low[i] += product_error(weight, column[i]) + sum_error(out[i], term)
            out[i] += term
    out += low


@njit(cache=True, nogil=True)
def accurate_dot(a: Vector, b: Vector) -> float:
    """Return <a, b>, computed in twice the precision and rounded once."""
    high, low = 0.0, 0.0
    for i in range(len(a)):
        term = a[i] * b[i]
        low += product_error(a[i], b[i]) + sum_error(high, term)
        high += term
    return high + low


@njit(cache=True, nogil=True)
def accurate_slopes(atoms: Array, order: Array, k: int, r: Vector, out: Vector) -> None:
    """Write <a, r> for the first k atoms in `order`, summed in twice the precision.

    The atoms are transposed first, so that the inner loop runs over atoms, in vector registers.
    """
    m = len(r)
    columns, low = np.empty((m, k)), np.zeros(k)
    for i in range(k):
        row = atoms[order[i]]
        for j in range(m):
            columns[j, i] = row[j]
        out[i] = 0.0
    for j in range(m):
        weight, line = r[j], columns[j]
        for i in range(k):
            term = weight * line[i]
            low[i] += sum_error(out[i], term) + product_error(weight, line[i])
            out[i] += term
    for i in range(k):
        out[i] += low[i]


@njit(cache=True, nogil=True)
def refine(
    atoms: Array, b: Vector, x: Vector, r: Vector, order: Array, k: int, C: Array, Q: Array
) -> None:
    """Correct x and r = b - A x of the passive atoms, in place, until corrections are rounding.

    It also ends when a correction is not less than half of the one before.

    Notes
    -----
    With A_P = Q'C' and f = b - r - A x, h = C^-1 (-A'r), the correction solves the augmented
    system ``r + A x = b, A'r = 0``: dx = C^-T (Q f - h), dr = f - Q'(Q f - h).
    """
    m, largest = len(b), np.inf
    f, dx = np.empty(m), np.empty(k)
    for _ in range(10):
        accurate_residual(atoms, b, r, x, order, k, f)
        for i in range(k):
            dx[i] = -accurate_dot(atoms[order[i]], r)
        forward_solve(C, k, dx)
        for i in range(k):
            dx[i] = dot(Q[i], f, m) - dx[i]
        for i in range(k):
            for j in range(m):
                f[j] -= dx[i] * Q[i, j]
        backward_solve(C, k, dx)
        change = 0.0
        for i in range(k):
            change = max(change, abs(dx[i]) / max(abs(x[order[i]]), 1e-300))
        if not change < 0.5 * largest:
            break
        for i in range(k):
            x[order[i]] += dx[i]
        for j in range(m):
            r[j] += f[j]
        largest = change
        if change <= EPS:
            break
