"""Divergences between non-negative data and a non-negative x."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from scipy.special import kl_div, xlogy

from conepursuit.arrays import EPS, Array, is_number
from conepursuit.objectives.entrywise import EntrywiseLoss

ROOT_STEPS = 100
"""Most Newton steps for the roots that a conjugate needs; they converge monotonically."""


class KullbackLeibler(EntrywiseLoss):
    """f(x) = sum_i w_i [(y_i + e) log((y_i + e) / (x_i + e)) - y_i + x_i], the generalised KL.

    Parameters
    ----------
    y : array_like
        Non-negative data; zeros are fine.
    shift : float
        e >= 0. With 0, the default, f is infinite at the origin if a y_i is positive, has no
        smoothness L, and a run starts from a multiple of an atom; steps keep inside the domain.
        With e > 0 it is smooth, L = max_i w_i (y_i + e) / e^2 [1].
    weights, mask
        See `EntrywiseLoss`.

    Notes
    -----
    ``l*(v) = -(y + e) log(1 - v) - e v`` for v < 1. Where y + e = 0, l(x) = x for x >= 0. The
    domain is x + e >= 0, so that predictions are never negative: atoms should be non-negative.

    References
    ----------
    [1] The paper's own correction adds e inside the logarithm only, and its gradient is not that
    of its objective; see docs/errata.md.
    """

    def __init__(
        self, y: Any, *, shift: float = 0.0, weights: Any = None, mask: Any = None
    ) -> None:
        super().__init__(y, weights=weights, mask=mask)
        _check_counts(self)
        if not (is_number(shift) and 0 <= shift < inf):
            raise ValueError(f"shift must be finite and not negative; got {shift!r}.")
        self.shift, self._shifted = float(shift), self.y + shift
        if shift > 0:
            self.smoothness = float(self.weighted(self._shifted).max()) / shift**2

    def options(self) -> dict[str, Any]:
        return {"shift": self.shift}

    def losses(self, x: Array) -> Array:
        return kl_div(self._shifted, without_rounding(x + self.shift))

    def rounding(self, x: Array) -> float:
        # Terms of the size of y and x cancel where they agree.
        return 8 * EPS * float(self.weighted(self._shifted + np.abs(x)).sum())

    def slopes(self, x: Array) -> Array:
        # Where y + e = 0 the slope is 1, also at x + e = 0.
        ratio = np.divide(
            self._shifted, x + self.shift, out=np.zeros(self.shape), where=self._shifted > 0
        )
        return 1.0 - ratio

    def curvatures(self, x: Array) -> Array:
        return np.divide(
            self._shifted, (x + self.shift) ** 2, out=np.zeros(self.shape), where=self._shifted > 0
        )

    def excesses(self, x: Array, v: Array) -> Array:
        complement = np.where(v <= 1, 1.0 - v, -1.0)
        return kl_div(self._shifted, (x + self.shift) * complement)

    def sizes(self, x: Array) -> Array:
        return self._shifted + np.abs(x + self.shift)

    def steepest_bend(self, x: Array, drift: Array) -> Array:
        return bend_inside(self._shifted, x + self.shift, drift, 1.3 * self.curvatures(x))

    def nearest_slopes(self, v: Array, level: float) -> Array:
        return np.minimum(v, 1.0)

    def largest_multiple(self, v: Array) -> float:
        most = float(v.max())
        return (1.0 - 4 * EPS) / most if most > 0 else inf

    def least_intercept(self) -> float:
        return least_intercept(self)

    def lowest_shift(self, x: Array) -> float:
        return -float((x + self.shift)[self.counted].min())


class Poisson(KullbackLeibler):
    """f(x) = sum_i w_i [x_i - y_i log x_i], minus the log-likelihood of counts with mean x.

    The identity link: x itself, a combination of atoms, is the mean. It differs from
    `KullbackLeibler` by a constant, and has the same minimisers.

    Parameters
    ----------
    y : array_like
        Counts, none negative; they need not be integers.
    weights, mask
        See `EntrywiseLoss`.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import FCMP, Cone, Dictionary, Poisson, minimize
    >>> A = Dictionary([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    >>> result = minimize(Poisson([3, 4, 0]), Cone(A), FCMP())
    >>> result.coef.round(6).tolist(), result.certificate.proven
    ([3.5, 0.0], True)
    """

    def __init__(self, y: Any, *, weights: Any = None, mask: Any = None) -> None:
        super().__init__(y, weights=weights, mask=mask)
        self.constants = self.y - xlogy(self.y, self.y)

    def options(self) -> dict[str, Any]:
        return {}

    def losses(self, x: Array) -> Array:
        return super().losses(x) + self.constants


class BetaDivergence(EntrywiseLoss):
    """f(x) = sum_i w_i [y^b + (b - 1) x^b - b y x^(b - 1)] / (b (b - 1)), 1 <= b <= 2.

    For b = 2 it is least squares, 1/2 (x - y)^2; for b = 1 the Kullback-Leibler divergence.

    Parameters
    ----------
    y : array_like
        Non-negative data.
    beta : float
        b. Outside [1, 2] the divergence is not convex in x.
    weights, mask
        See `EntrywiseLoss`.

    Notes
    -----
    The conjugate has no closed form between 1 and 2: its maximiser is the root of
    x^(b - 2) (x - y) = v, found by Newton's method.
    """

    def __init__(self, y: Any, beta: float, *, weights: Any = None, mask: Any = None) -> None:
        if not (is_number(beta) and 1 <= beta <= 2):
            raise ValueError(
                f"beta must lie between 1 and 2, where the divergence is convex in x; got {beta!r}."
            )
        super().__init__(y, weights=weights, mask=mask)
        _check_counts(self)
        self.beta = float(beta)

    def __repr__(self) -> str:
        return f"BetaDivergence(beta={self.beta:g}, shape={self.shape})"

    def options(self) -> dict[str, Any]:
        return {"beta": self.beta}

    def losses(self, x: Array) -> Array:
        b, y, x = self.beta, self.y, without_rounding(x)
        if b == 1:
            return kl_div(y, x)
        return np.where(x >= 0, self._divergences(np.maximum(x, 0.0), y), inf)

    def rounding(self, x: Array) -> float:
        # Terms of the size of y and x to the power of beta cancel where they agree.
        size = (self.y + np.abs(x)) ** self.beta / max(self.beta - 1, 0.1)
        return 8 * EPS * float(self.weighted(size).sum())

    def slopes(self, x: Array) -> Array:
        return x ** (self.beta - 1) - self._times_power(self.y, x, self.beta - 2)

    def curvatures(self, x: Array) -> Array:
        b = self.beta
        if b == 2:
            return np.ones(self.shape)
        # Infinite where x = y = 0; written as 0, since the atoms of x are zero there.
        first = (b - 1) * self._times_power((x > 0).astype(np.float64), x, b - 2)
        return first + (2 - b) * self._times_power(self.y, x, b - 3)

    def excesses(self, x: Array, v: Array) -> Array:
        if self.beta == 1:
            return np.where(v <= 1, kl_div(self.y, x * np.maximum(1.0 - v, 0.0)), inf)
        inside, z = np.maximum(x, 0.0), self._maximizers(v)
        # At the end of the domain, z = 0, the slope of l may be above v: then l* is -l(0).
        least = -self.y if self.beta == 2 else 0.0
        ends = np.where(z == 0, np.maximum(least - v, 0.0) * inside, 0.0)
        return np.where(x >= 0, self._divergences(inside, z) + ends, inf)

    def sizes(self, x: Array) -> Array:
        return (self.y + np.abs(x)) ** self.beta

    def steepest_bend(self, x: Array, drift: Array) -> Array:
        inside = bend_inside(self.y, x, drift, 1.4 * self.curvatures(x))
        # x^b / b, where y is zero, differs from its tangent by no more than this times drift^2.
        return np.where(self.y == 0, 4.0 * np.maximum(x, drift) ** (self.beta - 2), inside)

    def nearest_slopes(self, v: Array, level: float) -> Array:
        return np.minimum(v, 1.0) if self.beta == 1 else v

    def largest_multiple(self, v: Array) -> float:
        most = float(v.max())
        return (1.0 - 4 * EPS) / most if self.beta == 1 and most > 0 else inf

    def least_intercept(self) -> float:
        return least_intercept(self)

    def lowest_shift(self, x: Array) -> float:
        return -float(x[self.counted].min())

    def _divergences(self, x: Array, z: Array) -> Array:
        """Return l(x) - l(z) - l'(z) (x - z), for x, z >= 0; inf where z = 0 < y.

        With h = (x - z) / z it is ``z^b e(h, b) - y z^(b - 1) e(h, b - 1)``, where e is
        `power_remainder`: two terms that are not negative, in which nothing cancels. Where powers
        of h would overflow, they are taken of x and z.
        """
        b, y = self.beta, self.y
        if b == 2:
            return 0.5 * (x - z) ** 2
        with np.errstate(all="ignore"):
            h, far = (x - z) / z, x > FAR * z
            logs = np.where(np.abs(h) < 0.5, np.log1p(h), np.log(x) - np.log(z))
            grown = z ** (b - 1) * np.expm1((b - 1) * logs) / (b - 1)
            rise, fall = (
                z**b * power_remainder(h, logs, b),
                z ** (b - 1) * power_remainder(h, logs, b - 1),
            )
            rise = np.where(far, (x**b - z**b) / b - z ** (b - 1) * (x - z), rise)
            fall = np.where(far, grown - z ** (b - 2) * (x - z), fall)
            positive = rise - np.where(y > 0, y * fall, 0.0)
        return np.where(z > 0, positive, np.where(y > 0, inf, x**b / b))

    def _maximizers(self, v: Array) -> Array:
        """Return the x >= 0 that maximises v x - l(x); NaN where it was not found.

        It is the root of l'(x) = v, or 0 where l' is above v everywhere. l' grows and is concave,
        so that Newton's method started below the root stays below it. For x < y, l'(x) is at most
        -y x^(b - 2) + y^(b - 1) and at most y^(b - 2) (x - y), so that the roots of both lie below
        that of l'.
        """
        b, y = self.beta, self.y
        if b == 2:
            return np.maximum(y + v, 0.0)
        below = (y / (np.maximum(-v, 0.0) + y ** (b - 1) + (y == 0))) ** (1 / (2 - b))
        below = np.maximum(below, y + v * y ** (2 - b))
        x = np.where(y > 0, np.where(v < 0, below, y), np.maximum(v, 0.0) ** (1 / (b - 1)))
        for _ in range(ROOT_STEPS):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                missing, curvature = v - self.slopes(x), self.curvatures(x)
            wanted = (y > 0) & (x > 0) & (missing > 0)
            change = np.divide(missing, curvature, out=np.zeros_like(x), where=wanted)
            x = x + change
            if (change <= 1e-15 * x).all():
                return x
        return np.where(change <= 1e-15 * x, x, np.nan)

    @staticmethod
    def _times_power(factor: Array, x: Array, exponent: float) -> Array:
        """Return factor * x^exponent, zero where the factor is, also at a pole."""
        power = np.power(x, exponent, out=np.zeros_like(x), where=factor != 0)
        return factor * power


FAR = 1e100
"""Ratio x / z above which powers of (x - z) / z might overflow.

Above, powers of x and z are computed instead; see `BetaDivergence._divergences`.
"""

SERIES, TERMS = 0.05, 12
"""Below this |h|, `power_remainder` is a power series of so many terms, which is fully precise.

Above, it is computed by its formula.
"""


def power_remainder(h: Array, logs: Array, power: float) -> Array:
    """Return ((1 + h)^p - 1) / p - h, to full relative precision; `logs` are log(1 + h)."""
    out: Array = np.expm1(power * logs) / power - h
    near = np.abs(h) < SERIES
    if near.any():
        small = h[near]
        term, total = small, np.zeros_like(small)
        for i in range(2, 2 + TERMS):
            term = term * small * ((power - i + 1) / i)
            total += term
        out[near] = total
    return out


def _check_counts(loss: EntrywiseLoss) -> None:
    if (loss.y < 0).any():
        raise ValueError(
            f"{type(loss).__name__} needs data that are not negative; the least is "
            f"{loss.y.min():.6g}. Clip it, or mask those entries."
        )


def bend_inside(y: Array, x: Array, drift: Array, bend: Array) -> Array:
    """Return `bend` where x > 0 by at least ten times its drift, inf where it is not.

    Within a tenth of x the curvature of a divergence changes by less than four tenths, which `bend`
    has in it. Where y is zero the loss is finite up to the end of the domain, x = 0; there 0 is
    returned, which the caller replaces if the loss is curved.
    """
    return np.where((drift <= 0.1 * x) | (y == 0), np.where(y == 0, 0.0, bend), inf)


def without_rounding(x: Array) -> Array:
    """Return x with 0 for entries that are negative by rounding only, at the end of the domain."""
    least = float(x.min())
    if least >= 0:
        return x
    return np.where((x < 0) & (x >= -8 * EPS * np.abs(x).max()), 0.0, x)


def least_intercept(loss: EntrywiseLoss) -> float:
    """Return 0 if some counts are zero, whose means might become negative below it; else -inf."""
    return 0.0 if (loss.y[loss.counted] == 0).any() else -inf
