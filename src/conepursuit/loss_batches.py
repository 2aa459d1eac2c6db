"""Non-negative fits of many targets on one small dictionary, with the losses the kernels know."""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.batches import chunks, run
from conepursuit.fits import STATUSES, FitResult
from conepursuit.kernels.constants import (
    BETA,
    HUBER,
    INFEASIBLE,
    KULLBACK_LEIBLER,
    LOGISTIC,
    SQUARED,
)
from conepursuit.objectives import (
    BetaDivergence,
    EntrywiseLoss,
    Huber,
    KullbackLeibler,
    LeastSquares,
    Logistic,
    Poisson,
)
from conepursuit.results import Status
from conepursuit.targets import writable

MANY = 512
"""Up to so many atoms a kernel keeps the Hessian of a target."""

WORK, SHARED_WORK, LEAST_SIZE = 2_000_000, 10_000_000, 500
"""The most numbers of A, once for each target, that are fitted in one call, so that Ctrl-C ends a
fit soon: tenths of a second. More where targets share a Hessian, which each call makes anew; and a
target costs no less than one with so many numbers."""


def kernel_code(objective: EntrywiseLoss) -> tuple[int, float] | None:
    """Return how the kernels call a loss, and its parameter; None for a loss they do not know."""
    if isinstance(objective, KullbackLeibler):  # a Poisson loss differs by a constant
        return KULLBACK_LEIBLER, objective.shift
    if isinstance(objective, Huber):
        return HUBER, objective.delta
    if isinstance(objective, BetaDivergence) and 1 < objective.beta < 2:
        return BETA, objective.beta
    known = {LeastSquares: SQUARED, Logistic: LOGISTIC}
    code = known.get(type(objective))
    return None if code is None else (code, 0.0)


def fit_together(
    objective: EntrywiseLoss,
    matrix: Any,
    penalty: float,
    start: Array | None,
    tol: float,
    max_iter: int,
    n_jobs: int,
) -> FitResult | None:
    """Fit each column of the data of a loss; None if the kernels cannot."""
    code = kernel_code(objective)
    if code is None or not isinstance(matrix, np.ndarray) or matrix.shape[1] > MANY:
        return None
    from conepursuit.kernels.newton import fit_losses

    atoms = writable(np.ascontiguousarray(matrix.T, dtype=np.float64))
    targets = writable(np.ascontiguousarray(objective.y.T))
    weights = entry_weights(objective)
    n_targets, n = len(targets), len(atoms)
    x = np.zeros((n_targets, n)) if start is None else np.ascontiguousarray(start.T)
    dual, value, gap = np.empty((n_targets, n)), np.empty(n_targets), np.empty(n_targets)
    proven = np.empty(n_targets, dtype=bool)
    ended, n_iter = np.empty(n_targets, dtype=np.int64), np.empty(n_targets, dtype=np.int64)

    def fit(part: slice) -> None:
        own = weights if len(weights) == 1 else weights[part]
        fit_losses(
            *code, atoms, targets[part], own, penalty, tol, max_iter, x[part], dual[part],
            value[part], gap[part], proven[part], ended[part], n_iter[part],
        )  # fmt: skip

    work = SHARED_WORK if code[0] == SQUARED and len(weights) == 1 else WORK
    most = work // max(atoms.size, LEAST_SIZE)
    for _ in run(fit, chunks(n_targets, most, n_jobs), n_jobs):
        pass
    check_feasible(objective, ended)
    if isinstance(objective, Poisson):
        value += objective.weighted(objective.constants).sum(axis=0)
    status = statuses(objective, atoms, x, ended, penalty)
    return FitResult(x.T, value, dual.T, gap, proven, status, n_iter)


def entry_weights(objective: EntrywiseLoss) -> Array:
    """Return the weights of the entries, a row for each target, or one row if they agree."""
    if objective.weights is None:
        return np.ones((1, objective.shape[0]))
    rows = writable(np.ascontiguousarray(objective.weights.T))
    return rows[:1] if (rows == rows[:1]).all() else rows


def check_feasible(objective: EntrywiseLoss, ended: Array) -> None:
    """Raise a ValueError if the loss of a target is infinite whatever the weights."""
    wrong = np.flatnonzero(ended == INFEASIBLE)
    if len(wrong):
        raise ValueError(
            f"{objective!r} is infinite for every combination of the atoms, as far as can be seen, "
            f"for {len(wrong)} targets, the first of them {wrong[0]}: some entry of the data is "
            "positive where all atoms are zero. Mask such entries, or add an atom that reaches "
            "them."
        )


def statuses(
    objective: EntrywiseLoss, atoms: Array, x: Array, ended: Array, penalty: float
) -> Array:
    """Return why the fits ended; a loss may have no minimiser."""
    status = np.empty(len(ended), dtype=object)
    status[:] = [STATUSES[code] for code in ended]
    if isinstance(objective, Logistic) and not penalty:
        for i, row in enumerate(x):
            if objective.column(i).recedes(row @ atoms):
                status[i] = Status.UNBOUNDED
    return status
