"""A lower triangular factor C of the Gram matrix of some atoms, C C' = A'A, updated in place.

It is kept row by row, so that every inner loop runs over contiguous memory, with the reciprocals of
its pivots on the diagonal, so that solving needs no division. Adding and removing an atom costs
O(k^2).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import EPS as EPS

REORDERED = {"reassoc", "contract", "nsz"}
"""Liberties of the compiler by which a sum runs in vector registers.

It may reorder terms, fuse products with sums, and ignore the sign of zero; NaN stays NaN.
"""


@njit(cache=True, nogil=True, fastmath=REORDERED)
def dot(a: Vector, b: Vector, k: int) -> float:
    """Return the inner product of the first k entries."""
    total = 0.0
    for i in range(k):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def forward_solve(C: Array, k: int, y: Vector) -> None:
    """Overwrite y with C^-1 y; C has k rows."""
    for i in range(k):
        y[i] = (y[i] - dot(C[i], y, i)) * C[i, i]


@njit(cache=True, nogil=True)
def backward_solve(C: Array, k: int, y: Vector) -> None:
    """Overwrite y with C^-T y; C has k rows."""
    for i in range(k - 1, -1, -1):
        y[i] *= C[i, i]
        for j in range(i):
            y[j] -= y[i] * C[i, j]


@njit(cache=True, nogil=True)
def append(C: Array, order: Array, k: int, gram: Vector, atom: int, floor: float) -> bool:
    """Add an atom to the factor as row k; False, and no row is added, if it depends on the others.

    `gram` is the row of the Gram matrix of the atom. The atom depends on the others if the squared
    sine of its angle to them is at most `floor`. The first k entries of row k hold the solution of
    C y = gram[order] in either case.
    """
    for i in range(k):
        C[k, i] = gram[order[i]]
    order[k] = atom
    return complete(C, k, gram[atom], floor)


@njit(cache=True, nogil=True)
def complete(C: Array, k: int, square: float, floor: float) -> bool:
    """Make row k of the factor from the products of an atom with the others, which row k holds.

    `square` is the squared norm of the atom; `floor` and the returned value are as in `append`.
    """
    row = C[k]
    forward_solve(C, k, row)
    pivot = square - dot(row, row, k)
    if not pivot > floor * square:
        return False
    row[k] = 1.0 / np.sqrt(pivot)
    return True


@njit(cache=True, nogil=True)
def remove(C: Array, order: Array, k: int, place: int, cosines: Vector, sines: Vector) -> None:
    """Delete row `place` of a factor of k rows by plane rotations.

    Rotation i, for place <= i < k - 1, mixes columns i and i + 1. `cosines` and `sines` receive the
    rotations; `rotate` and `rotate_rows` apply them to what else is kept with the factor.
    """
    for i in range(place, k - 1):
        order[i] = order[i + 1]
        old, row = C[i + 1], C[i]
        for j in range(place):
            row[j] = old[j]
        carried = old[place]
        for j in range(place, i):
            row[j] = cosines[j] * carried + sines[j] * old[j + 1]
            carried = cosines[j] * old[j + 1] - sines[j] * carried
        pivot = 1.0 / old[i + 1]
        length = np.sqrt(carried * carried + pivot * pivot)
        cosines[i], sines[i] = carried / length, pivot / length
        row[i] = 1.0 / length


@njit(cache=True, nogil=True)
def rotate(y: Vector, k: int, place: int, cosines: Vector, sines: Vector) -> None:
    """Apply the rotations of `remove` to y = C^-1 c; entry k - 1 is then outside the factor."""
    carried = y[place]
    for i in range(place, k - 1):
        following = y[i + 1]
        y[i] = cosines[i] * carried + sines[i] * following
        carried = cosines[i] * following - sines[i] * carried
    y[k - 1] = carried


@njit(cache=True, nogil=True)
def rotate_rows(Q: Array, k: int, place: int, cosines: Vector, sines: Vector) -> None:
    """Apply the rotations of `remove` to the rows of Q; row k - 1 is then outside the basis."""
    for i in range(place, k - 1):
        upper, lower = Q[i], Q[i + 1]
        for j in range(Q.shape[1]):
            carried, following = upper[j], lower[j]
            upper[j] = cosines[i] * carried + sines[i] * following
            lower[j] = cosines[i] * following - sines[i] * carried
