"""Fits of non-negative linear models, shared by the regressors, the classifiers and the coder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from conepursuit.arrays import EPS, Array, Vector, count, is_number, quiet
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.caller import warn_caller
from conepursuit.estimators.design import centred_blocks, product
from conepursuit.least_squares.api import nnls
from conepursuit.linear import is_dask
from conepursuit.loss_fits.api import nnfit
from conepursuit.loss_fits.path import PathProblem, fit_with_path
from conepursuit.losses import loss_named, named_losses
from conepursuit.matrix_fits.arguments import tolerance
from conepursuit.objectives import (
    EntrywiseLoss,
    FreeIntercept,
    LeastSquares,
    Objective,
)
from conepursuit.pursuit.algorithms import AMP, FCMP, NNMP, PWMP, Algorithm
from conepursuit.pursuit.certify import audited
from conepursuit.pursuit.domains import Cone
from conepursuit.pursuit.results import State
from conepursuit.pursuit.solve import minimize
from conepursuit.pursuit.starts import as_iterate
from conepursuit.pursuit.steps import AdaptiveStep
from conepursuit.status import Status

ALGORITHMS: dict[str, Algorithm] = {
    "fcmp": FCMP(variant=1),
    "pwmp": PWMP(AdaptiveStep()),
    "amp": AMP(AdaptiveStep()),
    "nnmp": NNMP(AdaptiveStep()),
}
"""The algorithm for each value of the parameter `algorithm`."""


@dataclass(frozen=True)
class Settings:
    """The parameters of an estimator that a fit needs, in the units of the mean loss."""

    alpha: float = 0.0
    max_atoms: int | None = None
    algorithm: str = "fcmp"
    fit_intercept: bool = False
    max_iter: int = 1000
    tol: float | None = None
    n_jobs: int | None = None

    @classmethod
    def of(cls, estimator: Any, **changes: Any) -> Settings:
        """Return the settings of an estimator, checked."""
        names = [name for name in cls.__dataclass_fields__ if hasattr(estimator, name)]
        settings = cls(**{name: getattr(estimator, name) for name in names} | changes)
        settings.check()
        return settings

    @property
    def tolerance(self) -> float:
        """The gap asked for: `tol`, by default 1e-12 for FCMP and 1e-6 for other algorithms."""
        if self.tol is not None:
            return self.tol
        return 1e-12 if self.algorithm == "fcmp" else 1e-6

    def check(self) -> None:
        """Raise a ValueError that says which parameter is wrong."""
        if not (is_number(self.alpha) and 0 <= self.alpha < np.inf):
            raise ValueError(f"alpha must be finite and not negative; got {self.alpha!r}.")
        count(self.max_iter, "max_iter")
        if self.tol is not None:
            tolerance(self.tol)
        if self.max_atoms is not None:
            count(self.max_atoms, "max_atoms")
        if not isinstance(self.algorithm, str) or self.algorithm not in ALGORITHMS:
            raise ValueError(
                f"algorithm must be one of {', '.join(map(repr, ALGORITHMS))}; "
                f"got {self.algorithm!r}."
            )


@dataclass(frozen=True, eq=False)
class ConicPath:
    """The fits that a run passed through; the last one is its answer.

    Attributes
    ----------
    coefs : csr_array of shape (n_fits, n_features)
        Their coefficients.
    values : array
        The objective of the estimator, mean loss and penalty.
    gaps : array
        How far each value may be from the least one.
    alphas : array or None
        The penalties of a path over penalties, None for the path of a run.
    """

    coefs: Any
    values: Vector
    gaps: Vector
    alphas: Vector | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_atoms(self) -> Array:
        """How many coefficients are positive."""
        counts: Array = np.diff(self.coefs.indptr)
        return counts

    def __repr__(self) -> str:
        return f"ConicPath({len(self)} fits, {self.n_atoms[0]} to {self.n_atoms[-1]} atoms)"


@dataclass(frozen=True, eq=False)
class LinearFit:
    """What a fit of one target found, in the units of the mean loss."""

    coef: Vector
    intercept: float
    gap: float
    status: Status
    n_iter: int
    path: ConicPath
    proven: bool = True


def loss_of(name: str, y: Array, weights: Array | None, delta: float) -> EntrywiseLoss:
    """Return the loss of a regression by its name in estimators."""
    return loss_named(name, named_losses(labels=False)).of(y, weights=weights, delta=delta)


@quiet
def fit_linear(X: Any, loss: EntrywiseLoss, settings: Settings) -> list[LinearFit]:
    """Minimise ``mean loss(X c + b) + alpha sum(c)`` over c >= 0 and, if asked for, b.

    There is one fit for each column of the data of the loss, or one if they are a vector. The
    fastest way is taken. Least squares of dense data without a penalty go to `nnls`, other fits to
    `nnfit`, both for all targets at once; with a limit on the atoms, the path of `nnfit_path` is
    kept. An algorithm other than FCMP needs the generic loop, and so does the path of a plain
    least-squares fit with a limit. A Dask array goes to `nnfit`.
    """
    greedy = settings.algorithm != "fcmp" or settings.max_atoms is not None
    if greedy and is_dask(X):
        raise ValueError(
            f"an X in a Dask array is fitted by all its columns, with FCMP; got algorithm="
            f"{settings.algorithm!r} and max_atoms={settings.max_atoms!r}. Use alpha= for few "
            "coefficients, or X.compute()."
        )
    plain, many = not settings.alpha and isinstance(X, np.ndarray), len(loss.shape) == 2
    plain = plain and settings.algorithm == "fcmp" and (many or not greedy)
    if isinstance(loss, LeastSquares) and plain:
        return _by_nnls(X, loss, settings)
    if many and (greedy or settings.fit_intercept):
        return [fit_linear(X, loss.column(i), settings)[0] for i in range(loss.shape[1])]
    X, objective, means = prepared(X, loss, settings.fit_intercept)
    total = total_weight(loss)
    if greedy and settings.algorithm == "fcmp" and (settings.alpha or not loss.quadratic):
        fit = _by_selection(X, objective, settings, total)
    elif greedy:
        fit = _by_the_loop(X, objective, settings, loss.weights)
    else:
        found = nnfit(
            objective, X, penalty=settings.alpha * total, tol=settings.tolerance,
            max_iter=settings.max_iter, n_jobs=settings.n_jobs,
        )  # fmt: skip
        value, gap = found.value / total, found.gap / total
        if many:
            return _split(found, value, gap)
        fit = single_fit(found.x, value, gap, found.status, found.n_iter)
        fit = replace(fit, proven=bool(found.proven))
    return [with_intercept(fit, objective, X, means)]


def prepared(X: Any, loss: EntrywiseLoss, fit_intercept: bool) -> tuple[Any, Objective, Vector]:
    """Return the columns of a fit, its objective, and the means subtracted from the columns.

    With an intercept the objective is a `FreeIntercept` and dense columns are centred, unless the
    intercept has a lower bound.
    """
    if not fit_intercept:
        return X, loss, np.zeros(X.shape[1])
    objective = FreeIntercept(loss)
    if objective.floor > -np.inf:  # a bounded intercept cannot make up for the means
        return X, objective, np.zeros(X.shape[1])
    columns, means = centred(X, loss.weights)
    return columns, objective, means


def centred(X: Any, weights: Vector | None) -> tuple[Any, Vector]:
    """Return the columns of a dense X minus their means, and the means.

    An intercept makes up for the means. A column far from zero that is not centred would lose
    digits. One that is constant, up to rounding, becomes zero: it would be another intercept.
    Sparse columns stay as they are, with means of 0.
    """
    if is_dask(X):
        return centred_blocks(X, weights)
    if not isinstance(X, np.ndarray):
        return X, np.zeros(X.shape[1])
    means: Vector = np.average(X, axis=0, weights=weights)
    moved = X - means
    constant = np.abs(moved).max(axis=0) <= 8 * EPS * np.abs(X).max(axis=0)
    moved[:, constant], means[constant] = 0.0, 0.0
    return moved, means


def with_intercept(fit: LinearFit, objective: Objective, X: Any, means: Vector) -> LinearFit:
    """Return a fit to columns from `prepared` with the intercept for the columns of the user."""
    return replace(fit, intercept=intercept_of(fit.coef, objective, X, means))


def intercept_of(coef: Vector, objective: Objective, X: Any, means: Vector) -> float:
    """Return the intercept for the columns of the user, 0 where the objective has none."""
    if not isinstance(objective, FreeIntercept):
        return 0.0
    return objective.intercept(product(X, coef)) - float(means @ coef)


def total_weight(loss: EntrywiseLoss) -> float:
    """Return the sum of the weights of the rows."""
    if loss.weights is None:
        return float(loss.shape[0])
    return float(loss.weights.sum() if loss.weights.ndim == 1 else loss.weights[:, 0].sum())


def single_fit(coef: Vector, value: float, gap: float, status: Status, n_iter: int) -> LinearFit:
    """Return a fit whose path has the answer as its only point."""
    path = ConicPath(sparse.csr_array(coef[None]), np.array([value]), np.array([gap]))
    return LinearFit(coef, 0.0, float(gap), status, int(n_iter), path)


def _split(found: Any, values: Vector, gaps: Vector) -> list[LinearFit]:
    """Return the fits of many targets one by one."""
    columns = zip(found.x.T, values, gaps, found.status, found.n_iter, strict=True)
    fits = [single_fit(*column) for column in columns]
    return [replace(fit, proven=bool(p)) for fit, p in zip(fits, found.proven, strict=True)]


def _by_nnls(X: Array, loss: LeastSquares, settings: Settings) -> list[LinearFit]:
    """Fit by least squares; a free intercept is eliminated by centring."""
    y, total, n = loss.y, total_weight(loss), X.shape[1]
    weights = None if loss.weights is None else loss.weights.reshape(len(y), -1)[:, 0]
    means, level = np.zeros(n), np.zeros(y.shape[1:])
    if settings.fit_intercept:
        X, means = centred(X, weights)
        level = np.average(y, axis=0, weights=weights)
        y = y - level
    found = nnls(
        X, y, weights=weights, max_atoms=settings.max_atoms,
        max_iter=max(settings.max_iter, 10 * n), n_jobs=settings.n_jobs,
    )  # fmt: skip
    value, gap = 0.5 * found.rnorm * found.rnorm / total, found.gap / total
    if y.ndim == 1:
        fit = single_fit(found.x, value, gap, found.status, found.n_iter)
        fits = [replace(fit, proven=bool(found.proven))]
    else:
        fits = _split(found, value, gap)
    levels = np.atleast_1d(level)
    return [
        replace(fit, intercept=float(b - means @ fit.coef))
        for fit, b in zip(fits, levels, strict=True)
    ]


def _by_selection(X: Any, objective: Objective, settings: Settings, total: float) -> LinearFit:
    """Fit with few atoms, and keep the best fit found with each number of them."""
    assert settings.max_atoms is not None
    cone, none = Cone(Dictionary(X), penalty=settings.alpha * total), np.empty(0, dtype=np.intp)
    problem = PathProblem(objective, cone, none, none, settings.tolerance, settings.max_iter)
    found, fits = fit_with_path(problem, None, min(settings.max_atoms, X.shape[1]))
    gap, least = float(found.gap) / total, float(found.value)
    last = (found.support, found.x[found.support], least / total, gap)
    before = [
        (choice.support, choice.weights, choice.value / total, (choice.value - least) / total + gap)
        for _, choice in fits[:-1]
    ]
    path = _path([*before, last], X.shape[1])
    proven = bool(found.proven)
    return LinearFit(found.x, 0.0, gap, found.status, int(found.n_iter), path, proven)


def _by_the_loop(
    X: Any, objective: Objective, settings: Settings, weights: Vector | None
) -> LinearFit:
    """Fit by the generic loop, with every state of the run on the path.

    Without a penalty the columns are brought to one length, so that their units do not decide
    which of them comes first.
    """
    rows = np.ones(X.shape[0]) if weights is None else weights
    total, scale = float(rows.sum()), np.ones(X.shape[1])
    if not settings.alpha:
        norms = _lengths(X, rows, settings.fit_intercept)
        scale = np.divide(1.0, norms, out=scale, where=norms > 0)
    atoms = Dictionary(X * scale if isinstance(X, np.ndarray) else X @ sparse.diags_array(scale))
    visited: list[tuple[Any, Vector, float, float]] = []

    def record(state: State) -> None:
        keys, weights = list(state.iterate.atoms.keys), state.iterate.weights
        gap = state.certificate.gap
        visited.append((keys, weights * scale[keys], state.value / total, gap / total))

    result = minimize(
        objective, Cone(atoms, penalty=settings.alpha * total), ALGORITHMS[settings.algorithm],
        max_iter=settings.max_iter, tol=settings.tolerance, max_atoms=settings.max_atoms,
        callback=record,
    ).unless_interrupted()  # fmt: skip
    keys, gap = list(result.atoms.keys), result.certificate.gap / total
    visited[-1] = keys, result.weights * scale[keys], result.value / total, gap
    path = _path(visited, atoms.n_atoms)
    coef, said = result.coef * scale, result.certificate
    if (scale != 1).any():  # rounding has made other columns of X: the proof is about those
        whole = Cone(Dictionary(X))
        said = audited(objective, whole, as_iterate(objective, whole, coef))[1]
    gap = said.gap / total
    return LinearFit(coef, 0.0, gap, result.status, result.n_iter, path, bool(said.proven))


def _lengths(X: Any, weights: Vector, centred: bool) -> Vector:
    """Return the weighted norms of the columns, minus their means if `centred`.

    Where squares overflow it is the largest entry instead.
    """
    squares = np.asarray((X * X if isinstance(X, np.ndarray) else X.power(2)).T @ weights)
    if not np.isfinite(squares).all():
        return np.asarray(
            abs(X).max(axis=0).todense() if sparse.issparse(X) else abs(X).max(axis=0)
        )
    if not centred:
        return np.sqrt(squares)
    sums = np.asarray(X.T @ weights)
    left = squares - sums * sums / weights.sum()
    return np.sqrt(np.where(left > 1e-12 * squares, left, 0.0))


def _path(visited: Sequence[tuple[Any, Vector, float, float]], n: int) -> ConicPath:
    """Return the fits of a run as a path."""
    keys, weights, values, gaps = zip(*visited, strict=True)
    ends = np.cumsum([0, *map(len, keys)])
    places = np.concatenate([np.asarray(k, dtype=np.intp) for k in keys])
    coefs = sparse.csr_array((np.concatenate(weights), places, ends), shape=(len(keys), n))
    return ConicPath(coefs, np.array(values), np.array(gaps))


def warn_unless_converged(name: str, fits: Sequence[LinearFit]) -> None:
    """Warn once if some fits have not converged."""
    wrong = [fit for fit in fits if not (fit.status.success or fit.status is Status.MAX_ATOMS)]
    if wrong:
        which = "" if len(fits) == 1 else f" for {len(wrong)} of {len(fits)} targets"
        worst = max(wrong, key=lambda fit: fit.gap)
        warn_caller(
            f"{name} did not converge{which}: {worst.status.value} (n_iter = {worst.n_iter}, "
            f"gap = {worst.gap:.2g}, {'proven' if worst.proven else 'an estimate'}).",
            ConvergenceWarning,
        )
