"""Objectives against finite differences, and what they know of themselves."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from conepursuit import Composed, FunctionObjective, LeastSquares, Quadratic
from conepursuit.testing import check_objective

rng = np.random.default_rng(0)
B = rng.standard_normal((7, 5))
TALL = LeastSquares(rng.standard_normal(7))


def softplus(x):
    return float(np.logaddexp(0, x).sum()), 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    "objective",
    [
        LeastSquares(rng.standard_normal(5)),
        LeastSquares(rng.standard_normal((2, 3))),
        LeastSquares([1, 2, 3]),
        Quadratic(B.T @ B, rng.standard_normal(5)),
        Quadratic(sparse.csc_array(B.T @ B), rng.standard_normal(5)),
        Quadratic(aslinearoperator(B.T @ B), rng.standard_normal(5)),
        Quadratic(np.diag([1.0, 0.0, 2.0]), np.ones(3)),
        Composed(TALL, B),
        Composed(TALL, sparse.csr_array(B)),
        Composed(TALL, aslinearoperator(B)),
        Composed(LeastSquares(np.ones(5)), B.T),
        Composed(FunctionObjective(softplus, 7, smoothness=0.25), B),
        FunctionObjective(softplus, 4, smoothness=0.25),
    ],
    ids=repr,
)
def test_contract(objective):
    check_objective(objective)


def test_smoothness_is_an_upper_bound_for_every_kind_of_matrix():
    exact = float(np.linalg.norm(B, 2)) ** 2
    for form in (B, sparse.csc_array(B), aslinearoperator(B)):
        assert exact <= Composed(TALL, form).smoothness * (1 + 1e-12)
        assert Composed(TALL, form).smoothness <= 1.001 * exact
    for form in (B.T @ B, sparse.csc_array(B.T @ B), aslinearoperator(B.T @ B)):
        L = Quadratic(form, np.ones(5)).smoothness
        assert exact <= L * (1 + 1e-12)
        assert 1.001 * exact >= L


def test_strong_convexity():
    least = float(np.linalg.svd(B, compute_uv=False)[-1]) ** 2
    assert Composed(TALL, B).strong_convexity == pytest.approx(least)
    assert Composed(LeastSquares(np.ones(5)), B.T).strong_convexity == 0
    assert Quadratic(B.T @ B, np.ones(5)).strong_convexity == pytest.approx(least)


def test_duality_gap_of_least_squares_is_the_best_over_all_scales():
    f = LeastSquares(rng.standard_normal(5))
    for _ in range(50):
        x, t, shift = rng.random(5), rng.random(5), rng.random()
        value, gradient = f.value_and_gradient(x)
        for largest in (np.inf, 1.0, 0.3):
            scales = np.linspace(0, min(largest, 10), 4001)
            values = [value + f.conjugate(s * (gradient + shift * t)) for s in scales]
            gap = f.duality_gap(x, value, gradient, shift * t, largest)
            assert gap <= min(values) + 1e-12 * value
            if largest < np.inf or np.argmin(values) < 4000:
                assert gap == pytest.approx(min(values), abs=1e-4 * value)


def test_the_generic_duality_gap_is_a_bound_too():
    f = LeastSquares(rng.standard_normal(5))
    same = FunctionObjective(f.value_and_gradient, 5, smoothness=1.0, conjugate=f.conjugate)
    x, t = rng.random(5), np.ones(5)
    value, gradient = f.value_and_gradient(x)
    best = f.duality_gap(x, value, gradient, 0.3 * t, np.inf)
    assert same.duality_gap(x, value, gradient, 0.3 * t, np.inf) >= best
    assert Composed(f, np.eye(5)).duality_gap(x, value, gradient, 0.3 * t, 1.0) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LeastSquares([1.0, np.nan]), "y must be finite; got NaN or infinity"),
        (lambda: LeastSquares([1.0, np.inf]), "y must be finite"),
        (lambda: LeastSquares([]), "at least one entry"),
        (lambda: LeastSquares(3.0), "at least one entry"),
        (lambda: LeastSquares([1 + 2j]), "real numbers; got dtype complex128"),
        (lambda: LeastSquares(["a"]), "real numbers"),
        (lambda: Quadratic(np.eye(3), np.ones(2)), r"got Q of shape \(3, 3\) and c of shape"),
        (lambda: Quadratic(-np.eye(2), np.ones(2)), "positive semidefinite"),
        (lambda: Quadratic([[1.0, 2.0], [0.0, 1.0]], np.ones(2)), "symmetric"),
        (lambda: Quadratic([[np.nan, 0.0], [0.0, 1.0]], np.ones(2)), "finite"),
        (lambda: Composed(TALL, B.T), r"one row per entry.*\(7,\); got shape \(5, 7\)"),
        (lambda: FunctionObjective(softplus, 3, smoothness=-1.0), "positive and finite; got -1"),
    ],
)
def test_bad_data_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_gradient_of_the_wrong_shape_is_named():
    f = FunctionObjective(lambda x: (0.0, np.ones(2)), 3)
    with pytest.raises(ValueError, match=r"gradient of shape \(3,\); got \(2,\)"):
        f.value_and_gradient(np.zeros(3))
