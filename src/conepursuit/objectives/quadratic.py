"""Objectives with a constant Hessian."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

from conepursuit.arrays import Array, as_real_array, inner, norm
from conepursuit.atoms.base import Atoms
from conepursuit.linear import matvec
from conepursuit.objectives.base import Objective, as_target


class LeastSquares(Objective):
    """f(x) = 1/2 ||x - y||^2.

    Parameters
    ----------
    y : array_like
        The target, of any shape.
    """

    smoothness = 1.0
    strong_convexity = 1.0
    quadratic = True

    def __init__(self, y: Any) -> None:
        self.y = as_target(y)
        self.shape = tuple(self.y.shape)

    def __repr__(self) -> str:
        return f"LeastSquares(shape={self.shape})"

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        residual = x - self.y
        return 0.5 * inner(residual, residual), residual

    def hessian_product(self, x: Array, d: Array) -> Array:
        return d

    def model(self, x: Array, atoms: Atoms, others: Atoms) -> Array:
        return atoms.gram(others)

    def conjugate(self, u: Array) -> float:
        return 0.5 * inner(u, u) + inner(u, self.y)

    @cached_property
    def minimizer_bound(self) -> float:  # type: ignore[override]  # computed when asked for
        return norm(self.y)  # x* is a projection of y, and 0 is in the cone

    def duality_gap(
        self,
        x: Array,
        value: float,
        gradient: Array,
        functional: Array | None,
        shift: float,
        largest: float,
    ) -> float:
        gx, gg = inner(gradient, x), 2.0 * value
        if functional is None or shift == 0.0:
            return least_gap(gx, gg, 0.0, 0.0, 0.0, largest)
        return least_gap(
            gx,
            gg,
            shift * inner(functional, x),
            shift * inner(functional, gradient),
            shift**2 * inner(functional, functional),
            largest,
        )


class Quadratic(Objective):
    """f(x) = 1/2 <x, Q x> - <c, x>.

    Parameters
    ----------
    Q : array_like, scipy.sparse matrix or LinearOperator, shape (d, d)
        Symmetric and positive semidefinite.
    c : array_like of shape (d,)
        The linear term.
    """

    quadratic = True

    def __init__(self, Q: Any, c: Any) -> None:
        self.c = as_target(c, "c")
        operator = sparse.issparse(Q) or isinstance(Q, LinearOperator)
        self.Q = Q if operator else as_real_array(Q, "Q").astype(np.float64, copy=False)
        self.shape = self.c.shape
        if self.Q.shape != 2 * self.shape:
            raise ValueError(
                f"Q must be square and fit c; got Q of shape {self.Q.shape} "
                f"and c of shape {self.shape}."
            )
        low, high = self._spectrum()
        if low < -1e-10 * high:
            raise ValueError(
                "Q must be positive semidefinite, or f is not convex; its least "
                f"eigenvalue is {low:.3g}."
            )
        self.smoothness, self.strong_convexity = high, max(low, 0.0)

    def __repr__(self) -> str:
        return f"Quadratic({self.shape[0]} variables)"

    def _spectrum(self) -> tuple[float, float]:
        """Return bounds of the eigenvalues."""
        if isinstance(self.Q, np.ndarray):
            if not np.isfinite(self.Q).all():
                raise ValueError("Q must be finite; got NaN or infinity.")
            if np.abs(self.Q - self.Q.T).max() > 1e-12 * np.abs(self.Q).max():
                raise ValueError("Q must be symmetric. Use (Q + Q.T) / 2, which is the same f.")
            values = eigvalsh(self.Q)
            return float(values[0]), float(values[-1])
        # A Ritz value lies below the largest eigenvalue by about the tolerance asked for.
        high = eigsh(
            self.Q, k=1, which="LA", tol=1e-6, v0=np.ones(self.shape), return_eigenvectors=False
        )
        return 0.0, float(high[0]) * (1 + 1e-4)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        product = matvec(self.Q, x)
        return 0.5 * inner(x, product) - inner(self.c, x), product - self.c

    def hessian_product(self, x: Array, d: Array) -> Array:
        return matvec(self.Q, d)

    @cached_property
    def _factor(self) -> Any:
        """Cholesky factor of Q, None where it is not at hand or Q is singular."""
        if not isinstance(self.Q, np.ndarray) or (
            self.strong_convexity <= 1e-12 * (self.smoothness or 0.0)
        ):
            return None
        try:
            return cho_factor(self.Q)
        except LinAlgError:
            return None

    def conjugate(self, u: Array) -> float | None:
        if self._factor is None:
            return None
        return 0.5 * inner(u + self.c, cho_solve(self._factor, u + self.c))

    def duality_gap(
        self,
        x: Array,
        value: float,
        gradient: Array,
        functional: Array | None,
        shift: float,
        largest: float,
    ) -> float | None:
        if self._factor is None:
            return None
        t = np.zeros_like(gradient) if functional is None else shift * functional
        solved = cho_solve(self._factor, np.stack([gradient, t], axis=1))
        return least_gap(
            inner(gradient, x),
            inner(gradient, solved[:, 0]),
            inner(t, x),
            inner(t, solved[:, 0]),
            inner(t, solved[:, 1]),
            largest,
        )


def least_gap(gx: float, gg: float, tx: float, gt: float, tt: float, largest: float) -> float:
    """Return the least duality gap of a quadratic over u = s (g + t), s in [0, largest].

    Notes
    -----
    With P the inverse Hessian, ``f(x) + f*(u) = <u, x> + 1/2 <u - g, P (u - g)>``. In this form
    nothing cancels, so that gaps far below f(x) are still right. The arguments are <g, x>,
    <g, P g>, <t, x>, <g, P t>, <t, P t>; in e = s - 1 it is a parabola.
    """
    square = gg + 2.0 * gt + tt  # <g + t, P (g + t)>
    e = -(gx + tx + gt + tt) / square if square > 0 else 0.0
    e = min(max(e, -1.0), largest - 1.0)
    s = 1.0 + e
    return s * (gx + tx) + 0.5 * (e * e * gg + 2.0 * e * s * gt + s * s * tt)
