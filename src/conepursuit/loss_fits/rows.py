"""The problem of `nnfit` for a matrix that lies in blocks of rows: each product is a pass over it.

Vectors with an entry for each row are in memory, the blocks are where they are read. A pass costs
more than what is computed in it, so that it brings several answers at once.
"""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import Any, cast

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.atoms.base import Atoms
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.linear import gram, is_sparse, matvec, rmatvec
from conepursuit.linear.blocks import BlockMatrix
from conepursuit.linear.rows import stacked, summed
from conepursuit.loss_fits.columns import Point, Problem
from conepursuit.objectives.base import Objective
from conepursuit.pursuit.starts import ray_minimum
from conepursuit.rounding import resolution

ALL = 512
"""With up to this many columns, the pass that brings scores brings the Hessian of all of them.

With more it brings that of the columns which were chosen for the last step, to which at most this
many come at once: the Hessian of a step must fit into the memory of a worker.
"""

TOGETHER = 64
"""How many atoms a start takes in at once, where f is infinite at the origin."""


class RowProblem(Problem):
    """Minimise f(A w) + penalty * sum(w) over w >= 0, where A is a `BlockMatrix`.

    No columns are copied. The Hessian at a point comes with the scores there, in one pass.
    """

    newton_only, trials, most_room = True, 2, ALL

    def __init__(self, objective: Objective, atoms: Dictionary, penalty: float) -> None:
        super().__init__(objective, atoms, penalty)
        # Steps that gain digits beyond those of a proof are cheap in memory, and passes here.
        self.little = max(self.little, resolution(atoms.shape[0]))
        self._sizes: tuple[Any, Array] = None, np.empty(0)  # weights w, and |A| w
        none = np.empty(0, dtype=np.intp)
        self._model: tuple[Any, Array, Array] = None, none, np.empty((0, 0))

    def start(self) -> Point:
        """Return the origin or, where f is infinite there, the best multiple of a sum of atoms.

        Notes
        -----
        It is found as `best_multiple` finds one, with many atoms at a time: those that descend most
        from a small multiple of the array of ones, on the entries that no atom reaches yet. They
        have length one.
        """
        weights, x = np.zeros(len(self.norms)), np.zeros(self.matrix.shape[0])
        origin = self.at(weights)
        if isfinite(origin.value):
            return origin
        inside = np.ones_like(x)
        level = ray_minimum(self.objective, inside, 0.0)
        while level is not None:
            margin = level * (1e-6 if weights.any() else 0.9)
            wanted = self.objective.value_and_gradient(x + margin * inside)[1] * (x <= 0)
            slopes = np.where(weights > 0, 0.0, self._slopes(wanted) * self.scale)
            best = np.argsort(slopes, kind="stable")[:TOGETHER]
            best = best[slopes[best] < 0]
            if not len(best):
                break
            weights[best] = self.scale[best]
            x = self.product(weights)
            multiple = ray_minimum(self.objective, x, self.penalty * float(weights.sum()))
            if multiple is not None:
                return self.at(multiple * weights)
        raise ValueError(
            f"{self.objective!r} is infinite for every combination of the columns of A, as far as "
            "can be seen: some entry of the data is positive where all of them are zero. Mask such "
            "entries, or add a column that reaches them."
        )

    def product(self, weights: Vector) -> Array:
        if not weights.any():
            return np.zeros(self.matrix.shape[0])
        both = stacked(self.matrix, partial(_product_and_size, weights))
        self._sizes = weights, both[:, 1]
        return np.ascontiguousarray(both[:, 0])

    def scores(self, gradient: Array, x: Array | None = None) -> Vector:
        n, known = len(self.norms), self._model[0] is not None and self.objective.quadratic
        columns = np.arange(n) if n <= ALL else self.chosen
        if x is None or known or not len(columns):
            return self._slopes(gradient) + self.penalty
        batch = _Columns(self.matrix, columns, gradient)
        self._model = x, columns, self._made(x, batch)
        assert batch.scores is not None
        return batch.scores + self.penalty

    def _made(self, x: Array, batch: _Columns) -> Array:
        """Return the Hessian at x of a batch of columns."""
        hessian = self.objective.model(x, cast(Atoms, batch), cast(Atoms, batch))
        assert hessian is not None
        return hessian

    def hessian(self, x: Array) -> Array:
        at, columns, hessian = self._model
        there = at is x or (at is not None and self.objective.quadratic)
        if not (there and np.isin(self.chosen, columns).all()):
            columns, hessian = self.chosen, self._made(x, _Columns(self.matrix, self.chosen))
            self._model = x, columns, hessian
        places = np.searchsorted(columns, self.chosen)
        part: Array = hessian[np.ix_(places, places)]
        return part

    def choose(self, wanted: Array) -> None:
        self.chosen = np.flatnonzero(wanted)

    def combine(self, change: Vector) -> Array:
        full = np.zeros(len(self.norms))
        full[self.chosen] = change
        return stacked(self.matrix, partial(_product, full))

    def slopes(self, gradient: Array) -> Vector:
        return self._slopes(gradient)[self.chosen]

    def _slopes(self, vector: Array) -> Array:
        """Return the inner products of all columns with a vector."""
        (products,) = summed(self.matrix, _slopes, vector)
        return cast(Array, products)

    def absolute(self, weights: Vector) -> Array:
        if self._sizes[0] is not weights:
            self.product(weights)
        return self._sizes[1] if weights.any() else np.zeros(self.matrix.shape[0])

    def absolute_slopes(self, columns: Array, entries: Array) -> Vector:
        (sums,) = summed(self.matrix, partial(_absolute_slopes, columns), entries)
        return cast(Vector, sums)


