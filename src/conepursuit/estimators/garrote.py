"""The non-negative garrote, for regression and classification.

References
----------
[1] L. Breiman. Better Subset Regression Using the Nonnegative Garrote. Technometrics 37(4), 1995.
[2] E. Makalic, D. F. Schmidt. Logistic Regression with the Nonnegative Garrote. Australasian Joint
Conference on Artificial Intelligence, 2011.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.utils.validation import has_fit_parameter

from conepursuit.arrays import Array, Vector, is_number
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.estimators.classification import LinearClassifier
from conepursuit.estimators.design import is_lazy, refuse_dask, signed_fit, times_columns
from conepursuit.estimators.linear import (
    ALGORITHMS,
    LinearFit,
    Settings,
    fit_linear,
    intercept_of,
    prepared,
    single_fit,
    total_weight,
    warn_unless_converged,
    with_intercept,
)
from conepursuit.estimators.regression import LinearRegressor, checked, keep
from conepursuit.kernels import factorization as kernels
from conepursuit.objectives import EntrywiseLoss, LeastSquares, Logistic
from conepursuit.pursuit.certify import audited
from conepursuit.pursuit.domains import Cone
from conepursuit.pursuit.starts import as_iterate
from conepursuit.status import Status

COORDINATE_DESCENT = "nng"
"""The value of `algorithm` for cyclic coordinate descent."""

NEWTON = 500
"""Up to this many features the initial logistic fit is by Newton's method, with more by L-BFGS."""


class Garrote:
    """What both garrotes share: the initial fit, and the factors that shrink it."""

    alpha: float
    algorithm: str
    fit_intercept: bool
    initial: Any
    initial_alpha: float
    max_iter: int
    tol: float | None
    max_atoms: int | None

    def _settings(self) -> Settings:
        """Return the settings of the fit of the factors; coordinate descent has those of FCMP."""
        if not (is_number(self.initial_alpha) and self.initial_alpha > 0):
            raise ValueError(f"initial_alpha must be positive; got {self.initial_alpha!r}.")
        if self.algorithm == COORDINATE_DESCENT:
            if self.max_atoms is not None:
                raise ValueError(
                    'algorithm="nng" has no limit on the atoms; got '
                    f'max_atoms={self.max_atoms!r}. Use algorithm="fcmp".'
                )
            return Settings.of(self, algorithm="fcmp")
        if not isinstance(self.algorithm, str) or self.algorithm not in ALGORITHMS:
            known = ", ".join(repr(name) for name in [*ALGORITHMS, COORDINATE_DESCENT])
            raise ValueError(f"algorithm must be one of {known}; got {self.algorithm!r}.")
        return Settings.of(self)

    def _initial(self, ordinary: Any, ridge: Any) -> Any:
        """Return the initial estimator, not fitted."""
        if isinstance(self.initial, str):
            named = {"ordinary": ordinary, "ridge": ridge}
            if self.initial not in named:
                raise ValueError(
                    'initial must be "ordinary", "ridge" or a linear estimator; '
                    f"got {self.initial!r}."
                )
            return named[self.initial]
        usable = hasattr(self.initial, "fit") and not isinstance(self.initial, type)
        if not usable or is_classifier(self.initial) != is_classifier(self):
            kind = "classifier" if is_classifier(self) else "regressor"
            raise ValueError(f"initial must be a linear {kind}; got {type(self.initial).__name__}.")
        return clone(self.initial)

    def _fit_initial(
        self, initial: Any, X: Any, y: Array, weights: Vector | None, loss: EntrywiseLoss
    ) -> Vector:
        """Fit the initial estimator, and return its coefficients.

        For an X in a Dask array they are found block by block, as scikit-learn would read it whole.
        """
        if not is_lazy(X):
            fit_with_weights(initial, X, y, weights)
        else:
            if not isinstance(self.initial, str):
                raise ValueError(
                    'initial must be "ordinary" or "ridge" for an X in a Dask array; got '
                    f"{type(self.initial).__name__}."
                )
            columns, objective, means = prepared(X, loss, self.fit_intercept)
            ridge = self.initial_alpha if self.initial == "ridge" else 0.0
            coef = signed_fit(columns, objective, ridge)
            initial.coef_, initial.n_features_in_ = coef, len(coef)
            initial.intercept_ = intercept_of(coef, objective, columns, means)
            if is_classifier(initial):
                initial.coef_, initial.classes_ = coef[None], np.array([False, True])
                initial.intercept_ = np.array([initial.intercept_])
        return np.asarray(initial.coef_, dtype=np.float64).reshape(-1)

    def _shrunk(
        self, X: Any, loss: EntrywiseLoss, beta: Vector, settings: Settings
    ) -> tuple[LinearFit, Vector]:
        """Return the fit with the coefficients c * beta of X, and the factors c >= 0."""
        if beta.shape != (X.shape[1],):
            raise ValueError(
                f"the initial estimator must have one coefficient for each of the {X.shape[1]} "
                f"features; its coef_ has shape {beta.shape}."
            )
        Z = times_columns(X, beta)
        if self.algorithm == COORDINATE_DESCENT:
            refuse_dask(self, X, 'Use algorithm="fcmp".')
            fit = _by_coordinates(Z, loss, settings)
        else:
            (fit,) = fit_linear(Z, loss, settings)
        path = replace(fit.path, coefs=sparse.csr_array(fit.path.coefs * beta[None]))
        return replace(fit, coef=fit.coef * beta + 0.0, path=path), fit.coef  # 0.0 for -0.0


