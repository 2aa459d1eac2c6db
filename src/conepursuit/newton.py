"""Minimise any smooth loss over the weights of the columns of a matrix, all of them at once.

The loop of `FCMP(variant=1)` takes in one atom after the other, and solves each refit. Here all
atoms that descend come in together. Steps follow the curvature that earlier steps have shown
(limited-memory BFGS on the free weights, projected), which costs two products with the matrix; as
soon as these converge too slowly to be worth it, the quadratic model of the loss is minimised over
weights that are not negative, on its Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, log
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lstsq
from scipy.sparse.linalg import LinearOperator, cg

from conepursuit.arrays import Array, Vector, inner, is_finite, norm
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.atoms.table import Table
from conepursuit.atoms.vectors import Vectors
from conepursuit.certificates import least_tilt
from conepursuit.domains import Cone
from conepursuit.iterate import Direction
from conepursuit.linear import matvec, rmatvec
from conepursuit.objectives.base import Objective
from conepursuit.points import best_multiple
from conepursuit.refit import Factor, nonnegative
from conepursuit.results import Status
from conepursuit.steps import damped

MEMORY = 10
"""How many steps are remembered for their curvature."""

PATIENCE = 6
"""Steps after which the rate of convergence is looked at, and again after each."""

HESSIAN_COST = 0.4
"""A run of Newton steps on the Hessian of k atoms costs about so many times k other steps."""

FRESH = 4
"""So many steps look at the chosen columns only before all are looked at again."""

STEEP = 0.1
"""Atoms come in that are at least so steep, relative to the steepest."""

NEAR, CLOSE = 300.0, 1e-5
"""The last step is tried where one promised so many times what is asked for, but no more than this
share of the whole decrease."""

LEVELLINGS = 3
"""How often atoms may join that a dual point has made descend."""

SMALL = 32
"""Up to so many atoms a linear system is solved on its matrix."""

ROUNDING = 1e-13
"""A gap of this share of f where no step makes progress is rounding."""

EPS = float(np.finfo(np.float64).eps)


@dataclass(eq=False)
class Point:
    """Weights, and what is known there.

    The scores have the penalty in them; if they are not fresh, those of columns that were not
    chosen are of an earlier point.
    """

    weights: Vector
    x: Array
    value: float
    gradient: Array
    scores: Vector
    size: float
    fresh: bool = True

    def total(self, penalty: float) -> float:
        """Return f(x) with the penalty."""
        return self.value + penalty * self.size


class Newton:
    """Steps for one objective on the columns of one matrix.

    Parameters
    ----------
    objective : Objective
        With a Hessian.
    atoms : Dictionary
        The columns, of an array or a sparse matrix.
    penalty : float
        lambda of f(A w) + lambda * sum(w).
    """

    def __init__(self, objective: Objective, atoms: Dictionary, penalty: float) -> None:
        assert atoms.norms is not None
        self.objective, self.atoms, self.matrix = objective, atoms, atoms.matrix
        self.norms, self.penalty = atoms.norms, penalty
        self.scale = np.divide(1.0, self.norms, out=np.zeros_like(self.norms), where=self.norms > 0)
        self.columns: Any
        self.chosen, self.columns = np.empty(0, dtype=np.intp), np.empty((atoms.shape[0], 0))
        self.gathered = Gathered(self.matrix)
        self.pairs: list[tuple[Vector, Vector]] = []
        self.promises: list[float] = []
        self.direct = False

    def at(self, weights: Vector) -> Point:
        """Return what is known at these weights, computed from the data."""
        x = matvec(self.matrix, weights)
        value, gradient = self.objective.value_and_gradient(x)
        scores = rmatvec(self.matrix, gradient) + self.penalty
        return Point(weights, x, value, gradient, scores, float(weights.sum()))

    def start(self) -> Point:
        """Return the origin, or the best multiple of a few atoms where f is infinite there."""
        origin = np.zeros(len(self.norms))
        value, gradient = self.objective.value_and_gradient(self.objective.origin())
        if not (isfinite(value) and is_finite(gradient)):
            found = best_multiple(self.objective, Cone(self.atoms, penalty=self.penalty))
            origin[list(found.atoms.keys)] = found.weights
        return self.at(origin)

    def step(self, point: Point, wanted: float) -> tuple[Point, float]:
        """Return the next point, and the decrease that was expected of the way to it.

        `wanted` is the decrease at which a run ends.
        """
        self._choose(point)
        if not len(self.chosen):
            return point, 0.0
        scores, weights = point.scores[self.chosen], point.weights[self.chosen]
        self.direct = self.direct or self._too_slow(wanted)
        change = np.zeros_like(weights)
        if not self.direct:
            change = self._by_pairs(point.x, scores, weights)
        if not scores @ change < 0:
            change = self._by_hessian(point.x, scores, weights)
        slope = float(scores @ change)
        if not slope < 0:
            return point, 0.0
        falling = change < 0
        most = float((weights[falling] / -change[falling]).min(initial=inf))
        d = Direction("refit", slope, max(most, 1.0), charge=self.penalty * float(change.sum()))
        vector = matvec(self.columns, change)
        step, value, gradient = damped(self.objective, point.x, point.value, vector, d)
        if step == 0:
            return point, 0.0
        moved = self._moved(point, step * change, point.x + step * vector, value, gradient)
        self.promises.append(-slope)
        return moved, -slope

    def _moved(
        self, point: Point, change: Vector, x: Array, value: float, gradient: Array
    ) -> Point:
        """Return the point after a change of the chosen weights, and remember its curvature."""
        weights = point.weights.copy()
        before = weights[self.chosen]
        after = before + change
        after[after <= 8 * EPS * before] = 0.0  # what rounding left of weights that are zero
        weights[self.chosen] = after
        fresh = self.direct or (len(self.promises) + 1) % FRESH == 0
        if fresh:
            scores = rmatvec(self.matrix, gradient) + self.penalty
        else:
            scores = point.scores.copy()
            scores[self.chosen] = rmatvec(self.columns, gradient) + self.penalty
        if not self.direct:
            moved, turned = np.zeros_like(weights), np.zeros_like(weights)
            moved[self.chosen] = (weights - point.weights)[self.chosen] * self.norms[self.chosen]
            turned[self.chosen] = (scores - point.scores)[self.chosen] * self.scale[self.chosen]
            self.pairs = [*self.pairs[1 - MEMORY :], (moved, turned)]
        return Point(weights, x, value, gradient, scores, float(weights.sum()), fresh)

    def _choose(self, point: Point) -> None:
        """Choose the columns of the next step, those of the last one if they will do."""
        slopes = point.scores * self.scale
        used, least = point.weights > 0, min(0.0, float(slopes.min()))
        wanted = used | (slopes < STEEP * least)
        count, held = np.count_nonzero(wanted), np.count_nonzero(wanted[self.chosen])
        if point.fresh and (held < count or len(self.chosen) > 1.5 * count + 8):
            self._take(used | (slopes < 0))

    def _take(self, wanted: Array) -> None:
        """Choose columns; those at hand stay, and only new ones are copied, if most are wanted."""
        count, new = np.count_nonzero(wanted), wanted.copy()
        new[self.chosen] = False
        if len(self.chosen) + np.count_nonzero(new) > 1.25 * count:
            self.chosen, new = self.chosen[:0], wanted
        added = np.flatnonzero(new)
        self.columns = self.gathered.add(len(self.chosen), added)
        self.chosen = np.append(self.chosen, added)

    def _too_slow(self, wanted: float) -> bool:
        """Return whether steps on the Hessian would be cheaper than what is left of these."""
        if len(self.promises) < PATIENCE:
            return False
        now, before = self.promises[-1], self.promises[-PATIENCE]
        if now >= before or wanted <= 0:
            return True
        rate = log(before / now) / (PATIENCE - 1)
        return log(max(now / wanted, 1.0)) / rate > HESSIAN_COST * len(self.chosen)

    def _by_pairs(self, x: Array, scores: Vector, weights: Vector) -> Vector:
        """Return a change of weights along the projected quasi-Newton direction.

        In units in which all atoms have length one it is -B g on the free weights, and weights
        that would become negative are zero.
        """
        norms, g = self.norms[self.chosen], scores * self.scale[self.chosen]
        w = weights * norms
        free = (w > 0) | (g < 0)
        pairs = self._pairs(free)
        d = inverse_product(pairs, np.where(free, -g, 0.0))
        if not pairs:
            vector = matvec(self.columns, d * self.scale[self.chosen])
            curvature = self.objective.curvature(x, vector)
            d *= float(d @ d) / curvature if curvature and isfinite(curvature) else 0.0
        change = np.maximum(w + d, 0.0) - w
        return change * self.scale[self.chosen]

    def _pairs(self, free: Array) -> list[tuple[Vector, Vector]]:
        """Return the pairs of the chosen atoms that are free, where their curvature is safe."""
        pairs = [(s[self.chosen] * free, y[self.chosen] * free) for s, y in self.pairs]
        return [(s, y) for s, y in pairs if s @ y > EPS * (y @ y)]

    def _hessian(self, x: Array) -> Array:
        """Return the Hessian of the loss on the chosen atoms."""
        k = len(self.chosen)
        atoms = Vectors((len(x),), tuple(range(k)), Table.of(self.columns.T), np.arange(k))
        hessian = self.objective.model(x, atoms, atoms)
        assert hessian is not None
        return hessian

    def _by_hessian(self, x: Array, scores: Vector, weights: Vector) -> Vector:
        """Return the change of weights that minimises the quadratic model."""
        return nonnegative(self._hessian(x), scores, weights, Factor()) - weights

    def closed(self, point: Point, level: float) -> tuple[Point, float, bool]:
        """Return the point after a last Newton step, a bound on f(x) - f*, and if it is proven.

        Notes
        -----
        The Newton step on the atoms with weight makes their slopes level, up to a slack that costs
        half of `level`; the gradient of its model, u = g + H A z, is a dual point if no other
        atom descends along it, and as close to the solution as the step. A multiple of a positive
        functional does what is left, or all where there is none; with a penalty, multiples of the
        gradient serve as well.
        """
        u, scores, weights = self._levelled(point, level)
        moved = self.at(weights)
        if not moved.total(self.penalty) <= point.total(self.penalty):
            moved = self.at(point.weights)  # x has drifted: claim nothing before it is made afresh
        gap = min(
            self._bound(moved, u, scores),
            self._bound(moved, moved.gradient, moved.scores),
        )
        if gap < inf:
            return moved, max(gap, 0.0), True
        height = abs(inner(moved.gradient, moved.x) + self.penalty * moved.size)
        steepest = max(0.0, -float((moved.scores * self.scale).min()))
        estimate = height + (norm(moved.x) or inf) * steepest
        above = self.objective.excess(moved.value) + self.penalty * moved.size
        return moved, min(above, estimate), above <= estimate

    def _bound(self, point: Point, u: Array, scores: Vector) -> float:
        """Return what a dual point proves, if need be after a tilt or, with a penalty, shortened.

        `scores` are those of u, with the penalty.
        """
        trials: list[tuple[Any, float]] = []
        largest, least = (1.0 if self.penalty else inf), float(scores.min())
        functional = self.atoms.positive_functional()
        if least >= 0:
            trials.append((0.0, largest))
        else:
            if functional is not None:
                shift = least_tilt(scores, rmatvec(self.matrix, functional))
                trials.append((shift * functional, largest))
            if self.penalty:
                trials.append((0.0, self.penalty / (self.penalty - least)))
        gaps = [
            self.objective.duality_gap(
                point.x, point.value, point.gradient, u - point.gradient + tilt, most
            )
            for tilt, most in trials
        ]
        return self.penalty * point.size + min((g for g in gaps if g is not None), default=inf)

    def _levelled(self, point: Point, level: float) -> tuple[Array, Vector, Vector]:
        """Return a dual point, its scores, and the weights after the step that leads to it."""
        involved, hessian = point.weights > 0, self.objective.hessian(point.x)
        assert hessian is not None
        u, scores, weights = point.gradient, point.scores, point.weights
        slack = 0.5 * level / max(float(point.weights @ self.norms), np.finfo(np.float64).tiny)
        slack = max(slack, EPS * norm(point.gradient))
        for attempt in range(LEVELLINGS):
            if not involved.any():
                break
            if np.count_nonzero(involved[self.chosen]) < np.count_nonzero(involved):
                self._take(involved)
            scale = self.scale[self.chosen] * involved[self.chosen]
            right = slack * (scale > 0) - point.scores[self.chosen] * scale
            # The largest of k residuals is about four times as large as they are in the mean.
            error = 0.5 * slack * (1.0 if attempt else max(1.0, 0.25 * len(scale) ** 0.5))
            z = scale * self._solve(point.x, right, scale, error)
            u = point.gradient + hessian(matvec(self.columns, z))
            scores = rmatvec(self.matrix, u) + self.penalty
            weights = point.weights.copy()
            weights[self.chosen] = np.maximum(weights[self.chosen] + z, 0.0)
            if scores.min() >= 0:
                break
            involved = involved | (scores < 0)
        return u, scores, weights

    def _solve(self, x: Array, right: Vector, scale: Vector, error: float) -> Vector:
        """Return z with S H S z = right, up to `error`, S the scale of the chosen atoms."""
        k = len(self.chosen)
        if self.direct or k <= SMALL:
            z: Vector = lstsq(scale[:, None] * self._hessian(x) * scale, right)[0]
            return z
        hessian = self.objective.hessian(x)
        assert hessian is not None

        def product(z: Vector) -> Vector:
            return scale * rmatvec(self.columns, hessian(matvec(self.columns, scale * z)))

        operator = LinearOperator((k, k), matvec=product, dtype=np.float64)
        z = cg(operator, right, rtol=0.0, atol=error, maxiter=k)[0]
        return z


def inverse_product(pairs: list[tuple[Vector, Vector]], d: Vector) -> Vector:
    """Return B d, where B is made of pairs of changes of weights and slopes.

    Notes
    -----
    The two-loop recursion of limited-memory BFGS [1].

    References
    ----------
    [1] J. Nocedal. Updating Quasi-Newton Matrices with Limited Storage. Math. Comp. 1980.
    """
    shares: list[Any] = []
    for s, y in reversed(pairs):
        shares.append((s @ d) / (s @ y))
        d = d - shares[-1] * y
    if pairs:
        s, y = pairs[-1]
        d = d * ((s @ y) / (y @ y))
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        d = d + (share - (y @ d) / (s @ y)) * s
    return d


class Gathered:
    """Columns of a matrix, copied together; of an array into one piece of memory with room."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.rows = np.empty((0, matrix.shape[0]))
        self.columns: Any = None

    def add(self, kept: int, new: Array) -> Any:
        """Return the first `kept` columns with new ones after them."""
        if not isinstance(self.matrix, np.ndarray):
            parts = [self.columns[:, :kept], self.matrix[:, new]] if kept else []
            self.columns = sparse.hstack(parts, "csc") if kept else self.matrix[:, new]
            return self.columns
        total = kept + len(new)
        if total > len(self.rows):
            room = np.empty((min(total + total // 4 + 16, self.matrix.shape[1]), len(self.matrix)))
            room[:kept] = self.rows[:kept]
            self.rows = room
        self.rows[kept:total] = self.matrix.T[new]
        return self.rows[:total].T


def fit_newton(
    objective: Objective,
    atoms: Dictionary,
    penalty: float,
    start: Vector | None,
    tol: float,
    max_iter: int,
) -> tuple[Point, float, bool, Status, int]:
    """Minimise f(A w) + penalty * sum(w) over w >= 0.

    Returns
    -------
    Point, gap, proven, status, n_iter
    """
    newton = Newton(objective, atoms, penalty)
    first = newton.start()
    point = first if start is None else newton.at(start)
    reference, promise = first.total(penalty), inf
    status, iteration = Status.MAX_ITER, 0
    for iteration in range(max_iter + 1):
        level = max(tol * (reference - point.total(penalty)), objective.rounding(point.x))
        near = max(level, min(NEAR * level, CLOSE * (reference - point.total(penalty))))
        if promise <= near or point.scores.min() >= 0:
            point, gap, proven = newton.closed(point, level)
            if gap <= level:
                return point, gap, proven, Status.CONVERGED, iteration
        if iteration == max_iter:
            break
        point, promise = newton.step(point, level)
        if promise == 0:
            status = Status.STALLED
            break
    point, gap, proven = newton.closed(point, level)
    if gap <= level:
        status = Status.CONVERGED
    elif status is Status.STALLED and gap <= ROUNDING * (abs(point.value) + abs(reference)):
        status = Status.STATIONARY
    return point, gap, proven, status, iteration
