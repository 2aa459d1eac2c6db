"""Non-negative least squares of many targets on one dictionary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
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


@dataclass(eq=False)
class ManyTargets:
    """Fits of many targets on one dictionary.

    What they share, such as the Gram matrix, is computed for the first of them and kept. Another
    process that gets a copy computes it again.

    Attributes
    ----------
    matrix : array, sparse array or LinearOperator, shape (m, n)
        The dictionary. Row weights that all targets have are multiplied in already.
    inexact, limit, max_steps, tol
        As in `fit_one`.
    """

    matrix: Any
    inexact: float
    limit: int
    max_steps: int
    tol: float

    def fit(
        self, B: Array, rows: Array | None, start: Array | None, *, n_jobs: int, progress: bool
    ) -> NNLSResult:
        """Fit the columns of B, together if the kernels can, and alone those for which they cannot.

        Where each target has row weights of its own, `rows` has the roots of these weights; B has
        been multiplied by them. `start` has weights to start from. A part of the targets is a chunk
        for one thread; without a kernel each target is.
        """
        m, n = self.matrix.shape
        matrix, kernel, gram = self.matrix, None, None
        if rows is None and (start is None or self.limit >= n):
            matrix, kernel, gram = self._shared
        fits = self.no_fits(B.shape[1])

        def alone(i: int) -> NNLSResult:
            own = matrix if rows is None else weighted_matrix(matrix, rows[:, i])
            first = None if start is None else as_vector(start[:, i])
            return self.fit_alone(own, as_vector(B[:, i]), first, f"b[:, {i}]", gram)

        def fit_chunk(part: slice) -> int:
            left: Any = range(part.start, part.stop)
            if kernel is not None:
                kernel(as_targets(B[:, part].T), *fits.rows(part))
                left = part.start + np.flatnonzero(fits.code[part] < 0)
            for i in left:
                fits.put(i, alone(i))
            return int(part.stop - part.start)

        most = 1 if kernel is None else CHUNK // (m + n**3 // SOLVED)
        bar: AbstractContextManager[Callable[[int], None]]
        bar = batch_progress(B.shape[1]) if progress else nullcontext(lambda done: None)
        with bar as advance:
            for done in run(fit_chunk, chunks(B.shape[1], most, n_jobs), n_jobs):
                advance(done)
        return fits.result()

    @cached_property
    def _shared(self) -> tuple[Any, Callable[..., None] | None, Array | None]:
        """The matrix, the kernel that fits rows of targets or None, and the Gram matrix or None."""
        if not isinstance(self.matrix, np.ndarray) or self.matrix.shape[1] > GRAM_ATOMS:
            return self.matrix, None, None
        matrix = np.asfortranarray(self.matrix)  # a target that is fitted alone copies nothing
        return matrix, *self.kernel_for(matrix)

    def __getstate__(self) -> dict[str, Any]:  # kernels cannot be pickled
        return {name: value for name, value in vars(self).items() if name != "_shared"}

    def no_fits(self, n_targets: int) -> Fits[NNLSResult]:
        """Return the memory for the results of so many targets."""
        return Fits(NNLSResult, n_targets, self.matrix.shape[1])

    def kernel_for(self, matrix: Array) -> tuple[Callable[..., None] | None, Array | None]:
        """Return the kernel that fits rows of targets, and A'A for targets that it gives back.

        It writes rows of `no_fits`, and a negative code for each target that it does not fit.
        """
        return batch_kernel(matrix, self.limit, self.max_steps)

    def fit_alone(
        self, matrix: Any, b: Vector, start: Vector | None, name: str, gram: Array | None
    ) -> NNLSResult:
        """Fit one target; the arguments are those of `fit_one`."""
        return fit_one(
            matrix, b, start, self.inexact, self.limit, self.max_steps, self.tol, name, gram
        )


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