def _by_coordinates(Z: Any, loss: EntrywiseLoss, settings: Settings) -> LinearFit:
    """Return the fit of the factors to Z by cyclic coordinate descent [2], with its gap."""
    dense = Z if isinstance(Z, np.ndarray) else Z.toarray()
    columns, objective, means = prepared(dense, loss, settings.fit_intercept)
    total, c = total_weight(loss), np.zeros(dense.shape[1])
    weights = np.ones(len(dense)) if loss.weights is None else loss.weights
    sweeps = kernels.logistic_sweeps if isinstance(loss, Logistic) else kernels.squared_sweeps
    _, count, done = sweeps(
        np.ascontiguousarray(columns.T), loss.y, weights, settings.alpha * total,
        bool(settings.fit_intercept), c, 0.0, settings.tolerance, 100 * settings.max_iter,
    )  # fmt: skip
    cone = Cone(Dictionary(columns), penalty=settings.alpha * total)
    point = as_iterate(objective, cone, c)
    value, certificate = audited(objective, cone, point)
    status = Status.CONVERGED if done else Status.MAX_ITER
    if not settings.alpha and objective.recedes(point.x):
        status = Status.UNBOUNDED
    fit = single_fit(c, value / total, certificate.gap / total, status, count)
    fit = replace(fit, proven=certificate.proven)
    return with_intercept(fit, objective, columns, means)


