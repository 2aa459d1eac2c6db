"""Proofs of weights that are rounded to the few digits that subnormal numbers have."""

from fractions import Fraction

import numpy as np
import pytest

from conepursuit import nnls
from hulls import hull_excess

A = 1e200 * np.array([[1.0, 0.3], [0.1, 1.0]])


@pytest.mark.parametrize("condition", ["sum_to", "sum_at_most"])
@pytest.mark.parametrize("total", [1e-310, 1e-318, 1e-321])
@pytest.mark.parametrize("second", [0.37, 0.6])
def test_the_gap_has_the_rounding_of_the_weights(condition, total, second):
    b = 1e200 * total * np.array([0.9, second])
    fit = nnls(A, b, **{condition: total})
    full = condition == "sum_to"
    assert fit.proven
    assert hull_excess(A, b, total, fit.x, always_full=full) <= Fraction(fit.gap)
    assert fit.gap <= 1e-3 * float(b @ b)
