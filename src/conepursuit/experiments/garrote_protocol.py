"""The protocol of the garrote experiment: splits, a ridge, the garrote by every method.

A ridge fit beta is shrunk by factors c >= 0 that minimise, with Z = X diag(beta),

    f(c) = sum_i log(1 + exp(-y_i (b + <z_i, c>))) + lambda * sum_j c_j.

The published protocol is that of errata D3: 207 samples, 100 iterations and L = 1000. It stops far
from the minimum, so converged answers stand beside it. The greedy methods keep the intercept b of
the ridge; coordinate descent, as in Makalic and Schmidt (2011), fits it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from conepursuit.arrays import Array, Vector, norm
from conepursuit.atoms import NonnegativeSphere, UnitVectors
from conepursuit.kernels import factorization as kernels
from conepursuit.objectives import Logistic, Objective
from conepursuit.pursuit.algorithms import AMP, FCMP, NNMP, PWMP, Algorithm
from conepursuit.pursuit.domains import Cone
from conepursuit.pursuit.results import Result
from conepursuit.pursuit.solve import minimize
from conepursuit.pursuit.steps import ExactStep, Stepper

N_SPLITS, TRAIN_SHARE, SEED = 100, 0.7, 5489
RIDGE, GARROTE, SMOOTHNESS, N_ITER = 1e-2, 1.0, 1000.0, 100


def splits(n: int, n_splits: int = N_SPLITS) -> Iterator[tuple[Array, Array]]:
    """Yield the indices of training and test samples, as MATLAB's ``randperm`` does when started.

    Its default stream is the Mersenne Twister with seed 5489, and a permutation is the order of n
    uniform numbers.
    """
    stream = np.random.RandomState(SEED)
    n_train = round(TRAIN_SHARE * n)
    for _ in range(n_splits):
        order = stream.random_sample(n).argsort(kind="stable")
        yield order[:n_train], order[n_train:]


def ridge(X: Array, y: Vector, penalty: float = RIDGE) -> tuple[float, Vector]:
    """Minimise sum_i log(1 + exp(-y_i (b + <x_i, beta>))) + penalty/2 * (b^2 + ||beta||^2).

    Returns
    -------
    float, array of shape (d,)
        b and beta. The intercept is penalised too, as in the published protocol.
    """
    model = LogisticRegression(
        C=1.0 / penalty, fit_intercept=False, solver="newton-cholesky", tol=1e-10
    )
    coefficients = model.fit(np.column_stack([np.ones(len(X)), X]), y).coef_[0]
    return float(coefficients[0]), coefficients[1:]


class GarroteLoss(Objective):
    """f(c) = sum_i log(1 + exp(-y_i (offset + <z_i, c>))) + penalty * sum_j c_j.

    The penalty belongs to f: it is no penalty on the weights of atoms, whose sum is another one
    where atoms are not unit vectors of the axes.

    Parameters
    ----------
    Z : array of shape (n, d)
        The samples, times the coefficients of the first fit.
    y : array of shape (n,)
        Labels, 1 or -1.
    offset : float
        The intercept.
    penalty : float
        lambda > 0.
    smoothness : float, optional
        L; ||Z||^2 / 4 by default.
    """

    def __init__(
        self,
        Z: Array,
        y: Vector,
        offset: float,
        penalty: float = GARROTE,
        smoothness: float | None = None,
    ) -> None:
        self.Z, self.loss, self.offset, self.penalty = Z, Logistic(y), offset, penalty
        self.shape = (Z.shape[1],)
        self.smoothness = smoothness or float(np.linalg.norm(Z, 2)) ** 2 / 4

    def linear(self, c: Vector) -> Vector:
        """Return offset + <z_i, c>, whose sign is the predicted label."""
        return self.offset + self.Z @ c

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        value, slopes = self.loss.value_and_gradient(self.linear(x))
        return value + self.penalty * float(x.sum()), self.penalty + self.Z.T @ slopes

    def hessian(self, x: Array) -> Callable[[Array], Array]:
        inside = self.loss.hessian(self.linear(x))
        return lambda d: self.Z.T @ inside(self.Z @ d)

    def accuracy(self, c: Vector) -> float:
        """Return the share of samples that are classified rightly."""
        return float((self.loss.y * self.linear(c) > 0).mean())

    def radius(self) -> float:
        """Return a bound on sum_j c_j, and so on ||c||, at a minimiser: no loss is negative."""
        return self.value(self.origin()) / self.penalty


@dataclass(frozen=True)
class LengthStep:
    """The step <-g, d> / (L ||d||) of the released PWMP, which lacks a factor ||d|| (errata E1)."""

    monotone: ClassVar[bool] = False

    def start(self, objective: Objective) -> Stepper:
        """Return the stepper of one run."""
        L = objective.smoothness
        assert L is not None
        return lambda x, vector, d: -d.slope / (L * norm(vector))


def contestants() -> dict[str, Algorithm]:
    """Return the greedy methods of the table."""
    return {
        "NNMP": NNMP(),
        "PWMP": PWMP(),
        "PWMP (E1)": PWMP(LengthStep()),
        "FCMP": FCMP(variant=0),
    }


@dataclass(frozen=True)
class Split:
    """One split, with its ridge fit.

    Attributes
    ----------
    Z : array of shape (n, d)
        All samples, times the coefficients of the ridge.
    y : array of shape (n,)
        Their labels.
    train, test : array of int
        Which are for training and which for the test.
    offset : float
        The intercept of the ridge.
    """

    Z: Array
    y: Vector
    train: Array
    test: Array
    offset: float

    @classmethod
    def fitted(cls, X: Array, y: Vector, train: Array, test: Array) -> Split:
        """Return the split of these samples, with a ridge fitted to those for training."""
        offset, beta = ridge(X[train], y[train])
        return cls(X * beta, y, train, test, offset)

    def loss(
        self, samples: Array, offset: float | None = None, smoothness: float | None = None
    ) -> GarroteLoss:
        """Return f on some of the samples; the ridge's intercept is the default."""
        b = self.offset if offset is None else offset
        return GarroteLoss(self.Z[samples], self.y[samples], b, smoothness=smoothness)

    def greedy(self, algorithm: Algorithm) -> Vector:
        """Return c after the published number of iterations on the published atoms, with its L."""
        objective = self.loss(self.train, smoothness=SMOOTHNESS)
        cone = Cone(NonnegativeSphere(objective.shape))
        return minimize(objective, cone, algorithm, max_iter=N_ITER, tol=0.0).unless_interrupted().x

    def descended(self, *, intercept: bool) -> tuple[Vector, float, int]:
        """Return c, the intercept and the number of sweeps of cyclic coordinate descent."""
        atoms = np.ascontiguousarray(self.Z[self.train].T)
        c, ones = np.zeros(len(atoms)), np.ones(len(self.train))
        b, sweeps, converged = kernels.logistic_sweeps(
            atoms, self.y[self.train], ones, GARROTE, intercept, c, self.offset, 1e-8, 100_000
        )
        assert converged
        return c, b, sweeps

    def scored(self, c: Vector, offset: float | None = None) -> tuple[float, float, float]:
        """Return the accuracy in training and in test, and f in training."""
        train, test = self.loss(self.train, offset), self.loss(self.test, offset)
        return train.accuracy(c), test.accuracy(c), train.value(c)


