"""Non-negative regression with a penalty or a number of atoms chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import check_cv

from conepursuit.arrays import Array, Vector, is_integer, is_number
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.estimators.design import refuse_dask
from conepursuit.estimators.linear import (
    ConicPath,
    LinearFit,
    Settings,
    fit_linear,
    loss_of,
    prepared,
    single_fit,
    total_weight,
    warn_unless_converged,
    with_intercept,
)
from conepursuit.estimators.regression import LinearRegressor, checked, keep
from conepursuit.loss_fits.api import nnfit
from conepursuit.objectives import EntrywiseLoss
from conepursuit.pursuit.penalty_path import descending, largest_penalty, penalty_grid
from conepursuit.status import Status


class ConicRegressorCV(LinearRegressor):
    """Regression with non-negative coefficients, the penalty or the atoms chosen on held-out data.

    For each fold one path is made without it, over penalties with warm starts or over the number
    of atoms. The penalty, or the number, that predicts the folds best is used on all data.

    Parameters
    ----------
    loss : {"squared_error", "poisson", "huber", "kullback_leibler"}
        What is minimised, and what the predictions of the folds are judged by.
    choose : {"alpha", "max_atoms"}
        What to choose.
    alphas : int or array_like
        The penalties to choose from, or how many; then they fall geometrically from the least one
        at which all coefficients are zero. Without an intercept there is none for "poisson" and
        "kullback_leibler", and they fall from one that shrinks a first fit to a tenth.
    eps : float
        The last penalty as a share of the first, if they are not given.
    max_atoms : int, optional
        The most atoms to choose, min(n_features, 100) by default; not used to choose alpha.
    cv : int, cross-validation generator or iterable, optional
        How to make the folds, five of them by default.
    fit_intercept, delta, max_iter, tol
        As for `ConicRegressor`.

    Attributes
    ----------
    alpha_ : float
        The penalty chosen, 0 where the number of atoms is chosen.
    n_atoms_ : int
        The number of atoms chosen, or found.
    grid_ : array of shape (n_points,)
        The penalties, or the numbers of atoms, chosen from.
    fold_losses_ : array of shape (n_points, n_folds)
        The mean loss of each fold, with the fit to the others.
    coef_, intercept_, gap_, proven_, support_, path_, status_, n_iter_
        As for `ConicRegressor`; the path is that of all data.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import ConicRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((60, 10))
    >>> y = X[:, 2] + 2 * X[:, 7] + 0.1 * rng.standard_normal(60)
    >>> model = ConicRegressorCV(choose="max_atoms", cv=10).fit(X, y)
    >>> model.n_atoms_, model.support_.nonzero()[0]
    (2, array([2, 7]))
    """

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        choose: str = "alpha",
        alphas: Any = 50,
        eps: float = 1e-3,
        max_atoms: int | None = None,
        cv: Any = None,
        fit_intercept: bool = True,
        delta: float = 1.35,
        max_iter: int = 1000,
        tol: float | None = None,
    ) -> None:
        self.loss = loss
        self.choose = choose
        self.alphas = alphas
        self.eps = eps
        self.max_atoms = max_atoms
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.delta = delta
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConicRegressorCV:
        """Choose by cross-validation, and fit all data.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n_samples, n_features)
            One atom per column.
        y : array_like of shape (n_samples,)
            What to predict.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the rows, in the fits and in the judgement of the folds.
        """
        if self.choose not in ("alpha", "max_atoms"):
            raise ValueError(f'choose must be "alpha" or "max_atoms"; got {self.choose!r}.')
        if not (is_number(self.eps) and 0 < self.eps < 1):
            raise ValueError(f"eps must lie between 0 and 1; got {self.eps!r}.")
        if is_integer(self.alphas) and self.alphas < 1:
            raise ValueError(f"alphas must be penalties, or how many; got {self.alphas!r}.")
        refuse_dask(self, X, "Fit ConicRegressor with several alpha, and compare on rows held out.")
        settings = Settings.of(self, max_atoms=self.max_atoms)
        X, y, weights = checked(self, X, y, sample_weight, multi_output=False)
        X = X if isinstance(X, np.ndarray) else sparse.csr_array(X)
        loss = loss_of(self.loss, y, weights, self.delta)
        self.grid_ = self._grid(X, loss)
        folds = list(check_cv(self.cv).split(X, y))
        self.fold_losses_ = np.stack(
            [self._judged(X, y, weights, settings, *fold) for fold in folds], axis=1
        )
        fits = self._path(X, loss, settings)
        best = int(np.argmin(self.fold_losses_.mean(axis=1)))
        warn_unless_converged(type(self).__name__, fits)
        chosen = fits[min(best, len(fits) - 1)]
        keep(self, [replace(chosen, path=self._joined(fits))], single=True)
        self.alpha_ = float(self.grid_[best]) if self.choose == "alpha" else 0.0
        self.n_atoms_ = int(self.support_.sum())
        return self

    def _grid(self, X: Any, loss: EntrywiseLoss) -> Array:
        """Return the penalties, or the numbers of atoms, to choose from."""
        if self.choose == "max_atoms":
            most = min(X.shape[1], 100) if self.max_atoms is None else self.max_atoms
            return np.arange(1, min(most, X.shape[1]) + 1)
        if not is_integer(self.alphas):
            return descending(self.alphas, "alphas")
        X, objective, _ = prepared(X, loss, self.fit_intercept)
        largest = largest_penalty(objective, Dictionary(X)) / total_weight(loss)
        return penalty_grid(largest, self.alphas, self.eps)

    def _judged(
        self, X: Any, y: Vector, weights: Vector | None, settings: Settings, train: Array,
        test: Array,
    ) -> Vector:  # fmt: skip
        """Return the mean losses of the rows `test` along the path that is fitted to `train`."""
        parts = [None if weights is None else weights[part] for part in (train, test)]
        if weights is not None and not (weights[train].any() and weights[test].any()):
            raise ValueError(
                "a fold has no row of positive weight. Give cv= that shuffles the rows."
            )
        seen = loss_of(self.loss, y[train], parts[0], self.delta)
        held_out = loss_of(self.loss, y[test], parts[1], self.delta)
        fits = self._path(X[train], seen, settings)
        losses = [held_out.value(X[test] @ fit.coef + fit.intercept) for fit in fits]
        losses += [losses[-1]] * (len(self.grid_) - len(losses))  # the path ended early
        return np.array(losses) / total_weight(held_out)

    def _path(self, X: Any, loss: EntrywiseLoss, settings: Settings) -> list[LinearFit]:
        """Return the fits along the grid."""
        if self.choose == "alpha":
            return self._over_penalties(X, loss, settings)
        (fit,) = fit_linear(X, loss, replace(settings, max_atoms=int(self.grid_[-1])))
        return self._by_atoms(X, loss, fit)

    def _over_penalties(self, X: Any, loss: EntrywiseLoss, settings: Settings) -> list[LinearFit]:
        """Return the fits for all penalties, each started from the one before."""
        X, objective, means = prepared(X, loss, self.fit_intercept)
        atoms, total, start, fits = Dictionary(X), total_weight(loss), None, []
        for alpha in self.grid_:
            found = nnfit(
                objective, atoms, penalty=float(alpha) * total, start=start,
                max_iter=settings.max_iter, tol=settings.tolerance,
            )  # fmt: skip
            start, value, gap = found.x, found.value / total, found.gap / total
            fit = single_fit(found.x, value, gap, found.status, found.n_iter)
            fits.append(with_intercept(fit, objective, X, means))
        return fits

    def _by_atoms(self, X: Any, loss: EntrywiseLoss, fit: LinearFit) -> list[LinearFit]:
        """Return, for each number of atoms, the best fit on a path with at most so many."""
        X, objective, means = prepared(X, loss, self.fit_intercept)
        path, fits = fit.path, []
        for most in self.grid_:
            places = np.flatnonzero(path.n_atoms <= most)
            if not len(places):  # counts may need more than one atom to have a finite loss
                places = np.flatnonzero(path.n_atoms == path.n_atoms.min())
            best = places[np.argmin(path.values[places])]
            coef = path.coefs[[best]].toarray()[0]
            ended = fit.status if best == len(path) - 1 else Status.MAX_ATOMS
            part = single_fit(coef, path.values[best], path.gaps[best], ended, fit.n_iter)
            fits.append(with_intercept(part, objective, X, means))
            if most >= path.n_atoms.max():
                break
        return fits

    def _joined(self, fits: Sequence[LinearFit]) -> ConicPath:
        """Return the fits along the grid as one path."""
        return ConicPath(
            sparse.csr_array(np.stack([fit.coef for fit in fits])),
            np.array([fit.path.values[-1] for fit in fits]),
            np.array([fit.gap for fit in fits]),
            self.grid_ if self.choose == "alpha" else None,
        )
