"""The coordinate descent of Hsieh and Dhillon on one factor, greedy and for the divergence."""

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from scipy.special import rel_entr

from conepursuit.kernels import factorization as kernels

PLENTY = 100_000
penalised = pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.5), (0.2, 0.1)])


def problem(seed=0, rows=12, cols=20, k=4):
    """Return X, F and G."""
    rng = np.random.default_rng(seed)
    G = rng.random((k, cols)) * (rng.random((k, cols)) < 0.8)
    return rng.normal(0.5, 1, (rows, cols)), rng.random((k, rows)), G


def sweep(X, F, G, l1=0.0, l2=0.0, tolerance=1e-3, max_inner=PLENTY):
    return kernels.greedy_sweep(G @ G.T, G @ X.T, F, l1, l2, tolerance, max_inner)


def value(X, F, G, l1, l2):
    return ((X - F.T @ G) ** 2).sum() / 2 + l1 * F.sum() + l2 / 2 * (F**2).sum()


def best_update(X, F, G, l1, l2):
    """Return the least value over one entry, for every entry, and where it is attained."""
    curvatures = (G**2).sum(axis=1)[:, None] + l2
    after = np.maximum(F - (G @ (F.T @ G - X).T + l1 + l2 * F) / curvatures, 0.0)
    values = np.empty_like(F)
    for entry in np.ndindex(*F.shape):
        moved = F.copy()
        moved[entry] = after[entry]
        values[entry] = value(X, moved, G, l1, l2)
    return values, after


@penalised
def test_the_first_update_is_the_best_one(l1, l2):
    X, F, G = problem()
    expected = F.copy()
    values, after = best_update(X, F, G, l1, l2)
    for i in range(len(X)):
        r = values[:, i].argmin()
        expected[r, i] = after[r, i]
    assert sweep(X, F, G, l1, l2, max_inner=1, tolerance=0.0) == len(X)
    np.testing.assert_allclose(F, expected, rtol=1e-12, atol=1e-14)


@penalised
def test_updates_are_made_one_by_one_and_never_raise_the_objective(l1, l2):
    X, F, G = problem(seed=1)
    together, last = F.copy(), value(X, F, G, l1, l2)
    for _ in range(30):
        sweep(X, F, G, l1, l2, max_inner=1, tolerance=0.0)
        before, last = last, value(X, F, G, l1, l2)
        assert last <= before * (1 + 1e-14)
        assert (F >= 0).all()
    sweep(X, together, G, l1, l2, max_inner=30, tolerance=0.0)
    np.testing.assert_allclose(together, F, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("tolerance", [0.3, 0.1, 1e-2, 1e-4])
def test_a_row_is_left_when_no_entry_gains_enough(tolerance):
    X, F, G = problem(seed=2)
    expected, updates, enough = F.copy(), 0, None
    while True:  # all rows at a time, which do not know of each other
        values, after = best_update(X, expected, G, 0.1, 0.2)
        gains = value(X, expected, G, 0.1, 0.2) - values
        enough = tolerance * gains.max() if enough is None else enough
        rows = np.flatnonzero(gains.max(axis=0) > enough)
        if len(rows) == 0:
            break
        best = gains[:, rows].argmax(axis=0), rows
        expected[best] = after[best]
        updates += len(rows)
    assert sweep(X, F, G, 0.1, 0.2, tolerance) == updates
    np.testing.assert_allclose(F, expected, rtol=1e-9, atol=1e-12)


@penalised
def test_a_small_tolerance_reaches_the_minimum(l1, l2):
    X, F, G = problem(seed=3)
    sweep(X, F, G, l1, l2, tolerance=1e-26)
    slopes = G @ (F.T @ G - X).T + l1 + l2 * F
    assert (slopes > -1e-9).all()
    np.testing.assert_allclose(slopes[F > 0], 0.0, atol=1e-9)
    A = np.vstack([G.T, np.sqrt(l2) * np.eye(len(G))])
    for i in range(len(X)):
        b = np.linalg.lstsq(A.T, G @ X[i] - l1, rcond=None)[0]
        np.testing.assert_allclose(F[:, i], nnls(A, b)[0], atol=1e-8)
    assert 0 < (F == 0).mean() < 1


def test_one_component_is_done_in_one_update():
    X, F, G = problem(k=1)
    assert sweep(X, F, G, 0.2, 0.3, tolerance=1e-12) <= len(X)
    expected = np.maximum((X @ G[0] - 0.2) / (G[0] @ G[0] + 0.3), 0.0)
    np.testing.assert_allclose(F[0], expected, rtol=1e-12, atol=1e-14)


def test_zero_components_stay_unless_they_cost():
    X, F, G = problem()
    G[1] = 0.0
    kept = F.copy()
    sweep(X, kept, G)
    np.testing.assert_array_equal(kept[1], F[1])
    fallen = F.copy()
    sweep(X, fallen, G, l1=0.1)
    np.testing.assert_array_equal(fallen[1], 0.0)


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (5, 5, 0)])
def test_empty_data(shape):
    rows, cols, k = shape
    X, F, G = problem(rows=rows, cols=cols, k=k)
    before = F.copy()
    assert sweep(X, F, G) == 0
    np.testing.assert_array_equal(F, before)


