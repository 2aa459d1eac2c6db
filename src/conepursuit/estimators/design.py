"""Design matrices in Dask arrays: checked, centred and multiplied block by block, never as a whole.

scikit-learn's validation would read a Dask array into memory. Vectors with an entry for each row
are in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lstsq
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from conepursuit.arrays import EPS, Array, Vector, inside
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.caller import warn_caller
from conepursuit.linear import as_matrix, check_finite, is_dask, is_sparse, matvec, rmatvec
from conepursuit.linear.rows import stacked
from conepursuit.linear.tasks import as_block
from conepursuit.loss_fits.rows import RowProblem
from conepursuit.matrix_fits.lazy import Sent, whole_targets
from conepursuit.objectives import Objective

NEWTON_STEPS = 50
"""Most steps of an initial fit; where classes can be separated there is no end to them."""

REFINED = 3
"""Most steps of an initial fit by least squares: the first is exact up to rounding."""

MOST_FEATURES = 8192
"""An initial fit has up to this many features; their Hessian takes 0.5 GB in each worker."""


def is_lazy(X: Any) -> bool:
    """Return whether X is a Dask array, alone or in an `xarray.DataArray`."""
    return is_dask(inside(X))


def checked_design(
    estimator: Any, X: Any, y: Any, *, multi_output: bool = False, y_numeric: bool = False
) -> tuple[Any, Array]:
    """Return X as a Dask array with blocks of whole rows, and y as an array in memory.

    What scikit-learn's `validate_data` checks is checked, but for NaN and infinity in X, for which
    the first pass looks.
    """
    X = inside(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two axes, samples and features; got shape {X.shape}.")
    X = whole_targets(X, 1, "X")
    validate_data(estimator, X, skip_check_array=True)
    y = _check_y(_computed(y), multi_output=multi_output, y_numeric=y_numeric, estimator=estimator)
    check_consistent_length(X, y)
    return X, y


def _computed(array: Any) -> Any:
    """Return a Dask array as a NumPy array, and anything else as it is."""
    return inside(array).compute() if is_lazy(array) else array


def refuse_dask(estimator: Any, X: Any, advice: str) -> None:
    """Raise a ValueError if X is a Dask array, which the estimator does not take."""
    if is_lazy(X):
        raise ValueError(f"{type(estimator).__name__} takes no Dask array here. {advice}")


def product(X: Any, weights: Vector) -> Array:
    """Return X w for an array, a sparse matrix or a Dask array."""
    return matvec(as_matrix(X, "X"), weights) if is_dask(X) else np.asarray(X @ weights)


def transposed_product(X: Any, vector: Vector) -> Array:
    """Return X' v for an array, a sparse matrix or a Dask array."""
    return rmatvec(as_matrix(X, "X"), vector) if is_dask(X) else np.asarray(X.T @ vector)


def times_columns(X: Any, factors: Vector) -> Any:
    """Return X with its columns multiplied by numbers; what is sparse stays so."""
    if isinstance(X, np.ndarray):
        return X * factors
    if not is_dask(X):
        return sparse.csc_array(X) * factors[None]
    return X.map_blocks(_times_columns, factors=factors, dtype=np.float64, meta=X._meta)


def _times_columns(block: Any, factors: Vector) -> Any:
    block = as_block(block, "X")
    return block @ sparse.diags_array(factors) if is_sparse(block) else block * factors


def centred_blocks(X: Any, weights: Vector | None) -> tuple[Any, Vector]:
    """Return a Dask array minus the means of its columns, and the means, after one pass.

    A column that is constant, up to rounding, becomes zero. Where blocks are sparse X is returned
    as it is, with means of 0.
    """
    rows = np.ones(X.shape[0]) if weights is None else weights.reshape(-1)
    sums, least, most, thin = np.moveaxis(stacked(as_matrix(X, "X"), _column_facts, rows), 1, 0)
    means: Vector = sums.sum(axis=0) / rows.sum()
    if thin.any():
        return X, np.zeros_like(means)
    least, most = least.min(axis=0), most.max(axis=0)
    constant = most - least <= 8 * EPS * np.maximum(np.abs(least), np.abs(most))
    means[constant] = 0.0
    moved = X.map_blocks(
        _moved, means=means, constant=constant, dtype=np.float64, meta=np.empty((0, 0))
    )
    return moved, means


