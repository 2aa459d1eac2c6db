"""The table of losses: how each is called, and its own formula, in floats and to 50 digits.

The formulas are written from the definitions in the documentation and share nothing with the
library. Functions of arrays take x and the data y of one shape, many targets at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np
from scipy.special import expit, xlogy


@dataclass(frozen=True)
class Loss:
    """A loss of one entry.

    Attributes
    ----------
    call : str
        How the library is called, with {} for the data and for weights.
    data : function of B
        Makes data for which the loss is defined.
    term : function of mpmath numbers x and y
        Its value, inf outside the domain.
    terms : function of arrays x and y
        The same in floats.
    size : function of arrays x and y
        The size of what is added up in it.
    slope, bend : functions of arrays x and y
        Its derivatives. Where the second one is zero, some small positive number will do.
    positive : bool
        Whether x must not be negative.
    """

    call: str
    data: object
    term: object
    terms: object
    size: object
    slope: object
    bend: object
    positive: bool = True

    def text(self, data, weights=""):
        """Return the objective as Python."""
        return self.call.format(data, weights)

    def prepared(self, prepare):
        """Return a function that makes data for this loss, and whatever `prepare` adds."""

        def make(rng, A, B):
            if self.positive and rng.random() < 0.9:
                A = np.abs(A)
            if self.positive and rng.random() < 0.3:
                B = B * (rng.random(B.shape) < 0.7)
            return prepare(rng, A, self.data(B))

        return make

    def value(self, x, y, weights):
        """Return the sum of the terms, to the working precision of mpmath."""
        return mpmath.fsum(
            mpmath.mpf(w) * self.term(a, mpmath.mpf(float(b)))
            for a, b, w in zip(x, y, weights, strict=True)
            if w > 0
        )


def _kl(call, shift=0.0):
    def term(x, y):
        x, y = x + shift, y + shift
        if x < 0 or (x == 0 and y > 0):
            return mpmath.inf
        return x - y + (y * mpmath.log(y / x) if y > 0 else 0)

    def terms(x, y):
        x, y = x + shift, y + shift
        return np.where(x < 0, np.inf, x - y + xlogy(y, y / x))

    return Loss(
        call,
        np.abs,
        term,
        terms,
        lambda x, y: x + y + 2 * shift + np.abs(xlogy(y + shift, (y + shift) / (x + shift))),
        lambda x, y: 1.0 - np.where(y + shift > 0, (y + shift) / (x + shift), 0.0),
        lambda x, y: np.where(y + shift > 0, (y + shift) / (x + shift) ** 2, 0.0),
    )


def _beta(b):
    def term(x, y):
        if x < 0:
            return mpmath.inf
        power = mpmath.mpf(b)
        parts = y**power + (power - 1) * x**power - power * y * x ** (power - 1)
        return parts / (power * (power - 1))

    def terms(x, y):
        parts = y**b + (b - 1) * x**b - b * y * x ** (b - 1)
        return np.where(x < 0, np.inf, parts / (b * (b - 1)))

    def slope(x, y):
        return x ** (b - 1) - np.where(y > 0, y * x ** (b - 2), 0.0)

    def bend(x, y):
        second = (2 - b) * np.where(y > 0, y * x ** (b - 3), 0.0)
        return (b - 1) * np.minimum(x ** (b - 2), 1e300) + second

    return Loss(
        f"BetaDivergence({{}}, {b}{{}})",
        np.abs,
        term,
        terms,
        lambda x, y: (y**b + np.abs(x) ** b + y * np.abs(x) ** (b - 1)) / (b * (b - 1)),
        slope,
        bend,
    )


def _poisson(x, y):
    if x < 0 or (x == 0 and y > 0):
        return mpmath.inf
    return x - (y * mpmath.log(x) if y > 0 else 0)


def _logistic(x, y):
    margin = y * x
    if abs(margin) > 1000:  # beyond 50 digits, and with exponents that mpmath writes out in bits
        return max(-margin, mpmath.mpf(0))
    return mpmath.log1p(mpmath.exp(-margin))


def _huber(delta):
    def term(x, y):
        size = abs(x - y)
        return size * size / 2 if size <= delta else delta * (size - mpmath.mpf(delta) / 2)

    def terms(x, y):
        size = np.abs(x - y)
        inside = np.minimum(size, delta)
        return inside * (size - 0.5 * inside)

    def size(x, y):
        span = np.abs(x) + np.abs(y)
        return np.where(np.abs(x - y) < delta, span**2, 4 * delta * span)

    return Loss(
        "Huber({}{})" if delta == 1 else f"Huber({{}}, {delta}{{}})",
        lambda B: B,
        term,
        terms,
        size,
        lambda x, y: np.clip(x - y, -delta, delta),
        lambda x, y: np.where(abs(x - y) <= delta, 1.0, 0.03 * delta / abs(x - y)),
        positive=False,
    )


def _counts(B):
    return np.round(10 * np.minimum(np.abs(B), 1e300))


LOSSES = {
    "LeastSquares": Loss(
        "LeastSquares({}{})",
        lambda B: B,
        lambda x, y: (x - y) ** 2 / 2,
        lambda x, y: 0.5 * (x - y) ** 2,
        lambda x, y: (np.abs(x) + np.abs(y)) ** 2,
        lambda x, y: x - y,
        lambda x, y: np.ones(np.shape(x)),
        positive=False,
    ),
    "Logistic": Loss(
        "Logistic({}{})",
        lambda B: np.where(B > 0, 1.0, -1.0),
        _logistic,
        lambda x, y: np.logaddexp(0.0, -y * x),
        lambda x, y: 0.01 + np.logaddexp(0.0, -y * x),  # of log 2 a little is never seen
        lambda x, y: -y * expit(-y * x),
        lambda x, y: expit(x) * expit(-x),
        positive=False,
    ),
    "Huber": _huber(1.0),
    "Huber 0.1": _huber(0.1),
    "Huber 30": _huber(30.0),
    "Poisson": Loss(
        "Poisson({}{})",
        _counts,
        _poisson,
        lambda x, y: np.where(x < 0, np.inf, x - xlogy(y, x)),
        lambda x, y: x + y + np.abs(xlogy(y, x)),
        lambda x, y: 1.0 - np.where(y > 0, y / x, 0.0),
        lambda x, y: np.where(y > 0, y / x**2, 0.0),
    ),
    "KullbackLeibler": _kl("KullbackLeibler({}{})"),
    "KullbackLeibler shifted": _kl("KullbackLeibler({}, shift=0.125{})", 0.125),
    "BetaDivergence 1": _kl("BetaDivergence({}, 1.0{})"),
    "BetaDivergence 1.25": _beta(1.25),
    "BetaDivergence 1.5": _beta(1.5),
    "BetaDivergence 1.75": _beta(1.75),
    "BetaDivergence 2": _beta(2.0),
}


def _log_cosh(call):
    def terms(x, y):
        return np.logaddexp(x - y, y - x) - np.log(2)

    return Loss(
        call,
        lambda B: B,
        lambda x, y: abs(x - y) + mpmath.log1p(mpmath.exp(-2 * abs(x - y))) - mpmath.log(2),
        terms,
        lambda x, y: 1.0 + np.abs(x) + np.abs(y),
        lambda x, y: np.tanh(x - y),
        lambda x, y: np.maximum(1 - np.tanh(x - y) ** 2, 1e-12),
        positive=False,
    )


def _steepness(r):
    return np.where(r > 0, 0.8, 0.2)


def _asymmetric(x, y):
    share = mpmath.mpf(0.8) if x > y else mpmath.mpf(0.2)
    return share * (x - y) ** 2 / 2


OWN = {
    "LogCosh": _log_cosh("LogCosh({}{})"),
    "SmoothLogCosh": _log_cosh("SmoothLogCosh({}{})"),
    "AsymmetricSquare": Loss(
        "AsymmetricSquare({}{})",
        lambda B: B,
        _asymmetric,
        lambda x, y: 0.5 * _steepness(x - y) * (x - y) ** 2,
        lambda x, y: (np.abs(x) + np.abs(y)) ** 2,
        lambda x, y: _steepness(x - y) * (x - y),
        lambda x, y: _steepness(x - y),
        positive=False,
    ),
    "Quartic": Loss(
        "Quartic({}{})",
        lambda B: B,
        lambda x, y: (x - y) ** 4 / 4,
        lambda x, y: (x - y) ** 4 / 4,
        lambda x, y: (np.abs(x) + np.abs(y)) ** 4,
        lambda x, y: (x - y) ** 3,
        lambda x, y: 3 * (x - y) ** 2,
        positive=False,
    ),
    "Linex": Loss(
        "Linex({}{})",
        lambda B: B,
        lambda x, y: mpmath.exp(min(x - y, mpmath.mpf(1000))) - (x - y) - 1,
        lambda x, y: np.expm1(x - y) - (x - y),
        lambda x, y: 1.0 + (1.0 + np.exp(x - y)) * (1.0 + np.abs(x) + np.abs(y)),
        lambda x, y: np.expm1(x - y),
        lambda x, y: np.exp(x - y),
        positive=False,
    ),
    "function with conjugate": _log_cosh("log_cosh_with({}{})"),
    "function without conjugate": _log_cosh("log_cosh_without({}{})"),
}
"""Losses of users, in `own`."""

FUNCTIONS = "log_cosh_with({}{})", "log_cosh_without({}{})"
"""The calls of objectives that are functions, which take one target and no weights."""

ALL_LOSSES = LOSSES | OWN
