"""The affine-invariant constants of an objective on an atom set: its curvature both ways."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.objectives import Objective
from conepursuit.theory.sets import as_points, atoms_as_columns, diameter, radius
from conepursuit.theory.widths import cone_width

NULL = 1e-13
"""Eigenvalues of A'QA below this share of the largest are rounding."""


def curvature_constant(
    objective: Objective, A: Any, rho: float = 1.0, *, pairwise: bool = False
) -> float:
    """Return C, the largest curvature of f along the steps of an algorithm.

    Parameters
    ----------
    objective : Objective
        f.
    A : array_like of shape (d, n), or a finite atom set
        One atom per column; the origin is implied.
    rho : float
        The scale: C is that of f on rho * A.
    pairwise : bool
        Whether steps lead along s - v, as those of AMP, PWMP and FCMP, or along s, as those of
        NNMP and MP.

    Returns
    -------
    float
        ``rho^2 max_s <s, Q s>``, or ``rho^2 max_{s, v} <s - v, Q (s - v)>`` with s and v in
        A u {0}, where f is quadratic with Hessian Q; an upper bound, L rho^2 radius(A)^2 or
        L rho^2 diam(A)^2, for other f.

    Notes
    -----
    C = sup 2 / gamma^2 D(x + gamma d, x), with D the distance of f from its tangent at x, over x
    in rho conv(A), d in rho A, or rho (A - A), and gamma in [0, 1]. Taking v from -A as well, as
    the paper writes, would double the diameter and is not needed (C5). Give C and rho to
    `CurvatureStep`; only C / rho^2 matters, and for a quadratic it does not depend on rho (C4).

    Examples
    --------
    >>> from conepursuit import LeastSquares
    >>> from conepursuit.theory import curvature_constant
    >>> curvature_constant(LeastSquares([1.0, 1.0]), [[1.0, 0.0], [0.0, 1.0]], pairwise=True)
    2.0
    """
    gram = _hessian_gram(objective, A)
    if gram is None:
        if objective.smoothness is None:
            raise ValueError(
                f"a bound on the curvature needs the smoothness L; {objective!r} has none. "
                "Give smoothness=, or use AdaptiveStep(), which needs no constant."
            )
        size = diameter(A) if pairwise else radius(A)
        return objective.smoothness * (rho * size) ** 2
    squares = np.append(0.0, np.diag(gram))
    if not pairwise:
        return rho**2 * float(squares.max())
    products = np.pad(gram, ((1, 0), (1, 0)))
    return rho**2 * float((squares[:, None] + squares - products - products.T).max())


def strong_convexity_constant(objective: Objective, A: Any) -> float:
    """Return mu_f, the affine-invariant strong convexity of f on cone(A).

    Parameters
    ----------
    objective : Objective
        f.
    A : array_like of shape (d, n), or a finite atom set
        One atom per column; the origin is implied.

    Returns
    -------
    float
        For a quadratic with Hessian Q the squared cone width of Q^(1/2) A, exact for the worst
        linear term in the range of Q; a lower bound, mu CWidth(A)^2, for other f.

    Notes
    -----
    mu_f = inf 2 / gamma^2 D(x*, x), gamma = <r, x* - x> / <r, s - v>, where r = -grad f(x), s is
    the atom of steepest descent and v the one of steepest ascent in an active set of x, the origin
    included. gamma is squared (C1), and s and v are taken in A, not in rho A (C2): then mu_f does
    not depend on rho, ``f(x) - f* <= <r, s - v>^2 / (2 mu_f)``, and the rate is
    delta^2 rho^2 mu_f / C. For a quadratic D = <e, Q e> / 2 with e = x* - x, and in the
    coordinates Q^(1/2) x this is the definition of the cone width. So a rate is promised even
    where Q is singular, and where f is strongly convex one at least as good as that of the norms.

    The cost is that of `cone_width`. A'QA is formed, so that atoms which are dependent to 3e-7 in
    the geometry of Q count as dependent.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import Quadratic
    >>> from conepursuit.theory import strong_convexity_constant
    >>> f = Quadratic(np.diag([1.0, 1e-6]), np.ones(2))
    >>> round(strong_convexity_constant(f, np.diag([1.0, 1e3])), 6)
    0.5
    """
    gram = _hessian_gram(objective, A)
    if gram is None:
        mu = objective.strong_convexity
        return mu * cone_width(A) ** 2 if mu else 0.0
    values, vectors = np.linalg.eigh(gram)
    used = values > NULL * values[-1]
    if not used.any():
        raise ValueError("f is linear on the cone of these atoms; it has no curvature at all.")
    return cone_width(np.sqrt(values[used])[:, None] * vectors[:, used].T) ** 2


def _hessian_gram(objective: Objective, A: Any) -> Array | None:
    """Return A'QA where f is quadratic with Hessian Q, None where it is not."""
    columns = as_points(A).columns[1:]
    atoms = atoms_as_columns(A)[:, columns]
    if atoms.shape[0] != prod(objective.shape):
        raise ValueError(
            f"the atoms must fit the objective, of shape {objective.shape}; got columns of length "
            f"{atoms.shape[0]}."
        )
    hessian = objective.hessian(objective.origin()) if objective.quadratic else None
    if hessian is None:
        return None
    images = np.stack([hessian(a.reshape(objective.shape)).reshape(-1) for a in atoms.T], axis=1)
    gram = atoms.T @ images
    symmetric: Array = 0.5 * (gram + gram.T)
    return symmetric
