"""Rank-one atoms: the oracle, its proved accuracy, and matrices kept as factors."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize as scipy_minimize

from conepursuit import (
    FCMP,
    NNMP,
    PWMP,
    AdaptiveStep,
    Cone,
    Corrected,
    FactoredKullbackLeibler,
    FactoredLeastSquares,
    FactoredMatrix,
    KullbackLeibler,
    LeastSquares,
    NonnegativeRankOne,
    NonnegativeSymmetric,
    PositiveSemidefinite,
    certify,
    minimize,
)
from conepursuit.atoms.power import (
    alternate,
    leading_pair,
    nonnegative_pairs,
    proved_norm,
    spectral_bound,
    symmetric_pair,
)
from conepursuit.testing import check_atom_set


def best_pair(M):
    """Return max u'Mv over unit u, v >= 0: by all supports, on each of which it is a top pair."""
    best = float(M.max())
    for rows in product((0, 1), repeat=M.shape[0]):
        for columns in product((0, 1), repeat=M.shape[1]):
            if any(rows) and any(columns):
                part = M[np.ix_(np.flatnonzero(rows), np.flatnonzero(columns))]
                u, s, v = np.linalg.svd(part)
                u, v = u[:, 0] * np.sign(u[0, 0]), v[0] * np.sign(u[0, 0])
                if (u >= -1e-12).all() and (v >= -1e-12).all():
                    best = max(best, s[0])
    return best


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.sampled_from([0, 3, 30]))
@settings(max_examples=60, deadline=None)
def test_the_bound_holds_and_the_pair_is_feasible(seed, m, n, rounds):
    M = np.random.default_rng(seed).standard_normal((m, n))
    (found,), bounds = nonnegative_pairs(M, rounds=rounds)
    truth = best_pair(M)
    assert (found.left >= 0).all()
    assert (found.right >= 0).all()
    np.testing.assert_allclose([np.linalg.norm(found.left), np.linalg.norm(found.right)], 1.0)
    np.testing.assert_allclose(found.left @ M @ found.right, found.value, atol=1e-12)
    assert found.value <= truth + 1e-12
    assert bounds.proved >= max(truth, 0.0) * (1 - 1e-9)
    assert bounds.measured <= bounds.proved


def test_more_rounds_prove_more():
    M = np.random.default_rng(0).standard_normal((40, 60))
    bounds = [nonnegative_pairs(M, rounds=r)[1].measured for r in (0, 2, 10, 100)]
    assert all(a >= b * (1 - 1e-9) for a, b in pairwise(bounds))
    assert nonnegative_pairs(M)[0][0].value > 0.9 * bounds[-1]
    assert nonnegative_pairs(M)[0][0].value < 0.8 * bounds[0]


def test_the_bound_is_above_every_local_maximum():
    rng = np.random.default_rng(1)
    M = rng.standard_normal((30, 20))
    bound, proved = spectral_bound(M, nonnegative_pairs(M)[0][0].value, 50)
    assert proved
    for _ in range(200):
        assert alternate(M, [rng.random(20)], (None, None)).value <= bound


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (30, 12), (12, 30)])
def test_a_short_lanczos_run(shape, kind):
    M = np.random.default_rng(0).standard_normal(shape).astype(kind)
    pair = leading_pair(M, np.ones(shape[1]), 40)
    sigma = np.linalg.svd(M, compute_uv=False)[0]
    assert pair.value <= sigma * (1 + 1e-5)
    assert pair.value + pair.residual >= sigma * (1 - 1e-5)
    zero = leading_pair(np.zeros(shape, kind), np.ones(shape[1]))
    assert zero.value == zero.residual == 0.0


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e150])
def test_the_oracle_does_not_mind_the_scale(scale):
    M = np.random.default_rng(0).standard_normal((20, 30))
    one, two = nonnegative_pairs(M)[0][0], nonnegative_pairs(scale * M)[0][0]
    np.testing.assert_allclose(one.left, two.left, atol=1e-9)
    np.testing.assert_allclose(two.value, scale * one.value)


def test_a_norm_is_proved_where_a_lanczos_run_fails():
    n = 60
    start = np.ones(n) + 1e-3 * np.arange(n)
    hidden = np.zeros(n)
    hidden[:2] = start[1], -start[0]  # what the run starts with has no share in it
    hidden /= np.linalg.norm(hidden)
    Y = np.eye(n) + np.outer(hidden, hidden)
    assert proved_norm(Y) >= 2.0
    rng = np.random.default_rng(0)
    for _ in range(20):
        Y = rng.standard_normal((30, 40))
        sigma = np.linalg.svd(Y, compute_uv=False)[0]
        assert sigma <= proved_norm(Y) <= 1.02 * sigma


