"""Losses of a non-negative factorisation X ~ F'G: values, gradients, and updates of one factor.

Factors are stored with one component per row, F of shape (k, rows) and G of shape (k, columns).
An update never raises the loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.pursuit.weight_programs import Cholesky, nonnegative

ATTEMPTS = 12
"""How often the curvature of a model is raised before a new component gets no weight."""

BALANCING = 60
"""Newton steps for the scale of each component; see `FactorLoss.balanced`."""

MOMENTUM, GROWTH, CEILING, CUT = 0.5, 1.05, 1.01, 1.5
"""Extrapolation by beta, which starts at MOMENTUM; see `FactorLoss.corrected`.

After a sweep that lowers the value, beta grows by the factor GROWTH, up to a ceiling, which grows
by the factor CEILING. Where the value rises, beta is divided by CUT.
"""

SPAN = 4
"""Sweeps over which the gain is averaged before it ends a run."""

LEVEL_SHARE = 1e-12
"""Ascent of a component, as a share of the descent of a new one, above which it gives weight to it.

Up to this share it counts as level, and the origin gives the weight; see `pairwise`.
"""


class Penalty(NamedTuple):
    """``linear * sum(F) + 1/2 * squared * ||F||^2`` of one factor."""

    linear: float = 0.0
    squared: float = 0.0

    def __call__(self, F: Array) -> float:
        """Return the penalty of a factor."""
        total = self.linear * float(F.sum()) if self.linear else 0.0
        return total + (0.5 * self.squared * float(np.vdot(F, F)) if self.squared else 0.0)


NO_PENALTIES = Penalty(), Penalty()


class FactorLoss(ABC):
    """A loss of F'G with a penalty for each factor.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the data.
    penalties : tuple of Penalty
        Of F and of G.
    views : tuple of csr_array
        Sparse data by rows and by columns; empty for arrays.
    coarse : bool
        Whether products with the data are rounded to float32, until `refine`.
    splits : bool
        Whether to try at each rank if dividing a component is better than one more atom.
    """

    shape: tuple[int, int]
    penalties: tuple[Penalty, Penalty] = NO_PENALTIES
    views: tuple[Any, ...] = ()
    coarse: bool = False
    splits: bool = False

    @abstractmethod
    def fit(self, F: Array, G: Array) -> float:
        """Return the loss of F'G without penalties."""

    @abstractmethod
    def descent(self, F: Array, G: Array) -> Any:
        """Return minus the gradient with respect to F'G, an array or a FactoredMatrix."""

    @abstractmethod
    def update(self, F: Array, G: Array, side: int) -> float | None:
        """Improve factor `side` (0: F, 1: G) in place; return the value if at hand, or None."""

    @abstractmethod
    def smoothness(self, F: Array, G: Array, old: int, descent: Any) -> float:
        """Return a guess of the curvature along components from `old` on, without weight yet."""

    def join(
        self, F: Array, G: Array, old: int, algorithm: str, descent: Any
    ) -> tuple[Array, Array]:
        """Return the factors with weights fitted after the components from `old` on have joined.

        The model is the quadratic one of FCMP's variant 0, L times the Gram matrix. L is raised
        until the loss does not rise; after `ATTEMPTS` the new components get no weight.
        """
        gram, start = (F @ F.T) * (G @ G.T), np.ones(len(F))
        start[old:] = 0.0
        scores = self.scores(F, G, start, descent)
        before, curvature = self.fit(start[:, None] * F, G), self.smoothness(F, G, old, descent)
        for _ in range(ATTEMPTS):
            if algorithm == "fcmp":
                weights = nonnegative(curvature * gram, scores, start, Cholesky())
            else:
                weights = pairwise(curvature * gram, scores, start, old)
            if self.fit(weights[:, None] * F, G) <= before:
                return weights[:, None] * F, G
            curvature *= 4.0
        return start[:, None] * F, G

    @property
    def penalised(self) -> bool:
        """Whether any factor has a penalty."""
        return any(any(penalty) for penalty in self.penalties)

    def balanced(self, F: Array, G: Array) -> tuple[Array, Array]:
        """Return the factors with the scales that cost least; the product stays.

        Notes
        -----
        For each component ``p s + P s^2 / 2 + q / s + Q / (2 s^2)`` is minimised over s by Newton
        steps in log s, in which it is convex. A component that is zero in one factor becomes zero
        in the other.
        """
        if not self.penalised:
            return F, G
        dead = np.logical_not(F.any(axis=1) * G.any(axis=1))
        F, G = np.where(dead[:, None], 0.0, F), np.where(dead[:, None], 0.0, G)
        (f, ff), (g, gg) = self.penalties
        if not ((f or ff) and (g or gg)):
            return F, G
        up = f * F.sum(axis=1), ff * (F * F).sum(axis=1)
        down = g * G.sum(axis=1), gg * (G * G).sum(axis=1)
        log = np.zeros(len(F))
        for _ in range(BALANCING):
            s = np.exp(log)
            rise, fall = up[0] * s + up[1] * s * s, down[0] / s + down[1] / (s * s)
            bend = up[0] * s + 2 * up[1] * s * s + down[0] / s + 2 * down[1] / (s * s)
            log -= np.divide(rise - fall, bend, out=np.zeros_like(log), where=bend > 0)
        return F * np.exp(log)[:, None], G / np.exp(log)[:, None]

    def scores(self, F: Array, G: Array, weights: Vector, descent: Any) -> Vector:
        """Return the inner products of the gradient at these weights with all components."""
        scores: Vector = -np.einsum("ki,ki->k", F @ descent, G)
        return scores

    def value(self, F: Array, G: Array) -> float:
        """Return the loss with the penalties."""
        return self.fit(F, G) + self.cost(F, G)

    def cost(self, F: Array, G: Array) -> float:
        """Return the penalties of both factors."""
        return self.penalties[0](F) + self.penalties[1](G)

    def corrected(
        self, F: Array, G: Array, sweeps: int, tol: float
    ) -> tuple[Array, Array, list[float], bool]:
        """Improve both factors in turn, with extrapolation; the value never rises.

        Returns
        -------
        F, G : arrays
            The factors.
        values : list of float
            The value at the start and after every sweep.
        converged : bool
            Whether the last sweeps gained less than `tol` of the value each.

        Notes
        -----
        After each update of a factor, ``F + beta (F - its last value)`` takes its place [1].
        beta grows while the value falls. Where the value rises, the sweep is undone, beta is cut,
        and one sweep is made without extrapolation, in which the value cannot rise.

        References
        ----------
        [1] A. M. S. Ang, N. Gillis. Accelerating nonnegative matrix factorization algorithms using
        extrapolation. Neural Computation 2019.
        """
        values = [self.value(F, G)]
        at, ahead, last = (F, G), (F, G), (F, G)
        beta, ceiling, momentum = MOMENTUM, 1.0, 0.0
        for _ in range(sweeps):
            left = ahead[0].copy()
            self.update(left, ahead[1], 0)
            beyond = extrapolated(left, last[0], momentum)
            right = ahead[1].copy()
            value = self.update(beyond, right, 1)
            if value is None:
                value = self.value(beyond, right)
            if value > values[-1] and momentum > 0:
                values.append(values[-1])
                ceiling, beta, momentum = beta, beta / CUT, 0.0
                ahead = last = at
                continue
            if value >= values[-1]:
                return *at, values, True  # nothing moves but by rounding
            values.append(value)
            at, ahead = (beyond, right), (beyond, extrapolated(right, last[1], momentum))
            last, momentum = (left, right), beta
            beta, ceiling = min(ceiling, GROWTH * beta), min(1.0, CEILING * ceiling)
            if settled(values, tol):
                return *at, values, True
        return *at, values, sweeps == 0

    def rewrite(self, slots: tuple[Array, Array], values: Vector) -> None:
        """Write new values for some of the entries that sparse data store, in both views."""
        for view, places in zip(self.views, slots, strict=True):
            view.data[places] = values

    def cleaned(self, F: Array) -> Array:
        """Return a factor with 0 for entries that have no effect."""
        return F

    def audit(self, F: Array, G: Array) -> float:
        """Return the loss of F'G without penalties, computed afresh from the residual."""
        return self.fit(F, G)

    def refine(self) -> None:
        """Compute to full precision from now on."""
        self.coarse = False

    def first(self) -> tuple[Array, Array] | None:
        """Return the factors of rank one to start from, where the loss of F'G = 0 is infinite."""
        return None


