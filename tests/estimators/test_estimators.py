"""The estimators: scikit-learn's contract, and what they find."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import SparseCoder
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from conepursuit import (
    ConicClassifier,
    ConicCoder,
    ConicRegressor,
    ConicRegressorCV,
    NonnegativeGarroteClassifier,
    NonnegativeGarroteRegressor,
    Status,
    nnls,
)

EXACT = {"tol": 1e-13, "max_iter": 20_000}
"""Tight enough for the checks that compare fits with weights and with repeated rows to 1e-7."""


class CoderOfAnyWidth(ConicCoder):
    """A coder whose dictionary fits the data of every check, which have different widths."""

    def _dictionary(self):
        return np.random.default_rng(0).random((4, self.n_features_in_))


def not_unique(estimator):
    """Return the check that compares fits of which there are many, all of them exact."""
    name = "check_sample_weight_equivalence_on_sparse_data"
    reason = "15 rows, some without weight, are fitted exactly by 10 features and an intercept"
    return {name: reason} if repr(estimator) == "ConicRegressor()" else {}


@parametrize_with_checks(
    [
        ConicRegressor(),
        ConicRegressor(fit_intercept=False),
        ConicRegressor(alpha=0.1),
        ConicRegressor("huber", alpha=0.1),
        ConicRegressor(max_atoms=2),
        ConicRegressor(algorithm="pwmp", fit_intercept=False, **EXACT),
        ConicRegressorCV(alphas=5, cv=3),
        ConicRegressorCV(choose="max_atoms", cv=3),
        ConicClassifier(),
        ConicClassifier(alpha=0.01, algorithm="amp", **EXACT),
        NonnegativeGarroteRegressor(),
        NonnegativeGarroteRegressor(initial="ridge", algorithm="nng"),
        NonnegativeGarroteClassifier(),
        NonnegativeGarroteClassifier(algorithm="nng", tol=1e-13),
        CoderOfAnyWidth(None),
        CoderOfAnyWidth(None, alpha=0.1, max_atoms=2),
    ],
    expected_failed_checks=not_unique,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn(estimator, check):
    """That first-order methods end at max_iter is no failure."""
    check(estimator)


@pytest.fixture(scope="module")
def diabetes():
    frame = load_diabetes(as_frame=True, scaled=False)
    return frame.data, frame.target


def test_by_default_it_is_a_lasso_with_positive_coefficients():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    lasso = Lasso(alpha=1.0, positive=True, tol=1e-12).fit(X, y)
    model = ConicRegressor(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, lasso.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(lasso.intercept_)
    assert model.score(X, y) == pytest.approx(lasso.score(X, y))
    assert model.score(X, y) > 0.45  # -3.42 without an intercept
    assert ConicRegressorCV(cv=3).fit(X, y).score(X, y) > 0.45


def test_a_classifier_whose_features_speak_against_the_second_class_says_so():
    X, y = load_breast_cancer(return_X_y=True)  # tumours that are larger are malignant, class 0
    X = StandardScaler().fit_transform(X)
    with pytest.warns(
        UserWarning, match=r"predicts 1 for every row.* of 30 features speak against"
    ):
        alone = ConicClassifier().fit(X, y)
    assert alone.score(X, y) < 0.65
    assert ConicClassifier().fit(-X, y).score(X * -1, y) > 0.97
    rare = np.arange(len(y)) < 5  # one class for all rows, and no feature to blame
    ConicClassifier(alpha=1.0).fit(X, rare)


COUNTS = np.random.default_rng(0).poisson(3.0, (40, 3)).astype(float)
DESIGN = np.random.default_rng(1).random((40, 6))


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (ConicRegressor(fit_intercept=True), {"alpha": [0.1, 1.0]}),
        (ConicRegressor("huber", delta=20.0), {"max_atoms": [1, 3]}),
        (ConicRegressor("poisson"), {"algorithm": ["fcmp", "pwmp"], "tol": [1e-2]}),
        (ConicRegressorCV(cv=2), {"choose": ["alpha", "max_atoms"]}),
        (NonnegativeGarroteRegressor(), {"alpha": [0.1, 1.0], "initial": ["ordinary", Ridge()]}),
        (ConicClassifier(), {"alpha": [1e-3, 1e-2]}),
        (NonnegativeGarroteClassifier(), {"algorithm": ["fcmp", "nng"]}),
    ],
    ids=lambda part: type(part).__name__,
)
def test_grid_search_over_a_pipeline(estimator, grid, diabetes):
    X, y = diabetes
    target = y > 140 if hasattr(estimator, "class_weight") else y
    pipeline = make_pipeline(MinMaxScaler(), estimator)
    name = type(estimator).__name__.lower()
    steps = {f"{name}__{key}": values for key, values in grid.items()}
    search = GridSearchCV(pipeline, steps, cv=2).fit(X, target)
    assert search.predict(X).shape == target.shape
    assert search.best_score_ > 0.2


def test_a_coder_in_a_pipeline(diabetes):
    X, y = diabetes
    atoms = np.random.default_rng(0).random((5, 10))
    pipeline = make_pipeline(MinMaxScaler(), ConicCoder(atoms), LinearRegression())
    search = GridSearchCV(pipeline, {"coniccoder__max_atoms": [1, 4, None]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.1


def test_a_penalty_is_that_of_the_positive_lasso(diabetes):
    X, y = diabetes
    X = StandardScaler().fit_transform(X)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    for intercept in (False, True):
        for weight in (None, weights):
            lasso = Lasso(3.0, positive=True, fit_intercept=intercept, tol=1e-12, max_iter=100_000)
            lasso.fit(X, y, sample_weight=weight)
            for design in (X, sparse.csr_array(X)):
                ours = ConicRegressor(alpha=3.0, fit_intercept=intercept)
                ours.fit(design, y, sample_weight=weight)
                np.testing.assert_allclose(ours.coef_, lasso.coef_, atol=1e-6)
                assert ours.intercept_ == pytest.approx(lasso.intercept_, abs=1e-6)
                assert ours.gap_ <= 1e-8 * np.var(y)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "huber", "kullback_leibler"])
@pytest.mark.parametrize("intercept", [False, True])
def test_many_targets_are_single_ones(loss, intercept):
    together = ConicRegressor(loss, fit_intercept=intercept, n_jobs=2).fit(DESIGN, COUNTS)
    assert together.coef_.shape == together.support_.shape == (3, 6)
    assert together.intercept_.shape == together.gap_.shape == (3,)
    assert len(together.path_) == 3
    for i in range(3):
        alone = ConicRegressor(loss, fit_intercept=intercept).fit(DESIGN, COUNTS[:, i])
        np.testing.assert_allclose(together.coef_[i], alone.coef_, atol=2e-5)
        assert together.intercept_[i] == pytest.approx(alone.intercept_, abs=2e-5)
    np.testing.assert_allclose(
        together.predict(DESIGN), DESIGN @ together.coef_.T + together.intercept_
    )


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "huber"])
def test_an_intercept_is_free_and_not_penalised(loss):
    """It is what two more columns, of ones and of minus ones, without a penalty would find."""
    rng = np.random.default_rng(3)
    X = rng.random((60, 4))
    shift = -20.0 if loss != "poisson" else 5.0
    y = X @ [1.0, 0.0, 3.0, 0.0] + shift + 0.1 * rng.random(60)
    model = ConicRegressor(loss, fit_intercept=True).fit(X, y)
    assert model.intercept_ == pytest.approx(shift, abs=0.2)
    np.testing.assert_allclose(model.coef_, [1.0, 0.0, 3.0, 0.0], atol=0.2)
    lines = np.hstack([X, np.ones((60, 1)), -np.ones((60, 1))])
    lines = lines[:, :-1] if loss == "poisson" else lines
    wide = ConicRegressor(loss, tol=1e-9).fit(lines, y)
    np.testing.assert_allclose(model.predict(X), wide.predict(lines), atol=1e-4)


@pytest.mark.parametrize("algorithm", ["fcmp", "pwmp", "amp", "nnmp"])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
def test_all_algorithms_find_the_same(algorithm, loss):
    y = COUNTS[:, 0]
    best = ConicRegressor(loss, alpha=0.05).fit(DESIGN, y)
    model = ConicRegressor(loss, alpha=0.05, algorithm=algorithm, max_iter=50_000, tol=1e-4)
    model.fit(DESIGN, y)
    assert model.path_.values[-1] <= best.path_.values[-1] + model.gap_ + 1e-12
    np.testing.assert_allclose(model.predict(DESIGN), best.predict(DESIGN), atol=0.2)


def test_the_path_has_one_fit_for_each_number_of_atoms(diabetes):
    X, y = diabetes
    model = ConicRegressor(max_atoms=3, fit_intercept=True).fit(X, y)
    assert model.path_.n_atoms.tolist() == [0, 1, 2, 3]
    assert (np.diff(model.path_.values) < 0).all()
    assert model.status_ is Status.MAX_ATOMS
    assert model.support_.sum() == 3
    np.testing.assert_array_equal(model.path_.coefs[[-1]].toarray()[0], model.coef_)
    many = ConicRegressor(max_atoms=2).fit(X, np.stack([y, 2 * y], axis=1))
    assert (many.support_.sum(axis=1) == 2).all()


def test_the_units_of_the_columns_do_not_decide_which_comes_first(diabetes):
    X, y = diabetes
    units = 10.0 ** np.arange(-5, 5)
    for loss in ("squared_error", "huber"):
        plain = ConicRegressor(loss, max_atoms=2, delta=50.0).fit(X, y)
        scaled = ConicRegressor(loss, max_atoms=2, delta=50.0).fit(X * units, y)
        np.testing.assert_allclose(scaled.coef_ * units, plain.coef_, rtol=1e-6)


def test_pandas_in_and_out(diabetes):
    X, y = diabetes
    model = ConicRegressor().fit(X, y)
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"age": "years"}))
    coder = ConicCoder(np.eye(10)[:3]).set_output(transform="pandas").fit(X)
    codes = coder.transform(X)
    assert isinstance(codes, pd.DataFrame)
    assert codes.columns.tolist() == ["coniccoder0", "coniccoder1", "coniccoder2"]


def test_clone_and_pickle():
    model = ConicRegressor("poisson", max_atoms=1).fit(DESIGN, COUNTS[:, 0])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(DESIGN), model.predict(DESIGN))
    assert clone(model).get_params() == model.get_params()
    assert again.status_ is Status.MAX_ATOMS


def test_lack_of_convergence_is_one_warning():
    with pytest.warns(ConvergenceWarning, match="max_iter iterations were made") as caught:
        ConicRegressor("poisson", algorithm="nnmp", max_iter=2).fit(DESIGN, COUNTS)
    assert len(caught) == 1
    assert "for 3 of 3 targets" in str(caught[0].message)


def test_separable_classes_warn_once_and_end():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"]
    with pytest.warns(ConvergenceWarning, match="no minimiser") as caught:
        model = ConicClassifier(alpha=0.0).fit(X, y)
    assert len(caught) == 1
    assert np.isfinite(model.coef_).all()
    assert model.predict(X).tolist() == y
    assert ConicClassifier(alpha=0.1).fit(X, y).status_ == [Status.CONVERGED]


def test_classes_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    signed = np.hstack([X, X.max(axis=0) - X])
    model = ConicClassifier(alpha=1e-3).fit(signed, names)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.score(signed, names) > 0.93
    probabilities = model.predict_proba(signed)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert model.decision_function(signed).shape == probabilities.shape == (150, 3)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(signed)), probabilities)
    two = ConicClassifier(alpha=1e-3, class_weight="balanced").fit(signed[50:], names[50:])
    assert two.coef_.shape == (1, 8)
    assert two.decision_function(signed).ndim == 1
    np.testing.assert_array_equal(
        two.predict(signed) == "virginica", two.predict_proba(signed)[:, 1] > 0.5
    )


def test_a_coder_is_nnls_and_its_penalty_that_of_a_sparse_coder():
    rng = np.random.default_rng(5)
    atoms, X = rng.random((7, 12)), rng.random((30, 12))
    plain = ConicCoder(atoms).fit(X)
    np.testing.assert_allclose(plain.transform(X), nnls(atoms.T, X.T).x.T, atol=1e-12)
    greedy = ConicCoder(atoms, max_atoms=2).fit_transform(X)
    assert ((greedy > 0).sum(axis=1) <= 2).all()
    theirs = SparseCoder(
        atoms, transform_algorithm="lasso_cd", transform_alpha=0.3, positive_code=True,
        transform_max_iter=100_000,
    )  # fmt: skip
    ours = ConicCoder(atoms, alpha=0.3).fit_transform(X)
    reached = 0.5 * ((X - ours @ atoms) ** 2).sum() + 0.3 * ours.sum()
    codes = theirs.fit_transform(X)
    assert reached <= 0.5 * ((X - codes @ atoms) ** 2).sum() + 0.3 * codes.sum() + 1e-9
    np.testing.assert_allclose(ours, codes, atol=0.02)
    np.testing.assert_allclose(plain.inverse_transform(ours), ours @ atoms)


def test_choosing_a_penalty(diabetes):
    X, y = diabetes
    X = StandardScaler().fit_transform(X)
    model = ConicRegressorCV(fit_intercept=True, cv=4).fit(X, y)
    assert model.fold_losses_.shape == (50, 4)
    assert model.alpha_ in model.grid_
    best = model.fold_losses_.mean(axis=1).argmin()
    assert model.alpha_ == model.grid_[best]
    direct = ConicRegressor(alpha=model.alpha_, fit_intercept=True).fit(X, y)
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(direct.intercept_, rel=1e-6)
    assert len(model.path_) == 50
    assert model.path_.n_atoms[0] == 0
    assert (model.path_.gaps <= 1e-8 * np.var(y)).all()
    fold = np.arange(len(y)) < 111
    held_out = ConicRegressor(alpha=model.grid_[20], fit_intercept=True).fit(X[~fold], y[~fold])
    first = model.fold_losses_[20, 0]
    assert first == pytest.approx(0.5 * np.mean((held_out.predict(X[fold]) - y[fold]) ** 2))


def test_choosing_the_number_of_atoms():
    rng = np.random.default_rng(6)
    X = rng.random((120, 12))
    y = 2 * X[:, 3] + X[:, 8] + 0.2 * rng.standard_normal(120)
    for loss in ("squared_error", "huber"):
        model = ConicRegressorCV(loss, choose="max_atoms", max_atoms=6, cv=5).fit(X, y)
        assert model.grid_.tolist() == [1, 2, 3, 4, 5, 6]
        assert model.n_atoms_ == model.support_.sum()
        assert {3, 8} <= set(model.support_.nonzero()[0])
    counts = rng.poisson(10 * y.clip(0))
    chosen = ConicRegressorCV("poisson", choose="max_atoms", cv=3).fit(X, counts)
    assert chosen.n_atoms_ >= 2
    given = ConicRegressorCV("poisson", alphas=[0.1, 0.5], cv=3).fit(X, counts)
    assert given.alpha_ in (0.1, 0.5)
