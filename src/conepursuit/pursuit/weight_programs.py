"""Weights of a fixed set of atoms: the small quadratic programmes of the corrective algorithms.

All of them minimise the model ``<scores, v - w> + 1/2 <v - w, Q (v - w)>`` about the current
weights w. Written about w rather than about 0, a refit also removes the rounding of the one before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conepursuit.arrays import EPS, Array, Vector
from conepursuit.kernels import shared as kernels

TOLERANCE = 1e-14
"""An atom without weight gets some if its slope is steeper than this share of the steepest one.

Slopes are entries of the gradient of the model, over the roots of the diagonal of Q; the steepest
one is that at the start. Slopes that are less steep are rounding.
"""


class Cholesky:
    """A Cholesky factor of Q on the atoms with weight, kept from one refit to the next.

    Attributes
    ----------
    rows : array
        The lower factor, row by row.
    order : array of int
        The position in the active set of the atom behind each row.
    count : int
        How many rows are valid; 0 forgets the factor.
    """

    def __init__(self) -> None:
        self.rows, self.order, self.count = np.empty((0, 0)), np.empty(0, dtype=np.intp), 0
        self._face: tuple[float, Cholesky] | None = None

    def face(self, Q: Array) -> tuple[float, Cholesky]:
        """Return the number that `_on_face` adds to all entries of Q, and the factor of the sum."""
        if self._face is None:
            self._face = float(np.diag(Q).mean()) or 1.0, Cholesky()
        return self._face

    def reserve(self, n: int) -> None:
        """Make room for n atoms and the one that may join."""
        old = len(self.rows)
        if old < n + 1:
            rows, order = np.zeros((2 * n + 8, 2 * n + 8)), np.zeros(2 * n + 8, dtype=np.intp)
            rows[:old, :old], order[:old] = self.rows, self.order
            self.rows, self.order = rows, order

    def keep(self, positions: Sequence[int] | Array, n: int) -> None:
        """Renumber after all but the atoms at `positions` have left a set of n.

        If an atom of the factor has left, the factor is forgotten.
        """
        new = np.full(n, -1, dtype=np.intp)
        new[positions] = np.arange(len(positions))
        order = new[self.order[: self.count]]
        self.order[: self.count] = order
        if (order < 0).any():
            self.count = 0
        if self._face is not None:
            self._face[1].keep(positions, n)

    def solve(self, right: Vector) -> Vector:
        """Return the solution of Q v = right on the atoms of the factor, zero on the others."""
        chosen = self.order[: self.count]
        part = right[chosen]
        kernels.forward_solve(self.rows, self.count, part)
        kernels.backward_solve(self.rows, self.count, part)
        out = np.zeros_like(right)
        out[chosen] = part
        return out


def nonnegative(Q: Array, scores: Vector, weights: Vector, factor: Cholesky) -> Vector:
    """Return the minimiser of the model over v >= 0."""
    return _solve(Q, scores, weights, factor, signed=False)[0]


def free(Q: Array, scores: Vector, weights: Vector, factor: Cholesky) -> Vector:
    """Return a minimiser of the model over all v; dependent atoms get no weight."""
    return _solve(Q, scores, weights, factor, signed=True)[0]


def bounded(Q: Array, scores: Vector, weights: Vector, factor: Cholesky, radius: float) -> Vector:
    """Return the minimiser of the model over v >= 0 with sum(v) <= radius."""
    on_face = float(weights.sum()) >= radius * (1 - 1e-12)
    if on_face:  # with a multiplier >= 0 the sum would grow if it could: v stays on the face
        v, multiplier = _on_face(Q, scores, weights, factor, radius)
        if multiplier >= 0:
            return v
    inside, gradient = _solve(Q, scores, weights, factor, signed=False)
    largest = float(np.abs(scores).max(initial=0.0))
    if inside.sum() <= radius and (gradient >= -1e-10 * largest).all():
        return inside
    return v if on_face else _on_face(Q, scores, weights, factor, radius)[0]


def _on_face(
    Q: Array, scores: Vector, weights: Vector, factor: Cholesky, radius: float
) -> tuple[Vector, float]:
    """Return the minimiser of the model over v >= 0 with sum(v) = radius, and its multiplier.

    Notes
    -----
    With r > 0, adding r/2 (sum(v) - radius)^2 to the model changes nothing on the face. The
    minimiser v(m) of the sum of this and m * sum(v) over v >= 0 has a sum that is continuous in m,
    also where atoms depend on each other, and falls with it, linearly while the passive set
    stays. So Newton's method, kept inside a bracket, ends after a few warm starts.
    """
    raised, own = factor.face(Q)
    Q = Q + raised
    v, gradient = _solve(
        Q, scores + raised * (float(weights.sum()) - radius), weights, own, signed=False
    )
    low, high, multiplier = -np.inf, np.inf, 0.0
    for _ in range(100):
        surplus = float(v.sum()) - radius
        if abs(surplus) <= 1e-14 * radius:
            break
        low, high = (multiplier, high) if surplus > 0 else (low, multiplier)
        fall = float(own.solve(np.ones(len(v))).sum())
        if fall > 0:
            target = multiplier + surplus / fall
        else:  # the sum is zero until the multiplier is low enough for one atom
            target = multiplier - float(gradient.min()) - raised * radius
        if not low < target < high:
            target = 0.5 * (low + high)
        v, gradient = _solve(Q, gradient + (target - multiplier), v, own, signed=False)
        multiplier = target
    total = float(v.sum())
    return (v * (radius / total) if total > 0 else v), multiplier


def _solve(
    Q: Array, scores: Vector, weights: Vector, factor: Cholesky, *, signed: bool
) -> tuple[Vector, Vector]:
    """Run the kernel on copies; return the weights and the gradient of the model there."""
    n = len(weights)
    factor.reserve(n)
    v, gradient = weights.copy(), scores.copy()
    root = np.sqrt(np.maximum(np.diag(Q), 0.0))
    curved = root > 0
    tolerance = TOLERANCE * float(np.abs(scores[curved] / root[curved]).max(initial=0.0))
    factor.count = kernels.solve(
        np.ascontiguousarray(Q),
        gradient,
        v,
        factor.rows,
        factor.order,
        factor.count,
        signed,
        tolerance,
    )
    if not signed:  # what rounding left of a weight that should be zero (errata A12)
        share = v * root
        lost = curved & (v > 0) & (share <= EPS * share.max(initial=0.0))
        if lost.any():
            v[lost] = 0.0
            factor.count = 0
    return v, gradient
