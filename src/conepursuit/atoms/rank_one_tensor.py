"""Rank-one tensors of any order, with an oracle whose accuracy is proved at every call."""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, is_integer
from conepursuit.atoms.power import (
    PATIENT,
    Bounds,
    leading_pair,
    nonnegative_pairs,
    nonnegative_units,
    perron_bound,
    unit,
)
from conepursuit.atoms.rank_one import RankOnes, _RankOneSet
from conepursuit.low_rank import kept_as_factors

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
    factored : bool
        Whether combinations are kept as factors, for `FactoredLeastSquares` and
        `FactoredKullbackLeibler` of sparse tensors.
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

    axes: int | None = None
    """By how many axes to unfold for starts and bounds; None is all."""

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        rounds: int = 0,
        n_random: int = 2,
        factored: bool = False,
        random_state: int = 0,
    ) -> None:
        super().__init__(shape, factored)
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

    def lmo(self, gradient: Any) -> RankOnes:
        _, found, bounds = nonnegative_vectors(
            -gradient, rounds=self.rounds, extra=self.extra, gain=self.gain, axes=self.axes
        )
        return self.batch.one(found, bounds)

    def positive_functional(self) -> Any:
        # the sum of an atom is the product of the sums of its vectors, each at least the norm
        if self.factored:
            return kept_as_factors([np.ones((1, n)) for n in self.shape])
        return np.ones(self.shape)


def nonnegative_vectors(
    T: Any,
    *,
    rounds: int = 0,
    extra: list[list[Vector]] | None = None,
    gain: float = 1e-6,
    axes: int | None = None,
) -> tuple[float, list[Vector], Bounds]:
    """Return unit vectors u, v, ... >= 0 of large <T, u v ...>, its value, and bounds on it.

    Parameters
    ----------
    T : array or FactoredTensor
        The tensor.
    rounds : int
        Projections for the bound of each unfolding, for arrays; see `nonnegative_pairs`.
    extra : list of lists of vectors, optional
        More starts.
    gain : float
        The relative gain of a round of the power method that ends it.
    axes : int, optional
        By how many axes to unfold, the longest first. One gives a start and a bound; each one more
        costs as much. The default is all.
    """
    if not isinstance(T, np.ndarray) and isinstance(T.base, np.ndarray):
        T = T.toarray()  # no larger than the data
    order = np.argsort(T.shape, kind="stable")[::-1][:axes]
    look = _of_unfolding if isinstance(T, np.ndarray) else _of_sparse_unfolding
    looks = [look(T, int(axis), rounds) for axis in order]
    value, found = best_of(T, [*(extra or []), *(start for start, _ in looks)], gain)
    least = max(value, 0.0)
    proved, measured = (min(each) for each in zip(*(bounds for _, bounds in looks), strict=True))
    return value, found, Bounds(max(proved, least), max(measured, least))


def _of_unfolding(T: Array, axis: int, rounds: int) -> tuple[list[Vector], Bounds]:
    """Return a start from the unfolding by an axis, and bounds."""
    unfolding = np.moveaxis(T, axis, 0).reshape(T.shape[axis], -1)
    (pair,), bounds = nonnegative_pairs(unfolding, rounds=rounds)
    others = [n for other, n in enumerate(T.shape) if other != axis]
    vectors = taken_apart(pair.right.reshape(others))
    return [*vectors[:axis], pair.left, *vectors[axis:]], bounds


def _of_sparse_unfolding(T: Any, axis: int, rounds: int) -> tuple[list[Vector], Bounds]:
    """Return a start from the unfolding of the positive part by an axis, and bounds.

    Without a sparse positive part there is a start only, from T itself.
    """
    P = T.positive_part()
    if P is None:
        ones = [np.ones((1, n)) for n in T.shape]
        return [T.contracted(ones, b)[0] for b in range(len(T.shape))], Bounds(np.inf, np.inf)
    unfolding = P.unfolded(axis)
    pair = leading_pair(unfolding, np.ones(unfolding.shape[1]))
    vectors = [np.ones((1, n)) for n in T.shape]
    vectors[axis] = np.abs(pair.left)[None]
    start = [P.contracted(vectors, b)[0] for b in range(len(vectors))]
    start[axis] = vectors[axis][0]
    return start, Bounds(perron_bound(unfolding, pair), pair.value + pair.residual)


def taken_apart(T: Array) -> list[Vector]:
    """Return non-negative vectors, one for each axis, whose outer product is like T >= 0.

    The leading pair of the first unfolding gives the first vector and a smaller tensor.
    """
    if T.ndim == 1:
        return [T]
    (pair,), _ = nonnegative_pairs(T.reshape(len(T), -1))
    return [pair.left, *taken_apart(pair.right.reshape(T.shape[1:]))]


def best_of(T: Any, starts: list[list[Vector]], gain: float) -> tuple[float, list[Vector]]:
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


def improve(T: Any, vectors: list[Vector]) -> float:
    """Replace each vector in turn by the best one for the others; return the value at the end."""
    if isinstance(T, np.ndarray):
        return _improve_array(T, vectors)
    for axis in range(len(vectors)):
        slopes = T.contracted([vector[None] for vector in vectors], axis)
        (vectors[axis],), (value,) = nonnegative_units(slopes, None)
    return float(value)


def _improve_array(T: Array, vectors: list[Vector]) -> float:
    """Do what `improve` does for an array.

    T is multiplied with the vectors of the axes behind the current one once for all: these products
    are kept, and those of the axes before it are made on the way.
    """
    behind: list[Any] = [T]  # T times the last vectors: the first axes are left
    for vector in reversed(vectors[1:]):
        behind.append(behind[-1] @ vector)
    before: Array = np.ones(1, dtype=T.dtype)
    for axis, (left, vector) in enumerate(zip(reversed(behind), vectors, strict=True)):
        slopes = before @ left.reshape(len(before), len(vector))
        (vectors[axis],), (value,) = nonnegative_units(slopes[None], None)
        before = np.outer(before, vectors[axis]).ravel()
    return float(value)
