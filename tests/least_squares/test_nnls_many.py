"""Many targets: the answers of one, whatever the order, the threads and the kernel."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

from conepursuit import callbacks, certify_nnls, nnls

SHAPES = [(30, 1), (20, 3), (25, 8), (40, 20), (30, 50), (60, 600)]


def targets(shape, n_targets, *, signed=False, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal(shape) if signed else rng.random(shape)
    B = A @ (rng.random((shape[1], n_targets)) * (rng.random((shape[1], n_targets)) < 0.4))
    return A, B + 0.5 * np.abs(B).mean() * rng.standard_normal(B.shape)


def same(one, other, permutation=None):
    """Assert that two results are equal to the last bit."""
    chosen = slice(None) if permutation is None else permutation
    for name in ("x", "dual", "rnorm", "gap", "proven", "status", "n_iter"):
        np.testing.assert_array_equal(getattr(one, name)[..., chosen], getattr(other, name))


@pytest.mark.parametrize(
    ("shape", "signed"),
    [(shape, False) for shape in SHAPES]
    + [(shape, True) for shape in SHAPES if shape[1] < shape[0]],  # more fit exactly, in many ways
)
def test_many_are_as_one(shape, signed):
    A, B = targets(shape, 20, signed=signed)
    result = nnls(A, B)
    for i, b in enumerate(B.T):
        alone = nnls(A, b)
        np.testing.assert_allclose(result.x[:, i], alone.x, atol=1e-10)
        assert result.rnorm[i] == pytest.approx(alone.rnorm, rel=1e-10)
        np.testing.assert_allclose(result.dual[:, i], alone.dual, atol=1e-10)
    assert result.proven.all()
    audit = certify_nnls(A, B, result.x)
    assert (audit.gap <= 1e-11 * np.sum(B**2, axis=0)).all()
    optimum = np.array([scipy.optimize.nnls(A, b)[1] for b in B.T])
    assert (0.5 * result.rnorm**2 - 0.5 * optimum**2 <= result.gap + 1e-12 * optimum**2).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_neither_order_nor_threads_change_a_bit(shape):
    n_targets = 30 if shape[1] > 500 else 700
    A, B = targets(shape, n_targets)
    B[:, 5] = 0.0
    B[:, 7] = B[:, 6]
    result = nnls(A, B)
    same(result, nnls(A, B, n_jobs=2))
    same(result, nnls(A, B, n_jobs=-1))
    permutation = np.random.default_rng(1).permutation(n_targets)
    same(result, nnls(A, np.ascontiguousarray(B[:, permutation])), permutation)
    same(result, nnls(A, B[:, 13:40]), slice(13, 40))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_layout_of_the_targets_changes_no_more_than_rounding(shape):
    A, B = targets(shape, 30 if shape[1] > 500 else 300)
    result, strided = nnls(A, B), np.repeat(B, 2, axis=1)[:, ::2]
    for other in (np.asfortranarray(B), strided, np.asfortranarray(strided)[:, ::-1][:, ::-1]):
        again = nnls(A, other)
        np.testing.assert_allclose(again.x, result.x, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(again.rnorm, result.rnorm, rtol=1e-9)
        np.testing.assert_array_equal(again.proven, result.proven)


@pytest.mark.parametrize("n", [4, 8, 9, 15])
def test_degenerate_atoms(n):
    """Duplicated, opposite, zero and nearly equal atoms, and targets that they fit exactly."""
    rng = np.random.default_rng(2)
    for trial in range(100):
        A = rng.integers(-2, 3, (6, n)).astype(float)
        A[:, 1], A[:, 2] = A[:, 0], -A[:, 0]
        A[:, 3] = 0.0 if trial % 2 else A[:, 0] * (1 + 1e-9)
        B = rng.integers(-3, 4, (6, 30)).astype(float)
        if trial % 3 == 0:
            B = A @ np.abs(B[:1] * rng.integers(0, 3, (n, 30)))
        result = nnls(A, B)
        lengths = np.linalg.norm(A, axis=0)
        slopes = A.T @ (B - A @ result.x) / np.where(lengths > 0, lengths, 1)[:, None]
        scale = 1e-10 * np.maximum(np.linalg.norm(B, axis=0), 1e-300)
        assert (result.x >= 0).all()
        assert (slopes <= scale).all()
        assert (np.abs(slopes * (result.x > 0)) <= scale).all()
        misses = np.abs(np.linalg.norm(B - A @ result.x, axis=0) - result.rnorm)
        assert (misses <= scale).all()


def test_progress_bar(capsys, monkeypatch):
    from rich.console import Console

    A, B = targets((20, 12), 50)
    console = Console(force_terminal=True, width=100)
    shown = callbacks.batch_progress
    monkeypatch.setattr(
        "conepursuit.least_squares.many.batch_progress", lambda n: shown(n, console)
    )
    same(nnls(A, B), nnls(A, B, progress=True))
    assert "50/50" in capsys.readouterr().out
    nnls(A, B)
    assert capsys.readouterr().out == ""


@pytest.fixture(scope="module")
def tumours():
    folder = os.environ.get("CONEPURSUIT_DATA")
    if not folder:
        pytest.skip("CONEPURSUIT_DATA names no data folder")
    data = np.load(Path(folder) / "mutational_signatures" / "sbs96.npz")
    return data["cosmic_v3_4"], data["pcawg_counts"]


def test_pcawg_tumours_on_cosmic_signatures(tumours):
    """96 x 86 x 2,780: every target certified, and as good as an independent solver's."""
    A, counts = tumours
    result = nnls(A, counts)
    assert result.x.shape == (86, 2780)
    assert all(status.success for status in result.status)
    squares = np.sum(counts.astype(float) ** 2, axis=0)
    assert result.proven.all()
    assert (result.gap <= 1e-12 * squares).all()
    audit = certify_nnls(A, counts, result.x)
    assert audit.proven.all()
    assert (audit.gap <= 1e-12 * squares).all()
    for i in range(0, 2780, 20):
        b = counts[:, i].astype(float)
        rnorm = scipy.optimize.lsq_linear(A, b, (0, np.inf), method="bvls", tol=1e-15).cost
        rnorm = min((2 * rnorm) ** 0.5, scipy.optimize.nnls(A, b)[1])
        assert result.rnorm[i] == pytest.approx(rnorm, rel=1e-10)
    same(result, nnls(A, counts, n_jobs=2))
