"""Where no step makes progress, the size of the gap says whether the fit is STATIONARY."""

import numpy as np
import pytest

from conepursuit import Huber, Status, nnfit

A = np.array([[4.0, -8.0, 3.0], [7.0, 22.0, -24.0], [-5.0, 19.0, -15.0]])
B = np.array([-6.0, 21.0, 21.0])


@pytest.mark.parametrize("power", [-40, 0, 40])
def test_a_gap_that_is_rounding_is_that_in_any_units(power):
    weights = np.full(3, 2.0**power)
    fit = nnfit(Huber(B, weights=weights), A, tol=0.0, max_iter=300)
    assert fit.status in (Status.STATIONARY, Status.CONVERGED)
    assert fit.proven
    assert fit.gap <= 1e-11 * 2.0**power
