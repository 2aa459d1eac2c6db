"""Non-negative least squares of many targets on one dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np

from conepursuit.arrays import Array
from conepursuit.callbacks import batch_progress
from conepursuit.fits import STATUSES, NNLSResult, inverted
from conepursuit.kernels.constants import LARGEST, LEAST
from conepursuit.targets import writable

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 500_000
"""The most numbers in the targets that a thread takes at a time, so that Ctrl-C ends a fit soon."""

SOLVED = 2**15
"""The linear systems of n atoms take about as long as to fit n^3 over this many more numbers."""

CHUNKS_EACH = 4
"""Chunks for each of several threads, so that all end at about the same time."""

MANY = 2048
"""Up to so many atoms the targets share one Gram matrix."""


class Fits:
    """The results of many targets, a row for each, as they come."""

    def __init__(self, n_targets: int, n: int) -> None:
        self.x, self.dual = np.empty((n_targets, n)), np.empty((n_targets, n))
        self.rnorm, self.gap = np.empty(n_targets), np.empty(n_targets)
        self.proven = np.empty(n_targets, dtype=bool)
        self.code = np.empty(n_targets, dtype=np.int64)
        self.n_iter = np.empty(n_targets, dtype=np.int64)

    def rows(self, part: slice) -> tuple[Array, ...]:
        """Return the rows of some targets, to be written by a kernel."""
        columns = (
            self.x, self.dual, self.rnorm, self.gap, self.proven, self.code, self.n_iter,
        )  # fmt: skip
        return tuple(column[part] for column in columns)

    def put(self, i: int, fit: NNLSResult) -> None:
        """Write the result of one target."""
        self.x[i], self.dual[i], self.rnorm[i], self.gap[i] = fit.x, fit.dual, fit.rnorm, fit.gap
        self.proven[i], self.code[i] = fit.proven, STATUSES.index(fit.status)
        self.n_iter[i] = fit.n_iter

    def result(self) -> NNLSResult:
        """Return all of them."""
        status = np.full(len(self.code), STATUSES[0], dtype=object)
        for i in np.flatnonzero(self.code):
            status[i] = STATUSES[self.code[i]]
        return NNLSResult(
            self.x.T, self.rnorm, self.dual.T, self.gap, self.proven, status, self.n_iter
        )


def fit_many(
    matrix: Any,
    B: Array,
    fit_alone: Callable[[int], NNLSResult],
    limit: int,
    max_steps: int,
    *,
    n_jobs: int,
    progress: bool,
    together: bool,
) -> NNLSResult:
    """Fit the columns of B, together if the kernels can, and alone those for which they cannot."""
    fits = Fits(B.shape[1], matrix.shape[1])
    kernel = None
    if together and isinstance(matrix, np.ndarray) and matrix.shape[1] <= MANY:
        kernel = batch_kernel(matrix, limit, max_steps)

    def fit_chunk(part: slice) -> int:
        alone: Any = range(part.start, part.stop)
        if kernel is not None:
            targets = writable(np.ascontiguousarray(B[:, part].T, dtype=np.float64))
            rows = fits.rows(part)
            kernel(targets, *rows)
            alone = part.start + np.flatnonzero(rows[5] < 0)
        for i in alone:
            fits.put(i, fit_alone(i))
        return int(part.stop - part.start)

    most = 1 if kernel is None else CHUNK // (len(B) + matrix.shape[1] ** 3 // SOLVED)
    bar: AbstractContextManager[Callable[[int], None]]
    bar = batch_progress(B.shape[1]) if progress else nullcontext(lambda done: None)
    with bar as advance:
        for done in run(fit_chunk, chunks(B.shape[1], most, n_jobs), n_jobs):
            advance(done)
    return fits.result()


def run(task: Callable[[T], R], parts: Iterable[T], n_jobs: int) -> Iterator[R]:
    """Yield the results of a task on all parts, by so many threads, in their order.

    After an error or Ctrl-C no other part is begun, and those under way are not waited for.
    """
    if n_jobs == 1:
        yield from map(task, parts)
        return
    pool = ThreadPoolExecutor(n_jobs)
    try:
        yield from pool.map(task, parts)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def chunks(n_targets: int, most: int, n_jobs: int) -> list[slice]:
    """Return slices of targets, of at most so many, and a few for each of several threads."""
    if n_jobs > 1:
        most = min(most, n_targets // (CHUNKS_EACH * n_jobs))
    size = max(1, most)
    return [slice(i, min(i + size, n_targets)) for i in range(0, n_targets, size)]


def batch_kernel(matrix: Array, limit: int, max_steps: int) -> Callable[..., None] | None:
    """Return the kernel that fits rows of targets; None if the data need scaling."""
    from conepursuit.kernels import batch, inverse, table

    m, n = matrix.shape
    few = n <= table.WIDTH and limit >= n
    # Rows to fill the lanes of a product follow the atoms.
    atoms = inverse.aligned(n + 2 * inverse.LANES, inverse.padded(m))
    atoms[:n, :m] = matrix.T
    with np.errstate(over="ignore", invalid="ignore"):  # seen to below
        gram = atoms @ atoms.T
    squares = gram.diagonal()[:n]
    if not (((squares >= LEAST) & (squares <= LARGEST)) | ~matrix.any(axis=0)).all():
        return None
    inverse_norms, sums = inverted(np.sqrt(squares)), atoms[:n].sum(axis=1)
    if few:
        tables = table.tabulate(gram, n, m)
        return lambda targets, *out: table.fit_few(atoms, targets, gram, sums, *tables, *out)
    shared = inverse.aligned(n, inverse.padded(n))
    shared[:, :n] = gram[:n, :n]
    return lambda targets, *out: batch.fit_targets(
        atoms, targets, shared, inverse_norms, sums, limit, max_steps, *out
    )
