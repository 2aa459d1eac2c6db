"""Objectives made of other objectives."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from conepursuit.arrays import Array
from conepursuit.linear import as_matrix, matvec, rmatvec, singular_bounds
from conepursuit.objectives.base import Objective


class Composed(Objective):
    """f(x) = loss(B x), a function of a linear map.

    Parameters
    ----------
    loss : Objective
        A function on vectors.
    B : array_like, scipy.sparse matrix or LinearOperator, shape (m, d)
        The map; m is the size of the loss's argument.

    Notes
    -----
    L is the loss's times ||B||^2, computed when a rule asks for it.
    """

    def __init__(self, loss: Objective, B: Any) -> None:
        if not isinstance(loss, Objective):
            raise ValueError(
                f"Composed needs an Objective of B x; got {type(loss).__name__}. "
                "Use Composed(LeastSquares(y), B)."
            )
        self.loss, self.B = loss, as_matrix(B, "B")
        if (self.B.shape[0],) != loss.shape:
            raise ValueError(
                f"B must be a matrix with one row per entry of the loss's argument, "
                f"{loss.shape}; got shape {tuple(self.B.shape)}."
            )
        self.shape = (int(self.B.shape[1]),)
        self.quadratic = loss.quadratic

    def __repr__(self) -> str:
        return f"Composed({self.loss!r}, {self.B.shape[0]} x {self.B.shape[1]})"

    @cached_property
    def _singular_values(self) -> tuple[float, float]:
        """Bounds of the singular values of B."""
        return singular_bounds(self.B)

    @property
    def smoothness(self) -> float | None:  # type: ignore[override]  # computed when asked for
        L = self.loss.smoothness
        return None if L is None else L * self._singular_values[1] ** 2

    @property
    def strong_convexity(self) -> float:  # type: ignore[override]  # computed when asked for
        return self.loss.strong_convexity * self._singular_values[0] ** 2

    def value(self, x: Array) -> float:
        return self.loss.value(matvec(self.B, x))

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        value, gradient = self.loss.value_and_gradient(matvec(self.B, x))
        return value, rmatvec(self.B, gradient)

    def hessian_product(self, x: Array, d: Array) -> Array | None:
        product = self.loss.hessian_product(matvec(self.B, x), matvec(self.B, d))
        return None if product is None else rmatvec(self.B, product)

    def curvature(self, x: Array, d: Array) -> float | None:
        return self.loss.curvature(matvec(self.B, x), matvec(self.B, d))
