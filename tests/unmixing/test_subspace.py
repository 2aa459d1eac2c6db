"""VCA in both of its branches, and HySime against regressions band by band."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conepursuit.unmixing import subspace
from conepursuit.unmixing.subspace import hysime, vca
from made_scenes import needs_data, real, separable


def with_noise(X, decibels, seed=0):
    """Return pixels with white noise of a given power below theirs."""
    power = np.sum(X**2) / X.size * 10.0 ** (-decibels / 10.0)
    return X + np.sqrt(power) * np.random.default_rng(seed).standard_normal(X.shape)


# ---------------------------------------------------------------- VCA


@pytest.mark.parametrize("threshold", [-np.inf, np.inf])
def test_both_projections_find_the_pure_pixels(monkeypatch, threshold):
    """Thresholds that make every scene one of little noise, or one of much."""
    monkeypatch.setattr(subspace, "NOISY", threshold)
    for seed in range(10):
        X, pure = separable(4, seed=seed)
        assert sorted(vca(X, 4, random_state=seed)) == pure.tolist()


@pytest.mark.parametrize(("decibels", "wanted"), [(40.0, True), (10.0, False)])
def test_the_noise_decides_which_projection_is_made(monkeypatch, decibels, wanted):
    called = []
    projective = subspace._projective
    monkeypatch.setattr(subspace, "_projective", lambda y: (called.append(1), projective(y))[1])
    X, _ = separable(4, pixels=1000, bands=50)
    assert len(vca(with_noise(X, decibels), 4)) == 4
    assert bool(called) == wanted


def test_brightness_does_not_matter_where_noise_is_little():
    for seed in range(5):
        X, pure = separable(4, seed=seed)
        bright = np.random.default_rng(seed).uniform(0.5, 2.0, len(X))
        assert sorted(vca(bright[:, None] * X, 4)) == pure.tolist()


@pytest.mark.parametrize("decibels", [5.0, 20.0, 60.0])
def test_the_ratio_of_signal_to_noise(decibels):
    X, _ = separable(4, pixels=3000, bands=12)
    X = with_noise(X, decibels)
    mean = X.mean(axis=0)
    axes = subspace.leading(np.cov(X.T), 4)
    assert subspace._decibels(X, (X - mean) @ axes, mean) == pytest.approx(decibels, abs=0.2)


def test_the_signs_of_eigenvectors_are_settled():
    for seed in range(10):
        M = np.random.default_rng(seed).standard_normal((7, 7))
        vectors = subspace.leading(M + M.T, 3)
        assert (vectors.max(axis=0) == np.abs(vectors).max(axis=0)).all()


def test_one_seed_makes_one_choice():
    X = np.random.default_rng(0).random((200, 20))
    assert vca(X, 5).tolist() == vca(X, 5, random_state=0).tolist()
    assert (
        vca(X, 5, random_state=np.random.default_rng(7)).tolist()
        == vca(X, 5, random_state=7).tolist()
    )
    assert len({tuple(vca(X, 5, random_state=seed)) for seed in range(5)}) > 1


def test_pixels_off_the_mean_are_not_chosen():
    """A pixel of negative entries has no place in the projective projection."""
    X, pure = separable(3, seed=1)
    X[pure[0]] *= -1.0
    assert pure[0] not in vca(X, 3)


def test_too_low_a_rank_is_named(monkeypatch):
    X, _ = separable(3, bands=10)
    for threshold in (-np.inf, np.inf):
        monkeypatch.setattr(subspace, "NOISY", threshold)
        with pytest.raises(ValueError, match=r"n = 5 .* pixels explain all others"):
            vca(X, 5)
    with pytest.raises(ValueError, match=r"at least 2 .* got 1. Use spa"):
        vca(X, 1)


# ---------------------------------------------------------------- HySime


def plain_hysime(X):
    """Regress every band on all others; count directions with more signal than noise."""
    noise = np.empty_like(X)
    for i in range(X.shape[1]):
        others = np.delete(X, i, axis=1)
        noise[:, i] = X[:, i] - others @ np.linalg.lstsq(others, X[:, i])[0]
    own = np.diag(np.mean(noise**2, axis=0))
    directions = np.linalg.svd(X - noise, full_matrices=False)[2]
    return sum(bool(np.mean((X @ e) ** 2) > 2 * e @ own @ e) for e in directions)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 6),
    decibels=st.sampled_from([15.0, 30.0, 50.0]),
)
def test_as_regressions_band_by_band(seed, n, decibels):
    X = with_noise(separable(n, pixels=120, bands=15, seed=seed)[0], decibels, seed)
    assert hysime(X) == plain_hysime(X)


@needs_data
@pytest.mark.parametrize("scene", ["samson", "jasper_ridge"])
def test_real_scenes_as_regressions_band_by_band(scene):
    X = real(scene)[0][::10]
    assert hysime(X) == plain_hysime(X)


@pytest.mark.parametrize("n", [1, 3, 6, 10])
@pytest.mark.parametrize("decibels", [35.0, 60.0, 120.0, np.inf])
def test_the_number_of_endmembers(n, decibels):
    X = separable(n, pixels=3000, bands=60, seed=n)[0]
    assert hysime(with_noise(X, decibels)) == n


def test_noise_that_differs_between_bands():
    X = separable(4, pixels=3000, bands=40)[0]
    level = np.logspace(-5, -1.5, 40)
    assert hysime(X + level * np.random.default_rng(0).standard_normal(X.shape)) == 4


def test_nothing_but_noise_and_units():
    X = np.random.default_rng(0).standard_normal((3000, 40))
    assert hysime(X) == 0
    Y = with_noise(separable(4, pixels=500, bands=20)[0], 40.0)
    dark = np.vstack([np.zeros((100, 20)), 1e180 * Y])
    assert hysime(Y) == hysime(dark) == hysime(1e-180 * Y) == 4


def test_a_band_of_zeros_is_no_signal():
    Y = with_noise(separable(3, pixels=500, bands=20)[0], 40.0)
    Y[:, 4] = 0.0
    assert hysime(Y) == 3


def test_hysime_needs_more_pixels_than_bands():
    with pytest.raises(ValueError, match=r"more pixels .* got 1 and 4. Use more of the scene"):
        hysime([[1.0, 2.0, 3.0, 4.0]])
    with pytest.raises(ValueError, match=r"got 5 and 5"):
        hysime(np.vstack([np.eye(5), np.zeros((9, 5))]))
