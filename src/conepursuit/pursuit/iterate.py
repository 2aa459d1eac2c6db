"""Where we are (Iterate), what we know there (Local), where we may go (Direction)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from typing import NamedTuple

import numpy as np

from conepursuit.arrays import Array, Vector, inner, norm
from conepursuit.atoms.base import Atoms
from conepursuit.pursuit.domains import Domain

TIE = 1e-13
"""Scores that differ by at most this times ||g|| ||a|| tie: rounding may have set them apart.

Of atoms that tie the one of largest weight is taken; the origin goes before them all.
"""


class Line(NamedTuple):
    """What a line search knows before it begins: how f falls along a vector, and how far to go.

    Attributes
    ----------
    slope : float
        The slope of f, with the penalty, at the start.
    max_step : float
        The longest step allowed.
    charge : float
        The penalty's share of the slope, the same all along the line.
    """

    slope: float
    max_step: float = inf
    charge: float = 0.0


class Direction(NamedTuple):
    """d = gain * toward - loss * atoms[away] - shrink * x, for steps in [0, max_step].

    Attributes
    ----------
    kind : str
        "forward", "away", "pairwise", "shrink" or "refit".
    slope : float
        <grad f(x), d> (with the penalty), or 0 where d does not descend. For a refit, which has
        no d, minus a measure of how far from stationary x is.
    max_step : float
        The step at which a stored weight becomes zero, inf where none decreases.
    charge : float
        The penalty's share of the slope, the same all along the line.
    """

    kind: str
    slope: float
    max_step: float = inf
    toward: Atoms | None = None
    gain: float = 1.0
    away: int | None = None
    loss: float = 1.0
    shrink: float = 0.0
    charge: float = 0.0

    @property
    def line(self) -> Line:
        """Slope, longest step and charge of d, as a line search takes them."""
        return Line(self.slope, self.max_step, self.charge)


@dataclass(frozen=True, slots=True)
class Iterate:
    """x = sum_i weights[i] atoms[i]; immutable, so that a callback may keep it.

    The active set holds the atoms with weight, each once. The origin is not stored.
    """

    x: Array
    atoms: Atoms
    weights: Vector

    @property
    def size(self) -> float:
        """The sum of the absolute weights, an upper bound on the atomic norm of x."""
        return float(np.abs(self.weights).sum())

    def position(self, atom: Atoms) -> int | None:
        """Return where an atom is in the active set, None if it is not active."""
        try:
            return self.atoms.keys.index(atom.keys[0])
        except ValueError:
            return None

    def vector(self, d: Direction) -> Array:
        """Return d as an array."""
        parts = []
        if d.toward is not None:
            parts.append(d.toward.combine(np.array([d.gain])))
        if d.away is not None:
            parts.append(self.atoms[[d.away]].combine(np.array([-d.loss])))
        if d.shrink:
            parts.append(-d.shrink * self.x)
        vector = parts[0]
        for part in parts[1:]:
            vector += part
        return vector

    def moved(self, d: Direction, step: float, vector: Array) -> Iterate:
        """Return the iterate at x + step * d; `vector` is d as an array.

        After a step of `max_step` the weight that limits it is exactly zero. Atoms without weight
        leave the active set.
        """
        weights = self.weights * (1.0 - step * d.shrink)
        if d.away is not None:
            reduced = weights[d.away] - step * d.loss
            weights[d.away] = 0.0 if step >= d.max_step else max(reduced, 0.0)
        elif d.shrink > 0 and step >= d.max_step and d.toward is None:
            weights[:] = 0.0
        atoms = self.atoms
        if d.toward is not None:
            place, added = self.position(d.toward), step * d.gain
            if place is None:
                atoms, weights = atoms.join(d.toward), np.append(weights, added)
            else:
                weights[place] += added
        if not weights.all():  # the active set holds atoms with weight only
            keep = np.flatnonzero(weights)
            atoms, weights = atoms[keep], weights[keep]
        if atoms.factored:  # a sum of factors would grow with every step
            return Iterate(self.x, atoms, weights).recomputed()
        return Iterate(self.x + step * vector, atoms, weights)

    def joined(self, atom: Atoms) -> Iterate:
        """Return the iterate with an atom in its active set; one that is new has weight 0."""
        if self.position(atom) is not None:
            return self
        return Iterate(self.x, self.atoms.join(atom), np.append(self.weights, 0.0))

    def recomputed(self) -> Iterate:
        """Return the iterate with x made afresh from atoms and weights."""
        x = self.atoms.combine(self.weights) if len(self.weights) else 0.0 * self.x
        return Iterate(x, self.atoms, self.weights)

    def same_weights(self, other: Iterate) -> bool:
        """Return whether two iterates have the same atoms with the same weights."""
        return (
            len(self.weights) == len(other.weights)
            and bool((self.weights == other.weights).all())
            and self.atoms.keys == other.atoms.keys
        )


class Local:
    """First-order information at an iterate; the oracle is asked once.

    With a penalty, lambda is added to the score of every atom.

    Attributes
    ----------
    answer : Atoms
        The oracle's answer z, a batch of one.
    gain : float
        -1 where weights may be negative and f descends along -z, otherwise 1.
    score : float
        gain * <g, z>. If it is negative, f descends along gain * z; otherwise the origin counts as
        the oracle's answer.
    cost : float
        The penalty on the weights of x.
    height : float
        <g, x>, plus the cost.
    """

    def __init__(self, domain: Domain, iterate: Iterate, gradient: Array) -> None:
        self.domain, self.iterate, self.gradient = domain, iterate, gradient
        self.answer = (domain.atoms.steepest if domain.signed else domain.atoms.lmo)(gradient)
        score = float(self.answer.rescore(gradient, self.answer)[0])
        self.gain = -1.0 if domain.signed and score > 0 else 1.0
        self.score = self.gain * score + domain.penalty
        self.cost = domain.penalty * iterate.size if domain.penalty else 0.0
        self.height = inner(gradient, iterate.x) + self.cost

    @cached_property
    def floor(self) -> float | None:
        """A lower bound on the score of every atom, without the penalty; None if none is known."""
        if self.domain.signed:
            accuracy = self.domain.atoms.accuracy
            return None if accuracy is None else min(self.score / accuracy, 0.0)
        return self.domain.atoms.floor(self.gradient, self.answer)

    @property
    def accuracy(self) -> float:
        """Accuracy delta of the oracle's answer: its score over the least one; nan if unknown."""
        atoms, signed = self.domain.atoms, self.domain.signed
        least = self.floor if signed else atoms.measured(self.gradient, self.answer)
        if least is None:
            return nan
        score = self.score - self.domain.penalty
        return min(max(score / least, 0.0), 1.0) if least < 0 else 1.0

    @cached_property
    def scores(self) -> Vector:
        """The scores (<g, a_i>)_i of the active atoms, plus the penalty."""
        return self.iterate.atoms.rescore(self.gradient, self.answer) + self.domain.penalty

    @cached_property
    def noise(self) -> Vector:
        """How far each of `scores` may be off by rounding."""
        return TIE * norm(self.gradient) * self.iterate.atoms.norms()

    @cached_property
    def away(self) -> int | None:
        """The active atom of steepest ascent; None is the origin, active while there is room.

        Exact line searches make ties, and rounding must not decide them (errata A3). Where
        scores agree up to rounding the atom of largest weight is taken, which clips the step
        least. The origin wins every tie, since its weight in a cone has no bound.
        """
        if not len(self.iterate.weights):
            return None
        scores = self.scores
        best = int(scores.argmax())
        v = self._heaviest(scores >= scores[best] - self.noise[best], best)
        if scores[v] <= self.noise[v] and self.domain.room(self.iterate.weights) > 0:
            return None
        return v

    @cached_property
    def settled(self) -> tuple[Atoms, float]:
        """The atom z to go to, and its score, which is 0 if z descends by rounding only.

        It is the oracle's answer unless active atoms score as low, up to rounding. Of those z is
        the one of largest weight. It gets the oracle's score, or its own if that is lower by more
        than rounding, as it may be with an approximate oracle.
        """
        if not len(self.iterate.weights):
            return self.answer, min(self.score, 0.0)
        scores = self.scores
        best = int(scores.argmin())
        if scores[best] > self.score + self.noise[best]:
            return self.answer, min(self.score, 0.0)
        place = self._heaviest(scores <= scores[best] + self.noise[best], best)
        same = self.iterate.atoms.keys[place] == self.answer.keys[0]
        z = self.answer if same else self.iterate.atoms[[place]]
        beaten = scores[place] < self.score - self.noise[place]
        score = float(scores[place]) if beaten else self.score
        return z, score if score < -self.noise[best] else 0.0

    def _heaviest(self, near: Array, best: int) -> int:
        """Return the atom of largest weight among those whose scores tie with that of `best`.

        `near` says which agree with it up to the rounding of `best`. They must agree up to their
        own rounding as well.
        """
        places = near.nonzero()[0]
        if len(places) == 1:
            return best
        own = np.abs(self.scores[places] - self.scores[best]) <= self.noise[places]
        places = places[own]
        return int(places[self.iterate.weights[places].argmax()])

    def direction(
        self,
        kind: str,
        max_step: float = inf,
        *,
        gain: float = 0.0,
        toward: Atoms | None = None,
        score: float | None = None,
        away: int | None = None,
        loss: float = 1.0,
        shrink: float = 0.0,
    ) -> Direction:
        """Return d = gain * z - loss * atoms[away] - shrink * x with its slope, 0 for an ascent.

        z is the oracle's answer, or an atom `toward` with its `score`.
        """
        slope, added = 0.0, 0.0
        if gain:
            slope, added = gain * (self.score if score is None else score), gain
        if away is not None:
            slope, added = slope - loss * float(self.scores[away]), added - loss
        if shrink:
            slope -= shrink * self.height
        charge = 0.0
        if self.domain.penalty:
            charge = self.domain.penalty * (added - shrink * self.iterate.size)
        return Direction(
            kind,
            min(slope, 0.0),
            max_step,
            (toward or self.answer) if gain else None,
            gain * self.gain,
            away,
            loss,
            shrink,
            charge,
        )
