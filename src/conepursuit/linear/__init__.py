"""Products, columns, Gram matrices and spectra, for every kind of matrix.

``matvec``, ``rmatvec``, ``column`` and ``gram`` work on NumPy arrays, ``scipy.sparse`` matrices
and ``scipy.sparse.linalg.LinearOperator`` by single dispatch. A new kind of matrix registers
itself with these functions; nothing else has to know it. Results are float64. `blocks` has the
matrices beyond memory, Dask arrays, `tasks` what is done where their blocks are, `rows` passes over
blocks of whole rows, and `blas` the number of threads of products.
"""

from __future__ import annotations

import sys
from abc import ABC
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from conepursuit.arrays import Array, Vector, as_real_array, check_stored, inside
from conepursuit.kernels import shared as kernels

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator


class Sparse(ABC):  # noqa: B024  # no class is derived from it
    """The matrices and arrays of ``scipy.sparse``, for single dispatch.

    SciPy is not imported for it, which takes longer than most fits: where a program has not
    imported ``scipy.sparse``, nothing is sparse.
    """

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        return _derives(kind, "scipy.sparse", "sparray", "spmatrix")


class Operator(ABC):  # noqa: B024  # no class is derived from it
    """The LinearOperators of ``scipy.sparse.linalg``, which is not imported, as in `Sparse`."""

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        return _derives(kind, "scipy.sparse.linalg", "LinearOperator")


class Dask(ABC):  # noqa: B024  # no class is derived from it
    """The arrays of ``dask.array``, which is not imported, as in `Sparse`."""

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        return _derives(kind, "dask.array", "Array")


def _derives(kind: type, module: str, *names: str) -> bool:
    """Return whether a class derives from one of the named classes of a module, if it is loaded."""
    loaded = sys.modules.get(module)
    return issubclass(kind, tuple(getattr(loaded, name, ()) for name in names))


def is_sparse(matrix: Any) -> bool:
    """Return whether something is a matrix or an array of ``scipy.sparse``."""
    return isinstance(matrix, Sparse)


def is_operator(matrix: Any) -> bool:
    """Return whether something is a LinearOperator of ``scipy.sparse.linalg``."""
    return isinstance(matrix, Operator)


def is_dask(array: Any) -> bool:
    """Return whether something is an array of ``dask.array``."""
    return isinstance(array, Dask)


def is_blocks(matrix: Any) -> bool:
    """Return whether something is a `BlockMatrix`, which is a Dask array as a matrix."""
    if type(matrix) is np.ndarray:
        return False
    loaded = sys.modules.get("conepursuit.linear.blocks")
    return loaded is not None and isinstance(matrix, loaded.BlockMatrix)


def _unsupported(matrix: Any) -> NoReturn:
    raise ValueError(
        f"expected a matrix; got {type(matrix).__name__}. "
        "Give a 2-d array, a scipy.sparse matrix, a LinearOperator or a Dask array."
    )


def scaled_rows(matrix: Any, rows: Vector) -> Any:
    """Return an array or a sparse matrix with its rows multiplied by numbers, as float64.

    No column becomes zero by underflow: what a proof takes for a zero column must be one. In a
    column that would, products that underflow are the smallest float, with their sign.
    """
    if is_sparse(matrix):
        scaled = matrix.astype(np.float64)
        scaled.data = nonzero_products(rows[matrix.indices], matrix.data)
        return scaled
    product = rows[:, None] * matrix
    if not product.all():  # which is faster than to look at each column
        zero = np.flatnonzero(~product.any(axis=0))
        product[:, zero] = nonzero_products(rows[:, None], matrix[:, zero])
    return product


def nonzero_products(left: Array, right: Array) -> Array:
    """Return products, of at least the smallest float where no factor is zero."""
    with np.errstate(invalid="ignore"):
        product = left * right
    lost = (product == 0) & (left != 0) & (right != 0)
    return np.where(lost, np.copysign(np.finfo(np.float64).smallest_subnormal, right), product)


@singledispatch
def matvec(matrix: Any, vector: Array) -> Array:
    """Return ``matrix @ vector``."""
    _unsupported(matrix)


@singledispatch
def rmatvec(matrix: Any, vector: Array) -> Array:
    """Return ``matrix.T @ vector``."""
    _unsupported(matrix)


@singledispatch
def column(matrix: Any, index: int) -> Any:
    """Return column `index` as a float64 vector; of a sparse matrix, as a sparse row."""
    _unsupported(matrix)


@singledispatch
def gram(matrix: Any) -> Array:
    """Return ``matrix.T @ matrix``, dense."""
    _unsupported(matrix)


@singledispatch
def measures(matrix: Any, vector: Vector) -> tuple[Vector, Vector, Vector]:
    """Return the products of all columns with a vector, their squared norms, and their sums."""
    _unsupported(matrix)


