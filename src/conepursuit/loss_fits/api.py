"""Non-negative fits with any smooth loss, for one target or many, with a proof.

``min f(A x) + lambda sum(x) over x >= 0`` is `FCMP(variant=1)` on ``Cone(Dictionary(A), penalty)``.
Here it is made fast, as `nnls` is for least squares; tests hold it to the generic loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, count, quiet
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.linear import matvec
from conepursuit.loss_fits.arguments import check_in_memory, in_safe_units, problem_of
from conepursuit.loss_fits.many import fit_together
from conepursuit.loss_fits.path import fit_few
from conepursuit.loss_fits.single import fit_single
from conepursuit.matrix_fits.arguments import tolerance, weights_in, weights_of
from conepursuit.matrix_fits.lazy import beside, fit_blocks, labelled_fields, whole_targets
from conepursuit.matrix_fits.results import FitResult, Fits, Labels, lazy_fields
from conepursuit.matrix_fits.safe_units import SafeUnits, scaled_columns
from conepursuit.matrix_fits.threads import run, threads
from conepursuit.objectives import EntrywiseLoss, Objective
from conepursuit.objectives.lazy import LazyLoss
from conepursuit.pursuit.domains import Cone
from conepursuit.pursuit.starts import why_infinite
from conepursuit.status import Status


@quiet
def nnfit(
    objective: Objective,
    A: Any,
    *,
    penalty: float = 0.0,
    max_atoms: int | None = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
    start: Any = None,
    n_jobs: int | None = None,
) -> FitResult:
    """Minimise f(A x) + penalty * sum(x) over x >= 0.

    Parameters
    ----------
    objective : Objective
        f, a function of A x, such as ``Poisson(counts)``. A loss over entries may have a matrix of
        data, with one target per column. If that is a Dask array, alone or in an
        `xarray.DataArray`, every attribute of the result is one too, and nothing is computed yet.
    A : array_like, scipy.sparse matrix, LinearOperator or Dask array, shape (m, n)
        One atom per column. Where A and the data of the objective are tables of pandas or xarray,
        their rows are matched by their labels; labels that differ are refused. A Dask array is
        read in a few passes, block by block; the blocks, dense or sparse, should be whole rows.
    penalty : float
        lambda >= 0.
    max_atoms : int, optional
        The most weights that may be positive. The atoms are chosen greedily, by what the curvature
        of f promises for each, and exchanged while that helps, as in `nnfit_path`.
    max_iter : int
        Most steps, for each target and each choice of atoms.
    tol : float
        Stop when the gap is at most tol times the decrease since x = 0; where f is infinite there,
        since the best multiple of a few atoms.
    start : array_like of the shape of x, optional
        Weights to start from.
    n_jobs : int, optional
        Threads for many targets; -1 for all cores, 1 by default. It does not change the result.
        For a Dask array its scheduler decides.

    Returns
    -------
    FitResult
        Lack of convergence is a status, never an exception.

    Examples
    --------
    >>> from conepursuit import Poisson, nnfit
    >>> fit = nnfit(Poisson([3, 4, 0]), [[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    >>> fit.x.round(6).tolist(), fit.status.name, fit.proven
    ([3.5, 0.0], 'CONVERGED', True)
    """
    objective, cone = problem_of(objective, A, penalty)
    atoms = cone.atoms
    assert isinstance(atoms, Dictionary)
    limit = None if max_atoms is None else min(count(max_atoms, "max_atoms"), atoms.n_atoms)
    steps, tol, workers = count(max_iter, "max_iter"), tolerance(tol), threads(n_jobs)
    if isinstance(objective, LazyLoss):
        columns = LossColumns(objective.make, atoms, cone.penalty, limit, steps, tol)
        return _fit_lazily(columns, objective, weights_in(start))
    shape = (atoms.n_atoms, *objective.shape[1:])
    first = None if start is None else weights_of(start, shape, "start", limit)
    labels = Labels(atoms.column_labels, objective.column_labels)
    if limit is not None:
        check_in_memory(atoms, "max_atoms=")
    passes = getattr(atoms.matrix, "passes", None)
    safe, units = in_safe_units(cone)
    if units is None:
        fit = _fit(objective, cone, first, tol, steps, workers, limit)
        if passes is not None:
            fit = replace(fit, n_passes=atoms.matrix.passes - passes)
        return replace(fit, labels=labels)
    scaled = safe.atoms
    assert isinstance(scaled, Dictionary)
    first = None if first is None else units.weights(first)
    fit = _fit(objective, safe, first, tol, steps, workers, limit)
    fit = unscaled(fit, objective, scaled, safe.penalty, units)
    # One power for all may make entries of other columns underflow: then A is not the A given.
    lost = scaled_columns(scaled.matrix, -units.columns) != atoms.matrix
    proven = fit.proven & False if lost.sum() else fit.proven
    return replace(fit, proven=proven, labels=labels)


@dataclass(frozen=True, eq=False)
class LossColumns:
    """Fits a block of targets; the attributes are the arguments of `nnfit`.

    ``make(y, weights=None, mask=None)`` returns the loss of the block.
    """

    make: Callable[..., EntrywiseLoss]
    atoms: Dictionary
    penalty: float
    max_atoms: int | None
    max_iter: int
    tol: float

    def __call__(self, y: Array, start: Any = None, **entries: Array) -> FitResult:
        """Fit the columns of y, with `entries`, the weights and the mask, and a start."""
        loss = self.make(y, **entries)
        if start is not None:
            start = np.pad(start, ((0, 0), (0, loss.shape[1] - y.shape[1])))
        return nnfit(
            loss, self.atoms, penalty=self.penalty, max_atoms=self.max_atoms,
            max_iter=self.max_iter, tol=self.tol, start=start,
        )  # fmt: skip


def _fit_lazily(fit: LossColumns, objective: LazyLoss, start: Any) -> FitResult:
    """Return the fits of a loss of a Dask array."""
    data = whole_targets(objective.y, 0, "y")
    others = beside(data, weights=objective.weights, mask=objective.mask, start=start)
    found = fit_blocks(fit, data, 0, lazy_fields(FitResult, fit.atoms.n_atoms), **others)
    return FitResult(**labelled_fields(found, objective.given))


def unscaled(
    fit: FitResult, objective: Objective, atoms: Dictionary, penalty: float, units: SafeUnits
) -> FitResult:
    """Return a fit with atoms divided by powers of two as a fit with the atoms themselves.

    If weights overflow or underflow, the nearest floats are returned, with their own value. Then
    the gap is an estimate, and the status is STALLED.
    """
    x, exact = units.weights_back(fit.x)
    dual, value, gap, status = units.slopes_back(fit.dual), fit.value, fit.gap, fit.status
    proven = fit.proven
    if not exact:
        kept = units.weights(x)
        fitted = matvec(atoms.matrix, kept)
        if fitted.ndim == 1:
            value, lost = objective.value(fitted) + penalty * float(kept.sum()), kept != fit.x
        else:
            assert isinstance(objective, EntrywiseLoss)
            value = objective.weighted(objective.losses(fitted)).sum(axis=0)
            value, lost = value + penalty * kept.sum(axis=0), kept != fit.x
        gap = np.maximum(gap + (value - fit.value), 0.0)
        status = np.where(lost.any(axis=0), np.array(Status.STALLED, dtype=object), status)[()]
        proven = proven & ~lost.any(axis=0)
    return FitResult(x, value, dual, gap, proven, status, fit.n_iter)


def _fit(
    objective: Objective,
    cone: Cone,
    start: Array | None,
    tol: float,
    max_iter: int,
    n_jobs: int,
    limit: int | None,
) -> FitResult:
    """Fit one target, or each column of the data of a loss, together if the kernels can."""
    atoms = cone.atoms
    assert isinstance(atoms, Dictionary)

    def one(objective: Objective, first: Vector | None) -> FitResult:
        if limit is None:
            return fit_single(objective, cone, first, tol, max_iter)
        return fit_few(objective, cone, first, tol, max_iter, limit)

    if len(objective.shape) == 1:
        return one(objective, start)
    assert isinstance(objective, EntrywiseLoss)
    if limit is None:
        together = fit_together(objective, atoms.matrix, cone.penalty, start, tol, max_iter, n_jobs)
        if together is not None:
            check_feasible(objective, atoms, together.value)
            return together

    def column(i: int) -> FitResult:
        return one(
            objective.column(i), None if start is None else np.ascontiguousarray(start[:, i])
        )

    fits = Fits(FitResult, objective.shape[1], atoms.n_atoms)
    for i, fit in enumerate(run(column, range(objective.shape[1]), n_jobs)):
        fits.put(i, fit)
    return fits.result()


def check_feasible(objective: EntrywiseLoss, atoms: Dictionary, values: Vector) -> None:
    """Raise a ValueError if the loss of a target is infinite whatever the weights."""
    wrong = np.flatnonzero(values == np.inf)
    if len(wrong):
        first = int(wrong[0])
        reason = why_infinite(objective.column(first), (atoms.matrix != 0).any(axis=1))
        raise ValueError(
            f"{objective!r} is infinite for every combination of the atoms, as far as can be seen, "
            f"for {len(wrong)} targets, the first of them {first}: {reason}"
        )
