"""Non-negative fits with any smooth loss, for one target or many, with a proof.

``min f(A x) + lambda sum(x) over x >= 0`` is `FCMP(variant=1)` on ``Cone(Dictionary(A), penalty)``.
Here it is made fast, as `nnls` is for least squares; tests hold it to the generic loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from conepursuit.arrays import Array, Vector, count, is_number
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.linear import matvec
from conepursuit.loss_fits.many import fit_together
from conepursuit.loss_fits.one_target import fit_newton
from conepursuit.matrix_fits.arguments import tolerance, weights_in, weights_of
from conepursuit.matrix_fits.lazy import beside, fit_blocks, labelled_fields, whole_targets
from conepursuit.matrix_fits.results import FitResult, Fits, lazy_fields
from conepursuit.matrix_fits.safe_units import (
    SafeUnits,
    column_powers,
    scaled_columns,
    times_powers,
)
from conepursuit.matrix_fits.threads import run, threads
from conepursuit.objectives import EntrywiseLoss, Objective
from conepursuit.objectives.lazy import LazyLoss
from conepursuit.pursuit.algorithms import FCMP
from conepursuit.pursuit.domains import Cone
from conepursuit.pursuit.solve import minimize
from conepursuit.status import Status

SAFE, SAFE_DATA = 400, 500
"""The largest exponents of two, in size, that are safe for columns of A and for data.

Up to SAFE, products of squares of columns neither overflow nor underflow; beyond, columns are
divided by powers of two. Up to SAFE_DATA, squares of data do not; beyond, data are refused.
"""


def nnfit(
    objective: Objective,
    A: Any,
    *,
    penalty: float = 0.0,
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
    A : array_like, scipy.sparse matrix or LinearOperator, shape (m, n)
        One atom per column.
    penalty : float
        lambda >= 0.
    max_iter : int
        Most steps, for each target.
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
    if not isinstance(objective, Objective | LazyLoss):
        raise ValueError(
            f"the objective must be an Objective of A x; got {type(objective).__name__}. "
            "Use Poisson(counts), say."
        )
    if type(A) is np.ndarray and not A.flags.forc:
        A = np.ascontiguousarray(A)  # in another process it would be, with other last bits
    atoms = A if isinstance(A, Dictionary) else Dictionary(A)
    cone = Cone(atoms, penalty=float(penalty) if is_number(penalty) else penalty)
    steps, tol, workers = count(max_iter, "max_iter"), tolerance(tol), threads(n_jobs)
    rows = tuple(objective.shape)
    many = isinstance(objective, EntrywiseLoss | LazyLoss) and len(rows) == 2
    if rows[:1] != atoms.shape or not (many or len(rows) == 1):
        raise ValueError(
            f"{objective!r} must have one entry, or one row of targets, for each row of A; "
            f"got A of shape {tuple(atoms.matrix.shape)}."
        )
    shape = (atoms.n_atoms, *rows[1:])
    if isinstance(objective, LazyLoss):
        columns = LossColumns(objective.make, atoms, cone.penalty, steps, tol)
        return _fit_lazily(columns, objective, weights_in(start))
    first = None if start is None else weights_of(start, shape, "start")
    check_size(objective)
    powers = unsafe_powers(atoms, cone.penalty)
    if powers is None:
        return _fit(objective, cone, first, tol, steps, workers)
    units, functional = SafeUnits(powers), atoms.positive_functional()
    scaled = Dictionary(units.matrix(atoms.matrix), functional=functional)
    price = float(times_powers(cone.penalty, -int(powers[0]))) if cone.penalty else 0.0
    first = None if first is None else units.weights(first)
    fit = _fit(objective, Cone(scaled, penalty=price), first, tol, steps, workers)
    fit = unscaled(fit, objective, scaled, price, units)
    # One power for all may make entries of other columns underflow: then A is not the A given.
    lost = scaled_columns(scaled.matrix, -powers) != atoms.matrix
    return replace(fit, proven=fit.proven & False) if lost.sum() else fit


@dataclass(frozen=True, eq=False)
class LossColumns:
    """Fits a block of targets; the attributes are the arguments of `nnfit`.

    ``make(y, weights=None, mask=None)`` returns the loss of the block.
    """

    make: Callable[..., EntrywiseLoss]
    atoms: Dictionary
    penalty: float
    max_iter: int
    tol: float

    def __call__(self, y: Array, start: Any = None, **entries: Array) -> FitResult:
        """Fit the columns of y, with `entries`, the weights and the mask, and a start."""
        loss = self.make(y, **entries)
        if start is not None:
            start = np.pad(start, ((0, 0), (0, loss.shape[1] - y.shape[1])))
        return nnfit(
            loss, self.atoms, penalty=self.penalty, max_iter=self.max_iter, tol=self.tol,
            start=start,
        )  # fmt: skip


def _fit_lazily(fit: LossColumns, objective: LazyLoss, start: Any) -> FitResult:
    """Return the fits of a loss of a Dask array."""
    data = whole_targets(objective.y, 0, "y")
    others = beside(data, weights=objective.weights, mask=objective.mask, start=start)
    found = fit_blocks(fit, data, 0, lazy_fields(FitResult, fit.atoms.n_atoms), **others)
    return FitResult(**labelled_fields(found, objective.given))


def check_size(objective: Objective) -> None:
    """Raise a ValueError if the squares of the data of a loss overflow or underflow.

    A loss whose slopes have a bound needs no squares and takes data of any size.
    """
    if isinstance(objective, EntrywiseLoss) and not objective.bounded_slopes:
        largest = float(np.abs(objective.y).max())
        if largest and abs(np.frexp(largest)[1]) > SAFE_DATA:
            raise ValueError(
                f"the data of {objective!r} are so large or small that their squares overflow or "
                f"underflow; the largest is {largest:.3g}. Multiply them by a constant, and x "
                "with them."
            )


def unsafe_powers(atoms: Dictionary, penalty: float) -> Array | None:
    """Return the powers of two to divide the atoms by; None if their squares are safe.

    With a penalty it is the same power for all, since the penalty on a unit of weight is divided by
    it as well and must stay the same for all atoms.
    """
    if isinstance(atoms.matrix, LinearOperator):
        return None
    powers = column_powers(atoms.matrix)
    if (np.abs(powers) <= SAFE).all():
        return None
    return np.full_like(powers, powers.max()) if penalty else powers


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
    objective: Objective, cone: Cone, start: Array | None, tol: float, max_iter: int, n_jobs: int
) -> FitResult:
    """Fit one target, or each column of the data of a loss."""
    if len(objective.shape) == 1:
        return fit_single(objective, cone, start, tol, max_iter)
    assert isinstance(objective, EntrywiseLoss)
    return fit_columns(objective, cone, start, tol, max_iter, n_jobs)


def fit_single(
    objective: Objective, cone: Cone, start: Vector | None, tol: float, max_iter: int
) -> FitResult:
    """Fit one target by Newton's method, or by the generic loop if f or A do not allow that."""
    atoms = cone.atoms
    assert isinstance(atoms, Dictionary)
    if isinstance(atoms.matrix, LinearOperator) or objective.hessian(objective.origin()) is None:
        return _by_the_generic_loop(objective, cone, start, tol, max_iter)
    point, gap, proven, status, n_iter = fit_newton(
        objective, atoms, cone.penalty, start, tol, max_iter
    )
    if not cone.penalty and objective.recedes(point.x):
        status = Status.UNBOUNDED
    return FitResult(
        point.weights, point.total(cone.penalty), point.scores, gap, proven, status, n_iter
    )


