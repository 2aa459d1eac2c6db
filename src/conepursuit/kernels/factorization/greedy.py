"""Coordinate descent for one factor of a factorisation, as of Hsieh and Dhillon.

For data X of shape (rows, cols) and G fixed, `greedy_sweep` lowers the least-squares objective

    f(F) = 1/2 ||X - F'G||^2 + l1 sum(F) + l2/2 ||F||^2,   F >= 0,

and `cyclic_kl_sweep` the divergence sum_ij x_ij log(x_ij / (F'G)_ij) - x_ij + (F'G)_ij.

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
"""Curvatures below this have lost digits to underflow, and are taken for none."""


@njit(cache=True, nogil=True)
def greedy_sweep(
    gram: Array, target: Array, F: Array, l1: float, l2: float, tolerance: float, max_inner: int
) -> int:
    """Minimise over the entry of each row that lowers f the most, time and again, in place.

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
        elif l1 + l2 > 0.0:  # a component that is zero only costs
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
    """Update the best entry of one row until it gains no more than enough; return how often."""
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
    """Write by how much each entry can lower f; return the best of them, or 0."""
    for r in range(len(f)):
        step = max(-slopes[r] * inverses[r], -f[r])
        gains[r] = -step * (slopes[r] + 0.5 * curvatures[r] * step) if inverses[r] > 0.0 else 0.0
    best, most = 0, 0.0
    for r in range(len(f)):
        if gains[r] > most:
            best, most = r, gains[r]
    return best


@njit(cache=True, nogil=True)
def cyclic_kl_sweep(X: Array, F: Array, G: Array, floor: float) -> None:
    """Make one Newton step along each entry of F in turn, in place; the divergence never rises.

    Parameters
    ----------
    X : array of shape (rows, cols)
        Non-negative data.
    F, G : array of shape (k, rows), (k, cols)
        The factor to update and the other one, both non-negative.
    floor : float
        What the fit is taken for where it is less, so that no logarithm of zero is met; positive.
    """
    fits, totals = np.dot(np.ascontiguousarray(F.T), G), np.empty(len(G))
    for r in range(len(G)):
        totals[r] = G[r].sum()
    for i in range(len(X)):
        fit = fits[i]
        for r in range(len(F)):
            atom = G[r]
            step = kl_step(X[i], fit, atom, totals[r], F[r, i], floor)
            if step != 0.0:
                F[r, i] += step
                for j in range(len(fit)):
                    fit[j] += step * atom[j]


@njit(cache=True, nogil=True, error_model="numpy")
def kl_step(
    x: Vector, fit: Vector, atom: Vector, total: float, weight: float, floor: float
) -> float:
    """Return Newton's step along an atom, or where that might not descend, a multiplicative one.

    The slope is concave along the atom. A step up thus ends short of the minimum, but a step down
    beyond it, where slopes add up to no less than (slope + beyond) / 2 times its length.
    """
    if total == 0.0:
        return 0.0
    pull, curvature = kl_pull(x, fit, atom, 0.0, floor)
    slope = total - pull
    step = max(-slope / curvature, -weight) if curvature > SMALLEST else -weight
    if step < 0.0:
        beyond = total - kl_pull(x, fit, atom, step, floor)[0]
        if slope + beyond < 0.0:
            return weight * (pull / total) - weight
    return step


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def kl_pull(x: Vector, fit: Vector, atom: Vector, step: float, floor: float) -> tuple[float, float]:
    """Return sum_j x_j a_j / z_j and sum_j x_j (a_j / z_j)^2 for the fit z after a step."""
    pull, curvature = 0.0, 0.0
    for j in range(len(x)):
        ratio = atom[j] / max(fit[j] + step * atom[j], floor)
        pull += x[j] * ratio
        curvature += x[j] * ratio * ratio
    return pull, curvature
