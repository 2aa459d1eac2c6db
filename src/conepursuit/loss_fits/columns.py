"""The problem that `nnfit` solves for one target, points of it, and copies of its columns."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector, is_finite, magnitude
from conepursuit.atoms.base import Atoms
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.atoms.table import Table
from conepursuit.atoms.vectors import Vectors
from conepursuit.linear import gram, matvec, rmatvec
from conepursuit.matrix_fits.safe_units import inverted
from conepursuit.objectives.base import Objective, check_real
from conepursuit.pursuit.certify import allowance
from conepursuit.pursuit.domains import Cone
from conepursuit.pursuit.results import LITTLE
from conepursuit.pursuit.starts import best_multiple
from conepursuit.rounding import product_rounding

BRIEF = 200_000
"""Chosen columns with at least this many entries are copied in float32, fewer in float64."""

SLACK_ROUNDINGS = 3.0
"""Atoms with weight are made to ascend along a dual point by this many times their rounding.

With less, rounding of the slopes could hide a descent, and nothing would be proved.
"""

COPIED_ROWS = 32
"""How many rows are copied at a time, so that they are cast while they are in the cache."""


@dataclass(eq=False)
class Point:
    """Weights w, and what is known there.

    Attributes
    ----------
    x, value, gradient : array, float, array
        A w, f(A w) without the penalty, and the gradient of f there.
    scores : array
        The slopes of all weights, with the penalty.
    size : float
        The sum of the weights.
    fresh : bool
        Whether all scores belong to this point; otherwise only those of the chosen columns do, and
        the others are of an earlier point.
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


class Problem:
    """Minimise f(A w) + penalty * sum(w) over w >= 0, with copies of some columns of A.

    Parameters
    ----------
    objective : Objective
        With a Hessian.
    atoms : Dictionary
        The columns, of an array or a sparse matrix.
    penalty : float
        lambda.

    Attributes
    ----------
    chosen : array of int
        Which columns are copied, for the next steps.
    columns : matrix
        The copy of them.
    newton_only : bool
        Whether all steps are Newton steps, since products with the matrix are dear.
    little : float
        A gap that is the rounding of its proof ends a fit if it is at most this times
        |f(x)| + |decrease|. With a larger one the fit goes on as long as steps make progress.
    trials : int
        A gap that is small enough but an estimate ends a fit only after this many last steps.
    most_room : int
        The most atoms that come in at once.
    """

    newton_only, little, trials = False, LITTLE, 5
    most_room = sys.maxsize

    def __init__(self, objective: Objective, atoms: Dictionary, penalty: float) -> None:
        assert atoms.norms is not None
        self.objective, self.atoms, self.matrix = objective, atoms, atoms.matrix
        self.norms, self.penalty = atoms.norms, penalty
        self.scale = inverted(self.norms)
        self.columns: Any
        self._gathered = Gathered(self.matrix)
        self.chosen, self.columns = np.empty(0, dtype=np.intp), np.empty((atoms.shape[0], 0))

    def at(self, weights: Vector) -> Point:
        """Return what is known at these weights, computed from the data.

        Where f or its gradient is infinite, the value is inf and the scores are NaN.
        """
        x = self.product(weights)
        value, gradient = self.objective.value_and_gradient(x)
        check_real(value, gradient)
        size = float(weights.sum())
        if not (isfinite(value) and is_finite(gradient)):
            return Point(weights, x, inf, gradient, np.full(len(weights), np.nan), size)
        return Point(weights, x, value, gradient, self.scores(gradient, x), size)

    def start(self) -> Point:
        """Return the origin, or the best multiple of a few atoms where f is infinite there."""
        weights = np.zeros(len(self.norms))
        origin = self.at(weights)
        if isfinite(origin.value):
            return origin
        found = best_multiple(self.objective, Cone(self.atoms, penalty=self.penalty))
        weights[list(found.atoms.keys)] = found.weights
        return self.at(weights)

    def product(self, weights: Vector) -> Array:
        """Return A w."""
        return matvec(self.matrix, weights)

    def scores(self, gradient: Array, x: Array | None = None) -> Vector:
        """Return the slopes of all weights along a gradient, with the penalty.

        x is where it is the gradient of f, if the Hessian may be asked for there.
        """
        return rmatvec(self.matrix, gradient) + self.penalty

    def rounding(self, point: Point) -> float:
        """Return twice what rounding adds to a gap at a point; a smaller gap cannot be asked for.

        Rounding adds the `allowance`, and the slack by which atoms with weight must ascend so that
        rounding does not hide a descent.
        """
        size, count = magnitude(point.gradient), int(np.count_nonzero(point.weights))
        reach = float(self.norms @ point.weights)
        extra = allowance(
            self.objective, self.penalty, point.x, point.value, point.size, count, size,
            product_rounding(count) * reach,
        )  # fmt: skip
        noise = self.atoms.noise(point.gradient) + self.objective.imbalance(point.gradient)
        return 2 * (extra + (1 + SLACK_ROUNDINGS) * noise * reach)

    def absolute(self, weights: Vector) -> Array:
        """Return |A| w; the rounding of each entry of A w is a small share of it."""
        used = np.flatnonzero(weights)
        if sparse.issparse(self.matrix) or 2 * len(used) < len(weights):
            return matvec(abs(self.matrix[:, used]), weights[used])
        return matvec(np.abs(self.matrix), weights)

    def absolute_slopes(self, columns: Array, entries: Array) -> Vector:
        """Return |A|' v for some columns; the rounding of their scores is a small share of it."""
        return rmatvec(abs(self.matrix[:, columns]), entries)

    @cached_property
    def functional(self) -> tuple[Array, Vector] | None:
        """A positive functional on the entries that count, and what it surely is on each atom."""
        t = self.atoms.positive_functional()
        if t is None:
            return None
        t = t * self.objective.counted
        return t, rmatvec(self.matrix, t) - self.atoms.noise(t) * self.norms

    def choose(self, wanted: Array) -> None:
        """Copy the columns where `wanted` is True into `columns`."""
        self.chosen = np.flatnonzero(wanted)
        self.columns = self._gathered.take(self.chosen, BRIEF)

    def combine(self, change: Vector) -> Array:
        """Return the chosen columns times these weights, in the precision of `columns`."""
        if not self.brief:
            return matvec(self.columns, change)
        x: Array = (self.columns @ change.astype(np.float32)).astype(np.float64)
        return x

    def slopes(self, gradient: Array) -> Vector:
        """Return the inner products of the chosen columns, in the precision of `columns`."""
        if not self.brief:
            return rmatvec(self.columns, gradient)
        products: Vector = (gradient.astype(np.float32) @ self.columns).astype(np.float64)
        return products

    @property
    def brief(self) -> bool:
        """Whether the chosen columns are in float32."""
        return isinstance(self.columns, np.ndarray) and self.columns.dtype == np.float32

    def hessian(self, x: Array) -> Array:
        """Return the Hessian in the chosen weights; a float32 copy of columns becomes float64."""
        k = len(self.chosen)
        if self.brief:
            self.columns = self._gathered.take(self.chosen, inf)
        atoms = Columns((len(x),), tuple(range(k)), Table.of(self.columns.T), np.arange(k))
        hessian = self.objective.model(x, atoms, atoms)
        assert hessian is not None
        return hessian


