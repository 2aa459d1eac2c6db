"""Atoms that are outer products, and the sets of them whose cones are those of factorisations."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh

from conepursuit.arrays import Array, Vector, is_integer
from conepursuit.atoms.base import Atoms, AtomSet
from conepursuit.atoms.power import Bounds, nonnegative_pairs, symmetric_pair
from conepursuit.atoms.table import Table
from conepursuit.atoms.vectors import Vectors, as_shape, checked_fingerprint, fingerprint
from conepursuit.linear import DENSE_SIZE
from conepursuit.low_rank import kept_as_factors
from conepursuit.tensors import component_grams, component_products, outer_sum


class RankOnes(Vectors):
    """A batch of outer products of unit vectors, each one row [u, v, ...] of a shared table.

    Attributes
    ----------
    bounds : Bounds or None
        For the answer of an oracle: upper bounds on -<g, a> over all atoms a.
    """

    __slots__ = ("bounds",)
    bounds: Bounds | None

    @classmethod
    def one(cls, vectors: Sequence[Array], bounds: Bounds | None = None) -> RankOnes:
        """Return the batch of one atom, with the bounds that its oracle knows."""
        row = np.concatenate(vectors).astype(np.float64)
        shape = tuple(len(vector) for vector in vectors)
        answer = cls(shape, (fingerprint(row),), Table.single(row), np.zeros(1, dtype=np.intp))
        answer.bounds = bounds
        return answer

    @classmethod
    def of(cls, *factors: Array) -> RankOnes:
        """Return the atoms of the rows of the factors, one for each axis, all of norm 1."""
        rows = np.concatenate(factors, axis=1)
        keys = tuple(fingerprint(row) for row in rows)
        table = Table(rows.shape[1])
        slots = [table.add(key, row) for key, row in zip(keys, rows, strict=True)]
        shape = tuple(factor.shape[1] for factor in factors)
        return cls(shape, keys, table, np.array(slots, dtype=np.intp))

    @staticmethod
    def row_size(shape: tuple[int, ...]) -> int:
        return sum(shape)

    @property
    def factors(self) -> list[Array]:
        """The vectors of each axis, one per row."""
        rows = self.table.rows[self.slots]
        return np.split(rows, np.cumsum(self.shape)[:-1], axis=1)

    @property
    def left(self) -> Array:
        """The vectors of the first axis, one per row."""
        rows: Array = self.table.rows[self.slots, : self.shape[0]]
        return rows

    @property
    def right(self) -> Array:
        """The vectors of the second axis of matrices, one per row."""
        rows: Array = self.table.rows[self.slots, self.shape[0] :]
        return rows

    def inner(self, gradient: Any) -> Vector:
        return component_products(gradient, self.factors)

    def combine(self, weights: Vector) -> Array:
        first, *others = self.factors
        return outer_sum([weights[:, None] * first, *others])

    def gram(self, other: Atoms | None = None) -> Array:
        other = self if other is None else other
        assert isinstance(other, RankOnes)
        return component_grams(self.factors, other.factors)

    def weighted_gram(self, weights: Array, other: Atoms) -> Array:
        return Atoms.weighted_gram(self, weights, other)

    def drift(self, weights: Vector) -> Array | float:
        return Atoms.drift(self, weights)

    def norms(self) -> Vector:
        return np.ones(len(self))


class FactoredRankOnes(RankOnes):
    """A batch of `RankOnes` whose combinations are kept as factors and never formed."""

    __slots__ = ()
    factored = True

    def combine(self, weights: Vector) -> Any:
        first, *others = self.factors
        return kept_as_factors([weights[:, None] * first, *others])


class _RankOneSet(AtomSet):
    """What sets of rank-one atoms have in common."""

    accuracy: float | None = None  # none is promised, but each answer comes with a bound

    def __init__(self, shape: tuple[int, ...], factored: bool) -> None:
        self.shape = as_shape(shape)
        self.batch = FactoredRankOnes if factored else RankOnes
        self._check_order()

    def _check_order(self) -> None:
        """Raise ValueError if atoms of this shape are not of this set."""
        if len(self.shape) != 2:
            raise ValueError(
                f"{type(self).__name__} holds matrices; got the shape {self.shape!r}. For three "
                "axes and more use NonnegativeRankOneTensor(shape)."
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape})"

    @property
    def factored(self) -> bool:
        """Whether combinations are kept as factors."""
        return self.batch.factored

    def empty(self) -> RankOnes:
        return self.batch.empty(self.shape)

    def atom(self, key: Any) -> None:
        checked_fingerprint(key, self)

    def floor(self, gradient: Array, answer: Atoms) -> float | None:
        bounds = getattr(answer, "bounds", None)
        return -bounds.proved if bounds is not None and bounds.proved < inf else None

    def measured(self, gradient: Array, answer: Atoms) -> float | None:
        bounds = getattr(answer, "bounds", None)
        return None if bounds is None else -bounds.measured

    @property
    def radius(self) -> float:
        return 1.0


class NonnegativeRankOne(_RankOneSet):
    """The matrices u v' with unit vectors u, v >= 0; their cone is that of non-negative matrices.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    n_nonzero : int or tuple of int, optional
        The most non-zero entries of u and of v: the truncated power method [1]. The bound is
        that of the larger set without truncation.
    rounds : int
        How much work goes into the bound. 0: two short Lanczos runs, ``min(sigma_1(g),
        sigma_1([-g]_+))``; the second is proved, by a positive vector. Otherwise so many
        projections look for a Y >= -g of smaller sigma_1(Y), which is proved where the smaller
        side has at most 800 entries; for arrays only.
    factored : bool
        Whether combinations are kept as factors, for `FactoredLeastSquares`.
    random_state : int, optional
        Seed of one random start more. All others are deterministic.

    Notes
    -----
    The oracle is the alternating power method ``u = [-g v]_+ / ||.||, v = [-g'u]_+ / ||.||`` from
    the leading singular vectors of [-g]_+, from both signs of those of g, and from the row of
    [-g]_+ of largest sum. To maximise over all pairs is hard in general; the bound says how
    far an answer is from the best one at most, as ``accuracy`` in the trace.

    References
    ----------
    [1] X.-T. Yuan, T. Zhang. Truncated power method for sparse eigenvalue problems. JMLR 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import FCMP, Cone, LeastSquares, NonnegativeRankOne, minimize
    >>> X = np.outer([1.0, 2.0], [1.0, 0.0, 3.0]) + np.outer([1.0, 0.0], [0.0, 5.0, 0.0])
    >>> minimize(LeastSquares(X), Cone(NonnegativeRankOne(X.shape)), FCMP()).status.name
    'CONVERGED'
    """

    gain = 1e-6
    """The relative gain of a round of the power method that ends it."""

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        n_nonzero: int | tuple[int, int] | None = None,
        rounds: int = 0,
        factored: bool = False,
        random_state: int | None = None,
    ) -> None:
        super().__init__(shape, factored)
        given: Any = (n_nonzero, n_nonzero)
        if isinstance(n_nonzero, (tuple, list)):
            given = tuple(n_nonzero)
        if any(n is not None and not (is_integer(n) and n >= 1) for n in given) or len(given) != 2:
            raise ValueError(
                f"n_nonzero is a positive integer, or one for u and one for v; got {n_nonzero!r}."
            )
        if not (is_integer(rounds) and rounds >= 0):
            raise ValueError(f"rounds must be an integer, not negative; got {rounds!r}.")
        self.n_nonzero, self.rounds = given, int(rounds)
        self.extra = None
        if random_state is not None:
            self.extra = np.random.default_rng(random_state).random(self.shape[1])

    def lmo(self, gradient: Any) -> RankOnes:
        (found,), bounds = nonnegative_pairs(
            -gradient,
            n_nonzero=self.n_nonzero,
            rounds=self.rounds,
            extra=self.extra,
            gain=self.gain,
        )
        return self.batch.one((found.left, found.right), bounds)

    def positive_functional(self) -> Any:
        # the sum of u v' is sum(u) sum(v), each at least the norm
        if self.factored:
            return kept_as_factors([np.ones((1, n)) for n in self.shape])
        return np.ones(self.shape)


class _SymmetricSet(_RankOneSet):
    """Symmetric rank-one atoms u u'."""

    def __init__(self, n: int) -> None:
        if not (is_integer(n) and n >= 1):
            raise ValueError(
                f"{type(self).__name__} needs the number of rows, a positive integer; got {n!r}."
            )
        super().__init__((n, n), factored=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]})"

    def positive_functional(self) -> Array:
        return np.eye(self.shape[0])  # the trace of u u' is 1


