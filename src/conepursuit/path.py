"""Non-negative orthogonal matching pursuit: one atom after the other, and the path of fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.batches import run
from conepursuit.fits import MAX_ATOMS, MAX_STEPS, OPTIMAL, NNLSResult
from conepursuit.linear import check_finite, matvec, rmatvec
from conepursuit.targets import (
    check_entries,
    count,
    matrix_and_target,
    rescaled,
    root_weights,
    weighted,
)
from conepursuit.working_set import WorkingSet, finished, surveyed


@dataclass(frozen=True, eq=False)
class NNLSPath:
    """The fits of non-negative orthogonal matching pursuit with 1, 2, ... atoms.

    Attributes
    ----------
    supports : list of arrays
        ``supports[k - 1]`` holds the atoms of the best fit found with at most k atoms.
    weights : list of arrays
        Their weights.
    rnorm : array
        The norms of the residuals; they never rise.
    """

    supports: list[Array]
    weights: list[Vector]
    rnorm: Vector
    _matrix: Any = field(repr=False)
    _b: Vector = field(repr=False)
    _forced: Array = field(repr=False)
    _forbidden: Array = field(repr=False)

    def __len__(self) -> int:
        return len(self.supports)

    def __repr__(self) -> str:
        return f"NNLSPath({len(self)} fits, rnorm {self.rnorm[0]:.4g} to {self.rnorm[-1]:.4g})"

    def x(self, n_atoms: int) -> Vector:
        """Return the weights of all atoms, at most so many of them positive."""
        place = min(count(n_atoms, "n_atoms"), len(self)) - 1
        full = np.zeros(self._matrix.shape[1])
        full[self.supports[place]] = self.weights[place]
        return full

    @property
    def bic(self) -> Vector:
        """M log(||r||^2 / m) + k log m, the Bayesian information criterion of every fit."""
        m = self._matrix.shape[0]
        sizes = np.array([len(support) for support in self.supports])
        with np.errstate(divide="ignore"):
            bic: Vector = m * np.log(self.rnorm**2 / m) + sizes * np.log(m)
        return bic

    def by_bic(self) -> int:
        """Return the number of atoms with the least BIC."""
        return int(np.argmin(self.bic)) + 1

    def by_residual(self, target: float) -> int:
        """Return the least number of atoms with ||r|| <= target, or all if none reaches it."""
        reached = np.flatnonzero(self.rnorm <= target)
        return int(reached[0]) + 1 if len(reached) else len(self)

    def by_cross_validation(self, n_folds: int = 5, *, random_state: int = 0) -> int:
        """Return the number of atoms that predicts rows best that were left out of the fit.

        The rows are dealt at random into `n_folds` folds; for each, the path is made without it.
        """
        m = self._matrix.shape[0]
        if not 2 <= n_folds <= m:
            raise ValueError(f"n_folds must lie between 2 and the {m} rows; got {n_folds}.")
        fold = np.random.default_rng(random_state).permutation(np.arange(m) % n_folds)
        errors = np.zeros(len(self))
        for left_out in range(n_folds):
            kept = (fold != left_out).astype(np.float64)
            matrix, b, _ = weighted(self._matrix, self._b, kept)
            path = make_path(matrix, b, len(self), self._forced, self._forbidden)
            for k in range(len(self)):
                missed = (self._b - matvec(self._matrix, path.x(k + 1)))[fold == left_out]
                errors[k] += float(missed @ missed)
        return int(np.argmin(errors)) + 1


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
    forced : iterable of int
        Atoms that the first fit has already; they count, and their weights are still fitted
        under x >= 0.
    forbidden : iterable of int
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
    """
    matrix, target = matrix_and_target(A, b)
    n, most = matrix.shape[1], count(max_atoms, "max_atoms")
    first, never = indices(forced, n, "forced"), indices(forbidden, n, "forbidden")
    if len(both := np.intersect1d(first, never)):
        raise ValueError(f"atoms cannot be forced and forbidden at once; got {both.tolist()}.")
    if len(first) > most:
        raise ValueError(f"{len(first)} atoms are forced, but max_atoms is {most}.")
    rows = None if weights is None else root_weights(weights, target)

    def one(i: Any) -> NNLSPath:
        own, mine = (matrix, target[:, i]) if target.ndim == 2 else (matrix, target)
        if rows is not None:
            own, mine, _ = weighted(own, mine, rows if rows.ndim == 1 else rows[:, i])
        mine = np.ascontiguousarray(mine, dtype=np.float64)
        check_entries(mine, "b")
        return make_path(own, mine, most, first, never)

    return one(0) if target.ndim == 1 else list(run(one, range(target.shape[1]), n_jobs))


