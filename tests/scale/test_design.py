"""Design matrices in Dask arrays, in blocks of rows: the answers are those in memory."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from conepursuit import (
    BetaDivergence,
    FreeIntercept,
    Huber,
    KullbackLeibler,
    LeastSquares,
    Logistic,
    Poisson,
    Status,
    certify,
    nnfit,
    nnfit_path,
    nnls,
)
from conepursuit.atoms import Dictionary
from conepursuit.loss_fits import rows
from conepursuit.loss_fits.columns import Problem
from conepursuit.pursuit.domains import Cone

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
M, N = 400, 12
X = RNG.random((M, N))
W = np.maximum(RNG.standard_normal(N), 0.0)
MEAN, NOISE, OWN = X @ W + 0.1, RNG.standard_normal(M), RNG.random(M)
CENTRED = X - X.mean(axis=0)
LABELS = CENTRED @ W + NOISE > 0
THIN = sparse.random_array((M, N), density=0.3, rng=np.random.default_rng(1), format="csr")
CHUNKS = (70, -1)


def sparse_blocks(matrix, size=90):
    """Return a sparse matrix as a Dask array with blocks of rows."""
    blocks = [matrix[i : i + size] for i in range(0, matrix.shape[0], size)]
    make = dask.delayed(lambda block: block, pure=True)
    meta = matrix[:0]
    return da.concatenate(
        [da.from_delayed(make(b), b.shape, dtype=b.dtype, meta=meta) for b in blocks]
    )


def blocks_of(matrix):
    if sparse.issparse(matrix):
        return sparse_blocks(matrix)
    return da.from_array(matrix, chunks=CHUNKS)


CASES = {
    "squares": (LeastSquares(MEAN + NOISE), X, 0.0),
    "squares, penalty": (LeastSquares(MEAN + NOISE, weights=OWN), X, 5.0),
    "squares, intercept": (FreeIntercept(LeastSquares(MEAN + NOISE)), CENTRED, 0.0),
    "poisson": (Poisson(RNG.poisson(MEAN)), X, 0.0),
    "poisson, intercept": (FreeIntercept(Poisson(RNG.poisson(MEAN))), X, 1.0),
    "kullback_leibler": (KullbackLeibler(MEAN, shift=0.1), X, 0.0),
    "beta": (BetaDivergence(MEAN + 0.1 * OWN, 1.5), X, 0.0),
    "huber": (Huber(MEAN + NOISE**3, 0.5, weights=OWN), X, 0.0),
    "huber, intercept": (FreeIntercept(Huber(MEAN + NOISE**3, 0.5)), CENTRED, 0.5),
    "logistic": (Logistic(LABELS, weights=OWN), CENTRED, 0.3),
    "logistic, intercept": (FreeIntercept(Logistic(LABELS)), CENTRED, 0.3),
    "masked": (Poisson(RNG.poisson(MEAN), mask=OWN < 0.2), X, 0.1),
    "sparse squares": (LeastSquares(THIN @ W + NOISE), THIN, 0.0),
    "sparse logistic": (FreeIntercept(Logistic(THIN @ W + NOISE > 0)), THIN, 0.3),
    "float32": (LeastSquares(MEAN + NOISE), X.astype(np.float32), 0.0),
    "integers": (Poisson(RNG.poisson(9 * MEAN)), (9 * X).astype(int), 1.0),
}


def assert_same(fit, known):
    """Hold a fit with tol=1e-12 to one in memory.

    Where f is curved by 1 on average, a gap of 1e-12 leaves weights that differ by 1e-6.
    """
    assert fit.status is known.status is Status.CONVERGED
    assert fit.proven
    assert known.proven
    assert abs(fit.value - known.value) <= fit.gap + known.gap
    assert fit.gap <= 2.0 * known.gap + 1e-10 * abs(known.value)
    np.testing.assert_allclose(fit.x, known.x, atol=1e-6 * np.abs(known.x).max())


@pytest.mark.parametrize(
    ("case", "scheduler"),
    [*((case, "synchronous") for case in CASES), ("squares", "threads"), ("huber", "threads")],
)
def test_fits_are_those_in_memory(case, scheduler):
    objective, A, penalty = CASES[case]
    known = nnfit(objective, A, penalty=penalty, tol=1e-12)
    with dask.config.set(scheduler=scheduler):
        fit = nnfit(objective, blocks_of(A), penalty=penalty, tol=1e-12)
    assert_same(fit, known)
    assert fit.n_passes is not None
    assert fit.n_passes <= 40
    assert known.n_passes is None


def test_least_squares_have_the_weights_of_an_orthogonal_factorisation():
    A = X @ np.diag(10.0 ** RNG.uniform(-3, 3, N))
    b = X @ W + NOISE
    known = nnls(A, b)
    with dask.config.set(scheduler="synchronous"):
        fit = nnfit(LeastSquares(b), da.from_array(A, chunks=CHUNKS), tol=0.0)
    np.testing.assert_allclose(fit.x, known.x, rtol=1e-9, atol=1e-12 * np.abs(known.x).max())
    assert fit.n_passes <= 12


def test_a_cluster_gives_the_same_answers(cluster):
    with cluster.as_current():
        for case in ("squares", "logistic, intercept", "sparse logistic"):
            objective, A, penalty = CASES[case]
            fit = nnfit(objective, blocks_of(A), penalty=penalty, tol=1e-12)
            assert_same(fit, nnfit(objective, A, penalty=penalty, tol=1e-12))


def random_block(seed, n_rows):
    return np.random.default_rng(seed).random((n_rows, 4))


def test_vectors_of_many_rows_cause_no_warning_of_a_large_graph(cluster):
    parts = [dask.delayed(random_block)(seed, 50_000) for seed in range(2)]
    lazy = da.concatenate([da.from_delayed(part, (50_000, 4), dtype=float) for part in parts])
    y = np.concatenate([random_block(seed, 50_000) for seed in range(2)]) @ W[:4]
    with (
        cluster.as_current(),
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "500kB"}),
    ):
        fit = nnfit(Huber(y + 1.0, 0.5), lazy, penalty=1.0)
    assert fit.status.success


@given(
    st.integers(1, 60), st.integers(1, 6), st.integers(1, 20), st.sampled_from([0.0, 0.1]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_any_chunks_any_shape_and_degenerate_columns(m, n, size, penalty, seed):
    rng = np.random.default_rng(seed)
    A = rng.integers(-1, 3, (m, n)).astype(float) @ np.diag(rng.choice([0.0, 1e-3, 1.0, 1e3], n))
    A[:, -1] = A[:, 0]  # a copy
    y = rng.integers(-2, 4, m) + 0.5
    for objective in (LeastSquares(y), Huber(y, 1.0), FreeIntercept(LeastSquares(y))):
        known = nnfit(objective, A, penalty=penalty)
        with dask.config.set(scheduler="synchronous"):
            fit = nnfit(objective, da.from_array(A, chunks=(size, -1)), penalty=penalty)
        assert fit.value <= known.value + known.gap + 1e-9 * abs(known.value)
        assert not fit.proven or fit.value - known.value <= fit.gap + 1e-12 * abs(known.value)
        audit = certify(objective, Cone(Dictionary(A), penalty=penalty), weights=fit.x)
        assert audit.gap <= 1e-6 * (abs(known.value) + 1.0)


@pytest.mark.parametrize("case", CASES)
def test_a_problem_in_blocks_answers_as_one_in_memory(case):
    """Each answer alone, since a fit corrects itself: the parts of a proof matter most."""
    objective, A, penalty = CASES[case]
    plain = Problem(objective, Dictionary(A), penalty)
    with dask.config.set(scheduler="synchronous"):
        problem = rows.RowProblem(objective, Dictionary(blocks_of(A)), penalty)
        wanted = np.arange(N) % 3 > 0
        problem.choose(wanted)
        plain.choose(wanted)
        for w in (W + 0.1, 0.5 * W + 0.2):
            point, known = problem.at(w), plain.at(w)
            for name in ("x", "value", "gradient", "scores", "size"):
                same(getattr(point, name), getattr(known, name))
            same(problem.hessian(point.x), plain.hessian(known.x))
            same(problem.absolute(w), plain.absolute(w))
        same(problem.hessian(known.x + 0.3), plain.hessian(known.x + 0.3))
        change, vector = RNG.standard_normal(np.count_nonzero(wanted)), RNG.standard_normal(M)
        same(problem.combine(change), plain.combine(change))
        same(problem.slopes(vector), plain.slopes(vector))
        some = np.array([1, 4])
        same(problem.absolute_slopes(some, vector), plain.absolute_slopes(some, vector))
        same(problem.norms, plain.norms)
        if plain.functional is None:
            assert problem.functional is None
        else:
            assert problem.functional is not None
            for mine, other in zip(problem.functional, plain.functional, strict=True):
                same(mine, other)


def same(found, known):
    scale = float(np.abs(known).max())
    np.testing.assert_allclose(found, known, rtol=1e-10, atol=1e-10 * scale)


def test_settings_of_distributed_are_left_alone():
    """A setting that is made before they are loaded would hide all others."""
    program = """
