"""Rank-one tensors of any order, with an oracle whose accuracy is proved at every call."""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, is_integer
from conepursuit.atoms.power import PATIENT, Bounds, nonnegative_pairs, nonnegative_units, unit
from conepursuit.atoms.rank_one import RankOnes, _RankOneSet

TRIED = 2
"""Rounds of the power method that all starts get before the best one goes on alone."""


class NonnegativeRankOneTensor(_RankOneSet):
    """The tensors u v' w' ... with unit vectors u, v, w, ... >= 0, for three axes and more.

    Their cone is that of non-negative tensors. The best combination of few atoms is a non-negative
    CP decomposition.

    Parameters
    ----------
    shape : tuple of int
        The lengths of the axes.
    rounds : int
        How much work goes into the bound of each unfolding; as in `NonnegativeRankOne`.
    n_random : int
        Random starts of the power method, besides those from the unfoldings.
    random_state : int, optional
        Seed of the random starts, the same at every call.

    Notes
    -----
    The oracle is the alternating power method: with T = -g, each vector in turn is
    ``u_i = [T x_1 u_1 ... x_d u_d]_+ / ||.||``, where T is multiplied with all others; this is the
    exact maximiser for the others, so that <T, u_1 ... u_d> never falls. It starts from the
    leading non-negative pair of each unfolding, whose second vector is taken apart in the same way
    along the axes that are left, and from random vectors.

    The best value is hard to find. But an outer product of unit vectors is a pair of unit vectors
    in every unfolding, so that the bound on all non-negative pairs of an unfolding is one on all
    atoms. The least over the axes is returned, and is the ``accuracy`` in the trace.

    References
    ----------
    [1] A. Anandkumar, R. Ge, D. Hsu, S. M. Kakade, M. Telgarsky. Tensor decompositions for learning
    latent variable models. JMLR 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import FCMP, Cone, LeastSquares, NonnegativeRankOneTensor, minimize
    >>> u, v, w = np.array([1.0, 2.0]), np.array([1.0, 0.0, 3.0]), np.array([2.0, 1.0])
    >>> X = np.einsum("i,j,k->ijk", u, v, w)
    >>> minimize(LeastSquares(X), Cone(NonnegativeRankOneTensor(X.shape)), FCMP()).status.name
    'CONVERGED'
    """

    gain = 1e-6
    """The relative gain of a round of the power method that ends it."""

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        rounds: int = 0,
        n_random: int = 2,
        random_state: int = 0,
    ) -> None:
        super().__init__(shape, factored=False)
        for name, value in (("rounds", rounds), ("n_random", n_random)):
            if not (is_integer(value) and value >= 0):
                raise ValueError(f"{name} must be an integer, not negative; got {value!r}.")
        self.rounds = int(rounds)
        rng = np.random.default_rng(random_state)
        self.extra = [[rng.random(n) for n in self.shape] for _ in range(n_random)]

    def _check_order(self) -> None:
        if len(self.shape) < 3:
            raise ValueError(
                f"rank-one tensors have three axes or more; got the shape {self.shape!r}. For a "
                "matrix use NonnegativeRankOne(shape)."
            )

    def lmo(self, gradient: Array) -> RankOnes:
        T = -np.asarray(gradient)
        proved = measured = np.inf
        starts = list(self.extra)
        for axis in range(T.ndim):
            unfolding = np.moveaxis(T, axis, 0).reshape(T.shape[axis], -1)
            (pair,), bounds = nonnegative_pairs(unfolding, rounds=self.rounds)
            proved, measured = min(proved, bounds.proved), min(measured, bounds.measured)
            others = [n for other, n in enumerate(T.shape) if other != axis]
            vectors = taken_apart(pair.right.reshape(others))
            starts.append([*vectors[:axis], pair.left, *vectors[axis:]])
        value, found = best_of(T, starts, self.gain)
        value = max(value, 0.0)
        return self.batch.one(found, Bounds(max(proved, value), max(measured, value)))

    def positive_functional(self) -> Array:
        return np.ones(self.shape)  # the sum of an atom is the product of the sums of its vectors


def taken_apart(T: Array) -> list[Vector]:
    """Return non-negative vectors, one for each axis, whose outer product is like T >= 0.

    The leading pair of the first unfolding gives the first vector and a smaller tensor.
    """
    if T.ndim == 1:
        return [T]
    (pair,), _ = nonnegative_pairs(T.reshape(len(T), -1))
    return [pair.left, *taken_apart(pair.right.reshape(T.shape[1:]))]


def best_of(T: Array, starts: list[list[Vector]], gain: float) -> tuple[float, list[Vector]]:
    """Return the best value and vectors that the power method finds from several starts."""
    tried = []
    for start in starts:
        vectors, value = [unit(np.maximum(vector, 0.0)) for vector in start], 0.0
        for _ in range(TRIED):
            value = improve(T, vectors)
        tried.append((value, vectors))
    value, vectors = max(tried, key=lambda one: one[0])
    for _ in range(PATIENT):
        before, value = value, improve(T, vectors)
        if value - before <= gain * abs(value):
            break
    return value, vectors


def improve(T: Array, vectors: list[Vector]) -> float:
    """Replace each vector in turn by the best one for the others; return the value at the end.

    T is multiplied with the vectors of the axes behind the current one once for all: these products
    are kept, and those of the axes before it are made on the way.
    """
    behind: list[Any] = [T]  # T times the last vectors: the first axes are left
    for vector in reversed(vectors[1:]):
        behind.append(behind[-1] @ vector)
    before: Array = np.ones(1)
    for axis, (left, vector) in enumerate(zip(reversed(behind), vectors, strict=True)):
        slopes = before @ left.reshape(len(before), len(vector))
        (vectors[axis],), (value,) = nonnegative_units(slopes[None], None)
        before = np.outer(before, vectors[axis]).ravel()
    return float(value)
