"""SPA, SNPA and XRAY: against straightforward versions, on separable data, and on hard input."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from conepursuit.unmixing.clustering import h2nmf
from conepursuit.unmixing.extraction import snpa, spa, xray
from conepursuit.unmixing.subspace import vca
from made_scenes import generic, needs_data, real, separable

CHOOSERS = {"spa": spa, "snpa": snpa, "xray": xray}
ALL = {**CHOOSERS, "vca": vca, "h2nmf": lambda X, n: h2nmf(X, n).indices}


# ---------------------------------------------------------------- straightforward versions


def choice(scores, X):
    """The largest score; of those within a millionth the longest pixel, then the first."""
    size, largest = [float(x @ x) for x in X], max(scores)
    tied = [i for i, score in enumerate(scores) if score >= largest * (1 - 1e-6)]
    longest = max(size[i] for i in tied)
    return next(i for i in tied if size[i] >= longest * (1 - 1e-6))


def plain_spa(X, n):
    """Distances from the span by a projector, a dense matrix made from a pseudo-inverse."""
    chosen = []
    for _ in range(n):
        W = X[chosen]
        projector = np.eye(X.shape[1]) - np.linalg.pinv(W) @ W
        chosen.append(choice(np.linalg.norm(X @ projector, axis=1) ** 2, X))
    return chosen


def nearest_in_hull(W, x):
    """Return the point of conv({0} and the rows of W) nearest to x.

    The point of least norm of a hull of columns p_j: of P u and c (sum(u) - 1) with u >= 0, the sum
    of squares is least for a multiple of the weights sought.
    """
    P = np.vstack([W, np.zeros(len(x))]).T - x[:, None]
    c = np.linalg.norm(x) + 1e-300
    u = scipy.optimize.nnls(np.vstack([P, np.full(P.shape[1], c)]), np.append(np.zeros(len(x)), c))[
        0
    ]
    return (u[:-1] / u.sum()) @ W


def plain_snpa(X, n):
    chosen = [choice(np.sum(X**2, axis=1), X)]
    while len(chosen) < n:
        left = [float(np.sum((x - nearest_in_hull(X[chosen], x)) ** 2)) for x in X]
        chosen.append(choice(left, X))
    return chosen


def plain_xray(X, n):
    chosen, residuals = [], X
    while True:
        r = residuals[choice(np.sum(residuals**2, axis=1), X)]
        chosen.append(choice([float(r @ x) / float(x.sum()) for x in X], X))
        if len(chosen) == n:
            return chosen
        W = X[chosen]
        residuals = np.array([x - scipy.optimize.nnls(W.T, x)[0] @ W for x in X])


PLAIN = {"spa": plain_spa, "snpa": plain_snpa, "xray": plain_xray}


@pytest.mark.parametrize("name", CHOOSERS)
@pytest.mark.parametrize("seed", range(6))
def test_made_scenes_as_the_straightforward_version(name, seed):
    n = 2 + seed % 4
    uneven = generic(seed) * np.random.default_rng(seed).uniform(0.2, 3.0, (40, 1))
    for X in (generic(seed), uneven, separable(n, seed=seed)[0], noisy(n, 0.02, seed)[0]):
        assert CHOOSERS[name](X, n).tolist() == PLAIN[name](X, n)


@needs_data
@pytest.mark.parametrize("name", CHOOSERS)
@pytest.mark.parametrize(("scene", "n"), [("samson", 3), ("jasper_ridge", 4)])
def test_real_scenes_as_the_straightforward_version(name, scene, n):
    X = real(scene)[0]
    assert CHOOSERS[name](X, n).tolist() == PLAIN[name](X, n)


# ---------------------------------------------------------------- what is promised


def noisy(n, level, seed):
    X, pure = separable(n, seed=seed)
    return X + level * np.random.default_rng(seed).uniform(-1, 1, X.shape), pure


@pytest.mark.parametrize("name", ["spa", "snpa", "xray", "vca"])
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_pure_pixels_are_found(name, n):
    for seed in range(5):
        X, pure = separable(n, seed=seed)
        assert sorted(ALL[name](X, n)) == pure.tolist()


@pytest.mark.parametrize("name", ["spa", "snpa", "xray", "vca"])
def test_pure_pixels_are_found_in_noise(name):
    for seed in range(5):
        X, pure = noisy(3, 1e-3, seed)
        assert sorted(ALL[name](X, 3)) == pure.tolist()


def test_brightness_does_not_matter_to_xray():
    for seed in range(5):
        X, pure = separable(4, seed=seed)
        bright = np.random.default_rng(seed).uniform(0.1, 10.0, len(X))
        assert sorted(xray(bright[:, None] * X, 4)) == pure.tolist()


def test_snpa_projects_on_a_hull_and_spa_on_a_span():
    """The third pixel is in the cone of the first two, but far beyond their hull."""
    X = [[10.0, 0.0, 0.0], [0.0, 8.0, 0.0], [6.0, 6.0, 0.0], [1.0, 1.0, 1.0]]
    assert snpa(X, 3).tolist() == [0, 1, 2]
    assert spa(X, 3).tolist() == [0, 1, 3]


def test_dependent_endmembers_are_found_by_projections_on_hulls_and_cones():
    corners = np.array([[0, 0, 1, 0], [2, 0, 1, 0], [0, 2, 1, 0], [2, 2, 1, 0]], dtype=float)
    shares = np.random.default_rng(0).dirichlet(np.ones(4), 30)
    X = np.vstack([shares @ corners, corners])
    assert sorted(snpa(X, 4)) == sorted(xray(X, 4)) == [30, 31, 32, 33]
    with pytest.raises(ValueError, match=r"n = 4 .* 3 of the pixels .* Use an n of up to 3"):
        spa(X, 4)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 5), power=st.integers(-250, 250))
@pytest.mark.parametrize("name", ALL)
def test_units_do_not_matter(name, seed, n, power):
    X = generic(seed)
    assert ALL[name](X * 2.0**power, n).tolist() == ALL[name](X, n).tolist()


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 5))
@pytest.mark.parametrize("name", ALL)
def test_the_order_of_pixels_does_not_matter(name, seed, n):
    X = generic(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    assert order[ALL[name](X[order], n)].tolist() == ALL[name](X, n).tolist()


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 4))
@pytest.mark.parametrize("name", CHOOSERS)
def test_more_endmembers_begin_with_fewer(name, seed, n):
    X = generic(seed)
    assert CHOOSERS[name](X, n + 1)[:n].tolist() == CHOOSERS[name](X, n).tolist()


def test_spa_is_not_misled_by_cancellation():
    """Squared distances of 1e-18 beside squared lengths of 100, from which they are subtracted."""
    rng = np.random.default_rng(3)
    q = np.linalg.qr(rng.standard_normal((6, 3)))[0].T
    away = rng.uniform(0.1, 1.0, 50)
    X = 10.0 * q[0] + 1e-9 * away[:, None] * q[1]
    X[17], away[17] = 11.0 * q[0], 0.0
    X[23], away[23] = 10.0 * q[0] + 2e-9 * q[1], 2.0
    assert spa(X, 2).tolist() == [17, 23]
    np.testing.assert_array_equal(spa(X, 2), plain_spa(X, 2))


def test_xray_is_not_misled_by_cancellation():
    """Rays that are 1e-9 apart: the residual is short, and its rounding along the first is not."""
    rng = np.random.default_rng(3)
    apart = rng.uniform(0.0, 1.0, 50)
    apart[17], apart[23] = 0.0, 2.0
    X = rng.random(6) + 1e-9 * apart[:, None] * rng.random(6)
    X *= rng.uniform(0.5, 1.0, 50)[:, None]
    X[17] *= 4.0  # all rays are tied at first, and the longest is taken
    assert xray(X, 2).tolist() == [17, 23]


# ---------------------------------------------------------------- hard and wrong input


@pytest.mark.parametrize("name", ALL)
def test_pixels_of_zeros_are_never_chosen(name):
    X = generic(1)
    rows = np.sort(np.random.default_rng(0).permutation(60)[: len(X)])
    sparse = np.zeros((60, X.shape[1]))
    sparse[rows] = X
    assert ALL[name](sparse, 4).tolist() == rows[ALL[name](X, 4)].tolist()


@pytest.mark.parametrize("name", CHOOSERS)
def test_of_copies_the_first_is_chosen_and_of_multiples_the_longest(name):
    X, pure = separable(3, seed=2)
    copies = np.vstack([X, X[pure], 0.5 * X[pure], X[::-1]])
    assert sorted(CHOOSERS[name](copies, 3)) == pure.tolist()
    brighter = np.vstack([0.5 * X, X[pure]])
    assert sorted(CHOOSERS[name](brighter, 3)) == [len(X), len(X) + 1, len(X) + 2]


@pytest.mark.parametrize("name", CHOOSERS)
def test_too_low_a_rank_is_named(name):
    X, _ = separable(3, bands=10, seed=4)
    with pytest.raises(ValueError, match=r"n = 4 .* 3 of the pixels explain all others"):
        CHOOSERS[name](X, 4)
    with pytest.raises(ValueError, match=r"but 1 of the pixels"):
        CHOOSERS[name](np.outer([1.0, 3.0, 2.0], [1.0, 2.0, 5.0]), 2)


@pytest.mark.parametrize("name", ALL)
def test_integers_float32_and_any_layout_are_taken(name):
    X = np.random.default_rng(0).integers(1, 1000, (40, 8))
    expected = ALL[name](X.astype(float), 4).tolist()
    for other in (X, X.astype(np.uint16), X.astype(np.float32), X.tolist(), np.asfortranarray(X)):
        assert ALL[name](other, 4).tolist() == expected


@pytest.mark.parametrize("name", CHOOSERS)
def test_pixels_without_a_common_band(name):
    """No pixel gets weight in the fit of another; all are tied, so that the first is chosen."""
    assert CHOOSERS[name](np.eye(4), 4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["spa", "snpa", "xray", "h2nmf"])
def test_one_pixel_and_one_endmember(name):
    assert ALL[name]([[1.0, 2.0, 3.0]], 1).tolist() == [0]
    assert ALL[name]([[3.0]], 1).tolist() == [0]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("X", "n", "message"),
    [
        (np.ones(5), 2, r"shape \(pixels, bands\); got \(5,\).*X\[None, :\]"),
        (np.ones((2, 3, 4)), 2, r"got \(2, 3, 4\).*reshape"),
        (np.ones((0, 4)), 2, r"got \(0, 4\)"),
        ([[1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0]], 2, r"2 of 3 pixels, the first in row 1"),
        (np.zeros((4, 3)), 2, r"not all zero; got zeros of shape \(4, 3\)"),
        (np.ones((6, 2)), 3, r"n = 3, 2 bands and 6 such pixels. Use an n of up to 2"),
        (np.eye(3, 9), 4, r"n = 4, 9 bands and 3 such pixels. Use an n of up to 3"),
        (np.eye(3), 0, r"positive integer; got 0"),
        (np.eye(3), 2.0, r"positive integer; got 2.0"),
        (np.eye(3, dtype=complex), 2, r"real numbers; got dtype complex128"),
    ],
)
def test_wrong_input_is_named(name, X, n, message):
    with pytest.raises(ValueError, match=message):
        ALL[name](X, n)


def test_xray_needs_positive_sums():
    X = generic(0)
    X[7] = -X[7]
    with pytest.raises(ValueError, match=r"that of row 7 is -.*np.maximum"):
        xray(X, 3)
