"""Estimators with scikit-learn's contract, and displays of what they found.

- ``linear``: a loss and the parameters of an estimator become one call of `nnls`, `nnfit` or
  `minimize`; ``regression``, ``classification``, ``coding`` and ``cross_validation`` stand on it.
- ``design``: design matrices in Dask arrays.
- ``garrote``: the non-negative garrote.
- ``factorization`` and ``tensor``: `GreedyNMF` and `GreedyCP`, around `conepursuit.factorization`;
  ``greedy`` has what they share.
- ``displays``: plots of paths and choices; ``factor_displays``, ``residuals_display`` and
  ``tensor_display``: plots of factorisations, on the axes of ``panels``.
"""

from conepursuit.estimators.classification import ConicClassifier
from conepursuit.estimators.coding import ConicCoder
from conepursuit.estimators.cross_validation import ConicRegressorCV
from conepursuit.estimators.displays import (
    ActiveAtomsDisplay,
    CoefficientPathDisplay,
    PathChoiceDisplay,
)
from conepursuit.estimators.factor_displays import ComponentsDisplay, RankPathDisplay
from conepursuit.estimators.factorization import GreedyNMF
from conepursuit.estimators.garrote import (
    NonnegativeGarroteClassifier,
    NonnegativeGarroteRegressor,
)
from conepursuit.estimators.linear import ConicPath
from conepursuit.estimators.regression import ConicRegressor
from conepursuit.estimators.residuals_display import ResidualsDisplay
from conepursuit.estimators.tensor import GreedyCP
from conepursuit.estimators.tensor_display import TensorComponentsDisplay

__all__ = [
    "ActiveAtomsDisplay",
    "CoefficientPathDisplay",
    "ComponentsDisplay",
    "ConicClassifier",
    "ConicCoder",
    "ConicPath",
    "ConicRegressor",
    "ConicRegressorCV",
    "GreedyCP",
    "GreedyNMF",
    "NonnegativeGarroteClassifier",
    "NonnegativeGarroteRegressor",
    "PathChoiceDisplay",
    "RankPathDisplay",
    "ResidualsDisplay",
    "TensorComponentsDisplay",
]
