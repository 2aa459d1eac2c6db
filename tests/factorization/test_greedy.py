"""Factorisations: the lean loop is the generic one, and nothing on the way rises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from conepursuit import (
    FCMP,
    PWMP,
    Cone,
    Corrected,
    Dictionary,
    FactoredLeastSquares,
    Huber,
    KullbackLeibler,
    LeastSquares,
    NonnegativeRankOne,
    minimize,
)
from conepursuit.atoms.power import GAIN
from conepursuit.factorization.data import FactorData
from conepursuit.factorization.greedy import factorize
from conepursuit.factorization.held_out import held_out
from conepursuit.factorization.losses import NO_PENALTIES, Penalty
from conepursuit.factorization.squared import SquaredLoss
from conepursuit.kernels import factorization as kernels


def low_rank(m=30, n=20, k=4, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    W, H = rng.random((m, k)) * (rng.random((m, k)) < 0.6), rng.random((k, n))
    return np.maximum(W @ H + noise * rng.standard_normal((m, n)), 0.0)


def losses(X, penalties=NO_PENALTIES):
    """Return every kind of loss on the same data."""
    rng = np.random.default_rng(0)
    M = rng.choice([0.0, 0.5, 2.0], X.shape)
    S = sparse.csr_array(X)
    ones = sparse.csr_array((np.ones(S.nnz), S.indices, S.indptr), S.shape)
    cases = {}
    for name, divergence in (("squares", False), ("divergence", True)):
        cases[name] = FactorData(X, None, divergence)
        cases[f"{name}, sparse"] = FactorData(S, None, divergence)
        cases[f"{name}, weighted"] = FactorData(np.where(M > 0, X, 0.0), M, divergence)
    cases["squares, observed"] = FactorData(S, ones, False)
    found = {name: data.loss(penalties) for name, data in cases.items()}
    found["squares, greedy"] = cases["squares"].loss(penalties, correction="gcd")
    found["squares, held out"] = held_out(
        cases["squares, sparse"], penalties, np.random.RandomState(0)
    )[1]
    found["divergence, held out"] = held_out(
        cases["divergence, sparse"], penalties, np.random.RandomState(0)
    )[1]
    return found


KINDS = sorted(losses(low_rank(6, 5)))


@pytest.mark.parametrize("algorithm", ["fcmp", "pwmp"])
@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("factored", [False, True])
def test_the_lean_loop_is_the_generic_one(algorithm, greedy, factored, monkeypatch):
    X = low_rank(40, 30, 6)
    lean = factorize(
        FactorData(X, None, False).loss(NO_PENALTIES, correction="gcd" if greedy else None), 7,
        algorithm=algorithm, rank_sweeps=3, max_iter=3, tol=0.0,
    )  # fmt: skip
    objective = FactoredLeastSquares(X) if factored else LeastSquares(X)
    monkeypatch.setattr(NonnegativeRankOne, "gain", GAIN)  # the lean loop is content with less
    generic = minimize(
        objective, Cone(NonnegativeRankOne(X.shape, factored=factored)),
        Corrected(FCMP() if algorithm == "fcmp" else PWMP(), sweeps=3, greedy=greedy), max_iter=7,
    )  # fmt: skip
    np.testing.assert_allclose(generic.trace["value"][1:], lean.path, rtol=1e-10)
    np.testing.assert_allclose(generic.trace["accuracy"][:-1], lean.accuracy, rtol=1e-6)
    np.testing.assert_allclose(
        np.asarray(generic.x), lean.factors[0].T @ lean.factors[1], atol=1e-8
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalties", [(0.0, 0.0), (0.1, 0.0), (0.0, 0.1)], ids=str)
def test_nothing_rises(kind, penalties):
    X = low_rank()
    loss = losses(X, (Penalty(*penalties), Penalty(*penalties)))[kind]
    for algorithm in ("fcmp", "pwmp"):
        fit = factorize(loss, 6, algorithm=algorithm, rank_sweeps=3, max_iter=30, tol=0.0)
        assert (fit.factors[0] >= 0).all()
        assert (fit.factors[1] >= 0).all()
        assert np.isfinite(fit.path).all()
        scale = abs(fit.path[0])
        assert (np.diff(fit.path) <= 1e-12 * scale).all()
        assert (np.diff(fit.values) <= 1e-12 * scale).all()
        np.testing.assert_allclose(loss.value(fit.factors), fit.path[-1], rtol=1e-9)
        assert ((fit.accuracy >= 0) & (fit.accuracy <= 1)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_descent_is_minus_the_gradient(kind):
    rng = np.random.default_rng(0)
    loss = losses(low_rank())[kind]
    F, G = rng.random((2, 30)) + 0.1, rng.random((2, 20)) + 0.1
    descent = np.asarray(loss.descent((F, G)))
    for _ in range(5):
        f, g = rng.random((1, 30)), rng.random((1, 20))
        step = 1e-5
        ahead, behind = (
            loss.fit((np.vstack([F, s * step * f]), np.vstack([G, g]))) for s in (1, -1)
        )
        slope = (ahead - behind) / (2 * step)
        np.testing.assert_allclose(-slope, f[0] @ descent @ g[0], rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_keeps_to_its_side_and_never_rises(kind):
    rng = np.random.default_rng(1)
    loss = losses(low_rank(), (Penalty(0.05, 0.1), Penalty(0.02, 0.0)))[kind]
    F, G = rng.random((3, 30)), rng.random((3, 20))
    value = loss.value((F, G))
    for _ in range(5):
        for side in (0, 1):
            before = F.copy(), G.copy()
            loss.update((F, G), side)
            np.testing.assert_array_equal((F, G)[1 - side], before[1 - side])
            now = loss.value((F, G))
            assert now <= value * (1 + 1e-13)
            value = now


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("growth", [0.5, 3.0])
def test_atoms_may_join_in_batches(kind, growth):
    loss = losses(low_rank())[kind]
    for algorithm in ("fcmp", "pwmp"):
        fit = factorize(loss, 9, algorithm=algorithm, growth=growth, rank_sweeps=3, max_iter=30)
        assert fit.factors[0].shape == (9, 30)
        assert len(fit.path) == len(fit.accuracy) == 9
        assert (np.diff(fit.path) <= 1e-12 * abs(fit.path[0])).all()
        assert ((fit.accuracy >= 0) & (fit.accuracy <= 1)).all()


def test_large_data_are_swept_in_float32_and_finished_in_float64():
    X = low_rank(400, 300, 5)
    loss = FactorData(X, None, False).loss(NO_PENALTIES)
    assert loss.coarse
    fit = factorize(loss, 5, max_iter=2000, tol=1e-12)
    assert not loss.coarse
    exact = 0.5 * np.sum((X - fit.factors[0].T @ fit.factors[1]) ** 2)
    np.testing.assert_allclose(fit.path[-1], exact, rtol=1e-10)
    slope = fit.factors[1] @ (fit.factors[0].T @ fit.factors[1] - X).T
    assert (
        np.abs(slope * fit.factors[0]).max()
        <= 1e-5 * np.abs(fit.factors[1] @ X.T).max() * fit.factors[0].max()
    )
    low = FactorData(low_rank(400, 300, 5, noise=0.0), None, False).loss(NO_PENALTIES)
    coarse = []
    factorize(low, 7, rank_sweeps=200, watch=lambda factors, value: coarse.append(low.coarse))
    assert coarse[0]
    assert not coarse[5]  # where float32 would show, it is not used


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "divergence" in kind])
def test_a_curvature_that_is_too_small_is_raised(kind, monkeypatch):
    rng = np.random.default_rng(0)
    loss = losses(low_rank())[kind]
    monkeypatch.setattr(type(loss), "smoothness", lambda *_: 1e-3)
    F, G = rng.random((3, 30)), rng.random((3, 20))
    before = loss.fit((F[:2], G[:2]))
    for algorithm in ("fcmp", "pwmp"):
        joined = loss.join((F, G), 2, algorithm, loss.descent((F[:2], G[:2])))
        assert loss.fit(joined) <= before


def test_squares_reach_a_stationary_point():
    X = low_rank()
    fit = factorize(FactorData(X, None, False).loss(NO_PENALTIES), 4, max_iter=3000, tol=0.0)
    F, G = fit.factors[0], fit.factors[1]
    for mine, slope in ((F, G @ (F.T @ G - X).T), (G, F @ (F.T @ G - X))):
        scale = np.abs(G @ X.T).max()
        assert slope.min() >= -1e-5 * scale
        assert np.abs(slope * mine).max() <= 1e-5 * scale * mine.max()


@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 150))
@settings(max_examples=40, deadline=None)
def test_hals_is_cyclic_coordinate_descent(seed, k, n):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((k, k + 2))
    gram, target, F = A @ A.T, rng.standard_normal((k, n)), rng.random((k, n))
    if k > 2:
        gram[1] = gram[:, 1] = 0.0  # a component without mass stays as it is
    want = F.copy()
    for _ in range(2):
        for r in range(k):
            if gram[r, r] > 0:
                step = (target[r] - gram[r] @ want) / gram[r, r]
                want[r] = np.maximum(want[r] + step, 0.0)
    kernels.hals(gram, target, F, 2)
    np.testing.assert_allclose(F, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())


def test_more_components_than_there_are():
    X = np.outer([1.0, 2.0, 0.0], [1.0, 0.0, 3.0])
    fit = factorize(FactorData(X, None, False).loss(NO_PENALTIES), 5)
    assert fit.path[0] <= 1e-12
    assert (
        np.count_nonzero(
            np.abs(fit.factors[0]).sum(axis=1) * np.abs(fit.factors[1]).sum(axis=1) > 1e-6
        )
        == 1
    )


def test_a_penalty_can_make_atoms_worthless():
    X = low_rank()
    strong = Penalty(10.0, 0.0)
    fit = factorize(FactorData(X, None, False).loss((strong, strong)), 3)
    assert not fit.factors[0].any() or not fit.factors[1].any()
    assert (fit.path == fit.path[0]).all()


def test_corrected_is_refused_where_it_has_no_meaning():
    X = low_rank()
    rank_one = Cone(NonnegativeRankOne(X.shape))
    with pytest.raises(ValueError, match="atoms can be corrected for LeastSquares"):
        minimize(Huber(X), rank_one, Corrected(FCMP()))
    with pytest.raises(ValueError, match="moves the atoms of Cone"):
        minimize(LeastSquares(np.ones(3)), Cone(Dictionary(np.eye(3))), Corrected(FCMP()))
    with pytest.raises(ValueError, match="sweeps must be"):
        minimize(LeastSquares(X), rank_one, Corrected(FCMP(), sweeps=0))


def test_corrected_lowers_every_loss():
    X = low_rank()
    M = np.random.default_rng(0).choice([0.0, 1.0], X.shape)
    for f, algorithm in (
        (LeastSquares(X, weights=M), FCMP()),
        (KullbackLeibler(X + 0.01), FCMP(variant=1)),
        (KullbackLeibler(X + 0.01, weights=M), FCMP(variant=1)),
    ):
        cone = Cone(NonnegativeRankOne(X.shape))
        plain = minimize(f, cone, algorithm, max_iter=4)
        moved = minimize(f, cone, Corrected(algorithm, sweeps=5), max_iter=4)
        assert (np.diff(moved.trace["value"]) <= 1e-12 * moved.trace["value"][0]).all()
        assert moved.value < plain.value


@pytest.mark.parametrize("weights", [(0.3, 0.1), (0.3, 0.0), (0.0, 0.2)])
def test_balanced_scales_cost_least_and_components_die_in_both_factors(weights):
    rng = np.random.default_rng(0)
    F, G = rng.random((3, 7)), 20 * rng.random((3, 5))
    F[1] = 0.0
    loss = SquaredLoss(rng.random((7, 5)), (Penalty(*weights), Penalty(*weights[::-1])))
    left, right = loss.balanced((F, G))
    np.testing.assert_array_equal(right[1], 0.0)
    np.testing.assert_allclose(left.T @ right, F.T @ G)
    least = loss.cost((left, right))
    for factor in (0.5, 0.99, 1.01, 2.0):
        assert least <= loss.cost((factor * left, right / factor))
