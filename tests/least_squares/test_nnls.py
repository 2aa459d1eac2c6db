"""nnls and certify_nnls: right answers for any input, and a proof with them."""

import pickle
import warnings

import mpmath
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from conepursuit import Status, certify_nnls, nnls, nnls_gram, nnls_path
from problems import brute_force_nnls


def optimality(A, b, x):
    """Return how far x is from the conditions of optimality, scaled, on the recomputed residual."""
    assert np.isfinite(x).all()
    assert (x >= 0).all()
    lengths = np.linalg.norm(A, axis=0)
    slopes = A.T @ (b - A @ x) / np.where(lengths > 0, lengths, 1) / (np.linalg.norm(b) or 1.0)
    return max(slopes.max(), np.abs(slopes[x > 0]).max(initial=0.0))


def degenerate(rng):
    """Return a small problem of one of the kinds that solvers get wrong."""
    m, n = rng.integers(1, 8, 2)
    A, b = rng.integers(-3, 4, (m, n)), rng.integers(-5, 6, m)
    kind = rng.integers(8)
    if kind == 1:
        rank = rng.integers(1, 3)
        A = rng.integers(-2, 3, (m, rank)) @ rng.integers(-2, 3, (rank, n))
    elif kind == 2:
        A[:, rng.integers(n)] = A[:, rng.integers(n)]
    elif kind == 3:
        A[:, rng.integers(n)], A[rng.integers(m)] = 0, 0
    elif kind == 4:
        A = rng.integers(-2, 3, (m, m + rng.integers(1, 6)))
    elif kind == 5:
        A, b = A[:1], b[:1]
    elif kind == 6:
        A = A[:, :1]
    elif kind == 7:
        A = np.abs(A)
        b = A @ rng.integers(0, 3, n)
    return A.astype(float), b.astype(float)


def noisy_target(A, rng):
    """Return a sparse combination with so much noise that no atoms fit it exactly."""
    b = A @ (rng.random(A.shape[1]) * (rng.random(A.shape[1]) < 0.2))
    return b + np.linalg.norm(b) / len(b) ** 0.5 * rng.standard_normal(len(b))


def decaying(m=32, n=60):
    return np.exp(-np.linspace(0, 5, m)[:, None] / np.geomspace(0.05, 20, n))


@pytest.mark.parametrize("seed", range(4))
def test_no_wrong_answer_on_degenerate_problems(seed):
    """The same generator found none in 10^6 problems; scipy 1.17 has about one in 10^4."""
    rng = np.random.default_rng(seed)
    for _ in range(2500):
        A, b = degenerate(rng)
        result = nnls(A, b)
        assert optimality(A, b, result.x) <= 1e-10, (A.tolist(), b.tolist())
        assert abs(result.rnorm - np.linalg.norm(b - A @ result.x)) <= 1e-12 * np.linalg.norm(b)
        assert result.status.success


def test_the_problem_that_scipy_gets_wrong():
    A, b = np.array([[0, 0, 0], [2, -1, 0], [0, -1, 2]]), np.array([-2, -2, -2])
    x, rnorm = nnls(A, b)
    assert rnorm == pytest.approx(2.0, rel=1e-14)
    np.testing.assert_allclose(x, [0, 2, 0], atol=1e-14)


@given(seed=st.integers(0, 10**6))
def test_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    D, y = rng.standard_normal((5, 6)), rng.standard_normal(5)
    result, (best, _) = nnls(D, y), brute_force_nnls(D, y)
    assert 0.5 * result.rnorm**2 <= best + 1e-12
    if result.proven:
        assert 0.5 * result.rnorm**2 - best <= result.gap + 1e-14


@pytest.mark.parametrize("shape", [(20, 10), (10, 30), (40, 200), (30, 600), (200, 700)])
@pytest.mark.parametrize("signed", [False, True])
def test_equals_scipy(shape, signed):
    rng = np.random.default_rng(0)
    A = rng.standard_normal(shape) if signed else rng.random(shape)
    b = noisy_target(A, rng)
    result, (_, rnorm) = nnls(A, b), scipy.optimize.nnls(A, b)
    assert result.rnorm == pytest.approx(rnorm, rel=1e-10, abs=1e-10 * np.linalg.norm(b))
    assert optimality(A, b, result.x) <= 1e-12
    assert result.status is Status.STATIONARY
    assert result.proven
    assert result.gap <= 1e-10 * (b @ b)


