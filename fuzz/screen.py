"""Low values of a loss over a cone or a hull, for many columns at once, in double precision.

The route is independent of the library: damped Newton steps on the free weights, projected. What
looks false here is decided in 50 digits (`digits`).
"""

from __future__ import annotations

import numpy as np

STEPS, HULL_ROUNDS = 60, 8
"""Most Newton steps, and how often the multiplier of a bound on the sum is corrected."""

DAMPING = 1e-13, 1e-10, 1e10
"""The least damping of Newton's steps, as a share of the curvature, the first, and the last."""

INSIDE = 0.05
"""Where slopes are infinite a start is moved so far towards a point in the middle."""


class Batch:
    """Minimise sum_i w_i l(A x + b) + penalty sum(x) over x >= 0, for many columns at once.

    Parameters
    ----------
    loss : Loss
        l, a row of the table.
    A, B, weights : arrays of shape (m, n), (m, k) and (m, k)
        One atom per column of A, one target per column of B, and weights of the entries of B.
    penalties : array of shape (k,)
        What a unit of weight costs.
    floors : array of shape (k,), optional
        The least intercepts b; without them b is zero. An intercept is a last row of points.
    radii : array of shape (k,), optional
        The largest sums of weights.
    """

    def __init__(self, loss, A, B, weights, penalties, floors=None, radii=None):
        self.loss, self.B, self.weights = loss, B, weights
        self.n, k = A.shape[1], B.shape[1]
        self.free = 0 if floors is None else 1
        self.M = np.hstack([A, np.ones((len(A), self.free))])
        self.lows = np.zeros((self.n + self.free, k))
        self.costs = np.zeros((self.n + self.free, k))
        self.costs[: self.n] = penalties
        if floors is not None:
            self.lows[self.n] = floors
        self.radii = radii
        # Derivatives are those in weights times powers of two, which bring the atoms to one size.
        sizes = np.abs(self.M).max(axis=0)
        self.unit = np.where(sizes > 0, 2.0 ** -np.clip(np.frexp(sizes)[1], -1000, 1000), 1.0)
        self.scaled = self.M * self.unit
        self.pairs = (self.scaled[:, :, None] * self.scaled[:, None, :]).reshape(len(A), -1)

    def part(self, columns):
        """Return the batch of some columns only."""
        radii = None if self.radii is None else self.radii[columns]
        floors = self.lows[self.n, columns] if self.free else None
        return Batch(
            self.loss, self.M[:, : self.n], self.B[:, columns], self.weights[:, columns],
            self.costs[0, columns], floors, radii,
        )  # fmt: skip

    def fitted(self, Y):
        """Return the arguments of the loss; where they are negative by rounding alone, zero."""
        fitted = self.M @ Y
        if self.loss.positive:
            least = -1e-14 * np.abs(fitted).max(axis=0, initial=0.0)
            fitted = np.where((fitted < 0) & (fitted >= least), 0.0, fitted)
        return fitted

    def values(self, Y):
        """Return the objective at the columns of Y, inf where it is not a number."""
        with np.errstate(all="ignore"):
            terms = self.loss.terms(self.fitted(Y), self.B)
            total = np.where(self.weights > 0, self.weights * terms, 0.0).sum(axis=0)
            total = total + (self.costs * Y).sum(axis=0)
        return np.where(np.isnan(total), np.inf, total)

    def sizes(self, Y):
        """Return the sizes of what is added up, and of what the sizes of A x add to it."""
        with np.errstate(all="ignore"):
            reach, fitted = np.abs(self.M) @ np.abs(Y), self.fitted(Y)
            terms = self.loss.size(reach, np.abs(self.B))
            terms = np.maximum(terms, self.loss.size(fitted, self.B))
            terms = terms + np.abs(self.loss.slope(fitted, self.B)) * reach
            terms = np.where(self.weights > 0, self.weights * terms, 0.0)
            total = terms.sum(axis=0) + (self.costs * np.abs(Y)).sum(axis=0)
        return np.where(np.isnan(total), np.inf, total)

    def derivatives(self, Y):
        """Return gradients, of shape (n, k), and Hessians, of shape (k, n, n), in Y / unit."""
        fitted, counted = self.fitted(Y), self.weights > 0
        slopes = np.where(counted, self.weights * self.loss.slope(fitted, self.B), 0.0)
        bends = np.where(counted, self.weights * self.loss.bend(fitted, self.B), 0.0)
        size = len(self.M.T)
        hessians = (self.pairs.T @ bends).T.reshape(-1, size, size)
        return self.scaled.T @ slopes + self.costs * self.unit[:, None], hessians

    def lowest(self, X):
        """Return points with low values, found from the columns of X, and their values."""
        if self.radii is None:
            return self.descended(self.inside(X))
        return self.lowest_in_the_hull(self.inside(X))

    def with_intercepts(self, X):
        """Return X with the best intercepts, as a last row."""
        if not self.free:
            return X
        fitted = self.M[:, : self.n] @ X
        with np.errstate(all="ignore"):
            shift = (self.B - fitted).mean(axis=0) if self.loss.positive else np.zeros(X.shape[1])
            below = -fitted.min(axis=0, initial=0.0)
            scale = np.abs(fitted).max(axis=0) + np.abs(self.B).max(axis=0)
        if self.loss.positive:
            shift = np.maximum(shift, below + 0.1 * scale)
        held = np.ones((len(X) + 1, 1), dtype=bool)
        held[-1] = False
        start = np.vstack([X, np.maximum(np.nan_to_num(shift), self.lows[-1])])
        return self.descended(start, held)[0]

    def middle(self):
        """Return points with weights everywhere, of the size of the data."""
        with np.errstate(all="ignore"):
            level = np.abs(self.B).mean(axis=0) * self.unit[: self.n, None] / self.n
        points = np.zeros(self.lows.shape)
        points[: self.n] = np.where(np.isfinite(level) & (level > 0), level, 1.0)
        return self.within(self.with_intercepts(points[: self.n]))

    def within(self, points):
        """Return points that are shrunk until their weights sum to the radius at most."""
        if self.radii is None:
            return points
        with np.errstate(all="ignore"):
            total = points[: self.n].sum(axis=0)
            share = np.where(total > self.radii, (1 - 1e-15) * self.radii / total, 1.0)
        points[: self.n] *= share
        return points

    def inside(self, X):
        """Return X, moved towards a point with weights everywhere where slopes are not finite."""
        with np.errstate(all="ignore"):
            gradients, hessians = self.derivatives(X)
            wrong = ~np.isfinite(gradients).all(axis=0)
            wrong |= ~np.isfinite(hessians).all(axis=(1, 2)) | ~np.isfinite(self.values(X))
            if not wrong.any():
                return X
            moved = (1 - INSIDE) * X + INSIDE * self.middle()
        return np.where(wrong, self.within(moved), X)

    def descended(self, Y, held=False, extra=None):
        """Return the ends of damped Newton steps from Y, and their values.

        Parameters
        ----------
        held : array of bool
            Rows of Y that stay.
        extra : function of Y and columns, optional
            Returns a value, a slope and a curvature for each column, which are functions of the
            sum of weights and are added.
        """
        with np.errstate(all="ignore"):
            return self._descended(np.array(Y), np.broadcast_to(held, Y.shape), extra)

    def _descended(self, Y, held, extra):
        least, first, last = DAMPING
        values, active = self._with(extra, Y, np.arange(Y.shape[1])), np.arange(Y.shape[1])
        damping, still = np.full(len(active), first), np.zeros(len(active), dtype=int)
        batch = self
        for step in range(STEPS):
            if step % 8 == 7:  # columns that have come to an end are left out
                if not len(active):
                    break
                batch = self.part(active)
            elif step == 0:
                batch = self.part(active)
            trial = batch._step(Y[:, active], held[:, active], damping[active], extra, active)
            found = batch._with(extra, trial, active)
            better = found < values[active]
            gain = np.where(better, values[active] - found, 0.0)
            still[active] = np.where(
                better & (gain <= 1e-15 * np.abs(values[active])), still[active] + 1, 0
            )
            chosen = active[better]
            Y[:, chosen], values[chosen] = trial[:, better], found[better]
            damping[active] = np.where(
                better, np.maximum(damping[active] / 100, least), damping[active] * 30
            )
            if step % 8 == 6:
                active = active[(damping[active] < last) & (still[active] < 2)]
        return Y, values

    def _with(self, extra, Y, columns):
        values = self.values(Y)
        return values if extra is None else values + extra(Y[: self.n].sum(axis=0), columns)[0]

    def _step(self, Y, held, damping, extra, columns):
        """Return where a damped Newton step leads, cut off at the bounds."""
        gradients, hessians = self.derivatives(Y)
        if extra is not None:
            _, slope, curvature = extra(Y[: self.n].sum(axis=0), columns)
            sums = self.unit[: self.n]
            gradients[: self.n] += slope * sums[:, None]
            hessians[:, : self.n, : self.n] += curvature[:, None, None] * np.outer(sums, sums)
        stays = held | ((self.lows >= Y) & (gradients >= 0))
        stays |= ~np.isfinite(gradients)
        diagonal = np.einsum("kii->ki", hessians)
        length = np.where((diagonal > 0) & np.isfinite(diagonal), diagonal, 1.0) ** -0.5
        scaled = hessians * length[:, :, None] * length[:, None, :]
        free = ~stays.T
        scaled = np.where(free[:, :, None] & free[:, None, :], scaled, 0.0)
        scaled = np.where(np.isfinite(scaled), scaled, 0.0)
        at = np.arange(len(length.T))
        scaled[:, at, at] += np.where(free, damping[:, None], 1.0)
        right = np.where(free, -gradients.T * length, 0.0)
        right = np.where(np.isfinite(right), right, 0.0)
        way = np.linalg.solve(scaled, right[:, :, None])[:, :, 0] * length
        moved = np.maximum(Y + way.T * self.unit[:, None], self.lows)
        return np.where(stays | ~np.isfinite(moved), Y, moved)

    def lowest_in_the_hull(self, Y):
        """Return low points whose weights sum to the radius at most, by augmented Lagrangians."""
        with np.errstate(all="ignore"):
            bends = np.einsum("kii->ki", self.derivatives(Y)[1]) / self.unit**2
            bends = bends[:, : self.n].max(axis=1)
        stiff = 100.0 * np.where(np.isfinite(bends) & (bends > 0), bends, 1.0)
        multiplier = np.zeros(Y.shape[1])

        def extra(total, columns):
            force = multiplier[columns] + stiff[columns] * (total - self.radii[columns])
            pushed = np.maximum(force, 0.0)
            value = (pushed**2 - multiplier[columns] ** 2) / (2 * stiff[columns])
            return value, pushed, np.where(force > 0, stiff[columns], 0.0)

        for _ in range(HULL_ROUNDS):
            Y, _ = self.descended(Y, extra=extra)
            multiplier = extra(Y[: self.n].sum(axis=0), np.arange(Y.shape[1]))[1]
        Y = self.within(Y)
        return Y, self.values(Y)