def test_a_proof_is_one_where_a_lanczos_run_misses_the_largest_value():
    n, p = 197, 21
    Y = np.zeros((n + p + 1, n + 2))
    Y[:n, :n], Y[n : n + p, n], Y[-1, -1] = 1.0, 1.1024635 * n / np.sqrt(p), -3.0 * n
    best = 1.1024635 * n
    for rounds in (0, 4):
        found, bounds = nonnegative_pairs(Y, rounds=rounds)
        assert bounds.proved >= best * (1 - 1e-12)
        if rounds:
            assert found[0].value / bounds.measured <= found[0].value / best * (1 + 1e-12)


def test_symmetric_pairs_by_all_supports():
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = rng.integers(2, 6)
        M = rng.standard_normal((n, n))
        M += M.T
        best = M.diagonal().max()
        for chosen in product((0, 1), repeat=int(n)):
            support = np.flatnonzero(chosen)
            if len(support):
                values, vectors = np.linalg.eigh(M[np.ix_(support, support)])
                if (vectors[:, -1] * np.sign(vectors[0, -1]) >= -1e-12).all():
                    best = max(best, values[-1])
        found, bounds = symmetric_pair(M)
        np.testing.assert_allclose(found.value, best, rtol=1e-6)
        assert bounds.proved >= best * (1 - 1e-9)


def test_no_direction_of_descent():
    for g in (np.ones((3, 4)), np.zeros((3, 4))):
        answer = NonnegativeRankOne((3, 4)).lmo(g)
        assert answer.bounds == (0.0, 0.0)
        assert answer.inner(g)[0] >= 0


@pytest.mark.parametrize("n_nonzero", [2, (3, 5), (None, 1)])
def test_truncated_pairs(n_nonzero):
    atoms = NonnegativeRankOne((20, 30), n_nonzero=n_nonzero)
    answer = atoms.lmo(np.random.default_rng(0).standard_normal((20, 30)))
    most = n_nonzero if isinstance(n_nonzero, tuple) else (n_nonzero, n_nonzero)
    for factor, limit in zip((answer.left, answer.right), most, strict=True):
        assert limit is None or np.count_nonzero(factor) <= limit


@pytest.mark.parametrize(
    "atoms",
    [
        NonnegativeRankOne((5, 7)),
        NonnegativeRankOne((1, 4), rounds=3),
        NonnegativeSymmetric(6),
        PositiveSemidefinite(6),
    ],
    ids=repr,
)
def test_the_sets_keep_their_contract(atoms):
    check_atom_set(atoms)


def test_symmetric_sets():
    rng = np.random.default_rng(0)
    B = rng.random((8, 3))
    target = B @ B.T
    for atoms in (PositiveSemidefinite(8), NonnegativeSymmetric(8)):
        result = minimize(LeastSquares(target), Cone(atoms), FCMP(), max_iter=200, tol=1e-6)
        assert result.value <= 2e-3 * np.vdot(target, target)
        np.testing.assert_allclose(result.x, result.x.T, atol=1e-12)
    signed = rng.standard_normal((6, 6))
    signed += signed.T
    result = minimize(LeastSquares(signed), Cone(PositiveSemidefinite(6)), FCMP(), max_iter=500)
    values, vectors = np.linalg.eigh(signed)
    projection = (vectors * np.maximum(values, 0)) @ vectors.T
    assert result.certificate.proven
    assert result.value - 0.5 * np.sum((projection - signed) ** 2) <= result.certificate.gap + 1e-9
    np.testing.assert_allclose(result.x, projection, atol=1e-3)


def test_the_trace_shows_a_measured_accuracy():
    X = np.random.default_rng(0).random((30, 20))
    result = minimize(LeastSquares(X), Cone(NonnegativeRankOne(X.shape)), FCMP(), max_iter=10)
    accuracy = result.trace["accuracy"]
    assert accuracy[0] > 0.99
    assert ((accuracy > 0) & (accuracy <= 1)).all()
    tight = minimize(
        LeastSquares(X), Cone(NonnegativeRankOne(X.shape, rounds=20)), FCMP(), max_iter=10
    ).trace["accuracy"]
    assert np.median(tight) > np.median(accuracy)
    # every non-negative matrix is in the cone, so that f itself is the gap
    assert result.certificate.proven
    assert result.certificate.gap <= result.value * (1 + 1e-9)


def test_a_certificate_of_signed_data():
    X = np.random.default_rng(0).standard_normal((6, 5))
    cone = Cone(NonnegativeRankOne(X.shape, rounds=50))
    result = minimize(LeastSquares(X), cone, FCMP(), max_iter=300, tol=1e-3)
    least = 0.5 * np.sum(np.minimum(X, 0.0) ** 2)
    assert result.certificate.proven
    assert result.value - least <= result.certificate.gap * (1 + 1e-9)
    assert certify(LeastSquares(X), cone, result).proven


