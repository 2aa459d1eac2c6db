"""Non-negative logistic regression with scikit-learn's contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from conepursuit.arrays import Array, Vector
from conepursuit.caller import warn_caller
from conepursuit.estimators.checking import floats_held, validated
from conepursuit.estimators.design import (
    checked_design,
    is_lazy,
    lazily,
    product,
    transposed_product,
)
from conepursuit.estimators.linear import LinearFit, Settings, fit_linear, warn_unless_converged
from conepursuit.estimators.regression import SPARSE, LinearPredictor, keep, rows_of
from conepursuit.objectives import Logistic


class LinearClassifier(ClassifierMixin, LinearPredictor, ABC):
    """A linear classifier, one class against the rest; a subclass defines `_fit_binary`."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearClassifier:
        """Fit the coefficients.

        Parameters
        ----------
        X : array_like, sparse matrix or Dask array of shape (n_samples, n_features)
            One atom per column. A Dask array with blocks of whole rows, dense or sparse, is read
            in a few passes, and predictions for one are Dask arrays.
        y : array_like of shape (n_samples,)
            Classes. Where X and y are tables of pandas, their rows are matched by their labels;
            labels that differ are refused.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the rows; a weight of 2 is the row twice.
        """
        settings = self._settings()
        y, sample_weight = rows_of(X, y, sample_weight)
        if is_lazy(X):
            X, y = checked_design(self, X, y)
        else:
            X, y = validated(self, X, y, accept_sparse=SPARSE, dtype=np.float64)
        check_classification_targets(y)
        weights = None
        if sample_weight is not None or self.class_weight is not None:
            with floats_held("sample_weight and class_weight"):
                weights = _check_sample_weight(
                    sample_weight, y, dtype=np.float64, ensure_non_negative=True
                ) * compute_sample_weight(self.class_weight, y)
        counted = y if weights is None else y[weights > 0]
        self.classes_ = np.unique(y)
        if len(np.unique(counted)) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; got one class, "
                f"{counted[0] if len(counted) else None!r}."
            )
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        fits = []
        for label in positive:
            fits.append(self._fit_binary(X, y == label, weights, settings))
        warn_unless_converged(type(self).__name__, fits)
        keep(self, fits, single=False)
        return self

    def _settings(self) -> Settings:
        """Return the settings of the fits."""
        return Settings.of(self)

    @abstractmethod
    def _fit_binary(
        self, X: Any, y: Array, weights: Vector | None, settings: Settings
    ) -> LinearFit:
        """Fit one class, where y is True, against the rest."""

    @lazily
    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class, or those of each class against the rest."""
        scores = self._linear(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @lazily
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class; those of more than two are scaled to sum to one."""
        odds = self.decision_function(X)
        if odds.ndim == 1:
            return np.stack([expit(-odds), expit(odds)], axis=1)
        shares: Array = expit(odds)
        sums = shares.sum(axis=1, keepdims=True)
        even = np.full_like(shares, 1.0 / shares.shape[1])
        return np.divide(shares, sums, out=even, where=sums > 0)

    @lazily
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @lazily
    def predict(self, X: Any) -> Array:
        """Return the most probable class for the rows of X."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, the share of rows whose class is predicted.

        Where X and y are tables of pandas, their rows are matched by their labels, as in `fit`.
        """
        return float(super().score(X, *rows_of(X, y, sample_weight)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # a cone need not hold a good fit
        return tags


class ConicClassifier(LinearClassifier):
    """Logistic regression with non-negative coefficients, with a proof.

    Minimises ``1/sum(w) sum_i w_i log(1 + exp(-y_i (<x_i, c> + b))) + alpha sum(c)`` over c >= 0, w
    the sample weights; of more than two classes, each against the rest.

    A feature can only speak for the second of two classes, or for the class that is held against
    the rest. Give features that speak against it with the opposite sign. Where a fit cannot tell
    two classes apart for that reason, a warning says so.

    Parameters
    ----------
    alpha : float
        The penalty on the sum of the coefficients. With 0 there is no minimiser where the classes
        can be separated; then the fit ends with a warning that says so.
    max_atoms : int, optional
        The most coefficients that may be positive; they are chosen greedily.
    algorithm : {"fcmp", "pwmp", "amp", "nnmp"}
        Fully corrective, pairwise, away-steps or plain non-negative matching pursuit.
    fit_intercept : bool
        Whether to fit a free b, which is not penalised. Without it, features that are not negative
        can only speak for the second class.
    class_weight : dict or "balanced", optional
        Weights of the classes.
    max_iter, tol
        As for `ConicRegressor`.

    Attributes
    ----------
    classes_ : array
        The classes.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The coefficients, none negative.
    intercept_, gap_, proven_, support_, path_, status_, n_iter_
        As for `ConicRegressor`, one for each row of coef_.

    Examples
    --------
    >>> from conepursuit import ConicClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"]
    >>> ConicClassifier().fit(X, y).predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        alpha: float = 1e-3,
        max_atoms: int | None = None,
        algorithm: str = "fcmp",
        fit_intercept: bool = True,
        class_weight: Any = None,
        max_iter: int = 1000,
        tol: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.max_atoms = max_atoms
        self.algorithm = algorithm
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol

    def _fit_binary(
        self, X: Any, y: Array, weights: Vector | None, settings: Settings
    ) -> LinearFit:
        (fit,) = fit_linear(X, Logistic(y, weights=weights), settings)
        if len(self.classes_) == 2:
            self._warn_of_one_answer(X, y, weights, fit)
        return fit

    def _warn_of_one_answer(self, X: Any, y: Array, weights: Vector | None, fit: LinearFit) -> None:
        """Warn if all rows get one class, though features with the opposite sign would help."""
        odds = product(X, fit.coef) + fit.intercept
        if (odds > 0).any() and (odds <= 0).any():
            return
        rows = np.ones(len(y)) if weights is None else weights
        slopes = transposed_product(X, rows * (expit(odds) - y)) / rows.sum()
        against, names = int(np.count_nonzero(slopes > self.alpha)), self.classes_.tolist()
        if against:
            warn_caller(
                f"{type(self).__name__} predicts {names[int(odds[0] > 0)]!r} for every row that it "
                f"was fitted to. {against} of {len(slopes)} features speak against {names[1]!r}, "
                "and coefficients are not negative: give such features with the opposite sign, "
                "-X, or name the classes in the other order."
            )
