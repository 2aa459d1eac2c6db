"""The non-negative garrote as an estimator."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from conepursuit import (
    NonnegativeGarroteClassifier,
    NonnegativeGarroteRegressor,
    nnls,
)

ALGORITHMS = ["fcmp", "pwmp", "amp", "nng"]


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :12], y


def objective(model, X, y, logistic):
    """Return the mean loss with the penalty on the factors."""
    linear = X @ model.coef_.reshape(-1) + model.intercept_
    losses = np.logaddexp(0, -(2 * y - 1) * linear) if logistic else 0.5 * (y - linear) ** 2
    return losses.mean() + model.alpha * model.shrinkage_.sum()


def test_without_a_penalty_it_keeps_ordinary_least_squares(diabetes):
    X, y = diabetes
    model = NonnegativeGarroteRegressor(alpha=0.0).fit(X, y)
    ordinary = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.shrinkage_, 1.0, atol=1e-8)
    np.testing.assert_allclose(model.coef_, ordinary.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(ordinary.intercept_)


def test_orthogonal_features_shrink_in_closed_form():
    """Breiman's formula: c = max(0, 1 - n alpha / (beta^2 ||x||^2))."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((30, 4)))[0] * 30**0.5
    y = Q @ [2.0, -1.0, 0.3, 0.0] + 0.1 * rng.standard_normal(30)
    beta = Q.T @ y / 30
    model = NonnegativeGarroteRegressor(alpha=0.2, fit_intercept=False).fit(Q, y)
    expected = np.maximum(0.0, 1.0 - 0.2 / beta**2)
    np.testing.assert_allclose(model.shrinkage_, expected, atol=1e-9)
    np.testing.assert_allclose(model.coef_, expected * beta, atol=1e-9)
    assert model.support_.tolist() == (expected > 0).tolist()


@pytest.mark.parametrize("alpha", [1.0, 30.0])
def test_all_algorithms_find_the_same_regression(diabetes, alpha):
    X, y = diabetes
    values = []
    for algorithm in ALGORITHMS:
        model = NonnegativeGarroteRegressor(
            alpha, algorithm=algorithm, initial="ridge", tol=1e-9, max_iter=100_000
        ).fit(X, y)
        values.append(objective(model, X, y, logistic=False))
        assert model.gap_ <= 1e-6 * values[-1]
    np.testing.assert_allclose(values, min(values), rtol=1e-6)


def test_all_algorithms_find_the_same_classification(cancer):
    X, y = cancer
    values = []
    for algorithm in ALGORITHMS:
        model = NonnegativeGarroteClassifier(
            0.01, algorithm=algorithm, tol=1e-9, max_iter=100_000
        ).fit(X, y)
        values.append(objective(model, X, y, logistic=True))
        assert model.score(X, y) > 0.9
        assert 0 < model.support_.sum() < 12
    np.testing.assert_allclose(values, min(values), rtol=1e-6)


def test_any_linear_estimator_can_come_first(diabetes):
    X, y = diabetes
    lasso = Lasso(1.0)
    model = NonnegativeGarroteRegressor(0.5, initial=lasso).fit(X, y)
    assert not hasattr(lasso, "coef_")  # it is cloned
    assert (model.support_ <= (model.initial_.coef_ != 0)).all()
    assert isinstance(model.initial_, Lasso)
    ridge = NonnegativeGarroteRegressor(0.5, initial="ridge", initial_alpha=3.0).fit(X, y)
    np.testing.assert_allclose(ridge.initial_.coef_, Ridge(3.0).fit(X, y).coef_)


def test_a_classifier_of_many_classes_and_of_one_given(cancer):
    X, y = cancer
    three = np.where(X[:, 0] > 1, 2, y)
    model = NonnegativeGarroteClassifier(1e-3).fit(X, three)
    assert model.coef_.shape == model.shrinkage_.shape == (3, 12)
    assert len(model.initial_) == 3
    given = NonnegativeGarroteClassifier(1e-3, initial=LogisticRegression(C=0.1)).fit(X, y)
    assert given.initial_.C == 0.1


def test_sparse_features_and_the_limit_on_atoms(diabetes):
    X, y = diabetes
    plain = NonnegativeGarroteRegressor(0.5).fit(X, y)
    for algorithm in ("fcmp", "nng"):
        thin = NonnegativeGarroteRegressor(0.5, algorithm=algorithm).fit(sparse.csr_array(X), y)
        np.testing.assert_allclose(thin.coef_, plain.coef_, atol=1e-4)
    few = NonnegativeGarroteRegressor(0.5, max_atoms=3).fit(X, y)
    assert few.support_.sum() == 3
    assert few.path_.n_atoms[-1] == 3


def test_least_squares_factors_are_an_nnls_fit(diabetes):
    X, y = diabetes
    model = NonnegativeGarroteRegressor(0.0, initial="ridge", fit_intercept=False).fit(X, y)
    factors = nnls(X * model.initial_.coef_, y).x
    np.testing.assert_allclose(model.shrinkage_, factors, atol=1e-9)