class _Columns:
    """Columns of a `BlockMatrix` as the atoms of which an objective makes its Hessian.

    One pass brings the Gram matrix, the products with the weights in it and, if a gradient is
    given, the scores of all columns of the matrix.

    Attributes
    ----------
    scores : array or None
        The inner products of all columns of the matrix with the gradient, after the pass.
    """

    def __init__(self, matrix: BlockMatrix, columns: Array, gradient: Array | None = None) -> None:
        self.matrix, self.columns, self.gradient = matrix, columns, gradient
        self.scores: Vector | None = None
        self._weights: Array | None = None
        self._products: Vector | None = None

    def gram(self, other: Any) -> Array:
        return self.weighted_gram(None, other)

    def weighted_gram(self, weights: Array | None, other: Any) -> Array:
        assert other is self
        work = partial(_moments, self.columns)
        found, products, self.scores = summed(self.matrix, work, weights, self.gradient)
        self._weights, self._products = weights, products
        return cast(Array, found)

    def inner(self, vector: Array) -> Vector:
        """Return the inner products of the columns with the weights of `weighted_gram`."""
        assert vector is self._weights
        assert self._products is not None
        return self._products


def _product_and_size(weights: Vector, block: Any) -> Array:
    """Return A w and |A| w for a block A of rows, as the columns of an array."""
    return np.stack([matvec(block, weights), matvec(abs(block), weights)], axis=1)


def _product(weights: Vector, block: Any) -> Array:
    return matvec(block, weights)


def _slopes(block: Any, vector: Array) -> tuple[Array]:
    return (rmatvec(block, vector),)


def _absolute_slopes(columns: Array, block: Any, entries: Array) -> tuple[Array]:
    """Return |A|' v for some columns of a block A of rows."""
    return (rmatvec(abs(block[:, columns]), entries),)


def _moments(
    columns: Array, block: Any, weights: Array | None, gradient: Array | None
) -> tuple[Array, Array | float, Array | float]:
    """Return C' diag(w) C and C' w for columns C of a block A of rows, and A' g."""
    scores = 0.0 if gradient is None else rmatvec(block, gradient)
    chosen = block if len(columns) == block.shape[1] else block[:, columns]
    if weights is None:
        return gram(chosen), 0.0, scores
    roots = np.sqrt(weights)[:, None]
    scaled = chosen.multiply(roots).tocsr() if is_sparse(chosen) else roots * chosen
    return gram(scaled), rmatvec(chosen, weights), scores
