"""Non-negative fits of many targets on one small dictionary, with the losses the kernels know."""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.kernels import loss_fits as kernels
from conepursuit.kernels.constants import INFEASIBLE, SQUARED, STALLED
from conepursuit.losses import kernel_code
from conepursuit.matrix_fits.results import FitResult, Fits
from conepursuit.matrix_fits.threads import chunks, run
from conepursuit.objectives import EntrywiseLoss
from conepursuit.status import Status

HESSIAN_ATOMS = 512
"""On dense dictionaries of up to this many atoms the kernels fit all targets, with their Hessians.

With more atoms, each target is fitted alone.
"""

WORK, SHARED_WORK, LEAST_SIZE = 2_000_000, 10_000_000, 500
"""How much work one call of a kernel does, so that Ctrl-C ends a fit within tenths of a second.

The work of a target is the number of entries of A, or LEAST_SIZE if that is more. A call gets as
many targets as fit into WORK, or into SHARED_WORK where they share a Hessian, which each call makes
anew.
"""


def fit_together(
    objective: EntrywiseLoss,
    matrix: Any,
    penalty: float,
    start: Array | None,
    tol: float,
    max_iter: int,
    n_jobs: int,
) -> FitResult | None:
    """Fit each column of the data of a loss; None if the kernels cannot.

    The value is infinite where that is so for all weights, as far as can be seen.
    """
    code = kernel_code(objective)
    if code is None or not isinstance(matrix, np.ndarray) or matrix.shape[1] > HESSIAN_ATOMS:
        return None
    atoms = np.ascontiguousarray(matrix.T, dtype=np.float64)
    targets = np.ascontiguousarray(objective.y.T)
    weights = entry_weights(objective)
    fits = Fits(FitResult, len(targets), len(atoms))
    fits.x[:] = 0.0 if start is None else start.T

    def fit(part: slice) -> None:
        own = weights if len(weights) == 1 else weights[part]
        kernels.fit_losses(
            *code, atoms, targets[part], own, penalty, tol, max_iter, *fits.rows(part)
        )

    work = SHARED_WORK if code[0] == SQUARED and len(weights) == 1 else WORK
    most = work // max(atoms.size, LEAST_SIZE)
    for _ in run(fit, chunks(len(targets), most, n_jobs), n_jobs):
        pass
    fits.code[fits.code == INFEASIBLE] = STALLED  # their values are infinite
    if objective.constants is not None:  # the kernels leave them out
        fits.measure += objective.weighted(objective.constants).sum(axis=0)
    for place in np.flatnonzero(~np.isfinite(fits.gap)):  # f(x) minus its infimum is an estimate
        cost = penalty * float(fits.x[place].sum())
        value = float(fits.measure[place]) - cost
        fits.gap[place] = objective.column(int(place)).excess(value) + cost
        fits.proven[place] = False
    if objective.may_recede and not penalty:
        for i, row in enumerate(fits.x):
            if objective.column(i).recedes(row @ atoms):
                fits.end(i, Status.UNBOUNDED)
    return fits.result()


def entry_weights(objective: EntrywiseLoss) -> Array:
    """Return the weights of the entries, a row for each target, or one row if they agree."""
    if objective.weights is None:
        return np.ones((1, objective.shape[0]))
    rows = np.ascontiguousarray(objective.weights.T)
    return rows[:1] if (rows == rows[:1]).all() else rows
