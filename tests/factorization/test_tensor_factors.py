"""Tensors: the lean loop is the generic one, sweeps never rise, Corrected, sparse as dense."""

import numpy as np
import pytest

from conepursuit import (
    FCMP,
    PWMP,
    AdaptiveStep,
    Cone,
    Corrected,
    FactoredKullbackLeibler,
    FactoredLeastSquares,
    KullbackLeibler,
    LeastSquares,
    NonnegativeRankOneTensor,
    minimize,
)
from conepursuit.atoms.power import GAIN
from conepursuit.factorization.data import FactorData
from conepursuit.factorization.greedy import factorize
from conepursuit.factorization.held_out import held_out
from conepursuit.factorization.losses import NO_PENALTIES
from conepursuit.least_squares.gram import nnls_gram
from conepursuit.tensors import SparseTensor, component_grams, contracted, outer_sum

sparse = pytest.importorskip("sparse")


def made(shape=(9, 8, 7), k=3, seed=0, noise=0.05, share=0.6):
    rng = np.random.default_rng(seed)
    factors = [rng.random((k, n)) * (rng.random((k, n)) < share) for n in shape]
    return np.maximum(outer_sum(factors) + noise * rng.standard_normal(shape), 0.0)


def stored(X):
    return SparseTensor.of(sparse.COO.from_numpy(X))


def losses(X):
    """Return every kind of loss on the same data."""
    M = np.random.default_rng(0).choice([0.0, 0.5, 2.0], X.shape)
    found = {}
    for name, divergence in (("squares", False), ("divergence", True)):
        found[name] = FactorData(X, None, divergence).loss()
        found[f"{name}, sparse"] = FactorData(stored(X), None, divergence).loss()
        found[f"{name}, weighted"] = FactorData(np.where(M > 0, X, 0.0), M, divergence).loss()
        data, rng = FactorData(stored(X), None, divergence), np.random.RandomState(0)
        found[f"{name}, held out"] = held_out(data, NO_PENALTIES, rng)[1]
    found["squares, bpp"] = FactorData(X, None, False).loss(correction="bpp")
    return found


KINDS = sorted(losses(made()))


def value_of(kind, X, Z):
    """The loss of a model by its formula, None where the kind has no such formula."""
    M = np.random.default_rng(0).choice([0.0, 0.5, 2.0], X.shape) if "weighted" in kind else 1.0
    if "held out" in kind:
        return None
    if "squares" in kind:
        return 0.5 * np.sum(M * (X - Z) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(X > 0, X * np.log(X / Z), 0.0) - X + Z
    return np.sum(M * terms)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(9, 8, 7), (4, 3, 5, 2), (6, 1, 5)], ids=str)
def test_an_update_keeps_to_its_axis_and_never_rises(kind, shape):
    X, rng = made(shape), np.random.default_rng(1)
    loss = losses(X)[kind]
    factors = tuple(rng.random((3, n)) + 0.1 for n in shape)
    value = loss.value(factors)
    want = value_of(kind, X, outer_sum(factors))
    if want is not None:
        np.testing.assert_allclose(value, want, rtol=1e-11)
    for _ in range(3):
        for axis in range(len(shape)):
            before = [factor.copy() for factor in factors]
            loss.update(factors, axis)
            for other in set(range(len(shape))) - {axis}:
                np.testing.assert_array_equal(factors[other], before[other])
            now = loss.value(factors)
            assert now <= value * (1 + 1e-12)
            value = now


