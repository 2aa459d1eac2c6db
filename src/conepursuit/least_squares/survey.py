"""The first pass over a dictionary: norms and sums of the atoms, and their products with b."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.least_squares.beyond import Beyond
from conepursuit.least_squares.proofs import plain_error
from conepursuit.linear import Operator, Sparse, measures, rmatvec
from conepursuit.linear.blocks import BlockMatrix
from conepursuit.matrix_fits.safe_units import inverted, probes, safe_squares

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
    beyond : Beyond or None
        For a dictionary in blocks, what its atoms have shown in the first pass; `products` are
        zero for those that did not return.
    """

    products: Vector
    norms: Vector
    inverse_norms: Vector
    sums: Vector
    regular: bool
    beyond: Any = None

    def forbid(self, atoms: Array) -> None:
        """Let some atoms never be the steepest."""
        self.inverse_norms[atoms] = 0.0
        if self.beyond is not None and len(atoms):
            self.beyond.forbid(atoms)
            self.products[:] = 0.0
            self.beyond.put(self.products, self.norms)

    def part(self, atoms: Array) -> Survey:
        """Return the survey of some of the atoms."""
        return Survey(
            self.products[atoms], self.norms[atoms], self.inverse_norms[atoms], self.sums[atoms],
            self.regular,
        )  # fmt: skip

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
    products, squares, sums = measures(matrix, b)
    return Survey.of(products, squares, sums, not matrix[:, squares == 0].any())


@survey.register(Sparse)
def _(matrix: Any, b: Vector) -> Survey:
    products, squares, sums = measures(matrix, b)
    zeros_are_zero = not (matrix.data[np.repeat(squares == 0, np.diff(matrix.indptr))]).any()
    return Survey.of(products, squares, sums, zeros_are_zero)


@survey.register(Operator)
def _(matrix: LinearOperator, b: Vector) -> Survey:
    # An operator does not show its norms: E <a, z>^2 = ||a||^2 for random normal z, and no atom but
    # a zero one has an estimate of zero.
    products = np.array([rmatvec(matrix, z) for z in probes(matrix)])
    squares = np.mean(products**2, axis=0)
    sums = rmatvec(matrix, np.ones(matrix.shape[0]))
    zeros_are_zero = not products[:, squares == 0].any()
    return Survey.of(rmatvec(matrix, b), squares, sums, zeros_are_zero, safety=8.0)


@survey.register(BlockMatrix)
def _(matrix: BlockMatrix, b: Vector) -> Survey:
    # In the first pass, which finds out the norms, the blocks return their steepest atoms as well.
    beyond = Beyond(matrix)
    error = plain_error(len(b), 0, float(np.linalg.norm(b)))
    beyond.look_ahead(b, error, beyond.candidates)
    squares, sums, zero = matrix.facts()
    zeros_are_zero = bool((zero == (squares == 0)).all())
    known = Survey.of(np.zeros(matrix.shape[1]), squares, sums, zeros_are_zero)
    beyond.put(known.products, known.norms)
    return replace(known, beyond=beyond)


def surveyed(matrix: Any, b: Vector) -> Survey | None:
    """Return the survey, or None if something is not finite or lost to overflow or underflow."""
    with np.errstate(all="ignore"):
        known, square = survey(matrix, b), float(b @ b)
    regular = known.regular and (bool(safe_squares(np.array(square))) or not b.any())
    return known if regular else None