@pytest.mark.parametrize("in_G", [1e-100, 1e-75, 1.0, 1e50, 1e100])
@pytest.mark.parametrize("in_X", [1e-150, 1.0, 1e100])
def test_scales(in_X, in_G):
    X, F, G = problem(seed=4)
    scaled = F * (in_X / in_G)
    sweep(X, F, G, tolerance=1e-6)
    sweep(X * in_X, scaled, G * in_G, tolerance=1e-6)
    np.testing.assert_allclose(scaled / (in_X / in_G), F, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("in_G", [1e-200, 1e-160, 1e-140])
def test_what_underflows_is_no_number_less(in_G):
    X, F, G = problem(seed=4)
    for l1, l2 in ((0.0, 0.0), (1e-3, 0.0), (0.0, 1e-3)):
        after = F.copy()
        sweep(X, after, G * in_G, l1, l2, max_inner=100)
        assert np.isfinite(after).all()
        assert (after >= 0).all()


def divergence(X, fit):
    return (rel_entr(X, fit) - X + fit).sum()


def counts(seed=0, rows=10, cols=25, k=3):
    """Return made counts, many of them zero, and two factors."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(2 * rng.random((rows, k)) @ rng.random((k, cols))).astype(float)
    return X, rng.random((k, rows)) + 0.1, rng.random((k, cols)) + 0.01


def test_the_divergence_falls_to_its_minimum():
    X, F, G = counts()
    last = divergence(X, F.T @ G)
    for _ in range(300):
        kernels.cyclic_kl_sweep(X, F, G, 1e-12)
        before, last = last, divergence(X, F.T @ G)
        assert last <= before * (1 + 1e-13)
        assert (F >= 0).all()
    slopes = G @ (1 - X / (F.T @ G)).T
    assert (slopes > -1e-7).all()
    np.testing.assert_allclose(slopes[F > 1e-7], 0.0, atol=1e-7)
    for i in range(len(X)):
        reference = minimize(
            lambda f, x: divergence(x, f @ G), np.ones(3), (X[i],), bounds=[(1e-9, None)] * 3
        )
        assert divergence(X[i], F[:, i] @ G) <= reference.fun + 1e-6


def test_steps_up_are_those_of_newton():
    X, F, G = counts(k=2)
    X += 1
    F[:] = 1e-3
    expected = F.copy()
    for r in range(2):
        ratios = X / (expected.T @ G)
        steps = (ratios - 1) @ G[r] / ((ratios**2 / X) @ G[r] ** 2)
        assert (steps > 0).all()
        expected[r] += steps
    kernels.cyclic_kl_sweep(X, F, G, 1e-12)
    np.testing.assert_allclose(F, expected, rtol=1e-12)


def test_a_step_down_that_would_go_too_far_is_multiplicative():
    X, F, G = counts(k=1)
    F[:] = 1e3  # Newton's method would go to zero, where the divergence is not finite
    kernels.cyclic_kl_sweep(X, F, G, 1e-12)
    np.testing.assert_allclose(F[0], X.sum(axis=1) / G[0].sum(), rtol=1e-12)


def test_the_divergence_of_degenerate_data():
    X, F, G = counts()
    X[2], G[1] = 0.0, 0.0
    before = F.copy()
    kernels.cyclic_kl_sweep(X, F, G, 1e-12)
    np.testing.assert_array_equal(F[1], before[1])
    np.testing.assert_array_equal(F[[0, 2], 2], 0.0)
    assert np.isfinite(F).all()
    for start in (0.0, 1e-150, 1e100):
        F = np.full_like(F, start)
        kernels.cyclic_kl_sweep(X, F, G, 1e-12)
        assert np.isfinite(F).all()
        assert (F >= 0).all()
