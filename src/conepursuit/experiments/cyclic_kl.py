"""The cyclic coordinate descent of Hsieh and Dhillon [1], a baseline of the experiment `kl`.

For data X of shape (rows, cols) and G fixed it lowers, over F >= 0, the divergence

    sum_ij x_ij log(x_ij / (F'G)_ij) - x_ij + (F'G)_ij.

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
from conepursuit.kernels.factorization.greedy import SMALLEST
from conepursuit.kernels.shared.triangular import REORDERED


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
        Positive; a smaller fit is set to it, so that nothing is divided by zero.
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
    """Return Newton's step along an atom; a multiplicative one if that may raise the divergence.

    The slope is concave along the atom, so that a step up ends short of the minimum. A step down
    may go past it, to a point where the slope is `beyond`. The divergence falls by at least
    (slope + beyond) / 2 times the length of the step; if that is negative, the step is replaced.
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
