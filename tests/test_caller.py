"""Warnings are shown at the line of the user, however deep below it they arise."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from dask import array as da
from dask import config
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from conepursuit import (
    ConicClassifier,
    ConicRegressor,
    GreedyCP,
    GreedyNMF,
    LeastSquares,
    NonnegativeGarroteClassifier,
    nnfit,
    nnls,
)

X = np.random.default_rng(0).random((30, 5))
COUNTS = np.floor(20 * X[:, 0])
SLOW = ConicRegressor("poisson", algorithm="nnmp", max_iter=2)


def ordinary_garrote():
    separable = NonnegativeGarroteClassifier(initial="ordinary", fit_intercept=False)
    with config.set(scheduler="synchronous"):
        separable.fit(da.from_array(X[:, :1] - 0.5, chunks=(10, 1)), X[:, 0] > 0.5)


def small_chunks(fit):
    with config.set({"array.chunk-size": "100 B"}):
        fit(da.from_array(X[:, :2], chunks=(10, 2)))


WARNING = {
    "factors of a matrix": lambda: GreedyNMF(2, max_iter=1, tol=0.0).fit(X),
    "and their weights": lambda: GreedyNMF(2, max_iter=1, tol=0.0).fit_transform(X),
    "factors of a tensor": lambda: GreedyCP(2, max_iter=1, tol=0.0).fit(X.reshape(5, 6, 5)),
    "a regressor": lambda: SLOW.fit(X, COUNTS),
    "in a pipeline": lambda: make_pipeline(SLOW).fit(X, COUNTS),
    "in a search": lambda: GridSearchCV(SLOW, {"alpha": [0.1]}, cv=2).fit(X, COUNTS),
    "an old name": lambda: GreedyNMF(2, loss="frobenius").fit(X),
    "one class for all": lambda: ConicClassifier(alpha=0.01).fit(X, X[:, 0] < 0.2),
    "an ordinary first fit": ordinary_garrote,
    "small blocks": lambda: nnls(da.ones((20, 300), chunks=(20, 1)), np.ones(20)),
    "chunks of targets": lambda: small_chunks(lambda b: nnls(X, b)),
    "chunks of data": lambda: small_chunks(lambda b: nnfit(LeastSquares(b), X)),
}


@pytest.mark.parametrize("name", WARNING)
def test_a_warning_is_at_the_line_of_the_user(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WARNING[name]()
    assert {warning.filename for warning in caught} == {__file__}


def test_a_script_shows_its_own_line():
    line = "GreedyCP(2, max_iter=1, tol=0.0).fit(np.random.default_rng(0).random((5, 6, 5)))"
    code = f"import numpy as np\nfrom conepursuit import GreedyCP\n{line}\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.startswith("<string>:3: ConvergenceWarning: GreedyCP made max_iter = 1")
