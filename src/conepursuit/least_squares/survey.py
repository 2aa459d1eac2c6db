"""The first pass over a dictionary: norms and sums of the atoms, and their products with b."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.kernels import shared as kernels
from conepursuit.linear import Operator, Sparse, rmatvec
from conepursuit.matrix_fits.safe_units import inverted, safe_squares

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator


@dataclass(frozen=True)
class Survey:
    """Norms and sums of the atoms of a dictionary, and their products with a target.

    Attributes
    ----------
    products : array of shape (n,)
        A'b.
    norms, inverse_norms : arrays of shape (n,)
        The norms of the atoms, and one over them, 0 for a zero atom. For a LinearOperator both are
        estimates, and `norms` are raised to be on the safe side.
    sums : array of shape (n,)
        The sums of the entries of the atoms.
    regular : bool
        Whether all is finite, and no square was lost to overflow or underflow.
    """

    products: Vector
    norms: Vector
    inverse_norms: Vector
    sums: Vector
    regular: bool

    @classmethod
    def of(
        cls,
        products: Vector,
        squares: Vector,
        sums: Vector,
        zeros_are_zero: bool,
        safety: float = 1,
    ) -> Survey:
        """Make a survey from squared norms.

        `zeros_are_zero` says whether all atoms whose square is zero are zero themselves; otherwise
        a square has underflowed. `norms`, which bound errors, are multiplied by `safety`;
        `inverse_norms` are not.
        """
        regular = zeros_are_zero and bool(safe_squares(squares[squares != 0]).all())
        norms = np.sqrt(squares)
        return cls(products, safety * norms, inverted(norms), sums, regular)


@singledispatch
def survey(matrix: Any, b: Vector) -> Survey:
    """Return A'b, the norms and the sums of the atoms."""
    raise ValueError(f"expected a matrix; got {type(matrix).__name__}.")


@survey.register(np.ndarray)
def _(matrix: Array, b: Vector) -> Survey:
    products, squares, sums = np.zeros((3, matrix.shape[1]))
    if matrix.flags.c_contiguous:
        kernels.survey_rows(matrix, b, products, squares, sums)
    else:
        kernels.survey_columns(matrix.T, b, products, squares, sums)
    return Survey.of(products, squares, sums, not matrix[:, squares == 0].any())


@survey.register(Sparse)
def _(matrix: Any, b: Vector) -> Survey:
    squares = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
    sums = rmatvec(matrix, np.ones(matrix.shape[0]))
    zeros_are_zero = not (matrix.data[np.repeat(squares == 0, np.diff(matrix.indptr))]).any()
    return Survey.of(rmatvec(matrix, b), squares, sums, zeros_are_zero)


@survey.register(Operator)
def _(matrix: LinearOperator, b: Vector) -> Survey:
    # An operator does not show its norms: E <a, z>^2 = ||a||^2 for random normal z, and no atom but
    # a zero one has an estimate of zero.
    probes = np.random.default_rng(0).standard_normal((8, matrix.shape[0]))
    squares = np.mean([rmatvec(matrix, z) ** 2 for z in probes], axis=0)
    sums = rmatvec(matrix, np.ones(matrix.shape[0]))
    return Survey.of(rmatvec(matrix, b), squares, sums, True, safety=8.0)


def surveyed(matrix: Any, b: Vector) -> Survey | None:
    """Return the survey, or None if something is not finite or lost to overflow or underflow."""
    with np.errstate(all="ignore"):
        known, square = survey(matrix, b), float(b @ b)
    regular = known.regular and (bool(safe_squares(np.array(square))) or not b.any())
    return known if regular else None