class NonnegativeGarroteRegressor(Garrote, LinearRegressor):
    """Least squares with the non-negative garrote: an initial fit, each coefficient shrunk.

    With beta the coefficients of the initial estimator, minimises
    ``1/(2 sum(w)) sum_i w_i (y_i - sum_j c_j beta_j x_ij - b)^2 + alpha sum(c)`` over the factors
    c >= 0 [1]; the coefficients are c_j beta_j, and many of them are zero.

    Parameters
    ----------
    alpha : float
        The penalty on the sum of the factors.
    initial : {"ordinary", "ridge"} or estimator
        The initial fit: ordinary least squares, ridge regression, or any linear regressor.
    initial_alpha : float
        The penalty of the ridge, as in `sklearn.linear_model.Ridge`.
    algorithm : {"fcmp", "pwmp", "amp", "nnmp", "nng"}
        How the factors are found: by a greedy algorithm, or by cyclic coordinate descent, "nng".
    max_atoms : int, optional
        The most coefficients that may differ from zero.
    fit_intercept : bool
        Whether to fit a free b, in the initial fit and with the factors.
    max_iter, tol
        As for `ConicRegressor`; coordinate descent makes up to 100 max_iter sweeps.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The coefficients.
    shrinkage_ : array of shape (n_features,)
        The factors c.
    support_ : array of bool
        Where coefficients differ from zero.
    initial_ : estimator
        The initial estimator, fitted.
    intercept_, gap_, proven_, path_, status_, n_iter_
        As for `ConicRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import NonnegativeGarroteRegressor
    >>> X = np.array([[1.0, 0.1], [2.0, -0.1], [3.0, 0.1], [4.0, 0.0]])
    >>> garrote = NonnegativeGarroteRegressor(alpha=0.01).fit(X, [-2.0, -4.0, -6.0, -8.0])
    >>> garrote.support_, garrote.coef_.round(3)
    (array([ True, False]), array([-1.996,  0.   ]))
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        initial: Any = "ordinary",
        initial_alpha: float = 1.0,
        algorithm: str = "fcmp",
        max_atoms: int | None = None,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.initial = initial
        self.initial_alpha = initial_alpha
        self.algorithm = algorithm
        self.max_atoms = max_atoms
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NonnegativeGarroteRegressor:
        """Fit the initial estimator, then the factors.

        Parameters
        ----------
        X : array_like, sparse matrix or Dask array of shape (n_samples, n_features)
            The features; a Dask array as for `ConicRegressor`.
        y : array_like of shape (n_samples,)
            What to predict.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the rows; a weight of 2 is the row twice.
        """
        settings = self._settings()
        X, y, weights = checked(self, X, y, sample_weight, multi_output=False)
        self.initial_ = self._initial(
            LinearRegression(fit_intercept=self.fit_intercept),
            Ridge(self.initial_alpha, fit_intercept=self.fit_intercept),
        )
        loss = LeastSquares(y, weights=weights)
        beta = self._fit_initial(self.initial_, X, y, weights, loss)
        fit, factors = self._shrunk(X, loss, beta, settings)
        warn_unless_converged(type(self).__name__, [fit])
        keep(self, [fit], single=True)
        self.shrinkage_ = factors
        return self


class NonnegativeGarroteClassifier(Garrote, LinearClassifier):
    """Logistic regression with the non-negative garrote: an initial fit, each coefficient shrunk.

    As `NonnegativeGarroteRegressor` with the logistic loss [2]; of more than two classes, each
    against the rest.

    Parameters
    ----------
    alpha : float
        The penalty on the sum of the factors.
    initial : {"ordinary", "ridge"} or estimator
        The initial fit: logistic regression without a penalty or with that of a ridge, or any
        linear classifier.
    initial_alpha : float
        The penalty of the ridge, 1/C of `sklearn.linear_model.LogisticRegression`.
    algorithm, max_atoms, fit_intercept, max_iter, tol
        As for `NonnegativeGarroteRegressor`.
    class_weight : dict or "balanced", optional
        Weights of the classes.

    Attributes
    ----------
    classes_ : array
        The classes.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The coefficients.
    shrinkage_ : array, as coef_
        The factors c.
    initial_ : estimator, or a list with one for each row of coef_
        The initial estimators, fitted.
    support_, intercept_, gap_, proven_, path_, status_, n_iter_
        As for `ConicClassifier`.
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        initial: Any = "ridge",
        initial_alpha: float = 1.0,
        algorithm: str = "fcmp",
        max_atoms: int | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        max_iter: int = 1000,
        tol: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.initial = initial
        self.initial_alpha = initial_alpha
        self.algorithm = algorithm
        self.max_atoms = max_atoms
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NonnegativeGarroteClassifier:
        """Fit the initial estimator, then the factors.

        Parameters
        ----------
        X : array_like, sparse matrix or Dask array of shape (n_samples, n_features)
            The features; a Dask array as for `ConicClassifier`.
        y : array_like of shape (n_samples,)
            Classes.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the rows; a weight of 2 is the row twice.
        """
        self._parts: list[tuple[Vector, Any]] = []
        super().fit(X, y, sample_weight)
        factors, initials = zip(*self._parts, strict=True)
        del self._parts
        self.shrinkage_ = np.stack(factors)
        self.initial_ = initials[0] if len(initials) == 1 else list(initials)
        return self

    def _fit_binary(
        self, X: Any, y: Array, weights: Vector | None, settings: Settings
    ) -> LinearFit:
        options = {
            "fit_intercept": self.fit_intercept, "tol": 1e-8, "max_iter": 10000,
            "solver": "newton-cholesky" if X.shape[1] <= NEWTON else "lbfgs",
        }  # fmt: skip
        initial = self._initial(
            LogisticRegression(C=np.inf, **options),
            LogisticRegression(C=1.0 / self.initial_alpha, **options),
        )
        loss = Logistic(y, weights=weights)
        beta = self._fit_initial(initial, X, y, weights, loss)
        fit, factors = self._shrunk(X, loss, beta, settings)
        self._parts.append((factors, initial))
        return fit


def fit_with_weights(initial: Any, X: Any, y: Array, weights: Vector | None) -> None:
    """Fit the initial estimator, with weights if there are some."""
    if weights is None:
        initial.fit(X, y)
    elif has_fit_parameter(initial, "sample_weight"):
        initial.fit(X, y, sample_weight=weights)
    else:
        raise ValueError(f"the initial {type(initial).__name__} takes no sample_weight.")
    if not hasattr(initial, "coef_"):
        raise ValueError(
            f"initial must be a linear estimator; {type(initial).__name__} has no coef_."
        )
