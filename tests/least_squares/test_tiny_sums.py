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


def test_row_weights_may_meet_a_target_of_zeros_and_no_tiny_one():
    w = np.array([1.0, 2.0])
    for b in (np.zeros(2), np.zeros((2, 3))):
        fit = nnls(np.eye(2), b, weights=w)
        assert not fit.x.any()
        assert np.all(fit.gap == 0)
    with pytest.raises(ValueError, match="so small that its digits are lost"):
        nnls(np.eye(2), [1e-320, 1e-320], weights=w)
    nnls(np.eye(2), [1e-320, 1.0], weights=w)