def _times(matrix: Array, vector: Array) -> Array:
    """Return ``matrix @ vector`` with float64 sums; a float32 matrix is not copied to float64."""
    if matrix.dtype == np.float64:
        return matrix @ vector
    wide, out = np.ascontiguousarray(vector, dtype=np.float64), np.zeros(len(matrix))
    if wide.shape != matrix.shape[1:]:
        raise ValueError(f"the product of shapes {matrix.shape} and {wide.shape} is not defined.")
    if matrix.flags.f_contiguous:
        kernels.transposed_times(matrix.T, wide, out)
    else:
        kernels.times(np.ascontiguousarray(matrix), wide, out)
    return out


@matvec.register(np.ndarray)
def _(matrix: Array, vector: Array) -> Array:
    return _times(matrix, vector)


@rmatvec.register(np.ndarray)
def _(matrix: Array, vector: Array) -> Array:
    return _times(matrix.T, vector)


@column.register(np.ndarray)
def _(matrix: Array, index: int) -> Vector:
    return matrix[:, index].astype(np.float64)


@gram.register(np.ndarray)
def _(matrix: Array) -> Array:
    wide = matrix.astype(np.float64, copy=False)
    return wide.T @ wide


@measures.register(np.ndarray)
def _(matrix: Array, vector: Vector) -> tuple[Vector, Vector, Vector]:
    products, squares, sums = np.zeros((3, matrix.shape[1]))
    if matrix.flags.c_contiguous:
        kernels.survey_rows(matrix, vector, products, squares, sums)
    else:
        kernels.survey_columns(matrix.T, vector, products, squares, sums)
    return products, squares, sums


@matvec.register(Sparse)
def _(matrix: Any, vector: Array) -> Array:
    return np.asarray(matrix @ vector)


@rmatvec.register(Sparse)
def _(matrix: Any, vector: Array) -> Array:
    return np.asarray(matrix.T @ vector)


@column.register(Sparse)
def _(matrix: Any, index: int) -> Any:
    from scipy import sparse

    compressed = matrix if matrix.format == "csc" else matrix.tocsc()
    part = slice(compressed.indptr[index], compressed.indptr[index + 1])
    data, rows = compressed.data[part].astype(np.float64), compressed.indices[part]
    return sparse.csr_array((data, rows, [0, len(data)]), shape=(1, matrix.shape[0]))


@gram.register(Sparse)
def _(matrix: Any) -> Array:
    return np.asarray((matrix.T @ matrix).toarray(), dtype=np.float64)


@measures.register(Sparse)
def _(matrix: Any, vector: Vector) -> tuple[Vector, Vector, Vector]:
    squares = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
    return rmatvec(matrix, vector), squares, rmatvec(matrix, np.ones(matrix.shape[0]))


@matvec.register(Operator)
def _(matrix: LinearOperator, vector: Array) -> Array:
    return np.ascontiguousarray(matrix.matvec(vector), dtype=np.float64)


@rmatvec.register(Operator)
def _(matrix: LinearOperator, vector: Array) -> Array:
    return np.ascontiguousarray(matrix.rmatvec(vector), dtype=np.float64)


@column.register(Operator)
def _(matrix: LinearOperator, index: int) -> Vector:
    unit = np.zeros(matrix.shape[1])
    unit[index] = 1.0
    return np.asarray(matrix.matvec(unit), dtype=np.float64)


@gram.register(Operator)
def _(matrix: LinearOperator) -> Array:
    return np.stack([rmatvec(matrix, column(matrix, j)) for j in range(matrix.shape[1])], axis=1)


def as_matrix(data: Any, name: str) -> Any:
    """Return a finite real matrix: a float array, a float64 CSC array, an operator or blocks.

    Dense float32 and float64 arrays are not copied. An operator is tried on a vector of ones. A
    Dask array becomes a `BlockMatrix`, which looks for NaN and infinity in its first pass.
    """
    matrix = as_matrix_unchecked(data, name)
    check_finite(matrix, name)
    return matrix


