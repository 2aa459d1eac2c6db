"""Objectives with a constant Hessian."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from conepursuit.arrays import EPS, Array, inner, length, norm, zeros
from conepursuit.atoms.base import Atoms
from conepursuit.linear import as_matrix, matvec, symmetric_spectrum
from conepursuit.objectives.base import LARGEST_SCALE, Objective, as_target
from conepursuit.objectives.entrywise import EntrywiseLoss
from conepursuit.rounding import product_rounding


class LeastSquares(EntrywiseLoss):
    """f(x) = 1/2 sum_i w_i (x_i - y_i)^2; without weights 1/2 ||x - y||^2.

    Parameters
    ----------
    y : array_like
        The target, of any shape.
    weights, mask
        See `EntrywiseLoss`.
    """

    quadratic = True

    def __init__(self, y: Any, *, weights: Any = None, mask: Any = None) -> None:
        super().__init__(y, weights=weights, mask=mask)
        self.smoothness = self.largest_weight
        self.strong_convexity = 1.0 if self.weights is None else float(self.weights.min())

    def losses(self, x: Array) -> Array:
        return 0.5 * (x - self.y) ** 2

    def slopes(self, x: Array) -> Array:
        return x - self.y

    def curvatures(self, x: Array) -> Array:
        return np.ones(self.shape)

    def excesses(self, x: Array, v: Array) -> Array:
        return 0.5 * (x - self.y - v) ** 2

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        residual = x - self.y
        gradient = residual if self.weights is None else self.weights * residual
        return 0.5 * inner(residual, gradient), gradient

    def origin(self) -> Array:
        return zeros(self.shape, like=self.y)

    def gap_rounding(
        self, x: Array, value: float, size: Array | float, drift: Array | float
    ) -> float:
        # The gap is 1/2 ||g - u||^2 for the exact gradient g. The computed one differs from it by
        # its own rounding and by the drift; no term cancels.
        if self.weights is not None:
            return super().gap_rounding(x, value, size, drift)
        away = 2 * EPS * length(size) + length(drift)
        return 2 * length(size) * away + away * away + 16 * EPS * abs(value)

    def hessian(self, x: Array) -> Callable[[Array], Array]:
        return lambda d: d if self.weights is None else self.weights * d

    def model(self, x: Array, atoms: Atoms, others: Atoms) -> Array:
        if self.weights is None:
            return atoms.gram(others)
        return atoms.weighted_gram(self.weights, others)

    def conjugate(self, u: Array) -> float:
        v = self.per_weight(u)
        return inf if v is None else 0.5 * inner(u, v) + inner(u, self.y)

    @cached_property
    def minimizer_bound(self) -> float | None:  # type: ignore[override]  # computed when asked for
        # x* is a projection of y in the norm of the weights, and 0 is in the cone.
        if self.weights is None:
            return norm(self.y)
        if self.strong_convexity == 0:
            return None
        return float(np.sqrt(inner(self.weights * self.y, self.y) / self.strong_convexity))

    def duality_gap(
        self, x: Array, value: float, gradient: Array, tilt: Array | None, largest: float
    ) -> float | None:
        gx, gg = inner(gradient, x), 2.0 * value
        if tilt is None:
            return least_gap(gx, gg, 0.0, 0.0, 0.0, largest)
        share = self.per_weight(tilt)
        if share is None:
            return None
        return least_gap(
            gx, gg, inner(tilt, x), inner(share, gradient), inner(tilt, share), largest
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

    def gap_rounding(
        self, x: Array, value: float, size: Array | float, drift: Array | float
    ) -> float:
        # The gap is 1/2 <g - u, Q^-1 (g - u)> for the exact gradient g, and Q^-1 is at most 1 / mu.
        if self._factor is None or self.smoothness is None:
            return 0.0  # there is no conjugate, and nothing of it in a gap
        computed = product_rounding(len(self.c)) * (self.smoothness * norm(x) + norm(self.c))
        away = computed + self.smoothness * length(drift)
        return (2 * length(size) * away + away * away) / self.strong_convexity

    def hessian(self, x: Array) -> Callable[[Array], Array]:
        return lambda d: matvec(self.Q, d)

    @cached_property
    def _factor(self) -> Any:
        """Cholesky factor of Q; None if Q is not an array, or is close to singular."""
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
    e = min(max(e, -1.0), min(largest, LARGEST_SCALE) - 1.0)
    s = 1.0 + e
    square = e * e * gg + 2.0 * e * s * gt + s * s * tt
    return s * (gx + tx) + 0.5 * inflation * square
