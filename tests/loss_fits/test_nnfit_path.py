"""Fits with few atoms under any loss, held to enumeration and to other ways of choosing."""

import os
from itertools import combinations, product

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from conepursuit import (
    ConicRegressor,
    FreeIntercept,
    Huber,
    LeastSquares,
    Logistic,
    Poisson,
    Status,
    nnfit,
    nnfit_path,
    nnls,
)
from conepursuit.datasets import load_mutational_signatures


def made(seed, loss="poisson", m=20, n=9, k=3):
    """Return a loss of data from a few atoms, and the atoms."""
    rng = np.random.default_rng(seed)
    A = rng.gamma(0.5, 1.0, (m, n)) + (0.3 * rng.gamma(1.0, 1.0, (m, 1)) if seed % 2 else 0.0)
    w = np.zeros(n)
    w[rng.choice(n, k + 1, replace=False)] = 20 * rng.gamma(1.0, 1.0, k + 1)
    mean = A @ w
    if loss == "poisson":
        return Poisson(rng.poisson(mean)), A
    noisy = mean + 0.1 * mean.std() * rng.standard_t(2, m)
    if loss == "logistic":
        odds = 2 * (mean - np.median(mean)) / mean.std()
        return Logistic(np.where(rng.logistic(odds) > 0, 1, -1)), A - A.mean(axis=0)
    return (Huber(noisy, delta=0.1 * mean.std()) if loss == "huber" else LeastSquares(noisy)), A


def least(loss, A, supports):
    """Return the least value of the fits on some supports; one target is many, to be quick."""
    each = type(loss)(loss.y[:, None], **loss.options())
    return min(nnfit(each, A[:, support]).value[0] for support in supports)


@pytest.mark.parametrize("loss", ["poisson", "huber", "squares", "logistic"])
def test_the_best_of_all_supports_is_found_in_nine_of_ten_problems(loss):
    hits = 0
    for seed in range(20):
        f, A = made(seed, loss, m=20 if loss != "logistic" else 80)
        best = least(f, A, map(list, combinations(range(9), 3)))
        found = nnfit_path(f, A, 3)[-1].value
        assert found >= best - 1e-6 * abs(best)
        hits += found <= best + 1e-6 * abs(best)
    assert hits >= 18


def test_so_it_is_among_bumps_that_overlap():
    hits, centres = 0, np.linspace(0.0, 1.0, 12)
    A = np.exp(-0.5 * ((np.linspace(0.0, 1.0, 30)[:, None] - centres) / 0.12) ** 2) + 1e-3
    for seed in range(20):
        rng = np.random.default_rng(seed)
        w = np.where(rng.permutation(12) < 5, 30 * rng.gamma(1.0, 1.0, 12), 0.0)
        f = Poisson(rng.poisson(A @ w))
        best = least(f, A, map(list, combinations(range(12), 3)))
        hits += nnfit(f, A, max_atoms=3).value <= best + 1e-6 * abs(best)
    assert hits >= 18


@pytest.mark.skipif(
    "CONEPURSUIT_DATA" not in os.environ, reason="CONEPURSUIT_DATA names no data folder"
)
@pytest.mark.parametrize("k", [3, 5, 8])
def test_tumours_are_explained_no_worse_than_by_least_squares_and_a_refit(k):
    data = load_mutational_signatures()
    A, B = data.signatures, data.catalogues[:, ::70]
    chosen = nnls(A, B, max_atoms=k).support.T
    refitted = [least(Poisson(b), A, [s]) for b, s in zip(B.T, chosen, strict=True)]
    fit = nnfit(Poisson(B), A, max_atoms=k)
    assert (np.count_nonzero(fit.x, axis=0) <= k).all()
    assert np.mean(fit.value <= np.array(refitted) + 1e-9 * np.abs(refitted)) >= 0.95


def test_a_path_never_rises_and_its_places_agree():
    f, A = made(4, m=30, n=14)
    path = nnfit_path(f, A, 6)
    assert (np.diff(path.values) <= 0).all()
    for i, size in enumerate(path.n_atoms):
        fit = path[i]
        assert fit.place == i
        assert len(fit.support) <= fit.n_atoms == size
        assert (fit.weights > 0).all()
        assert fit.value == pytest.approx(f.value(A @ fit.x), rel=1e-12)
        assert path.at_most(size).place == i
        single = nnfit(f, A, max_atoms=int(size))
        assert single.value == fit.value
        assert single.status in (Status.CONVERGED, Status.MAX_ATOMS)
        assert single.proven
    assert path.by_bic().place == np.argmin(path.bic)
    assert path.by_cross_validation(3).place in range(len(path))
    assert repr(path).startswith("LossPath(1 to ")


