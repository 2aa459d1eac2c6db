"""Objectives made of other objectives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import inf, isfinite
from typing import Any

import numpy as np

from conepursuit.arrays import Array, inner
from conepursuit.linear import as_matrix, matvec, rmatvec, singular_bounds
from conepursuit.objectives.base import Objective
from conepursuit.objectives.entrywise import EntrywiseLoss

NEWTON_STEPS = 200
"""Safeguarded Newton steps for an intercept; a bracket is halved in the worst case."""

EPS = float(np.finfo(np.float64).eps)

BALANCED = 1e-10
"""A dual point whose entries sum to less than this share of their absolute sum sums to zero."""


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

    def hessian(self, x: Array) -> Callable[[Array], Array] | None:
        inside = self.loss.hessian(matvec(self.B, x))
        if inside is None:
            return None
        return lambda d: rmatvec(self.B, inside(matvec(self.B, d)))

    def recedes(self, d: Array) -> bool:
        return self.loss.recedes(matvec(self.B, d))

    def curvature(self, x: Array, d: Array) -> float | None:
        return self.loss.curvature(matvec(self.B, x), matvec(self.B, d))


class FreeIntercept(Objective):
    """f(x) = min_b loss(x + b): a loss with a free intercept, which is eliminated exactly.

    Parameters
    ----------
    loss : EntrywiseLoss
        Such as ``Logistic(y)``.

    Notes
    -----
    With b the best intercept, g and h the slopes and curvatures at x + b: the gradient is g, which
    sums to zero; the Hessian is diag(h) - h h' / sum(h); ``f*(u)`` is that of the loss if u sums to
    zero and infinite otherwise. A loss with a domain may have its best intercept at the end of it,
    where one entry of x + b is zero; then b follows that entry.
    """

    def __init__(self, loss: EntrywiseLoss) -> None:
        if not isinstance(loss, EntrywiseLoss):
            raise ValueError(
                f"FreeIntercept needs a loss over entries, such as Logistic(y); got "
                f"{type(loss).__name__}."
            )
        self.loss, self.shape = loss, loss.shape
        self.smoothness, self.quadratic = loss.smoothness, loss.quadratic

    def __repr__(self) -> str:
        return f"FreeIntercept({self.loss!r})"

    def intercept(self, x: Array) -> float:
        """Return the b that minimises loss(x + b)."""
        low, high = self.loss.lowest_shift(x), inf
        b, scale = self.loss.typical_shift(x), 1.0 + float(np.abs(x).max())
        b, reach = (b if b > low else low + scale), scale
        # Of labels of one class, b has no end; a slope that is rounding of the first one is zero.
        level = EPS * float(np.abs(self.loss.value_and_gradient(x + b)[1]).sum())
        for _ in range(NEWTON_STEPS):
            slope, curvature = self._derivatives(x + b)
            if abs(slope) <= level:
                break
            low, high = (low, b) if slope > 0 else (b, high)
            step = -slope / curvature if 0 < curvature < inf else -np.copysign(inf, slope)
            if abs(step) <= EPS * (abs(b) + scale):
                break
            target = b + min(max(step, -reach), reach)
            reach *= 2.0
            if not low < target < high and isfinite(low + high):
                target = 0.5 * (low + high)
            b = target
        return float(b)

    def _derivatives(self, at: Array) -> tuple[float, float]:
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes, curvatures = self.loss.slopes(at), self.loss.curvatures(at)
            total = float(self.loss.weighted(slopes).sum())
            return (total if total == total else -inf), float(self.loss.weighted(curvatures).sum())

    def _pinned(self, at: Array, gradient: Array) -> int | None:
        """Return the entry at the end of the domain that the intercept follows, if it does."""
        total = float(gradient.sum())
        if total <= BALANCED * float(np.abs(gradient).sum()):
            return None
        return int(np.where(self.loss.counted, at, inf).argmin())

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        at = x + self.intercept(x)
        value, gradient = self.loss.value_and_gradient(at)
        pinned = self._pinned(at, gradient)
        if pinned is not None:
            gradient[pinned] -= gradient.sum()
        return value, gradient

    def hessian(self, x: Array) -> Callable[[Array], Array]:
        at = x + self.intercept(x)
        diagonal = self.loss.stiffness(at)
        pinned = self._pinned(at, self.loss.value_and_gradient(at)[1])
        total = float(diagonal.sum()) or 1.0

        def product(d: Array) -> Array:
            shift = inner(diagonal, d) / total if pinned is None else float(d[pinned])
            out = diagonal * (d - shift)
            if pinned is not None:
                out[pinned] -= out.sum()
            return out

        return product

    def model(self, x: Array, atoms: Any, others: Any) -> Array | None:
        at = x + self.intercept(x)
        if self._pinned(at, self.loss.value_and_gradient(at)[1]) is not None:
            return super().model(x, atoms, others)
        diagonal = self.loss.stiffness(at)
        means = [part.inner(diagonal) for part in (atoms, others)]
        total = float(diagonal.sum()) or 1.0
        return atoms.weighted_gram(diagonal, others) - np.outer(means[0], means[1] / total)

    def curvature(self, x: Array, d: Array) -> float:
        at = x + self.intercept(x)
        if self._pinned(at, self.loss.value_and_gradient(at)[1]) is not None:
            return inner(self.hessian(x)(d), d)
        diagonal = self.loss.weighted(self.loss.curvatures(at))
        shift = inner(diagonal, d) / (float(diagonal.sum()) or 1.0)
        return inner(diagonal * (d - shift), d)

    def conjugate(self, u: Array) -> float:
        unbalanced = abs(float(u.sum())) > BALANCED * float(np.abs(u).sum())
        return inf if unbalanced else self.loss.conjugate(u)

    def duality_gap(
        self, x: Array, value: float, gradient: Array, tilt: Array | None, largest: float
    ) -> float | None:
        total = 0.0 if tilt is None else abs(float((gradient + tilt).sum()))
        if total > BALANCED * float(np.abs(gradient).sum()):
            return None
        return self.loss.duality_gap(x + self.intercept(x), value, gradient, tilt, largest)

    def admissible(self, u: Array, level: float) -> Array:
        v = self.loss.admissible(u, level)
        size = np.abs(v)
        return v - size * (float(v.sum()) / (float(size.sum()) or 1.0))

    def rounding(self, x: Array) -> float:
        at = x + self.intercept(x)
        slope, curvature = self._derivatives(at)
        # What a better intercept would gain; of labels of one class there is always a better one.
        ends = self.loss.lowest_shift(x) > -inf
        missed = 0.0 if ends or not 0 < curvature < inf else 2.0 * slope * slope / curvature
        return self.loss.rounding(at) + missed

    def recedes(self, d: Array) -> bool:
        # Where the intercept alone makes f as small as it can be, f falls along no d.
        base = 0.0 * d
        return self.loss.recedes(d + self.intercept(d)) and not self.loss.recedes(
            base + self.intercept(base)
        )
