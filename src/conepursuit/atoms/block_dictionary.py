"""A finite set of atoms beyond memory: the columns of a Dask array."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import EPS, Array, Vector, norm
from conepursuit.atoms.base import Atoms
from conepursuit.atoms.dictionary import NOISE, Dictionary
from conepursuit.atoms.vectors import Vectors, checked_index
from conepursuit.linear import column
from conepursuit.linear.tasks import Facts

REMEMBERED = 4
"""Every pass answers for this many penalties, those of the last questions, and for none."""


class Candidate(NamedTuple):
    """An atom that a block proposes: its key, <g, a>, the same over ||a||, and the atom itself.

    The atom is None where a column has several blocks.
    """

    key: int
    score: float
    relative: float
    atom: Any = None


class Extremes(NamedTuple):
    """What a pass returns for a gradient g: some atoms, and bounds for all of them.

    Attributes
    ----------
    lowest, highest : Candidate
        The atoms of least and of largest score.
    steep : Candidate or None
        The atom of least score among those that descend by more than rounding, if there are any.
    slopes : dict
        For a penalty p, the least (<g, a> + p) / ||a|| and the least (p - <g, a>) / ||a||.
    """

    lowest: Candidate
    highest: Candidate
    steep: Candidate | None
    slopes: dict[float, tuple[float, float]]


class BlockDictionary(Dictionary):
    """The columns of a matrix in a Dask array, which ``Dictionary(D)`` makes of it.

    Parameters
    ----------
    matrix : dask.array.Array, or xarray.DataArray with one inside, shape (d, n)
        One atom per column, in dense or sparse blocks. NaN and infinity are found in the first
        pass.
    functional : array_like of shape (d,), optional
        As in `Dictionary`.

    Notes
    -----
    The oracle is one pass: every block returns its best atoms, not all scores. The first pass, in
    which the norms are computed, comes before that of the first iteration. Where a domain has a
    penalty, its first question takes one pass more.
    """

    _penalties: tuple[float, ...] = ()

    @property
    def passes(self) -> float:
        """How often all blocks were read."""
        passes: float = self.matrix.passes
        return passes

    def lmo(self, gradient: Array) -> Vectors:
        seen = self._look(gradient)
        best, steepest = seen.lowest, seen.slopes[0.0][0]
        if best.relative > 1e-6 * steepest and seen.steep is not None:
            best = seen.steep  # the score of a long atom may be rounding
        return self._answer(best, seen)

    def steepest(self, gradient: Array) -> Vectors:
        seen = self._look(gradient)
        down, up = seen.lowest, seen.highest
        return self._answer(down if -down.score >= up.score else up, seen)

    def _answer(self, best: Candidate, seen: Extremes) -> Vectors:
        atom = column(self.matrix, best.key) if best.atom is None else best.atom
        return Vectors.single(self.shape, best.key, atom, seen)

    def _look(self, gradient: Array, *penalties: float) -> Extremes:
        """Make a pass, which answers for the penalties given and for the last ones."""
        asked, noise = (*self._penalties, *penalties), NOISE * norm(gradient)
        found: Extremes = self.matrix.ask(
            _extremes, gradient, together=_together, with_columns=_with_atoms,
            noise=noise, penalties=asked,
        )  # fmt: skip
        return found

    def fetch(self, keys: Iterable[Any]) -> None:
        own = [checked_index(key, self.n_atoms, self) for key in keys]
        self.matrix.fetch(np.array(own, dtype=np.intp))

    def steepness(self, gradient: Array, answer: Atoms, penalty: float, signed: bool) -> float:
        down, up = self._slopes(gradient, answer, penalty)
        return max(0.0, -(min(down, up) if signed else down))

    def ascends(self, gradient: Array, answer: Atoms, penalty: float, margin: float = 0.0) -> bool:
        down, _ = self._slopes(gradient, answer, penalty)
        return down >= (1.0 + 8.0 * EPS) * (self.noise(gradient) + margin)

    def _slopes(self, gradient: Array, answer: Atoms, penalty: float) -> tuple[float, float]:
        """Return the slopes of `Extremes` for a penalty; a new penalty takes a pass."""
        seen = getattr(answer, "lookup", None)
        if not isinstance(seen, Extremes) or penalty not in seen.slopes:
            self._penalties = (*self._penalties, penalty)[-REMEMBERED:]
            seen = self._look(gradient, penalty)
        return seen.slopes[penalty]

    @cached_property
    def norms(self) -> Vector:
        """Norms of the columns."""
        facts = self.matrix.facts()
        norms: Vector = np.sqrt(facts.squares)
        if not (np.isfinite(norms).all() and ((norms == 0) == facts.zero).all()):
            raise ValueError(
                "the squares of some columns of the dictionary overflow or underflow. Scale the "
                "Dask array, such as D / D.max()."
            )
        return norms

    @cached_property
    def _ones(self) -> Array | None:
        try:
            return self._scaled(np.ones(self.shape), self.matrix.facts().sums)
        except ValueError:
            return None

    def gauge(self, x: Array) -> None:
        """Return None: the linear programme would need all columns in one place."""

    @property
    def dense(self) -> Array:
        """Refused: it would bring all blocks to this machine."""
        raise ValueError(
            f"{self!r} is in the blocks of a Dask array, and all of it is needed in memory for "
            "this. Use Dictionary(D.compute()) if it fits."
        )


def _extremes(
    products: Array,
    facts: Facts,
    first: int,
    *,
    noise: float,
    penalties: tuple[float, ...],
) -> Extremes:
    """Answer for one block."""
    scores, zero = products[0], facts.zero
    with np.errstate(all="ignore"):
        inverse = np.where(zero, 0.0, 1.0 / np.sqrt(facts.squares))
    relative = scores * inverse

    def candidate(place: Any) -> Candidate:
        return Candidate(first + int(place), float(scores[place]), float(relative[place]))

    def least(slopes: Vector) -> float:
        return float(np.where(zero, inf, slopes).min())

    steep = np.flatnonzero(relative < -noise)
    return Extremes(
        candidate(scores.argmin()),
        candidate(scores.argmax()),
        candidate(steep[scores[steep].argmin()]) if len(steep) else None,
        {
            p: (least((scores + p) * inverse), least((p - scores) * inverse))
            for p in {0.0, *penalties}
        },
    )


def _with_atoms(seen: Extremes, take: Any) -> Extremes:
    """Return the extremes with the atoms of their candidates."""

    def filled(candidate: Candidate | None) -> Any:
        if candidate is None:
            return None
        return candidate._replace(atom=take(np.array([candidate.key]))[0])

    lowest = filled(seen.lowest)
    same = seen.steep is not None and seen.steep.key == lowest.key
    steep = lowest if same else filled(seen.steep)
    return seen._replace(lowest=lowest, highest=filled(seen.highest), steep=steep)


def _together(answers: list[Extremes]) -> Extremes:
    """Return the extremes of some blocks; among equal scores the first column wins."""
    lowest, highest, steep, slopes = zip(*answers, strict=True)

    def low(candidate: Candidate) -> tuple[float, int]:
        return candidate.score, candidate.key

    def high(candidate: Candidate) -> tuple[float, int]:
        return -candidate.score, candidate.key

    steepest = [each for each in steep if each is not None]
    return Extremes(
        min(lowest, key=low),
        min(highest, key=high),
        min(steepest, key=low) if steepest else None,
        {p: tuple(min(each[p][i] for each in slopes) for i in (0, 1)) for p in slopes[0]},
    )
