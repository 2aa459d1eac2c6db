"""H2NMF: clusters that are known, the cut, and what cannot be split."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from conepursuit.unmixing.clustering import WINDOW, _below_cut, _shares, h2nmf
from made_scenes import generic, needs_data, real


def agreement(labels, truth):
    """Return the share of pixels in the right cluster, under the best naming of clusters."""
    table = np.array(
        [[np.sum((labels == i) & (truth == j)) for j in set(truth)] for i in set(labels)]
    )
    return table[linear_sum_assignment(-table)].sum() / len(truth)


def mostly_one(n, *, pixels=400, bands=20, seed=0):
    """Return pixels each of which is 95 % one material, and which."""
    rng = np.random.default_rng(seed)
    endmembers = (np.arange(bands) % n == np.arange(n)[:, None]) + 0.1 * rng.random((n, bands))
    truth = rng.integers(0, n, pixels)
    shares = 0.95 * np.eye(n)[truth] + 0.05 * rng.dirichlet(np.ones(n), pixels)
    return shares @ endmembers + 1e-3 * rng.random((pixels, bands)), truth


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_that_are_far_apart(n, seed):
    X, truth = mostly_one(n, seed=seed)
    indices, labels = h2nmf(X, n)
    assert agreement(labels, truth) == 1.0
    assert labels[indices].tolist() == list(range(n))


@needs_data
def test_samson_falls_into_soil_trees_and_water():
    X, _, abundances = real("samson")
    assert agreement(h2nmf(X, 3).labels, abundances.argmax(axis=1)) >= 0.9


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 6))
def test_clusters_are_a_partition_with_a_representative_each(seed, n):
    X = generic(seed, pixels=25, bands=6)
    indices, labels = h2nmf(X, n)
    assert set(labels) == set(range(n))
    assert labels[indices].tolist() == list(range(n))
    for label in range(n):
        part = X[labels == label]
        leading = np.abs(np.linalg.svd(part)[2][0])
        angles = [np.corrcoef(leading, x)[0, 1] for x in part]
        assert np.corrcoef(leading, X[indices[label]])[0, 1] >= max(angles) - 1e-9


def test_the_split_that_gains_most_comes_first():
    """Two materials far apart, one of them of two kinds: the first cut is between materials."""
    rng = np.random.default_rng(0)
    kinds = np.array([[9.0, 9, 0, 0, 1], [9, 7, 0, 0, 1], [0, 0, 5, 5, 1]])
    truth = np.repeat([0, 1, 2], 50)
    X = kinds[truth] * rng.uniform(0.9, 1.1, (150, 1)) + 0.01 * rng.random((150, 5))
    assert agreement(h2nmf(X, 2).labels, np.repeat([0, 0, 1], 50)) == 1.0
    assert agreement(h2nmf(X, 3).labels, truth) == 1.0


def test_shares_of_an_exact_mixture():
    rng = np.random.default_rng(1)
    W, t = np.array([[3.0, 0, 1, 0], [0, 1.0, 0, 2]]), np.append(rng.random(30), [0.0, 1.0])
    X = np.column_stack([t, 1 - t]) @ W
    length = np.linalg.norm(W, axis=1)
    expected = length[0] * t / (length[0] * t + length[1] * (1 - t))
    np.testing.assert_allclose(_shares(X, W + 0.1), expected, atol=1e-3)


def test_a_pixel_without_a_band_of_either_spectrum_is_between_them():
    assert _shares(np.eye(3), np.eye(2, 3)).tolist() == [1.0, 0.0, 0.5]


def test_the_cut_minimises_its_formula():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shares = np.clip(np.append(rng.normal(0.2, 0.1, 30), rng.normal(0.8, 0.05, 50)), 0, 1)
        values, costs = sorted(set(shares)), {}
        for low, high in pairwise(values):
            d = (low + high) / 2
            first, last = max(d - WINDOW, 0.0), min(d + WINDOW, 1.0)
            below = sum(s < d for s in shares) / len(shares)
            near = sum(first <= s <= last for s in shares) / len(shares) / (last - first)
            costs[d] = -np.log(below * (1 - below)) + np.exp(near)
        best = min(costs, key=costs.get)
        np.testing.assert_array_equal(_below_cut(shares), shares < best)


def test_pixels_of_zeros_are_in_no_cluster():
    X, truth = mostly_one(3)
    dark = np.vstack([np.zeros((5, X.shape[1])), X])
    indices, labels = h2nmf(dark, 3)
    assert (labels[:5] == -1).all()
    assert agreement(labels[5:], truth) == 1.0
    assert indices.min() >= 5


def test_pixels_without_a_common_band_are_taken():
    indices, labels = h2nmf(np.eye(4), 4)
    assert sorted(indices) == [0, 1, 2, 3]
    assert sorted(labels) == [0, 1, 2, 3]


def test_multiples_of_one_spectrum_are_not_split():
    X = np.outer(np.arange(1.0, 9.0), [1.0, 2.0, 5.0])
    with pytest.raises(ValueError, match=r"n = 2 .* fall into 1 clusters .* up to 1"):
        h2nmf(X, 2)
    with pytest.raises(ValueError, match=r"n = 3 .* fall into 2 clusters .* up to 2"):
        h2nmf(np.vstack([X, X[:, ::-1]]), 3)
    assert h2nmf(X, 1).labels.tolist() == [0] * 8
    assert h2nmf(X, 1).indices.tolist() == [7]  # of multiples the longest


def test_negative_entries_are_refused():
    with pytest.raises(ValueError, match=r"least entry is -0.5. Use np.maximum"):
        h2nmf([[1.0, 2.0], [-0.5, 1.0]], 2)