@pytest.mark.parametrize("algorithm", [FCMP(), PWMP(), NNMP()], ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["array", "sparse"])
def test_a_factored_run_is_the_dense_run(algorithm, kind):
    rng = np.random.default_rng(0)
    X = rng.random((30, 20)) * (rng.random((30, 20)) < 0.4)
    dense = minimize(LeastSquares(X), Cone(NonnegativeRankOne(X.shape)), algorithm, max_iter=8)
    atoms = NonnegativeRankOne(X.shape, factored=True)
    other = minimize(FactoredLeastSquares(kind(X)), Cone(atoms), algorithm, max_iter=8)
    np.testing.assert_allclose(other.trace["value"], dense.trace["value"], rtol=1e-9)
    np.testing.assert_allclose(other.x.toarray(), dense.x, atol=1e-9)


def test_a_factored_divergence_is_the_dense_one():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (15, 12))
    dense, factored = KullbackLeibler(X), FactoredKullbackLeibler(sparse.csr_array(X))
    x, d = (FactoredMatrix(rng.random((2, 15)), rng.random((2, 12))) for _ in range(2))
    value, gradient = factored.value_and_gradient(x)
    want = dense.value_and_gradient(x.toarray())
    np.testing.assert_allclose(value, want[0])
    np.testing.assert_allclose(gradient.toarray(), want[1], atol=1e-12)
    np.testing.assert_allclose(factored.curvature(x, d), dense.curvature(x.toarray(), d.toarray()))
    atoms = NonnegativeRankOne(X.shape, factored=True)
    run = minimize(factored, Cone(atoms), PWMP(AdaptiveStep()), max_iter=30)
    assert (np.diff(run.trace["value"]) <= 0).all()
    np.testing.assert_allclose(dense.value(run.x.toarray()), run.value)
    assert run.value < 0.7 * run.trace["value"][0]


def test_factored_matrices_are_matrices():
    rng = np.random.default_rng(0)
    base = sparse.random_array((6, 5), density=0.4, rng=rng, format="csr")
    A = FactoredMatrix(rng.random((2, 6)), rng.random((2, 5)), base, -2.0)
    B = FactoredMatrix(rng.random((3, 6)), rng.random((3, 5)))
    a, b = A.toarray(), B.toarray()
    v, u = rng.random(5), rng.random(6)
    for got, want in (
        (A @ v, a @ v), (u @ A, u @ a), ((A + B).toarray(), a + b), ((A - A).toarray(), 0 * a),
        ((B - 3 * A).toarray(), b - 3 * a), (A.T.toarray(), a.T), (np.asarray(-A), -a),
        (A.inner(B), np.vdot(a, b)), (A.inner(A), np.vdot(a, a)), (B.inner(a), np.vdot(a, b)),
    ):  # fmt: skip
        np.testing.assert_allclose(got, want, atol=1e-12)
    assert A.positive_part() is None
    P = FactoredMatrix(-A.left, A.right, base).positive_part()
    np.testing.assert_allclose(P.toarray(), np.maximum(base.toarray() - A.left.T @ A.right, 0.0))
    with pytest.raises(ValueError, match="different data"):
        A + FactoredMatrix(A.left, A.right, base.copy())


def test_atoms_and_objective_must_both_be_factored():
    X = np.ones((3, 4))
    for f, factored in ((LeastSquares(X), True), (FactoredLeastSquares(X), False)):
        with pytest.raises(ValueError, match="factored"):
            minimize(f, Cone(NonnegativeRankOne(X.shape, factored=factored)), FCMP())


def test_what_is_refused():
    with pytest.raises(ValueError, match="matrices; got the shape"):
        NonnegativeRankOne((3,))
    with pytest.raises(ValueError, match="n_nonzero is a positive integer"):
        NonnegativeRankOne((3, 3), n_nonzero=0)
    with pytest.raises(ValueError, match=r"needs the number of rows, .* got \(3, 3\)"):
        PositiveSemidefinite((3, 3))
    with pytest.raises(ValueError, match=r"y is sparse, .* FactoredLeastSquares"):
        LeastSquares(sparse.eye_array(3))
    with pytest.raises(ValueError, match="Corrected needs an algorithm; got 5"):
        minimize(LeastSquares(np.eye(3)), Cone(NonnegativeRankOne((3, 3))), Corrected(5))
    with pytest.raises(ValueError, match="rounds must be"):
        NonnegativeRankOne((3, 3), rounds=-1)
    with pytest.raises(ValueError, match=r"needs a sparse matrix or tensor"):
        FactoredKullbackLeibler(np.ones((2, 2)))
    with pytest.raises(ValueError, match="must not be negative"):
        FactoredKullbackLeibler(sparse.csr_array(-np.eye(2)))


def test_the_oracle_against_a_general_solver():
    rng = np.random.default_rng(3)
    M = rng.standard_normal((6, 5))
    found = nonnegative_pairs(M)[0][0].value

    def negative(x):
        u, v = np.abs(x[:6]), np.abs(x[6:])
        return -(u @ M @ v) / (np.linalg.norm(u) * np.linalg.norm(v))

    best = max(-scipy_minimize(negative, rng.random(11)).fun for _ in range(20))
    assert found >= 0.97 * best
