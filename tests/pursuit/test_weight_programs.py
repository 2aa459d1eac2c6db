"""The kernel against solvers that share nothing with it, and its factor against numpy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from conepursuit import FCMP, OMP, Cone, Dictionary, Hull, LeastSquares, Span, minimize
from conepursuit.kernels import shared as kernels
from conepursuit.kernels.constants import DEPENDENT_SQUARE
from conepursuit.pursuit.full_correction import Metric
from conepursuit.pursuit.weight_programs import Cholesky, bounded, free, nonnegative
from problems import brute_force_nnls


def model(rng, n, rank=None):
    """Return Q, the scores at some weights, those weights, and D, y behind it all."""
    D = rng.standard_normal((rank or n + 3, n))
    y = rng.standard_normal(len(D))
    w = rng.random(n) * (rng.random(n) < 0.5)
    return D.T @ D, D.T @ (D @ w - y), w, D, y


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_nonnegative_is_nnls_whatever_the_start(n):
    for seed in range(20):
        Q, scores, w, D, y = model(np.random.default_rng(seed), n)
        v = nonnegative(Q, scores, w, Cholesky())
        np.testing.assert_allclose(v, nnls(D, y)[0], atol=1e-9)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), rank=st.integers(1, 4))
def test_singular_matrices(seed, n, rank):
    rng = np.random.default_rng(seed)
    D = rng.integers(-2, 3, (rank, n)).astype(float)
    y, w = rng.integers(-2, 3, rank).astype(float), rng.integers(0, 3, n).astype(float)
    v = nonnegative(D.T @ D, D.T @ (D @ w - y), w, Cholesky())
    assert (v >= 0).all()
    assert 0.5 * np.sum((D @ v - y) ** 2) <= brute_force_nnls(D, y)[0] + 1e-10 * (1 + y @ y)


@pytest.mark.parametrize("n", [1, 3, 12])
def test_free_is_least_squares(n):
    for seed in range(10):
        Q, scores, w, D, y = model(np.random.default_rng(seed), n)
        np.testing.assert_allclose(free(Q, scores, w, Cholesky()),
                                   np.linalg.lstsq(D, y, rcond=None)[0], atol=1e-9)  # fmt: skip


def test_free_leaves_dependent_atoms_without_weight():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((8, 3))
    D, y = np.hstack([half, half]), rng.standard_normal(8)
    v = free(D.T @ D, -D.T @ y, np.zeros(6), Cholesky())
    np.testing.assert_allclose(D @ v, half @ np.linalg.lstsq(half, y, rcond=None)[0], atol=1e-10)
    assert (v != 0).sum() == 3


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_bounded_satisfies_its_optimality_conditions(n):
    """w >= 0, sum <= radius, and a multiplier m >= 0 with gradient + m >= 0, tight where w > 0."""
    active = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        Q, scores, w, _D, _y = model(rng, n)
        radius = rng.uniform(0.05, 2.0)
        v = bounded(Q, scores, w, Cholesky(), radius)
        gradient = scores + Q @ (v - w)
        assert (v >= 0).all()
        assert v.sum() <= radius * (1 + 1e-12)
        m = max(0.0, -gradient.min())
        scale = np.abs(scores).max()
        assert (np.abs(gradient + m)[v > 1e-12] <= 1e-9 * scale).all()
        if v.sum() < radius * (1 - 1e-9):
            assert m <= 1e-9 * scale
        else:
            active += 1
    assert active > 0


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_bounded_leaves_the_face_in_any_units(unit):
    """From the face of full radius to the origin, where no atom is passive on the way."""
    scores, weights = unit * np.array([5.0, 7.0]), unit * np.array([0.5, 0.5])
    np.testing.assert_allclose(bounded(np.eye(2), scores, weights, Cholesky(), unit), 0.0)
    scores = unit * np.array([0.2, 0.1])
    found = bounded(np.eye(2), scores, weights, Cholesky(), unit)
    np.testing.assert_allclose(found, unit * np.array([0.3, 0.4]), rtol=1e-12)


def test_the_factor_is_updated_not_wrong():
    rng = np.random.default_rng(1)
    B = rng.standard_normal((12, 8))
    Q, c = B.T @ B, rng.standard_normal(8)
    C, order, k = np.zeros((9, 9)), np.zeros(9, dtype=np.intp), 0
    y, cosines, sines = np.zeros(9), np.zeros(9), np.zeros(9)
    for step in range(300):
        outside = [j for j in range(8) if j not in order[:k]]
        if k and (not outside or rng.random() < 0.45):
            place = int(rng.integers(k))
            kernels.remove(C, order, k, place, cosines, sines)
            kernels.rotate(y, k, place, cosines, sines)
            k -= 1
        else:
            atom = int(rng.choice(outside))
            assert kernels.append(C, order, k, Q[atom], atom, DEPENDENT_SQUARE)
            y[k] = (c[atom] - C[k, :k] @ y[:k]) * C[k, k]
            k += 1
        chosen = order[:k]
        assert len(set(chosen)) == k
        L = np.tril(C[:k, :k])
        L[np.diag_indices(k)] = 1 / L.diagonal()
        np.testing.assert_allclose(L @ L.T, Q[np.ix_(chosen, chosen)], atol=1e-9, err_msg=str(step))
        np.testing.assert_allclose(L @ y[:k], c[chosen], atol=1e-9, err_msg=str(step))


def test_append_refuses_a_dependent_atom():
    D = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]])
    Q = D.T @ D
    C, order = np.zeros((4, 4)), np.zeros(4, dtype=np.intp)
    assert kernels.append(C, order, 0, Q[0], 0, DEPENDENT_SQUARE)
    assert not kernels.append(C, order, 1, Q[1], 1, DEPENDENT_SQUARE)
    assert kernels.append(C, order, 1, Q[2], 2, DEPENDENT_SQUARE)


def test_gram_and_factor_are_kept_through_a_run():
    """An atom that joins costs one column of the Gram matrix, whatever is there already."""
    rng = np.random.default_rng(2)
    D = rng.random((40, 60))
    y = D @ (rng.random(60) * (rng.random(60) < 0.3)) + 0.5 * rng.standard_normal(40)
    blocks, rebuilt = [], []
    update, count = Metric.update, Cholesky.keep

    def counting(self, x, atoms):
        known = len(self.keys)
        out = update(self, x, atoms)
        blocks.append(len(atoms) - known)
        columns = D[:, list(atoms.keys)]
        np.testing.assert_allclose(out, columns.T @ columns, rtol=1e-12)
        return out

    def watching(self, positions, n):
        count(self, positions, n)
        rebuilt.append(self.count == 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Metric, "update", counting)
        patch.setattr(Cholesky, "keep", watching)
        result = minimize(LeastSquares(y), Cone(Dictionary(D)), FCMP(variant=1), tol=1e-12)
    assert result.n_iter > 8
    assert max(blocks) == 1
    assert rebuilt
    assert not any(rebuilt)


def test_fcmp_on_a_hull_and_omp_on_a_span_reach_their_optima():
    rng = np.random.default_rng(3)
    for _ in range(20):
        D, y = rng.standard_normal((8, 12)), rng.standard_normal(8)
        f, atoms = LeastSquares(y), Dictionary(D)
        free_size = nnls(D, y)[0].sum()
        hull = Hull(atoms, radius=0.5 * free_size)
        for variant in (0, 1):
            result = minimize(f, hull, FCMP(variant=variant), tol=1e-11)
            assert result.certificate.proven
            assert result.certificate.gap <= 1e-11 * result.trace["value"][0]
            assert result.weights.sum() == pytest.approx(hull.radius)
        few = Dictionary(D[:, :5])
        result = minimize(f, Span(few), OMP(), tol=1e-12)
        assert result.value == pytest.approx(0.5 * np.linalg.lstsq(D[:, :5], y, rcond=None)[1][0])
