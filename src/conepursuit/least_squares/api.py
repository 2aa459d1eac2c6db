"""Non-negative least squares, for one target or many, with a proof.

``min ||A x - b||^2 over x >= 0`` is `FCMP(variant=1)` on a `Dictionary` with `LeastSquares`. Here
it is made fast: the shape of the data decides which kernel does the work, and all of them are held
to the generic loop by tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, count
from conepursuit.callbacks import close
from conepursuit.least_squares.audit import check_weighted
from conepursuit.least_squares.many import ManyTargets
from conepursuit.least_squares.one_target import fit_one
from conepursuit.least_squares.sum_target import fit_one_sum
from conepursuit.least_squares.sums import ManySums, weight_sum
from conepursuit.least_squares.working_set import Callback
from conepursuit.linear import is_blocks
from conepursuit.matrix_fits.arguments import (
    NO_LABELS,
    atoms_matched,
    matrix_and_target,
    root_weights,
    rows_matched,
    tolerance,
    weighted_matrix,
    weighted_problem,
    weighted_target,
    weights_in,
    weights_of,
)
from conepursuit.matrix_fits.lazy import beside, fit_blocks, labelled_fields
from conepursuit.matrix_fits.results import NNLSResult, lazy_fields
from conepursuit.matrix_fits.threads import threads
from conepursuit.rounding import WEIGHTED


def nnls(
    A: Any,
    b: Any,
    *,
    weights: Any = None,
    max_atoms: int | None = None,
    max_iter: int | None = None,
    tol: float = 0.0,
    start: Any = None,
    sum_to: float | None = None,
    sum_at_most: float | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    maxiter: int | None = None,
) -> NNLSResult:
    """Minimise ||A x - b|| over x >= 0, and with a given sum of x if one is asked for.

    Parameters
    ----------
    A : array_like, scipy.sparse matrix, LinearOperator or Dask array, shape (m, n)
        One atom per column. Arrays may be float32, float64 or integers, in C or F order, or
        memory-mapped; tables of pandas, polars and xarray are taken too. A Dask array is read in
        passes, in each of which hundreds of atoms are chosen; then ``dual`` is a Dask array.
    b : array_like of shape (m,) or (m, n_targets)
        The target, or one target per column. Where the rows of A and b have labels, as tables of
        pandas and xarray do, they are matched by them; labels that differ are refused. Many targets
        may be a Dask array, alone or in an `xarray.DataArray`: then every attribute of the result
        is one too, nothing is computed yet, and weights and start may be Dask arrays.
    weights : array_like of shape (m,) or of the shape of b, optional
        Minimise ``sum_i weights_i (A x - b)_i^2`` instead. Where a weight is zero, the entry of
        b does not matter and may be NaN.
    max_atoms : int, optional
        The most weights that may be positive. With a limit the fit is non-negative orthogonal
        matching pursuit: the steepest atom gets weight, one at a time, and all weights are
        refitted. (`nnls_path` goes on, and may come back to so many atoms with a closer fit;
        ``nnfit(LeastSquares(b), A, max_atoms=k)`` also exchanges atoms, which takes longer and
        finds closer ones.)
    max_iter : int, optional
        The most linear systems to solve, for each target; 10 n + 10 by default.
    tol : float
        On a large dictionary, where passes over it take most of the time, stop when the gap is
        proved to be at most tol times the decrease since x = 0. With the default, 0, and on small
        dictionaries, the fit goes to the limit of the arithmetic.
    start : array_like of the shape of x, NNLSResult or checkpoint, optional
        Weights to start from, such as those of a similar problem, or ``Checkpoint.load(path)``.
        Dense dictionaries of up to 2048 atoms need none for many targets, and ignore it.
    sum_to : float, optional
        Minimise over x >= 0 with sum(x) = sum_to instead, for every target.
    sum_at_most : float, optional
        Minimise over x >= 0 with sum(x) <= sum_at_most instead, for every target.
    n_jobs : int, optional
        Threads for many targets; -1 for all cores, 1 by default. It does not change the result.
        For a Dask array its scheduler decides.
    progress : bool
        Whether to show a progress bar over many targets (needs rich); not for a Dask array, for
        which ``dask.diagnostics.ProgressBar`` shows one.
    callback : callable, optional
        For one target without a condition on the sum: called with a `Round`, which has iteration,
        keys, weights and rnorm, after every round of a fit on a working set; True ends the fit. A
        small dictionary is fitted at once: that is one round, and the fit is complete whatever the
        callback returns. ``Checkpoint(path)`` writes rounds to a file.
    maxiter : int, optional
        The same as max_iter, as SciPy spells it.

    Returns
    -------
    NNLSResult
        The tuple ``(x, rnorm)`` with attributes dual, gap, proven, status, n_iter, support and
        sum_multiplier. ``to_frame()`` has the weights with the names of atoms and targets.

    Notes
    -----
    Lack of convergence is never an exception: see ``status``. Where the atoms lie in an open half
    space, or where the solution is not degenerate, the gap is a proof. Where atoms fit a target
    exactly in many ways, any of them may be the answer.

    With a condition on the sum, s, there is a number mu, the ``sum_multiplier``, such that
    g = A'(A x - b) is -mu on the support and at least -mu elsewhere. For ``sum_at_most``, mu is not
    negative, and zero unless sum(x) = s. The gap is always a proof: with f(x) = 1/2 ||A x - b||^2,
    f(x) - f* <= <g, x> - s min_j g_j, and with min(0, min_j g_j) for ``sum_at_most``. f* is that of
    sums that are exact; the exact sum of the floats in x differs from s, or exceeds it, by at most
    2^-52 s. Such a condition does not combine with max_atoms, tol, start and callback.

    Apart from that, code for `scipy.optimize.nnls` needs one change: a b of shape (m, 1) is one of
    many targets, with x of shape (n, 1).

    Examples
    --------
    >>> from conepursuit import nnls
    >>> x, rnorm = nnls([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [2.0, 1.0, -1.0])
    >>> x, rnorm
    (array([1.5, 0. ]), 1.224744871391589)
    >>> nnls([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [2.0, 1.0, -1.0]).proven
    True

    Weights that sum to 1, and how fast f would fall if they might sum to more:

    >>> fit = nnls([[1.0, 0.0], [0.0, 1.0]], [0.5, 1.0], sum_to=1.0)
    >>> fit.x, fit.sum_multiplier
    (array([0.25, 0.75]), 0.25)
    """
    if maxiter is not None:
        if max_iter is not None:
            raise ValueError("max_iter and maxiter are the same. Give one of them.")
        max_iter = maxiter
    total = weight_sum(
        sum_to, sum_at_most, max_atoms=max_atoms, tol=tol, start=start, callback=callback
    )
    b, weights, labels = rows_matched(A, b, weights)
    start = start if labels is NO_LABELS else atoms_matched(start, labels)
    matrix, target = matrix_and_target(A, b)
    n, shape = matrix.shape[1], (matrix.shape[1], *target.shape[1:])
    limit = n if max_atoms is None else count(max_atoms, "max_atoms")
    max_steps = 10 * n + 10 if max_iter is None else count(max_iter, "max_iter")
    tol, workers = tolerance(tol), threads(n_jobs)
    if is_blocks(matrix) and not (total is None and isinstance(target, np.ndarray)):
        raise ValueError(
            "A in a Dask array does not combine with sum_to=, sum_at_most= or targets in a Dask "
            "array. Use A.compute() if it fits into memory."
        )
    inexact = 0.0 if weights is None else WEIGHTED
    if target.ndim == 1:
        first = None if start is None else weights_of(start, shape, "start", limit)
        given = target
        matrix, target, _ = weighted_problem(matrix, target, weights)
        if inexact and target.size:
            check_weighted(given, weights, target)
        if total is not None:
            fit = fit_one_sum(matrix, target, total, inexact, max_steps)
        else:
            try:
                fit = fit_one(
                    matrix, target, first, inexact, limit, max_steps, tol, callback=callback
                )
            finally:
                close(callback)
        return fit if labels is NO_LABELS else fit.named(labels)

    if callback is not None:
        raise ValueError(
            "callback= is for one target. Use progress=True to watch many of them, or for a Dask "
            "array dask.diagnostics.ProgressBar()."
        )
    each = len(np.shape(weights)) == 2  # each target has weights of its own
    roots = None if weights is None or each else root_weights(weights, target)
    matrix = matrix if roots is None else weighted_matrix(matrix, roots)
    many = ManyTargets(matrix, inexact, limit, max_steps, tol)
    if total is not None:
        many = ManySums(matrix, inexact, limit, max_steps, tol, total)
    others = {"weights": weights if each else None, "start": weights_in(start)}
    if isinstance(target, np.ndarray):
        fit = Columns(many, roots, workers, progress)(target, **others)
        return fit if labels is NO_LABELS else fit.named(labels)
    return _fit_lazily(Columns(many, roots), target, b, shape, **others)


@dataclass(frozen=True, eq=False)
class Columns:
    """Fits the columns of an array of targets, which may be a block of a larger one.

    Attributes
    ----------
    many : ManyTargets
        The dictionary, and how to fit.
    roots : array of shape (m,) or None
        The roots of row weights that all targets have.
    n_jobs, progress
        As in `nnls`.
    """

    many: ManyTargets
    roots: Vector | None
    n_jobs: int = 1
    progress: bool = False

    def __call__(self, b: Array, weights: Any = None, start: Any = None) -> NNLSResult:
        """Fit targets, with weights of their own and weights of atoms to start from."""
        rows = None if weights is None else root_weights(weights, b)
        roots, target = self.roots if rows is None else rows, b
        if roots is not None:
            target = weighted_target(b, roots)
            if target.size:
                check_weighted(b, roots, target)
        shape = (self.many.matrix.shape[1], b.shape[1])
        first = None if start is None else weights_of(start, shape, "start", self.many.limit)
        return self.many.fit(target, rows, first, n_jobs=self.n_jobs, progress=self.progress)


def _fit_lazily(
    fit: Columns, target: Any, given: Any, shape: tuple[int, ...], **others: Any
) -> NNLSResult:
    """Return the fits of a Dask array of targets, which was `given` as it is or with labels."""
    fields = lazy_fields(NNLSResult, shape[0])
    if isinstance(fit.many, ManySums):
        fields["sum_multiplier"] = None, float
    found = fit_blocks(fit, target, 0, fields, **beside(target, **others))
    return NNLSResult(**labelled_fields(found, given))
