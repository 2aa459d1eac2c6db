"""Atom sets given by a user's function, and an oracle as bad as its accuracy admits."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import Array, as_float_array
from conepursuit.atoms.base import Atoms, AtomSet
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.atoms.vectors import Vectors, as_shape, checked_fingerprint, fingerprint


class FunctionAtoms(AtomSet):
    """A set given by a function that minimises <g, a> over it.

    Parameters
    ----------
    oracle : callable
        ``oracle(g)`` returns an atom, an array of the shape of g. Equal arrays are one atom.
    shape : int or tuple of int
        Shape of one atom.
    accuracy : float or None
        delta in (0, 1] if the oracle is approximate: ``<g, oracle(g)> <= delta * min_a <g, a>``.
        None for a heuristic that promises nothing: then no gap is called proven.
    radius : float, optional
        The largest norm of an atom.
    functional : array_like, optional
        t with <t, a> >= 1 for every atom but the origin.
    """

    def __init__(
        self,
        oracle: Callable[[Array], Any],
        shape: int | tuple[int, ...],
        *,
        accuracy: float | None = 1.0,
        radius: float | None = None,
        functional: Any = None,
    ) -> None:
        self.oracle, self.shape = oracle, as_shape(shape)
        self.accuracy = None if accuracy is None else checked_accuracy(accuracy)
        if radius is not None and not radius > 0:
            raise ValueError(f"the radius is the largest norm of an atom; got {radius}.")
        self._radius = radius
        self._functional = None if functional is None else as_float_array(functional, "functional")
        if self._functional is not None and self._functional.shape != self.shape:
            raise ValueError(
                f"functional must have the shape of an atom, {self.shape}; "
                f"got {self._functional.shape}."
            )

    def __repr__(self) -> str:
        return f"FunctionAtoms({getattr(self.oracle, '__name__', self.oracle)}, {self.shape})"

    def atom(self, key: Any) -> None:
        checked_fingerprint(key, self)

    def lmo(self, gradient: Array) -> Vectors:
        atom = as_float_array(self.oracle(gradient), "the oracle's answer")
        if atom.shape != self.shape:
            raise ValueError(
                f"the oracle must return an atom of shape {self.shape}; got {atom.shape}."
            )
        row = atom.reshape(-1).copy()  # the function may reuse its buffer
        return Vectors.single(self.shape, fingerprint(row), row)

    def empty(self) -> Vectors:
        return Vectors.empty(self.shape)

    @property
    def radius(self) -> float | None:
        return self._radius

    def positive_functional(self) -> Array | None:
        return self._functional


class ApproximateOracle(AtomSet):
    """A dictionary whose oracle returns the worst atom that an accuracy of delta admits.

    The atom returned is the one of largest <g, a> among those with
    ``<g, a> <= delta * min_b <g, b>``. It is meant for tests of what theorems promise.

    Parameters
    ----------
    atoms : Dictionary
        The exact set.
    accuracy : float
        delta in (0, 1].
    """

    def __init__(self, atoms: Dictionary, accuracy: float) -> None:
        if not isinstance(atoms, Dictionary):
            raise ValueError(
                f"ApproximateOracle needs a Dictionary; got {type(atoms).__name__}. "
                "Use ApproximateOracle(Dictionary(D), accuracy)."
            )
        self.atoms, self.shape, self.n_atoms = atoms, atoms.shape, atoms.n_atoms
        self.accuracy: float = checked_accuracy(accuracy)

    def __repr__(self) -> str:
        return f"ApproximateOracle({self.atoms!r}, {self.accuracy})"

    def lmo(self, gradient: Array) -> Vectors:
        scores = self.atoms.scores(gradient)
        least = float(scores.min())
        if least >= 0:
            return self.atoms.lmo(gradient)
        admitted = np.flatnonzero(scores <= self.accuracy * least)
        return self.atoms.answer(int(admitted[scores[admitted].argmax()]), scores)

    def atom(self, key: Any) -> Vectors:
        return self.atoms.atom(key)

    def steepness(self, gradient: Array, answer: Atoms, penalty: float, signed: bool) -> float:
        return self.atoms.steepness(gradient, answer, penalty, signed)

    def empty(self) -> Vectors:
        return self.atoms.empty()

    @property
    def radius(self) -> float | None:
        return self.atoms.radius

    def positive_functional(self) -> Array | None:
        t, norms = self.atoms.positive_functional(), self.atoms.norms
        if t is None or norms is None:
            return t
        # delta is relative to <g, a>, not to <g, a> / ||a||: <t, a> >= 1 is needed
        return t / float(norms[norms > 0].min(initial=inf))

    def gauge(self, x: Array) -> float | None:
        return self.atoms.gauge(x)


def checked_accuracy(accuracy: float) -> float:
    """Return delta as a float in (0, 1]."""
    if not 0 < accuracy <= 1:
        raise ValueError(f"accuracy is delta in (0, 1], 1 for an exact oracle; got {accuracy}.")
    return float(accuracy)
