"""Losses of generalised linear models and of robust regression."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from scipy.special import expit, kl_div

from conepursuit.arrays import EPS, Array, is_number
from conepursuit.objectives.entrywise import EntrywiseLoss

BEYOND = 0.01
"""Beyond delta, models of the Huber loss have this share of the curvature of a parabola.

The parabola has its minimum at y and the slope of the loss. Up to delta, models have the curvature
of the loss, which is 0 beyond it and would leave them without a minimum.
"""


class Logistic(EntrywiseLoss):
    """f(x) = sum_i w_i log(1 + exp(-y_i x_i)), for labels y_i of two classes.

    Parameters
    ----------
    y : array_like
        Labels -1 and 1, or 0 and 1, or booleans.
    weights, mask
        See `EntrywiseLoss`.

    Notes
    -----
    ``l*(v) = p log p + (1 - p) log(1 - p)`` with p = -v y in [0, 1]. Where a point of the cone
    separates the classes f has no minimiser; see `recedes`.

    Examples
    --------
    >>> from conepursuit import FCMP, Cone, Dictionary, Logistic, minimize
    >>> A = Dictionary([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 2.0]])
    >>> result = minimize(Logistic([1, 0, 0, 1]), Cone(A), FCMP())
    >>> result.coef.round(4).tolist(), result.status.name
    ([0.6931, 0.0], 'CONVERGED')
    """

    unused = 1.0
    bounded_slopes = may_recede = True

    def __init__(self, y: Any, *, weights: Any = None, mask: Any = None) -> None:
        super().__init__(y, weights=weights, mask=mask)
        labels = np.unique(self.y[self.counted])
        if not (np.isin(labels, (0, 1)).all() or np.isin(labels, (-1, 1)).all()):
            shown = ", ".join(f"{label:g}" for label in labels[:5])
            raise ValueError(
                "Logistic needs labels of two classes, -1 and 1 or 0 and 1; got "
                f"{shown}{', ...' if len(labels) > 5 else ''}. Use y == positive_class."
            )
        self.y = np.where(self.y > 0, 1.0, -1.0)
        self.smoothness = 0.25 * self.largest_weight

    def losses(self, x: Array) -> Array:
        return np.logaddexp(0.0, -self.y * x)

    def slopes(self, x: Array) -> Array:
        return -self.y * expit(-self.y * x)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        # One exponential for both, of a number that is not positive.
        margins = self.y * x
        small = np.exp(-np.abs(margins))
        value = self._sum(np.log1p(small) - np.minimum(margins, 0.0))
        share = np.where(margins > 0, small, 1.0) / (1.0 + small)
        return value, self.weighted(-self.y * share)

    def curvatures(self, x: Array) -> Array:
        small = np.exp(-np.abs(x))
        return small / (1.0 + small) ** 2

    def excesses(self, x: Array, v: Array) -> Array:
        p, margin = -self.y * v, self.y * x
        return kl_div(p, expit(-margin)) + kl_div(1.0 - p, expit(margin))

    def nearest_slopes(self, v: Array, level: float) -> Array:
        # An atom that helps at all its entries has no best weight: it is level at slopes of 0 only.
        p = np.clip(-self.y * v, 0.0, 1.0)
        return -self.y * np.where(p < level, 0.0, p)

    def anchor(self) -> Array:
        return np.zeros(self.shape)

    def sizes(self, x: Array) -> Array:
        return 2.0 + np.maximum(-self.y * x, 0.0) + np.minimum(np.abs(x), 1.0)

    def largest_multiple(self, v: Array) -> float:
        most = float((-self.y * v).max())
        return (1.0 - 4 * EPS) / most if most > 0 else inf

    def typical_shift(self, x: Array) -> float:
        return 0.0

    def recedes(self, d: Array) -> bool:
        margins = (self.y * d)[self.counted]
        return bool(margins.min() >= 0 and margins.max() > 0)


class Huber(EntrywiseLoss):
    """f(x) = sum_i w_i h(x_i - y_i), h(r) = r^2/2 up to |r| = delta and linear beyond.

    Parameters
    ----------
    y : array_like
        The data.
    delta : float
        Where the loss becomes linear, in the units of y: ``delta |r| - delta^2 / 2`` beyond it.
    weights, mask
        See `EntrywiseLoss`.

    Notes
    -----
    ``l*(v) = v y + v^2 / 2`` for |v| <= delta. The second derivative is 1 or 0; models of f have a
    little curvature beyond delta as well, or they would have no minimum.
    """

    bounded_slopes = True

    def __init__(
        self, y: Any, delta: float = 1.0, *, weights: Any = None, mask: Any = None
    ) -> None:
        if not (is_number(delta) and 0 < delta < inf):
            raise ValueError(f"delta must be positive and finite; got {delta!r}.")
        super().__init__(y, weights=weights, mask=mask)
        self.delta, self.smoothness = float(delta), self.largest_weight

    def options(self) -> dict[str, Any]:
        return {"delta": self.delta}

    def losses(self, x: Array) -> Array:
        size = np.abs(x - self.y)
        inside = np.minimum(size, self.delta)
        return inside * (size - 0.5 * inside)

    def slopes(self, x: Array) -> Array:
        return np.clip(x - self.y, -self.delta, self.delta)

    def curvatures(self, x: Array) -> Array:
        return (np.abs(x - self.y) <= self.delta).astype(np.float64)

    def stiffness(self, x: Array) -> Array:
        size = np.maximum(np.abs(x - self.y), self.delta)
        return self.weighted(np.where(size > self.delta, BEYOND * self.delta / size, 1.0))

    def excesses(self, x: Array, v: Array) -> Array:
        residual = x - self.y
        size, along = np.abs(residual), np.where(residual < 0, -v, v)
        inside = 0.5 * (size - along) ** 2
        beyond = (self.delta - along) * (size - 0.5 * (self.delta + along))
        excess = np.where(size <= self.delta, inside, np.maximum(beyond, 0.0))
        return np.where(np.abs(v) <= self.delta, excess, inf)

    def sizes(self, x: Array) -> Array:
        span = np.abs(x) + np.abs(self.y)
        return span * np.minimum(span, self.delta)

    def largest_multiple(self, v: Array) -> float:
        most = float(np.abs(v).max())
        return (1.0 - 4 * EPS) * self.delta / most if most > 0 else inf
