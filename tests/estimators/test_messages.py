"""No estimator speaks of a parameter that it lacks."""

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

from conepursuit import (
    Cone,
    ConicClassifier,
    ConicCoder,
    ConicRegressor,
    ConicRegressorCV,
    Dictionary,
    GreedyCP,
    GreedyNMF,
    Huber,
    KullbackLeibler,
    NonnegativeGarroteClassifier,
    NonnegativeGarroteRegressor,
    NonnegativeRankOne,
    Unmixer,
    minimize,
    nnfit,
    nnls,
    nnls_path,
    penalty_path,
)

rng = np.random.default_rng(0)
X, Y = rng.random((12, 4)), rng.random(12) + 0.1
HOLES = np.kron(np.eye(4), np.ones((3, 1)))  # each feature reaches three rows
TENSOR = rng.random((4, 5, 3))

ESTIMATORS = [
    (ConicRegressor(), (X, Y)),
    (ConicRegressorCV(alphas=3, cv=2), (X, Y)),
    (ConicClassifier(), (X, Y > 0.6)),
    (NonnegativeGarroteRegressor(), (X, Y)),
    (NonnegativeGarroteClassifier(), (X, Y > 0.6)),
    (ConicCoder(np.eye(4)), (X,)),
    (GreedyNMF(2), (X,)),
    (GreedyCP(2), (TENSOR,)),
    (Unmixer(2), (X,)),
]
CORE = (
    nnls, nnfit, nnls_path, minimize, penalty_path, Cone, Dictionary, Huber, KullbackLeibler,
    NonnegativeRankOne,
)  # fmt: skip
PARAMETERS = {name for model, _ in ESTIMATORS for name in model.get_params()}.union(
    *(inspect.signature(part).parameters for part in CORE)
) - {"A", "b", "x"}
PLAIN = {"atoms", "mask", "matrix", "penalties", "penalty", "shape", "start", "step", "weights"}
"""Parameters that are English words as well; they count where = or must follows."""
NO_PARAMETER = {"X", "y", "sample_weight"}
"""What `fit` takes."""


def foreign(message, model):
    """Return the parameters that a message names and an estimator lacks.

    What stands in quotes is a value, and what has parentheses is an object that is described.
    """
    message = re.sub(r"\w+\([^()]*(\([^()]*\))?[^()]*\)|\"[^\"]*\"|'[^']*'", "", message)
    named = {word for word in re.findall(r"\w+", message) if word in PARAMETERS - PLAIN}
    named |= set(re.findall(r"(\w+)=", message)) & PARAMETERS
    named |= set(re.findall(r"(\w+) must", message)) & PARAMETERS
    return named - set(model.get_params()) - NO_PARAMETER


def refused(model, data, **given):
    """Return the message of a fit, an empty one if nothing is wrong."""
    try:
        model.fit(*data, **given)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "data"), ESTIMATORS, ids=lambda part: type(part).__name__)
def test_bad_parameters_are_named_as_the_estimator_does(model, data):
    seen = 0
    for name in model.get_params().keys() - {"cv"}:  # scikit-learn reads it
        for bad in (-1, 2.5, "nonsense", np.nan, [], [-1.0]):
            message = refused(clone(model).set_params(**{name: bad}), data)
            assert not foreign(message, model), (name, bad, message)
            seen += bool(message)
    assert seen >= 5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "data"),
    [
        (ConicRegressor("poisson"), (X, -Y)),
        (ConicRegressor("poisson", fit_intercept=False), (HOLES[:, :3], Y)),
        (ConicRegressor("poisson", fit_intercept=False, algorithm="pwmp"), (HOLES[:, :3], Y)),
        (ConicRegressor("poisson", fit_intercept=False, max_atoms=2), (HOLES, Y)),
        (ConicRegressorCV("poisson", fit_intercept=False), (X, Y)),
        (ConicRegressorCV(alphas=[-1.0]), (X, Y)),
        (ConicRegressor("huber"), (X, 1e200 * Y)),
        (ConicRegressor("poisson"), (X, 1e200 * Y)),
        (ConicClassifier(), (X, np.ones(12))),
        (GreedyNMF(2), (-X,)),
        (GreedyCP(2), (-TENSOR,)),
        (Unmixer(2), (np.full_like(X, np.nan),)),
    ],
    ids=lambda part: repr(part)[:60] if hasattr(part, "fit") else "",
)
def test_bad_data_are_explained_with_parameters_of_the_estimator(model, data):
    message = refused(model, data)
    assert not foreign(message, model), message
