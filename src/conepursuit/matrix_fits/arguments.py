"""Reading the arguments of a fit of a matrix: the matrix, the targets, weights and starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, as_real_array, inside, is_number
from conepursuit.checkpoints import Saved, named_if_saved
from conepursuit.labels import aligned, check_dimensions, column_labels, row_labels
from conepursuit.linear import (
    as_matrix_unchecked,
    check_finite,
    dense,
    is_blocks,
    is_dask,
    is_sparse,
    nonzero_products,
    scaled_rows,
)
from conepursuit.matrix_fits.lazy import whole_targets
from conepursuit.matrix_fits.paths import PathFit
from conepursuit.matrix_fits.results import FitResult, Labels, NNLSResult

NO_LABELS = Labels()
"""The names that plain arrays have."""

SMALL_ENOUGH = 1_000_000
"""A sparse matrix or a LinearOperator of up to this many entries, zeros included, is made dense.

A larger one is kept as it is.
"""


def rows_matched(A: Any, b: Any, weights: Any) -> tuple[Any, Any, Labels]:
    """Return b and the weights of rows in the order of the rows of A, and the names of the columns.

    Rows are matched by their labels where both have some; weights by those of b if A has none.
    """
    if type(A) is np.ndarray and type(b) is np.ndarray:  # two arrays have no labels
        return b, weights, NO_LABELS
    check_dimensions(b, A, "b", "A")
    rows = row_labels(A)
    b = aligned(b, rows, "b", "A")
    to, rows = ("b", row_labels(b)) if rows is None else ("A", rows)
    return b, aligned(weights, rows, "weights", to), Labels(column_labels(A), column_labels(b))


def matrix_and_target(A: Any, b: Any) -> tuple[Any, Array]:
    """Return the matrix, dense if it is small, and the targets.

    A single target is in float64. Many targets in a Dask array stay one, with whole targets in each
    block.
    """
    matrix = as_matrix_unchecked(A, "A")
    if not isinstance(matrix, np.ndarray) and not is_blocks(matrix):
        check_finite(matrix, "A")
        if matrix.shape[0] * matrix.shape[1] <= SMALL_ENOUGH:
            matrix = dense(matrix)
    if isinstance(matrix, np.ndarray) and not matrix.flags.forc:
        matrix = np.ascontiguousarray(matrix)
    if type(b) is not np.ndarray and is_sparse(b):
        raise ValueError("b must be dense; got a sparse matrix. Use b.toarray().")
    lazy = type(b) is not np.ndarray and is_dask(inside(b)) and b.ndim > 1
    target = whole_targets(inside(b), 0, "b") if lazy else as_real_array(b, "b")
    if target.ndim == 1:
        target = as_vector(target)
    if target.ndim not in (1, 2) or len(target) != matrix.shape[0]:
        raise ValueError(
            "b must be a vector with one entry per row of A, or a matrix with one target per "
            f"column; got A of shape {tuple(matrix.shape)} and b of shape {target.shape}."
        )
    return matrix, target


def as_vector(target: Array) -> Vector:
    """Return one target as a kernel wants it: float64 and contiguous."""
    return np.ascontiguousarray(target, dtype=np.float64)


def tolerance(tol: Any) -> float:
    """Return `tol` as a float; raise a ValueError if it is no number or negative."""
    if not is_number(tol) or not tol >= 0:
        raise ValueError(f"tol must be a number that is not negative; got {tol!r}.")
    return float(tol)


def weights_in(given: Any) -> Any:
    """Return the weights of a result, a fit on a path or a checkpoint; anything else as it is."""
    if isinstance(given, Saved):
        given.check_kind("nnls")
        with named_if_saved(given):
            full, keys = np.zeros(given.n_columns), np.asarray(given.keys)
            if keys.min(initial=0) < 0 or len(keys) != len(given.weights):
                raise ValueError("its keys must be columns, one for each weight")
            full[keys] = given.weights
        return full
    return given.x if isinstance(given, NNLSResult | FitResult | PathFit) else given


def atoms_matched(given: Any, labels: Labels) -> Any:
    """Return weights in the order of the columns of A, if both have the same labels."""
    weights = weights_in(given)
    own = row_labels(weights)
    if (
        own is None
        or labels.atoms is None
        or sorted(map(str, own)) != sorted(map(str, labels.atoms))
    ):
        return weights
    return aligned(weights, labels.atoms, "the weights", "the columns of A")


def weights_of(given: Any, shape: tuple[int, ...], name: str, limit: int | None = None) -> Array:
    """Return non-negative weights of all atoms from an array or a result, or raise a ValueError.

    With a `limit`, at most so many of each target may be positive.
    """
    with named_if_saved(given):
        point = as_real_array(weights_in(given), name)
        point = point.astype(np.float64, copy=False)
        if point.shape != shape:
            raise ValueError(
                f"{name} must have shape {shape}, a weight for each atom; got {point.shape}."
            )
        if not np.isfinite(point).all():
            raise ValueError(f"{name} must be finite; got NaN or infinity. Replace those weights.")
        if point.min(initial=0.0) < 0:
            raise ValueError(
                f"{name} must not be negative; the least is {point.min():.3g}. "
                f"Use np.maximum({name}, 0) if that is rounding."
            )
        most = int(np.count_nonzero(point, axis=0).max(initial=0))
        if limit is not None and most > limit:
            raise ValueError(f"{name} has {most} positive weights, but max_atoms is {limit}.")
        return point


def check_entries(array: Array, name: str) -> None:
    """Raise a ValueError if an array holds NaN or infinity."""
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite; got NaN or infinity in an array of shape {array.shape}. "
            "Remove those entries, or give them weight 0."
        )


def root_weights(weights: Any, target: Array) -> Array:
    """Return the square roots of the weights of the rows, (m,), or of the entries of b."""
    given = as_real_array(weights, "weights").astype(np.float64, copy=False)
    if given.shape not in (target.shape, target.shape[:1]):
        raise ValueError(
            f"weights must have shape {target.shape[:1]}, one for each row, or that of b, "
            f"{target.shape}; got {given.shape}."
        )
    if not 0 <= given.min(initial=0.0) <= given.max(initial=0.0) < np.inf:  # NaN survives both
        wrong = ~(np.isfinite(given) & (given >= 0))
        raise ValueError(
            f"weights must be finite and not negative; got {given[wrong][0]}. Use 0 for entries "
            "that do not count."
        )
    roots: Array = np.sqrt(given)
    return roots


def weighted_matrix(matrix: Any, rows: Vector) -> Any:
    """Return diag(rows) A."""
    if isinstance(matrix, np.ndarray) or is_sparse(matrix):
        return scaled_rows(matrix, rows)
    if is_blocks(matrix):
        return matrix.times_rows(rows)
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import aslinearoperator

    return aslinearoperator(diags_array(rows)) @ matrix


def weighted_target(b: Array, rows: Array) -> Array:
    """Return b times `rows`, the roots of weights; entries of weight 0 may be NaN and become 0."""
    used = rows if rows.ndim == b.ndim else rows[:, None]
    out: Array = np.zeros_like(b, dtype=np.float64)  # last bits depend on the order in memory
    np.multiply(used, b, out=out, where=used > 0)
    if not out.any(axis=0).all():  # a target that is not zero does not become zero by underflow
        np.copyto(out, nonzero_products(used, b), where=(used > 0) & (out == 0))
    return out


def weighted_problem(matrix: Any, target: Array, weights: Any) -> tuple[Any, Array, Array | None]:
    """Return the matrix and the targets, multiplied by the roots of the row weights, and None.

    Where each of many targets has weights of its own, only the targets are multiplied, and the
    roots are returned in place of None.
    """
    if weights is None:
        return matrix, target, None
    rows = root_weights(weights, target)
    if rows.ndim < target.ndim or target.ndim == 1:
        return weighted_matrix(matrix, rows), weighted_target(target, rows), None
    return matrix, weighted_target(target, rows), rows


def atoms_of_path(forced: Any, forbidden: Any, n: int, most: int) -> tuple[Array, Array]:
    """Return the indices of atoms that every fit of a path has, and of those that none has."""
    first, never = indices(forced, n, "forced"), indices(forbidden, n, "forbidden")
    if len(both := first[np.isin(first, never)]):
        raise ValueError(f"atoms cannot be forced and forbidden at once; got {both.tolist()}.")
    if len(first) > most:
        raise ValueError(f"{len(first)} atoms are forced, but max_atoms is {most}.")
    return first, never


def indices(chosen: Any, n: int, name: str) -> Array:
    """Return distinct column indices, sorted; anything else raises a ValueError."""
    given = np.asarray(chosen if isinstance(chosen, np.ndarray | int | str) else list(chosen))
    if given.dtype == np.bool_ and given.shape == (n,):
        given = np.flatnonzero(given)
    if given.size == 0:
        return np.empty(0, dtype=np.intp)
    if given.dtype.kind not in "iu" or given.ndim != 1 or not 0 <= given.min() <= given.max() < n:
        raise ValueError(
            f"{name} must be a list of column indices from 0 to {n - 1}, or {n} booleans; "
            f"got {chosen!r}."
        )
    distinct = np.zeros(n, dtype=bool)
    distinct[given] = True
    return np.flatnonzero(distinct)
