"""What the theorems promise: bounds on f(x_t) - f* as functions of the number of steps.

References
----------
F. Locatello, M. Tschannen, G. Rätsch, M. Jaggi. Greedy Algorithms for Cone Constrained
Optimization with Convergence Guarantees. NIPS 2017. With the corrections of docs/errata.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector

AWAY = 0.25
"""The rate of AMP as a share of the pairwise rate (B1).

The steeper of z and -v has at least half the slope of z - v, and the rate has its square.
"""


def sublinear_bound(
    t: Any, *, smoothness: float, rho: float, radius: float, start: float, accuracy: float = 1.0
) -> Vector:
    """Return Theorem 2: the bound on f(x_t) - f* for NNMP and FCMP.

    ``4 (2/delta L rho^2 radius(A)^2 + eps_0) / (delta t + 4)``

    Parameters
    ----------
    t : int or array_like of int
        Steps made.
    smoothness : float
        L.
    rho : float
        A bound on the gauge of the minimiser and of every iterate; where NNMP scales -x by the
        sum of the weights, on that sum (A8).
    radius : float
        The largest norm of an atom.
    start : float
        eps_0 = f(x_0) - f*.
    accuracy : float
        delta of the oracle.
    """
    curvature = smoothness * (rho * radius) ** 2
    return affine_sublinear_bound(t, curvature=curvature, start=start, accuracy=accuracy)


def affine_sublinear_bound(
    t: Any, *, curvature: float, start: float, accuracy: float = 1.0
) -> Vector:
    """Return Theorem 5: the bound on f(x_t) - f* for the affine-invariant NNMP, and FCMP.

    ``4 (2/delta C + eps_0) / (delta t + 4)``

    Parameters
    ----------
    t : int or array_like of int
        Steps made.
    curvature : float
        C, the `curvature_constant` of f on rho * A.
    start, accuracy
        As in `sublinear_bound`.
    """
    _check(accuracy)
    return 4 * (2 / accuracy * curvature + start) / (accuracy * _steps(t) + 4)


def good_steps_bound(
    k: Any,
    *,
    smoothness: float,
    rho: float,
    diameter: float,
    start: float,
    accuracy: float = 1.0,
    away: bool = False,
) -> Vector:
    """Return the part of Theorem 3 without strong convexity, for PWMP and AMP.

    ``2 (C / d + eps_0) / (d k + 2)``, C = L rho^2 diam(A)^2, with d = delta / 2, or delta / 4 for
    AMP: the constants of the paper, whose argument gives twice these d.

    Parameters
    ----------
    k : int or array_like of int
        Good steps made; see `good_steps`.
    smoothness, start, accuracy
        As in `sublinear_bound`.
    rho : float
        A bound on the sum of the weights, as they are stored, of the minimiser and of every
        iterate (B6).
    diameter : float
        The largest distance of two atoms, the origin included.
    away : bool
        Whether the algorithm is AMP.
    """
    share = accuracy / 4 if away else accuracy / 2
    curvature = smoothness * (rho * diameter) ** 2
    _check(accuracy)
    return 2 * (curvature / share + start) / (share * _steps(k) + 2)


def linear_rate(
    *,
    smoothness: float,
    strong_convexity: float,
    width: float,
    diameter: float,
    accuracy: float = 1.0,
    away: bool = False,
) -> float:
    """Return beta of Theorem 3: a good step leaves at most 1 - beta of f(x_t) - f*.

    ``delta^2 mu CWidth(A)^2 / (L diam(A)^2)``; a quarter of it for AMP (B1).

    Parameters
    ----------
    smoothness, strong_convexity : float
        L and mu.
    width : float
        The `cone_width` of the atoms.
    diameter : float
        Their `diameter`; for AMP, whose directions are atoms up to a sign, the `radius` serves as
        well.
    accuracy : float
        delta of the oracle.
    away : bool
        Whether the algorithm is AMP.
    """
    return affine_linear_rate(
        curvature=smoothness * diameter**2,
        strong_convexity=strong_convexity * width**2,
        accuracy=accuracy,
        away=away,
    )


def affine_linear_rate(
    *,
    curvature: float,
    strong_convexity: float,
    rho: float = 1.0,
    accuracy: float = 1.0,
    away: bool = False,
) -> float:
    """Return beta of Theorem 6, the affine-invariant version of Theorem 3.

    ``delta^2 rho^2 mu_f / C``; a quarter of it for AMP (B1, C2).

    Parameters
    ----------
    curvature : float
        C, the pairwise `curvature_constant` of f on rho * A.
    strong_convexity : float
        mu_f, the `strong_convexity_constant`.
    rho : float
        The scale of C.
    accuracy : float
        delta of the oracle.
    away : bool
        Whether the algorithm is AMP.
    """
    _check(accuracy)
    if not curvature > 0:
        raise ValueError(
            "the curvature L diam(A)^2, or C, must be positive for a rate; got "
            f"{curvature:g}. Check the smoothness and the size of the atoms."
        )
    return (AWAY if away else 1.0) * accuracy**2 * rho**2 * strong_convexity / curvature


def linear_bound(k: Any, *, start: float, **constants: Any) -> Vector:
    """Return Theorem 3: the bound on f(x_t) - f* for PWMP, AMP and FCMP.

    ``eps_0 (1 - beta)^k``

    Parameters
    ----------
    k : int or array_like of int
        Good steps made; see `good_steps`.
    start : float
        eps_0 = f(x_0) - f*.
    **constants
        Those of `linear_rate`.

    Examples
    --------
    >>> from conepursuit.theory import linear_bound
    >>> rate = {"smoothness": 1.0, "strong_convexity": 1.0, "width": 0.5, "diameter": 1.0}
    >>> float(linear_bound(2, start=8.0, **rate))
    4.5
    """
    return start * (1 - linear_rate(**constants)) ** _steps(k)


def affine_linear_bound(k: Any, *, start: float, **constants: Any) -> Vector:
    """Return Theorem 6: the bound on f(x_t) - f* for the affine-invariant PWMP, AMP and FCMP.

    ``eps_0 (1 - beta)^k``

    Parameters
    ----------
    k : int or array_like of int
        Good steps made; see `good_steps`.
    start : float
        eps_0 = f(x_0) - f*.
    **constants
        Those of `affine_linear_rate`.
    """
    return start * (1 - affine_linear_rate(**constants)) ** _steps(k)


def _steps(given: Any) -> Array:
    steps: Array = np.asarray(given, dtype=np.float64)
    if (steps < 0).any():
        raise ValueError(f"a number of steps is not negative; got {steps.min():g}.")
    return steps


def _check(accuracy: float) -> None:
    if not 0 < accuracy <= 1:
        raise ValueError(f"the accuracy of an oracle is in (0, 1]; got {accuracy}.")