import dask, dask.array as da, numpy as np
from conepursuit import ConicRegressor
A = np.sin(np.arange(200.0) ** 2).reshape(40, 5)
ConicRegressor(alpha=1e-3).fit(da.from_array(A, chunks=(10, 5)), A[:, 0])
import distributed
dask.config.get("distributed.comm.timeouts.connect")
"""
    pytest.importorskip("distributed")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_more_columns_than_come_with_the_scores(monkeypatch):
    monkeypatch.setattr(rows, "ALL", 4)
    monkeypatch.setattr(rows.RowProblem, "most_room", 4)
    for case in ("squares", "poisson", "logistic, intercept", "sparse logistic"):
        objective, A, penalty = CASES[case]
        with dask.config.set(scheduler="synchronous"):
            fit = nnfit(objective, blocks_of(A), penalty=penalty, tol=1e-12)
        assert_same(fit, nnfit(objective, A, penalty=penalty, tol=1e-12))


def test_blocks_of_columns_are_put_together():
    objective, A, _ = CASES["squares"]
    known = nnfit(objective, A, tol=1e-12)
    with dask.config.set(scheduler="synchronous"):
        assert_same(nnfit(objective, da.from_array(A, chunks=(100, 5)), tol=1e-12), known)


def test_blocks_of_columns_alone_go_to_the_loop():
    wide, counts = X.T @ np.ones((M, 1)) * RNG.random((N, 60)), RNG.poisson(9.0, N)
    known = nnfit(Poisson(counts), wide, penalty=0.1)
    with dask.config.set(scheduler="synchronous"):
        fit = nnfit(Poisson(counts), da.from_array(wide, chunks=(-1, 25)), penalty=0.1)
    assert fit.proven
    assert abs(fit.value - known.value) <= fit.gap + known.gap
    assert fit.n_passes is not None


@pytest.mark.parametrize("together", [1, 64])
def test_a_start_reaches_all_entries_or_says_that_none_does(together, monkeypatch):
    monkeypatch.setattr(rows, "TOGETHER", together)
    A = np.repeat(np.eye(5), 8, axis=0) @ np.diag([1.0, 10.0, 1e-3, 1.0, 1.0])
    A[:, 4] *= -1.0
    counts = RNG.poisson(9.0, 40) + 1.0
    with dask.config.set(scheduler="synchronous"):
        lazy = da.from_array(A, chunks=(15, -1))
        with pytest.raises(ValueError, match="for every combination of the columns"):
            nnfit(Poisson(counts), lazy)
        known = nnfit(Poisson(counts, mask=np.arange(40) >= 32), A, tol=1e-12)
        fit = nnfit(Poisson(counts, mask=np.arange(40) >= 32), lazy, tol=1e-12)
    np.testing.assert_allclose(fit.x, known.x, rtol=1e-6)


def test_several_targets_and_a_start():
    counts = RNG.poisson(np.stack([MEAN, MEAN[::-1]], axis=1))
    known = nnfit(Poisson(counts), X)
    with dask.config.set(scheduler="synchronous"):
        fit = nnfit(Poisson(counts), da.from_array(X, chunks=CHUNKS))
        again = nnfit(Poisson(counts[:, 0]), da.from_array(X, chunks=CHUNKS), start=known.x[:, 0])
    np.testing.assert_allclose(fit.x, known.x, atol=1e-5)
    np.testing.assert_allclose(again.x, known.x[:, 0], atol=1e-5)
    assert again.n_iter <= fit.n_iter[0]


def test_bad_blocks_are_refused_with_their_place():
    wrong = X.copy()
    wrong[150, 3] = np.nan
    y = LeastSquares(MEAN)
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(ValueError, match=r"the block \[140:210, 0:12\] of the dictionary"):
            nnfit(y, da.from_array(wrong, chunks=CHUNKS))
        with pytest.raises(ValueError, match="blocks of unknown size"):
            nnfit(y, da.from_array(X, chunks=CHUNKS)[da.from_array(OWN, chunks=70) > 0.5])
        with pytest.raises(ValueError, match="must hold real numbers; got a Dask array of dtype"):
            nnfit(y, da.from_array(X.astype(object), chunks=CHUNKS))
        with pytest.raises(ValueError, match="overflow or underflow"):
            nnfit(y, da.from_array(1e200 * X, chunks=CHUNKS))
        with pytest.raises(ValueError, match="max_atoms= copies the columns"):
            nnfit(y, da.from_array(X, chunks=CHUNKS), max_atoms=2)
        with pytest.raises(ValueError, match="nnfit_path copies the columns"):
            nnfit_path(y, da.from_array(X, chunks=CHUNKS), 2)
        many = Poisson(da.from_array(X, chunks=CHUNKS))
        with pytest.raises(ValueError, match="both Dask arrays"):
            nnfit(many, da.from_array(X, chunks=CHUNKS))
        with pytest.raises(ValueError, match="for each row of A"):
            nnfit(LeastSquares(MEAN[:9]), da.from_array(X, chunks=CHUNKS))