class Columns(Vectors):
    """All the columns of a matrix as a batch of atoms.

    Products of the columns with each other are taken from the matrix as it lies in memory.
    """

    def gram(self, other: Atoms | None = None) -> Array:
        return gram(self.table.rows.T) if other is self else super().gram(other)

    def weighted_gram(self, weights: Array, other: Atoms) -> Array:
        columns = self.table.rows.T
        if other is not self or not isinstance(columns, np.ndarray):
            return super().weighted_gram(weights, other)
        return gram(np.sqrt(weights)[:, None] * columns)


class Gathered:
    """Copies of columns of a matrix, in its own memory order, always to the same memory."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self._memory = np.empty(0)

    def take(self, chosen: Array, brief: float) -> Any:
        """Return the chosen columns; they overwrite the ones returned before.

        Copies of at least `brief` entries of a dense float64 matrix are in float32: they are read
        many times, in half the time, for steps that need no more precision. Others are in float64.
        """
        matrix, (m, n), k = self.matrix, self.matrix.shape, len(chosen)
        if sparse.issparse(matrix):
            return matrix[:, chosen]
        if matrix.dtype != np.float64:
            return matrix[:, chosen].astype(np.float64, copy=False) if k < n else matrix
        if k == n:
            return matrix.astype(np.float32) if m * n >= brief else matrix
        if not len(self._memory):
            self._memory = np.empty(m * n)  # memory that is never written costs nothing
        memory = self._memory.view(np.float32) if m * k >= brief else self._memory
        across = matrix.flags.c_contiguous
        part = memory[: m * k].reshape((m, k) if across else (k, m))
        for i in range(0, len(part), COPIED_ROWS):  # each block is cast while it is in the cache
            rows = slice(i, i + COPIED_ROWS)
            part[rows] = matrix[rows].take(chosen, axis=1) if across else matrix.T[chosen[rows]]
        return part if across else part.T
