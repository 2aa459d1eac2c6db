"""Angles, matchings and errors, against their definitions."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conepursuit.unmixing.agreement import abundance_rmse, match_endmembers, spectral_angles


def test_angles_as_by_the_arc_cosine():
    rng = np.random.default_rng(0)
    a, b = rng.random((3, 20)), rng.standard_normal((5, 20))
    cosines = (a @ b.T) / np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    np.testing.assert_allclose(spectral_angles(a, b), np.arccos(cosines), rtol=1e-13)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-9, 1e-4, 1.0, np.pi / 2, 3.0, np.pi])
@pytest.mark.parametrize("length", [1e-300, 1.0, 1e300])
def test_angles_of_any_size_and_length(angle, length):
    first, second = [[length, 0.0]], [[np.cos(angle), np.sin(angle)]]
    assert spectral_angles(first, second)[0, 0] == pytest.approx(angle, rel=1e-12, abs=1e-16)
    assert spectral_angles(second, first)[0, 0] == pytest.approx(angle, rel=1e-12, abs=1e-16)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 4), more=st.integers(0, 2))
def test_the_matching_is_the_best_of_all(seed, k, more):
    rng = np.random.default_rng(seed)
    truth, found = rng.random((k, 8)), rng.random((k + more, 8))
    order, angles = match_endmembers(found, truth)
    table = spectral_angles(truth, found)
    best = min(table[range(k), p].sum() for p in permutations(range(k + more), k))
    assert len(set(order)) == k
    assert angles.tolist() == table[range(k), order].tolist()
    assert angles.sum() == pytest.approx(best, rel=1e-12)


def test_shuffled_and_brightened_endmembers_are_recognised():
    rng = np.random.default_rng(0)
    truth, shuffled = rng.random((5, 30)), rng.permutation(5)
    order, angles = match_endmembers(7.0 * truth[shuffled], truth)
    assert shuffled[order].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(angles, 0.0, atol=1e-15)


def test_the_error_of_abundances():
    rng = np.random.default_rng(0)
    found, truth, order = rng.random((50, 4)), rng.random((50, 3)), [3, 0, 2]
    squares = [(found[i, order[j]] - truth[i, j]) ** 2 for i in range(50) for j in range(3)]
    assert abundance_rmse(found, truth, order) == pytest.approx(np.sqrt(np.mean(squares)))
    assert abundance_rmse(truth[:, [2, 0, 1]], truth, [1, 2, 0]) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spectral_angles([1.0, 2.0], [[1.0, 2.0]]), r"first must have two axes.*\(2,\)"),
        (lambda: spectral_angles([[1.0, 2.0]], [[1.0]]), r"same bands; got 2 and 1"),
        (lambda: spectral_angles(np.eye(2), [[1.0, 0.0], [0.0, 0.0]]), r"second .* row 1 is"),
        (lambda: spectral_angles([[np.nan, 1.0]], np.eye(2)), r"first must be finite"),
        (lambda: match_endmembers(np.eye(2, 4), np.eye(3, 4)), r"got 2 for 3"),
        (lambda: abundance_rmse(np.eye(3), np.eye(2), [0, 1]), r"got shapes \(3, 3\), \(2, 2\)"),
        (lambda: abundance_rmse(np.eye(3), np.eye(3), [0, 1]), r"\(3, 3\) and \(2,\)"),
        (lambda: abundance_rmse(np.ones(3), np.eye(3), [0, 1]), r"found must have two axes"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