def indices(chosen: Iterable[int], n: int, name: str) -> Array:
    """Return distinct column indices, or say why they are not that."""
    found = np.unique(np.asarray(list(chosen), dtype=np.intp))
    if len(found) and not 0 <= found[0] <= found[-1] < n:
        raise ValueError(
            f"{name} atoms must be column indices from 0 to {n - 1}; got {found.tolist()}."
        )
    return found


def make_path(matrix: Any, b: Vector, most: int, forced: Array, forbidden: Array) -> NNLSPath:
    """Return the path of one target."""
    known = surveyed(matrix, b)
    if known is None:
        check_finite(matrix, "A")
        scaled, unit, powers, power = rescaled(matrix, b)
        path = make_path(scaled, unit, most, forced, forbidden)
        weights = [
            np.ldexp(weights, power - powers[support])
            for support, weights in zip(path.supports, path.weights, strict=True)
        ]
        rnorm = np.ldexp(path.rnorm, power)
        return replace(path, weights=weights, rnorm=rnorm, _matrix=matrix, _b=b)
    known.inverse_norms[forbidden] = 0.0
    work = WorkingSet(matrix, b, known)
    best: dict[int, tuple[float, Array, Vector]] = {}
    for _ in greedy_steps(work, forced, None, most, max_steps=100 * (most + 10)):
        rnorm, size = float(np.linalg.norm(work.residual)), int((work.weights > 0).sum())
        if rnorm < best.get(size, (inf,))[0]:
            used = np.flatnonzero(work.weights)
            place = used[np.argsort(work.chosen[used])]
            best[size] = rnorm, work.chosen[place], work.weights[place].copy()
    fits, least = [], (float(np.linalg.norm(b)), np.empty(0, dtype=np.intp), np.empty(0))
    for size in range(1, max([1, *best]) + 1):
        least = min(least, best.get(size, least), key=lambda fit: fit[0])
        fits.append(least)
    return NNLSPath(
        [fit[1] for fit in fits], [fit[2] for fit in fits], np.array([fit[0] for fit in fits]),
        matrix, b, forced, forbidden,
    )  # fmt: skip


def greedy_steps(
    work: WorkingSet, forced: Array, start: Vector | None, limit: int, max_steps: int
) -> Iterator[tuple[int, int]]:
    """Yield why the last refit ended, and how many solves were made, after every atom.

    It ends where `limit` atoms have weight, no atom descends, or nothing is gained any more.
    """
    used = forced if start is None else np.flatnonzero(start)
    steps, least = 0, inf
    if len(used):
        work.add(used, None if start is None else start[used])
        code, steps = work.fit(work.matrix.shape[1], max_steps)
        yield code, steps
    while work.count < limit and steps < max_steps:
        scores = rmatvec(work.matrix, work.residual) if work.count else work.known.products
        found = work.greedy_step(scores, forced, max_steps - steps)
        square = float(work.residual @ work.residual)
        if found is None or square >= least:
            break
        steps, least = steps + found[1], square
        yield found[0], steps


def fit_greedily(
    matrix: Any, b: Vector, start: Vector | None, limit: int, max_steps: int
) -> NNLSResult | None:
    """Fit one target with at most `limit` atoms; None if the data need scaling."""
    known = surveyed(matrix, b)
    if known is None:
        return None
    work, code, steps = WorkingSet(matrix, b, known), OPTIMAL, 0
    for state in greedy_steps(work, np.empty(0, dtype=np.intp), start, limit, max_steps):
        code, steps = state
    scores = rmatvec(matrix, work.residual)
    if code != MAX_STEPS and work.count >= limit and work.descends(scores):
        code = MAX_ATOMS
    return finished(work, scores, code, steps)
