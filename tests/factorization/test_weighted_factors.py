"""Coordinate descent on a factor with weighted or missing entries, dense and stored."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

from conepursuit.kernels import factorization as kernels

WAYS = {
    "auto": kernels.sweep_weighted,
    "residuals": kernels.sweep_by_residuals,
    "grams": kernels.sweep_by_grams,
}


def problem(seed=0, rows=9, cols=14, k=4, observed=0.7):
    """Return X, M, F and G; a missing entry of X is large, so that it would be noticed."""
    rng = np.random.default_rng(seed)
    M = rng.uniform(0.2, 2, (rows, cols)) * (rng.random((rows, cols)) < observed)
    X = np.where(M > 0, rng.normal(0.5, 1, (rows, cols)), 1e6)
    return X, M, rng.random((k, rows)), rng.random((k, cols)) * (rng.random((k, cols)) < 0.8)


def stored(X, M):
    """Return the arguments of the functions for stored entries."""
    where = M > 0
    indptr = np.concatenate([[0], np.cumsum(where.sum(axis=1))])
    return X[where], M[where], np.nonzero(where)[1], indptr


def by_observed(X, M, F, G, l1, l2, sweeps):
    kernels.sweep_observed(*stored(X, M), F, G, l1, l2, sweeps)


ALL_WAYS = {**WAYS, "observed": by_observed}
every_way = pytest.mark.parametrize("sweep", ALL_WAYS.values(), ids=ALL_WAYS)
penalised = pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.5), (0.2, 0.1)])


def definition(X, M, F, G, l1, l2):
    return (M * (X - F.T @ G) ** 2).sum() / 2 + l1 * F.sum() + l2 / 2 * (F**2).sum()


def gradient(X, M, F, G, l1, l2):
    return G @ (M * (F.T @ G - X)).T + l1 + l2 * F


def nonnegative_minimum(X, M, G, l1, l2):
    """Return the factor that `scipy.optimize.nnls` finds row by row.

    The linear penalty is a row of the system: ||A f - b||^2 / 2 with A'A and A'b as in f.
    """
    F = np.empty((len(G), len(X)))
    for i in range(len(X)):
        root = np.sqrt(M[i])
        A = np.vstack([root[:, None] * G.T, np.sqrt(l2) * np.eye(len(G))])
        pull = G @ (M[i] * X[i]) - l1
        F[:, i] = nnls(A, np.linalg.lstsq(A.T, pull, rcond=None)[0])[0]
    return F


@penalised
def test_values_are_those_of_the_definition(l1, l2):
    X, M, F, G = problem()
    expected = definition(X, M, F, G, l1, l2)
    assert kernels.weighted_value(X, M, F, G, l1, l2) == pytest.approx(expected, rel=1e-13)
    assert kernels.observed_value(*stored(X, M), F, G, l1, l2) == pytest.approx(expected, rel=1e-13)


@every_way
@penalised
def test_each_step_minimises_over_its_entry(sweep, l1, l2):
    X, M, F, G = problem(k=3)
    expected = F.copy()
    for i in range(len(X)):
        for r in range(3):
            curvature = M[i] @ G[r] ** 2 + l2
            slope = gradient(X, M, expected, G, l1, l2)[r, i]
            expected[r, i] = max(0.0, expected[r, i] - slope / curvature)
    sweep(X, M, F, G, l1, l2, 1)
    np.testing.assert_allclose(F, expected, rtol=1e-12, atol=1e-13)


@every_way
def test_sweeps_add_up_and_never_raise_the_objective(sweep):
    X, M, F, G = problem(seed=1, rows=30, k=6)
    together, value = F.copy(), definition(X, M, F, G, 0.1, 0.2)
    for _ in range(8):
        before, value = value, None
        sweep(X, M, F, G, 0.1, 0.2, 1)
        value = definition(X, M, F, G, 0.1, 0.2)
        assert value <= before * (1 + 1e-14)
        assert (F >= 0).all()
    sweep(X, M, together, G, 0.1, 0.2, 8)
    np.testing.assert_allclose(together, F, rtol=1e-11, atol=1e-13)


@every_way
@penalised
def test_many_sweeps_reach_the_minimum(sweep, l1, l2):
    X, M, F, G = problem(seed=2, observed=0.9)
    sweep(X, M, F, G, l1, l2, 5000)
    slopes = gradient(X, M, F, G, l1, l2)
    assert (slopes > -1e-9).all()
    np.testing.assert_allclose(slopes[F > 0], 0.0, atol=1e-9)
    np.testing.assert_allclose(F, nonnegative_minimum(X, M, G, l1, l2), atol=1e-7)
    assert 0 < (F == 0).mean() < 1


@every_way
def test_weights_of_zero_remove_entries(sweep):
    X, M, F, G = problem()
    M[:, ::3], M[:, 1::3] = 0.0, 1.0
    keep = np.arange(X.shape[1]) % 3 > 0
    expected = F.copy()
    parts = [np.ascontiguousarray(part[:, keep]) for part in (X, M, G)]
    sweep(parts[0], parts[1], expected, parts[2], 0.1, 0.1, 3)
    sweep(X, M, F, G, 0.1, 0.1, 3)
    np.testing.assert_allclose(F, expected, rtol=1e-12, atol=1e-14)


def test_without_weights_and_penalties_the_fit_is_the_usual_one():
    X, _, F, G = problem(observed=1.0)
    kernels.sweep_weighted(X, np.ones_like(X), F, G, 0.0, 0.0, 5000)
    expected = np.column_stack([nnls(G.T, x)[0] for x in X])
    np.testing.assert_allclose(F, expected, atol=1e-8)


@pytest.mark.parametrize("sweeps", [1, 4])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_stored_entries_are_dense_ones_with_weights_of_zero(sweeps, index):
    k = kernels.COMPONENTS + 5  # one sweep by residuals, four by Gram matrices
    X, M, F, G = problem(rows=40, cols=60, k=k, observed=0.3)
    X[0, 0], M[0, 0] = 0.0, 1.0  # a stored zero is observed
    dense = F.copy()
    kernels.sweep_weighted(X, M, dense, G, 0.01, 0.02, sweeps)
    data, weights, indices, indptr = stored(X, M)
    table = sparse.csr_array((data, indices.astype(index), indptr.astype(index)), X.shape)
    arguments = (table.data, weights, table.indices, table.indptr)
    kernels.sweep_observed(*arguments, F, G, 0.01, 0.02, sweeps)
    np.testing.assert_allclose(F, dense, rtol=1e-11, atol=1e-13)
    value = definition(X, M, F, G, 0.01, 0.02)
    assert kernels.observed_value(*arguments, F, G, 0.01, 0.02) == pytest.approx(value)
    assert kernels.weighted_value(X, M, F, G, 0.01, 0.02) == pytest.approx(value)


@pytest.mark.parametrize("k", [2, kernels.COMPONENTS + 1])
def test_rows_in_several_blocks(k):
    """2^20 numbers are a block: with 1.4e5 columns it holds 8 rows."""
    X, M, F, G = problem(rows=10, cols=140_000, k=k)
    expected = F.copy()
    kernels.sweep_by_residuals(X, M, expected, G, 0.0, 0.0, 1)
    assert kernels.weighted_value(X, M, F, G, 0.1, 0.2) == pytest.approx(
        definition(X, M, F, G, 0.1, 0.2), rel=1e-12
    )
    kernels.sweep_weighted(X, M, F, G, 0.0, 0.0, 1)
    np.testing.assert_allclose(F, expected, rtol=1e-9, atol=1e-12)


@every_way
def test_rows_without_entries(sweep):
    X, M, F, G = problem()
    M[3] = 0.0
    kept = F.copy()
    sweep(X, M, kept, G, 0.0, 0.0, 2)
    np.testing.assert_array_equal(kept[:, 3], F[:, 3])
    for l1, l2 in ((0.1, 0.0), (0.0, 0.1), (1e-3, 1e-3)):
        fallen = F.copy()
        sweep(X, M, fallen, G, l1, l2, 1)
        np.testing.assert_array_equal(fallen[:, 3], 0.0)


@every_way
def test_zero_components(sweep):
    X, M, F, G = problem()
    G[1] = 0.0
    kept = F.copy()
    sweep(X, M, kept, G, 0.0, 0.0, 3)
    np.testing.assert_array_equal(kept[1], F[1])
    for l1, l2 in ((0.1, 0.0), (0.0, 0.1)):
        fallen = F.copy()
        sweep(X, M, fallen, G, l1, l2, 1)
        np.testing.assert_array_equal(fallen[1], 0.0)


@every_way
def test_one_component_is_a_ratio(sweep):
    X, M, F, G = problem(k=1)
    sweep(X, M, F, G, 0.2, 0.3, 1)
    expected = ((M * X) @ G[0] - 0.2) / (M @ G[0] ** 2 + 0.3)
    np.testing.assert_allclose(F[0], np.maximum(expected, 0.0), rtol=1e-12)


@every_way
@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (5, 5, 0)])
def test_empty_data(sweep, shape):
    rows, cols, k = shape
    X, M, F, G = problem(rows=rows, cols=cols, k=k)
    before = F.copy()
    sweep(X, M, F, G, 0.0, 0.0, 1)
    assert F.shape == (k, rows)
    if cols == 0:
        np.testing.assert_array_equal(F, before)
    assert kernels.weighted_value(X, M, F, G, 1.0, 1.0) >= 0.0


@every_way
@pytest.mark.parametrize("in_G", [1e-150, 1e-75, 1.0, 1e50, 1e100])
@pytest.mark.parametrize("in_X", [1e-150, 1.0, 1e100])
def test_scales(sweep, in_X, in_G):
    X, M, F, G = problem(seed=3)
    scaled = F * (in_X / in_G)
    sweep(X, M, F, G, 0.0, 0.0, 5)
    sweep(X * in_X, M, scaled, G * in_G, 0.0, 0.0, 5)
    np.testing.assert_allclose(scaled / (in_X / in_G), F, rtol=1e-9, atol=1e-11)


@every_way
@pytest.mark.parametrize("in_G", [1e-200, 1e-160, 1e-150, 1e-140])
def test_what_underflows_is_no_number_less(sweep, in_G):
    X, M, F, G = problem(seed=3)
    for size in (1.0, 1e150, 1e200):  # the last asks for weights that are no numbers
        for l1, l2 in ((0.0, 0.0), (1e-3, 0.0), (0.0, 1e-3)):
            after = F.copy()
            for _ in range(3):
                sweep(np.where(M > 0, X, 0.0) * size, M, after, G * in_G, l1, l2, 1)
                assert np.isfinite(after).all()
                assert (after >= 0).all()


@every_way
def test_a_good_fit_is_kept(sweep):
    _, M, F, G = problem()
    X = F.T @ G
    after = F.copy()
    sweep(X, M, after, G, 0.0, 0.0, 3)
    np.testing.assert_allclose(after, F, rtol=1e-10)