def test_it_is_scipys_tuple_with_more():
    A, b = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([1.0, -2.0])
    result = nnls(A, b)
    x, rnorm = result
    assert len(result) == 2
    assert result[0] is x is result.x
    assert isinstance(rnorm, float)
    assert rnorm == result[1] == result.rnorm
    np.testing.assert_allclose(result.dual, A.T @ (A @ x - b), atol=1e-15)
    assert result.support.tolist() == np.flatnonzero(x).tolist()
    assert "proven" in repr(result)
    copied = pickle.loads(pickle.dumps(result))
    assert copied.status is result.status
    assert copied.gap == result.gap
    np.testing.assert_array_equal(copied[0], x)
    many = nnls(A, np.eye(2))
    assert many.x.shape == many.dual.shape == many.support.shape == (2, 2)
    assert many.rnorm.shape == many.gap.shape == many.proven.shape == many.n_iter.shape == (2,)
    assert [status.success for status in many.status] == [True, True]
    assert "2 targets" in repr(many)


@pytest.mark.parametrize("angle", [1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-3])
def test_nearly_collinear_pairs_to_the_last_digits(angle, noise):
    """Against a solve with 50 digits; the weights of a pair are found where it is worth while."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        base = rng.standard_normal((20, 3)) if seed % 2 else rng.random((20, 3))
        base /= np.linalg.norm(base, axis=0)
        other = rng.standard_normal((20, 3))
        other -= base * (base * other).sum(axis=0)
        A = np.hstack([base, base + angle * other / np.linalg.norm(other, axis=0)])
        b = A @ rng.uniform(1, 2, 6) + noise * rng.standard_normal(20)
        more = np.hstack([A, rng.standard_normal((20, 6)) - 9 * A])  # for another kernel
        for D, x in (
            (A, nnls(A, b).x),
            (A, nnls(A, np.stack([b, 2 * b], axis=1)).x[:, 0]),
            (more, nnls(more, np.stack([b, 2 * b], axis=1)).x[:, 0]),
        ):
            used = np.flatnonzero(x)
            with mpmath.workdps(50):
                part = mpmath.matrix(D[:, used].tolist())
                right = mpmath.matrix(b.tolist())
                exact = mpmath.lu_solve(part.T * part, part.T * right)
                left = right - part * exact
                slopes = [float((mpmath.matrix(a.tolist()).T * left)[0]) for a in D.T]
            np.testing.assert_allclose(x[used], [float(v) for v in exact], atol=1e-10 * x.max())
            assert max(slopes) <= 1e-13 * np.linalg.norm(b) * np.linalg.norm(D, axis=0).max()
            if noise == 0.0 and D is A:
                assert len(used) == 6


@pytest.mark.parametrize("seed", range(5))
def test_hilbert_and_decays(seed):
    rng = np.random.default_rng(seed)
    hilbert = 1 / (np.arange(60)[:, None] + np.arange(40) + 1.0)
    for A in (hilbert, decaying()):
        b = A @ rng.random(A.shape[1]) * (1 + 1e-3 * rng.standard_normal(len(A)) * (seed % 2))
        result = nnls(A, b)
        assert result.proven
        assert result.gap <= 1e-12 * 0.5 * (b @ b)
        assert certify_nnls(A, b, result.x).gap <= 1e-12 * 0.5 * (b @ b)


def test_noiseless_decays_are_found_again():
    """Slopes that are rounding against b are not against the residual."""
    A = decaying(200, 400)
    x = np.zeros(400)
    x[[100, 200, 300]] = 1.0
    result = nnls(A, A @ x)
    np.testing.assert_allclose(result.x, x, atol=1e-9)
    assert result.rnorm <= 1e-14 * np.linalg.norm(A @ x)
    hilbert = 1 / (np.arange(60)[:, None] + np.arange(40) + 1.0)
    b = hilbert @ np.random.default_rng(0).random(40)
    assert nnls(hilbert, b).rnorm <= 1e-14 * np.linalg.norm(b)


@pytest.mark.parametrize("shape", [(30, 20), (20, 40), (40, 700)])
def test_units_do_not_matter(shape):
    rng = np.random.default_rng(1)
    A = rng.random(shape)
    b = noisy_target(A, rng)
    reference = nnls(A, b)
    for scale in (1e-150, 1e-77, 1e77, 1e150):
        scaled = nnls(scale * A, scale * b)
        assert scaled.support.tolist() == reference.support.tolist()
        np.testing.assert_allclose(scaled.x, reference.x, rtol=1e-10)
        assert scaled.rnorm == pytest.approx(scale * reference.rnorm, rel=1e-10)
    for trial in range(5):
        units = 10.0 ** np.random.default_rng(trial).uniform(-12, 12, shape[1])
        scaled = nnls(A * units, b)
        assert scaled.support.tolist() == reference.support.tolist()
        np.testing.assert_allclose(scaled.x * units, reference.x, rtol=1e-10)
        many = nnls(A * units, np.stack([b, b], axis=1))
        np.testing.assert_allclose(many.x[:, 1] * units, reference.x, rtol=1e-10)


@pytest.mark.parametrize("shape", [(40, 30), (60, 700)])
def test_kinds_of_data(shape, tmp_path):
    rng = np.random.default_rng(2)
    A = rng.integers(1, 9, shape).astype(float)
    b = noisy_target(A, rng)
    reference = nnls(A, b).x
    mapped = np.memmap(tmp_path / "A", dtype=np.float64, mode="w+", shape=shape)
    mapped[:] = A
    mapped.setflags(write=False)
    wide = np.zeros((shape[0], 2 * shape[1]))
    wide[:, ::2] = A
    kinds = [
        np.asfortranarray(A), A.astype(int), mapped, wide[:, ::2], A.tolist(),
        sparse.csr_array(A), sparse.csc_matrix(A), sparse.coo_array(A), aslinearoperator(A),
    ]  # fmt: skip
    for kind in kinds:
        np.testing.assert_allclose(nnls(kind, b).x, reference, rtol=1e-10)
        np.testing.assert_allclose(
            nnls(kind, np.stack([b, -b], axis=1)).x[:, 0], reference, rtol=1e-10
        )


@pytest.mark.parametrize("shape", [(40, 30), (60, 700), (50, 5)])
@pytest.mark.parametrize("order", "CF")
def test_float32_finds_what_float64_finds(shape, order):
    rng = np.random.default_rng(3)
    A = rng.random(shape).astype(np.float32)
    b = noisy_target(A, rng).astype(np.float32)
    narrow, wide = nnls(np.asarray(A, order=order), b), nnls(A.astype(float), b.astype(float))
    assert narrow.support.tolist() == wide.support.tolist()
    np.testing.assert_allclose(narrow.x, wide.x, rtol=1e-5)
    assert narrow.x.dtype == np.float64
    many = nnls(np.asarray(A, order=order), np.stack([b, b], axis=1))
    np.testing.assert_allclose(many.x[:, 0], wide.x, rtol=1e-5)


def large_operator(A):
    """Return A as an operator too large to be made dense, by rows of zeros below it."""
    n = A.shape[1]
    rows = 10**6 // n + 10
    below = sparse.csr_array((rows, n))
    tall = sparse.vstack([sparse.csr_array(A), below], format="csc")
    return tall, np.zeros(rows)


def test_large_sparse_matrices_and_operators():
    rng = np.random.default_rng(4)
    A = rng.random((50, 600)) * (rng.random((50, 600)) < 0.2)
    b = A @ (rng.random(600) * (rng.random(600) < 0.02)) + 0.1 * rng.standard_normal(50)
    tall, zeros = large_operator(A)
    target = np.concatenate([b, zeros])
    reference = nnls(A, b)
    for kind in (tall, aslinearoperator(tall)):
        result = nnls(kind, target)
        assert result.rnorm == pytest.approx(reference.rnorm, rel=1e-10)
        np.testing.assert_allclose(result.x, reference.x, atol=1e-9)
        assert result.proven
        certificate = certify_nnls(kind, target, result.x)
        assert certificate.proven
        assert certificate.gap <= 1e-10 * (b @ b)


@pytest.mark.parametrize("n", [30, 700])
def test_exact_fits(n):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((10, n))
    b = A @ rng.random(n)
    result = nnls(A, b)
    assert result.rnorm <= 1e-13 * np.linalg.norm(b)
    assert result.proven
    assert result.status.success
    loose = nnls(A, b, tol=1e-4)
    assert loose.gap <= 1e-4 * 0.5 * (b @ b)


@pytest.mark.parametrize("n", [20, 700])
def test_weights_of_rows(n):
    rng = np.random.default_rng(6)
    A, b = rng.random((30, n)), rng.random(30)
    weights = rng.integers(0, 3, 30).astype(float)
    repeated = np.repeat(np.arange(30), weights.astype(int))
    expected = nnls(A[repeated], b[repeated])
    b[weights == 0] = np.nan
    for result in (nnls(A, b, weights=weights), nnls(sparse.csr_array(A), b, weights=weights)):
        assert result.rnorm == pytest.approx(expected.rnorm, rel=1e-10)
    both = np.stack([b, b], axis=1)
    for given_weights in (weights, np.stack([weights, weights], axis=1)):
        many = nnls(A, both, weights=given_weights)
        np.testing.assert_allclose(many.rnorm, expected.rnorm, rtol=1e-10)


@pytest.mark.parametrize("n", [40, 700])
def test_start_is_used(n):
    rng = np.random.default_rng(7)
    A = rng.random((50, n))
    b = A @ (rng.random(n) * (rng.random(n) < 0.2)) + 0.1 * rng.standard_normal(50)
    cold = nnls(A, b)
    warm = nnls(A, b, start=cold.x)
    assert warm.n_iter < cold.n_iter
    np.testing.assert_allclose(warm.x, cold.x, rtol=1e-9)
    far = nnls(A, b, start=rng.random(n))
    assert far.rnorm == pytest.approx(cold.rnorm, rel=1e-10)


@pytest.mark.parametrize("n", [40, 700])
def test_max_iter_returns_the_best_found(n):
    rng = np.random.default_rng(8)
    A, b = rng.random((50, n)), rng.random(50)
    result = nnls(A, b, max_iter=2)
    assert result.status is Status.MAX_ITER
    assert result.n_iter <= 2
    assert (result.x >= 0).all()
    assert result.rnorm < np.linalg.norm(b)
    optimum = 0.5 * nnls(A, b).rnorm ** 2
    assert 0.5 * result.rnorm**2 - optimum <= result.gap
    assert nnls(A, np.stack([b, b], axis=1), max_iter=2).status[0] is Status.MAX_ITER


def test_zero_targets_and_zero_atoms():
    A = np.array([[1.0, 0.0, -1.0], [2.0, 0.0, 1.0]])
    for b in (np.zeros(2), np.zeros((2, 3))):
        result = nnls(A, b)
        assert not result.x.any()
        assert np.all(result.rnorm == 0)
        assert np.all(result.gap == 0)
    empty = nnls(np.zeros((2, 3)), [1.0, 2.0])
    assert not empty.x.any()
    assert empty.proven
    assert nnls(np.zeros((2, 700)), [1.0, 2.0]).rnorm == pytest.approx(5**0.5)


BAD = [
    ([[1.0, np.nan]], [1.0], "A must be finite"),
    ([[1.0, 2.0]], [np.inf], "b must be finite"),
    ([[1.0, 2.0]], [1.0, 2.0], r"A of shape \(1, 2\) and b of shape \(2,\)"),
    ([1.0, 2.0], [1.0, 2.0], "A must be a matrix"),
    ([[1.0]], [[[1.0]]], "b must be a vector"),
    ([[1j]], [1.0], "real numbers"),
    (np.full((2, 700), np.inf), [1.0, 2.0], "A must be finite"),
    (np.ones((2, 3)), [[1.0, np.nan], [1.0, 1.0]], r"b\[:, 1\] must be finite"),
    (np.ones((2, 30)), [[1.0, np.nan], [1.0, 1.0]], r"b\[:, 1\] must be finite"),
    (np.ones((2, 3)), sparse.csr_array(np.ones((2, 3))), "b must be dense"),
    (np.ones((2, 3)), np.ma.masked_greater([1.0, 2.0], 1.5), "b is a masked array"),
    (
        LinearOperator((2000, 1000), matvec=lambda x: np.ones(2000)),
        np.ones(2000),
        "without rmatvec",
    ),
]


@pytest.mark.parametrize(("A", "b", "message"), BAD)
def test_bad_data_is_named(A, b, message):
    with pytest.raises(ValueError, match=message):
        nnls(A, b)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": [1.0]}, "start must have shape"),
        ({"start": [1.0, -1.0]}, "start must not be negative"),
        ({"start": [1.0, np.nan]}, "start must be finite"),
        ({"weights": [1.0]}, "weights must have shape"),
        ({"weights": [1.0, -1.0, 1.0]}, "finite and not negative; got -1.0"),
        ({"max_atoms": 0}, "max_atoms must be a positive integer"),
        ({"max_iter": 1.5}, "max_iter must be a positive integer"),
        ({"max_iter": True}, "max_iter must be a positive integer"),
        ({"tol": -1.0}, "tol must be"),
        ({"tol": None}, "tol must be"),
        ({"tol": "a"}, "tol must be"),
        ({"start": [1.0, 1.0], "max_atoms": 1}, "start has 2 positive weights"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"n_jobs": "2"}, "n_jobs must be"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        nnls(np.ones((3, 2)), np.ones(3), **options)


@pytest.mark.parametrize("rank", [3, 8])
def test_gram(rank):
    rng = np.random.default_rng(9)
    A = rng.standard_normal((12, rank)) @ rng.standard_normal((rank, 8))
    B = rng.standard_normal((12, 5))
    expected, found = nnls(A, B), nnls_gram(A.T @ A, A.T @ B)
    G, c = A.T @ A, A.T @ B
    values = [
        0.5 * np.sum(x * (G @ x), axis=0) - np.sum(c * x, axis=0) for x in (expected.x, found.x)
    ]
    np.testing.assert_allclose(values[1], values[0], atol=1e-10 * np.abs(c).max())
    if rank == 8:
        np.testing.assert_allclose(found.x, expected.x, atol=1e-10)
        np.testing.assert_allclose(nnls_gram(G, c[:, 0]).x, expected.x[:, 0], atol=1e-10)
    with pytest.raises(ValueError, match="symmetric"):
        nnls_gram(A[:8, :8], c)
    with pytest.raises(ValueError, match="positive semidefinite"):
        nnls_gram(-np.eye(8) + 0.1, c)
    with pytest.raises(ValueError, match="as many rows"):
        nnls_gram(G, c[:3])
    with pytest.raises(ValueError, match="c must be finite"):
        nnls_gram(G, np.full(8, np.nan))
    narrow = A.astype(np.float32)
    assert nnls_gram(narrow.T @ narrow, (narrow.T @ B).astype(np.float32)).x.shape == (8, 5)


def test_gram_without_a_minimum_and_of_nothing():
    assert nnls_gram(np.zeros((2, 2)), np.zeros(2)).x.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="no minimum"):
        nnls_gram([[1.0, 0.0], [0.0, 0.0]], [1.0, 1.0])
    with pytest.raises(ValueError, match="no minimum"):
        nnls_gram([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0])


def read_only(array):
    out = array.copy()
    out.flags.writeable = False
    return out


LAYOUTS = {
    "by columns": np.asfortranarray,
    "strided": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "reversed": lambda array: array[::-1].copy()[::-1],
    "read-only": read_only,
}


@pytest.mark.parametrize("laid", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_of_any_layout(laid, dtype):
    rng = np.random.default_rng(21)
    A, B = rng.random((20, 10)).astype(dtype), rng.random((20, 3)).astype(dtype)
    b, G, c = B[:, 0].copy(), A.T @ A, A.T @ B
    one, many, form = nnls(A, b).x, nnls(A, B).x, nnls_gram(G, c).x
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(nnls(laid(A), laid(b), start=laid(one)).x, one, **close)
    np.testing.assert_allclose(nnls(laid(A), laid(B)).x, many, **close)
    np.testing.assert_allclose(nnls_gram(laid(G), laid(c)).x, form, **close)
    assert certify_nnls(laid(A), laid(b), laid(one)).proven
    assert certify_nnls(laid(A), laid(B), laid(many)).proven.all()


def test_certificates_of_others():
    rng = np.random.default_rng(10)
    for signed in (False, True):
        A = rng.standard_normal((15, 10)) if signed else rng.random((15, 10))
        B = rng.random((15, 4))
        best = nnls(A, B)
        for x in (best.x, best.x + 0.1, np.zeros((10, 4))):
            audit = certify_nnls(A, B, x)
            excess = 0.5 * np.sum((A @ x - B) ** 2, axis=0) - 0.5 * best.rnorm**2
            assert (excess[audit.proven] <= audit.gap[audit.proven] + 1e-12).all()
        assert certify_nnls(A, B, best.x).proven.all()
        assert certify_nnls(A, B[:, 0], best.x[:, 0]).violation <= 1e-13
        worse = certify_nnls(A, B[:, 0], best.x[:, 0] + 0.1)
        assert worse.violation > 1e-3 or worse.complementarity > 1e-3
    with pytest.raises(ValueError, match="must not be negative"):
        certify_nnls(A, B[:, 0], -best.x[:, 0] - 1)


def test_no_false_proof_where_the_ones_do_not_help():
    """The only atom that descends has a negative sum, so that no tilt along the ones mends it."""
    A, b = np.array([[-1.0, 1.0], [0.0, 1.0]]), np.array([-1.0, 0.0])
    for x in ([0.0, 0.0], [0.5, 0.0]):
        audit = certify_nnls(A, b, x)
        assert audit.gap >= 0.5 * np.sum((A @ x - b) ** 2)
    assert nnls(A, b).gap <= 1e-15


def test_certificates_in_any_units():
    for scale in (1e-200, 1e-100, 1.0, 1e100, 1e160):
        audit = certify_nnls(scale * np.eye(2), [scale, scale], [5.0, 0.0])
        assert audit.violation == pytest.approx(scale)
        if 1e-150 < scale < 1e150:
            assert audit.gap >= 8.49 * scale**2
        else:
            assert audit.gap in (5e-324, np.inf)  # scale**2, rounded up


def test_weighted_fits_can_be_audited():
    rng = np.random.default_rng(11)
    A, b = rng.random((20, 6)), rng.random(20)
    b[3] = np.nan
    weights = rng.random(20)
    weights[3] = 0.0
    result = nnls(A, b, weights=weights)
    assert certify_nnls(A, b, result, weights=weights).gap <= 1e-12
    both, twice = np.stack([b, b], axis=1), np.stack([weights, weights], axis=1)
    many = nnls(A, both, weights=twice)
    assert (certify_nnls(A, both, many, weights=twice).gap <= 1e-12).all()


def test_no_more_atoms_than_rows_are_ever_passive():
    """Rounding hides that an atom depends on nearly collinear ones; m atoms span everything."""
    for seed in range(3000):
        rng = np.random.default_rng(seed)
        m, e = int(rng.integers(2, 7)), 10.0 ** -rng.uniform(3.5, 4.5)
        near = np.eye(m)[:, :1] + e * rng.standard_normal((m, 2 * m))
        A = np.hstack([near, rng.standard_normal((m, 3 * m))])
        b = near @ rng.random(2 * m) / m
        b += e * 10.0 ** -rng.uniform(0, 4) * rng.standard_normal(m)
        result = nnls(A, b)
        assert len(result.support) <= m
        assert optimality(A, b, result.x) <= 1e-10


def test_no_atom_of_an_operator_is_overlooked():
    m, n = 1100, 1000
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(m, 2, replace=False) for _ in range(n)])
    S = sparse.csc_array((np.ones(2 * n), rows.ravel(), np.arange(0, 2 * n + 1, 2)), shape=(m, n))
    b = S @ rng.random(n)
    result = nnls(aslinearoperator(S), b)
    assert result.rnorm <= 1e-10 * np.linalg.norm(b)


@pytest.mark.parametrize("unit", [1e-300, 1e-226, 1e-140, 1e200])
@pytest.mark.parametrize("condition", [None, "sum_to", "sum_at_most"])
def test_operators_in_any_units(unit, condition, monkeypatch):
    monkeypatch.setattr("conepursuit.matrix_fits.arguments.SMALL_ENOUGH", 0)
    rng = np.random.default_rng(0)
    A, b = rng.random((5, 4)), rng.random(5)
    total = {} if condition is None else {condition: 0.5}
    want = nnls(A, b, **total)
    fit = nnls(aslinearoperator(unit * A), b, **{name: s / unit for name, s in total.items()})
    np.testing.assert_allclose(fit.x * unit, want.x, atol=1e-9)
    assert fit.gap <= 1e-10
    if condition is None:
        audit = certify_nnls(aslinearoperator(unit * A), b, np.full(4, 0.1 / unit))
        assert audit.gap == pytest.approx(certify_nnls(A, b, np.full(4, 0.1)).gap, rel=1e-6)


def test_budgets_end_with_the_status_of_what_ran_out():
    rng = np.random.default_rng(0)
    A, b = rng.random((50, 600)), rng.random(50)
    for matrix in (A, A[:, :500]):
        assert nnls(matrix, b, max_atoms=30, max_iter=3).status is Status.MAX_ITER
        assert nnls(matrix, b, max_atoms=3).status is Status.MAX_ATOMS
        assert nnls(matrix, b, max_atoms=450).status is Status.STATIONARY
    for shape in ((30, 60), (30, 12)):
        A, B = rng.standard_normal(shape), rng.random((30, 40))
        for limit in (1, 2, 4):
            result = nnls(A, B, max_iter=limit)
            assert (result.x >= 0).all()
            np.testing.assert_allclose(result.rnorm, np.linalg.norm(A @ result.x - B, axis=0))


def test_inputs_are_left_alone():
    D = sparse.csc_array((np.ones(6), [2, 0, 2, 1, 1, 0], [0, 3, 6]), shape=(3, 2))
    nnls(D, np.ones(3))
    assert D.nnz == 6
    A, b, start = np.eye(3), np.ones(3), np.ones(3)
    for array in (A, b, start):
        array.setflags(write=False)
    assert nnls(A, b, start=start).x.tolist() == [1.0, 1.0, 1.0]
    assert nnls(A, np.eye(3)).rnorm.tolist() == [0.0, 0.0, 0.0]


def test_no_targets():
    result = nnls(np.eye(3), np.zeros((3, 0)))
    assert result.x.shape == (3, 0)
    assert "0 targets" in repr(result)
    assert certify_nnls(np.eye(3), np.zeros((3, 0)), result).proven.shape == (0,)


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nnls(np.zeros((3, 2)), np.zeros(3))
        nnls(1e-200 * np.eye(3), np.ones(3) * 1e-160)
        nnls(1e200 * np.eye(3), np.ones((3, 2)))
        nnls(np.full((3, 700), 1e200), 1e160 * np.ones(3))
        nnls_path(1e200 * np.eye(3), 1e160 * np.ones(3), 2)
        nnls(np.eye(3), 1e200 * np.ones(3))


def test_squares_that_overflow_prove_nothing():
    rng = np.random.default_rng(0)
    A, b = rng.random((12, 5)), 1e200 * rng.random((12, 2))
    for result in (nnls(A, b[:, 0]), nnls(A, b)):
        assert np.isinf(result.gap).all()
        assert not np.any(result.proven)


def test_strides_of_axes_of_length_one_do_not_matter():
    strided = np.lib.stride_tricks.as_strided(np.array([3.0]), (1, 1), (0, 0))
    assert nnls(np.array([[2.0]]), strided).x == 1.5
    A, B = np.random.default_rng(0).random((6, 3)), np.random.default_rng(1).random((6, 9))
    for columns in (B[:, 4:5], np.asfortranarray(B)[:, 4:5], B[:, 4::9]):
        np.testing.assert_allclose(nnls(A, columns).x[:, 0], nnls(A, B[:, 4]).x, atol=1e-12)


def test_operators_and_files_with_unusual_memory(tmp_path):
    big, b = np.random.default_rng(0).random((12, 5)), np.random.default_rng(1).random(6)
    A = np.ascontiguousarray(big[::2])
    operator = scipy.sparse.linalg.LinearOperator(
        (6, 5),
        matvec=lambda x: A @ x,
        rmatvec=lambda y: A.T @ y,
        matmat=lambda X: (big @ X)[::2],
        dtype=np.float64,
    )
    expected = nnls(A, b).x
    np.testing.assert_allclose(nnls(operator, b).x, expected, atol=1e-12)
    assert certify_nnls(operator, b, expected).proven
    file = tmp_path / "odd"
    file.write_bytes(b"abc" + A.tobytes())
    unaligned = np.memmap(file, dtype=np.float64, offset=3, shape=A.shape)
    assert not unaligned.flags.aligned
    np.testing.assert_array_equal(nnls(np.asarray(unaligned), b).x, expected)
