"""Non-negative matrix factorisation with scikit-learn's contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import (
    check_is_fitted,
)

from conepursuit.arrays import Array, as_float_array, inside, is_number
from conepursuit.callbacks import close
from conepursuit.checkpoints import Saved, named_if_saved
from conepursuit.estimators.checking import checked_array, validated
from conepursuit.estimators.entries import observed_entries
from conepursuit.estimators.greedy import RULES, GreedyFactorization, Run, refuse_negative
from conepursuit.estimators.lazy_factorization import lazy_matrix, refuse_lazy, refuse_weights
from conepursuit.factorization.data import FactorData
from conepursuit.factorization.lazy_data import LazyFactorData, lazy_weights
from conepursuit.factorization.losses import Factors, Penalty
from conepursuit.linear import is_dask

FAST_SWEEPS, PATH_SWEEPS = 3, 60
"""Most sweeps at each rank on the way up, without and with `path`."""


class NMFState(NamedTuple):
    """How far a fit of `GreedyNMF` is; its `callback` gets one.

    Attributes
    ----------
    rank : int
        The rank that was reached.
    sweep : int
        Sweeps at the last rank that have lowered the objective; 0 at ranks below.
    value : float
        The objective.
    H : array of shape (rank, n_features)
        The components, which `fit` takes as `start`.
    """

    rank: int
    sweep: int
    value: float
    H: Array

    def saved(self) -> dict[str, Any]:
        """Return what a `Checkpoint` keeps, from which `GreedyNMF` goes on."""
        return {"kind": "GreedyNMF", **self._asdict()}


class GreedyNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GreedyFactorization):
    """X ~ W H with W, H >= 0, built up one rank-one atom at a time.

    Minimises ``loss(X, W H)`` plus penalties, where the loss is ``1/2 ||X - W H||^2`` or the
    Kullback-Leibler divergence. Each new atom comes from an oracle whose accuracy is measured, all
    weights are fitted anew, and then all atoms are corrected. No random start is needed. The
    default is the fast way to one rank; with ``path=True`` one fit has all ranks from 1 to
    `n_components`, each with its factors.

    Parameters
    ----------
    n_components : int, "auto" or "sources"
        The rank. "auto" asks which rank predicts best: it tries ranks while held-out
        entries are fitted better, and takes the least whose held-out loss is within a standard
        error of the best. That is often more than the number of sources, since one source that
        varies takes several components. "sources" asks how many sources there are: it takes the
        rank, up to 20, at which two random halves of the data agree best on the components.
        Trust it for sources with fixed profiles that mix linearly with noise; where
        `stability_path_` falls from about 1 after the rank and stays low, it is clear.
    loss : {"squared_error", "kullback_leibler"}
        The loss.
    algorithm : {"fcmp", "pwmp"}
        How weights are fitted when an atom joins: all of them, or by one pairwise step.
    correction : {"auto", "hals", "gcd", "mu", None}
        How atoms are corrected: by hierarchical least squares ("hals", for "squared_error") or
        multiplicative steps ("mu", for "kullback_leibler"), both with extrapolation; by greedy
        coordinate descent ("gcd"), as in the paper; or not at all.
    alpha_W, alpha_H : float
        Weights of the penalties of W and H, with the scaling of `sklearn.decomposition.NMF`.
    l1_ratio : float
        The share of a penalty that is on the sum of the entries; the rest is on half the sum of
        their squares.
    max_iter : int
        Most sweeps over both factors at the last rank.
    path : bool
        Whether atoms join one at a time, so that every rank is fitted and `at_rank` has its
        factors. Otherwise about a quarter as many join at a time as are there, which is several
        times faster. What is kept are K (K + 1) / 2 components for K = `n_components`.
    rank_sweeps : int, optional
        Most sweeps at each rank on the way up; they end when little is gained. By default 60 with
        `path`, and 3 without.
    tol : float
        Sweeps end when one gains less than this share of the objective.
    oracle_rounds : int
        How much work goes into the proof of the oracle's accuracy, for arrays; see
        `NonnegativeRankOne`. The factors do not depend on it. 0 leaves the proof out and is
        fastest; 4 proves about 0.93 on the faces of the experiments.
    random_state : int, RandomState instance or None
        Seed of one random start more for the oracle, of what "auto" holds out, and of halves.
        None is deterministic.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        H. Components that would not lower the objective are zero.
    n_components_ : int
        The rank.
    reconstruction_err_ : float
        ``||X - W H||``, or the root of twice the divergence, over the entries that count, with
        the W of the fit; that of `transform` is as good or better.
    rank_path_ : array of shape (n_components,)
        The objective at every rank on the way up. Without `path`, for a rank that is passed over,
        that of the last rank fitted, which it can only lower.
    oracle_accuracy_ : array of shape (n_components,)
        A lower bound on the accuracy delta of the oracle at every rank: proved for arrays with
        `oracle_rounds` > 0 and a smaller side up to 800, measured by Lanczos runs otherwise. 1 for
        the first atom of a divergence, which is known in closed form.
        A divergence without `path` starts from least squares for 5 components or more: then these
        are the accuracies of the atoms of that start.
    held_out_path_ : array
        With "auto", the mean loss of the entries held out at every rank.
    stability_path_ : array
        With "sources", the agreement of two halves at every rank: the least correlation of matched
        components (for tensors the product over the modes), the median of three divisions.
    n_iter_ : int
        Sweeps made at the last rank.
    n_features_in_ : int
        Number of features.
    n_passes_ : int
        Where X was a Dask array, how often `fit` has read all of it.

    Notes
    -----
    X may be a Dask array with dense or sparse blocks, chunked along its rows, that does not fit
    into memory. `transform` and `fit_transform` then return a Dask array. See ``docs/scale.md``,
    also for what is not supported.

    NaN in X, or weight 0 in the `entry_weight` of `fit` and `transform`, is a missing entry. Where
    X is sparse all entries count, those that are not stored as zeros; a sparse `entry_weight`
    leaves out all it does not store.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import GreedyNMF
    >>> X = np.outer([1.0, 2.0, 0.0], [1.0, 0.0, 3.0]) + np.outer([0.0, 1.0, 1.0], [0.0, 5.0, 0.0])
    >>> model = GreedyNMF(2).fit(X)
    >>> np.allclose(model.inverse_transform(model.transform(X)), X, atol=1e-3)
    True
    >>> model.set_params(path=True).fit(X).at_rank(1).components_.shape
    (1, 3)
    """

    choices: ClassVar[dict[str, tuple[str | None, ...]]] = {
        "algorithm": ("fcmp", "pwmp"),
        "correction": ("auto", "hals", "gcd", "mu", None),
    }
    growth = 0.25
    components_: Array
    reconstruction_err_: float

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        loss: str = "squared_error",
        algorithm: str = "fcmp",
        correction: str | None = "auto",
        alpha_W: float = 0.0,
        alpha_H: float = 0.0,
        l1_ratio: float = 0.0,
        max_iter: int = 500,
        path: bool = False,
        rank_sweeps: int | None = None,
        tol: float = 1e-5,
        oracle_rounds: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.algorithm = algorithm
        self.correction = correction
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.path = path
        self.rank_sweeps = rank_sweeps
        self.tol = tol
        self.oracle_rounds = oracle_rounds
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        entry_weight: Any = None,
        start: Any = None,
        callback: Callable[[NMFState], Any] | None = None,
    ) -> GreedyNMF:
        """Find H, and W with it.

        Parameters
        ----------
        X : array_like, scipy.sparse matrix or Dask array of shape (n_samples, n_features)
            Non-negative; NaN is missing.
        y : ignored
        entry_weight : array_like or scipy.sparse matrix of shape (n_samples, n_features), optional
            A weight >= 0 for each entry.
        start : array_like of shape (k, n_features) or checkpoint, optional
            H to go on from, with k components, at most `n_components`; W is made anew, the best for
            it. ``Checkpoint.load(path)`` has one. Not with `path`.
        callback : callable, optional
            Called with an `NMFState` after each rank that is fitted below the last, and after each
            sweep at the last rank. True stops the fit there. A divergence that starts from least
            squares has no ranks below. ``Checkpoint(path)`` writes H to a file.
        """
        self._fit(X, entry_weight, start, callback)
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        entry_weight: Any = None,
        start: Any = None,
        callback: Callable[[NMFState], Any] | None = None,
    ) -> Any:
        """Return ``fit(X).transform(X)``; the parameters are those of `fit`."""
        data = self._fit(X, entry_weight, start, callback)
        if isinstance(data, FactorData):
            return self._encoded(data)
        return self.transform(X)

    def _fit(self, X: Any, entry_weight: Any, start: Any, callback: Any) -> Any:
        self._check()
        lazy = is_dask(inside(X))
        if lazy:
            refuse_lazy(self, self._divergence(), entry_weight)
            matrix, divergence = lazy_matrix(self, X, reset=True), self._divergence()
            data: Any = LazyFactorData.of(matrix, divergence, scale=self._plain())
        else:
            data = self._data(X, entry_weight, reset=True)
            if self.correction == "gcd" and data.M is not None:
                raise ValueError(
                    'correction="gcd" needs all entries of X, of equal weight. Use "auto".'
                )
        try:
            self._fit_data(data, {}, self._run(data, start, callback))
        finally:
            close(callback)
        self.__dict__.pop("n_passes_", None)
        if lazy:
            self.n_passes_ = data.rows.passes
        return data

    def _run(self, data: Any, start: Any, callback: Any) -> Run:
        """Return what a start and a callback of the user mean for the loop over ranks."""
        root = np.sqrt(data.unit)

        def progress(rank: int, sweep: int, factors: Factors, value: float) -> bool:
            objective = float(self._in_units(data, np.array(value)))
            return bool(callback(NMFState(rank, sweep, objective, factors[1] * root)))

        factors: Any = None
        if start is not None:
            with named_if_saved(start):
                H = self._checked_start(start, data.shape[1]) / root
            lazy = not isinstance(data, FactorData)
            if lazy and data.divergence and len(H) != self.n_components:
                raise ValueError(
                    'with loss="kullback_leibler" and a Dask array, start must have all '
                    f"{self.n_components} components; got {len(H)}."
                )
            factors = data.weights(H, self._penalties(data.shape)[0]), H
        return Run(factors, None if callback is None else progress)

    def _checked_start(self, start: Any, n_features: int) -> Array:
        """Return H to start from, or raise a ValueError."""
        if isinstance(start, Saved):
            start.check_kind("GreedyNMF")
            start = start.H
        H, rank = as_float_array(start, "start"), self.n_components
        if self.path or rank in RULES:
            raise ValueError(
                "start is for one rank that is known: give n_components as a number, and "
                f"path=False; got n_components={rank!r} and path={self.path!r}."
            )
        if H.ndim != 2 or H.shape[1] != n_features or not 1 <= len(H) <= int(rank):
            raise ValueError(
                f"start must have 1 to {rank} rows and {n_features} columns, those of "
                f"components_; got shape {H.shape}."
            )
        if H.min() < 0:
            raise ValueError(f"start must not be negative; the least entry is {H.min():g}.")
        return H

    def _outcome(
        self, factors: Factors, fit: float, data: Any, fixed: Mapping[int, Array]
    ) -> dict[str, Any]:
        unit = np.sqrt(self._scale(data)) if data.divergence else data.unit
        return {
            "components_": factors[1] * np.sqrt(data.unit),
            "reconstruction_err_": float(np.sqrt(2.0 * max(fit, 0.0)) * unit),
        }

    def _rank_sweeps(self) -> Any:
        if self.rank_sweeps is None:
            return PATH_SWEEPS if self.path else FAST_SWEEPS
        return self.rank_sweeps

    def _order(self, data: Any) -> list[int]:
        # X' has the same factors; the blocks of a Dask array are along the rows
        tall = isinstance(data, FactorData) and data.shape[0] > data.shape[1]
        return [1, 0] if tall else [0, 1]

    def _random(self, shape: tuple[int, ...], rng: Any) -> dict[str, Any]:
        return {} if rng is None else {"extra": rng.random_sample(shape[1])}

    def transform(self, X: Any, *, entry_weight: Any = None) -> Any:
        """Return the W >= 0 that is best for H, shape (n_samples, n_components).

        Parameters
        ----------
        X, entry_weight
            As in `fit`. For a Dask array the answer is one too, with the same chunks of rows.
        """
        check_is_fitted(self, "components_")
        if is_dask(inside(X)):
            refuse_weights(entry_weight)
            matrix = lazy_matrix(self, X, reset=False)
            penalty, divergence = self._penalties(matrix.shape)[0], self._divergence()
            return lazy_weights(matrix, self.components_, penalty, divergence, scale=self._plain())
        return self._encoded(self._data(X, entry_weight, reset=False))

    def _encoded(self, data: FactorData) -> Array:
        penalty = self._penalties(data.shape)[0]
        return data.weights(self.components_, penalty).T * data.unit

    def inverse_transform(self, W: Any) -> Any:
        """Return W H, a Dask array if W is one."""
        check_is_fitted(self, "components_")
        weights: Any = inside(W)
        lazy = is_dask(weights)
        if not lazy:
            sorts = ("csr", "csc")
            weights = checked_array(W, "W", dtype=np.float64, accept_sparse=sorts)
        if weights.shape[1] != len(self.components_):
            raise ValueError(
                f"W must have a column for each of the {len(self.components_)} components; got "
                f"shape {weights.shape}."
            )
        found = weights @ self.components_
        return found if lazy else np.asarray(found)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _penalties(self, shape: tuple[int, ...]) -> tuple[Penalty, Penalty]:
        """Return the penalties of W and H, with alpha_W * n_features and alpha_H * n_samples."""
        n_samples, n_features = shape
        one, two = float(self.l1_ratio), 1.0 - float(self.l1_ratio)
        W, H = n_features * float(self.alpha_W), n_samples * float(self.alpha_H)
        return Penalty(one * W, two * W), Penalty(one * H, two * H)

    def _data(self, X: Any, entry_weight: Any, *, reset: bool) -> FactorData:
        """Return the data, checked."""
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)
        X = validated(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite="allow-nan",
        )
        refuse_negative(X.data if sparse.issparse(X) else X, "GreedyNMF")
        X, M = observed_entries(X, entry_weight)
        divergence = self._divergence()
        if divergence and M is not None and sparse.issparse(X):
            raise ValueError(
                "with loss='kullback_leibler' the entry_weight of a sparse X is not supported. "
                "Give X.toarray() and entry_weight.toarray()."
            )
        return FactorData.of(X, M, divergence, scale=self._plain())

    def _divergence(self) -> bool:
        """Return whether the loss is the divergence of Kullback and Leibler."""
        return self._loss_name() == "kullback_leibler"

    def _plain(self) -> bool:
        """Return whether there are no penalties, so that X may be scaled."""
        return self.alpha_W == 0 and self.alpha_H == 0

    def _check(self) -> None:
        super()._check()
        for name in ("alpha_W", "alpha_H"):
            given = getattr(self, name)
            if not (is_number(given) and 0 <= given < np.inf):
                raise ValueError(f"{name} must be finite and not negative; got {given!r}.")
        if not (is_number(self.l1_ratio) and 0 <= self.l1_ratio <= 1):
            raise ValueError(f"l1_ratio must be between 0 and 1; got {self.l1_ratio!r}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
