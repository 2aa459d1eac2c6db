"""First and second derivatives of the Kullback-Leibler divergence by the entries of a model Z."""

from __future__ import annotations

from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.shared.triangular import REORDERED

LARGEST = 1e30
"""The largest quotient x / z; larger ones are set to it, so that float32 can hold them."""


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def slopes(X: Array, M: Array, Z: Array, out: Array) -> None:
    """Write m (x / z - 1), minus the gradient; without weights, M is empty.

    Where z is zero and x is not, the quotient is set to the largest of all others, or to 1 if that
    is larger.
    """
    weighted, most, lost = len(M) > 0, 1.0, 0
    for i in range(len(X)):
        x, z, row = X[i], Z[i], out[i]
        for j in range(len(x)):
            quotient = min(x[j] / z[j], LARGEST) if z[j] > 0.0 else 0.0
            most = max(most, quotient)
            lost += x[j] > 0.0 and not z[j] > 0.0
            row[j] = quotient - 1.0
    for i in range(len(X) if lost > 0 else 0):
        for j in range(X.shape[1]):
            if X[i, j] > 0.0 and not Z[i, j] > 0.0:
                out[i, j] = most - 1.0
    for i in range(len(M) if weighted else 0):
        m, row = M[i], out[i]
        for j in range(len(m)):
            row[j] *= m[j]


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def curvature(X: Array, M: Array, Z: Array, u: Vector, v: Vector) -> float:
    """Return <u v', H u v'>, H the Hessian: m x / z^2 on its diagonal, 0 where z = 0."""
    weighted, total = len(M) > 0, 0.0
    for i in range(len(X)):
        x, z, line = X[i], Z[i], 0.0
        for j in range(len(x)):
            share = v[j] / z[j] if z[j] > 0.0 else 0.0
            line += (M[i, j] if weighted else 1.0) * x[j] * share * share
        total += u[i] * u[i] * line
    return total
