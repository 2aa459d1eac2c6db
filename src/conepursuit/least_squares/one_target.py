"""Non-negative least squares of one target: picks the method for the size of the dictionary."""

from __future__ import annotations

from typing import Any

from conepursuit.arrays import Array, Vector, norm
from conepursuit.least_squares.audit import certificate_of, lost_to_weights, with_best_gap
from conepursuit.least_squares.large import fit_large
from conepursuit.least_squares.path import fit_greedily
from conepursuit.least_squares.whole import fit_whole, is_small
from conepursuit.least_squares.working_set import Callback, in_units, shown
from conepursuit.linear import check_finite, matvec, rmatvec
from conepursuit.matrix_fits.arguments import check_entries
from conepursuit.matrix_fits.results import NNLSResult
from conepursuit.matrix_fits.safe_units import SafeUnits
from conepursuit.status import Status


def fit_one(
    matrix: Any,
    b: Vector,
    start: Vector | None,
    inexact: float,
    limit: int,
    max_steps: int,
    tol: float,
    name: str = "b",
    gram: Array | None = None,
    callback: Callback | None = None,
) -> NNLSResult:
    """Fit one target with the kernel for the size of the dictionary.

    `inexact` bounds the relative error of the entries of the data; `name` is that of b in error
    messages; `gram` is A'A, if that is known; `callback` is called after each fit on a working set,
    or once where all atoms are fitted at once. Data whose squares overflow or underflow are fitted
    in other units.
    """
    n = matrix.shape[1]
    if is_small(matrix, limit):
        fit = fit_whole(matrix, b, start, inexact, limit, max_steps, gram=gram)
        fit = shown(fit, callback)
    elif limit < n:
        fit = fit_greedily(matrix, b, start, inexact, limit, max_steps, callback)
    else:
        fit = fit_large(matrix, b, start, inexact, max_steps, tol, callback)
    if fit is not None and fit.n_passes and fit.status in (Status.CONVERGED, Status.STOPPED):
        return fit  # an audit takes some passes, for a gap that is small enough or not asked for
    if fit is not None:
        return with_best_gap(fit, matrix, b, inexact, name)
    check_finite(matrix, "A")
    check_entries(b, name)
    units = SafeUnits.of(matrix, b)
    scaled, unit = units.matrix(matrix), units.vector(b)
    first = None if start is None else units.weights(start)
    again = in_units(callback, units)
    fit = fit_one(scaled, unit, first, inexact, limit, max_steps, tol, callback=again)
    x, exact = units.weights_back(fit.x)
    rnorm, gap, proven, dual, status = fit.rnorm, fit.gap, fit.proven, fit.dual, fit.status
    if not exact:  # weights overflow or underflow: certify the nearest floats, which are returned
        kept = units.weights(x)
        residual = matvec(scaled, kept) - unit
        audit = certificate_of(scaled, unit, kept, inexact, name)
        rnorm, dual, status = norm(residual), rmatvec(scaled, residual), Status.STALLED
        gap, proven = audit.gap, audit.proven
    proven = proven and not lost_to_weights(inexact, units)
    return NNLSResult(
        x, units.length_back(rnorm), units.slopes_back(dual), units.gap_back(gap), proven, status,
        fit.n_iter,
    )  # fmt: skip