def test_atoms_are_forced_and_forbidden():
    f, A = made(1, m=30)
    best = int(nnfit_path(f, A, 1).supports[0][0])
    path = nnfit_path(f, A, 4, forced=[2, 5], forbidden=[best] if best not in (2, 5) else [])
    assert path.n_atoms[0] == 2
    assert all({2, 5} <= set(s.tolist()) for s in path.supports)
    assert best in (2, 5) or not any(best in s for s in path.supports)
    with pytest.raises(ValueError, match="forced and forbidden"):
        nnfit_path(f, A, 4, forced=[2], forbidden=[2])


def test_all_atoms_that_help_are_a_proven_fit():
    f, A = made(3, n=5, m=40)
    whole, few = nnfit(f, A), nnfit(f, A, max_atoms=5)
    assert few.proven
    assert few.status is Status.CONVERGED
    assert few.value == pytest.approx(whole.value, rel=1e-8)


def test_many_targets_sparse_matrices_and_operators():
    rng = np.random.default_rng(5)
    A = np.where(rng.random((40, 9)) < 0.8, rng.random((40, 9)), 0.0)
    B = rng.poisson(A @ rng.gamma(1.0, 3.0, (9, 2)))
    fits = nnfit(Poisson(B), A, max_atoms=4, n_jobs=2)
    thin = nnfit(Poisson(B), sparse.csc_array(A), max_atoms=4)
    np.testing.assert_allclose(thin.value, fits.value, rtol=1e-7)
    for i in range(2):
        assert nnfit(Poisson(B[:, i]), A, max_atoms=4).value == fits.value[i]
    loop = nnfit(LeastSquares(B[:, 0]), aslinearoperator(A), max_atoms=2)
    assert len(loop.support) == 2
    with pytest.raises(ValueError, match="a matrix that shows its columns"):
        nnfit_path(Poisson(B[:, 0]), aslinearoperator(A), 2)


def test_where_few_atoms_cannot_reach_all_data_the_search_comes_down():
    rng = np.random.default_rng(2)
    A = np.kron(np.eye(4), np.ones((8, 3))) * rng.random((32, 12))
    f = Poisson(rng.poisson(5, 32) + 1)
    path = nnfit_path(f, A, 6)
    assert path.n_atoms.tolist() == [4, 5, 6]
    supports = [[3 * i + j for i, j in enumerate(places)] for places in product(range(3), repeat=4)]
    assert path.values[0] == pytest.approx(least(f, A, supports))
    with pytest.raises(ValueError, match="finite from 4 atoms on"):
        nnfit(f, A, max_atoms=3)
    with pytest.raises(ValueError, match="begins with fits of 4 atoms"):
        path.at_most(2)
    with pytest.raises(ValueError, match="positive where all atoms are zero"):
        nnfit_path(Poisson([1, 1]), [[1.0], [0.0]], 1)


@pytest.mark.parametrize("loss", ["poisson", "huber"])
def test_units_of_columns_do_not_matter(loss):
    f, A = made(6, loss)
    powers = np.ldexp(1.0, np.array([0, 3, -5, 450, -450, 1, 0, 20, -20]))
    plain, scaled = nnfit_path(f, A, 4), nnfit_path(f, A * powers, 4)
    for a, b in zip(plain.supports, scaled.supports, strict=True):
        assert a.tolist() == b.tolist()
    for i in range(len(plain)):
        np.testing.assert_allclose(scaled[i].x * powers, plain[i].x, rtol=1e-5)


def test_a_start_is_one_of_the_choices_that_are_tried():
    f, A = made(8)
    best = nnfit(f, A, max_atoms=3)
    assert nnfit(f, A, max_atoms=3, start=best).value <= best.value
    with pytest.raises(ValueError, match="start has 3 positive weights, but max_atoms is 2"):
        nnfit(f, A, max_atoms=2, start=best.x)


@pytest.mark.parametrize("intercept", [False, True])
def test_regressors_choose_by_the_same_search(intercept):
    f, A = made(9, "huber", m=40)
    model = ConicRegressor("huber", delta=f.delta, max_atoms=3, fit_intercept=intercept).fit(A, f.y)
    found = nnfit_path(FreeIntercept(f) if intercept else f, A, 3)
    assert np.flatnonzero(model.coef_).tolist() == found.supports[-1].tolist()
    np.testing.assert_allclose(40 * model.path_.values, found.values, rtol=1e-6)
