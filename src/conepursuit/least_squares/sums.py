"""Non-negative least squares with a given sum of weights: its arguments, and many targets."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.least_squares.many import GRAM_ATOMS, in_chunks
from conepursuit.least_squares.sum_kernels import SumFits, SumKernels, WeightSum
from conepursuit.least_squares.sum_target import fit_one_sum
from conepursuit.matrix_fits.arguments import as_vector, weighted_matrix
from conepursuit.matrix_fits.results import NNLSResult


def weight_sum(sum_to: Any, sum_at_most: Any, **others: Any) -> WeightSum | None:
    """Return the condition on the sum of weights, None without one, or raise a ValueError.

    `others` are the arguments of `nnls` that cannot be given beside it, None or 0 if they were not.
    """
    if sum_to is None and sum_at_most is None:
        return None
    if sum_to is not None and sum_at_most is not None:
        raise ValueError(
            f"sum_to and sum_at_most exclude each other; got {sum_to!r} and {sum_at_most!r}. "
            "Give sum_to for weights with that sum, or sum_at_most for weights up to it."
        )
    name, given = ("sum_to", sum_to) if sum_at_most is None else ("sum_at_most", sum_at_most)
    number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
    if not number or not 0 < given < inf:
        raise ValueError(
            f"{name} is the sum of all weights and must be a positive finite number, the same for "
            f"all targets; got {given!r}. Use {name}=1.0 for shares."
        )
    for other, value in others.items():
        if value is not None and not (isinstance(value, int | float | np.number) and value == 0):
            raise ValueError(
                f"{other} cannot be combined with {name}; got {other}={value!r}. Leave it out."
            )
    return WeightSum(float(given), sum_at_most is not None)


def fit_many_sum(
    matrix: Any,
    B: Array,
    rows: Array | None,
    total: WeightSum,
    inexact: float,
    max_steps: int,
    *,
    n_jobs: int,
    progress: bool,
) -> NNLSResult:
    """Fit the columns of B as `fit_many` does, with the sum of weights `total`."""
    n = matrix.shape[1]
    fits, kernel = SumFits(B.shape[1], n), None
    if rows is None and isinstance(matrix, np.ndarray) and n <= GRAM_ATOMS:
        matrix = np.asfortranarray(matrix)  # so that a target which is fitted alone copies nothing
        known = SumKernels.of(matrix, total, max_steps)
        kernel = None if known is None else known.for_many()

    def alone(i: int) -> NNLSResult:
        own = matrix if rows is None else weighted_matrix(matrix, rows[:, i])
        return fit_one_sum(own, as_vector(B[:, i]), total, inexact, max_steps, f"b[:, {i}]")

    return in_chunks(fits, kernel, alone, B, n, n_jobs, progress)
