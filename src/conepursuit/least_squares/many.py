"""Non-negative least squares of many targets on one dictionary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.callbacks import batch_progress
from conepursuit.kernels import least_squares as kernels
from conepursuit.kernels.constants import BOUNDS, FEW_ATOMS, WIDTH
from conepursuit.least_squares.one_target import fit_one
from conepursuit.least_squares.proofs import NOTHING
from conepursuit.matrix_fits.arguments import as_vector, weighted_matrix
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
    kernel = gram = None
    if together and isinstance(matrix, np.ndarray) and matrix.shape[1] <= GRAM_ATOMS:
        matrix = np.asfortranarray(matrix)  # so that a target which is fitted alone copies nothing
        kernel, gram = batch_kernel(matrix, limit, max_steps)

    def alone(i: int) -> NNLSResult:
        own = matrix if rows is None else weighted_matrix(matrix, rows[:, i])
        first, b = None if start is None else start[:, i], as_vector(B[:, i])
        name, known = f"b[:, {i}]", gram if rows is None else None
        return fit_one(own, b, first, inexact, limit, max_steps, tol, name, known)

    return in_chunks(fits, kernel, alone, B, matrix.shape[1], n_jobs, progress)


def in_chunks(
    fits: Fits[NNLSResult],
    kernel: Callable[..., None] | None,
    alone: Callable[[int], NNLSResult],
    B: Array,
    n: int,
    n_jobs: int,
    progress: bool,
) -> NNLSResult:
    """Fit the columns of B on n atoms, in chunks of columns, or each as a chunk without a kernel.

    `kernel` writes rows of `fits` and a negative code for each target that it does not fit;
    ``alone(i)`` fits one of those.
    """

    def fit_chunk(part: slice) -> int:
        left: Any = range(part.start, part.stop)
        if kernel is not None:
            kernel(as_targets(B[:, part].T), *fits.rows(part))
            left = part.start + np.flatnonzero(fits.code[part] < 0)
        for i in left:
            fits.put(i, alone(i))
        return int(part.stop - part.start)

    most = 1 if kernel is None else CHUNK // (len(B) + n**3 // SOLVED)
    bar: AbstractContextManager[Callable[[int], None]]
    bar = batch_progress(B.shape[1]) if progress else nullcontext(lambda done: None)
    with bar as advance:
        for done in run(fit_chunk, chunks(B.shape[1], most, n_jobs), n_jobs):
            advance(done)
    return fits.result()


def as_targets(rows: Array) -> Array:
    """Return the rows as float64, with the entries of an axis side by side in memory."""
    beside = rows.itemsize in rows.strides and rows.dtype == np.float64
    return rows if beside else np.ascontiguousarray(rows, dtype=np.float64)


def aligned(rows: int, columns: int) -> Array:
    """Return zeros whose rows begin at lines of the cache, padded to a multiple of WIDTH."""
    width = -(-columns // WIDTH) * WIDTH
    memory = np.zeros(rows * width + WIDTH)
    first = -(memory.ctypes.data // 8) % WIDTH
    return memory[first : first + rows * width].reshape(rows, width)


def batch_kernel(
    matrix: Array, limit: int, max_steps: int
) -> tuple[Callable[..., None], Array] | tuple[None, None]:
    """Return the kernel that fits rows of targets, and A'A; None if the data need scaling.

    Columns of zeros follow those of A'A.
    """
    m, n = matrix.shape
    found = atoms_and_gram(matrix)
    if found is None:
        return None, None
    atoms, gram = found
    sums = atoms[:n].sum(axis=1)
    if n <= FEW_ATOMS and limit >= n:
        tables = empty_tables(n, 2**n)
        kernels.tabulate(gram, n, m, *tables)

        def fit_few(targets: Array, *out: Array) -> None:
            kernels.fit_few(0.0, False, NOTHING, atoms, targets, gram, sums, *tables, *out)

        return fit_few, gram[:n]
    inverse_norms, shared = inverted(np.sqrt(gram.diagonal()[:n])), aligned(n, n)
    shared[:, :n] = gram[:n, :n]

    def fit(targets: Array, *out: Array) -> None:
        kernels.fit_targets(
            0.0, False, NOTHING, 0.0, atoms, targets, shared, inverse_norms, sums, limit,
            max_steps, *out,
        )  # fmt: skip

    return fit, shared


def atoms_and_gram(matrix: Array) -> tuple[Array, Array] | None:
    """Return the atoms as rows, and their Gram matrix; None if the data need scaling.

    Rows of zeros behind the atoms fill the lanes of a product, and zeros follow in the Gram matrix.
    """
    m, n = matrix.shape
    atoms = aligned(n + WIDTH, m)
    atoms[:n, :m] = matrix.T
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        gram = atoms @ atoms.T
    if not (safe_squares(gram.diagonal()[:n]) | ~matrix.any(axis=0)).all():
        return None
    return atoms, gram


def empty_tables(n: int, count: int) -> tuple[Array, ...]:
    """Return the memory of the tables of `count` supports of n atoms, for the kernels."""
    return (
        np.zeros((count, FEW_ATOMS, FEW_ATOMS + 1)),
        *np.zeros((2, count, FEW_ATOMS)),
        np.zeros((count, n)),
        np.zeros((count, BOUNDS)),
        np.zeros(count, dtype=np.uint64),
        np.zeros(count, dtype=bool),
    )
