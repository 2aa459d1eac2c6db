"""Atom sets made of other atom sets."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.atoms.base import Atoms, AtomSet
from conepursuit.atoms.dictionary import Dictionary, gauge
from conepursuit.atoms.vectors import UnitVectors, Vectors


class Symmetric(AtomSet):
    """The atoms of a set and their negatives; their cone is the linear span.

    Parameters
    ----------
    atoms : AtomSet
        A set of vectors. The atom ``sign * a`` has the key ``(sign, key of a)``.
    """

    symmetric = True

    def __init__(self, atoms: AtomSet) -> None:
        self.atoms = _vector_set(atoms, "Symmetric")
        self.shape, self.accuracy = atoms.shape, atoms.accuracy

    def __repr__(self) -> str:
        return f"Symmetric({self.atoms!r})"

    def lmo(self, gradient: Array) -> Vectors:
        atom = self.atoms.steepest(gradient)
        assert isinstance(atom, Vectors)
        sign = -1 if atom.rescore(gradient, atom)[0] > 0 else 1
        lookup = _SignedPass(atom) if callable(atom.lookup) else atom.lookup
        return atom.tagged(sign, float(sign), lookup)

    def atom(self, key: Any) -> Vectors | None:
        sign, base = _split(key, (-1, 1), self)
        atom = self.atoms.atom(base)
        assert atom is None or isinstance(atom, Vectors)
        return None if atom is None else atom.tagged(sign, float(sign))

    def steepness(self, gradient: Array, answer: Atoms, penalty: float, signed: bool) -> float:
        lookup = getattr(answer, "lookup", None)
        if lookup is None:
            return super().steepness(gradient, answer, penalty, signed)
        base = lookup.answer if isinstance(lookup, _SignedPass) else answer
        return self.atoms.steepness(gradient, base, penalty, signed=True)

    def fetch(self, keys: Iterable[Any]) -> None:
        self.atoms.fetch(_split(key, (-1, 1), self)[1] for key in keys)

    @property
    def passes(self) -> float | None:
        """How often all blocks of the set were read, if it is beyond memory."""
        return self.atoms.passes

    def empty(self) -> Vectors:
        return Vectors.empty(self.shape)

    @property
    def radius(self) -> float | None:
        return self.atoms.radius

    def gauge(self, x: Array) -> float | None:
        if isinstance(self.atoms, UnitVectors):
            return float(np.abs(x).sum())
        if isinstance(self.atoms, Dictionary):
            dense = self.atoms.dense
            return gauge(np.hstack([dense, -dense]), x)
        return None


class _SignedPass:
    """Maps keys of a `Symmetric` set to scores, which the oracle of its base set has computed."""

    __slots__ = ("answer",)

    def __init__(self, answer: Vectors) -> None:
        self.answer = answer

    def __call__(self, keys: tuple[Any, ...]) -> Vector:
        assert self.answer.lookup is not None
        signs = np.array([key[0] for key in keys], dtype=np.float64)
        return signs * self.answer.lookup(tuple(key[1] for key in keys))


class Union(AtomSet):
    """The atoms of several sets of one shape.

    Parameters
    ----------
    *sets : AtomSet
        Sets of vectors. An atom of the i-th set has the key ``(i, key in that set)``.
    """

    def __init__(self, *sets: AtomSet) -> None:
        if not sets:
            raise ValueError("Union needs at least one atom set; got none.")
        self.sets = tuple(_vector_set(each, "Union") for each in sets)
        shapes = {each.shape for each in sets}
        if len(shapes) > 1:
            raise ValueError(f"the sets of a Union need atoms of one shape; got {sorted(shapes)}.")
        (self.shape,) = shapes
        known = [each.accuracy for each in sets if each.accuracy is not None]
        self.accuracy = min(known) if len(known) == len(sets) else None
        self.symmetric = all(each.symmetric for each in sets)

    def __repr__(self) -> str:
        return f"Union({', '.join(map(repr, self.sets))})"

    def lmo(self, gradient: Array) -> Vectors:
        answers = [each.lmo(gradient) for each in self.sets]
        scores = [float(atom.rescore(gradient, atom)[0]) for atom in answers]
        best = int(np.argmin(scores))
        winner = answers[best]
        assert isinstance(winner, Vectors)
        return winner.tagged(best)

    def atom(self, key: Any) -> Vectors | None:
        index, base = _split(key, range(len(self.sets)), self)
        atom = self.sets[index].atom(base)
        assert atom is None or isinstance(atom, Vectors)
        return None if atom is None else atom.tagged(index)

    def empty(self) -> Vectors:
        return Vectors.empty(self.shape)

    @property
    def radius(self) -> float | None:
        radii = [each.radius for each in self.sets]
        known = [r for r in radii if r is not None]
        return max(known) if len(known) == len(radii) else None

    @property
    def passes(self) -> float | None:
        """How often all blocks of those sets that are beyond memory were read."""
        known = [each.passes for each in self.sets if each.passes is not None]
        return sum(known) if known else None

    def positive_functional(self) -> Array | None:
        """Return the functional of one of the sets that is positive on all of them, or None."""
        for each in self.sets:
            t = each.positive_functional()
            if t is None:
                continue
            least = min(float(other.lmo(t).inner(t)[0]) for other in self.sets)
            least -= self.noise(t) * (self.radius or 1.0)
            if least > 0 and self.accuracy == 1.0:
                return t / min(least, 1.0)
        return None


def _split(key: Any, tags: Container[int], atoms: AtomSet) -> tuple[int, Any]:
    """Return the tag of a key and the key in the set it points to."""
    if not (isinstance(key, tuple) and len(key) == 2 and key[0] in tags):
        raise ValueError(f"{atoms!r} has no atom with the key {key!r}.")
    return int(key[0]), key[1]


def _vector_set(atoms: AtomSet, name: str) -> AtomSet:
    if not isinstance(atoms, AtomSet):
        raise ValueError(
            f"{name} needs atom sets; got {type(atoms).__name__}. "
            f"Use {name}(Dictionary(D)) for the columns of a matrix D."
        )
    if not isinstance(atoms.empty(), Vectors):
        raise ValueError(f"{name} needs sets of vectors; got {atoms!r}.")
    return atoms
