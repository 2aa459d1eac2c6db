"""Non-negative regression with scikit-learn's contract."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from conepursuit.arrays import Array
from conepursuit.estimators.checking import floats_held, validated
from conepursuit.estimators.design import checked_design, is_lazy, lazily
from conepursuit.estimators.linear import (
    LinearFit,
    Settings,
    fit_linear,
    loss_of,
    warn_unless_converged,
)
from conepursuit.labels import aligned, row_labels
from conepursuit.losses import LOSSES

SPARSE = ("csr", "csc")
"""The sparse formats that estimators take as they are."""


class LinearPredictor(BaseEstimator):
    """The linear model X coef' + intercept, which regressors and classifiers share."""

    def _linear(self, X: Any) -> Array:
        """Return X coef' + intercept."""
        check_is_fitted(self)
        X = validated(self, X, reset=False, accept_sparse=SPARSE, dtype=np.float64)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearRegressor(RegressorMixin, LinearPredictor):
    """A linear regression; a subclass defines `fit`."""

    @lazily
    def predict(self, X: Any) -> Array:
        """Return the predictions for the rows of X."""
        return self._linear(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2, the share of the variance of y that is predicted; 1 is best.

        Where X and y are tables of pandas, their rows are matched by their labels, as in `fit`.
        """
        with floats_held("y and sample_weight"):
            return float(super().score(X, *rows_of(X, y, sample_weight)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a cone need not hold a good fit
        return tags


class ConicRegressor(LinearRegressor):
    """Regression with non-negative coefficients, for several losses, with a proof.

    Minimises ``1/sum(w) sum_i w_i loss(y_i, <x_i, c> + b) + alpha sum(c)`` over c >= 0, w the
    sample weights. For the squared error, 1/2 (y - prediction)^2, and the same positive alpha this
    is `sklearn.linear_model.Lasso` with ``positive=True``, whose alpha is 1 by default.

    Parameters
    ----------
    loss : {"squared_error", "poisson", "huber", "kullback_leibler"}
        What is minimised. For "poisson" and "kullback_leibler", which have the same minimisers, y
        must not be negative and the prediction is the mean itself (the identity link), so X should
        not be negative either.
    alpha : float
        The penalty on the sum of the coefficients.
    max_atoms : int, optional
        The most coefficients that may be positive; they are chosen greedily.
    algorithm : {"fcmp", "pwmp", "amp", "nnmp"}
        Fully corrective, pairwise, away-steps or plain non-negative matching pursuit.
    fit_intercept : bool
        Whether to fit a free b, which is not penalised; without it b is 0. For "poisson" and
        "kullback_leibler" b is a part of every mean; where some of the counts are zero it must not
        be negative, since the means of these counts would be.
    delta : float
        Where the Huber loss becomes linear.
    max_iter : int
        Most iterations.
    tol : float, optional
        The gap asked for, relative to the decrease since c = 0; by default 1e-12 for FCMP, whose
        steps are Newton's, and 1e-6 for the others. Least squares without a penalty go to the
        limit of the arithmetic.
    n_jobs : int, optional
        Threads for many targets.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        The coefficients, none negative.
    intercept_ : float or array of shape (n_targets,)
        b, 0 unless it is fitted.
    gap_ : float or array of shape (n_targets,)
        How far the objective may be from its least value.
    proven_ : bool or array of shape (n_targets,)
        Whether the gap is a proof; otherwise it is an estimate.
    support_ : array of bool, as coef_
        Where coefficients are positive.
    path_ : ConicPath, or a list with one for each target
        The fits that the algorithm passed through, the last one the answer. With `max_atoms` and
        one target there is one for each number of atoms; where a kernel finds the answer at once
        it is the only one.
    status_ : Status, or a list with one for each target
        Why the fit ended.
    n_iter_ : int
        Iterations, the most of all targets.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Their names, if X has some.

    Examples
    --------
    >>> from conepursuit import ConicRegressor
    >>> X, y = [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [2.0, 1.0, -1.0]
    >>> ConicRegressor(fit_intercept=False).fit(X, y).coef_  # as nnls
    array([1.5, 0. ])
    >>> model = ConicRegressor().fit(X, y)
    >>> model.coef_, round(model.intercept_, 12)
    (array([2.5, 0. ]), -1.0)
    """

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        alpha: float = 0.0,
        max_atoms: int | None = None,
        algorithm: str = "fcmp",
        fit_intercept: bool = True,
        delta: float = 1.35,
        max_iter: int = 1000,
        tol: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.max_atoms = max_atoms
        self.algorithm = algorithm
        self.fit_intercept = fit_intercept
        self.delta = delta
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConicRegressor:
        """Fit the coefficients.

        Parameters
        ----------
        X : array_like, sparse matrix or Dask array of shape (n_samples, n_features)
            One atom per column. A Dask array with blocks of whole rows, dense or sparse, is read
            in a few passes, and predictions for one are Dask arrays.
        y : array_like of shape (n_samples,) or (n_samples, n_targets)
            What to predict. Where X and y are tables of pandas, their rows are matched by their
            labels; labels that differ are refused.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the rows; a weight of 2 is the row twice.
        """
        settings = Settings.of(self)
        X, y, weights = checked(self, X, y, sample_weight, multi_output=True)
        columns = None if weights is None else weights.reshape((-1,) + (1,) * (y.ndim - 1))
        fits = fit_linear(X, loss_of(self.loss, y, columns, self.delta), settings)
        warn_unless_converged(type(self).__name__, fits)
        keep(self, fits, single=y.ndim == 1)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        known = LOSSES.get(self.loss) if isinstance(self.loss, str) else None
        tags.target_tags.positive_only = known is not None and known.counts
        return tags


def checked(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, multi_output: bool
) -> tuple[Any, Array, Array | None]:
    """Return the data of a regression as float64; the weights are None if none are given.

    An X in a Dask array is one afterwards.
    """
    y, sample_weight = rows_of(X, y, sample_weight)
    if is_lazy(X):
        X, y = checked_design(estimator, X, y, multi_output=multi_output, y_numeric=True)
    else:
        X, y = validated(
            estimator, X, y, accept_sparse=SPARSE, dtype=np.float64, y_numeric=True,
            multi_output=multi_output,
        )  # fmt: skip
    y = np.asarray(y, dtype=np.float64)
    if sample_weight is None:
        return X, y, None
    with floats_held("sample_weight"):
        weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    return X, y, weights


def rows_of(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Return y and the weights in the order of the rows of X, by labels where both have some."""
    rows = row_labels(X)
    return aligned(y, rows, "y", "X"), aligned(sample_weight, rows, "sample_weight", "X")


def keep(estimator: Any, fits: list[LinearFit], *, single: bool) -> None:
    """Set the attributes of a fitted estimator from its fits.

    They are those of the one fit if `single`, otherwise arrays or lists with one for each fit.
    """
    first = fits[0]
    if single:
        estimator.coef_, estimator.intercept_ = first.coef, first.intercept
        estimator.gap_, estimator.proven_ = first.gap, first.proven
        estimator.path_, estimator.status_ = first.path, first.status
    else:
        estimator.coef_ = np.stack([fit.coef for fit in fits])
        estimator.intercept_ = np.array([fit.intercept for fit in fits])
        estimator.gap_ = np.array([fit.gap for fit in fits])
        estimator.proven_ = np.array([fit.proven for fit in fits])
        estimator.path_, estimator.status_ = [f.path for f in fits], [f.status for f in fits]
    estimator.support_ = estimator.coef_ != 0
    estimator.n_iter_ = max(1, *(fit.n_iter for fit in fits))  # scikit-learn wants at least one
