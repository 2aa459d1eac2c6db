"""The fully corrective update: all weights of the active atoms are fitted anew."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeAlias

import numpy as np

from conepursuit.arrays import Array, Vector, inner, norm
from conepursuit.atoms.base import Atoms
from conepursuit.objectives.base import Objective, hessian_at
from conepursuit.pursuit.domains import Domain
from conepursuit.pursuit.iterate import Direction, Iterate, Line, Local
from conepursuit.pursuit.steps import first_estimate, line_minimum, shortened
from conepursuit.pursuit.weight_programs import Cholesky

Move: TypeAlias = tuple[Iterate, float, bool]
"""The next iterate, the step that led there, and whether it was good (see `State.good`)."""

STILL = 2e-15
"""A move of x by at most this share of ||x|| is rounding.

A refit that moves x no further is replaced by a single step, and a single step so short is not
made.
"""

INNER_ITERATIONS = 100
INNER_TOLERANCE = 1e-10
"""When the minimisation of f over the weights of the active atoms ends.

That is when a refit promises at most INNER_TOLERANCE times the decrease that the first one did, or
after INNER_ITERATIONS refits.
"""


class Metric:
    """The matrix of the refits, a Gram matrix or a constant Hessian, updated with the active set.

    An atom that joins costs one block of inner products; nothing is computed twice.
    """

    def __init__(self, objective: Objective, hessian: bool) -> None:
        self.objective, self.hessian = objective, hessian
        self.keys: tuple[object, ...] = ()
        self._entries = np.empty((0, 0))
        self.factor = Cholesky()

    def update(self, x: Array, atoms: Atoms) -> Array:
        """Return the matrix of these atoms.

        If they begin with those of the last call, only the entries of the new ones are computed.
        """
        k, n = len(self.keys), len(atoms)
        if atoms.keys[:k] != self.keys:
            self.factor, k = Cholesky(), 0
        if n > len(self._entries):
            grown = np.empty((2 * n, 2 * n))
            grown[:k, :k] = self._entries[:k, :k]
            self._entries = grown
        if n > k:
            new = atoms[range(k, n)]
            block = self.objective.model(x, atoms, new) if self.hessian else atoms.gram(new)
            assert block is not None
            self._entries[:n, k:n] = block
            self._entries[k:n, :k] = block[:k].T
        self.keys = atoms.keys
        return self._entries[:n, :n]

    def keep(self, positions: Array, atoms: Atoms) -> None:
        """Forget all atoms but those at `positions`, which are `atoms`."""
        n, k = len(self.keys), len(positions)
        if k < n:
            self.factor.keep(positions, n)
            self._entries[:k, :k] = self._entries[np.ix_(positions, positions)]
            self.keys = atoms.keys


class Corrector:
    """The update of FCMP and OMP; it keeps the metric and its factor through a run.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    exact : bool
        Whether f itself (variant 1) or its quadratic upper bound (variant 0) is minimised over
        the hull of the active atoms.
    rescue : callable
        The direction of a single step where a refit does not move x.
    """

    def __init__(
        self, objective: Objective, exact: bool, rescue: Callable[[Local], Direction]
    ) -> None:
        self.objective, self.exact, self.rescue = objective, exact, rescue
        self.metric = Metric(objective, hessian=exact and objective.quadratic)
        self.curvature = 1.0 if self.metric.hessian else objective.smoothness
        self.curved = exact and not objective.quadratic

    def __call__(self, iterate: Iterate, local: Local, d: Direction) -> Move:
        """Return the refitted iterate; where x has not moved, that of a single step instead."""
        scores = local.scores
        joined = iterate if d.toward is None else iterate.joined(d.toward)
        if len(joined.weights) > len(scores):
            scores = np.append(scores, local.gain * local.score)
        newton = self.curved and hessian_at(self.objective, iterate.x) is not None
        if self.curvature is None and not newton:
            self.curvature = self._first_curvature(iterate.x, joined.atoms, scores)
            if self.curvature == 0:
                return iterate, inf, True
        Q = None if newton else self.metric.update(iterate.x, joined.atoms)
        good = Q is None or self.exact or self._good(local, d, joined, Q)
        if self.curved:
            weights = self._minimize(local.domain, joined, scores, Q)
        else:
            weights = self._model_minimum(local.domain, joined, scores, Q)
        fitted, step = self._shortened(local, joined, weights)
        kept = np.flatnonzero(fitted.weights)
        if len(kept) < len(weights):
            fitted = Iterate(fitted.x, joined.atoms[kept], fitted.weights[kept])
        if Q is not None:
            self.metric.keep(kept, fitted.atoms)
        if norm(fitted.x - iterate.x) <= STILL * norm(iterate.x):
            return self._line_step(iterate, local)
        return fitted, step, good

    def _shortened(self, local: Local, joined: Iterate, weights: Vector) -> tuple[Iterate, float]:
        """Return the refitted iterate with step 1, or a point on the way to it with its step.

        In exact arithmetic f falls all the way to the minimiser of the model. With the rounding of
        an ill-conditioned matrix it may rise again; then the step ends at the minimum on the way.
        """
        fitted = Iterate(joined.x, joined.atoms, weights).recomputed()
        if self.curved:
            return fitted, 1.0  # `_minimize` has shortened its steps already
        change, vector = weights - joined.weights, fitted.x - joined.x
        slope = inner(local.gradient, vector) + local.domain.penalty * float(change.sum())
        step = self._model_step(joined.x, vector, slope)
        if step >= 1 - 1e-6:
            return fitted, 1.0
        step = max(step, 0.0)
        return Iterate(joined.x, joined.atoms, joined.weights + step * change).recomputed(), step

    def _model_step(self, x: Array, vector: Array, slope: float) -> float:
        """Return the step to the minimum of f (or of its upper bound) along a line."""
        curvature = self.objective.curvature(x, vector) if self.exact else None
        if curvature is None:
            curvature = (self.curvature or 0.0) * inner(vector, vector)
        return -slope / curvature if curvature > 0 else inf

    def _line_step(self, iterate: Iterate, local: Local) -> Move:
        """Make a single step along a line, where a refit moves x by no more than rounding.

        A refit does not move x at a minimiser; there this step changes nothing either. It does
        not move x where its matrix cannot show that z descends, since z is nearly a combination
        of active atoms or f has no curvature along it; there this step makes progress.
        """
        d = self.rescue(local)
        vector = iterate.vector(d)
        step = min(self._model_step(iterate.x, vector, d.slope), d.max_step)
        if step == inf and self.curved:  # f may have curvature further on
            step = line_minimum(self.objective, iterate.x, vector, d.line)
        if step == inf or not d.slope < 0:
            return iterate, step if d.slope < 0 else 0.0, True
        if self.curved:
            step, _ = shortened(self.objective, iterate.x, vector, d.line, step)
        if step * norm(vector) <= STILL * norm(iterate.x):
            return iterate, 0.0, True
        clipped = d.away is not None and step >= d.max_step
        return iterate.moved(d, step, vector), step, self.exact or not clipped

    def _good(self, local: Local, d: Direction, joined: Iterate, Q: Array) -> bool:
        """Return whether a pairwise step from here would be good, that is, not clipped (A13)."""
        v = local.away
        if v is None or self.curvature is None:
            return True
        slope, square = -float(local.scores[v]), float(Q[v, v])
        if d.toward is not None:
            z = joined.position(d.toward)
            assert z is not None
            slope, square = slope + local.score, square - float(2 * Q[v, z] - Q[z, z])
        return -slope < self.curvature * square * float(local.iterate.weights[v])

    def _minimize(
        self, domain: Domain, start: Iterate, scores: Vector, gram: Array | None
    ) -> Vector:
        """Minimise f over the weights by damped Newton steps, each the exact refit of a model.

        Where f has no Hessian, that of the model is `gram` times a curvature, which is estimated
        from the last step. Otherwise `gram` is None.
        """
        atoms, weights, x = start.atoms, start.weights, start.x
        promise = 0.0
        for _ in range(INNER_ITERATIONS):
            target = self._model_minimum(domain, Iterate(x, atoms, weights), scores, gram)
            change = target - weights
            slope = float(scores @ change)
            promise = promise or slope
            if slope >= INNER_TOLERANCE * promise:
                break
            vector = atoms.combine(change)
            line = Line(slope, 1.0, domain.penalty * float(change.sum()))
            step, there = shortened(self.objective, x, vector, line, 1.0)
            square = inner(vector, vector)
            if step == 0 or square == 0:
                break
            weights = target if step == 1 else weights + step * change
            x = atoms.combine(weights)
            scores = atoms.inner(self.objective.value_and_gradient(x)[1]) + domain.penalty
            secant = (there - slope) / (step * square)
            if gram is not None and self.curvature is not None and secant > 0:
                self.curvature = max(secant, self.curvature / 100)
        return weights

    def _model_minimum(
        self, domain: Domain, at: Iterate, scores: Vector, gram: Array | None
    ) -> Vector:
        """Return the weights that minimise a quadratic model of f about an iterate.

        Its Hessian is `gram` times the curvature, or that of f if `gram` is None.
        """
        if gram is None:
            hessian = self.objective.model(at.x, at.atoms, at.atoms)
            assert hessian is not None
            return domain.refit(hessian, scores, at.weights, Cholesky())
        assert self.curvature is not None
        return domain.refit(gram, scores / self.curvature, at.weights, self.metric.factor)

    def _first_curvature(self, x: Array, atoms: Atoms, scores: Vector) -> float:
        """Estimate the curvature along the steepest descent of the weights."""
        descent = -scores / np.maximum(atoms.norms(), np.finfo(np.float64).tiny) ** 2
        vector = atoms.combine(descent)
        line = Line(float(scores @ descent))
        return first_estimate(self.objective, x, vector, line, inner(vector, vector))
