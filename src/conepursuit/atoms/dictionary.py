"""A finite set of atoms: the columns of a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.linalg import LinearOperator

from conepursuit.arrays import Array, Vector, as_real_array, inside, norm
from conepursuit.atoms.base import Atoms, AtomSet
from conepursuit.atoms.vectors import Pass, Vectors, checked_index
from conepursuit.labels import column_labels, row_labels
from conepursuit.linear import as_matrix, column, dense, is_dask, rmatvec

NOISE = 1e-14
"""Scores of a size up to this times ||g|| ||a|| count as rounding; larger ones do not."""


class Dictionary(AtomSet):
    """The columns of a matrix.

    Parameters
    ----------
    matrix : array_like, scipy.sparse matrix, LinearOperator or Dask array, shape (d, n)
        One atom per column. Dense float32 and float64 arrays are used as they are, in C or F
        order, read-only or memory-mapped; integers become float64; sparse matrices become CSC.
        Tables of pandas, polars and xarray are taken; a loss must have the same row labels, if any.
    functional : array_like of shape (d,), optional
        A vector t with <t, a> > 0 for every column a that is not zero. It makes the gaps of
        least squares and other objectives with a conjugate into proofs. Where it is not given,
        the vector of ones is tried, which serves every non-negative dictionary.

    Notes
    -----
    The oracle is one product ``matrix.T @ g``; among equal scores the first column wins. Zero
    columns are allowed and never selected, duplicated and collinear columns are fine. Keys are
    column indices.
    """

    n_atoms: int

    def __new__(cls, matrix: Any = None, *, functional: Any = None) -> Any:
        if cls is Dictionary and is_dask(inside(matrix)):
            from conepursuit.atoms.block_dictionary import BlockDictionary

            return super().__new__(BlockDictionary)
        return super().__new__(cls)

    def __init__(self, matrix: Any, *, functional: Any = None) -> None:
        self.matrix = as_matrix(matrix, "the dictionary")
        d, self.n_atoms = (int(n) for n in self.matrix.shape)
        self.shape = (d,)
        self.row_labels, self.column_labels = row_labels(matrix), column_labels(matrix)
        self._given = (
            None if functional is None else self._scaled(as_real_array(functional, "functional"))
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} x {self.n_atoms})"

    def scores(self, gradient: Array) -> Vector:
        """Return (<g, a_j>)_j for every column."""
        return rmatvec(self.matrix, gradient)

    def lmo(self, gradient: Array) -> Vectors:
        scores = self.scores(gradient)
        best = int(scores.argmin())
        if self._inverse_norms is None:
            return self.answer(best, scores)
        relative = scores * self._inverse_norms
        steepest = float(relative.min())
        if relative[best] > 1e-6 * steepest:
            # The score of a long atom may be rounding where a short one truly descends.
            real = np.flatnonzero(relative < -NOISE * norm(gradient))
            best = int(real[scores[real].argmin()]) if len(real) else best
        return self.atom(best).answering(Pass(scores, max(0.0, -steepest)))

    def steepest(self, gradient: Array) -> Vectors:
        scores = self.scores(gradient)
        down, up = int(scores.argmin()), int(scores.argmax())
        return self.answer(down if -scores[down] >= scores[up] else up, scores)

    def answer(self, index: int, scores: Vector) -> Vectors:
        """Return a column as an answer of the oracle, with the scores it was chosen by."""
        return self.atom(index).answering(Pass(scores))

    def atom(self, key: Any) -> Vectors:
        index = checked_index(key, self.n_atoms, self)
        return Vectors.single(self.shape, index, column(self.matrix, index))

    def steepness(self, gradient: Array, answer: Atoms, penalty: float, signed: bool) -> float:
        lookup = getattr(answer, "lookup", None)
        if self._inverse_norms is None or not isinstance(lookup, Pass):
            return super().steepness(gradient, answer, penalty, signed)
        if lookup.steepness is not None and not penalty and not signed:
            return lookup.steepness
        descent = np.abs(lookup.scores) if signed else -lookup.scores
        return max(0.0, float(((descent - penalty) * self._inverse_norms).max()))

    def empty(self) -> Vectors:
        return Vectors.empty(self.shape)

    @cached_property
    def norms(self) -> Vector | None:
        """Norms of the columns; None for a LinearOperator, which does not show them."""
        if isinstance(self.matrix, LinearOperator):
            return None
        if sparse.issparse(self.matrix):
            squares = np.asarray(self.matrix.multiply(self.matrix).sum(axis=0))
            norms: Vector = np.sqrt(squares).ravel()
            return norms
        return _column_norms(self.matrix)

    @cached_property
    def _inverse_norms(self) -> Vector | None:
        """1 / ||a|| for every column, 0 for a zero column."""
        if self.norms is None:
            return None
        return np.divide(1.0, self.norms, out=np.zeros(self.n_atoms), where=self.norms > 0)

    @cached_property
    def radius(self) -> float | None:
        return None if self.norms is None else float(self.norms.max())

    def positive_functional(self) -> Array | None:
        """Return t with <t, a> >= ||a|| for every atom, so that the scale of no atom matters."""
        return self._ones if self._given is None else self._given

    def shift(self, gradient: Array, answer: Atoms, penalty: float) -> float:
        if self.norms is None:
            return super().shift(gradient, answer, penalty)
        return self.steepness(gradient, answer, penalty, signed=False) + self.noise(gradient)

    def noise(self, gradient: Array) -> float:
        # The products of short atoms lose digits to underflow as well; those of long ones overflow.
        noise = super().noise(gradient) + self._underflow
        return noise if norm(gradient) * (self.radius or 1.0) < 1e300 else inf

    @cached_property
    def _underflow(self) -> float:
        if self.norms is None:
            return 0.0
        shortest = float(self.norms[self.norms > 0].min(initial=inf))
        return self.shape[0] * float(np.finfo(np.float64).smallest_subnormal) / shortest

    def ascends(self, gradient: Array, answer: Atoms, penalty: float, margin: float = 0.0) -> bool:
        lookup = getattr(answer, "lookup", None)
        if self.norms is None or not isinstance(lookup, Pass):
            return super().ascends(gradient, answer, penalty, margin)
        least = (self.noise(gradient) + margin) * self.norms
        return bool((lookup.scores + penalty >= least).all())

    @cached_property
    def _ones(self) -> Array | None:
        try:
            return self._scaled(np.ones(self.shape))
        except ValueError:
            return None

    def _scaled(self, functional: Array, values: Vector | None = None) -> Array:
        """Scale t so that <t, a> >= ||a|| on every column, or 1 where norms are not known.

        `values` are the products <t, a>, if they are known.
        """
        if functional.shape != self.shape:
            raise ValueError(
                f"functional must have shape {self.shape}, one entry per row of the "
                f"dictionary; got {functional.shape}."
            )
        values, rounding = self.scores(functional) if values is None else values, 0.0
        if self.norms is not None:
            values = values[self.norms > 0] / self.norms[self.norms > 0]
            rounding = self.noise(functional)
        least = float(values.min(initial=inf)) - rounding
        if not least > 0:
            raise ValueError(
                "functional must have a positive inner product with every atom, by more than "
                f"rounding; for atoms of length one, the least is {least + rounding:.3g}, and "
                f"the rounding {rounding:.3g}. See Dictionary.find_functional."
            )
        return functional / (least if least < inf else 1.0)

    def find_functional(self) -> Array | None:
        """Return a t of small norm with <t, a> >= ||a|| on every atom, or None if there is none.

        Solves the linear programme min ||t||_1, D't >= 1 on normalised columns, so it needs a
        matrix and time; give the answer to ``Dictionary(matrix, functional=t)``.
        """
        if self.norms is None:
            raise ValueError(
                "find_functional needs the columns; got a LinearOperator. "
                "Give functional= yourself, or a matrix."
            )
        d, used = self.shape[0], np.flatnonzero(self.norms > 0)
        unit = self.dense[:, used] / self.norms[used]
        answer = linprog(
            np.ones(2 * d),
            A_ub=np.hstack([-unit.T, unit.T]),
            b_ub=-np.ones(len(used)),
            bounds=(0, None),
            method="highs",
        )
        if not answer.success:
            return None
        return self._scaled(answer.x[:d] - answer.x[d:])

    def gauge(self, x: Array) -> float | None:
        return gauge(self.dense, x)

    @cached_property
    def dense(self) -> Array:
        """The matrix as an array, made when a linear programme needs it."""
        return dense(self.matrix)


def gauge(matrix: Array, x: Array) -> float:
    """Return min sum(w) over w >= 0 with ``matrix @ w = x``, inf where there is no such w."""
    largest = float(np.abs(x).max(initial=0.0))
    if largest == 0:
        return 0.0
    solved = gauge_programme(matrix, x / largest)
    return inf if solved is None else float(solved[0].sum()) * largest


def gauge_programme(
    matrix: Array, x: Array, options: Mapping[str, Any] | None = None
) -> tuple[Vector, Vector] | None:
    """Return weights that attain min sum(w) over w >= 0 with ``matrix @ w = x``, and the dual.

    None where HiGHS finds no such w. The columns are scaled to length one for it, since its
    tolerances are absolute.
    """
    norms = _column_norms(matrix)
    norms[norms == 0] = 1.0
    longest = float(norms.max())
    answer = linprog(
        longest / norms,
        A_eq=matrix / norms,
        b_eq=x,
        bounds=(0, None),
        method="highs",
        options=options,
    )
    return (answer.x / norms, answer.eqlin.marginals / longest) if answer.success else None


def _column_norms(matrix: Array) -> Vector:
    """Return the norms of the columns, safe against overflow, without a copy of the matrix."""
    squares = np.zeros(matrix.shape[1])
    with np.errstate(over="ignore"):
        if matrix.dtype == np.float64 and matrix.flags.f_contiguous:
            squares = np.vecdot(matrix.T, matrix.T)
        else:
            for i in range(0, matrix.shape[0], 64):
                block = matrix[i : i + 64].astype(np.float64, copy=False)
                squares += np.einsum("ij,ij->j", block, block)
    norms: Vector = np.sqrt(squares)
    for j in np.flatnonzero(~((squares > 1e-290) & (squares < inf))):
        largest = float(np.abs(matrix[:, j]).max())
        norms[j] = largest * np.linalg.norm(matrix[:, j] / largest) if largest else 0.0
    return norms
