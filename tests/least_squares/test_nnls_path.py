"""The path of non-negative orthogonal matching pursuit, and the choice of a fit on it."""

import numpy as np
import pytest
from scipy import sparse

from conepursuit import (
    FCMP,
    Cone,
    Dictionary,
    LeastSquares,
    NNLSPath,
    Status,
    iterates,
    nnls,
    nnls_path,
)


def problem(shape=(60, 200), n_atoms=5, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.random(shape)
    A /= np.linalg.norm(A, axis=0)
    x = np.zeros(shape[1])
    x[rng.choice(shape[1], n_atoms, replace=False)] = rng.uniform(1, 3, n_atoms)
    b = A @ x
    return A, b + noise * np.linalg.norm(b) / shape[0] ** 0.5 * rng.standard_normal(shape[0]), x


@pytest.mark.parametrize("seed", range(4))
def test_the_path_is_the_generic_loop(seed):
    """Variant 1 of FCMP on unit atoms: the best of its states with at most k atoms."""
    A, b, _ = problem(seed=seed)
    path = nnls_path(A, b, 12)
    best = {}
    for state in iterates(LeastSquares(b), Cone(Dictionary(A)), FCMP(variant=1)):
        size = len(state.iterate.weights)
        if size > 12:
            break
        best[size] = min(state.value, best.get(size, np.inf))
    values = np.minimum.accumulate([best.get(k, np.inf) for k in range(13)])[1:]
    np.testing.assert_allclose(0.5 * path.rnorm**2, values[: len(path)], rtol=1e-10)


def test_what_a_path_holds():
    A, b, _ = problem()
    path = nnls_path(A, b, 20)
    assert isinstance(path, NNLSPath)
    assert len(path) == 20
    assert "1 to 20 atoms" in repr(path)
    assert path.n_atoms.tolist() == list(range(1, 21))
    assert (np.diff(path.rnorm) <= 0).all()
    for k, (support, weights, rnorm) in enumerate(
        zip(path.supports, path.weights, path.rnorm, strict=True), 1
    ):
        assert len(support) == len(weights) <= k
        assert (weights > 0).all()
        assert np.linalg.norm(A @ path.at_most(k).x - b) == pytest.approx(rnorm, rel=1e-12)
        refit = nnls(A[:, support], b)
        assert refit.rnorm == pytest.approx(rnorm, rel=1e-12)
    budget = nnls(A, b, max_atoms=20)
    assert budget.status is Status.MAX_ATOMS
    assert budget.rnorm == pytest.approx(path.rnorm[-1], rel=1e-12)


def test_the_path_ends_at_the_solution():
    A, b, _ = problem()
    path = nnls_path(A, b, 1000)
    full = nnls(A, b)
    assert path.rnorm[-1] == pytest.approx(full.rnorm, rel=1e-12)
    np.testing.assert_allclose(path.at_most(1000).x, full.x, atol=1e-10)


def test_choices():
    A, b, x = problem(noise=0.02)
    path = nnls_path(A, b, 15)
    chosen = path.by_bic()
    assert chosen.place == np.argmin(path.bic)
    assert set(np.flatnonzero(x)) <= set(chosen.support)
    target = float(path.rnorm[6])
    assert path.by_residual(target).n_atoms == 7
    assert path.by_residual(0.0).n_atoms == 15
    by_folds = path.by_cross_validation(5, random_state=1).n_atoms
    assert path.by_cross_validation(5, random_state=1).n_atoms == by_folds
    assert 3 <= by_folds <= 15
    with pytest.raises(ValueError, match="n_folds"):
        path.by_cross_validation(1)


def test_a_chosen_fit_agrees_with_every_field_in_its_place():
    A, b, x = problem()
    first = np.setdiff1d(np.arange(20), np.flatnonzero(x))[:2]
    path = nnls_path(A, b, 6, forced=first)  # begins with two atoms: places are no counts
    for fit in (*path, path.by_bic(), path.by_residual(path.rnorm[2]), path[-1], path.at_most(9)):
        i = fit.place
        assert fit.n_atoms == path.n_atoms[i] == len(path.supports[i])
        assert fit.support is path.supports[i]
        assert fit.weights is path.weights[i]
        assert fit.rnorm == path.rnorm[i] == pytest.approx(np.linalg.norm(A @ fit.x - b))
        np.testing.assert_array_equal(fit.x[fit.support], fit.weights)
    assert [fit.place for fit in path] == list(range(5))


def test_forced_and_forbidden():
    A, b, x = problem()
    true = np.flatnonzero(x)
    first = np.setdiff1d(np.arange(20), true)[:2]
    path = nnls_path(A, b, 6, forced=first, forbidden=true[:2])
    assert path.n_atoms.tolist() == [2, 3, 4, 5, 6]
    assert all(set(first) <= set(support) for support in path.supports)
    np.testing.assert_allclose(path.at_most(2).x[first], nnls(A[:, first], b).x, atol=1e-12)
    with pytest.raises(ValueError, match="begins with fits of 2 atoms"):
        path.at_most(1)
    mask = np.isin(np.arange(200), first)
    np.testing.assert_array_equal(
        nnls_path(A, b, 6, forced=mask, forbidden=true[:2]).rnorm, path.rnorm
    )
    assert not set(true[:2]) & set(np.concatenate(path.supports))
    alone = nnls(A[:, first], b)
    assert path.rnorm[0] == pytest.approx(alone.rnorm, rel=1e-12)
    everything = nnls_path(A, b, 400, forbidden=true[:2])
    allowed = np.setdiff1d(np.arange(200), true[:2])
    assert everything.rnorm[-1] == pytest.approx(nnls(A[:, allowed], b).rnorm, rel=1e-10)
    assert path.by_cross_validation(3).n_atoms >= 1
    for wrong in (
        {"forced": [200]}, {"forbidden": [-1]}, {"forced": [1], "forbidden": [1]},
        {"forced": range(7)}, {"forced": 7}, {"forced": [7.9]}, {"forced": ["a"]},
        {"forbidden": [[1, 2]]}, {"forced": [True, False]},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"forced|forbidden"):
            nnls_path(A, b, 6, **wrong)


def test_kinds_and_many_targets():
    A, b, _ = problem()
    reference = nnls_path(A, b, 8)
    for kind in (np.asfortranarray(A), sparse.csr_array(A), A.astype(np.float32)):
        path = nnls_path(kind, b, 8)
        np.testing.assert_allclose(path.rnorm, reference.rnorm, rtol=1e-5)
        assert [s.tolist() for s in path.supports] == [s.tolist() for s in reference.supports]
    paths = nnls_path(A, np.stack([b, 2 * b], axis=1), 8, n_jobs=2)
    np.testing.assert_allclose(paths[1].rnorm, 2 * paths[0].rnorm, rtol=1e-12)
    np.testing.assert_allclose(paths[0].rnorm, reference.rnorm, rtol=1e-12)
    weights = np.arange(60) % 2
    odd = nnls_path(A[1::2], b[1::2], 8)
    b[::2] = np.nan
    halved = nnls_path(A, b, 8, weights=weights)
    np.testing.assert_allclose(halved.rnorm, odd.rnorm, rtol=1e-10)
    np.testing.assert_allclose(halved.bic, odd.bic, rtol=1e-10)
    assert halved.by_cross_validation(3).place == odd.by_cross_validation(3).place


def test_units_do_not_matter():
    A, b, _ = problem()
    reference = nnls_path(A, b, 8)
    for scale in (1e-150, 1e150):
        path = nnls_path(scale * A, scale * b, 8)
        assert path.by_bic().place == reference.by_bic().place
        by_folds = reference.by_cross_validation(3)
        assert path.by_cross_validation(3).place == by_folds.place
        np.testing.assert_allclose(path.at_most(8).x, reference.at_most(8).x, rtol=1e-10)
        np.testing.assert_allclose(path.rnorm, scale * reference.rnorm, rtol=1e-10)


def test_targets_that_nothing_fits():
    path = nnls_path(np.eye(3), [-1.0, -2.0, -3.0], 2)
    assert len(path) == 1
    assert len(path.supports[0]) == 0
    assert path.rnorm[0] == pytest.approx(14**0.5)
    assert path.by_bic().n_atoms == 1
    with pytest.raises(ValueError, match="b must be finite"):
        nnls_path(np.eye(3), [1.0, np.nan, 1.0], 2)
    with pytest.raises(ValueError, match="A must be finite"):
        nnls_path(np.full((3, 3), np.nan), [1.0, 1.0, 1.0], 2)


def test_forced_atoms_always_count():
    """They stay in the budget where their weight is zero, so that they can come back."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        path = nnls_path(rng.standard_normal((6, 10)), rng.random(6), 3, forced=[0, 1, 2])
        assert path.n_atoms.tolist() == [3]
        assert path.supports[0].tolist() == [0, 1, 2]