class PositiveSemidefinite(_SymmetricSet):
    """The matrices u u' with a unit vector u; their cone is that of semidefinite matrices.

    Parameters
    ----------
    n : int
        Rows and columns.

    Notes
    -----
    The oracle is exact: the eigenvector of the least eigenvalue of (g + g') / 2.
    """

    accuracy = 1.0

    def lmo(self, gradient: Array) -> RankOnes:
        n, symmetric = self.shape[0], 0.5 * (gradient + gradient.T)
        if n <= DENSE_SIZE:
            values, vectors = np.linalg.eigh(symmetric)
        else:
            start = np.random.default_rng(0).standard_normal(n)
            values, vectors = eigsh(symmetric, 1, which="SA", v0=start)
        u, value = vectors[:, 0], max(-float(values[0]), 0.0)
        u = u if u[np.abs(u).argmax()] > 0 else -u
        return self.batch.one((u, u), Bounds(value, value))


class NonnegativeSymmetric(_SymmetricSet):
    """The matrices u u' with a unit vector u >= 0; their cone is that of completely positive ones.

    Parameters
    ----------
    n : int
        Rows and columns.

    Notes
    -----
    The oracle is the power method on -g, shifted so that it never descends, from the positive
    parts of many eigenvectors, from rows of [-g]_+ and from unit vectors. The bound is that of
    `NonnegativeRankOne`.
    """

    def lmo(self, gradient: Array) -> RankOnes:
        found, bounds = symmetric_pair(-0.5 * (gradient + gradient.T))
        return self.batch.one((found.left, found.right), bounds)
