"""Objectives made of other objectives."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator, svds

from conepursuit.arrays import Array, as_float_array
from conepursuit.linear import matvec, rmatvec
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
        operator = sparse.issparse(B) or isinstance(B, LinearOperator)
        self.loss, self.B = loss, B if operator else as_float_array(B, "B")
        if len(self.B.shape) != 2 or (self.B.shape[0],) != loss.shape:
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
        if isinstance(self.B, np.ndarray):
            values = np.linalg.svd(self.B, compute_uv=False)
            return float(values[-1]) if self.B.shape[0] >= self.B.shape[1] else 0.0, float(
                values[0]
            )
        if min(self.B.shape) == 1:
            dense = aslinearoperator(self.B) @ np.eye(self.B.shape[1])
            return 0.0, float(np.linalg.norm(dense))
        # A Ritz value lies below the largest singular value by about the tolerance asked for.
        top = svds(
            self.B, k=1, tol=1e-6, v0=np.ones(min(self.B.shape)), return_singular_vectors=False
        )
        return 0.0, float(top[0]) * (1 + 1e-4)

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
