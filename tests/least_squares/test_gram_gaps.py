"""The proven gaps of nnls_gram, held to the exact excess of the weights."""

from fractions import Fraction

import numpy as np
import pytest

from conepursuit import nnls_gram
from exact import Problem, exceeds


@pytest.mark.parametrize("seed", range(20))
def test_the_gap_is_the_excess_up_to_rounding(seed):
    rng = np.random.default_rng(seed)
    A = np.vstack([rng.integers(0, 4, (5, 4)), np.ones(4)])  # integers, so that A'A is exact
    b = rng.integers(-3, 9, 6).astype(float)
    problem, size = Problem(A, b[:, None]), float(b @ b)
    for options in ({}, {"max_atoms": 1}, {"max_iter": 1}):
        fit = nnls_gram(A.T @ A, A.T @ b, **options)
        excess = problem.excesses(fit.x[:, None])[0]
        assert fit.proven
        assert not exceeds(excess, fit.gap)
        if not options:
            assert fit.gap - float(Fraction(*excess)) <= 1e-13 * size


def test_one_atom_or_none_that_is_not_zero():
    fit = nnls_gram([[0.0]], [0.0])
    assert (fit.x.tolist(), fit.gap, fit.proven) == ([0.0], 0.0, True)
    fit = nnls_gram([[4.0]], [2.0])
    assert fit.x.tolist() == [0.5]
    assert fit.proven
