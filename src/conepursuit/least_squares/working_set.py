"""The working set of a fit on a large dictionary: some atoms, and what a fit on them keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.kernels import least_squares as kernels
from conepursuit.kernels.constants import DESCENT_ROUNDINGS
from conepursuit.least_squares.proofs import Proof, dense_column, plain_error
from conepursuit.least_squares.survey import Survey
from conepursuit.least_squares.whole import are_neighbours
from conepursuit.linear import is_sparse, rmatvec
from conepursuit.matrix_fits.results import NNLSResult
from conepursuit.matrix_fits.safe_units import SafeUnits, inverted, times_powers
from conepursuit.rounding import expected_rounding

ROOM = 256
"""A working set has room for this many atoms at least, so that small ones never move."""


class Round(NamedTuple):
    """A fit on a working set, or of all atoms at once; `nnls` calls back with it.

    Attributes
    ----------
    iteration : int
        How many linear systems were solved so far.
    keys, weights : arrays
        The atoms with weight, and their weights.
    rnorm : float
        The norm of the residual.
    n_columns : int
        How many atoms the dictionary has.
    """

    iteration: int
    keys: Array
    weights: Vector
    rnorm: float
    n_columns: int

    def saved(self) -> dict[str, Any]:
        """Return what a `Checkpoint` keeps, from which `nnls` goes on."""
        return {"kind": "nnls", **self._asdict()}


Callback: TypeAlias = Callable[[Round], bool | None]
"""Called after each fit on a working set; True ends the fit."""


def shown(fit: NNLSResult | None, callback: Callback | None) -> NNLSResult | None:
    """Call back with a fit that took no working set, as its one round; return the fit.

    The fit is complete, whatever the callback returns.
    """
    if fit is not None and callback is not None:
        used = np.flatnonzero(fit.x)
        callback(Round(fit.n_iter, used, fit.x[used], fit.rnorm, len(fit.x)))
    return fit


def in_units(callback: Callback | None, units: SafeUnits) -> Callback | None:
    """Return the callback for a fit in safe units; it is shown weights in those of the data."""
    if callback is None:
        return None
    return lambda seen: callback(
        seen._replace(
            weights=times_powers(seen.weights, units.target - units.columns[seen.keys]),
            rnorm=units.length_back(seen.rnorm),
        )
    )


class WorkingSet:
    """Some atoms of a dictionary, with everything that a fit on them keeps.

    Parameters
    ----------
    matrix : array, sparse array or LinearOperator of shape (m, n)
        The dictionary.
    b : array of shape (m,)
        The target.
    known : Survey
        The norms and sums of the atoms, and A'b.
    inexact : float
        The relative error of their entries, such as that of row weights.

    Attributes
    ----------
    chosen : array of int
        The atoms, in the order in which they came.
    weights : array
        Their weights.
    residual : array of shape (m,)
        b - A x, from the data.
    count : int
        How many weights are not zero.
    """

    def __init__(self, matrix: Any, b: Vector, known: Survey, inexact: float = 0.0) -> None:
        self.matrix, self.b, self.known, self.inexact = matrix, b, known, inexact
        self.beyond = known.beyond
        self.chosen = np.empty(0, dtype=np.intp)
        self.inside = np.zeros(matrix.shape[1], dtype=bool)
        self.residual, self.count, self.orthogonal = b, 0, False
        self._rows: Array | None = None
        self._atoms = np.empty((0, len(b)))
        self._gram, self._factor = np.empty((0, 0)), np.empty((0, 0))
        self._x, self._y, self._order = np.empty(0), np.empty(0), np.empty(0, dtype=np.int64)

    @property
    def weights(self) -> Vector:
        return self._x[: len(self.chosen)]

    def add(self, new: Array, weights: Vector | None = None) -> None:
        """Let new atoms join, with weight 0 or with `weights` to start from."""
        if self.beyond is not None and len(self.chosen) + len(new) > len(self._x):
            self._leave_idle()
        first, size = len(self.chosen), len(self.chosen) + len(new)
        self.chosen = np.concatenate([self.chosen, new])
        self.inside[new] = True
        if size > len(self._x):
            self._reserve(max(2 * size, ROOM))
        self._gather(first)
        products = self._atoms[first:size] @ self._atoms[:size].T
        self._gram[first:size, :size] = products
        self._gram[:size, first:size] = products.T
        self._x[first:size] = 0.0 if weights is None else weights

    def _leave_idle(self) -> None:
        """Let atoms without weight leave, so that the set is not much larger than the fit.

        Those that descend again come back with the next pass.
        """
        kept = np.flatnonzero(self.weights)
        size = len(kept)
        if size == len(self.chosen):
            return
        self.inside[self.chosen] = False
        self.chosen, self._x[:size] = self.chosen[kept], self._x[kept]
        self.inside[self.chosen] = True
        self._atoms[:size] = self._atoms[kept]
        self._gram[:size, :size] = self._gram[np.ix_(kept, kept)]
        self.count, self.orthogonal = 0, False  # the factor is made anew from the weights

    def fit(self, max_steps: int, allowed: Array | None = None) -> tuple[int, int]:
        """Solve on the working set; return why it ended and how many solves it took.

        If `allowed` is given, of the atoms without weight only those where it is True may get some.
        """
        size = len(self.chosen)
        atoms, target = self._atoms[:size], self._target()
        scale = self._scale(size)
        if allowed is not None:
            scale = np.where(allowed | (self.weights > 0), scale, 0.0)
        r, p, g = np.empty(len(target)), np.empty(len(target)), np.empty(size)
        self.count, code, steps, self.orthogonal = kernels.fit(
            atoms, target, atoms @ target, scale, self._gram, self.weights,
            self._factor, self._order, self._y, self.count, r, p, g, self.orthogonal, size,
            max_steps,
        )  # fmt: skip
        self.residual = r
        if self._rows is not None:
            self.residual = self.b.copy()
            self.residual[self._rows] = r
        return code, steps

    def round(self, steps: int) -> Round:
        """Return the fit as it is after so many steps."""
        used = np.flatnonzero(self.weights)
        rnorm = float(np.linalg.norm(self.residual))
        return Round(steps, self.chosen[used], self.weights[used], rnorm, self.matrix.shape[1])

    def used(self, forced: Array) -> Array:
        """Return the atoms with weight and those forced, sorted."""
        used = np.zeros(self.matrix.shape[1], dtype=bool)
        used[self.chosen[self.weights > 0]] = True
        used[forced] = True
        return np.flatnonzero(used)

    def solution(self) -> Vector:
        """Return the weights of all atoms of the dictionary."""
        x = np.zeros(self.matrix.shape[1])
        x[self.chosen] = self.weights
        return x

    def neighbours(self, new: Array) -> bool:
        """Return whether most atoms of `new`, of a dense matrix, are nearly copies of others."""
        return are_neighbours(self.matrix[:, new], self.known.inverse_norms[new])

    def _scale(self, size: int) -> Vector:
        return inverted(np.sqrt(self._gram.diagonal()[:size]))

    def _target(self) -> Vector:
        return self.b if self._rows is None else self.b[self._rows]

    def _reserve(self, size: int) -> None:
        """Make room for `size` atoms, and one more row of the factor."""

        def grown(old: Array, *shape: int) -> Array:
            new = np.zeros(shape, dtype=old.dtype)
            new[tuple(slice(n) for n in old.shape)] = old
            return new

        self._gram = grown(self._gram, size, size)
        self._factor = grown(self._factor, size + 1, size + 1)
        self._x, self._y = grown(self._x, size), grown(self._y, size + 1)
        self._order = grown(self._order, size + 1)
        if not is_sparse(self.matrix):
            self._atoms = grown(self._atoms, size, len(self.b))

    def _gather(self, first: int) -> None:
        """Copy the chosen atoms from `first` on.

        Of a sparse matrix all chosen atoms are copied, on the rows where one of them is not zero.
        """
        new = self.chosen[first:]
        if is_sparse(self.matrix):
            block = self.matrix[:, self.chosen]
            self._rows = np.unique(block.indices)
            self._atoms = np.ascontiguousarray(block[self._rows].toarray().T)
        elif isinstance(self.matrix, np.ndarray):
            self._atoms[first : len(self.chosen)] = self.matrix[:, new].T
        else:
            if self.beyond is not None:
                self.matrix.fetch(new)
                self.beyond.inside = self.chosen
            for i, j in enumerate(new, first):
                self._atoms[i] = dense_column(self.matrix, j)

    def scores(self, most: int) -> Vector:
        """Return A'r, r the residual.

        Of a dictionary in blocks these are the entries of the working set and of the `most`
        steepest atoms outside it, which return from a pass; the others are zero.
        """
        if self.beyond is None:
            return rmatvec(self.matrix, self.residual)
        if self.beyond.q is not self.residual:
            error = plain_error(len(self.b), self.count, self._reach())
            self.beyond.look_ahead(self.residual, error, most)
        scores = np.zeros(self.matrix.shape[1])
        self.beyond.put(scores, self.known.norms)
        size = len(self.chosen)
        scores[self.chosen] = self._atoms[:size] @ self.residual
        return scores

    def scores_at(self, x: Vector) -> Vector:
        """Return A'(b - A x) for weights of all atoms, of which those with weight join."""
        used = np.flatnonzero(x)
        if len(used):
            self.add(used, x[used])
            self.residual, self.count = self.b - self.weights @ self._atoms[: len(used)], len(used)
        return self.scores(1)

    def steepest(self, scores: Vector, most: int) -> Array:
        """Return the atoms outside that descend by more than rounding, the `most` steepest."""
        slopes = scores * self.known.inverse_norms
        slopes[self.inside] = 0.0
        new = np.flatnonzero(slopes > DESCENT_ROUNDINGS * self._rounding())
        if len(new) > most:
            new = new[np.argpartition(slopes[new], -most)[-most:]]
        return new[np.argsort(-slopes[new], kind="stable")]

    def greedy_step(self, scores: Vector, forced: Array, max_steps: int) -> tuple[int, int] | None:
        """Let the steepest atom without weight join, and refit; `forced` ones may get weight too.

        Returns
        -------
        int, int or None
            As `fit`; None if no atom descends.
        """
        slopes = self._slopes_without_weight(scores)
        best = int(slopes.argmax())
        if not slopes[best] > DESCENT_ROUNDINGS * self._rounding():
            return None
        if not self.inside[best]:
            self.add(np.array([best]))
        allowed = (self.chosen == best) | np.isin(self.chosen, forced)
        return self.fit(max_steps, allowed)

    def descends(self, scores: Vector) -> bool:
        """Return whether an atom without weight descends by more than rounding."""
        slopes = self._slopes_without_weight(scores)
        return bool((slopes > DESCENT_ROUNDINGS * self._rounding()).any())

    def _slopes_without_weight(self, scores: Vector) -> Vector:
        slopes = scores * self.known.inverse_norms
        slopes[self.chosen[self.weights > 0]] = 0.0
        return slopes

    def certificate(self, scores: Vector, *, last: bool = False) -> tuple[float, bool]:
        """Return the gap, and whether it is proved.

        `scores` are A'r, r the residual. If it is the `last` gap of a fit, proofs that cost more
        are tried until it is fine.
        """
        proof = self.proof(scores)
        if last and not proof.fine and self.count:
            proof.along(self._functional())
            if not proof.fine:
                used = np.flatnonzero(self.weights)
                if self.beyond is None:  # the proof has all atoms of the dictionary, in order
                    used = used[np.argsort(self.chosen[used])]
                proof.sharpen(self._atoms[used], self._rows)
            if not proof.fine:
                proof.level(self._atoms[used], self._rows)
            if not proof.fine:
                proof.along_level()
        return proof.settled()

    def proof(self, scores: Vector) -> Proof:
        """Return the first proof; for a dictionary in blocks on the working set and beyond it."""
        r, known = self.residual, self.known
        if self.beyond is None:
            return Proof(self.matrix, self.b, self.solution(), r, scores, known, self.inexact)
        own = self._atoms[: len(self.chosen)]
        part, slopes = known.part(self.chosen), scores[self.chosen]
        return Proof(own.T, self.b, self.weights, r, slopes, part, self.inexact, self.beyond)

    def _functional(self) -> Vector:
        """Return t in the span of the atoms with weight with <t, a> = ||a|| for each of them."""
        size, part = len(self.chosen), np.empty(len(self._target()))
        norms = np.sqrt(self._gram.diagonal()[:size])
        kernels.functional(self._atoms[:size], norms, self._order, self.count, self._factor, part)
        if self._rows is None:
            return part
        t = np.zeros(len(self.b))
        t[self._rows] = part
        return t

    def _rounding(self) -> float:
        """Return the size of the rounding errors of <a, b - A x> for a unit atom a."""
        return expected_rounding(len(self.b)) * self._reach()

    def _reach(self) -> float:
        """Return ||b|| plus the sum of the weights times the lengths of their atoms."""
        lengths = np.sqrt(self._gram.diagonal()[: len(self.chosen)])
        return float(np.linalg.norm(self.b)) + float(self.weights @ lengths)
