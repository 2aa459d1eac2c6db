"""Non-negative least squares of one target on a dense dictionary that is treated as a whole.

Every step of the active set passes over all atoms. That is fastest on a small dictionary, and on
one in which each atom has near neighbours: there a working set would take in many atoms of a
neighbourhood, where one is needed, and rarely the right one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.kernels import least_squares as kernels
from conepursuit.matrix_fits.results import STATUSES, NNLSResult

ALWAYS_WHOLE = 512
"""A dense dictionary of up to this many atoms is treated as a whole, however many rows it has."""

WHOLE_ENTRIES, WHOLE_ATOMS = 2**19, 2048
"""Entries and atoms up to which a dense dictionary is treated as a whole, without `max_atoms`.

Up to these, passes over all atoms cost less than a working set. A larger one gets a working set.
"""

MOST_ENTRIES = 50_000_000
"""The most entries of a dense copy of atoms.

A larger dictionary stays on its working set. An exact fit that needs a larger copy is not tried.
"""

NEIGHBOURS = 0.98
"""Two atoms are neighbours if the cosine of their angle exceeds this."""

NO_GRAM = np.empty((0, 0))
"""Given to the kernel in place of a Gram matrix; it then computes the rows that it needs."""


def is_small(matrix: Any, limit: int) -> bool:
    """Return whether a dictionary is treated as a whole because of its size alone."""
    if not isinstance(matrix, np.ndarray):
        return False
    n = matrix.shape[1]
    return n <= ALWAYS_WHOLE or (n <= WHOLE_ATOMS and matrix.size <= WHOLE_ENTRIES and limit >= n)


def are_neighbours(columns: Array, inverse_norms: Vector) -> bool:
    """Return whether more than half of the columns have a neighbour among those before them."""
    unit = columns * inverse_norms
    near = np.tril(unit.T @ unit, -1) > NEIGHBOURS
    return 2 * int(np.count_nonzero(near.any(axis=1))) > len(near)


def fit_whole(
    matrix: Array,
    b: Vector,
    start: Vector | None,
    inexact: float,
    limit: int,
    max_steps: int,
    steps: int = 0,
    gram: Array | None = None,
) -> NNLSResult | None:
    """Fit one target with passes over all atoms; None if the data need scaling.

    `inexact` bounds the relative error of the entries of the data. `steps` of the `max_steps` are
    spent already, on the way to the start. `gram` is A'A, if that is known; further columns may
    follow.
    """
    m, n = matrix.shape
    atoms = np.ascontiguousarray(matrix.T, dtype=np.float64)
    if gram is None:  # a tall one is cheap as a whole; of a wide one, few rows are needed
        gram = atoms @ atoms.T if m >= n and m * n > 4096 else NO_GRAM
    x = np.zeros(n) if start is None else start.copy()
    dual = np.empty(n)
    rnorm, gap, proven, code, more = kernels.fit_target(
        atoms, b, gram, x, dual, inexact, limit, max_steps - steps
    )
    if code < 0:
        return None
    return NNLSResult(x, rnorm, dual, gap, proven, STATUSES[code], steps + more)
