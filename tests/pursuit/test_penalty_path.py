"""Paths over the penalty."""

import numpy as np
import pytest
from sklearn.linear_model import lasso_path

from conepursuit import (
    PWMP,
    AdaptiveStep,
    Cone,
    Dictionary,
    FunctionObjective,
    Huber,
    KullbackLeibler,
    LeastSquares,
    Logistic,
    NonnegativeSphere,
    Poisson,
    Symmetric,
    UnitVectors,
    certify,
    penalty_path,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 20))
Y = X[:, :4] @ [1.0, 2.0, 0.5, 1.5] + rng.standard_normal(60)


def test_least_squares_are_the_positive_lasso():
    atoms = Dictionary(X)
    path = penalty_path(LeastSquares(Y), atoms, n_penalties=30)
    _, coefs, _ = lasso_path(
        X, Y, alphas=path.penalties / 60, positive=True, tol=1e-14, max_iter=10**6
    )
    np.testing.assert_allclose(path.coef, coefs.T, atol=1e-7)
    assert path.n_atoms[0] == 0
    assert len(path) == 30
    assert "30 penalties" in repr(path)


def test_with_symmetric_atoms_it_is_the_lasso():
    atoms = Symmetric(Dictionary(X))
    path = penalty_path(LeastSquares(Y), atoms, n_penalties=10)
    _, coefs, _ = lasso_path(X, Y, alphas=path.penalties / 60, tol=1e-14, max_iter=10**6)
    values = [
        0.5 * float(np.sum((Y - X @ c) ** 2)) + penalty * np.abs(c).sum()
        for c, penalty in zip(coefs.T, path.penalties, strict=True)
    ]
    np.testing.assert_allclose(path.values, values, rtol=1e-9)


@pytest.mark.parametrize(
    "loss", [LeastSquares(Y), Logistic(Y > 0), Huber(Y, 0.5)], ids=lambda loss: type(loss).__name__
)
def test_every_point_is_certified(loss):
    atoms = Dictionary(X)
    path = penalty_path(loss, atoms, n_penalties=15, ratio=0.01)
    for penalty, result in zip(path.penalties, path.results, strict=True):
        assert result.status.success
        assert result.certificate.proven
        audit = certify(loss, Cone(atoms, penalty=float(penalty)), result)
        assert audit.proven
        assert audit.gap <= 1e-7 * loss.value(np.zeros(60))
    assert (path.gaps <= 1e-7 * loss.value(np.zeros(60))).all()
    assert (np.diff(path.values) < 0).all()


def test_just_below_the_largest_penalty_one_atom_has_weight():
    path = penalty_path(LeastSquares(Y), Dictionary(X), n_penalties=2, ratio=0.999)
    assert path.n_atoms.tolist() == [0, 1]


def test_any_algorithm_and_any_set():
    y = np.array([3.0, 4.0, -1.0])
    path = penalty_path(
        LeastSquares(y), NonnegativeSphere(3), penalties=[1.0, 2.5], algorithm=PWMP(AdaptiveStep())
    )
    assert path.penalties.tolist() == [2.5, 1.0]
    np.testing.assert_allclose(path.results[0].x, [1.5, 2.0, 0.0], atol=1e-4)
    np.testing.assert_allclose(path.results[1].x, [2.4, 3.2, 0.0], atol=1e-4)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_penalties_of_counts_reach_from_a_tenth_of_the_fit_to_nearly_all_of_it(unit):
    rng = np.random.default_rng(3)
    A = rng.random((30, 8))
    counts = rng.poisson(A @ (10 * rng.random(8)))
    path = penalty_path(Poisson(counts), Dictionary(unit * A), n_penalties=10)
    sums = np.array([result.x.sum() for result in path.results]) / counts.sum()
    assert 0.05 < sums[0] < 0.2
    assert 0.97 < sums[-1] < 1.0
    assert (np.diff(sums) > 0).all()
    assert all(result.certificate.proven for result in path.results)


def test_counts_with_penalties_of_ones_own():
    counts, A = np.array([3.0, 0.0, 2.0]), Dictionary(np.eye(3) + 0.1)
    path = penalty_path(Poisson(counts), A, penalties=[0.0, 1.0, 5.0])
    assert all(result.certificate.proven for result in path.results)
    assert penalty_path(KullbackLeibler(counts, shift=0.1), A, n_penalties=3).n_atoms[0] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalties": []}, "at least one"),
        ({"penalties": [-1.0]}, "not negative"),
        ({"penalties": [np.inf]}, "finite"),
        ({"n_penalties": 0}, "n_penalties must be a positive integer"),
        ({"ratio": 2.0}, "ratio must lie between 0 and 1"),
    ],
)
def test_bad_penalties(options, message):
    with pytest.raises(ValueError, match=message):
        penalty_path(LeastSquares(np.ones(2)), UnitVectors(2), **options)


def test_ctrl_c_ends_the_whole_path():
    """`minimize` returns what it has; the path must not go on with the next penalty."""
    calls = []

    def interrupted(x):
        calls.append(None)
        if len(calls) > 30:
            raise KeyboardInterrupt
        return float((x - 1) @ (x - 1)) / 2, x - 1

    objective = FunctionObjective(interrupted, 5)
    with pytest.raises(KeyboardInterrupt):
        penalty_path(objective, UnitVectors(5), algorithm=PWMP(AdaptiveStep()))
    assert len(calls) < 35  # the best iterate is looked at once more
