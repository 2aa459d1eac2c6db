"""Proofs of fits on a working set that need slopes in twice the precision."""

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from conepursuit.least_squares.large import fit_large
from conepursuit.rounding import resolution
from exact import Problem, exceeds


@pytest.mark.parametrize("seed", range(6))
def test_a_sharpened_proof_is_fine_in_whatever_order_the_atoms_came(seed):
    rng, (m, n) = np.random.default_rng(seed), (12, 30)
    A = np.exp(-np.linspace(0, 5, m)[:, None] / np.geomspace(0.05, 20, n))
    b = A @ (rng.random(n) * (rng.random(n) < 0.3)) + 1e-3 * rng.standard_normal(m)
    fit = fit_large(aslinearoperator(A), b, None, 0.0, 10 * n + 10, 0.0)
    assert fit.proven
    assert fit.gap <= 0.50001 * resolution(m) * float(b @ b)
    assert not exceeds(Problem(A, b[:, None]).excesses(fit.x[:, None])[0], fit.gap)
