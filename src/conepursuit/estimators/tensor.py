"""Non-negative tensor factorisation with scikit-learn's contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from conepursuit.arrays import Array, Vector, inside, is_integer
from conepursuit.estimators.checking import checked_array
from conepursuit.estimators.entries import observed_entries
from conepursuit.estimators.greedy import GreedyFactorization, refuse_negative
from conepursuit.factorization.data import FactorData
from conepursuit.factorization.losses import NO_PENALTY, Factors
from conepursuit.least_squares.gram import nnls_gram
from conepursuit.linear import is_dask
from conepursuit.tensors import (
    SparseTensor,
    component_grams,
    is_sparse_tensor,
    outer_sum,
    row_products,
)


class GreedyCP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GreedyFactorization):
    """X ~ sum_r weights_r u_r v_r w_r ..., a sum of outer products of vectors >= 0.

    This is the non-negative CP decomposition of a tensor with three modes (axes) or more. It
    minimises ``1/2 ||X - Z||^2`` or the Kullback-Leibler divergence of X from Z, where Z is the
    sum. For a matrix, use `GreedyNMF`.

    Parameters
    ----------
    n_components : int, "auto" or "sources"
        The rank, the number of outer products. "auto" takes the rank that predicts entries held out
        best, "sources" the rank at which two random halves of the longest mode agree best on the
        components; `GreedyNMF` says when to take which.
    loss : {"squared_error", "kullback_leibler"}
        The loss.
    algorithm : {"fcmp", "pwmp"}
        How weights are fitted when an atom of the oracle joins: all of them, or by one pairwise
        step.
    correction : {"auto", "hals", "bpp", "mu", None}
        How all factors are corrected after that: by hierarchical least squares ("hals") or each
        factor to its minimiser by block principal pivoting ("bpp"), both for "squared_error"; by
        multiplicative steps ("mu", for "kullback_leibler"); all with extrapolation; or not at all.
    max_iter : int
        Most sweeps over all factors at the last rank.
    path : bool
        Whether components join one at a time, found by the oracle of `NonnegativeRankOneTensor` or
        by dividing the heaviest one, whichever is better after a few sweeps. Then every rank is
        fitted, `at_rank` has its factors, and the accuracy of the oracle is known. Otherwise all
        components are divided in two at a time, which is fast; with "kullback_leibler" they join
        one at a time all the same, but are not kept.
    rank_sweeps : int
        Most sweeps at each rank on the way up; they end when little is gained.
    tol : float
        Sweeps end when one gains less than this share of the objective.
    oracle_rounds : int
        How much work goes into the proof of the oracle's accuracy, with `path`. 0: one unfolding,
        without a search for a better bound. Otherwise all unfoldings, with so many
        projections for each; see `NonnegativeRankOneTensor`.
    random_state : int, RandomState instance or None
        Seed of the parts into which components are divided, of a random start more for the
        oracle, of what "auto" holds out, and of halves. None is deterministic.

    Attributes
    ----------
    factors_ : list of arrays of shape (length of a mode, n_components)
        The vectors of each mode, as columns of norm 1. Those of a mode that was held fixed are as
        they were given. Components that would not lower the objective are zero.
    weights_ : array of shape (n_components,)
        The weights of the components, in descending order unless a mode was fixed.
    n_components_ : int
        The rank.
    reconstruction_err_ : float
        ``||X - Z|| / ||X||``, or the root of twice the divergence over the sum of X; over the
        entries that count.
    rank_path_ : array of shape (n_components,)
        The objective at every rank on the way up. Without `path`, for a rank that is passed over,
        that of the last rank fitted.
    oracle_accuracy_ : array of shape (n_components,)
        A lower bound on the accuracy delta of the oracle at every rank, NaN where it was not asked.
    shape_ : tuple of int
        The shape of X.
    held_out_path_ : array
        With "auto", the mean loss of the entries held out at every rank.
    stability_path_ : array
        With "sources", the agreement of two halves at every rank: the least correlation of matched
        components (for tensors the product over the modes), the median of three divisions.
    n_iter_ : int
        Sweeps made at the last rank.

    Notes
    -----
    NaN in X, or weight 0 in the `entry_weight` of `fit`, is a missing entry. Sparse tensors,
    SciPy's `coo_array` of three axes or more and the arrays of the package `sparse`, are never made
    dense; all their entries count, those that are not stored as zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import GreedyCP
    >>> rng = np.random.default_rng(0)
    >>> u, v, w = rng.random((8, 2)), rng.random((9, 2)), rng.random((7, 2))
    >>> X = np.einsum("ir,jr,kr->ijk", u, v, w)
    >>> model = GreedyCP(2).fit(X)
    >>> model.reconstruction_err_ < 1e-6
    True
    >>> [factor.shape for factor in model.factors_]
    [(8, 2), (9, 2), (7, 2)]
    """

    choices: ClassVar[dict[str, tuple[str | None, ...]]] = {
        "algorithm": ("fcmp", "pwmp"),
        "correction": ("auto", "hals", "bpp", "mu", None),
    }
    growth = 1.0
    factors_: list[Array]
    weights_: Vector
    reconstruction_err_: float

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        loss: str = "squared_error",
        algorithm: str = "fcmp",
        correction: str | None = "auto",
        max_iter: int = 500,
        path: bool = False,
        rank_sweeps: int = 5,
        tol: float = 1e-5,
        oracle_rounds: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.algorithm = algorithm
        self.correction = correction
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
        fixed: Mapping[int, Any] | None = None,
    ) -> GreedyCP:
        """Find the factors.

        Parameters
        ----------
        X : array_like or sparse array of three axes or more
            Non-negative; NaN is missing.
        y : ignored
        entry_weight : array_like of the shape of X, optional
            A weight >= 0 for each entry of a dense X.
        fixed : mapping from a mode to an array of shape (length of the mode, n_components)
            Vectors that are held fixed, such as spectra that are known, as columns.
        """
        self._check()
        data = self._data(X, entry_weight)
        if self.correction == "bpp" and data.M is not None:
            raise ValueError(
                'correction="bpp" needs all entries of X, of equal weight. Use "auto".'
            )
        held, self.shape_ = self._held(fixed, data.shape), data.shape
        self._fit_data(data, held)
        return self

    def _held(self, fixed: Mapping[int, Any] | None, shape: tuple[int, ...]) -> dict[int, Array]:
        """Return the factors that are held fixed, checked, with one component per row."""
        held: dict[int, Array] = {}
        for mode, given in (fixed or {}).items():
            if not (is_integer(mode) and 0 <= mode < len(shape)):
                raise ValueError(f"fixed must name modes from 0 to {len(shape) - 1}; got {mode!r}.")
            factor = checked_array(given, f"fixed[{mode}]", dtype=np.float64)
            if factor.shape != (shape[mode], self.n_components):
                raise ValueError(
                    f"fixed[{mode}] must have the shape (length of the mode, n_components), "
                    f"({shape[mode]}, {self.n_components}); got {factor.shape}."
                )
            if (factor < 0).any():
                raise ValueError(f"fixed[{mode}] must not be negative; got {factor.min():g}.")
            held[int(mode)] = np.ascontiguousarray(factor.T)
        if len(held) == len(shape):
            raise ValueError("fixed holds all modes, so that nothing is left to find. Free one.")
        return held

    def _order(self, data: FactorData) -> list[int]:
        # the two longest axes come first and last: products along these leave least to do
        shape = data.shape
        first, last, *others = sorted(range(len(shape)), key=lambda axis: (-shape[axis], -axis))
        return [first, *sorted(others), last]

    def _growth(self, data: FactorData) -> float:
        # under a divergence, components that were divided often stay as they are
        return 0.0 if data.divergence else super()._growth(data)

    def _random(self, shape: tuple[int, ...], rng: Any) -> dict[str, Any]:
        if rng is None:
            return {}
        extra = [[rng.random_sample(n) for n in shape]]
        return {"extra": extra, "seed": int(rng.randint(2**31))}

    def _outcome(
        self, factors: Factors, fit: float, data: FactorData, fixed: Mapping[int, Array]
    ) -> dict[str, Any]:
        # columns of norm 1, their weights, and the error
        weights, columns = np.ones(len(factors[0])), []
        for axis, factor in enumerate(factors):
            lengths = np.linalg.norm(factor, axis=1)
            if axis in fixed:
                factor, lengths = fixed[axis], np.ones(len(factor))
            scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
            columns.append(np.ascontiguousarray((scale[:, None] * factor).T))
            weights = weights * lengths
        order: Any = slice(None) if fixed else np.argsort(-weights, kind="stable")
        size = data.size()
        return {
            "factors_": [np.ascontiguousarray(factor[:, order]) for factor in columns],
            "weights_": weights[order] * data.unit,
            "reconstruction_err_": float(np.sqrt(2.0 * max(fit, 0.0) / size)) if size else 0.0,
        }

    def reconstruct(self) -> Array:
        """Return the sum of all components, of the shape of X."""
        check_is_fitted(self, "factors_")
        first, *others = self.factors_
        return outer_sum([(first * self.weights_).T, *(factor.T for factor in others)])

    def transform(self, X: Any, *, entry_weight: Any = None) -> Array:
        """Return the loadings W >= 0 that are best for new slices of the first mode.

        X is approximated by ``sum_r W[:, r] v_r w_r ...`` with the vectors of the other modes. For
        the X of the fit, W is about ``factors_[0] * weights_``.

        Parameters
        ----------
        X, entry_weight
            As in `fit`, with any length of the first mode.

        Returns
        -------
        array of shape (n_slices, n_components)
        """
        check_is_fitted(self, "factors_")
        data = self._data(X, entry_weight)
        if data.shape[1:] != self.shape_[1:]:
            raise ValueError(
                f"X must have slices of shape {self.shape_[1:]}, as in fit; got {data.shape[1:]}."
            )
        first, *others = (np.ascontiguousarray(factor.T) for factor in self.factors_)
        if isinstance(data.X, SparseTensor) and not data.divergence:
            target = data.X.contracted([first, *others], 0)
            W = np.asarray(nnls_gram(component_grams(others), target).x)
        else:
            W = data.unfolded().weights(row_products(others), NO_PENALTY)
        return W.T * data.unit

    def to_tensorly(self) -> Any:
        """Return the decomposition as a CPTensor of the package `tensorly`."""
        check_is_fitted(self, "factors_")
        from tensorly.cp_tensor import CPTensor

        return CPTensor((self.weights_.copy(), [factor.copy() for factor in self.factors_]))

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_)

    def _data(self, X: Any, entry_weight: Any) -> FactorData:
        """Return the data, checked."""
        divergence = self._loss_name() == "kullback_leibler"
        if is_dask(inside(X)):
            raise ValueError(
                "GreedyCP takes no Dask array. Use X.compute() if it fits into memory, or "
                "GreedyNMF on a matrix in blocks of rows."
            )
        if is_sparse_tensor(X):
            if entry_weight is not None:
                raise ValueError("entry_weight is for a dense X; got a sparse one.")
            tensor = SparseTensor.of(X)
            if not np.isfinite(tensor.data).all():
                raise ValueError("X must be finite; it holds NaN or infinity.")
            refuse_negative(tensor.data, "GreedyCP")
            return FactorData.of(tensor, None, divergence, scale=True)
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)
        shape = np.shape(X)
        if len(shape) < 3:
            matrix = " Use GreedyNMF for a matrix." if len(shape) == 2 else ""
            raise ValueError(f"X must have three axes or more; got shape {shape}.{matrix}")
        X = checked_array(X, "X", dtype=np.float64, allow_nd=True, ensure_all_finite="allow-nan")
        refuse_negative(X, "GreedyCP")
        X, M = observed_entries(X, entry_weight)
        return FactorData.of(X, M, divergence, scale=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags
