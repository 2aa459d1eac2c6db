"""The fit of one target by all columns: by Newton's method, or by the generic loop."""

from __future__ import annotations

from scipy.sparse.linalg import LinearOperator

from conepursuit.arrays import Vector
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.linear import is_blocks
from conepursuit.loss_fits.one_target import fit_newton
from conepursuit.matrix_fits.results import FitResult
from conepursuit.objectives import EntrywiseLoss, FreeIntercept, Objective
from conepursuit.objectives.base import hessian_at
from conepursuit.pursuit.algorithms import FCMP
from conepursuit.pursuit.domains import Cone
from conepursuit.pursuit.solve import minimize
from conepursuit.status import Status


def has_models(objective: Objective, cone: Cone) -> bool:
    """Return whether f has a Hessian and A shows its columns, as Newton's method needs.

    Of a Dask array it needs blocks of whole rows, and a Hessian that is diagonal, up to the rank
    one of an intercept.
    """
    atoms = cone.atoms
    assert isinstance(atoms, Dictionary)
    matrix = atoms.matrix
    if is_blocks(matrix):
        return matrix.column_blocks == 1 and isinstance(objective, EntrywiseLoss | FreeIntercept)
    operator = isinstance(matrix, LinearOperator)
    return not operator and hessian_at(objective, objective.origin()) is not None


def fit_single(
    objective: Objective, cone: Cone, start: Vector | None, tol: float, max_iter: int
) -> FitResult:
    """Fit one target by Newton's method, or by the generic loop if f or A do not allow that."""
    atoms = cone.atoms
    assert isinstance(atoms, Dictionary)
    if not has_models(objective, cone):
        return by_the_generic_loop(objective, cone, start, tol, max_iter)
    point, gap, proven, status, n_iter = fit_newton(
        objective, atoms, cone.penalty, start, tol, max_iter
    )
    if not cone.penalty and objective.recedes(point.x):
        status = Status.UNBOUNDED
    return FitResult(
        point.weights, point.total(cone.penalty), point.scores, gap, proven, status, n_iter
    )


def by_the_generic_loop(
    objective: Objective,
    cone: Cone,
    start: Vector | None,
    tol: float,
    max_iter: int,
    max_atoms: int | None = None,
) -> FitResult:
    """Fit one target by the generic loop, which needs neither the columns of A nor a Hessian."""
    atoms = cone.atoms
    assert isinstance(atoms, Dictionary)
    result = minimize(
        objective, cone, FCMP(), tol=tol, max_iter=max_iter, max_atoms=max_atoms, start=start
    )
    scores = atoms.scores(objective.value_and_gradient(result.x)[1]) + cone.penalty
    certificate = result.certificate
    return FitResult(
        result.coef, result.value, scores, certificate.gap, certificate.proven,
        result.status, result.n_iter,
    )  # fmt: skip
