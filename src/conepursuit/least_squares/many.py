"""Non-negative least squares of many targets on one dictionary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.callbacks import batch_progress
from conepursuit.least_squares.one_target import fit_one
from conepursuit.matrix_fits.arguments import as_vector, weighted_matrix, writable
from conepursuit.matrix_fits.results import Fits, NNLSResult
from conepursuit.matrix_fits.safe_units import inverted, safe_squares
from conepursuit.matrix_fits.threads import chunks, run

CHUNK = 500_000
"""The most numbers in the chunk that a thread takes at a time, so that Ctrl-C ends a fit soon.

A target counts as its m entries, and n^3 / `SOLVED` for its linear systems.
"""

SOLVED = 2**15
"""The linear systems of a target on n atoms count as n^3 over this many numbers in a chunk."""


GRAM_ATOMS = 2048
"""On dense dictionaries of up to this many atoms the targets share one Gram matrix.

With more atoms, each target is fitted alone.
"""


def fit_many(
    matrix: Any,
    B: Array,
    rows: Array | None,
    start: Array | None,
    inexact: float,
    limit: int,
    max_steps: int,
    tol: float,
    *,
    n_jobs: int,
    progress: bool,
    together: bool,
) -> NNLSResult:
    """Fit the columns of B, together if the kernels can, and alone those for which they cannot.

    `together` allows the kernels. Where each target has row weights of its own, `rows` has the
    roots of these weights; B has been multiplied by them, the matrix has not. The other arguments
    are those of `fit_one`.
    """
    fits = Fits(NNLSResult, B.shape[1], matrix.shape[1])
    kernel = None
    if together and isinstance(matrix, np.ndarray) and matrix.shape[1] <= GRAM_ATOMS:
        kernel = batch_kernel(matrix, limit, max_steps)

    def fit_chunk(part: slice) -> int:
        alone: Any = range(part.start, part.stop)
        if kernel is not None:
            targets = writable(np.ascontiguousarray(B[:, part].T, dtype=np.float64))
            kernel(targets, *fits.rows(part))
            alone = part.start + np.flatnonzero(fits.code[part] < 0)
        for i in alone:
            own = matrix if rows is None else weighted_matrix(matrix, rows[:, i])
            first, b = None if start is None else start[:, i], as_vector(B[:, i])
            fits.put(i, fit_one(own, b, first, inexact, limit, max_steps, tol, f"b[:, {i}]"))
        return int(part.stop - part.start)

    most = 1 if kernel is None else CHUNK // (len(B) + matrix.shape[1] ** 3 // SOLVED)
    bar: AbstractContextManager[Callable[[int], None]]
    bar = batch_progress(B.shape[1]) if progress else nullcontext(lambda done: None)
    with bar as advance:
        for done in run(fit_chunk, chunks(B.shape[1], most, n_jobs), n_jobs):
            advance(done)
    return fits.result()


def batch_kernel(matrix: Array, limit: int, max_steps: int) -> Callable[..., None] | None:
    """Return the kernel that fits rows of targets; None if the data need scaling."""
    from conepursuit.kernels.least_squares import inverse, many_targets, supports

    m, n = matrix.shape
    few = n <= supports.WIDTH and limit >= n
    # Rows of zeros behind the atoms fill the lanes of a product.
    atoms = inverse.aligned(n + 2 * inverse.LANES, inverse.padded(m))
    atoms[:n, :m] = matrix.T
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        gram = atoms @ atoms.T
    squares = gram.diagonal()[:n]
    if not (safe_squares(squares) | ~matrix.any(axis=0)).all():
        return None
    inverse_norms, sums = inverted(np.sqrt(squares)), atoms[:n].sum(axis=1)
    if few:
        tables = supports.tabulate(gram, n, m)
        return lambda targets, *out: supports.fit_few(atoms, targets, gram, sums, *tables, *out)
    shared = inverse.aligned(n, inverse.padded(n))
    shared[:, :n] = gram[:n, :n]
    return lambda targets, *out: many_targets.fit_targets(
        atoms, targets, shared, inverse_norms, sums, limit, max_steps, *out
    )