def _column_facts(block: Any, weights: Vector) -> Array:
    """Return weighted sums, least and largest entries of all columns, and whether it is sparse."""
    check_finite(block, "X")
    n, thin = block.shape[1], is_sparse(block)
    if thin or not len(weights):  # an empty block has no least entry
        ends = np.full((2, n), [[np.inf], [-np.inf]])
    else:
        ends = np.stack([block.min(axis=0), block.max(axis=0)])
    return np.stack([rmatvec(block, weights), *ends, np.full(n, float(thin))])[None]


def _moved(block: Any, means: Vector, constant: Array) -> Array:
    moved = as_block(block, "X") - means
    moved[:, constant] = 0.0
    return moved


def signed_fit(X: Any, objective: Objective, ridge: float) -> Vector:
    """Minimise f(X w) + ridge / 2 ||w||^2 over weights of either sign, X a Dask array.

    Notes
    -----
    Newton's method from w = 0, two passes a step. Where X does not determine w, it is a shortest
    one. A step is halved until f falls.
    """
    atoms = Dictionary(X)
    if atoms.n_atoms > MOST_FEATURES:
        raise ValueError(
            f"an initial fit in blocks makes the Hessian of all features, and takes up to "
            f"{MOST_FEATURES} of them; got {atoms.n_atoms}. Use ConicRegressor or ConicClassifier, "
            "or X.compute() where it fits into memory."
        )
    problem = RowProblem(objective, atoms, 0.0)
    problem.choose(np.ones(atoms.n_atoms, dtype=bool))
    point = problem.at(np.zeros(atoms.n_atoms))
    weights, x, value, scores = point.weights, point.x, point.value, point.scores
    for _ in range(REFINED if objective.quadratic else NEWTON_STEPS):
        hessian = problem.hessian(x)
        hessian[np.diag_indices_from(hessian)] += ridge
        slopes = scores + ridge * weights
        change = -lstsq(hessian, slopes)[0]
        promise = -float(slopes @ change)
        if not promise > EPS * abs(value):
            break
        vector, step = problem.combine(change), 1.0
        while True:
            there, gradient = objective.value_and_gradient(x + step * vector)
            after = weights + step * change
            rise = there - value + 0.5 * ridge * float(after @ after - weights @ weights)
            if rise <= 4 * EPS * abs(value) or step < EPS:
                break
            step *= 0.5
        weights, x, value = after, x + step * vector, there
        scores = problem.scores(gradient, x)
    else:
        if objective.quadratic:
            return weights
        warn_caller(
            f"the initial fit did not converge in {NEWTON_STEPS} steps. Classes that can be "
            'separated have no best coefficients; use initial="ridge".',
            ConvergenceWarning,
        )
    return weights


def lazily(method: Callable[[Any, Any], Array]) -> Callable[[Any, Any], Any]:
    """Return a method that maps itself over the blocks of an X that is a Dask array.

    What it returns is a Dask array then, of which nothing is computed yet.
    """

    @wraps(method)
    def called(self: Any, X: Any) -> Any:
        if not is_lazy(X):
            return method(self, X)
        check_is_fitted(self)
        return _mapped(getattr(self, method.__name__), whole_targets(inside(X), 1, "X"))

    return called


def _mapped(method: Any, X: Any) -> Any:
    """Return the answers of a method of an estimator for all blocks of X, as a Dask array."""
    from dask.delayed import delayed

    validate_data(method.__self__, X, reset=False, skip_check_array=True)
    like = method(np.zeros((1, X.shape[1])))  # all answers have its dtype and its columns
    single = like.ndim == 1
    return X.map_blocks(
        _answered, dtype=like.dtype, drop_axis=1 if single else [],
        chunks=(X.chunks[0],) if single else (X.chunks[0], like.shape[1:]),
        meta=like[:0], nothing=like[:0], method=delayed(Sent(method), pure=False, traverse=False),
    )  # fmt: skip


def _answered(block: Any, method: Sent, nothing: Array, block_info: Any) -> Array:
    """Return the answer of a method for one block; the message of an error has its rows."""
    if not block.shape[0]:
        return nothing
    try:
        answer: Array = method.function(block)
        return answer
    except ValueError as error:
        first, stop = block_info[0]["array-location"][0]
        raise ValueError(f"in the rows {first}:{stop} of X: {error}") from error
