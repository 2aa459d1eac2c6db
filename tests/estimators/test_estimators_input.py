"""The estimators on awkward data and wrong parameters."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lars, Ridge
from sklearn.neighbors import KNeighborsRegressor

from conepursuit import (
    ConicClassifier,
    ConicCoder,
    ConicRegressor,
    ConicRegressorCV,
    NonnegativeGarroteClassifier,
    NonnegativeGarroteRegressor,
    Status,
)

COUNTS = np.random.default_rng(0).poisson(3.0, (40, 3)).astype(float)
DESIGN = np.random.default_rng(1).random((40, 6))


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda X, y: ConicRegressor("squared").fit(X, y), "loss must be one of 'squared_error'"),
        (lambda X, y: ConicRegressor("poisson").fit(X, -y), "not negative; the least is"),
        (lambda X, y: ConicRegressor(alpha=-1.0).fit(X, y), "alpha must be finite and not negat"),
        (lambda X, y: ConicRegressor(max_atoms=0).fit(X, y), "max_atoms must be a positive int"),
        (lambda X, y: ConicRegressor(algorithm="fw").fit(X, y), "algorithm must be one of 'fcmp'"),
        (lambda X, y: ConicRegressor(tol=-1).fit(X, y), "tol must be a number that is n"),
        (lambda X, y: ConicRegressor(max_iter=0).fit(X, y), "max_iter must be a positive integer"),
        (lambda X, y: ConicRegressor("huber", delta=0).fit(X, y), "delta must be positive"),
        (lambda X, y: ConicRegressor().fit(X, y, sample_weight=np.zeros(40)), "one non-zero"),
        (lambda X, y: ConicRegressor().fit(X, np.where(y > 2, np.nan, y)), "NaN"),
        (lambda X, y: ConicClassifier().fit(X, np.ones(40)), "at least two classes; got one class"),
        (lambda X, y: ConicClassifier(max_atoms=0).fit(X, y > 2), "max_atoms"),
        (lambda X, y: ConicCoder(np.ones((3, 5))).fit(X), "atoms of 5 features, but X has 6"),
        (lambda X, y: ConicCoder(np.ones((3, 6)), max_atoms=0).fit(X), "max_atoms"),
        (lambda X, y: ConicRegressorCV(choose="tol").fit(X, y), 'choose must be "alpha"'),
        (lambda X, y: ConicRegressorCV(alphas=[-1.0]).fit(X, y), "not negative"),
        (lambda X, y: ConicRegressorCV(eps=2.0).fit(X, y), "eps must lie between 0 and 1"),
        (lambda X, y: ConicRegressorCV(alphas=0).fit(X, y), "alphas must be penalties, or how"),
        (lambda X, y: ConicRegressorCV(cv=2).fit(X, y, sample_weight=[1.0] * 20 + [0.0] * 20),
         "a fold has no row of positive weight"),
        (lambda X, y: ConicRegressor(loss=["huber"]).fit(X, y), "loss must be one of"),
        (lambda X, y: ConicRegressor(algorithm=["amp"]).fit(X, y), "algorithm must be one of"),
        (lambda X, y: ConicRegressor("huber", delta="1").fit(X, y), "delta must be positive"),
        (lambda X, y: NonnegativeGarroteRegressor(initial=Ridge).fit(X, y), "initial must be a li"),
        (lambda X, y: NonnegativeGarroteRegressor(initial=None).fit(X, y), "initial must be a lin"),
        (lambda X, y: NonnegativeGarroteRegressor(initial=KNeighborsRegressor()).fit(X, y),
         "KNeighborsRegressor has no coef_"),
        (lambda X, y: NonnegativeGarroteRegressor(initial=Lars()).fit(X, y, np.ones(40)),
         "Lars takes no sample_weight"),
        (lambda X, y: ConicCoder(np.ones((3, 6))).fit(X).inverse_transform(X), "codes must have 3"),
        (lambda X, y: NonnegativeGarroteRegressor(initial="lasso").fit(X, y), 'initial must be "o'),
        (lambda X, y: NonnegativeGarroteRegressor(initial=ConicClassifier()).fit(X, y),
         "linear regressor; got ConicClassifier"),
        (lambda X, y: NonnegativeGarroteRegressor(algorithm="x").fit(X, y), "'nng'; got 'x'"),
        (lambda X, y: NonnegativeGarroteRegressor(algorithm="nng", max_atoms=2).fit(X, y),
         "no limit on the atoms"),
        (lambda X, y: NonnegativeGarroteRegressor(alpha=-1).fit(X, y), "alpha must be finite"),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(fit, message):
    with pytest.raises(ValueError, match=message):
        fit(DESIGN, COUNTS[:, 0] + 1)


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
@pytest.mark.parametrize("options", [{}, {"alpha": 0.01}, {"max_atoms": 2}])
def test_features_far_from_zero_lose_no_digits_to_the_intercept(loss, options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.standard_normal(100)
    near = ConicRegressor(loss, fit_intercept=True, **options).fit(X, y)
    far = ConicRegressor(loss, fit_intercept=True, **options).fit(X + 1e8, y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)
    assert near.proven_
    folds = ConicRegressorCV(loss, fit_intercept=True, alphas=3, cv=2).fit(X + 1e8, y)
    assert folds.score(X + 1e8, y) > 0.99


@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
def test_a_constant_feature_is_no_second_intercept(loss):
    rng = np.random.default_rng(1)
    X = rng.random((50, 4))
    X[:, 1] = 1e8 / 3
    y = X[:, 0] + 5 + 0.1 * rng.random(50)
    model = ConicRegressor(loss, fit_intercept=True).fit(X, y, sample_weight=np.full(50, 0.7))
    assert model.coef_[1] == 0
    assert model.intercept_ == pytest.approx(5.0, abs=0.2)


def test_low_counts_with_an_intercept():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.random((60, 15))
        y = rng.poisson(0.6 * X[:, 0])
        model = ConicRegressor("poisson", fit_intercept=True).fit(X, y)
        assert model.proven_
        assert model.intercept_ >= 0
        wide = ConicRegressor("poisson").fit(np.hstack([X, np.ones((60, 1))]), y)
        np.testing.assert_allclose(
            model.predict(X), wide.predict(np.hstack([X, np.ones((60, 1))])), atol=1e-5
        )
    nothing = ConicRegressor("poisson", fit_intercept=True).fit(X, 0 * y)
    assert nothing.intercept_ == 0
    assert not nothing.coef_.any()


def test_counts_that_few_atoms_cannot_reach():
    rng = np.random.default_rng(2)
    X = np.kron(np.eye(5), np.ones((12, 2))) * rng.random((60, 10))
    y = rng.poisson(5, 60) + 1
    with pytest.raises(ValueError, match="finite from 5 atoms on"):
        ConicRegressor("poisson", max_atoms=1, fit_intercept=False).fit(X, y)
    model = ConicRegressorCV("poisson", choose="max_atoms", cv=2, fit_intercept=False).fit(X, y)
    assert model.n_atoms_ >= 5
    ray = ConicRegressor("poisson", fit_intercept=False)
    assert ray.fit([[1.0, 0], [2, 0], [3, 0]], [1, 2, 0]).coef_[0] > 0


def test_a_choice_on_the_way_says_that_atoms_were_limited():
    rng = np.random.default_rng(6)
    X = rng.random((120, 12))
    y = 2 * X[:, 3] + X[:, 8] + 0.2 * rng.standard_normal(120)
    model = ConicRegressorCV(choose="max_atoms", cv=10).fit(X, y)
    assert model.n_atoms_ < len(model.path_)
    assert model.status_ is Status.MAX_ATOMS


def test_an_estimated_gap_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 60)), rng.standard_normal(20)
    with pytest.warns(ConvergenceWarning, match="an estimate"):
        model = ConicRegressor(
            "huber", delta=0.1, algorithm="amp", max_iter=20, fit_intercept=False
        ).fit(X, y)
    assert not model.proven_


def test_coordinate_descent_on_separable_classes_warns():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    with pytest.warns(ConvergenceWarning, match="no minimiser"):
        NonnegativeGarroteClassifier(0.0, algorithm="nng").fit(X, y)


def test_columns_whose_squares_overflow_are_brought_to_one_length_by_their_largest_entry():
    A, b = np.array([[5.7e182, 1.6e29]]), np.array([4.4e149])
    model = ConicRegressor("poisson", algorithm="pwmp", fit_intercept=False).fit(A, b)
    np.testing.assert_allclose(model.predict(A), b, rtol=1e-4)
