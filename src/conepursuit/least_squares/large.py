"""Non-negative least squares of one target on a large dictionary, with few passes over it.

The problem is solved on a working set of atoms. One pass over the dictionary then finds those
outside that descend, and a block of the steepest joins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.kernels import least_squares as kernels
from conepursuit.kernels.constants import (
    CONVERGED,
    MAX_STEPS,
    OPTIMAL,
)
from conepursuit.least_squares.survey import Survey, surveyed
from conepursuit.least_squares.whole import MOST_ENTRIES, fit_whole
from conepursuit.least_squares.working_set import Callback, WorkingSet, shown
from conepursuit.linear import rmatvec
from conepursuit.matrix_fits.results import STATUSES, STOPPED, NNLSResult
from conepursuit.rounding import expected_rounding, product_rounding
from conepursuit.status import Status

JOINING = 64
"""At most this many atoms join after a pass, or as many as have weight if that is more."""

PACE = 0.9
"""An exact fit is given up if a sweep leaves more than this share of the squared residual.

While sweeps leave less, they go on.
"""


def fit_large(
    matrix: Any,
    b: Vector,
    start: Vector | None,
    inexact: float,
    max_steps: int,
    tol: float,
    callback: Callback | None = None,
) -> NNLSResult | None:
    """Fit one target with a working set of atoms; None if the data need scaling.

    `inexact` bounds the relative error of the entries of the data.
    """
    known = surveyed(matrix, b)
    if known is None:
        return None
    n, work, square = matrix.shape[1], WorkingSet(matrix, b, known, inexact), float(b @ b)
    steps, code, scores = 0, OPTIMAL, known.products
    joining = JOINING if known.beyond is None else known.beyond.candidates
    hopeful = isinstance(matrix, np.ndarray)  # an exact fit may be tried
    dense = hopeful and matrix.size <= MOST_ENTRIES
    if hopeful and n >= 2 * len(b) and known.sums.min() < 0 < known.sums.max():
        # The cone of so many signed atoms is likely to be the whole space (Wendel's theorem).
        hopeful, fit = False, exact_fit(matrix, b, known, tol, max_steps)
        if fit is not None:
            return shown(fit, callback)
    if start is not None and start.any():
        used = np.flatnonzero(start)
        work.add(used, start[used])
        code, steps = work.fit(max_steps)
        scores = work.scores(joining)
    while True:
        if tol > 0:
            gap, proven = work.certificate(scores)
            if proven and gap <= tol * 0.5 * (square - float(work.residual @ work.residual)):
                code = CONVERGED
                break
        new = work.steepest(scores, max(joining, work.count))
        if not len(new) or code == MAX_STEPS:
            break
        if hopeful and 2 * (len(work.chosen) + len(new)) > len(b):
            hopeful, fit = False, exact_fit(matrix, b, known, tol, max_steps - steps)
            if fit is not None:
                return shown(fit, callback)
        crowded = len(b) >= n and 2 * (len(work.chosen) + len(new)) > n
        if dense and (crowded or (steps == 0 and work.neighbours(new))):
            fit = fit_whole(matrix, b, work.solution(), inexact, n, max_steps, steps)
            return shown(fit, callback)
        work.add(new)
        code, more = work.fit(max_steps - steps)
        steps += more
        if callback is not None and callback(work.round(steps)):
            code = STOPPED
            break
        scores = work.scores(max(joining, work.count))
    return finished(work, scores, code, steps)


def finished(work: WorkingSet, scores: Vector, code: int, steps: int) -> NNLSResult:
    """Return the fit of a working set as a result, with its last certificate.

    `scores` are those of the residual, unless the callback stopped the fit.
    """
    if code == STOPPED:
        scores = work.scores(1)
    gap, proven = work.certificate(scores, last=code not in (CONVERGED, STOPPED))
    rnorm = float(np.linalg.norm(work.residual))
    if work.beyond is None:
        return NNLSResult(work.solution(), rnorm, -scores, gap, proven, STATUSES[code], steps)
    matrix, dual = work.matrix, work.matrix.products(-work.residual)
    fit = NNLSResult(work.solution(), rnorm, dual, gap, proven, STATUSES[code], steps)
    fit.n_passes = matrix.passes
    return fit


def exact_fit(
    matrix: Array, b: Vector, known: Survey, tol: float, max_sweeps: int
) -> NNLSResult | None:
    """Try to fit a target without residual, by coordinate descent; None if that fails.

    In a cone that fills the space, such as that of many signed atoms, a target is fitted exactly in
    many ways. Coordinate descent finds one of them in a few sweeps; an active set would first
    make as many atoms passive as there are rows.
    """
    (m, n), atoms, scale, chosen = matrix.shape, matrix.T, known.inverse_norms, None
    if not atoms.flags.c_contiguous or atoms.dtype != np.float64:
        if min(3 * m, n) * m > MOST_ENTRIES:
            return None
        slopes = known.products * scale
        chosen = np.argpartition(-slopes, 3 * m)[: 3 * m] if 3 * m < n else np.arange(n)
        atoms, scale = np.ascontiguousarray(matrix[:, chosen].T, dtype=np.float64), scale[chosen]
    weights, r = np.zeros(len(atoms)), b.copy()
    least = max(tol / (1.0 + tol), expected_rounding(m) ** 2) * float(b @ b)
    left, count = kernels.sweeps(atoms, scale, weights, r, least, PACE, max_sweeps)
    if left > least:
        return None
    x = weights if chosen is None else np.zeros(n)
    if chosen is not None:
        x[chosen] = weights
    residual = b - weights @ atoms
    rnorm, size = float(np.linalg.norm(residual)), float(np.linalg.norm(b) + known.norms @ x)
    gap = (0.5 + product_rounding(m)) * (
        rnorm + product_rounding(int(np.count_nonzero(x))) * size
    ) ** 2
    status = Status.CONVERGED if tol > 0 else Status.STATIONARY
    return NNLSResult(x, rnorm, -rmatvec(matrix, residual), gap, True, status, count)