def _by_the_generic_loop(
    objective: Objective, cone: Cone, start: Vector | None, tol: float, max_iter: int
) -> FitResult:
    """Fit one target by the generic loop, which needs neither the columns of A nor a Hessian."""
    atoms = cone.atoms
    assert isinstance(atoms, Dictionary)
    result = minimize(objective, cone, FCMP(variant=1), tol=tol, max_iter=max_iter, start=start)
    scores = atoms.scores(objective.value_and_gradient(result.x)[1]) + cone.penalty
    certificate = result.certificate
    return FitResult(
        atoms.coefficients(result), result.value, scores, certificate.gap, certificate.proven,
        result.status, result.n_iter,
    )  # fmt: skip


def fit_columns(
    objective: EntrywiseLoss,
    cone: Cone,
    start: Array | None,
    tol: float,
    max_iter: int,
    n_jobs: int,
) -> FitResult:
    """Fit each column of the data of a loss, together if the kernels can."""
    atoms = cone.atoms
    assert isinstance(atoms, Dictionary)
    together = fit_together(objective, atoms.matrix, cone.penalty, start, tol, max_iter, n_jobs)
    if together is not None:
        return together

    def one(i: int) -> FitResult:
        first = None if start is None else np.ascontiguousarray(start[:, i])
        return fit_single(objective.column(i), cone, first, tol, max_iter)

    fits = Fits(FitResult, objective.shape[1], atoms.n_atoms)
    for i, fit in enumerate(run(one, range(objective.shape[1]), n_jobs)):
        fits.put(i, fit)
    return fits.result()
