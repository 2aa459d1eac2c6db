"""Greedy coordinate descent for one factor of a factorisation, by Hsieh and Dhillon [1].

For data X of shape (rows, cols) and G fixed, `greedy_sweep` lowers the least-squares objective

    f(F) = 1/2 ||X - F'G||^2 + l1 sum(F) + l2/2 ||F||^2,   F >= 0.

References
----------
[1] C.-J. Hsieh, I. S. Dhillon. Fast coordinate descent methods with variable selection for
non-negative matrix factorization. International Conference on Knowledge Discovery and Data Mining,
2011.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.shared.triangular import REORDERED

SMALLEST = 1e-305
"""Curvatures up to this have lost digits to underflow; they count as zero and divide no step."""


@njit(cache=True, nogil=True)
def greedy_sweep(
    gram: Array, target: Array, F: Array, l1: float, l2: float, tolerance: float, max_inner: int
) -> int:
    """Minimise repeatedly over the entry of each row of F' that lowers f the most, in place.

    Parameters
    ----------
    gram : array of shape (k, k)
        G G'.
    target : array of shape (k, rows)
        G X'.
    F : array of shape (k, rows)
        The factor to update, F >= 0.
    l1, l2 : float
        Penalties >= 0 on the sum of F and on half its squares.
    tolerance : float
        A row is done when no entry lowers f by more than this share of what the best entry of all
        rows did at the start; 0.001 in [1].
    max_inner : int
        Most updates of a row.

    Returns
    -------
    int
        The number of updates.
    """
    k, rows = F.shape
    if k == 0:
        return 0
    weights = np.ascontiguousarray(F.T)
    slopes = np.dot(weights, gram) - target.T + (l1 + l2 * weights)
    curvatures, inverses = np.empty(k), np.zeros(k)
    for r in range(k):
        curvatures[r] = gram[r, r] + l2
        if curvatures[r] > SMALLEST:
            inverses[r] = 1.0 / curvatures[r]
        elif l1 + l2 > 0.0:  # a zero component fits nothing, but its weights are penalised
            weights[:, r] = 0.0
    gains, largest = np.empty(k), 0.0
    for i in range(rows):
        best = rate(weights[i], slopes[i], curvatures, inverses, gains)
        largest = max(largest, gains[best])
    updates = 0
    for i in range(rows):
        updates += descend_greedily(
            gram, curvatures, inverses, weights[i], slopes[i], gains, tolerance * largest, max_inner
        )
    F[:] = weights.T
    return updates


@njit(cache=True, nogil=True)
def descend_greedily(
    gram: Array,
    curvatures: Vector,
    inverses: Vector,
    f: Vector,
    slopes: Vector,
    gains: Vector,
    enough: float,
    max_inner: int,
) -> int:
    """Update the best entry of one row until it gains at most `enough`; return how often."""
    for update in range(max_inner):
        best = rate(f, slopes, curvatures, inverses, gains)
        after = max(f[best] - slopes[best] * inverses[best], 0.0)
        change = after - f[best]
        if not gains[best] > enough or change == 0.0:
            return update
        f[best] = after
        row = gram[best]
        for r in range(len(f)):
            slopes[r] += change * row[r]
        slopes[best] += change * (curvatures[best] - row[best])
    return max_inner


@njit(cache=True, nogil=True, fastmath=REORDERED)
def rate(f: Vector, slopes: Vector, curvatures: Vector, inverses: Vector, gains: Vector) -> int:
    """Write by how much each entry can lower f; return the index of the best, 0 if none can."""
    for r in range(len(f)):
        step = max(-slopes[r] * inverses[r], -f[r])
        gains[r] = -step * (slopes[r] + 0.5 * curvatures[r] * step) if inverses[r] > 0.0 else 0.0
    best, most = 0, 0.0
    for r in range(len(f)):
        if gains[r] > most:
            best, most = r, gains[r]
    return best
