"""Non-negative sparse coding with scikit-learn's contract."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import (
    _get_feature_names,
    check_is_fitted,
    validate_data,
)

from conepursuit.arrays import Array, inside
from conepursuit.estimators.checking import checked_array, validated
from conepursuit.estimators.design import is_lazy, lazily
from conepursuit.estimators.linear import Settings, fit_linear, warn_unless_converged
from conepursuit.objectives import LeastSquares


class ConicCoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Codes samples by non-negative combinations of the atoms of a dictionary.

    The code of a sample x is the c >= 0 that minimises ``1/2 ||x - D'c||^2 + alpha sum(c)``, the
    convention of `sklearn.decomposition.SparseCoder`.

    Parameters
    ----------
    dictionary : array_like of shape (n_atoms, n_features)
        One atom per row. Atoms are used as they are, not brought to one length.
    max_atoms : int, optional
        The most atoms in a code; they are chosen greedily.
    alpha : float
        The penalty on the sum of a code.
    n_jobs : int, optional
        Threads.

    Attributes
    ----------
    components_ : array of shape (n_atoms, n_features)
        The dictionary.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from conepursuit import ConicCoder
    >>> ConicCoder([[1.0, 0.0], [1.0, 1.0]]).fit_transform([[3.0, 1.0], [-1.0, 1.0]])
    array([[2., 1.],
           [0., 0.]])
    """

    def __init__(
        self,
        dictionary: Any,
        *,
        max_atoms: int | None = None,
        alpha: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self.dictionary = dictionary
        self.max_atoms = max_atoms
        self.alpha = alpha
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> ConicCoder:
        """Check the dictionary and the samples; there is nothing to learn."""
        Settings.of(self)
        if is_lazy(X):
            validate_data(self, inside(X), skip_check_array=True)
        else:
            X = validated(self, X, dtype=np.float64)
        atoms = self._dictionary()
        if atoms.shape[1] != X.shape[1]:
            raise ValueError(
                f"the dictionary has atoms of {atoms.shape[1]} features, but X has {X.shape[1]} "
                "features. They must agree; atoms are rows."
            )
        names, own = _get_feature_names(self.dictionary), getattr(self, "feature_names_in_", None)
        if names is not None and own is not None and names.tolist() != own.tolist():
            raise ValueError(
                "the dictionary and X must have the same features in the same order; got "
                f"{', '.join(names[:5])} and {', '.join(own[:5])}. Use dictionary[X.columns]."
            )
        self.components_ = atoms
        return self

    def _dictionary(self) -> Array:
        atoms: Array = checked_array(self.dictionary, "dictionary", dtype=np.float64)
        return atoms

    @lazily
    def transform(self, X: Any) -> Array:
        """Return the codes of the rows of X, shape (n_samples, n_atoms).

        Those of a Dask array are one.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False, dtype=np.float64)
        # The loss is a sum, that of `fit_linear` a mean over the features.
        settings = Settings.of(self, alpha=self.alpha / X.shape[1])
        fits = fit_linear(np.ascontiguousarray(self.components_.T), LeastSquares(X.T), settings)
        warn_unless_converged(type(self).__name__, fits)
        return np.stack([fit.coef for fit in fits])

    def inverse_transform(self, X: Any) -> Array:
        """Return the samples that codes stand for."""
        check_is_fitted(self)
        codes: Array = checked_array(X, "X", dtype=np.float64)
        if codes.shape[1] != len(self.components_):
            raise ValueError(
                f"codes must have {len(self.components_)} entries, one for each atom; got "
                f"{codes.shape[1]}."
            )
        return codes @ self.components_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
