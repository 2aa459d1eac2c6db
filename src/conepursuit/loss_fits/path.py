"""Fits with few atoms under any loss: the best one found, or the path over their number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, count
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.linear import matvec
from conepursuit.loss_fits.arguments import check_in_memory, in_safe_units, problem_of
from conepursuit.loss_fits.many import fit_together
from conepursuit.loss_fits.selection import Choice, Selection
from conepursuit.loss_fits.single import by_the_generic_loop, fit_single, has_models
from conepursuit.matrix_fits.arguments import atoms_of_path, tolerance
from conepursuit.matrix_fits.paths import Path, PathFit, folds
from conepursuit.matrix_fits.results import FitResult, Labels
from conepursuit.matrix_fits.threads import run, threads
from conepursuit.objectives import (
    EntrywiseLoss,
    FreeIntercept,
    KullbackLeibler,
    Logistic,
    Objective,
)
from conepursuit.objectives.lazy import LazyLoss
from conepursuit.pursuit.certify import certify
from conepursuit.pursuit.domains import Cone
from conepursuit.status import Status

NONE = np.empty(0, dtype=np.intp)
"""No atoms."""


@dataclass(frozen=True, eq=False)
class LossPathFit(PathFit):
    """One fit on a `LossPath`: a `PathFit` with its ``value``, f(A x) and the penalty."""

    value: float


@dataclass(frozen=True, eq=False)
class LossPath(Path[LossPathFit]):
    """The best fits found with more and more atoms, under any loss.

    ``path[i]`` is the fit in place i, a `LossPathFit`.

    Attributes
    ----------
    n_atoms : array of int
        1, 2, ...; or from the number of forced atoms on, or from the least number of atoms with
        which a fit of finite value was found.
    supports : list of arrays
        For each number, the atoms of the best fit found with at most so many, and those forced.
    weights : list of arrays
        The weights of these atoms: positive, or for forced atoms zero.
    values : array
        f(A x), with the penalty; they never rise.
    """

    values: Vector
    _problem: PathProblem = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"LossPath({self.n_atoms[0]} to {self.n_atoms[-1]} atoms, "
            f"value {self.values[0]:.6g} to {self.values[-1]:.6g})"
        )

    def __getitem__(self, place: int) -> LossPathFit:
        known = self._at(place, self._problem.atoms.n_atoms)
        return LossPathFit(value=float(self.values[place]), **known)

    @property
    def bic(self) -> Vector:
        """The Bayesian information criterion of every fit.

        For `Poisson`, `KullbackLeibler` and `Logistic`, which are minus a log-likelihood, it is
        ``2 f + k log m``, with m the number of entries that count. For other losses the size of the
        errors is not known, and it is ``m log(2 f / m) + k log m``.
        """
        objective = self._problem.objective
        loss = objective.loss if isinstance(objective, FreeIntercept) else objective
        m = loss.counted.sum() if isinstance(loss, EntrywiseLoss) else loss.shape[0]
        known = isinstance(loss, KullbackLeibler | Logistic)
        with np.errstate(divide="ignore"):
            deviance = 2 * self.values if known else m * np.log(2 * self.values / m)
        bic: Vector = deviance + self.sizes() * np.log(m)
        return bic

    def by_cross_validation(self, n_folds: int = 5, *, random_state: int = 0) -> LossPathFit:
        """Return the fit whose number of atoms best predicts entries that are left out.

        The entries are dealt at random, by the seed `random_state`, into `n_folds` folds; for each
        fold a path is made without it. Numbers of atoms for which a prediction has an infinite loss
        are not chosen. It needs a loss over entries.
        """
        problem, loss = self._problem, self._problem.objective
        if not isinstance(loss, EntrywiseLoss):
            raise ValueError(f"cross-validation needs a loss over entries; got {loss!r}.")
        fold = folds(loss.counted, n_folds, random_state)
        rows = np.ones(len(fold)) if loss.weights is None else loss.weights
        errors = np.zeros(len(self))
        for left_out in range(n_folds):
            kept, tested = (
                type(loss)(loss.y, weights=np.where(part, rows, 0.0), **loss.options())
                for part in (fold != left_out, fold == left_out)
            )
            path = make_path(replace(problem, objective=kept), int(self.n_atoms[-1]))
            for place, size in enumerate(self.n_atoms):
                x = path.at_most(max(int(size), int(path.n_atoms[0]))).x
                errors[place] += tested.value(matvec(problem.atoms.matrix, x))
        return self[int(np.argmin(errors))]


@dataclass(frozen=True, eq=False)
class PathProblem:
    """What a path is made from: the problem, the atoms forced and forbidden, and the limits."""

    objective: Objective
    cone: Cone
    forced: Array
    forbidden: Array
    tol: float
    max_iter: int

    @property
    def atoms(self) -> Dictionary:
        """The columns."""
        assert isinstance(self.cone.atoms, Dictionary)
        return self.cone.atoms


def nnfit_path(
    objective: Objective,
    A: Any,
    max_atoms: int,
    *,
    penalty: float = 0.0,
    forced: Iterable[int] = (),
    forbidden: Iterable[int] = (),
    max_iter: int = 1000,
    tol: float = 1e-8,
    n_jobs: int | None = None,
) -> LossPath | list[LossPath]:
    """Look for the best fits with 1, 2, ..., max_atoms non-negative atoms, under any loss.

    Parameters
    ----------
    objective, A, penalty
        As in `nnfit`.
    max_atoms : int
        Where the path ends; it ends before where no atom improves the fit.
    forced : iterable of int, or array of n booleans
        Atoms that every fit has; they count, and their weights may be zero.
    forbidden : iterable of int, or array of n booleans
        Atoms that never get weight.
    max_iter, tol
        Of each of the fits, as in `nnfit`.
    n_jobs : int, optional
        Threads for many targets.

    Returns
    -------
    LossPath, or a list with one for each target
        Choose a fit by ``by_bic()``, ``by_cross_validation()`` or ``at_most(k)``.

    Notes
    -----
    From the best fit with k atoms, those atoms are tried that promise the largest decrease of f in
    its quadratic model, s^2 / (2 q), with s the slope along an atom and q the curvature that is
    left when the other weights are refitted. Then those leave that are worth least, and what is
    better than the best fit known with so many atoms takes its place and is tried again. (`nnls`
    with ``max_atoms=`` and `nnls_path` take atoms by their slopes, and exchange none.) Which atoms
    are best is a hard problem: that none is better is not proved.

    Examples
    --------
    >>> from conepursuit import Poisson, nnfit_path
    >>> A = [[4.0, 1.0, 3.0], [1.0, 4.0, 3.0], [1.0, 1.0, 1.0]]
    >>> path = nnfit_path(Poisson([9, 6, 3]), A, 2)
    >>> [support.tolist() for support in path.supports]
    [[2], [0, 1]]
    """
    objective, cone = problem_of(objective, A, penalty)
    assert isinstance(cone.atoms, Dictionary)
    check_in_memory(cone.atoms, "nnfit_path")
    if isinstance(objective, LazyLoss):
        raise ValueError(
            "nnfit_path takes no data in a Dask array. Use nnfit with max_atoms=, or y.compute()."
        )
    safe, units = in_safe_units(cone)
    if not has_models(objective, safe):
        raise ValueError(
            "a path needs the Hessian of the objective, and a matrix that shows its columns. Use "
            "minimize with FCMP() and max_atoms=."
        )
    assert isinstance(safe.atoms, Dictionary)
    n, labels = safe.atoms.n_atoms, Labels(cone.atoms.column_labels)
    most = min(count(max_atoms, "max_atoms"), n)
    first, never = atoms_of_path(forced, forbidden, n, most)
    steps, tol, workers = count(max_iter, "max_iter"), tolerance(tol), threads(n_jobs)

    def one(objective: Objective) -> LossPath:
        path = make_path(PathProblem(objective, safe, first, never, tol, steps), most)
        path = replace(path, labels=labels)
        if units is None:
            return path
        back = [units.weights_back(path[i].x)[0] for i in range(len(path))]
        weights = [x[support] for x, support in zip(back, path.supports, strict=True)]
        return replace(path, weights=weights)

    if len(objective.shape) == 1:
        return one(objective)
    assert isinstance(objective, EntrywiseLoss)
    return list(run(one, map(objective.column, range(objective.shape[1])), workers))


def make_path(problem: PathProblem, most: int) -> LossPath:
    """Return the path of one target with up to `most` atoms; without any fit, a ValueError."""
    fits = selected(problem, most, None).path(most)
    return LossPath(
        np.array([size for size, _ in fits]),
        [choice.support for _, choice in fits],
        [choice.weights for _, choice in fits],
        np.array([choice.value for _, choice in fits]),
        problem,
    )


def selected(problem: PathProblem, most: int, start: Vector | None) -> Selection:
    """Return a finished search for the best fits with up to `most` atoms.

    Losses that the kernels know are fitted by them.
    """
    objective, penalty = problem.objective, problem.cone.penalty
    alone: EntrywiseLoss | None = None
    if isinstance(objective, EntrywiseLoss):
        weights = None if objective.weights is None else objective.weights[:, None]
        alone = type(objective)(objective.y[:, None], weights=weights, **objective.options())

    def fit(columns: Any) -> tuple[Vector, float, float]:
        limits = problem.tol, problem.max_iter
        if alone is not None:
            found = fit_together(alone, columns, penalty, None, *limits, 1)
            if found is not None:
                return found.x[:, 0], float(found.value[0]), float(found.gap[0])
        try:
            found = fit_single(objective, Cone(Dictionary(columns), penalty=penalty), None, *limits)
        except ValueError:  # f is infinite on all combinations of these columns
            return np.zeros(columns.shape[1]), inf, inf
        return found.x, float(found.value), float(found.gap)

    search = Selection(objective, problem.atoms, penalty, problem.forced, problem.forbidden, fit)
    search.search(most, NONE if start is None else np.flatnonzero(start))
    return search


def fit_few(
    objective: Objective, cone: Cone, start: Vector | None, tol: float, max_iter: int, limit: int
) -> FitResult:
    """Fit one target with at most `limit` atoms.

    The gap is that to the least value with any number of atoms.
    """
    if not has_models(objective, cone):
        return by_the_generic_loop(objective, cone, start, tol, max_iter, limit)
    problem = PathProblem(objective, cone, NONE, NONE, tol, max_iter)
    return fit_with_path(problem, start, limit)[0]


def fit_with_path(
    problem: PathProblem, start: Vector | None, limit: int
) -> tuple[FitResult, list[tuple[int, Choice]]]:
    """Return the best fit found with at most `limit` atoms, and those with fewer before it."""
    objective, cone, atoms = problem.objective, problem.cone, problem.atoms
    search = selected(problem, limit, start)
    fits, x = search.path(limit), np.zeros(atoms.n_atoms)
    best = fits[-1][1]
    x[best.support] = best.weights
    if len(best.support) < limit:  # maybe no atom descends from here
        whole = fit_single(objective, cone, x, problem.tol, problem.max_iter)
        if len(whole.support) <= limit:
            return replace(whole, n_iter=search.n_fits), fits
    certificate = certify(objective, cone, weights=x)
    reached = certificate.gap <= problem.tol * abs(best.value)
    fit = FitResult(
        x, best.value, search.problem.at(x).scores, certificate.gap, certificate.proven,
        Status.CONVERGED if reached else Status.MAX_ATOMS, search.n_fits,
    )  # fmt: skip
    return fit, fits
