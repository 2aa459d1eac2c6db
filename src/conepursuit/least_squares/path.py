"""Non-negative orthogonal matching pursuit: one atom after the other, and the path of fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, count
from conepursuit.kernels.constants import MAX_ATOMS, MAX_STEPS, OPTIMAL
from conepursuit.least_squares.large import finished
from conepursuit.least_squares.survey import surveyed
from conepursuit.least_squares.working_set import Callback, WorkingSet
from conepursuit.linear import check_finite, matvec
from conepursuit.matrix_fits.arguments import (
    as_vector,
    atoms_of_path,
    check_entries,
    matrix_and_target,
    root_weights,
    rows_matched,
    weighted_matrix,
    weighted_target,
)
from conepursuit.matrix_fits.paths import Path, PathFit, folds
from conepursuit.matrix_fits.results import STOPPED, NNLSResult
from conepursuit.matrix_fits.safe_units import SafeUnits, times_powers
from conepursuit.matrix_fits.threads import run, threads


@dataclass(frozen=True, eq=False)
class PathProblem:
    """The data of a path, the roots of the row weights, and the atoms forced and forbidden."""

    matrix: Any
    b: Vector
    rows: Vector
    forced: Array
    forbidden: Array

    @property
    def n_rows(self) -> int:
        """How many rows have weight."""
        return int(np.count_nonzero(self.rows))

    def weighted(self) -> tuple[Any, Vector]:
        """Return A and b, multiplied by the roots of the row weights."""
        if (self.rows == 1.0).all():
            return self.matrix, self.b
        return weighted_matrix(self.matrix, self.rows), weighted_target(self.b, self.rows)


@dataclass(frozen=True, eq=False)
class NNLSPathFit(PathFit):
    """One fit on an `NNLSPath`: a `PathFit` with ``rnorm``, the norm of its residual."""

    rnorm: float


@dataclass(frozen=True, eq=False)
class NNLSPath(Path[NNLSPathFit]):
    """The fits of non-negative orthogonal matching pursuit with more and more atoms.

    ``path[i]`` is the fit in place i, an `NNLSPathFit`.

    Attributes
    ----------
    n_atoms : array of int
        1, 2, ...; or from the number of forced atoms on.
    supports : list of arrays
        For each number, the atoms of the best fit found with at most so many, and those forced.
    weights : list of arrays
        The weights of these atoms: positive, or for forced atoms zero.
    rnorm : array
        The norms of the residuals; they never rise.
    labels : Labels
        The names of the columns of A, where it is a table.
    """

    rnorm: Vector
    _problem: PathProblem = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"NNLSPath({self.n_atoms[0]} to {self.n_atoms[-1]} atoms, "
            f"rnorm {self.rnorm[0]:.4g} to {self.rnorm[-1]:.4g})"
        )

    def __getitem__(self, place: int) -> NNLSPathFit:
        known = self._at(place, self._problem.matrix.shape[1])
        return NNLSPathFit(rnorm=float(self.rnorm[place]), **known)

    @property
    def bic(self) -> Vector:
        """The Bayesian information criterion of every fit.

        It is ``m log(||r||^2 / m) + k log m``, with m the number of rows that have weight.
        """
        m = self._problem.n_rows
        with np.errstate(divide="ignore"):
            bic: Vector = 2 * m * np.log(self.rnorm / m**0.5) + self.sizes() * np.log(m)
        return bic

    def by_residual(self, target: float) -> PathFit:
        """Return the first fit with ||r|| <= target, or the last one if none reaches it."""
        reached = np.flatnonzero(self.rnorm <= target)
        return self[int(reached[0]) if len(reached) else -1]

    def by_cross_validation(self, n_folds: int = 5, *, random_state: int = 0) -> PathFit:
        """Return the fit whose number of atoms best predicts rows that are left out.

        The rows are dealt at random, by the seed `random_state`, into `n_folds` folds; for each
        fold a path is made without it.
        """
        problem = self._problem
        rows = problem.rows
        fold = folds(rows > 0, n_folds, random_state)
        errors = np.zeros(len(self))
        for left_out in range(n_folds):
            kept = replace(problem, rows=np.where(fold == left_out, 0.0, rows))
            path = make_path(kept, int(self.n_atoms[-1]))
            tested = np.where(fold == left_out, rows, 0.0)
            for place, size in enumerate(self.n_atoms):
                missed = problem.b - matvec(problem.matrix, path.at_most(int(size)).x)
                share = weighted_target(missed / self.rnorm[0], tested)  # squares are safe
                errors[place] += float(share @ share)
        return self[int(np.argmin(errors))]


def nnls_path(
    A: Any,
    b: Any,
    max_atoms: int,
    *,
    weights: Any = None,
    forced: Iterable[int] = (),
    forbidden: Iterable[int] = (),
    n_jobs: int | None = None,
) -> NNLSPath | list[NNLSPath]:
    """Fit a target with 1, 2, ..., max_atoms non-negative atoms, greedily.

    Parameters
    ----------
    A, b
        As in `nnls`.
    max_atoms : int
        Where the path ends; it ends before where no atom improves the fit.
    weights : array_like, optional
        Weights of the rows, as in `nnls`.
    forced : iterable of int, or array of n booleans
        Atoms that every fit has; they count, and their weights are fitted under x >= 0, so that
        they may be zero.
    forbidden : iterable of int, or array of n booleans
        Atoms that never get weight.
    n_jobs : int, optional
        Threads for many targets.

    Returns
    -------
    NNLSPath, or a list with one for each target
        Choose a fit by ``by_bic()``, ``by_residual(target)`` or ``by_cross_validation()``.

    Notes
    -----
    Each step is one pass over the dictionary: the atom with the largest <a, r> / ||a|| joins, and
    the weights of all atoms are refitted (FCMP variant 1 on unit atoms). Atoms that lose all
    their weight leave, and may come again.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import nnls_path
    >>> path = nnls_path(np.eye(3), [3.0, 1.0, 2.0], 2)
    >>> [support.tolist() for support in path.supports], path.rnorm.round(3).tolist()
    ([[0], [0, 2]], [2.236, 1.0])
    >>> path.by_residual(1.5).x
    array([3., 0., 2.])
    """
    b, weights, labels = rows_matched(A, b, weights)
    matrix, target = matrix_and_target(A, b)
    if not isinstance(target, np.ndarray):
        raise ValueError(
            "nnls_path takes no targets in a Dask array. Use nnls with max_atoms=, or b.compute()."
        )
    n, workers = matrix.shape[1], threads(n_jobs)
    most = min(count(max_atoms, "max_atoms"), n)
    first, never = atoms_of_path(forced, forbidden, n, most)
    rows = np.ones(len(target)) if weights is None else root_weights(weights, target)

    def one(i: int) -> NNLSPath:
        own = as_vector(target if target.ndim == 1 else target[:, i])
        weight = rows if rows.ndim == 1 else rows[:, i]
        check_entries(own[weight > 0], "b" if target.ndim == 1 else f"b[:, {i}]")
        path = make_path(PathProblem(matrix, own, weight, first, never), most)
        return replace(path, labels=labels)

    return one(0) if target.ndim == 1 else list(run(one, range(target.shape[1]), workers))


def make_path(problem: PathProblem, most: int) -> NNLSPath:
    """Return the path of one target with up to `most` atoms."""
    matrix, b = problem.weighted()
    known, forced = surveyed(matrix, b), problem.forced
    if known is None:
        return rescaled_path(problem, matrix, b, most)
    known.forbid(problem.forbidden)
    work = WorkingSet(matrix, b, known)
    best: dict[int, tuple[float, Array, Vector]] = {}
    for _ in greedy_steps(work, forced, None, most, max_steps=100 * (most + 10)):
        support, rnorm = work.used(forced), float(np.linalg.norm(work.residual))
        if rnorm < best.get(len(support), (inf,))[0]:
            best[len(support)] = rnorm, support, work.solution()[support]
    least = float(np.linalg.norm(b)), forced, np.zeros(len(forced))
    sizes, fits = np.arange(max(1, len(forced)), max([1, len(forced), *best]) + 1), []
    for size in sizes:
        least = min(least, best.get(int(size), least), key=lambda fit: fit[0])
        fits.append(least)
    return NNLSPath(
        sizes, [fit[1] for fit in fits], [fit[2] for fit in fits],
        np.array([fit[0] for fit in fits]), problem,
    )  # fmt: skip


def rescaled_path(problem: PathProblem, matrix: Any, b: Vector, most: int) -> NNLSPath:
    """Return the path of data whose squares overflow or underflow."""
    check_finite(matrix, "A")
    units = SafeUnits.of(matrix, b)
    safe = replace(problem, matrix=units.matrix(matrix), b=units.vector(b), rows=np.ones(len(b)))
    path = make_path(safe, most)
    weights = [
        times_powers(weights, units.target - units.columns[support])
        for support, weights in zip(path.supports, path.weights, strict=True)
    ]
    rnorm = times_powers(path.rnorm, units.target)
    return replace(path, weights=weights, rnorm=rnorm, _problem=problem)


def greedy_steps(
    work: WorkingSet, forced: Array, start: Vector | None, limit: int, max_steps: int
) -> Iterator[tuple[int, int]]:
    """Let one atom after the other join a working set, and refit after each.

    Yields, after each refit, the code that says why it ended, and how many solves were made so far.
    It ends where `limit` atoms have weight or are forced, after `max_steps` solves, where no atom
    descends, or where a refit does not make the residual smaller.
    """
    used = forced if start is None else np.flatnonzero(start)
    steps, least = 0, inf
    if len(used):
        work.add(used, None if start is None else start[used])
        code, steps = work.fit(max_steps)
        yield code, steps
    while len(work.used(forced)) < limit and steps < max_steps:
        scores = work.scores(1) if work.count else work.known.products
        found = work.greedy_step(scores, forced, max_steps - steps)
        square = float(work.residual @ work.residual)
        if found is None or square >= least:
            break
        steps, least = steps + found[1], square
        yield found[0], steps


def fit_greedily(
    matrix: Any,
    b: Vector,
    start: Vector | None,
    inexact: float,
    limit: int,
    max_steps: int,
    callback: Callback | None = None,
) -> NNLSResult | None:
    """Fit one target with at most `limit` atoms; None if the data need scaling.

    `inexact` bounds the relative error of the entries of the data.
    """
    known = surveyed(matrix, b)
    if known is None:
        return None
    work, code, steps = WorkingSet(matrix, b, known, inexact), OPTIMAL, 0
    for state in greedy_steps(work, np.empty(0, dtype=np.intp), start, limit, max_steps):
        code, steps = state
        if callback is not None and callback(work.round(steps)):
            return finished(work, work.known.products, STOPPED, steps)
    scores = work.scores(1)
    if work.descends(scores):
        code = MAX_ATOMS if work.count >= limit else MAX_STEPS if steps >= max_steps else code
    return finished(work, scores, code, steps)
