"""Baselines of the factorisation experiments: what their publications promise and what they reach.

The published objectives on CBCL (K = 10, 50) are 2424.1 and 1140.5 by multiplicative updates, 2730
and 3840 by alternating least squares, 2237.2 and 806 by greedy coordinate descent.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.special import kl_div
from sklearn.decomposition import NMF

from conepursuit.experiments.nmf_baselines import (
    alternating_least_squares,
    cyclic_kl,
    greedy_coordinate_descent,
    multiplicative,
    prepared,
)

FOLDER = os.environ.get("CONEPURSUIT_DATA")
needs_data = pytest.mark.skipif(FOLDER is None, reason="CONEPURSUIT_DATA names no data folder")


def multiplicative_kl(*arguments, **options):
    return multiplicative(*arguments, loss="kullback_leibler", **options)


SQUARED = [multiplicative, alternating_least_squares, greedy_coordinate_descent]
DIVERGENCE = [multiplicative_kl, cyclic_kl]
MONOTONE = [multiplicative, greedy_coordinate_descent, *DIVERGENCE]
SPARSE = [*SQUARED, multiplicative_kl]


def objective(baseline, X, W, H):
    if baseline in DIVERGENCE:
        return kl_div(X, W @ H).sum()
    return ((X - W @ H) ** 2).sum() / 2


def made(seed=0, rows=20, cols=30, k=3):
    """Return data of rank k and some noise, half of them zero."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, k)) @ rng.random((k, cols)) + 0.1 * rng.random((rows, cols))
    return X * (rng.random((rows, cols)) < 0.5)


@pytest.fixture(scope="module")
def faces():
    """The faces of CBCL as columns, as in the experiment of the paper."""
    pixels = np.load(Path(FOLDER) / "cbcl" / "cbcl_faces.npz")["faces"]
    p = pixels.reshape(2429, 361).T.astype(float)
    return np.clip(((p - p.mean()) / p.std() + 0.25) * 0.25, 0, 1)


@pytest.mark.parametrize("baseline", [*SQUARED, *DIVERGENCE])
def test_factors_and_objectives(baseline):
    X = made()
    W, H, values = baseline(X, 4, max_iter=30, random_state=0)
    assert (W.shape, H.shape, values.shape) == ((20, 4), (4, 30), (30,))
    assert (W >= 0).all()
    assert (H >= 0).all()
    assert values[-1] == pytest.approx(objective(baseline, X, W, H), rel=1e-12)
    again = baseline(X, 4, max_iter=30, random_state=0)
    np.testing.assert_array_equal(again[2], values)
    assert baseline(X, 4, max_iter=30, random_state=1)[2][-1] != values[-1]


@pytest.mark.parametrize("baseline", MONOTONE)
def test_objectives_never_rise(baseline):
    for seed in range(3):
        values = baseline(made(seed), 5, max_iter=200, random_state=seed)[2]
        assert (np.diff(values) <= 1e-12 * values[0]).all()


@pytest.mark.parametrize("baseline", [*SQUARED, *DIVERGENCE])
def test_a_matrix_of_rank_one_is_found(baseline):
    rng = np.random.default_rng(0)
    X = np.outer(rng.random(6) + 0.1, rng.random(9) + 0.1)
    W, H, _ = baseline(X, 1, max_iter=20, random_state=0)
    np.testing.assert_allclose(W @ H, X, rtol=1e-6)


@pytest.mark.parametrize("baseline", SPARSE)
def test_sparse_data_give_what_dense_ones_do(baseline, monkeypatch):
    X = made()
    expected = baseline(X, 3, max_iter=8, random_state=0)
    table = sparse.csr_array(X)
    for name in ("toarray", "todense"):
        monkeypatch.setattr(sparse.csr_array, name, None)
        monkeypatch.setattr(sparse.csc_array, name, None)
    found = baseline(table, 3, max_iter=8, random_state=0)
    for ours, dense in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, dense, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("baseline", "loss"),
    [(multiplicative, "frobenius"), (multiplicative_kl, "kullback-leibler")],
)
def test_multiplicative_updates_are_those_of_scikit_learn(baseline, loss):
    X = made() + 0.01
    _, W, H = prepared(X, 3, 0)
    model = NMF(3, init="custom", solver="mu", beta_loss=loss, tol=0, max_iter=15)
    expected = model.fit_transform(X, W=W.copy(), H=H.copy())
    found = baseline(X, 3, max_iter=15, random_state=0)
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    np.testing.assert_allclose(found[1], model.components_, rtol=1e-6)


def test_alternating_least_squares_clips_the_solution():
    X = made()
    _, W, _ = prepared(X, 3, 0)
    H = np.maximum(np.linalg.lstsq(W, X, rcond=None)[0], 0)
    W = np.maximum(np.linalg.lstsq(H.T, X.T, rcond=None)[0].T, 0)
    found = alternating_least_squares(X, 3, max_iter=1, random_state=0)
    np.testing.assert_allclose(found[1], H, atol=1e-10)
    np.testing.assert_allclose(found[0], W, atol=1e-10)


@pytest.mark.parametrize("baseline", [*SQUARED, *DIVERGENCE])
def test_degenerate_data(baseline):
    holes = made()
    holes[3], holes[:, 5] = 0.0, 0.0
    for X in (holes, np.zeros((4, 5)), np.ones((1, 6)), holes * 1e-100, holes * 1e100):
        W, H, values = baseline(X, 3, max_iter=10, random_state=0)
        for part in (W, H, values):
            assert np.isfinite(part).all()
        assert (W >= 0).all()
        assert (H >= 0).all()


@pytest.mark.parametrize("baseline", [*SQUARED, *DIVERGENCE])
def test_negative_data_are_refused(baseline):
    with pytest.raises(ValueError, match="non-negative"):
        baseline(-made(), 3)
    with pytest.raises(ValueError, match="non-negative"):
        baseline(-sparse.csr_array(made()), 3)


@needs_data
@pytest.mark.parametrize(
    ("baseline", "k", "max_iter", "least", "most"),
    [
        (multiplicative, 10, 100, 2355, 2412),
        (multiplicative, 50, 100, 1108, 1176),
        (greedy_coordinate_descent, 10, 100, 2218, 2240),
        (greedy_coordinate_descent, 50, 50, 795, 830),
        (multiplicative_kl, 10, 50, 20955, 23000),
        (cyclic_kl, 10, 30, 20400, 20955),  # below what scikit-learn's "mu" reaches in 200
    ],
)
def test_faces(faces, baseline, k, max_iter, least, most):
    values = baseline(faces, k, max_iter=max_iter, random_state=0)[2]
    assert least <= values[-1] <= most
    assert (np.diff(values) < 0).all()


@needs_data
@pytest.mark.parametrize(("k", "least", "most"), [(10, 2500, 3000), (50, 3200, 5000)])
def test_clipping_fits_the_faces_worse(faces, k, least, most):
    values = alternating_least_squares(faces, k, max_iter=60, random_state=0)[2]
    assert least <= values.min() <= most