def as_matrix_unchecked(data: Any, name: str) -> Any:
    """Return a matrix as `as_matrix` does, without the check for NaN and infinity."""
    known = type(data) is not np.ndarray and (is_operator(data) or is_sparse(data))
    if known and np.dtype(data.dtype).kind == "c":
        raise ValueError(f"{name} must hold real numbers; got dtype {data.dtype}.")
    if type(data) is not np.ndarray and is_dask(inside(data)) and data.ndim == 2:
        from conepursuit.linear.blocks import BlockMatrix

        return BlockMatrix(data, name)
    if known and is_operator(data):
        matrix: Any = data
    elif known:
        from scipy import sparse

        check_stored(data, name)
        matrix = sparse.csc_array(data, dtype=np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # it may share its memory with the data
            matrix.sum_duplicates()
    else:
        matrix = as_real_array(data, name)
        if matrix.dtype == np.float32 and not matrix.flags.forc:
            matrix = np.ascontiguousarray(matrix)
    if len(matrix.shape) != 2 or 0 in matrix.shape:
        hint = " Use v[:, None] for a single column v." if len(matrix.shape) == 1 else ""
        raise ValueError(
            f"{name} must be a matrix with at least one row and one column; got shape "
            f"{tuple(matrix.shape)}.{hint}"
        )
    return matrix


def check_finite(matrix: Any, name: str) -> None:
    """Raise a ValueError if a matrix from `as_matrix_unchecked` holds NaN or infinity.

    Blocks are looked at in their first pass, where they are.
    """
    if is_blocks(matrix):
        return
    if is_operator(matrix):
        try:
            finite = np.isfinite(rmatvec(matrix, np.ones(matrix.shape[0]))).all()
        except NotImplementedError:
            raise ValueError(
                f"{name} is a LinearOperator without rmatvec, the product with the transpose. "
                "Give rmatvec= as well."
            ) from None
    elif is_sparse(matrix):
        finite = np.isfinite(matrix.data).all()
    else:
        with np.errstate(all="ignore"):
            total = matrix.sum()
        # NaN and infinity survive a sum; only if it is not finite is each entry looked at.
        finite = np.isfinite(total) or np.isfinite(matrix).all()
    if not finite:
        raise ValueError(
            f"{name} must be finite; got NaN or infinity in a matrix of shape "
            f"{tuple(matrix.shape)}. Remove or replace those entries."
        )


DENSE_SIZE = 200
"""Sparse matrices and operators with a side of at most this get a full, dense spectrum.

Of larger ones an extreme value is found by iteration. Arrays always get a full spectrum.
"""

RITZ = 1e-6
"""Relative accuracy asked of a largest eigenvalue or singular value that is found by iteration.

Such a Ritz value is at most the exact one, so that it is raised by 100 times this share.
"""


def dense(matrix: Any) -> Array:
    """Return a matrix of any kind as a dense array."""
    if isinstance(matrix, np.ndarray):
        return matrix.astype(np.float64, copy=False)
    if is_sparse(matrix):
        return np.asarray(matrix.toarray())
    return np.asarray(matrix @ np.eye(matrix.shape[1]), dtype=np.float64)


def dense_vector(part: Any) -> Vector:
    """Return a column, as `column` gives it, as an array."""
    full: Vector = part.toarray().ravel() if is_sparse(part) else part
    return full


def weighted_squares(matrix: Any, weights: Vector) -> Vector:
    """Return sum_i w_i a_ij^2 for every column of an array or a sparse matrix."""
    if is_sparse(matrix):
        return np.asarray(matrix.power(2).T @ weights)
    squares: Vector = np.einsum("i,ij,ij->j", weights, matrix, matrix)
    return squares


def symmetric_spectrum(matrix: Any) -> tuple[float, float]:
    """Return a lower and an upper bound on the eigenvalues of a symmetric matrix.

    Exact for arrays and up to `DENSE_SIZE`. For larger sparse matrices and operators the upper
    bound is a Ritz value with a margin. The lower one is 0 unless the least Ritz value is negative
    by more than 1e-3 of the largest.
    """
    n = matrix.shape[0]
    if not is_operator(matrix):
        largest = abs(matrix).max()
        if abs(matrix - matrix.T).max() > 1e-12 * largest:
            raise ValueError(
                "the matrix must be symmetric. Use (Q + Q.T) / 2, which is the same quadratic form."
            )
        if largest == 0:
            return 0.0, 0.0
    if isinstance(matrix, np.ndarray) or n <= DENSE_SIZE:
        values = np.linalg.eigvalsh(dense(matrix))
        return float(values[0]), float(values[-1])
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(n)
    high = float(eigsh(matrix, 1, which="LA", v0=start, tol=RITZ, return_eigenvectors=False)[0])
    low = float(eigsh(matrix, 1, which="SA", v0=start, tol=1e-3, return_eigenvectors=False)[0])
    return (low if low < -1e-3 * abs(high) else 0.0), high * (1 + 100 * RITZ)


def singular_bounds(matrix: Any) -> tuple[float, float]:
    """Return a lower and an upper bound on ||A x|| over unit vectors x.

    They are the extreme singular values of arrays and of matrices with a side of at most
    `DENSE_SIZE`. The lower bound is 0 for matrices with more columns than rows. For larger sparse
    matrices and operators it is 0, and the upper bound is a Ritz value with a margin.
    """
    if isinstance(matrix, np.ndarray) or min(matrix.shape) <= DENSE_SIZE:
        values = np.linalg.svdvals(dense(matrix))
        tall = matrix.shape[0] >= matrix.shape[1]
        return (float(values[-1]) if tall else 0.0), float(values[0])
    from scipy.sparse.linalg import svds

    start = np.random.default_rng(0).standard_normal(min(matrix.shape))
    top = svds(matrix, 1, v0=start, tol=RITZ, return_singular_vectors=False)
    return 0.0, float(top[0]) * (1 + 100 * RITZ)
