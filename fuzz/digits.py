"""Whether the proof of an answer is false, decided in 50 digits."""

from __future__ import annotations

import mpmath
import numpy as np
from scipy import optimize

from losses import ALL_LOSSES
from screen import Batch

ALLOWED = 1e-13
"""What may be missing in a gap, as a share of the size of the terms of f (`Batch.sizes`).

The library takes functions such as log at their word up to sixteen units in the last place of
each term, 3.6e-15 of their size, and its bounds of these sizes are smaller than ours by a factor
of a few. Least squares is compared with exact numbers and without an allowance. A proof that is
false by less than this share is not seen.
"""

DIGITS, CLOSER = 50, 200
"""Digits, and the most steps to look for the best intercept in as many digits."""


class LossProblem:
    """Minimise f(A x + b) + penalty * sum(x) over x >= 0 for one target, to find a false proof.

    Parameters
    ----------
    loss : str
        The name of the loss in the table.
    A, b : arrays of shape (m, n) and (m,)
        The data.
    weights : array of shape (m,), optional
        Weights of the entries.
    penalty : float
        What a unit of weight costs.
    floor : float, optional
        The least intercept, which is a last entry of points; without it there is none.
    radius : float
        The largest sum of weights.
    """

    def __init__(self, loss, A, b, weights=None, penalty=0.0, floor=None, radius=np.inf):
        self.loss, self.A, self.b, self.penalty = ALL_LOSSES[loss], A, b, penalty
        self.weights = np.ones(len(b)) if weights is None else weights
        self.floor, self.radius = floor, radius
        column = (b[:, None], self.weights[:, None], np.array([penalty]))
        floors = None if floor is None else np.array([floor])
        radii = None if radius == np.inf else np.array([radius])
        self.batch = Batch(self.loss, A, *column, floors, radii)

    def value(self, x, forgiving=False):
        """Return f(A x + b) + penalty * sum(x) to 50 digits.

        Where `forgiving`, entries of A x that are negative by rounding alone are zero.
        """
        with mpmath.workdps(DIGITS):
            n, point = self.A.shape[1], [mpmath.mpf(float(a)) for a in x]
            shift = point[n] if len(point) > n else mpmath.mpf(0)
            return self._value(self._products(point[:n]), shift, point[:n], forgiving)

    def _products(self, point):
        return [
            mpmath.fsum(mpmath.mpf(float(a)) * p for a, p in zip(row, point, strict=True))
            for row in self.A
        ]

    def _value(self, products, shift, point, forgiving=False):
        fitted = [f + shift for f in products]
        if forgiving and self.loss.positive:
            least = -mpmath.mpf(1e-14) * max(map(abs, [*products, shift]))
            fitted = [mpmath.mpf(0) if least <= f < 0 else f for f in fitted]
        total = self.loss.value(fitted, self.b, self.weights)
        return total + mpmath.mpf(self.penalty) * mpmath.fsum(point)

    def best_value(self, x):
        """Return the value at x with the best intercept that is found near that in x, forgiving."""
        if self.floor is None:
            return self.value(x, forgiving=True)
        with mpmath.workdps(DIGITS):
            n, b = self.A.shape[1], mpmath.mpf(float(x[-1]))
            point = [mpmath.mpf(float(a)) for a in x[:n]]
            products = self._products(point)
            least, step = self._value(products, b, point, True), (abs(b) + 1) / 2**10
            for _ in range(CLOSER):
                for other in (b - step, b + step):
                    if other >= self.floor:
                        found = self._value(products, other, point, True)
                        if found < least:
                            least, b, step = found, other, 4 * step
                            break
                else:
                    step /= 4
                if step < abs(b) * mpmath.mpf(2) ** -70:
                    break
            return least

    def false(self, x, gap, guess=None):
        """Return by how much a proof is false, 0 if no point was found that says so.

        Any feasible point with f below f(x) - gap will do; it is looked for in floats and
        compared in 50 digits. A `guess` is tried first.
        """
        here, allowed = self.best_value(x), ALLOWED * float(self.batch.sizes(x[:, None])[0])
        if not np.isfinite(allowed) or not mpmath.isfinite(here):
            return 0.0
        for y in self.candidates(x, guess):
            if self._feasible(y):
                excess = here - self.value(y) - mpmath.mpf(float(gap))
                if excess > allowed:
                    return float(excess)
        return 0.0

    def _feasible(self, y):
        n = self.A.shape[1]
        if not (np.isfinite(y).all() and (y >= self.batch.lows[:, 0]).all()):
            return False
        with mpmath.workdps(DIGITS):
            return mpmath.fsum(float(a) for a in y[:n]) <= self.radius

    def candidates(self, x, guess=None):
        """Yield points that may be better: a guess, Newton's, and a quasi-Newton method's."""
        if guess is not None:
            yield guess
        for start in (x, self.batch.middle()[:, 0]):
            yield self.batch.lowest(start[:, None])[0][:, 0]
            unit = self.batch.unit
            lows = [low if low > -np.inf else None for low in self.batch.lows[:, 0] / unit]
            try:
                with np.errstate(all="ignore"):
                    found = unit * optimize.minimize(
                        self._float, start / unit, jac=True, method="L-BFGS-B",
                        bounds=[(low, None) for low in lows],
                        options={"maxiter": 200, "ftol": 0.0},
                    ).x  # fmt: skip
            except (ValueError, FloatingPointError, np.linalg.LinAlgError):
                continue
            found = self.batch.within(found[:, None])[:, 0]
            yield found
            if np.isfinite(found).all():
                yield self.batch.lowest(found[:, None])[0][:, 0]

    def _float(self, scaled):
        """Return the value and the gradient in floats at weights times powers of two."""
        x = (scaled * self.batch.unit)[:, None]
        return float(self.batch.values(x)[0]), self.batch.derivatives(x)[0][:, 0]
