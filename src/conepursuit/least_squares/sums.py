"""Non-negative least squares with a given sum of weights: its arguments, and many targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, is_number
from conepursuit.kernels.constants import REDO
from conepursuit.least_squares.many import ManyTargets
from conepursuit.least_squares.sum_kernels import SumFits, SumKernels, WeightSum
from conepursuit.least_squares.sum_target import LOOSE, fit_one_sum
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
    if not is_number(given) or not 0 < given < inf:
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


@dataclass(eq=False)
class ManySums(ManyTargets):
    """Fits of many targets on one dictionary, with weights that have a given sum, ``total``."""

    total: WeightSum

    def no_fits(self, n_targets: int) -> SumFits:
        return SumFits(n_targets, self.matrix.shape[1])

    def kernel_for(self, matrix: Array) -> tuple[Callable[..., None] | None, None]:
        known = SumKernels.of(matrix, self.total, self.max_steps)
        if known is None:
            return None, None
        kernel = known.for_many()

        def fit(targets: Array, *out: Array) -> None:
            kernel(targets, *out)
            rnorm, gap, code = out[3], out[4], out[6]
            with np.errstate(over="ignore"):
                for i in np.flatnonzero(gap > LOOSE * rnorm**2):
                    if gap[i] > LOOSE * float(targets[i] @ targets[i]):
                        code[i] = REDO

        return fit, None

    def fit_alone(
        self, matrix: Any, b: Vector, start: Vector | None, name: str, gram: Array | None
    ) -> NNLSResult:
        return fit_one_sum(matrix, b, self.total, self.inexact, self.max_steps, name)
