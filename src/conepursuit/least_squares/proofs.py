"""Proofs of least-squares fits on a matrix of any kind.

The formula is in ``cpp/least_squares/certificate.hpp``.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from conepursuit.arrays import EPS, Array, Vector
from conepursuit.kernels import least_squares as kernels
from conepursuit.least_squares.whole import NO_GRAM
from conepursuit.linear import column, dense_vector, rmatvec
from conepursuit.rounding import FLOOR, UNIT, doubled_rounding, product_rounding, resolution

MOST_DOUBLED = 512
"""The most atoms without weight whose slopes are computed in twice the precision.

The slopes of others stay as they are. `along_level` is not tried if more atoms than this are level.
"""

CLOSE_ROUNDINGS = 64.0
"""Slopes of up to this many times their error are level, that is, near zero.

Of the atoms without weight only these are computed in twice the precision.
"""


NOTHING = np.empty(0)
"""No vector, where a kernel would subtract one."""


class Proof:
    """Bounds on f(x) - f* for f = 1/2 ||A x - b||^2; the least one found is the gap.

    The first one tilts the residual along the vector of ones. While the gap is not `fine`, callers
    try others: along the functional of the atoms with weight (`along`), with slopes in twice the
    precision (`sharpen`), with a residual that is orthogonal to the atoms with weight (`level`),
    along the functional of all level atoms (`along_level`).

    Parameters
    ----------
    matrix, b, x
        The problem, and weights that are not negative.
    r, g : arrays of shape (m,) and (n,)
        b - A x and A'r, as computed in plain arithmetic.
    known : Survey
        The norms and sums of the atoms.
    inexact : float
        The relative error of the entries of the data, such as that of row weights.
    beyond : Beyond, optional
        The atoms of a dictionary in blocks that the matrix does not have. It has seen r, with
        `plain_error`; each further proof makes a pass over them.

    Attributes
    ----------
    gap : float
        The least bound so far, inf where nothing is proved.
    """

    def __init__(
        self,
        matrix: Any,
        b: Vector,
        x: Vector,
        r: Vector,
        g: Vector,
        known: Any,
        inexact: float = 0.0,
        beyond: Any = None,
    ) -> None:
        self.matrix, self.b, self.x = matrix, b, np.ascontiguousarray(x)
        self.r, self.g, self.known, self.inexact = r, g, known, inexact
        self.beyond = beyond
        self.size, self.used = float(np.linalg.norm(b)), np.flatnonzero(x)
        self.reach = self.size + float(known.norms[self.used] @ x[self.used])
        self.error = plain_error(len(r), len(self.used), self.reach)
        self.errors, self.distance = self.error * known.norms, 0.0
        growth = 1.0 + plain_error(len(r), len(self.used), 1.0)
        self.length = growth * float(np.linalg.norm(r)) + self.error
        self._functionals: list[tuple[Vector | None, Vector, float]] = [
            (None, known.sums, sqrt(len(r)))
        ]
        self.gap = inf
        self._try(0)

    @property
    def fine(self) -> bool:
        """Whether the gap is at most the `resolution` of f(0), so that no other proof is needed."""
        return self.gap <= self._resolution

    @property
    def _resolution(self) -> float:
        return 0.5 * resolution(len(self.r)) * self.size**2

    def along(self, t: Vector) -> None:
        """Try the bound along another functional t, and keep t for later."""
        with np.errstate(all="ignore"):
            length, products = 1.01 * float(np.linalg.norm(t)), rmatvec(self.matrix, t)
        if length < inf:
            self._functionals.append((t, products, length))
            self._look_beyond()
            self._try(len(self._functionals) - 1)

    def sharpen(self, atoms: Array, rows: Array | None = None) -> None:
        """Compute r and the slopes near zero in twice the precision, and try all functionals again.

        The rows of `atoms` are the atoms with weight, in the order of their columns. If `rows` is
        given, they have only the entries at these rows of the matrix, and are zero elsewhere.
        """
        part, k = slice(None) if rows is None else rows, len(self.used)
        self.r = self.b.copy()
        target, out = np.ascontiguousarray(self.b[part]), np.empty(atoms.shape[1])
        weights = self.x[self.used]
        kernels.accurate_residual(atoms, target, NOTHING, weights, np.arange(k), k, out)
        self.r[part] = out
        length = (1.0 + product_rounding(len(self.r))) * float(np.linalg.norm(self.r))
        self.distance = UNIT * length + (doubled_rounding(k) + self.inexact) * self.reach
        self._try_all(atoms, part)

    def level(self, atoms: Array, rows: Array | None = None) -> None:
        """Try all functionals with the part of r that is orthogonal to the atoms with weight.

        Where weights are so large that their rounding shows in r, the slopes of their atoms are not
        small enough. A proof may use any vector in place of r: half its squared distance from r is
        added to the gap. The arguments are those of `sharpen`, which comes first.
        """
        part = slice(None) if rows is None else rows
        kept = self.r, self.g, self.error, self.errors, self.length, self.distance
        self.r = self.r.copy()
        self.r[part] -= np.linalg.lstsq(atoms.T, self.r[part], rcond=EPS)[0] @ atoms
        moved = float(np.linalg.norm(self.r - kept[0]))
        self.distance += (1.0 + product_rounding(len(self.r))) * moved + UNIT * self.length
        self._try_all(atoms, part)
        self.r, self.g, self.error, self.errors, self.length, self.distance = kept

    def _try_all(self, atoms: Array, part: Any) -> None:
        """Try all functionals with r as it is now, slopes near zero in twice the precision."""
        length = (1.0 + product_rounding(len(self.r))) * float(np.linalg.norm(self.r))
        self.length = length + FLOOR * self.size
        self.g = rmatvec(self.matrix, self.r)
        self.error = product_rounding(len(self.r)) * self.length
        self.errors = self.error * self.known.norms
        self._make_exact(atoms, self.used, np.ascontiguousarray(self.r[part]))
        close = np.abs(self.g) <= CLOSE_ROUNDINGS * self.errors
        close[self.used] = False
        others = np.flatnonzero(close)[:MOST_DOUBLED]
        if len(others):
            columns = np.stack([dense_column(self.matrix, int(j)) for j in others])
            self._make_exact(columns, others, self.r)
        self._look_beyond()
        for place in range(len(self._functionals)):
            self._try(place)
        # A smaller gap is not claimed: one of plain arithmetic at the resolution is kept as well.
        self.gap = max(self.gap, self._resolution)

    def along_level(self) -> None:
        """Try the shortest functional t with <t, a> >= ||a|| for all atoms whose slopes are level.

        There is one exactly if these atoms lie in an open half space.

        Notes
        -----
        With unit atoms E, min ||t|| over E't >= 1 is solved by z >= 0 that minimises
        ||E z||^2 + (1 - sum(z))^2: t = E z / (1 - sum(z)) (Lawson and Hanson, Solving Least
        Squares Problems, chapter 23).
        """
        close = np.abs(self.g) <= CLOSE_ROUNDINGS * self.errors
        level = np.flatnonzero(close & (self.known.norms > 0))
        if not 0 < len(level) <= MOST_DOUBLED:
            return
        unit = np.ones((len(level), len(self.r) + 1))
        for i, j in enumerate(level):
            unit[i, :-1] = dense_column(self.matrix, int(j)) * self.known.inverse_norms[j]
        target, z = np.zeros(unit.shape[1]), np.zeros(len(level))
        target[-1] = 1.0
        slopes, most = np.empty(len(level)), 10 * len(level) + 10
        kernels.fit_target(unit, target, NO_GRAM, z, slopes, 0.0, len(level), most)
        combined = z @ unit
        if combined[-1] < 1.0:
            self.along(combined[:-1] / (1.0 - combined[-1]))

    def _make_exact(self, atoms: Array, places: Array, r: Vector) -> None:
        """Compute the slopes of columns `places`, the rows of `atoms`, in twice the precision."""
        exact, k = np.empty(len(atoms)), len(atoms)
        kernels.accurate_slopes(np.ascontiguousarray(atoms), np.arange(k), k, r, exact)
        noise = (doubled_rounding(len(r)) + self.inexact) * self.length
        self.g[places] = exact
        self.errors[places] = 2 * UNIT * np.abs(exact) + noise * self.known.norms[places]

    def _try(self, place: int) -> None:
        """Try the bound of r tilted along one of the functionals."""
        _, s, length = self._functionals[place]
        mistake = self._product_error(length)
        g, errors, s_errors, x = self.g, self.errors, mistake * self.known.norms, self.x
        if self.beyond is not None:  # two atoms of length one stand for all others
            tilt, none = self.beyond.seen.tilts[place], np.zeros(2)
            g, s = np.append(g, [tilt.low, -tilt.high]), np.append(s, [1.0, -1.0])
            errors, s_errors, x = (np.append(each, none) for each in (errors, s_errors, x))
        gap = kernels.tilted_gap(g, errors, s, s_errors, x, length, self.distance)
        self.gap = min(self.gap, float(gap))

    def _product_error(self, length: float) -> float:
        """Return a bound on the error of <a, t> for an atom of length one, ||t|| <= length."""
        return product_rounding(len(self.r)) * length

    def _look_beyond(self) -> None:
        """Ask the atoms that the matrix does not have about r and all functionals, in one pass."""
        if self.beyond is not None:
            asked = [(t, self._product_error(length)) for t, _, length in self._functionals]
            self.beyond.look(self.r, self.error, asked)

    def settled(self) -> tuple[float, bool]:
        """Return the gap, or an estimate of it, and whether it is proved."""
        length = self.length + self.distance
        g, norms, x = self.g, self.known.norms, self.x
        if self.beyond is not None:
            g = np.append(g, self.beyond.seen.steepest)
            norms, x = np.append(norms, 1.0), np.append(x, 0.0)
        gap, proven = kernels.settled(self.gap, g, norms, x, length, self.size)
        return float(gap), bool(proven)


def plain_error(m: int, count: int, reach: float) -> float:
    """Return a bound on the error of <a, b - A x> in plain arithmetic, for an atom of length one.

    Proofs are about the slopes of the exact residual. That of plain arithmetic differs from it by
    the rounding of its own sums, which is counted here. `m` is the number of rows, `count` that of
    atoms with weight, `reach` is ||b|| plus the sum of their weights times their lengths.
    """
    return 1.05 * product_rounding(m + count + 16) * reach


def dense_column(matrix: Any, j: int) -> Vector:
    """Return a column of a matrix of any kind as an array."""
    return dense_vector(column(matrix, j))
