"""The atoms of a dictionary in blocks that are not in a working set, as seen by passes over it.

A block returns its steepest atoms and, for a proof, two numbers for all its atoms together. The
slopes of all atoms are never sent.
"""

from __future__ import annotations

from functools import partial
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import EPS, Array, Vector
from conepursuit.linear import dense_vector
from conepursuit.linear.blocks import BlockMatrix
from conepursuit.linear.tasks import Facts
from conepursuit.matrix_fits.safe_units import inverted
from conepursuit.rounding import product_rounding

CANDIDATES = 512
"""This many atoms return from a pass, or as many as have weight if that is more.

A pass costs more than a fit on so many more atoms.
"""

SPARE = 2
"""How many times its share of the candidates a block returns, as it may have more of the best."""


class Tilt(NamedTuple):
    """The numbers v for which q - v t proves something, as far as the atoms of some blocks go.

    v must be at least `low` and at most `high`, so that <a, q - v t> <= 0 for all of them.
    """

    low: float
    high: float


class Seen(NamedTuple):
    """What a block, or all of them, returns for a vector q.

    Attributes
    ----------
    indices, slopes : arrays
        The atoms whose <a, q> / ||a|| are largest, and these numbers.
    columns : list
        The same atoms, or None where a column has several blocks.
    tilts : list of Tilt
        For each functional t of the question.
    steepest : float
        The largest <a, q> / ||a|| of all atoms outside the working set, 0 if none is positive.
    """

    indices: Array
    slopes: Vector
    columns: list[Any] | None
    tilts: list[Tilt]
    steepest: float


class Beyond:
    """The atoms outside a working set, and what the last pass has shown of them.

    Parameters
    ----------
    matrix : BlockMatrix
        The dictionary.

    Attributes
    ----------
    candidates : int
        How many atoms a pass should return, at least.
    inside, never : arrays of int
        The working set, and atoms that are forbidden; they do not count.
    q : array of shape (m,)
        The vector that the last pass asked about.
    seen : Seen
        What the last pass returned.
    """

    candidates = CANDIDATES
    q: Vector
    seen: Seen

    def __init__(self, matrix: BlockMatrix) -> None:
        self.matrix = matrix
        self.inside = self.never = np.empty(0, dtype=np.intp)

    def look(
        self, q: Vector, error: float, functionals: list[tuple[Vector | None, float]], most: int = 0
    ) -> None:
        """Make a pass.

        Parameters
        ----------
        q : array of shape (m,)
            The residual, or a vector near it.
        error : float
            A bound on the error of <a, q> for an atom of length one.
        functionals : list
            Vectors t, None for that of all ones, each with a bound on the error of <a, t> for an
            atom of length one.
        most : int
            How many atoms to return, if so many descend.
        """
        self._error, vectors = error, [t for t, _ in functionals if t is not None]
        share = -(-SPARE * most // self.matrix.column_blocks)
        out = np.union1d(self.inside, self.never)
        self.q, self.seen = q, self.matrix.ask(
            _look, q, *vectors, together=partial(_together, most=most), with_columns=_with_atoms,
            error=error, inside=out, most=min(share, most),
            functionals=[(t is None, mistake) for t, mistake in functionals],
        )  # fmt: skip
        if most and self.seen.columns is not None:
            found = zip(self.seen.indices.tolist(), self.seen.columns, strict=True)
            self.matrix.remember(dict(found))

    def look_ahead(self, r: Vector, error: float, most: int) -> None:
        """Make a pass for a residual, with the functional of all ones, and return candidates."""
        ones = product_rounding(len(r)) * sqrt(len(r))
        self.look(r, error, [(None, ones)], most)

    def forbid(self, atoms: Array) -> None:
        """Let some atoms not count any more, and make the last pass again without them."""
        self.never = atoms
        self.look_ahead(self.q, self._error, self.candidates)

    def put(self, scores: Vector, norms: Vector) -> None:
        """Write <a, q> of the atoms that the last pass returned into the places of these atoms."""
        seen = self.seen
        scores[seen.indices] = seen.slopes * norms[seen.indices]


def _together(answers: list[Seen], most: int) -> Seen:
    """Return what some blocks have seen as one, with at most `most` atoms."""
    indices, slopes, columns, tilts, steepest = zip(*answers, strict=True)
    every, steep = np.concatenate(indices), np.concatenate(slopes)
    best = np.lexsort((every, -steep))[:most]  # of equals the first ones
    taken = None
    if all(part is not None for part in columns):
        flat = [each for part in columns for each in part]
        taken = [flat[i] for i in best]
    joint = [
        Tilt(max(one.low for one in own), min(one.high for one in own))
        for own in zip(*tilts, strict=True)
    ]
    return Seen(every[best], steep[best], taken, joint, max(steepest))


def _look(
    products: Array,
    facts: Facts,
    first: int,
    *,
    error: float,
    inside: Array,
    most: int,
    functionals: list[tuple[bool, float]],
) -> Seen:
    """Answer for one block."""
    norms = np.sqrt(facts.squares)
    outside = ~facts.zero
    low, high = np.searchsorted(inside, (first, first + len(norms)))
    outside[inside[low:high] - first] = False
    with np.errstate(all="ignore"):
        slopes = np.where(outside, products[0] * inverted(norms), -inf)
    best = np.flatnonzero(slopes > 0)
    best = best[np.argsort(-slopes[best], kind="stable")[:most]]  # of equals the first ones
    used, tilts, others = np.flatnonzero(outside), [], iter(products[1:])
    for is_sum, mistake in functionals:
        s = facts.sums if is_sum else next(others)
        tilts.append(
            _tilt(products[0][used] + error * norms[used], s[used] - mistake * norms[used])
        )
    steepest = max(0.0, float(slopes.max(initial=0.0)))
    return Seen(best + first, slopes[best], None, tilts, steepest)


def _with_atoms(seen: Seen, take: Any) -> Seen:
    """Return what was seen with the atoms themselves."""
    return seen._replace(columns=[dense_vector(each) for each in take(seen.indices)])


def _tilt(need: Vector, firm: Vector) -> Tilt:
    """Return the bounds on v with need <= v firm for every atom; low is inf if there is no v."""
    descends, away = need > 0, firm < 0
    if not (firm[descends] > 0).all():
        return Tilt(inf, 0.0)
    low = float((need[descends] / firm[descends]).max(initial=0.0))
    with np.errstate(over="ignore"):
        high = float((need[away] / firm[away]).min(initial=inf))
    return Tilt(low * (1.0 + 8.0 * EPS), high * (1.0 - 16.0 * EPS))
