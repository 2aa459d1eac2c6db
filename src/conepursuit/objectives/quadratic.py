"""Objectives with a constant Hessian."""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from conepursuit.arrays import Array, inner, norm, zeros
from conepursuit.atoms.base import Atoms
from conepursuit.linear import as_matrix, matvec, symmetric_spectrum
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

    def origin(self) -> Array:
        return zeros(self.shape, like=self.y)

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
        self, x: Array, value: float, gradient: Array, tilt: Array | None, largest: float
    ) -> float:
        gx, gg = inner(gradient, x), 2.0 * value
        if tilt is None:
            return least_gap(gx, gg, 0.0, 0.0, 0.0, largest)
        return least_gap(gx, gg, inner(tilt, x), inner(tilt, gradient), inner(tilt, tilt), largest)


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
        self.Q = as_matrix(Q, "Q")
        self.shape = self.c.shape
        if self.Q.shape != 2 * self.shape:
            raise ValueError(
                f"Q must be square and fit c; got Q of shape {self.Q.shape} "
                f"and c of shape {self.shape}."
            )
        low, high = symmetric_spectrum(self.Q)
        if low < -1e-10 * high or high < 0:
            raise ValueError(
                "Q must be positive semidefinite, or f is not convex; it has an eigenvalue "
                f"{min(low, high):.3g}."
            )
        self.smoothness, self.strong_convexity = high, max(low, 0.0)

    def __repr__(self) -> str:
        return f"Quadratic({self.shape[0]} variables)"

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        product = matvec(self.Q, x)
        return 0.5 * inner(x, product) - inner(self.c, x), product - self.c

    def hessian_product(self, x: Array, d: Array) -> Array:
        return matvec(self.Q, d)

    @cached_property
    def _factor(self) -> Any:
        """Cholesky factor of Q, None where it is not at hand or Q is close to singular."""
        if not isinstance(self.Q, np.ndarray) or self._inflation > 1.01:
            return None
        return cho_factor(self.Q)

    @cached_property
    def _inflation(self) -> float:
        """A factor that keeps a solved quadratic form an upper bound in spite of rounding."""
        if self.strong_convexity == 0 or self.smoothness is None:
            return inf
        condition = self.smoothness / self.strong_convexity
        return 1.0 + 4 * len(self.c) * condition * float(np.finfo(np.float64).eps)

    def conjugate(self, u: Array) -> float | None:
        if self._factor is None:
            return None
        return 0.5 * self._inflation * inner(u + self.c, cho_solve(self._factor, u + self.c))

    def duality_gap(
        self, x: Array, value: float, gradient: Array, tilt: Array | None, largest: float
    ) -> float | None:
        if self._factor is None:
            return None
        t = np.zeros_like(gradient) if tilt is None else tilt
        solved = cho_solve(self._factor, np.stack([gradient, t], axis=1))
        gg, gt, tt = (inner(gradient, solved[:, 0]), inner(t, solved[:, 0]), inner(t, solved[:, 1]))
        gx, tx = inner(gradient, x), inner(t, x)
        return least_gap(gx, gg, tx, gt, tt, largest, self._inflation)


def least_gap(
    gx: float, gg: float, tx: float, gt: float, tt: float, largest: float, inflation: float = 1.0
) -> float:
    """Return the least duality gap of a quadratic over u = s (g + t), s in [0, largest].

    Notes
    -----
    With P the inverse Hessian, ``f(x) + f*(u) = <u, x> + 1/2 <u - g, P (u - g)>``. In this form
    nothing cancels, so that gaps far below f(x) are still right. The arguments are <g, x>,
    <g, P g>, <t, x>, <g, P t>, <t, P t>; in e = s - 1 it is a parabola. `inflation` covers the
    rounding of P.
    """
    square = gg + 2.0 * gt + tt  # <g + t, P (g + t)>
    e = -(gx + tx + gt + tt) / square if square > 0 else 0.0
    e = min(max(e, -1.0), largest - 1.0)
    s = 1.0 + e
    square = e * e * gg + 2.0 * e * s * gt + s * s * tt
    return s * (gx + tx) + 0.5 * inflation * square
