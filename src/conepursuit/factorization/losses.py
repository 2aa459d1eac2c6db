"""Losses of a non-negative factorisation: values, gradients, and updates of one factor.

There is a factor for each axis of the data, F of shape (k, n) for an axis of length n, with one
component per row. A matrix X is approximated by Z = F'G, a tensor by the sum of the outer products
of the rows of all its factors. An update never raises the loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.atoms.power import GAIN, Bounds, nonnegative_pairs
from conepursuit.atoms.rank_one_tensor import nonnegative_vectors
from conepursuit.pursuit.weight_programs import Cholesky, nonnegative
from conepursuit.tensors import component_grams, component_products

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


Factors: TypeAlias = tuple[Array, ...]
"""One array for each axis of the data, with one component per row.

Where the rows of a matrix are in blocks, the first is a `RowFactor` (`lazy_rows`) in its place.
"""

Watch: TypeAlias = Callable[[Factors, float], bool]
"""Called with factors and their value; True stops the run there."""


class Found(NamedTuple):
    """An atom that the oracle found: how steeply it descends, and its factors, of one row each."""

    value: float
    factors: Factors


class Penalty(NamedTuple):
    """``linear * sum(F) + 1/2 * squared * ||F||^2`` of one factor."""

    linear: float = 0.0
    squared: float = 0.0

    def __call__(self, F: Array) -> float:
        """Return the penalty of a factor."""
        total = self.linear * float(F.sum()) if self.linear else 0.0
        return total + (0.5 * self.squared * float(np.vdot(F, F)) if self.squared else 0.0)


NO_PENALTY = Penalty()

NO_PENALTIES: tuple[Penalty, ...] = ()
"""Stands for factors without penalties, however many they are."""


class FactorLoss(ABC):
    """A loss of the model Z of some factors, with a penalty for each.

    Attributes
    ----------
    X : array, csr_array or SparseTensor
        The data.
    shape : tuple of int
        The shape of the data.
    penalties : tuple of Penalty
        Of each factor, for matrices; or none.
    views : tuple of csr_array
        Sparse data by rows and by columns; empty for arrays.
    coarse : bool
        Whether products with the data are rounded to float32, until `refine`.
    splits : bool
        Whether to try at each rank if dividing a component is better than one more atom.
    fixed : frozenset of int
        Axes whose factors are not corrected.
    """

    X: Any
    shape: tuple[int, ...]
    penalties: tuple[Penalty, ...] = NO_PENALTIES
    views: tuple[Any, ...] = ()
    coarse: bool = False
    splits: bool = False
    fixed: frozenset[int] = frozenset()

    @abstractmethod
    def fit(self, factors: Factors) -> float:
        """Return the loss without penalties."""

    @abstractmethod
    def descent(self, factors: Factors) -> Any:
        """Return minus the gradient with respect to Z: an array, or kept as factors."""

    @abstractmethod
    def update(self, factors: Factors, axis: int) -> float | None:
        """Improve the factor of an axis in place; return the value if at hand, or None."""

    @abstractmethod
    def smoothness(self, factors: Factors, old: int, descent: Any) -> float:
        """Return a guess of the curvature along components from `old` on, without weight yet."""

    def zeros(self, count: int) -> Factors:
        """Return so many components that are zero."""
        return tuple(np.zeros((count, n)) for n in self.shape)

    def stacked(self, *parts: Factors) -> Factors:
        """Return the components of several factorisations, one after the other."""
        return tuple(np.vstack(each) for each in zip(*parts, strict=True))

    def raised(self, factors: Factors, share: float) -> Factors:
        """Return the factors with all entries at least this share of the mean of their component.

        From zero, multiplicative steps do not move.
        """
        return tuple(np.maximum(f, share * f.mean(axis=1, keepdims=True)) for f in factors)

    def noted(self, factors: Factors) -> Any:
        """Return what `restored` needs to return to these factors: the factors themselves."""
        return factors

    def restored(self, noted: Any) -> Factors:
        """Return factors that are as good as those that were noted."""
        factors: Factors = noted
        return factors

    def atoms(self, descent: Any, more: int, rounds: int, extra: Any) -> tuple[list[Found], Bounds]:
        """Return at most so many atoms that descend steeply, and bounds on how steep any is.

        `rounds` and `extra` are those of `NonnegativeRankOne`.
        """
        if len(descent.shape) > 2:
            value, vectors, bounds = nonnegative_vectors(
                descent, rounds=rounds, extra=extra, gain=GAIN, axes=1 if not rounds else None
            )
            return [Found(value, tuple(vector[None] for vector in vectors))], bounds
        pairs, bounds = nonnegative_pairs(descent, more, rounds=rounds, extra=extra)
        return [Found(pair.value, (pair.left[None], pair.right[None])) for pair in pairs], bounds

    def grams(self, factors: Factors) -> Array:
        """Return the inner products of all components."""
        return component_grams(factors)

    def join(self, factors: Factors, old: int, algorithm: str, descent: Any) -> Factors:
        """Return the factors with weights fitted after the components from `old` on have joined.

        The model is the quadratic one of FCMP's variant 0, L times the Gram matrix. L is raised
        until the loss does not rise; after `ATTEMPTS` the new components get no weight.
        """
        gram, start = self.grams(factors), np.ones(len(factors[0]))
        start[old:] = 0.0
        scores = self.scores(factors, start, descent)
        before = self.fit(weighted(start, factors))
        curvature = self.smoothness(factors, old, descent)
        for _ in range(ATTEMPTS):
            if algorithm == "fcmp":
                weights = nonnegative(curvature * gram, scores, start, Cholesky())
            else:
                weights = pairwise(curvature * gram, scores, start, old)
            found = weighted(weights, factors)
            if self.fit(found) <= before:
                return found
            curvature *= 4.0
        return weighted(start, factors)

    def penalty(self, axis: int) -> Penalty:
        """Return the penalty of the factor of an axis."""
        return self.penalties[axis] if self.penalties else NO_PENALTY

    @property
    def penalised(self) -> bool:
        """Whether any factor has a penalty."""
        return any(any(penalty) for penalty in self.penalties)

    def balanced(self, factors: Factors) -> Factors:
        """Return the two factors of a matrix with the scales that cost least; the product stays.

        Notes
        -----
        For each component ``p s + P s^2 / 2 + q / s + Q / (2 s^2)`` is minimised over s by Newton
        steps in log s, in which it is convex. A component that is zero in one factor becomes zero
        in the other.
        """
        if not self.penalised:
            return factors
        (F, FF), (G, GG) = (self.sizes(factor) for factor in factors)
        alive = (F > 0) & (G > 0)
        (f, ff), (g, gg) = self.penalties
        log = np.zeros(len(F))
        if (f or ff) and (g or gg):
            for _ in range(BALANCING):
                s = np.exp(log)
                rise, fall = f * F * s + ff * FF * s * s, g * G / s + gg * GG / (s * s)
                bend = rise + fall + ff * FF * s * s + gg * GG / (s * s)
                moves = alive & (bend > 0)
                log -= np.divide(rise - fall, bend, out=np.zeros_like(log), where=moves)
        up, down = np.where(alive, np.exp(log), 0.0), np.where(alive, np.exp(-log), 0.0)
        return up[:, None] * factors[0], down[:, None] * factors[1]

    def sizes(self, factor: Array) -> tuple[Vector, Vector]:
        """Return the sum of the entries of each component in a factor, and that of their squares.

        Only components that are zero have the sum 0.
        """
        return factor.sum(axis=1), np.einsum("ki,ki->k", factor, factor)

    def scores(self, factors: Factors, weights: Vector, descent: Any) -> Vector:
        """Return the inner products of the gradient at these weights with all components."""
        return -component_products(descent, factors)

    def value(self, factors: Factors) -> float:
        """Return the loss with the penalties."""
        return self.fit(factors) + self.cost(factors)

    def cost(self, factors: Factors) -> float:
        """Return the penalties of all factors."""
        if not self.penalties:
            return 0.0
        return sum(one(factor) for one, factor in zip(self.penalties, factors, strict=True))

    def corrected(
        self, factors: Factors, sweeps: int, tol: float, watch: Watch | None = None
    ) -> tuple[Factors, list[float], bool]:
        """Improve all factors in turn, with extrapolation; the value never rises.

        `watch` is called after every sweep.

        Returns
        -------
        factors : tuple of arrays
            The factors.
        values : list of float
            The value at the start and after every sweep.
        converged : bool
            Whether the last sweeps gained less than `tol` of the value each, or `watch` stopped.

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
        values = [self.value(factors)]
        at = ahead = last = factors
        beta, ceiling, momentum = MOMENTUM, 1.0, 0.0
        for _ in range(sweeps):
            moved, new, value = self._swept(ahead, last, momentum)
            if value > values[-1] and momentum > 0:
                values.append(values[-1])
                ceiling, beta, momentum = beta, beta / CUT, 0.0
                ahead = last = at
                continue
            if value >= values[-1]:
                return at, values, True  # nothing moves but by rounding
            values.append(value)
            at, ahead = moved, (*moved[:-1], extrapolated(new[-1], last[-1], momentum))
            last, momentum = new, beta
            beta, ceiling = min(ceiling, GROWTH * beta), min(1.0, CEILING * ceiling)
            if (watch is not None and watch(at, value)) or settled(values, tol):
                return at, values, True
        return at, values, sweeps == 0

    def _swept(
        self, ahead: Factors, last: Factors, momentum: float
    ) -> tuple[Factors, Factors, float]:
        """Update all factors in turn.

        Returns
        -------
        moved : tuple of arrays
            The factors, each but the last extrapolated before the next was updated.
        new : tuple of arrays
            The factors as they were updated.
        value : float
            The value of `moved`.
        """
        moved, value = list(ahead), None
        new: list[Array] = []
        for axis in range(len(ahead)):
            if new:
                moved[axis - 1] = extrapolated(new[-1], last[axis - 1], momentum)
            value = None
            if axis not in self.fixed:
                moved[axis] = moved[axis].copy()
                value = self.update(tuple(moved), axis)
            new.append(moved[axis])
        if value is None:
            value = self.value(tuple(moved))
        return tuple(moved), tuple(new), value

    def rewrite(self, slots: tuple[Array, ...], values: Vector) -> None:
        """Write new values for some of the entries that sparse data store, in all views."""
        for view, places in zip(self.views, slots, strict=True):
            view.data[places] = values

    def cleaned(self, F: Array) -> Array:
        """Return a factor with 0 for entries that have no effect."""
        return F

    def audit(self, factors: Factors) -> float:
        """Return the loss without penalties, computed afresh from the residual."""
        return self.fit(factors)

    def refine(self) -> None:
        """Compute to full precision from now on."""
        self.coarse = False

    def first(self) -> Factors | None:
        """Return the factors of rank one to start from, where the loss of Z = 0 is infinite."""
        return None


def weighted(weights: Vector, factors: Factors) -> Factors:
    """Return the factors, the first of them times the weights of its components."""
    return weights[:, None] * factors[0], *factors[1:]


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
