"""Objectives made of other objectives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import EPS, Array, inner, norm, overlap
from conepursuit.linear import as_matrix, matvec, rmatvec, singular_bounds, weighted_squares
from conepursuit.objectives.base import Objective, hessian_at
from conepursuit.objectives.entrywise import EntrywiseLoss
from conepursuit.rounding import product_rounding

NEWTON_STEPS = 200
"""Most Newton steps for an intercept."""

GROWTH = 8.0
"""The least step for an intercept grows by this factor whenever it has to be taken."""

LEAP, SHORE, SPREAD = 2.0, 0.1, 100.0
"""How Newton steps for an intercept leave a pole, approach it, and cross a wide bracket.

Next to a pole a Newton step doubles the distance from it. It is made LEAP times the distance
instead, which is squared every time, until the slope rises.

A step towards a pole leaves the share SHORE of the way. The share is squared whenever it is used,
so that a root next to a pole is not approached digit by digit. Where one end of the bracket is
SPREAD times as far from the pole as the other, the next point is their geometric mean.
"""

BALANCED = 1e-10
"""Share of their absolute sum up to which the sum of the entries of a dual point counts as zero.

Where it is more, the conjugate of a loss with a free intercept is infinite.
"""


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
        inside = hessian_at(self.loss, matvec(self.B, x))
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
    zero and infinite otherwise. For a loss of counts, some of which are zero, b >= 0, since means
    could become negative otherwise. Then u may sum to more than zero, and where b = 0 the gradient
    and the Hessian are those of the loss without an intercept.
    """

    def __init__(self, loss: EntrywiseLoss) -> None:
        if not isinstance(loss, EntrywiseLoss):
            raise ValueError(
                f"FreeIntercept needs a loss over entries, such as Logistic(y); got "
                f"{type(loss).__name__}."
            )
        self.loss, self.shape, self.floor = loss, loss.shape, loss.least_intercept()
        self.smoothness, self.quadratic = loss.smoothness, loss.quadratic
        self.row_labels = loss.row_labels
        self._last: tuple[Array, float] = np.empty(0), 0.0

    def __repr__(self) -> str:
        return f"FreeIntercept({self.loss!r})"

    def intercept(self, x: Array) -> float:
        """Return the b that minimises loss(x + b); that of the last x is kept."""
        known, b = self._last
        if not np.array_equal(known, x):
            b = self._best_intercept(x)
            self._last = x.copy(), b
        return b

    def _best_intercept(self, x: Array) -> float:
        """Return the root of the slope in b, by Newton's method kept inside a bracket."""
        pole = self.loss.lowest_shift(x)
        low, high = max(self.floor, pole), inf
        if self.floor > -inf and self._derivatives(x + low)[0] >= 0:
            return low
        scale = float(max(np.abs(x).max(), np.abs(self.loss.y).max())) or 1.0
        b = self.loss.typical_shift(x)
        b, reach = (b if b > low else low + scale), scale
        # With labels of one class b has no end: a slope that is rounding of the first one is zero.
        # Slopes next to a pole say nothing of that size; there the present ones are taken.
        level: float | None = None
        best, flattest, growth, shore, leap = b, inf, 1.0, SHORE, LEAP
        for _ in range(NEWTON_STEPS):
            slope, curvature, rounding = self._derivatives(x + b)
            if abs(slope) < flattest:
                best, flattest = b, abs(slope)
            level = rounding if level is None or pole > -inf else level
            if abs(slope) <= level:
                break
            low, high = (low, b) if slope > 0 else (b, high)
            least = EPS * (max(b - pole, 0.5 * abs(b)) if pole > -inf else abs(b) + scale)
            if high - low <= least:
                break
            step = -slope / curvature if 0 < curvature < inf else -np.copysign(inf, slope)
            if abs(step) < growth * least:  # the slope may be that of a bend, far from the root
                step = -np.copysign(growth * least, slope)
                growth *= GROWTH
            if high == inf and 0.5 * (b - pole) < step < inf:  # next to a pole b only doubles
                step, leap = max(step, leap * (b - pole)), leap * leap
            target = b + min(max(step, -reach), reach)
            reach *= 2.0
            near = pole > -inf and target < pole + shore * (b - pole)
            if near or not low < target < high:
                if low == pole > -inf:  # a step to the pole would be lost there
                    target, shore = low + shore * (b - low), max(shore * shore, EPS)
                else:
                    target = 0.5 * (low + high)
            if low > pole > -inf and SPREAD * (low - pole) < high - pole < inf:
                target = pole + float(np.sqrt((low - pole) * (high - pole)))
            if target == b:
                break
            b = target
        return float(best)

    def _derivatives(self, at: Array) -> tuple[float, float, float]:
        """Return slope and curvature of the loss in b at x + b, and the rounding of the slope.

        Outside of the domain of the loss the slope is -inf.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slopes = self.loss.weighted(self.loss.slopes(at))
            total, size = float(slopes.sum()), float(np.abs(slopes).sum())
            inside = total == total and self.loss.value(at) < inf
            curvature = float(self.loss.weighted(self.loss.curvatures(at)).sum())
        return (total if inside else -inf), curvature, (EPS * size if size < inf else 0.0)

    def _centre(self, x: Array, diagonal: Array) -> tuple[Array, float]:
        """Return the diagonal h of a Hessian, and its sum, or inf where b is held at its floor."""
        moves = self.intercept(x) != self.floor
        return diagonal, (float(diagonal.sum()) or 1.0) if moves else inf

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Return f(x) and a subgradient of f.

        Where b is the least one in the domain of the loss, the loss may still rise in b. Then f
        rises as the least entry of x falls, since b grows with it: that entry makes the slopes sum
        to zero. The loss is defined at the end of its domain, where all lower slopes serve as well.
        """
        b = self.intercept(x)
        value, gradient = self.loss.value_and_gradient(x + b)
        total = float(gradient.sum())
        if total > 0 and b > self.floor and b == self.loss.lowest_shift(x):
            ends = self.loss.counted & (x == x[self.loss.counted].min())
            gradient = np.where(ends, gradient - total / np.count_nonzero(ends), gradient)
        return value, gradient

    def hessian(self, x: Array) -> Callable[[Array], Array]:
        diagonal, total = self._centre(x, self.loss.stiffness(x + self.intercept(x)))
        return lambda d: diagonal * (d - inner(diagonal, d) / total)

    def model(self, x: Array, atoms: Any, others: Any) -> Array:
        diagonal, total = self._centre(x, self.loss.stiffness(x + self.intercept(x)))
        products = atoms.weighted_gram(diagonal, others)
        means = [part.inner(diagonal) for part in (atoms, others)]
        return products - np.outer(means[0], means[1] / total)

    def curvatures_along(self, x: Array, matrix: Any) -> Array:
        diagonal, total = self._centre(x, self.loss.stiffness(x + self.intercept(x)))
        return weighted_squares(matrix, diagonal) - rmatvec(matrix, diagonal) ** 2 / total

    def curvature(self, x: Array, d: Array) -> float:
        curvatures = self.loss.weighted(self.loss.curvatures(x + self.intercept(x)))
        diagonal, total = self._centre(x, curvatures)
        return inner(diagonal * (d - inner(diagonal, d) / total), d)

    def _balanced(self, u: Array, size: float) -> bool:
        """Return whether u sums to zero, up to a small share of entries that add up to `size`."""
        total = float(u.sum())
        return total >= -BALANCED * size and (total <= BALANCED * size or self.floor > -inf)

    def conjugate(self, u: Array) -> float:
        return self.loss.conjugate(u) if self._balanced(u, float(np.abs(u).sum())) else inf

    def imbalance(self, u: Array) -> float:
        """Return how far u is, at most, from the balanced point that `duality_gap` takes for it."""
        total, size = self._uncertain_sum(u)
        if size == 0.0 or (self.floor > -inf and total > 0):
            return 0.0
        return 4.0 * (abs(total) / size) * norm(u)

    def _uncertain_sum(self, u: Array) -> tuple[float, float]:
        """Return the sum of u, moved away from zero by its rounding, and the sum of |u|."""
        total, size = float(u.sum()), float(np.abs(u).sum())
        noise = product_rounding(u.size) * size
        if self.floor > -inf and total >= noise:
            return total, size
        return total + float(np.copysign(noise, total)), size

    def duality_gap(
        self, x: Array, value: float, gradient: Array, tilt: Array | None, largest: float
    ) -> float | None:
        """Return a small f(x) + f*(s q), q the balanced point near gradient + tilt.

        Notes
        -----
        If the positive entries outweigh the negative ones, they are shrunk until q sums to zero,
        and vice versa. The point stays in the domain of the conjugate, which is convex and has 0 in
        it, and moves by at most `imbalance`. `gap_rounding` accounts for the rounding of the sum.
        """
        q = gradient if tilt is None else gradient + tilt
        if not self._balanced(q, float(np.abs(gradient).sum())):
            return None
        total = float(q.sum())
        if total and not (self.floor > -inf and total > 0):
            side = q > 0 if total > 0 else q < 0
            share = abs(total) / max(float(np.abs(q[side]).sum()), abs(total))
            q = np.where(side, (1.0 - share) * q, q)
        at = x + self.intercept(x)
        return self.loss.duality_gap(at, value, gradient, q - gradient, largest)

    def gap_rounding(
        self, x: Array, value: float, size: Array | float, drift: Array | float
    ) -> float:
        """Return that of the loss at x + b, plus the effect of rounding in the sum of a dual point.

        Notes
        -----
        x + b is rounded, so that it drifts further than x. To shrink entries of a dual point by a
        share c changes <u, x + b> by at most c times sum_i |u_i (x_i + b)|. As excesses are convex,
        it raises them by at most c times the excess of u = 0, which is f(x) - inf f.
        """
        b = self.intercept(x)
        at, noise = x + b, product_rounding(x.size)
        further = EPS * (np.abs(x) + abs(b))
        drift = drift + (norm(further) if isinstance(drift, float) else further)
        total = self.loss.gap_rounding(at, value, size, drift)
        above = self.loss.excess(value)
        return total + 4 * noise * (overlap(size, at) + (above if above < inf else abs(value)))

    def admissible(self, u: Array, level: float) -> Array:
        v = self.loss.admissible(u, level)
        size, total = np.abs(v), float(v.sum())
        if self.floor > -inf and total > 0:
            return v
        return v - size * (total / (float(size.sum()) or 1.0))

    def rounding(self, x: Array) -> float:
        at = x + self.intercept(x)
        slope, curvature, _ = self._derivatives(at)
        # What a better intercept would gain: with labels of one class there always is one.
        ends = self.floor > -inf or self.loss.lowest_shift(x) > -inf
        missed = 0.0 if ends or not 0 < curvature < inf else 2.0 * slope * slope / curvature
        return self.loss.rounding(at) + missed

    def recedes(self, d: Array) -> bool:
        # Where the intercept alone makes f as small as it can be, f falls along no d.
        base = 0.0 * d
        return self.loss.recedes(d + self.intercept(d)) and not self.loss.recedes(
            base + self.intercept(base)
        )
