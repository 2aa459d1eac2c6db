"""The two contracts of an atom set: the set with its oracle, and a batch of its atoms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from ast import literal_eval
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, norm
from conepursuit.rounding import product_rounding


class Atoms(ABC):
    """A batch of k atoms of one set; weights and scores live on the host.

    One atom is a batch of length one. Batches are immutable: `join` and indexing return new ones.

    Attributes
    ----------
    keys : tuple of hashable
        The identity of each atom. An atom that is selected again is recognised by its key and has
        its weight increased, so that the active set stays a set.
    factored : bool
        Whether combinations are kept as factors, so that making one costs next to nothing.
    """

    keys: tuple[Any, ...]
    factored: bool = False

    def __len__(self) -> int:
        return len(self.keys)

    @abstractmethod
    def inner(self, gradient: Array) -> Vector:
        """Return the scores (<g, a_i>)_i."""

    @abstractmethod
    def combine(self, weights: Vector) -> Array:
        """Return sum_i w_i a_i."""

    @abstractmethod
    def gram(self, other: Atoms | None = None) -> Array:
        """Return (<a_i, b_j>)_ij, where b are the atoms of `other`, or these."""

    def weighted_gram(self, weights: Array, other: Atoms) -> Array:
        """Return (<a_i, weights * b_j>)_ij, where b are the atoms of `other`."""
        products = [self.inner(weights * other[[j]].combine(np.ones(1))) for j in range(len(other))]
        return np.stack(products, axis=1)

    @abstractmethod
    def join(self, other: Atoms) -> Atoms:
        """Return the batch with the atoms of `other`, which it does not hold yet, at its end."""

    @abstractmethod
    def __getitem__(self, indices: Sequence[int] | Array) -> Atoms: ...

    def drift(self, weights: Vector) -> Array | float:
        """Return how far each entry of ``combine(weights)`` may be from that of the exact sum.

        By default it is one number, a bound on the norm of the difference.
        """
        return product_rounding(len(self)) * float(np.abs(weights) @ self.norms())

    def norms(self) -> Vector:
        """Return (||a_i||)_i."""
        norms: Vector = np.sqrt(np.diag(self.gram()))
        return norms

    def rescore(self, gradient: Array, answer: Atoms) -> Vector:
        """Return the scores, reusing what the oracle found when it gave `answer`.

        An oracle that passes over its whole set has scored the active atoms on the way. Sets
        whose oracle does so override this; it must agree with ``inner(gradient)``.
        """
        return self.inner(gradient)

    def saved(self) -> dict[str, Any]:
        """Return what a `Checkpoint` keeps of the batch, as arrays under their names.

        That is the keys, from which ``AtomSet.atom`` makes the atoms anew. Sets whose keys are no
        indices must have batches that keep more, as `Vectors` do.
        """
        if not all(is_index(key) for key in self.keys):
            raise ValueError(
                f"a checkpoint keeps atoms by integer keys, or as Vectors; got "
                f"{type(self).__name__} with keys such as {self.keys[0]!r}. Use Vectors, or give "
                "the class methods saved and restored."
            )
        return {"keys": packed_keys(self.keys)}

    def restored(self, saved: Any) -> Atoms | None:
        """Return the batch of which a `Checkpoint` holds what `saved` returned.

        It is asked of an empty batch of the set. None where only keys were kept.
        """
        return None


def is_index(key: Any) -> bool:
    """Return whether a key is an integer, or a tuple of such, as those of a `Union` may be."""
    if isinstance(key, tuple):
        return all(is_index(part) for part in key)
    return isinstance(key, int | np.integer)


def packed_keys(keys: tuple[Any, ...]) -> Array:
    """Return keys as an array of integers or, if some are none, of their texts in Python."""
    if all(isinstance(key, int | np.integer) for key in keys):
        return np.array(keys, dtype=np.int64)
    texts = [repr(key) for key in keys]
    for key, text in zip(keys, texts, strict=True):
        try:
            same = literal_eval(text) == key
        except (ValueError, SyntaxError):
            same = False
        if not same:
            raise ValueError(
                f"a checkpoint keeps keys of atoms that are numbers, bytes, strings or tuples of "
                f"these; got {key!r}."
            )
    return np.array(texts)


def unpacked_keys(packed: Array) -> tuple[Any, ...]:
    """Return the keys that `packed_keys` was given."""
    if packed.dtype.kind == "i":
        return tuple(packed.tolist())
    return tuple(literal_eval(text) for text in packed.tolist())


class AtomSet(ABC):
    """A bounded set of atoms, reached through its linear minimisation oracle.

    The origin belongs to every set and is kept implicit. A subclass needs `lmo`, `empty` and
    `shape`.

    Attributes
    ----------
    shape : tuple of int
        Shape of one atom.
    accuracy : float
        delta of an approximate oracle: ``<g, lmo(g)> <= delta * min_a <g, a>`` whenever that
        minimum is negative. 1 for an exact oracle, None for one that promises nothing; then no
        gap is a proof, unless `floor` measures what each answer is worth.
    symmetric : bool
        Whether -a is in the set for every a.
    n_atoms : int or None
        How many atoms there are, where their keys are 0, 1, ..., as those of the columns of a
        Dictionary; None for other sets.
    """

    shape: tuple[int, ...]
    accuracy: float | None = 1.0
    symmetric: bool = False
    n_atoms: int | None = None

    @abstractmethod
    def lmo(self, gradient: Array) -> Atoms:
        """Return the atom that minimises <g, a>, as a batch of one."""

    @abstractmethod
    def empty(self) -> Atoms:
        """Return a batch without atoms, which those of the oracle can join."""

    def atom(self, key: Any) -> Atoms | None:
        """Return the atom with a key, None where it cannot be made from the key alone.

        Raises ValueError if no atom of this set has such a key.
        """
        return None

    def fetch(self, keys: Iterable[Any]) -> None:  # noqa: B027  # most sets need not prepare
        """Prepare for calls of `atom` with these keys; sets that read their atoms do it at once."""

    @property
    def passes(self) -> float | None:
        """How often all blocks of a dictionary beyond memory were read; None for other sets."""
        return None

    def steepest(self, gradient: Array) -> Atoms:
        """Return the atom of largest absolute score, as a batch of one."""
        down = self.lmo(gradient)
        if self.symmetric:
            return down
        up = self.lmo(-gradient)
        return down if -down.inner(gradient)[0] >= up.inner(gradient)[0] else up

    def floor(self, gradient: Array, answer: Atoms) -> float | None:
        """Return a lower bound on min_a <g, a>, the origin included; None where nothing is known.

        By default it is the score of the oracle's answer, divided by the accuracy.
        """
        if self.accuracy is None:
            return None
        return min(float(answer.rescore(gradient, answer)[0]) / self.accuracy, 0.0)

    def measured(self, gradient: Array, answer: Atoms) -> float | None:
        """Return what `floor` does, or a tighter value that is measured but not proved.

        The trace reports the accuracy of an answer relative to it; gaps use `floor`.
        """
        return self.floor(gradient, answer)

    def steepness(self, gradient: Array, answer: Atoms, penalty: float, signed: bool) -> float:
        """Return max_a (-<g, a> - penalty) / ||a||; by default, only over the oracle's answer.

        Unlike the violation it does not depend on the scale of single atoms. With `signed` the
        negatives of the atoms count as well.
        """
        length = float(answer.norms()[0])
        score = float(answer.inner(gradient)[0])
        descent = (abs(score) if signed else -score) - penalty
        return max(descent, 0.0) / length if length > 0 else 0.0

    def noise(self, gradient: Array) -> float:
        """Return a bound on the rounding of <g, a>, for an atom of length one."""
        return product_rounding(prod(self.shape)) * norm(gradient)

    def ascends(self, gradient: Array, answer: Atoms, penalty: float, margin: float = 0.0) -> bool:
        """Return whether <g, a> >= margin ||a|| - penalty for every atom, whatever the rounding.

        `answer` is the oracle's for g. The default is False if the oracle is not exact.
        """
        rounding = (self.noise(gradient) + margin) * (self.radius or float(answer.norms()[0]))
        score = float(answer.rescore(gradient, answer)[0])
        return self.accuracy == 1.0 and score + penalty >= rounding

    @property
    def radius(self) -> float | None:
        """The largest norm of an atom, where it is known."""
        return None

    def positive_functional(self) -> Array | None:
        """Return t with <t, a> >= 1 for every atom but the origin, where one is at hand.

        Such a t exists exactly when the cone is pointed and the atoms stay away from the origin.
        With it a first-order test becomes a proof; see `shift`. A set may replace the 1 by
        something else, as a Dictionary does by ||a||, if its `shift` does the same.
        """
        return None

    def shift(self, gradient: Array, answer: Atoms, penalty: float) -> float:
        """Return c >= 0 so that <g + c t, a> >= -penalty on all atoms, t the functional.

        It is large enough to cover the rounding of the scores.
        """
        least = self.floor(gradient, answer)
        if least is None:
            least = min(float(answer.rescore(gradient, answer)[0]), 0.0)
        rounding = self.noise(gradient) * (self.radius or float(answer.norms()[0]))
        return max(0.0, rounding - least - penalty)

    def gauge(self, x: Array) -> float | None:
        """Return min{c : x in c conv(A u {0})}, inf outside the cone, None where unknown."""
        return None
