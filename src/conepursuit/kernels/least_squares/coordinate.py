"""Coordinate descent for non-negative least squares, one atom after the other."""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.shared.triangular import dot


@njit(cache=True, nogil=True)
def sweep(atoms: Array, inverse_norms: Vector, x: Vector, r: Vector) -> float:
    """Minimise over each weight x_j >= 0 in turn and update r = b - A x; return ||r||^2."""
    m = len(r)
    for j in range(len(x)):
        column = atoms[j]
        scale = inverse_norms[j] * inverse_norms[j]
        weight = max(0.0, x[j] + scale * dot(column, r, m))
        change = weight - x[j]
        if change != 0.0:
            x[j] = weight
            for i in range(m):
                r[i] -= change * column[i]
    return dot(r, r, m)


@njit(cache=True, nogil=True)
def sweeps(
    atoms: Array, inverse_norms: Vector, x: Vector, r: Vector, target: float, pace: float, most: int
) -> tuple[float, int]:
    """Sweep until ||r||^2 <= target, or a sweep leaves more than the share `pace` of it.

    At most `most` sweeps are made.

    Returns
    -------
    float, int
        ||r||^2, and how many sweeps were made.
    """
    square = np.inf
    for count in range(most):
        before, square = square, sweep(atoms, inverse_norms, x, r)
        if square <= target or square > pace * before:
            return square, count + 1
    return square, most
