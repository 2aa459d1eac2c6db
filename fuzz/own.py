"""Losses and objectives as a user would write them, from the documentation alone."""

from __future__ import annotations

import numpy as np

from conepursuit import EntrywiseLoss, FunctionObjective

__all__ = [
    "AsymmetricSquare",
    "Linex",
    "LogCosh",
    "Quartic",
    "SmoothLogCosh",
    "log_cosh_with",
    "log_cosh_without",
]


class LogCosh(EntrywiseLoss):
    """l(x) = log cosh(x - y)."""

    def losses(self, x):
        r = np.abs(x - self.y)
        return r + np.log1p(np.exp(-2 * r)) - np.log(2)

    def slopes(self, x):
        return np.tanh(x - self.y)

    def curvatures(self, x):
        return 1 - np.tanh(x - self.y) ** 2

    def excesses(self, x, v):
        inside = np.clip(v, -1, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = [np.where(p > 0, p * np.log(p), 0.0) for p in (1 + inside, 1 - inside)]
        conjugate = v * self.y + 0.5 * (parts[0] + parts[1])
        return np.where(np.abs(v) <= 1, np.maximum(self.losses(x) + conjugate - v * x, 0), np.inf)


class SmoothLogCosh(LogCosh):
    """The same, with a bound on its curvature."""

    def __init__(self, y, *, weights=None, mask=None):
        super().__init__(y, weights=weights, mask=mask)
        self.smoothness = self.largest_weight


class AsymmetricSquare(EntrywiseLoss):
    """l(x) = 0.8 r^2 / 2 for r = x - y > 0, 0.2 r^2 / 2 below."""

    def losses(self, x):
        r = x - self.y
        return 0.5 * np.where(r > 0, 0.8, 0.2) * r * r

    def slopes(self, x):
        r = x - self.y
        return np.where(r > 0, 0.8, 0.2) * r

    def curvatures(self, x):
        return np.where(x > self.y, 0.8, 0.2)

    def excesses(self, x, v):
        steep = np.where(v > 0, 0.8, 0.2)
        return np.maximum(self.losses(x) + v * v / (2 * steep) - v * (x - self.y), 0)


class Quartic(EntrywiseLoss):
    """l(x) = (x - y)^4 / 4, which has no bound on its curvature."""

    def losses(self, x):
        return (x - self.y) ** 4 / 4

    def slopes(self, x):
        return (x - self.y) ** 3

    def curvatures(self, x):
        return 3 * (x - self.y) ** 2

    def excesses(self, x, v):
        conjugate = v * self.y + 0.75 * np.abs(v) ** (4 / 3)
        return np.maximum(self.losses(x) + conjugate - v * x, 0)


class Linex(EntrywiseLoss):
    """l(x) = exp(r) - r - 1 with r = x - y, steep on one side and linear on the other."""

    def losses(self, x):
        r = x - self.y
        return np.expm1(r) - r

    def slopes(self, x):
        return np.expm1(x - self.y)

    def curvatures(self, x):
        return np.exp(x - self.y)

    def excesses(self, x, v):
        inside = np.maximum(1 + v, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            conjugate = v * self.y + np.where(inside > 0, inside * np.log(inside), 0.0) - v
        return np.where(v >= -1, np.maximum(self.losses(x) + conjugate - v * x, 0), np.inf)


def log_cosh_without(y):
    """Return the sum of log cosh(x - y) without a conjugate."""
    loss = LogCosh(y)
    return FunctionObjective(lambda x: (loss.losses(x).sum(), loss.slopes(x)), len(y), smoothness=1)


def log_cosh_with(y):
    """Return the sum of log cosh(x - y) with its conjugate."""
    loss = LogCosh(y)
    return FunctionObjective(
        lambda x: (loss.losses(x).sum(), loss.slopes(x)), len(y), smoothness=1,
        conjugate=lambda u: float((loss.excesses(loss.y, u) + u * loss.y).sum()),
    )  # fmt: skip