@pytest.mark.parametrize("kind", KINDS)
def test_descent_is_minus_the_gradient(kind):
    X, rng, step = made(), np.random.default_rng(0), 1e-5
    loss, factors = losses(X)[kind], tuple(rng.random((2, n)) + 0.1 for n in X.shape)
    descent = np.asarray(loss.descent(factors))
    for _ in range(5):
        new = [rng.random((1, n)) for n in X.shape]
        values = [
            loss.fit(tuple(
                np.vstack([f, sign * step * g if axis == 0 else g])
                for axis, (f, g) in enumerate(zip(factors, new, strict=True))
            ))
            for sign in (1, -1)
        ]  # fmt: skip
        slope = (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(-slope, np.vdot(descent, outer_sum(new)), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("growth", [0.0, 1.0])
def test_nothing_rises(kind, growth):
    X = made()
    for algorithm in ("fcmp", "pwmp"):
        loss = losses(X)[kind]
        fit = factorize(loss, 5, algorithm=algorithm, growth=growth, rank_sweeps=3, max_iter=30)
        assert [factor.shape for factor in fit.factors] == [(5, n) for n in X.shape]
        assert all((factor >= 0).all() for factor in fit.factors)
        assert (np.diff(fit.path) <= 1e-12 * fit.path[0]).all()
        assert (np.diff(fit.values) <= 1e-12 * fit.path[0]).all()
        np.testing.assert_allclose(loss.value(fit.factors), fit.path[-1], rtol=1e-9)
        asked = fit.accuracy[~np.isnan(fit.accuracy)]
        assert ((asked >= 0) & (asked <= 1)).all()


@pytest.mark.parametrize("algorithm", ["fcmp", "pwmp"])
@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("shape", [(9, 8, 7), (4, 3, 5, 2)], ids=str)
def test_the_lean_loop_is_the_generic_one(algorithm, factored, shape, monkeypatch):
    X = made(shape, 4)
    loss = FactorData(stored(X) if factored else X, None, False).loss()
    loss.splits = False  # the generic loop asks the oracle alone
    lean = factorize(loss, 5, algorithm=algorithm, rank_sweeps=3, max_iter=3, tol=0.0, rounds=0)
    monkeypatch.setattr(NonnegativeRankOneTensor, "gain", GAIN)
    monkeypatch.setattr(NonnegativeRankOneTensor, "axes", 1)
    objective = FactoredLeastSquares(sparse.COO.from_numpy(X)) if factored else LeastSquares(X)
    generic = minimize(
        objective, Cone(NonnegativeRankOneTensor(shape, n_random=0, factored=factored)),
        Corrected(FCMP() if algorithm == "fcmp" else PWMP(), sweeps=3), max_iter=5,
    )  # fmt: skip
    np.testing.assert_allclose(generic.trace["value"][1:], lean.path, rtol=1e-10)
    np.testing.assert_allclose(generic.trace["accuracy"][:-1], lean.accuracy, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(generic.x), outer_sum(lean.factors), atol=1e-8)


@pytest.mark.parametrize("algorithm", [FCMP(variant=1), PWMP(AdaptiveStep())])
def test_corrected_runs_of_sparse_tensors_are_those_of_arrays(algorithm):
    X = made(noise=0.0)
    S, arrays = sparse.COO.from_numpy(X), Cone(NonnegativeRankOneTensor(X.shape))
    factored = Cone(NonnegativeRankOneTensor(X.shape, factored=True))
    pairs = (
        (LeastSquares(X), FactoredLeastSquares(S)),
        (
            KullbackLeibler(X),
            FactoredKullbackLeibler(S),
        ),
    )
    for one, two in pairs:
        plain = minimize(one, arrays, Corrected(algorithm, sweeps=20), max_iter=8)
        other = minimize(two, factored, Corrected(algorithm, sweeps=20), max_iter=8)
        scale = X.sum()
        for run in (plain, other):
            assert (np.diff(run.trace["value"][1:]) <= 1e-12 * scale).all()
            assert run.value <= 1e-4 * scale
        np.testing.assert_allclose(one.value(np.asarray(other.x)), other.value, atol=1e-9 * scale)


def test_an_update_by_pivoting_is_the_minimiser():
    X, rng = made(), np.random.default_rng(0)
    loss = FactorData(X, None, False).loss(correction="bpp")
    factors = tuple(rng.random((3, n)) for n in X.shape)
    loss.update(factors, 1)
    others = factors[0], factors[2]
    want = nnls_gram(component_grams(others), contracted(X, factors, 1)).x
    np.testing.assert_allclose(factors[1], want, atol=1e-12)


def test_axes_that_are_fixed_stay():
    X, rng = made(), np.random.default_rng(0)
    for kind, fixed in (("squares", 0), ("squares", 2), ("divergence", 0), ("divergence", 1)):
        loss = losses(X)[kind]
        loss.fixed = frozenset([fixed])
        factors = tuple(rng.random((3, n)) + 0.1 for n in X.shape)
        found, values, _ = loss.corrected(factors, 30, 0.0)
        assert np.array_equal(found[fixed], factors[fixed])
        assert values[-1] < 0.9 * values[0]
        assert (np.diff(values) <= 1e-12 * values[0]).all()
        np.testing.assert_allclose(loss.value(found), values[-1], rtol=1e-9)


def test_large_tensors_are_swept_in_float32_first():
    X = made((80, 60, 40), 4, noise=0.0, share=1.0)
    loss = FactorData(X.transpose(0, 2, 1), None, False).transposed([0, 2, 1]).loss()
    assert loss.coarse
    fit = factorize(loss, 4, growth=1.0, rank_sweeps=5, max_iter=500)
    assert not loss.coarse
    assert loss.single is None
    assert np.sqrt(2 * fit.fit) <= 1e-5 * np.linalg.norm(X)
    np.testing.assert_allclose(fit.fit, 0.5 * np.sum((X - outer_sum(fit.factors)) ** 2), rtol=1e-6)