def pairwise(gram: Array, scores: Vector, start: Vector, old: int) -> Vector:
    """Return the weights after a pairwise step to each component from `old` on: PWMP.

    The component of steepest ascent gives weight, or the origin, where none ascends.
    """
    norms = np.sqrt(np.maximum(np.diag(gram), 0.0))
    weights = start.copy()
    for new in range(old, len(start)):
        slopes = scores + gram @ (weights - start)
        slopes = np.divide(slopes, norms, out=np.zeros_like(slopes), where=norms > 0)
        direction = np.zeros(len(start))
        direction[new], most = 1.0 / norms[new], np.inf
        v = int(slopes[:old].argmax()) if old else -1
        if v >= 0 and slopes[v] > LEVEL_SHARE * abs(slopes[new]):
            direction[v], most = -1.0 / norms[v], weights[v] * norms[v]
        curvature = float(direction @ gram @ direction)
        descent = -float((norms * direction) @ slopes)
        step = min(descent / curvature, most) if curvature > 0 else 0.0
        weights = np.maximum(weights + max(step, 0.0) * direction, 0.0)
    return weights


def extrapolated(new: Array, old: Array, momentum: float) -> Array:
    """Return new + momentum * (new - old), clipped at zero."""
    if momentum == 0:
        return new
    beyond = new - old
    beyond *= momentum
    beyond += new
    np.maximum(beyond, 0.0, out=beyond)
    return beyond


def settled(values: list[float], tol: float) -> bool:
    """Return whether the last sweeps gained less than `tol` of the value each."""
    return len(values) > SPAN and values[-1 - SPAN] - values[-1] <= SPAN * tol * values[-1]
