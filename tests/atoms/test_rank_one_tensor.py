"""Rank-one tensors: batches against dense outer products, the oracle against brute force."""

from itertools import product

import numpy as np
import pytest

from conepursuit import (
    AMP,
    FCMP,
    NNMP,
    PWMP,
    Cone,
    KullbackLeibler,
    LeastSquares,
    NonnegativeRankOne,
    NonnegativeRankOneTensor,
    RankOnes,
    certify,
    minimize,
)
from conepursuit.testing import check_atom_set

SHAPES = [(3, 4, 5), (2, 5, 1), (3, 2, 4, 2)]


def outer(vectors):
    whole = np.ones(())
    for vector in vectors:
        whole = np.multiply.outer(whole, vector)
    return whole


def batch(shape, k, rng):
    factors = [rng.random((k, n)) for n in shape]
    return RankOnes.of(*(f / np.linalg.norm(f, axis=1, keepdims=True) for f in factors))


@pytest.mark.parametrize("shape", SHAPES)
def test_batches_are_their_dense_outer_products(shape):
    rng = np.random.default_rng(0)
    one, two, g = batch(shape, 4, rng), batch(shape, 3, rng), rng.standard_normal(shape)
    dense = [np.stack([outer(v) for v in zip(*b.factors, strict=True)]) for b in (one, two)]
    axes = list(range(1, len(shape) + 1))
    weights = rng.random(4)
    np.testing.assert_allclose(one.inner(g), np.tensordot(dense[0], g, len(shape)))
    np.testing.assert_allclose(one.combine(weights), np.tensordot(weights, dense[0], 1))
    np.testing.assert_allclose(one.gram(two), np.tensordot(dense[0], dense[1], (axes, axes)))
    np.testing.assert_allclose(
        one.weighted_gram(g, two), np.tensordot(dense[0], g * dense[1], (axes, axes))
    )
    assert one.combine(weights).flags.c_contiguous


@pytest.mark.parametrize("shape", SHAPES)
def test_the_set_keeps_its_contract(shape):
    check_atom_set(NonnegativeRankOneTensor(shape))


def best_by_brute_force(T, steps):
    """The largest <T, u v w>: a grid over u and v, refined by exact steps; w is in closed form."""
    angles = np.linspace(0, np.pi / 2, steps)
    grid = [
        np.cumprod([1.0, *np.sin(a)]) * np.array([*np.cos(a), 1.0])
        for a in product(angles, repeat=T.shape[0] - 1)
    ]
    best = T.max()
    for u, v in product(grid, repeat=2):
        w = np.ones(T.shape[2])
        for _ in range(4):
            w = np.maximum(np.einsum("ijk,i,j->k", T, u, v), 0.0)
            u = np.maximum(np.einsum("ijk,j,k->i", T, v, w), 0.0)
            u = u / max(np.linalg.norm(u), 1e-300)
            v = np.maximum(np.einsum("ijk,i,k->j", T, u, w), 0.0)
            v = v / max(np.linalg.norm(v), 1e-300)
        best = max(best, np.linalg.norm(np.maximum(np.einsum("ijk,i,j->k", T, u, v), 0.0)))
    return best


@pytest.mark.parametrize(("n", "steps", "count"), [(2, 9, 40), (3, 5, 8)])
def test_the_accuracy_is_never_above_the_truth(n, steps, count):
    """delta = value / bound must not exceed value / truth: no atom is above the proved bound."""
    rng = np.random.default_rng(n)
    atoms, reached = NonnegativeRankOneTensor((n, n, n)), []
    for trial in range(count):
        T = rng.standard_normal((n, n, n)) - (0.5 if trial % 3 == 0 else 0.0)
        answer = atoms.lmo(-T)
        value = -answer.inner(-T)[0]
        truth = max(best_by_brute_force(T, steps), value)
        assert -atoms.floor(-T, answer) >= truth * (1 - 1e-12)
        reached.append(value / truth if truth > 0 else 1.0)
    assert np.mean(np.array(reached) > 1 - 1e-6) > 0.85


@pytest.mark.parametrize("algorithm", [NNMP(), AMP(), PWMP(), FCMP(), FCMP(variant=0)])
@pytest.mark.parametrize("shape", [(4, 5, 3), (3, 2, 3, 2)])
def test_every_algorithm_fits_a_tensor(algorithm, shape):
    rng = np.random.default_rng(1)
    X = batch(shape, 3, rng).combine(np.array([3.0, 2.0, 1.0]))
    cone = Cone(NonnegativeRankOneTensor(shape))
    run = minimize(LeastSquares(X), cone, algorithm, max_iter=60)
    assert (np.diff(run.trace["value"]) <= 1e-12 * np.sum(X**2)).all()
    assert run.value <= 2e-2 * 0.5 * np.sum(X**2)
    assert run.value <= run.certificate.gap or not run.certificate.proven  # the least value is 0
    assert (run.trace["accuracy"][1:-1] > 0.2).all()


def test_other_losses_and_audits():
    X = batch((4, 3, 5), 2, np.random.default_rng(2)).combine(np.array([2.0, 1.0])) + 0.01
    cone = Cone(NonnegativeRankOneTensor(X.shape))
    run = minimize(KullbackLeibler(X), cone, FCMP(variant=1), max_iter=30)
    assert 0.0 <= run.value < 0.05 * np.sum(X)
    assert certify(LeastSquares(X), cone, run.x).gap >= 0.5 * np.sum((run.x - X) ** 2) - 1e-9


def test_an_axis_of_length_one_agrees_with_matrices():
    M = np.random.default_rng(3).standard_normal((6, 5))
    flat, tensor = (
        NonnegativeRankOne(M.shape).lmo(M),
        NonnegativeRankOneTensor((6, 1, 5)).lmo(M[:, None]),
    )
    np.testing.assert_allclose(tensor.inner(M[:, None]), flat.inner(M), rtol=1e-6)


@pytest.mark.parametrize(("shape", "words"), [((4,), "three axes"), ((4, 5), "NonnegativeRankOne")])
def test_fewer_axes_are_refused(shape, words):
    with pytest.raises(ValueError, match=words):
        NonnegativeRankOneTensor(shape)
    with pytest.raises(ValueError, match="NonnegativeRankOneTensor"):
        NonnegativeRankOne((2, 3, 4))
