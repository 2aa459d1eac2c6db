"""Best weights under the divergence of Kullback and Leibler, against other solvers and by proof."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls
from scipy.special import kl_div

from conepursuit import KullbackLeibler, nnfit
from conepursuit.kernels import factorization as kernels

PENALTIES = [(0.0, 0.0), (0.7, 0.0), (0.0, 0.4), (0.2, 3.0)]
WITHIN = 1.0001e-9
"""The tolerance, and some rounding."""


def fit(X, G, l1=0.0, l2=0.0, F=None, tolerance=1e-9, max_sweeps=100):
    """Return the weights and how many rows did not reach the tolerance; 0 to start from, if none.

    Without a given start every row has to reach it.
    """
    S = sp.csr_matrix(X)
    start = np.zeros((len(G), S.shape[0])) if F is None else F.copy()
    missed = kernels.fit_rows(S.data, S.indices, S.indptr, start, G, l1, l2, tolerance, max_sweeps)
    assert np.isfinite(start).all()
    assert (start >= 0).all()
    assert missed == 0 or max_sweeps < 100
    return start


def values(X, F, G, l1=0.0, l2=0.0):
    """Return phi of each row."""
    return kl_div(X, F.T @ G).sum(axis=1) + l1 * F.sum(axis=0) + 0.5 * l2 * (F**2).sum(axis=0)


def excess(X, F, G, l1=0.0, l2=0.0):
    """Return the proven bound, of each row and relative to its sum, of phi less its least value.

    As phi is convex, it is <g, f> - <g, f*>, and sum_r (f*_r / what component r has alone)^2 <= 1.
    """
    some = G.any(axis=1)
    F, G = F[some], G[some]
    Z = np.where(X > 0, F.T @ G, 1.0)
    price, mass = G.sum(axis=1)[:, None] + l1, X.sum(axis=1)
    g = price + l2 * F - G @ (X / Z).T
    alone = 2 * mass / (price + np.sqrt(price**2 + 4 * l2 * mass))
    return ((g * F).sum(axis=0) + np.linalg.norm(np.minimum(g, 0) * alone, axis=0)) / mass


def problem(seed, m=30, n=40, k=6, zeros=0.5):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, 2.0, (m, n)) * (rng.random((m, n)) > zeros)
    X[:, 0] += 0.1  # no row is zero
    G = rng.gamma(0.5, 1.0, (k, n)) * (rng.random((k, n)) > 0.3)
    G[0] += 0.01  # all entries are reached
    return X, G


@pytest.mark.parametrize("penalty", [0.0, 0.5, 20.0])
@pytest.mark.parametrize("seed", range(3))
def test_equals_nnfit(penalty, seed):
    X, G = problem(seed)
    ours = values(X, fit(X, G, penalty), G, penalty)
    for x, value in zip(X, ours, strict=True):
        other = nnfit(KullbackLeibler(x), G.T, penalty=penalty, tol=1e-12)
        assert value == pytest.approx(other.value, rel=1e-9)


@pytest.mark.parametrize("penalties", [(0.0, 0.4), (0.2, 3.0), (0.0, 1e3)])
def test_equals_bounded_quasi_newton(penalties):
    l1, l2 = penalties
    X, G = problem(3, m=8)
    F = fit(X, G, l1, l2)
    ours = values(X, F, G, l1, l2)
    for x, f, value in zip(X, F.T, ours, strict=True):

        def phi(f, x=x):
            return values(x[None], f[:, None], G, l1, l2)[0]

        def slope(f, x=x):
            return G.sum(axis=1) + l1 + l2 * f - G @ (x / (f @ G))

        options = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-11}
        other = minimize(
            phi,
            f + 0.1,
            jac=slope,
            method="L-BFGS-B",
            bounds=[(1e-12, None)] * len(f),
            options=options,
        )
        assert value <= other.fun * (1 + 1e-13)
        assert value == pytest.approx(other.fun, rel=1e-9)
        np.testing.assert_allclose(f, other.x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("shape", [(40, 6), (12, 30), (300, 25), (3, 100)])
def test_conditions_of_optimality(penalties, shape):
    n, k = shape
    X, G = problem(5, n=n, k=k)
    F = fit(X, G, *penalties)
    assert excess(X, F, G, *penalties).max() <= WITHIN
    assert (F == 0).any()
    G[0] = 0.3  # dense, so that all weights are small but not zero under a large penalty
    assert excess(X, fit(X, G, 0.0, 1e6), G, 0.0, 1e6).max() <= WITHIN


@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-4])
def test_the_tolerance_is_proved(penalties, tolerance):
    X, G = problem(6, m=200)
    best = values(X, fit(X, G, *penalties, tolerance=1e-13), G, *penalties)
    loose = values(X, fit(X, G, *penalties, tolerance=tolerance), G, *penalties)
    assert (loose - best <= tolerance * X.sum(axis=1)).all()
    assert (loose >= best * (1 - 1e-12)).all()
    if tolerance == 1e-1:
        assert (loose > best * (1 + 1e-6)).any()  # or nothing was tested


def test_rows_that_stop_early_are_counted():
    X, G = problem(7)
    S, F = sp.csr_matrix(X), np.zeros((6, 30))
    assert kernels.fit_rows(S.data, S.indices, S.indptr, F, G, 0.0, 0.0, 1e-9, 0) == 30
    once = kernels.fit_rows(S.data, S.indices, S.indptr, F, G, 0.0, 0.0, 1e-9, 1)
    assert 0 < once <= 30
    assert kernels.fit_rows(S.data, S.indices, S.indptr, F, G, 0.0, 0.0, 1e-9, 100) == 0
    before = F.copy()
    assert kernels.fit_rows(S.data, S.indices, S.indptr, F, G, 0.0, 0.0, 1e-9, 0) == 0
    np.testing.assert_allclose(F, before, rtol=1e-8)


@pytest.mark.parametrize("penalties", PENALTIES)
def test_newton_steps_take_few_sweeps(penalties):
    X, G = problem(8, m=100)
    S, F = sp.csr_matrix(X), np.zeros((6, 100))
    assert kernels.fit_rows(S.data, S.indices, S.indptr, F, G, *penalties, 1e-12, 12) == 0


@pytest.mark.parametrize("penalties", PENALTIES)
def test_any_start_will_do(penalties):
    X, G = problem(9)
    rng = np.random.default_rng(10)
    best = fit(X, G, *penalties)
    wrong = best.max(axis=0) - best
    wrong[best.argmax(axis=0), np.arange(30)] = 0.0
    starts = [best, wrong, np.ones_like(best), 1e200 * wrong, 1e-200 * wrong, 1e-308 * wrong]
    starts += [wrong * (rng.random(best.shape) < 0.3), 1e30 ** rng.uniform(-1, 1, best.shape)]
    for start in starts:
        F = fit(X, G, *penalties, start)
        np.testing.assert_allclose(
            values(X, F, G, *penalties), values(X, best, G, *penalties), rtol=1e-10
        )


@pytest.mark.parametrize("penalties", PENALTIES)
def test_scales_do_not_matter(penalties):
    l1, l2 = penalties
    X, G = problem(11)
    expected = fit(X, G, l1, l2, tolerance=1e-13)
    rng = np.random.default_rng(12)
    for a, b in ((1e100, 1e100), (1e-100, 1e-100), (1e100, 1e-100), (1e-100, 1e100)):
        F = fit(a * X, b * G, b * l1, b * (b / a) * l2, tolerance=1e-13)
        np.testing.assert_allclose(F * (b / a), expected, rtol=1e-9, atol=1e-12)
    if l1 == l2 == 0:
        a, b = 10.0 ** rng.uniform(-100, 100, (30, 1)), 10.0 ** rng.uniform(-100, 100, (6, 1))
        F = fit(a * X, b * G, tolerance=1e-13)
        np.testing.assert_allclose(F * b / a.T, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spread", [10, 50])
def test_entries_of_all_scales(spread):
    """What is right for entries of a tiny share counts as well, as it is in the gradient."""
    rng = np.random.default_rng(13)
    X, G = problem(13)
    X, G = X * 10.0 ** rng.uniform(-spread, spread, X.shape), G * 10.0 ** rng.uniform(-9, 9, 40)
    F = fit(X, G)
    assert excess(X, F, G).max() <= WITHIN
    assert np.isfinite(values(X, F, G)).all()


def test_what_rounding_hides_is_not_lost():
    """Only the second component, not needed elsewhere, reaches an entry of next to no share."""
    X, G = np.array([[1.0, 1.0, 1e-60]]), np.array([[1.0, 1.0, 0.0], [0.9, 0.8, 1.0]])
    for start in ([0.0, 1.0], [1.0, 0.0], [0.3, 0.7]):
        F = fit(X, G, F=np.array([start]).T)
        assert np.isfinite(values(X, F, G)).all()
        assert excess(X, F, G)[0] <= WITHIN


@pytest.mark.parametrize("penalties", PENALTIES)
def test_one_component_in_closed_form(penalties):
    l1, l2 = penalties
    X, G = problem(14, k=1)
    price, mass = G.sum() + l1, X.sum(axis=1)
    expected = 2 * mass / (price + np.sqrt(price**2 + 4 * l2 * mass))
    np.testing.assert_allclose(fit(X, G, l1, l2)[0], expected, rtol=1e-12)
    S, F = sp.csr_matrix(X), np.ones((1, 30))
    assert (
        kernels.fit_rows(S.data, S.indices, S.indptr, F, G, l1, l2, 1e-13, 0) == 0
    )  # by scale alone


@pytest.mark.parametrize("penalties", PENALTIES)
def test_rows_without_mass_get_no_weight(penalties):
    X, G = problem(15)
    expected = fit(X, G, *penalties)
    X[3], X[8] = 0.0, 0.0
    S = sp.csr_matrix(X)
    S.data[S.indptr[4] : S.indptr[5]] = 0.0  # stored zeros
    F = fit(S, G, *penalties, np.ones((6, 30)))
    np.testing.assert_array_equal(F[:, [3, 4, 8]], 0.0)
    np.testing.assert_allclose(np.delete(F, [3, 4, 8], 1), np.delete(expected, [3, 4, 8], 1), 1e-4)


@pytest.mark.parametrize("penalties", PENALTIES)
def test_components_that_are_zero_get_no_weight(penalties):
    X, G = problem(16)
    expected = fit(X, np.ascontiguousarray(np.delete(G, 2, 0)), *penalties)
    for tiny in (0.0, 5e-324, 1e-305):
        G[2] = tiny
        F = fit(X, G, *penalties, np.full((6, 30), 1e-5))
        np.testing.assert_array_equal(F[2], 0.0)
        np.testing.assert_allclose(np.delete(F, 2, 0), expected, rtol=1e-4, atol=1e-6)
        F[2] = 1e-13  # at the optimum otherwise, so that no sweep is made
        np.testing.assert_array_equal(fit(X, G, *penalties, F)[2], 0.0)


@pytest.mark.parametrize("penalties", PENALTIES)
def test_entries_that_no_component_reaches_are_left_out(penalties):
    X, G = problem(17)
    G[:, [5, 9]] = 0.0
    X[6] = 0.0
    X[6, 5] = 3.0  # nothing else
    without = np.where(np.isin(np.arange(40), [5, 9]), 0.0, X)
    F = fit(X, G, *penalties)
    np.testing.assert_array_equal(F, fit(without, G, *penalties))
    np.testing.assert_array_equal(F[:, 6], 0.0)


def test_stored_zeros_count_like_others():
    X, G = problem(18)
    S = sp.csr_matrix(X + 1.0)
    S.data = X.ravel().copy()
    np.testing.assert_array_equal(fit(S, G, 0.1, 0.1), fit(X, G, 0.1, 0.1))


@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("kind", ["equal", "multiples", "low rank", "nearly equal", "many"])
def test_dependent_components(penalties, kind):
    X, G = problem(19, k=12, n=50 if kind != "many" else 4)
    rng = np.random.default_rng(20)
    if kind == "equal":
        G[1::2] = G[::2]
    elif kind == "multiples":
        G = rng.random((12, 1)) * G[:1]
    elif kind == "low rank":
        G = rng.random((12, 3)) @ (G[:3] + 0.01)
    elif kind == "nearly equal":
        G = G[:1] + 1e-7 * rng.random(G.shape)
    for start in (None, rng.random((12, 30))):
        F = fit(X, G, *penalties, start)
        assert excess(X, F, G, *penalties).max() <= WITHIN


def test_exact_data_are_fitted_exactly():
    rng = np.random.default_rng(21)
    G = rng.gamma(0.5, 1.0, (5, 60))
    F = rng.random((5, 20)) * (rng.random((5, 20)) < 0.6)
    F[0] += 0.1
    np.testing.assert_allclose(fit(F.T @ G, G, tolerance=1e-13), F, atol=1e-6)


def test_rows_do_not_depend_on_each_other():
    X, G = problem(22)
    X[7] = 0.0  # rows of other lengths use the same memory
    X[::3, 20:] = 0.0
    together = fit(X, G, 0.1, 0.2)
    for i in range(30):
        np.testing.assert_array_equal(fit(X[i : i + 1], G, 0.1, 0.2)[:, 0], together[:, i])


def test_nothing_to_do():
    X, G = problem(23)
    assert fit(X[:0], G).shape == (6, 0)
    assert fit(X, G[:0]).shape == (0, 30)
    np.testing.assert_array_equal(fit(np.zeros((4, 0)), np.zeros((2, 0)), F=np.ones((2, 4))), 0.0)


def test_indices_of_64_bits():
    X, G = problem(24)
    S, F = sp.csr_matrix(X), np.zeros((6, 30))
    indices, indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    assert kernels.fit_rows(S.data, indices, indptr, F, G, 0.0, 0.0, 1e-9, 100) == 0
    np.testing.assert_array_equal(F, fit(X, G))


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 12),
    st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.sampled_from(PENALTIES),
)  # fmt: skip
def test_whatever_is_zero(seed, n, k, filled, used, penalties):
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 5, (6, n)) * (rng.random((6, n)) < filled)
    G = rng.gamma(0.5, 1.0, (k, n)) * (rng.random((k, n)) < used)
    F = rng.random((k, 6)) * (rng.random((k, 6)) < 0.5)
    F = fit(X.astype(float), G, *penalties, F)
    X = np.where(G.any(axis=0), X, 0.0)
    some = X.any(axis=1)
    np.testing.assert_array_equal(F[:, ~some], 0.0)
    np.testing.assert_array_equal(F[~G.any(axis=1)], 0.0)
    assert (excess(X[some], F[:, some], G, *penalties) <= WITHIN).all()


@pytest.mark.parametrize("q", [0.0, 1e-9, 0.3, 1.0])
def test_one_weight_never_goes_too_far_and_further_than_newton(q):
    rng = np.random.default_rng(25)
    for _ in range(200):
        n, u = rng.integers(1, 20), rng.choice([0.0, 1e-6, 0.3, 3.0])
        x, a = rng.dirichlet(np.ones(n)), rng.random(n) ** 3
        rest = rng.random(n) ** rng.choice([1, 20])

        def slope(t, x=x, a=a, rest=rest):
            return 1.0 - q + q * t - (x * a / (rest + t * a)).sum()

        pull, bend = (x * a / (rest + u * a)).sum(), (x * a**2 / (rest + u * a) ** 2).sum()
        best = kernels.minimiser(u, pull, bend, 1.0 - q, q)
        assert best == 0.0 or slope(best) <= 1e-9 * (1 + pull)
        assert best >= u - slope(u) / (bend + q) - 1e-12 * (1 + best)
        assert best > 0.0 or slope(u) >= 0.0


def test_one_weight_with_a_pole_far_away():
    """Where next to nothing pulls, rounding relative to the distance would be a weight."""
    for pull in 10.0 ** -np.arange(14.0, 25.0, 0.1):
        assert kernels.minimiser(0.5, pull, pull**2, 1.0 - 1e-5, 1e-5) == 0.0
    assert kernels.minimiser(0.5, 0.0, 0.0, 0.5, 0.5) == 0.0
    assert kernels.minimiser(0.25, 3.0, np.inf, 0.5, 0.5) == 0.25


@pytest.mark.parametrize("seed", range(20))
def test_quadratic_models_against_nnls(seed):
    """min |B v - b|^2 / 2 from any v >= 0 has H = B'B and the slope B'(B v - b)."""
    rng = np.random.default_rng(seed)
    B, b = rng.random((20, 8)), rng.standard_normal(20) + 0.5
    v = rng.random(8) * (rng.random(8) < 0.5)
    H = B.T @ B
    slope = H @ v - B.T @ b
    kernels.settle(H, v, slope)
    expected = nnls(B, b)[0]
    np.testing.assert_allclose(v, expected, atol=1e-12)
    np.testing.assert_allclose(slope, H @ expected - B.T @ b, atol=1e-12)
