"""nnls on dictionaries of neighbours: as accurate as scipy's, whatever way the size leads."""

import numpy as np
import pytest
import scipy.optimize

from conepursuit import nnls
from conepursuit.least_squares.large import fit_large
from conepursuit.least_squares.whole import are_neighbours, fit_whole, is_small


def bumps(m, n, width):
    return np.exp(-0.5 * ((np.linspace(0, 1, m)[:, None] - np.linspace(0, 1, n)) / width) ** 2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("m", "n", "width"), [(60, 100, 0.05), (300, 500, 0.02), (300, 600, 0.02), (200, 3000, 0.02)]
)
def test_exact_fits_by_bumps_leave_no_more_than_scipys(m, n, width, seed):
    A = bumps(m, n, width)
    b = A @ np.random.default_rng(seed).random(n)
    fit = nnls(A, b)
    peer, _ = scipy.optimize.nnls(A, b, maxiter=100 * n)
    assert fit.proven
    assert fit.rnorm == pytest.approx(np.linalg.norm(A @ fit.x - b), rel=0.5)
    assert fit.rnorm <= 4 * np.linalg.norm(A @ peer - b)


@pytest.mark.parametrize("angle", [1e-9, 1e-8, 1e-7])
def test_near_copies_of_atoms_make_an_exact_fit(angle):
    """Their slopes drown in the rounding of b, but not in that of what is left of it."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = rng.random((40, 12))
        A = np.hstack([A, A + angle * rng.standard_normal(A.shape)])
        b = A @ rng.random(24)
        assert nnls(A, b).rnorm <= 1e-13 * np.linalg.norm(b)


def test_a_working_set_is_given_up_for_neighbours():
    """Of a block of the steepest atoms, most are neighbours; then all atoms are asked each time."""
    A = bumps(100, 800, 0.02)
    rng = np.random.default_rng(0)
    b = A @ rng.random(800)
    b += 1e-2 * np.linalg.norm(b) / 10 * rng.standard_normal(100)
    assert are_neighbours(A[:, 300:364], 1 / np.linalg.norm(A[:, 300:364], axis=0))
    large, whole = fit_large(A, b, None, 0.0, 10000, 0.0), fit_whole(A, b, None, 0.0, 800, 10000)
    np.testing.assert_array_equal(large.x, whole.x)
    assert large.n_iter == whole.n_iter


def test_a_working_set_is_kept_where_atoms_differ():
    A = np.random.default_rng(0).random((200, 64))
    assert not are_neighbours(A, 1 / np.linalg.norm(A, axis=0))


def test_a_crowded_working_set_goes_on_with_all_atoms():
    rng = np.random.default_rng(0)
    A, x = rng.random((500, 400)), np.zeros(400)
    x[rng.choice(400, 320, replace=False)] = rng.uniform(1, 5, 320)
    fit = fit_large(A, A @ x, None, 0.0, 10000, 0.0)
    np.testing.assert_allclose(fit.x, x, atol=1e-9)
    assert fit.proven
    short = fit_large(A, A @ x, None, 0.0, fit.n_iter - 1, 0.0)
    assert short.n_iter <= fit.n_iter - 1


def test_what_is_small_is_a_matter_of_entries():
    """A limit on the atoms asks for one atom after the other, on a dictionary of any size."""
    assert is_small(np.empty((10**5, 512)), 512)
    assert is_small(np.empty((200, 2000)), 2000)
    assert not is_small(np.empty((200, 2000)), 10)
    assert not is_small(np.empty((1000, 1000)), 1000)
    assert not is_small(np.empty((50, 10000)), 10000)