@dataclass(frozen=True)
class Outcome:
    """What one method did over all splits.

    Attributes
    ----------
    train, test : array of shape (n_splits,)
        Share of samples that are classified rightly.
    value : array of shape (n_splits,)
        f in training, with the method's own intercept.
    """

    train: Vector
    test: Vector
    value: Vector


def published_protocol(X: Array, y: Vector, n_splits: int = N_SPLITS) -> dict[str, Outcome]:
    """Run all methods on the same splits.

    "ridge" is c = 1, "converged" the minimiser with the ridge's intercept and "NNG" that with its
    own; "PWMP (E1)" makes the steps of the released code.
    """
    with single_threaded():
        runs = [_scores(Split.fitted(X, y, *parts)) for parts in splits(len(y), n_splits)]
    return {name: Outcome(*np.array([run[name] for run in runs]).T) for name in runs[0]}


def single_threaded() -> Any:
    """Keep BLAS to one thread: on matrices this small, several get in each other's way."""
    return threadpool_limits(limits=1, user_api="blas")


def _scores(split: Split) -> dict[str, tuple[float, float, float]]:
    """Return what `Split.scored` says of every method."""
    scores = {"ridge": split.scored(np.ones(split.Z.shape[1]))}
    for name, algorithm in contestants().items():
        scores[name] = split.scored(split.greedy(algorithm))
    scores["converged"] = split.scored(certified_minimum(split.loss(split.train)).x)
    c, b, _ = split.descended(intercept=True)
    scores["NNG"] = split.scored(c, b)
    return scores


@dataclass(frozen=True)
class Converged:
    """How close a method came to the minimum of f, with the intercept of the ridge.

    Attributes
    ----------
    value : array of shape (n_splits,)
        f in training.
    excess : array of shape (n_splits,)
        f / f* - 1 by the certified optimum.
    n_iter : array of shape (n_splits,)
        Iterations, or sweeps.
    """

    value: Vector
    excess: Vector
    n_iter: Array


def converged(X: Array, y: Vector, n_splits: int = 10) -> dict[str, Converged]:
    """Minimise f by every method, on the axes where the atoms of the paper would be slow.

    The sphere has an atom for every gradient, and a line step adds one each time. NNMP converges
    sublinearly, and is stopped after 2000 iterations.
    """
    with single_threaded():
        runs = [_distances(Split.fitted(X, y, *parts)) for parts in splits(len(y), n_splits)]
    return {name: Converged(*np.array([run[name] for run in runs]).T) for name in runs[0]}


def _distances(split: Split) -> dict[str, tuple[float, float, int]]:
    """Return value, excess and number of iterations of every method."""
    objective = split.loss(split.train)
    optimum, radius = certified_minimum(objective).value, objective.radius()
    axes = Cone(UnitVectors(objective.shape), radius=radius)
    sphere = Cone(NonnegativeSphere(objective.shape), radius=radius)
    methods: dict[str, tuple[Cone, Algorithm, int]] = {
        "FCMP variant 1": (axes, FCMP(variant=1), 1000),
        "FCMP variant 1, sphere": (sphere, FCMP(variant=1), 1000),
        "PWMP": (axes, PWMP(ExactStep()), 50_000),
        "AMP": (axes, AMP(ExactStep()), 50_000),
        "NNMP": (axes, NNMP(ExactStep()), 2_000),
    }
    distances = {}
    for name, (cone, algorithm, max_iter) in methods.items():
        result = minimize(
            objective, cone, algorithm, max_iter=max_iter, tol=1e-4
        ).unless_interrupted()
        distances[name] = (result.value, result.value / optimum - 1, result.n_iter)
    c, _, sweeps = split.descended(intercept=False)
    value = objective.value(c)
    return {**distances, "NNG": (value, value / optimum - 1, sweeps)}


def certified_minimum(objective: GarroteLoss) -> Result:
    """Minimise f over c >= 0, to a proven gap of 1e-7 of its decrease."""
    cone = Cone(UnitVectors(objective.shape), radius=objective.radius())
    result = minimize(objective, cone, FCMP(variant=1), tol=1e-7).unless_interrupted()
    assert result.status.success
    assert result.certificate.proven
    return result
