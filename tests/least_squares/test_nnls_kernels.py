"""Every kernel of nnls against the generic loop, which is the specification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conepursuit import FCMP, Cone, Dictionary, LeastSquares, minimize, nnls
from conepursuit.kernels import least_squares as kernels
from conepursuit.kernels import shared
from conepursuit.least_squares import working_set as ws
from conepursuit.least_squares.large import exact_fit, fit_large
from conepursuit.least_squares.many import aligned, batch_kernel, empty_tables
from conepursuit.least_squares.survey import survey
from conepursuit.least_squares.working_set import WorkingSet
from conepursuit.linear import matvec, rmatvec


def problem(seed, m, n, *, signed=False):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) if signed else rng.random((m, n))
    b = A @ (rng.random(n) * (rng.random(n) < 0.3))
    return A, b + np.linalg.norm(b) / m**0.5 * rng.standard_normal(m)


def specification(A, b):
    """Return what FCMP variant 1, the generic loop, finds."""
    atoms = Dictionary(A)
    result = minimize(LeastSquares(b), Cone(atoms), FCMP(variant=1), tol=1e-13)
    return result.coef


def single(A, b, *, gram=False):
    x, dual = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    atoms = np.ascontiguousarray(A.T)
    G = atoms @ atoms.T if gram else np.empty((0, 0))
    kernels.fit_target(atoms, b, G, x, dual, 0.0, len(x), 1000)
    return x


def orthogonal(A, b):
    """The single-target kernel, told not to trust the Gram matrix."""
    work = WorkingSet(A, b, survey(A, b))
    work.add(np.arange(A.shape[1]))
    work.orthogonal = True
    work.fit(1000)
    return work.solution()


def large(A, b):
    return fit_large(A, b, None, 0.0, 1000, 0.0).x


def many(A, b):
    return nnls(A, np.stack([b, -b, b], axis=1)).x[:, 2]


def few(A, b):
    """The table; its kernel must not have handed the target on."""
    kernel, _ = batch_kernel(A, A.shape[1], 1000)
    n = A.shape[1]
    out = (
        np.zeros((1, n)), np.zeros((1, n)), np.zeros(1), np.zeros(1), np.zeros(1, bool),
        np.zeros(1, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip
    kernel(b[None], *out)
    assert out[5][0] == 0
    return out[0][0]


KERNELS = [
    (single, [(20, 10), (30, 60), (8, 3)]),
    (lambda A, b: single(A, b, gram=True), [(20, 10), (80, 40)]),
    (orthogonal, [(20, 10), (30, 60), (40, 200)]),
    (large, [(20, 10), (60, 300), (100, 700)]),
    (many, [(20, 10), (40, 30), (30, 60)]),
    (few, [(10, 1), (12, 3), (20, 6), (30, 8)]),
]


@pytest.mark.parametrize(
    ("kernel", "shape", "signed"),
    [
        (kernel, shape, signed)
        for kernel, shapes in KERNELS
        for shape in shapes
        for signed in (False, True)
        if not signed or shape[1] < shape[0]  # more signed atoms fit exactly, in many ways
    ],
)
def test_kernels_are_the_generic_loop(kernel, shape, signed):
    for seed in range(5):
        A, b = problem(seed, *shape, signed=signed)
        np.testing.assert_allclose(kernel(A, b), specification(A, b), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_budget_of_atoms_is_the_generic_loop_cut_short(seed):
    """max_atoms stops where the loop on unit atoms has so many, in every kernel."""
    for shape in ((40, 30), (60, 700)):
        A, b = problem(seed, *shape)
        A /= np.linalg.norm(A, axis=0)
        atoms = Dictionary(A)
        for budget in (1, 3, 5):
            result = minimize(
                LeastSquares(b), Cone(atoms), FCMP(variant=1), tol=0.0,
                callback=lambda state, budget=budget: len(state.iterate.weights) >= budget,
            )  # fmt: skip
            expected = result.coef
            for x in (
                nnls(A, b, max_atoms=budget).x,
                nnls(A, np.stack([b, b], axis=1), max_atoms=budget).x[:, 0],
            ):
                np.testing.assert_allclose(x, expected, atol=1e-10)


def test_few_passes_over_a_large_dictionary(monkeypatch):
    """Blocks of atoms join, so that hundreds of atoms need less than ten passes."""
    rng = np.random.default_rng(0)
    A = rng.random((300, 4000))
    A /= np.linalg.norm(A, axis=0)
    x = np.zeros(4000)
    x[rng.choice(4000, 30, replace=False)] = rng.uniform(1, 5, 30)
    b = A @ x
    b += 0.1 * np.linalg.norm(b) / 300**0.5 * rng.standard_normal(300)
    passes_made = []
    monkeypatch.setattr(ws, "rmatvec", lambda M, r: passes_made.append(1) or rmatvec(M, r))
    result = fit_large(A, b, None, 0.0, 1000, 0.0)
    assert result.proven
    assert len(result.support) > 50
    assert 1 + len(passes_made) <= 10
    passes_made.clear()
    assert fit_large(A, b, None, 0.0, 1000, 1e-3).gap <= 1e-3 * 0.5 * (b @ b)
    early = len(passes_made)
    fit_large(A, b, None, 0.0, 1000, 0.0)
    assert early < len(passes_made) - early


def test_an_exact_fit_is_tried_where_it_is_likely():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((20, 700))
    b = A @ rng.random(700)
    for matrix in (A, np.asfortranarray(A)):
        fit = exact_fit(matrix, b, survey(matrix, b), 1e-8, 100)
        assert 0.5 * fit.rnorm**2 <= 1e-8 * 0.5 * (b @ b)
        np.testing.assert_allclose(np.linalg.norm(A @ fit.x - b), fit.rnorm, rtol=1e-6)
    outside = rng.standard_normal((20, 700)) + 5
    assert exact_fit(outside, rng.standard_normal(20), survey(outside, b), 1e-8, 100) is None


def test_coordinate_descent_keeps_the_residual():
    A, b = problem(3, 20, 10)
    atoms, x, r = np.ascontiguousarray(A.T), np.zeros(10), b.copy()
    scale = 1 / np.linalg.norm(A, axis=0)
    values = [kernels.sweeps(atoms, scale, x, r, 0.0, 0.0, 1)[0] for _ in range(50)]
    np.testing.assert_allclose(r, b - A @ x, atol=1e-12)
    assert (np.diff(values) <= 1e-12).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (7, 33), (66, 40)])
def test_passes(dtype, shape):
    rng = np.random.default_rng(4)
    A = rng.standard_normal(shape).astype(dtype)
    wide, r, x = A.astype(float), rng.standard_normal(shape[0]), rng.standard_normal(shape[1])
    expected = wide.T @ r, (wide**2).sum(axis=0), wide.sum(axis=0)
    for survey_pass, matrix in ((shared.survey_rows, A), (shared.survey_columns, A.T.copy())):
        found = np.zeros((3, shape[1]))
        survey_pass(matrix, r, *found)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    for matrix in (A, np.asfortranarray(A)):
        np.testing.assert_allclose(rmatvec(matrix, r), expected[0], atol=1e-12)
        np.testing.assert_allclose(matvec(matrix, x), wide @ x, atol=1e-12)


def test_accurate_dot_is_rounded_once():
    a, b = np.array([1e16, 1.0, -1e16]), np.array([1.0, 1e-3, 1.0])
    assert kernels.accurate_dot(a, b) == 1e-3


@given(seed=st.integers(0, 10**6), n=st.integers(1, 8))
def test_tables_solve_every_support(seed, n):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n + 2, n))
    G = A.T @ A
    M, *others = empty_tables(n, 2**n)
    kernels.tabulate(G, n, len(A), M, *others)
    c = A.T @ rng.standard_normal(len(A))
    support = int(rng.integers(1, 1 << n))
    used = [j for j in range(n) if support >> j & 1]
    v = M[support, :n, :n] @ c
    x = np.zeros(n)
    x[used] = np.linalg.solve(G[np.ix_(used, used)], c[used])
    np.testing.assert_allclose(np.where(x != 0, v, 0), x, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.where(x != 0, 0, v), np.where(x != 0, 0, c - G @ x), atol=1e-8)


def test_aligned_rows_begin_with_a_line():
    for rows, columns in ((1, 1), (3, 17), (8, 64)):
        memory = aligned(rows, columns)
        assert memory.shape[0] == rows
        assert memory.shape[1] >= columns
        assert all(row.ctypes.data % 64 == 0 for row in memory)
        assert not memory.any()
