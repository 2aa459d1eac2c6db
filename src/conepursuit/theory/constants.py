"""The affine-invariant constants of an objective on an atom set: curvature, strong convexity."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.objectives import Objective
from conepursuit.objectives.base import hessian_at
from conepursuit.theory.faces import span
from conepursuit.theory.sets import as_points, diameter, radius
from conepursuit.theory.widths import cone_width

NULL = 1e-13
"""Eigenvalues of a Hessian of at most this share of the largest are rounding and count as zero."""

SLOPING = 1e-9
"""The part of a gradient in the null space of the Hessian is rounding up to this share of it.

With a larger part f falls along a line without bending, and its strong convexity is 0.
"""


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
    in rho conv(A), d in rho A, or rho (A - A), and gamma in [0, 1]. Taking s and v from A and -A,
    as the paper writes, would put 2 radius(A) for the diameter and is not needed (C5). Give C and
    rho to `CurvatureStep`; only C / rho^2 matters, and for a quadratic it does not depend on rho
    (C4).

    Examples
    --------
    >>> from conepursuit import LeastSquares
    >>> from conepursuit.theory import curvature_constant
    >>> curvature_constant(LeastSquares([1.0, 1.0]), [[1.0, 0.0], [0.0, 1.0]], pairwise=True)
    2.0
    """
    if not 0 < rho < inf:
        raise ValueError(f"rho is a scale and must be positive and finite; got {rho}.")
    model = _Model.of(objective, A)
    if model is None:
        if objective.smoothness is None:
            raise ValueError(
                f"a bound on the curvature needs the smoothness L; {objective!r} has none. "
                "Give smoothness=, or use AdaptiveStep(), which needs no constant."
            )
        size = diameter(A) if pairwise else radius(A)
        return objective.smoothness * (rho * size) ** 2
    points = np.hstack([np.zeros((len(model.atoms), 1)), model.atoms])
    ways = points
    if pairwise:
        ways = (points[:, :, None] - points[:, None]).reshape(len(points), -1)
    return rho**2 * float(np.einsum("ij,ik,kj->j", ways, model.hessian, ways).max())


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
        linear term in the range of Q; 0 where its linear term is outside, so that f falls along a
        line without bending. A lower bound, mu CWidth(A)^2, for other f.

    Notes
    -----
    mu_f = inf 2 / gamma^2 D(x*, x), gamma = <r, x* - x> / <r, s - v>, where r = -grad f(x), s is
    the atom of steepest descent and v the one of steepest ascent in an active set of x, the origin
    included. gamma is squared (C1), and s and v are taken in A, not in rho A (C2): then mu_f does
    not depend on rho, ``f(x) - f* <= <r, s - v>^2 / (2 mu_f)``, and the rate is
    delta^2 rho^2 mu_f / C. For a quadratic D = <e, Q e> / 2 with e = x* - x, and in the
    coordinates Q^(1/2) x this is the definition of the cone width. So a rate is promised even
    where Q is singular, and where f is strongly convex one at least as good as that of the norms.

    The cost is that of `cone_width`.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import Quadratic
    >>> from conepursuit.theory import strong_convexity_constant
    >>> f = Quadratic(np.diag([1.0, 1e-6]), np.ones(2))
    >>> round(strong_convexity_constant(f, np.diag([1.0, 1e3])), 6)
    0.5
    """
    model = _Model.of(objective, A)
    if model is None:
        mu = objective.strong_convexity
        return mu * cone_width(A) ** 2 if mu else 0.0
    values, vectors = np.linalg.eigh(model.hessian)
    used = values > NULL * values[-1]
    if not used.any():
        raise ValueError(
            "f is linear on the span of these atoms and has no curvature there; got a Hessian that "
            "is zero. Use an objective that bends."
        )
    flat = vectors[:, ~used].T @ model.gradient
    if np.linalg.norm(flat) > SLOPING * np.linalg.norm(model.gradient):
        return 0.0  # f falls along a line on which it does not bend
    return cone_width(np.sqrt(values[used])[:, None] * (vectors[:, used].T @ model.atoms)) ** 2


@dataclass(frozen=True)
class _Model:
    """A quadratic objective on the span of the atoms, in orthonormal coordinates.

    Attributes
    ----------
    atoms : array of shape (k, n)
        The atoms.
    hessian : array of shape (k, k)
        The Hessian.
    gradient : array of shape (k,)
        The gradient at the origin.
    """

    atoms: Array
    hessian: Array
    gradient: Vector

    @classmethod
    def of(cls, objective: Objective, A: Any) -> _Model | None:
        """Return the model, None where f is not quadratic."""
        points = as_points(A)
        if points.rows.shape[1] != prod(objective.shape):
            raise ValueError(
                f"the atoms must fit the objective, of shape {objective.shape}; got columns of "
                f"length {points.rows.shape[1]}."
            )
        origin = objective.origin()
        hessian = hessian_at(objective, origin) if objective.quadratic else None
        if hessian is None:
            return None
        basis = span(points.rows)
        images = [hessian(b.reshape(objective.shape)).reshape(-1) for b in basis]
        block = basis @ np.stack(images, axis=1)
        _, gradient = objective.value_and_gradient(origin)
        return cls(
            points.scale * basis @ points.rows[1:].T,
            0.5 * (block + block.T),
            basis @ gradient.reshape(-1),
        )
