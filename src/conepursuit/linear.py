"""The four things an algorithm asks of a matrix, for every kind of matrix.

``matvec``, ``rmatvec``, ``column`` and ``gram`` work on NumPy arrays, ``scipy.sparse`` matrices
and ``scipy.sparse.linalg.LinearOperator`` by single dispatch. A new kind of matrix registers
itself with these functions; nothing else has to know it. Results are float64.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from conepursuit.arrays import Array, Vector

BLOCK = 64
"""Rows of a float32 matrix widened at a time: few enough that they stay in the cache."""


def _unsupported(matrix: Any) -> NoReturn:
    raise ValueError(
        f"expected a matrix; got {type(matrix).__name__}. "
        "Give a 2-d array, a scipy.sparse matrix or a LinearOperator."
    )


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
    """Return column `index` as a float64 vector, or as a 1 x n sparse row of a sparse matrix."""
    _unsupported(matrix)


@singledispatch
def gram(matrix: Any) -> Array:
    """Return ``matrix.T @ matrix``, dense."""
    _unsupported(matrix)


def _times(matrix: Array, vector: Array) -> Array:
    """``matrix @ vector`` with float64 sums; float32 rows are widened block by block."""
    if matrix.dtype == np.float64:
        return matrix @ vector
    if matrix.flags.c_contiguous or not matrix.flags.f_contiguous:
        out = np.empty(matrix.shape[0])
        for i in range(0, len(out), BLOCK):
            out[i : i + BLOCK] = matrix[i : i + BLOCK].astype(np.float64) @ vector
        return out
    out = np.zeros(matrix.shape[0])
    for j in range(0, matrix.shape[1], BLOCK):
        out += vector[j : j + BLOCK] @ matrix.T[j : j + BLOCK].astype(np.float64)
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


@matvec.register(sparse.sparray)
@matvec.register(sparse.spmatrix)
def _(matrix: Any, vector: Array) -> Array:
    return np.asarray(matrix @ vector)


@rmatvec.register(sparse.sparray)
@rmatvec.register(sparse.spmatrix)
def _(matrix: Any, vector: Array) -> Array:
    return np.asarray(matrix.T @ vector)


@column.register(sparse.sparray)
@column.register(sparse.spmatrix)
def _(matrix: Any, index: int) -> Any:
    compressed = matrix if matrix.format == "csc" else matrix.tocsc()
    part = slice(compressed.indptr[index], compressed.indptr[index + 1])
    data, rows = compressed.data[part].astype(np.float64), compressed.indices[part]
    return sparse.csr_array((data, rows, [0, len(data)]), shape=(1, matrix.shape[0]))


@gram.register(sparse.sparray)
@gram.register(sparse.spmatrix)
def _(matrix: Any) -> Array:
    return np.asarray((matrix.T @ matrix).toarray(), dtype=np.float64)


@matvec.register(LinearOperator)
def _(matrix: LinearOperator, vector: Array) -> Array:
    return np.asarray(matrix.matvec(vector), dtype=np.float64)


@rmatvec.register(LinearOperator)
def _(matrix: LinearOperator, vector: Array) -> Array:
    return np.asarray(matrix.rmatvec(vector), dtype=np.float64)


@column.register(LinearOperator)
def _(matrix: LinearOperator, index: int) -> Vector:
    unit = np.zeros(matrix.shape[1])
    unit[index] = 1.0
    return np.asarray(matrix.matvec(unit), dtype=np.float64)


@gram.register(LinearOperator)
def _(matrix: LinearOperator) -> Array:
    return np.stack([rmatvec(matrix, column(matrix, j)) for j in range(matrix.shape[1])], axis=1)
