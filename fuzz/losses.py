"""Losses other than least squares: their values to 50 digits, and points with lower ones."""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np
from scipy import optimize
from scipy.special import expit

ALLOWED = 1e-13
"""What may be missing in a gap, as a share of the size of the terms of f, transcendental."""

STEPS = 60


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
    size : function of arrays x and y
        The size of what is added up in it.
    slope, bend : functions of arrays x and y
        Its derivatives.
    positive : bool
        Whether x must not be negative.
    """

    call: str
    data: object
    term: object
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
            return prepare(rng, A, self.data(B))

        return make

    def value(self, x, y, weights):
        """Return the sum of the terms, to the working precision of mpmath."""
        return mpmath.fsum(
            mpmath.mpf(w) * self.term(a, mpmath.mpf(float(b)))
            for a, b, w in zip(x, y, weights, strict=True)
            if w > 0
        )


def _kl(shift):
    def term(x, y):
        x, y = x + shift, y + shift
        if x < 0 or (x == 0 and y > 0):
            return mpmath.inf
        return x - y + (y * mpmath.log(y / x) if y > 0 else 0)

    return Loss(
        "KullbackLeibler({}" + (f", shift={shift}" if shift else "") + "{})",
        np.abs,
        term,
        lambda x, y: x + y + 2 * shift + (y + shift) * np.abs(np.log((y + shift) / (x + shift))),
        lambda x, y: 1.0 - (y + shift) / (x + shift),
        lambda x, y: (y + shift) / (x + shift) ** 2,
    )


def _beta(b):
    def term(x, y):
        if x < 0 or (x == 0 and y > 0 and b == 1):
            return mpmath.inf
        power = mpmath.mpf(b)
        parts = y**power + (power - 1) * x**power - power * y * x ** (power - 1)
        return parts / (power * (power - 1))

    return Loss(
        f"BetaDivergence({{}}, {b}{{}})",
        np.abs,
        term,
        lambda x, y: (y**b + x**b + y * x ** (b - 1)) / (b * (b - 1)),
        lambda x, y: x ** (b - 2) * (x - y),
        lambda x, y: (b - 1) * x ** (b - 2) - (b - 2) * y * x ** (b - 3),
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


def _huber(x, y):
    size = abs(x - y)
    return size * size / 2 if size <= 1 else size - mpmath.mpf(0.5)


LOSSES = {
    "Logistic": Loss(
        "Logistic({}{})",
        lambda B: np.where(B > 0, 1.0, -1.0),
        _logistic,
        lambda x, y: np.logaddexp(0.0, -y * x),
        lambda x, y: -y * expit(-y * x),
        lambda x, y: expit(x) * expit(-x),
        positive=False,
    ),
    "Huber": Loss(
        "Huber({}{})",
        lambda B: B,
        _huber,
        lambda x, y: np.where(abs(x - y) < 1, (abs(x) + abs(y)) ** 2, 4 * (abs(x) + abs(y))),
        lambda x, y: np.clip(x - y, -1.0, 1.0),
        lambda x, y: np.where(abs(x - y) <= 1, 1.0, 1e-3),
        positive=False,
    ),
    "Poisson": Loss(
        "Poisson({}{})",
        lambda B: np.round(10 * np.abs(B)),
        _poisson,
        lambda x, y: x + y + y * np.abs(np.log(x)),
        lambda x, y: 1.0 - y / x,
        lambda x, y: y / x**2,
    ),
    "KullbackLeibler": _kl(0.0),
    "KullbackLeibler shifted": _kl(0.125),
    "BetaDivergence 1.5": _beta(1.5),
    "BetaDivergence 1.25": _beta(1.25),
}


class LossProblem:
    """Minimise f(A x) + penalty * sum(x) over x >= 0 for one target, to find a false proof."""

    def __init__(self, loss, A, b, weights=None, penalty=0.0):
        self.loss, self.A, self.b, self.penalty = LOSSES[loss], A, b, penalty
        self.weights = np.ones(len(b)) if weights is None else weights

    def value(self, x, forgiving=False):
        """Return f(A x) + penalty * sum(x) to 50 digits.

        Where `forgiving`, entries of A x that are negative by rounding alone are zero.
        """
        with mpmath.workdps(50):
            point = [mpmath.mpf(float(a)) for a in x]
            fitted = [
                mpmath.fsum(mpmath.mpf(float(a)) * p for a, p in zip(row, point, strict=True))
                for row in self.A
            ]
            if forgiving and self.loss.positive:
                least = -mpmath.mpf(1e-14) * max(map(abs, fitted))
                fitted = [mpmath.mpf(0) if least <= f < 0 else f for f in fitted]
            total = self.loss.value(fitted, self.b, self.weights)
            return total + mpmath.mpf(self.penalty) * mpmath.fsum(point)

    def size(self, x):
        """Return the size of what is added up in f(A x), and what the size of A x adds to it."""
        with np.errstate(all="ignore"):
            terms = self.loss.size(np.abs(self.A) @ x, np.abs(self.b))
            if not self.loss.positive:
                terms = np.maximum(terms, self.loss.size(self.A @ x, self.b))
            terms = terms + np.abs(self.loss.slope(self.A @ x, self.b)) * (np.abs(self.A) @ x)
            terms = np.where(self.weights > 0, self.weights * terms, 0.0)
        return float(np.nan_to_num(terms, nan=np.inf).sum()) + self.penalty * float(x.sum())

    def false(self, x, gap):
        """Return by how much a proof is false, 0 if no point was found that says so.

        Any feasible point with f below f(x) - gap will do; it is looked for in floats and
        compared in 50 digits.
        """
        here, allowed = self.value(x, forgiving=True), ALLOWED * self.size(x)
        if not np.isfinite(allowed) or not mpmath.isfinite(here):
            return 0.0
        for y in self.candidates(x):
            if np.isfinite(y).all() and (y >= 0).all():
                excess = here - self.value(y) - mpmath.mpf(float(gap))
                if excess > allowed:
                    return float(excess)
        return 0.0

    def candidates(self, x):
        """Yield points that may be better: Newton's from x, and a quasi-Newton method's."""
        with np.errstate(all="ignore"):
            yield self._newton(x)
            for start in (x, x + 0.1 * (x.mean() or 1.0)):
                try:
                    yield optimize.minimize(
                        self._float, start, jac=True, method="L-BFGS-B",
                        bounds=[(0, None)] * len(x), options={"maxiter": 200, "ftol": 0.0},
                    ).x  # fmt: skip
                except (ValueError, FloatingPointError, np.linalg.LinAlgError):
                    continue

    def _float(self, x):
        """Return the value and the gradient in floats."""
        fitted = self.A @ x
        value = sum(
            w * float(self.loss.term(mpmath.mpf(float(a)), mpmath.mpf(float(b))))
            for a, b, w in zip(fitted, self.b, self.weights, strict=True)
            if w > 0
        )
        slopes = np.where(self.weights > 0, self.weights * self.loss.slope(fitted, self.b), 0.0)
        return value + self.penalty * float(x.sum()), self.A.T @ slopes + self.penalty

    def _newton(self, x):
        """Return the end of Newton steps on the free weights, cut off at zero."""
        value, gradient = self._float(x)
        for _ in range(STEPS):
            free = np.flatnonzero((x > 0) | (gradient < 0))
            part = self.A[:, free]
            bend = np.where(
                self.weights > 0, self.weights * self.loss.bend(self.A @ x, self.b), 0.0
            )
            H = part.T @ (bend[:, None] * part)
            if not len(free) or not np.isfinite(H).all():
                return x
            way = np.linalg.lstsq(H, -gradient[free], rcond=1e-14)[0]
            for step in 0.5 ** np.arange(0, 30, 2):
                trial = x.copy()
                trial[free] = np.maximum(x[free] + step * way, 0.0)
                found, slopes = self._float(trial)
                if found < value:
                    break
            else:
                return x
            x, value, gradient = trial, found, slopes
        return x
