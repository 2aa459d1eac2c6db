"""Reading the arguments of a least-squares fit: the matrix, the targets, weights and starts."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from conepursuit.arrays import Array, Vector, as_real_array
from conepursuit.linear import as_matrix_unchecked, check_finite, dense

SMALL = 1_000_000
"""Up to so many entries a sparse matrix or a LinearOperator is made dense."""


def matrix_and_target(A: Any, b: Any) -> tuple[Any, Array]:
    """Return the matrix, dense if it is small, and the target or targets in float64."""
    matrix = as_matrix_unchecked(A, "A")
    if not isinstance(matrix, np.ndarray) and matrix.shape[0] * matrix.shape[1] <= SMALL:
        check_finite(matrix, "A")
        matrix = dense(matrix)
    if isinstance(matrix, np.ndarray) and not matrix.flags.forc:
        matrix = np.ascontiguousarray(matrix)
    target = as_real_array(b, "b")
    if target.ndim == 1 and target.dtype.char != "d":
        target = target.astype(np.float64)
    if target.ndim not in (1, 2) or len(target) != matrix.shape[0]:
        raise ValueError(
            "b must be a vector with one entry per row of A, or a matrix with one target per "
            f"column; got A of shape {tuple(matrix.shape)} and b of shape {target.shape}."
        )
    return matrix, target


def count(number: Any, name: str) -> int:
    """Return a positive integer, or say why it is none."""
    if not isinstance(number, int | np.integer) or number < 1:
        raise ValueError(f"{name} must be a positive integer or None; got {number!r}.")
    return int(number)


def weights_of(start: Any, shape: tuple[int, ...]) -> Array:
    """Return weights of all atoms, float64, or say why they are not that."""
    point = as_real_array(start, "weights x").astype(np.float64, copy=False)
    if point.shape != shape:
        raise ValueError(f"weights x must have shape {shape}; got {point.shape}.")
    check_entries(point, "weights x")
    if point.size and point.min() < 0:
        raise ValueError(
            f"weights x must not be negative; the least is {point.min():.3g}. "
            "Use np.maximum(x, 0) if that is rounding."
        )
    return point


def check_entries(array: Array, name: str) -> None:
    """Raise a ValueError if an array holds NaN or infinity."""
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite; got NaN or infinity in an array of shape {array.shape}. "
            "Remove those entries, or give them weight 0."
        )


def root_weights(weights: Any, target: Array) -> Array:
    """Return the roots of weights of the entries of b, of shape (m,) or that of b."""
    given = as_real_array(weights, "weights").astype(np.float64, copy=False)
    if given.shape not in (target.shape, target.shape[:1]):
        raise ValueError(
            f"weights must have shape {target.shape[:1]} or that of b, {target.shape}; "
            f"got {given.shape}."
        )
    if not (np.isfinite(given) & (given >= 0)).all():
        raise ValueError("weights must be finite and not negative.")
    roots: Array = np.sqrt(given)
    return roots


def weighted(matrix: Any, b: Array, rows: Vector) -> tuple[Any, Array, None]:
    """Return diag(rows) A and diag(rows) b; what has no weight may be NaN."""
    if isinstance(matrix, LinearOperator):
        matrix = aslinearoperator(sparse.diags_array(rows)) @ matrix
    elif sparse.issparse(matrix):
        matrix = sparse.csc_array(sparse.diags_array(rows) @ matrix)
    else:
        matrix = rows[:, None] * matrix
    used = rows > 0
    out = np.zeros(b.shape)
    out[used] = (rows[used] * b[used].T).T
    return matrix, out, None


def rescaled(matrix: Any, b: Vector) -> tuple[Any, Vector, Array, int]:
    """Return the columns of a matrix and a target near one, and their exponents of two.

    Where squares of the entries overflow or underflow, powers of two change no digit.
    """
    if isinstance(matrix, LinearOperator):
        raise ValueError(
            "the entries of A or b are so large or small that their squares overflow or "
            "underflow; scale the LinearOperator."
        )
    largest = abs(matrix).max(axis=0)
    powers: Array = np.frexp(largest.toarray().ravel() if sparse.issparse(largest) else largest)[1]
    power = int(np.frexp(np.abs(b).max())[1])
    if sparse.issparse(matrix):
        scaled = matrix.copy()
        scaled.data = np.ldexp(matrix.data, -np.repeat(powers, np.diff(matrix.indptr)))
    else:
        scaled = np.ldexp(matrix.astype(np.float64, copy=False), -powers)
    return scaled, np.ldexp(b, -power), powers, power
