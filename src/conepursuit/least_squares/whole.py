"""Non-negative least squares of one target on a dense dictionary that is treated as a whole.

Every step of the active set passes over all atoms. That is the best that can be done with a small
dictionary, and with one in which each atom has near neighbours: there a working set would take in
whole neighbourhoods, of which one atom each is needed, and never the right one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.matrix_fits.arguments import writable
from conepursuit.matrix_fits.results import STATUSES, NNLSResult

ALWAYS_WHOLE = 512
"""Up to so many atoms a dense dictionary is treated as a whole, whatever it is."""

WHOLE_ENTRIES, WHOLE_ATOMS = 2**19, 2048
"""Entries, and atoms, up to which passes over a dictionary cost less than a working set."""

MOST_ENTRIES = 50_000_000
"""Of a copy of atoms."""

NEIGHBOURS = 0.98
"""Cosine of the angle from which on two atoms are neighbours."""

NO_GRAM = np.empty((0, 0))


def is_small(matrix: Any, limit: int) -> bool:
    """Return whether a dictionary is treated as a whole without looking at its entries."""
    if not isinstance(matrix, np.ndarray):
        return False
    n = matrix.shape[1]
    return n <= ALWAYS_WHOLE or (n <= WHOLE_ATOMS and matrix.size <= WHOLE_ENTRIES and limit >= n)


def are_neighbours(columns: Array, inverse_norms: Vector) -> bool:
    """Return whether most of some atoms have a neighbour among those before them."""
    unit = columns * inverse_norms
    near = np.tril(unit.T @ unit, -1) > NEIGHBOURS
    return 2 * int(np.count_nonzero(near.any(axis=1))) > len(near)


@cache
def _kernel() -> Any:
    """Return the kernel for one target; to import it in every call takes a microsecond."""
    from conepursuit.kernels.least_squares.one_target import fit_target

    return fit_target


def fit_whole(
    matrix: Array,
    b: Vector,
    start: Vector | None,
    inexact: float,
    limit: int,
    max_steps: int,
    steps: int = 0,
) -> NNLSResult | None:
    """Fit one target with passes over all atoms; None if the data need scaling.

    The entries of the data are right up to a share of `inexact`. Of the most steps that may be
    made, `steps` were made on the way to the start.
    """
    m, n = matrix.shape
    atoms = writable(np.ascontiguousarray(matrix.T, dtype=np.float64))
    # A tall Gram matrix is cheap as a whole; of a wide one, few rows are needed.
    gram = atoms @ atoms.T if m >= n and m * n > 4096 else NO_GRAM
    x = np.zeros(n) if start is None else start.copy()
    dual, rnorm, gap, proven, code, more = _kernel()(
        atoms, b, gram, x, inexact, limit, max_steps - steps
    )
    if code < 0:
        return None
    return NNLSResult(x, rnorm, dual, gap, proven, STATUSES[code], steps + more)
