"""Units in which squares neither overflow nor underflow, and the way back from them.

Columns and targets are divided by powers of two, which changes no digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import LARGEST_SQUARE, SMALLEST_SQUARE
from conepursuit.linear import is_blocks, is_operator, is_sparse, matvec, rmatvec

LARGEST = float(np.finfo(np.float64).max)
"""The largest number that a float can hold."""


@dataclass(frozen=True, eq=False)
class SafeUnits:
    """The powers of two by which the columns of a matrix and a target are divided.

    Where A = A' diag(2^p) and b = 2^q b', the weights x' that fit b' by A' are those that fit b by
    A, times 2^(p - q).

    Attributes
    ----------
    columns : array of int, shape (n,)
        The exponents p.
    target : int
        The exponent q.
    """

    columns: Array
    target: int = 0

    @classmethod
    def of(cls, matrix: Any, b: Vector) -> SafeUnits:
        """Return units in which the largest entries of all columns and of a target are near one.

        Those of a LinearOperator are estimated.
        """
        if is_blocks(matrix):
            raise ValueError(
                "the entries of A or b are so large or small that their squares overflow or "
                "underflow; scale the Dask array, such as A / A.max(), or b."
            )
        return cls(column_powers(matrix), int(np.frexp(np.abs(b).max())[1]))

    def reaching(self, b: Vector, x: Array, norms: Array) -> SafeUnits:
        """Return units of these columns in which neither b nor A x, for weights x, is large.

        The larger of the two is near one. `norms` are those of the columns in these units.
        """
        used = (x > 0) & (norms > 0)
        powers = np.frexp(x[used])[1] + np.frexp(norms[used])[1] + self.columns[used]
        if b.any():
            powers = np.append(powers, np.frexp(np.abs(b).max())[1])
        return SafeUnits(self.columns, int(powers.max()) if len(powers) else 0)

    def matrix(self, matrix: Any) -> Any:
        """Return a matrix in these units."""
        return scaled_columns(matrix, self.columns)

    def vector(self, b: Vector) -> Vector:
        """Return a target in these units."""
        unit: Vector = np.ldexp(b, -self.target)
        return unit

    def weights(self, x: Array) -> Array:
        """Return weights in these units, one row for each atom."""
        return _times_rows(x, self.columns - self.target)

    def weights_back(self, x: Array) -> tuple[Array, bool]:
        """Return weights in the units of the data, and whether no digit of them was lost.

        Digits are lost where a weight is larger than any float, or less than a normal one.
        """
        back = _times_rows(x, self.target - self.columns)
        return back, bool((self.weights(back) == x).all())

    def slopes_back(self, slopes: Array) -> Array:
        """Return inner products of the atoms with a residual in the units of the data."""
        return _times_rows(slopes, self.target + self.columns)

    def length_back(self, length: float) -> float:
        """Return the length of a residual in the units of the data."""
        return float(times_powers(length, self.target))

    def gap_back(self, gap: float) -> float:
        """Return a gap, a bound on a difference of squares, in the units of the data, rounded up.

        Entries that underflow when data are divided by powers of two change it by less than 2^-1000
        of f(0), which is added.
        """
        with np.errstate(over="ignore", under="ignore"):
            return float(np.nextafter(np.ldexp(gap + 2.0**-1000, 2 * self.target), np.inf))


def times_powers(array: Any, powers: Any) -> Any:
    """Return an array times 2 to some powers, clipped to the largest float."""
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(np.ldexp(array, powers), -LARGEST, LARGEST)


def _times_rows(array: Array, powers: Array) -> Array:
    """Return an array whose rows are multiplied by powers of two."""
    product: Array = times_powers(array, powers if array.ndim == 1 else powers[:, None])
    return product


def column_powers(matrix: Any) -> Array:
    """Return the exponents of two of the largest entries of the columns of a matrix."""
    powers: Array = np.frexp(largest_entries(matrix))[1]
    return powers


def largest_entries(matrix: Any) -> Array:
    """Return the sizes of the largest entries of columns; of a LinearOperator, estimates of them.

    The estimate is the largest product of the column with eight random vectors.
    """
    if is_sparse(matrix):
        largest: Array = abs(matrix).max(axis=0).toarray().ravel()
    elif is_operator(matrix):
        largest = np.max([np.abs(rmatvec(matrix, z)) for z in probes(matrix)], axis=0)
    else:
        largest = np.maximum(matrix.max(axis=0), -matrix.min(axis=0))
    return largest


def probes(matrix: Any) -> Array:
    """Return eight vectors whose products with the columns of a LinearOperator tell their sizes."""
    return np.random.default_rng(0).standard_normal((8, matrix.shape[0]))


def scaled_columns(matrix: Any, powers: Array) -> Any:
    """Return a matrix with its columns divided by powers of two, which changes no digit."""
    if is_operator(matrix):
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(
            matrix.shape,
            matvec=lambda x: matvec(matrix, np.ldexp(x, -powers)),
            rmatvec=lambda y: np.ldexp(rmatvec(matrix, y), -powers),
            dtype=np.float64,
        )
    if not is_sparse(matrix):
        return np.ldexp(matrix.astype(np.float64, copy=False), -powers)
    scaled = matrix.copy()
    scaled.data = np.ldexp(matrix.data, -np.repeat(powers, np.diff(matrix.indptr)))
    return scaled


def safe_squares(squares: Array) -> Array:
    """Return which squared norms are safe: products of two neither overflow nor underflow."""
    safe: Array = (squares >= SMALLEST_SQUARE) & (squares <= LARGEST_SQUARE)
    return safe


def inverted(norms: Vector) -> Vector:
    """Return 1 / norms, and 0 where a norm is 0."""
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
