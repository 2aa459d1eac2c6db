"""Factors under the divergence of Kullback and Leibler, against SciPy and optimality conditions."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import kl_div

from conepursuit.kernels import factorization as kernels
from conepursuit.kernels.constants import EPS

NONE = np.empty((0, 0))


def divergence(X, F, G, M=None):
    """Return the sum of the divergences by SciPy; infinity where z = 0 < x."""
    Z = F.T @ G
    terms = kl_div(X, Z)
    far = np.isinf(terms) & (Z > 0)  # where x / z overflows
    terms[far] = X[far] * (np.log(X[far]) - np.log(Z[far])) - X[far] + Z[far]
    return terms.sum() if M is None else terms[M > 0] @ M[M > 0]


def penalised(X, F, G, M=None, l1=0.0, l2=0.0):
    return divergence(X, F, G, M) + l1 * F.sum() + 0.5 * l2 * (F**2).sum()


def update(X, F, G, M=None, l1=0.0, l2=0.0):
    """Make a step; return the divergence before it."""
    return kernels.update_dense(X, NONE if M is None else M, F, G, l1, l2, True, True)


def update_stored(X, F, G, l1=0.0, l2=0.0, step=True):
    S = sp.csr_matrix(X)
    sums = G.sum(axis=1)
    return kernels.update_sparse(S.data, S.indices, S.indptr, F, G, sums, l1, l2, step, True)


def problem(seed, m=37, n=53, k=4, zeros=0.4):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, 2.0, (m, n)) * (rng.random((m, n)) > zeros)
    return X, rng.random((k, m)) + 0.01, rng.random((k, n)) * (rng.random((k, n)) > 0.2)


def degenerate(name, seed=0):
    """Return X, F, G and weights of an awkward kind."""
    X, F, G = problem(seed)
    M = None
    if name == "zero row and column":
        X[3], X[:, 5] = 0.0, 0.0
    elif name == "component without mass":
        G[1] = 0.0
    elif name == "equal components":
        G[1], F[1] = G[0], F[0]
    elif name == "zeros in F":
        F[np.random.default_rng(seed).random(F.shape) < 0.5] = 0.0
    elif name == "row of zeros in F":
        F[:, 7] = 0.0
    elif name == "column that none reaches":
        G[:, 5] = 0.0
    elif name == "tiny":
        X, F, G = X * 1e-150, F * 1e-75, G * 1e-75
    elif name == "huge":
        X, F, G = X * 1e100, F * 1e50, G * 1e50
    elif name == "wrong scale":
        F = F * 1e-200
    elif name == "far too small":
        F = F * 1e-307
    elif name == "pull that overflows":
        X, F, G = X * 1e60, F * 1e-265, G * 1e40
    elif name == "missing rows":
        M = np.ones_like(X)
        M[4], M[:, 9] = 0.0, 0.0
    elif name == "one row":
        X, F = X[:1], F[:, :1].copy()
    elif name == "one column":
        X, G = X[:, :1].copy(), G[:, :1].copy()
    elif name == "more components than columns":
        X, F, G = problem(seed, m=6, n=3, k=9)
    return X, F, G, M


KINDS = [
    "zero row and column", "component without mass", "equal components", "zeros in F",
    "row of zeros in F", "column that none reaches", "tiny", "huge", "wrong scale",
    "far too small", "pull that overflows", "missing rows", "one row", "one column",
    "more components than columns",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
def test_never_rises_whatever_the_data(kind, sparse):
    X, F, G, M = degenerate(kind)
    if sparse and M is not None:
        pytest.skip("a sparse X has no weights")
    for l1, l2 in ((0.0, 0.0), (0.3, 0.0), (0.0, 0.2), (0.1, 0.5)):
        f, last = F.copy(), penalised(X, F, G, M, l1, l2)
        for _ in range(30):
            if sparse:
                update_stored(X, f, G, l1, l2)
            else:
                update(X, f, G, M, l1, l2)
            assert np.isfinite(f).all()
            assert (f >= 0).all()
            value = penalised(X, f, G, M, l1, l2)
            assert value <= last * (1 + 1e-13) + 1e-14 * X.sum()
            last = value
        assert np.isfinite(last) or kind == "column that none reaches"


@pytest.mark.parametrize("seed", range(5))
def test_both_factors_never_rise(seed):
    X, F, G = problem(seed, m=90, n=800)
    last = divergence(X, F, G)
    for _ in range(20):
        for A, f, g in ((X, F, G), (np.ascontiguousarray(X.T), G, F)):
            update(A, f, g)
            value = divergence(X, F, G)
            assert value <= last * (1 + 1e-13)
            last = value


@pytest.mark.parametrize("penalties", [(0.0, 0.0), (0.7, 0.0), (0.0, 0.4), (0.2, 0.3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_ends_where_the_conditions_of_optimality_hold(penalties, weighted):
    l1, l2 = penalties
    X, F, G = problem(1, zeros=0.2)
    M = np.random.default_rng(2).integers(0, 3, X.shape).astype(float) if weighted else None
    F[np.random.default_rng(3).random(F.shape) < 0.5] = 0.0
    for _ in range(4000):
        update(X, F, G, M, l1, l2)
    W = np.ones_like(X) if M is None else M
    price = G @ W.T + l1
    Z = np.maximum(F.T @ G, 1e-300)  # 0 where W X is, too
    slope = price + l2 * F - G @ (W * X / Z).T
    assert (slope >= -1e-5 * price).all()
    assert (abs(slope * F) <= 1e-4 * (price * F).max()).all()
    assert (F > 1e-3).any(axis=1).all()


@pytest.mark.parametrize("value", [0.0, 1e-250, 1e-30])
def test_zeros_are_no_trap(value):
    X, F, G = problem(4, k=3)
    best = F.copy()
    for _ in range(500):
        update(X, best, G)
    start = best.copy()
    largest = best.argmax(axis=0)
    start[largest, np.arange(X.shape[0])] = value
    for _ in range(500):
        update(X, start, G)
    assert divergence(X, start, G) <= divergence(X, best, G) * (1 + 1e-6)


@pytest.mark.parametrize("l2", [0.0, 5.0])
def test_an_entry_let_out_of_zero_does_not_go_too_far(l2):
    for seed in range(20):
        X, F, G = problem(seed, m=1, k=3)
        G += 0.1
        F[:] *= 20.0
        F[1] = 0.0
        for _ in range(300):  # the others are settled, as if there were no second component
            update(X, F, np.ascontiguousarray(G * [[1.0], [0.0], [1.0]]), None, 0.0, l2)
        F[1] = 0.0
        before = penalised(X, F, G, None, 0.0, l2)
        update(X, F, G, None, 0.0, l2)
        slope = G[1].sum() + l2 * F[1, 0] - G[1] @ (X[0] / (F.T @ G)[0])
        # where no entry moves, the two values differ by the rounding of their sums
        assert penalised(X, F, G, None, 0.0, l2) <= before * (1 + 4 * EPS)
        assert slope <= 1e-12 * G[1].sum() or F[1, 0] == 0.0


def test_rows_do_not_depend_on_each_other():
    X, F, G = problem(12, m=150, n=400)  # more than a tile
    some = np.r_[0:5, 77:84, 140:150]
    part = np.ascontiguousarray(F[:, some])
    update(X, F, G)
    update(np.ascontiguousarray(X[some]), part, G)
    np.testing.assert_allclose(part, F[:, some], rtol=1e-12)


def test_weights_0_and_1_remove_entries():
    X, F, G = problem(5)
    kept = np.random.default_rng(6).random(X.shape[1]) < 0.6
    M = np.tile(kept.astype(float), (X.shape[0], 1))
    removed, weighted = F.copy(), F.copy()
    for _ in range(5):
        a = update(np.ascontiguousarray(X[:, kept]), removed, np.ascontiguousarray(G[:, kept]))
        b = update(X, weighted, G, M)
        assert a == pytest.approx(b, rel=1e-13)
    np.testing.assert_allclose(weighted, removed, rtol=1e-10)


def test_weight_2_counts_twice():
    X, F, G = problem(7)
    M = np.ones_like(X)
    M[:, :9] = 2.0
    twice, weighted = F.copy(), F.copy()
    for _ in range(3):
        update(np.hstack([X, X[:, :9]]), twice, np.hstack([G, G[:, :9]]))
        update(X, weighted, G, M)
    np.testing.assert_allclose(weighted, twice, rtol=1e-10)


def test_a_missing_row_keeps_its_factor_and_counts_nothing():
    X, F, G, M = degenerate("missing rows")
    before = F[:, 4].copy()
    assert update(X, F, G, M) == pytest.approx(divergence(X, degenerate("missing rows")[1], G, M))
    np.testing.assert_array_equal(F[:, 4], before)


@pytest.mark.parametrize("kind", ["plain", *KINDS])
@pytest.mark.parametrize("penalties", [(0.0, 0.0), (0.2, 0.3)])
def test_sparse_equals_dense(kind, penalties):
    X, F, G, M = degenerate(kind)
    if M is not None:
        pytest.skip("a sparse X has no weights")
    f = F.copy()
    for _ in range(5):
        a, b = update(X, F, G, None, *penalties), update_stored(X, f, G, *penalties)
        assert a == b or a == pytest.approx(b, rel=1e-12)
        np.testing.assert_allclose(f, F, rtol=1e-9, atol=1e-12 * F.max())


@pytest.mark.parametrize("spread", [1e-14, 1e-6, 0.1, 1.0, 30.0, 300.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_divergence_is_exact(spread, weighted):
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(8)
    x = np.exp(rng.standard_normal((1, 50)))
    z = x * np.exp(spread * rng.uniform(-1, 1, x.shape))
    if spread > 0.01:  # their z would hide what cancels in the others
        x[:, ::7] = 0.0
    F = np.array([[1.0, 0.5, 0.25]])  # powers of 2, so that z is exact
    X = F.T @ x
    M = rng.random(X.shape) if weighted else np.ones_like(X)
    value = kernels.update_dense(X, M if weighted else NONE, F, z, 0.0, 0.0, False, True)
    with mpmath.workdps(60):
        exact = mpmath.mpf(0)
        for x, fit, weight in zip(X.ravel(), (F.T @ z).ravel(), M.ravel(), strict=True):
            x, fit = mpmath.mpf(x), mpmath.mpf(fit)
            term = fit - x + (x * mpmath.log(x / fit) if x > 0 else 0)
            exact += mpmath.mpf(weight) * term
        assert abs(value - exact) <= 1e-14 * exact


@pytest.mark.parametrize("kind", ["plain", *KINDS])
def test_the_divergence_is_that_before_the_step(kind):
    X, F, G, M = degenerate(kind)
    expected = divergence(X, F, G, M)
    assert kernels.update_dense(X, NONE if M is None else M, F.copy(), G, 0, 0, False, True) == (
        pytest.approx(expected, rel=1e-13)
    )
    if M is None:
        assert update_stored(X, F.copy(), G, step=False) == pytest.approx(expected, rel=1e-12)
    assert update(X, F.copy(), G, M) == pytest.approx(expected, rel=1e-13)


def test_without_a_step_nothing_moves():
    X, F, G = problem(9)
    f = F.copy()
    assert kernels.update_dense(X, NONE, f, G, 0.0, 0.0, False, False) == 0.0
    np.testing.assert_array_equal(f, F)


def test_a_step_keeps_the_sums_of_rows():
    """Without penalties a multiplicative step gives z the row sums of X."""
    X, F, G = problem(10, zeros=0.0)
    G += 0.1
    update(X, F, G)
    np.testing.assert_allclose((F.T @ G).sum(axis=1), X.sum(axis=1), rtol=1e-12)


def test_penalties_by_hand():
    """One row and one component: (s + l1) f + l2 f^2 - x = 0 at the least value."""
    X, G = np.array([[2.0, 3.0]]), np.array([[1.0, 4.0]])
    for l1, l2 in ((0.0, 0.0), (0.5, 0.0), (0.5, 0.7)):
        F = np.ones((1, 1))
        update(X, F, G, None, l1, l2)
        assert (5.0 + l1) * F[0, 0] + l2 * F[0, 0] ** 2 == pytest.approx(5.0, rel=1e-14)


def test_l2_alone_removes_a_component_without_mass():
    X, F, G, _ = degenerate("component without mass")
    kept = F.copy()
    update(X, kept, G)
    np.testing.assert_array_equal(kept[1], F[1])
    update(X, F, G, None, 0.0, 0.1)
    np.testing.assert_array_equal(F[1], 0.0)


def test_extrapolation_is_about_a_power_and_bounded():
    rng = np.random.default_rng(11)
    old = rng.random((3, 40)) + 0.1
    new = old * np.exp(rng.uniform(-3, 3, old.shape))
    new[0, :5], old[1, :5] = 0.0, 0.0
    out = np.empty_like(new)
    kernels.extrapolate(new, old, 0.6, 2.0, out)
    quotient = np.clip(new / np.where(old > 0, old, new), 0.5, 2.0)
    np.testing.assert_allclose(out, new * quotient**0.6, rtol=0.02)
    kernels.extrapolate(new, old, 0.0, 2.0, out)
    np.testing.assert_allclose(out, new, rtol=1e-15)
