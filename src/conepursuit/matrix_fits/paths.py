"""What paths of fits with more and more atoms share: the choice of one of the fits."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from conepursuit.arrays import Array, Vector, count
from conepursuit.matrix_fits.results import Labels


@dataclass(frozen=True, eq=False)
class PathFit:
    """One fit on a path.

    Attributes
    ----------
    place : int
        Its index in every array and list of the path, from 0.
    n_atoms : int
        How many atoms it may have, and has unless fewer fit as well.
    support : array
        Its atoms, and those forced.
    weights : array
        Their weights.
    x : array of shape (n,)
        The weights of all atoms.
    """

    place: int
    n_atoms: int
    support: Array
    weights: Vector
    x: Vector


P = TypeVar("P", bound=PathFit)


@dataclass(frozen=True, eq=False)
class Path(Generic[P]):
    """Fits with more and more atoms; ``path[i]`` is the fit in place i.

    Attributes
    ----------
    n_atoms : array of int
        1, 2, ...; or from the number of forced atoms on, or from the least number that can fit.
    supports : list of arrays
        For each number, the atoms of the best fit found with at most so many, and those forced.
    weights : list of arrays
        The weights of these atoms: positive, or for forced atoms zero.
    labels : Labels
        The names of the columns of A, where it is a table.
    """

    n_atoms: Array
    supports: list[Array]
    weights: list[Vector]
    labels: Labels = field(default=Labels(), repr=False, kw_only=True)

    def __len__(self) -> int:
        return len(self.supports)

    @abstractmethod
    def __getitem__(self, place: int) -> P:
        """Return the fit in a place, from 0."""

    @property
    @abstractmethod
    def bic(self) -> Vector:
        """The Bayesian information criterion of every fit."""

    def _at(self, place: int, n: int) -> dict[str, Any]:
        """Return what all paths know of the fit in a place; n is the number of columns."""
        support, weights = self.supports[place], self.weights[place]
        x = np.zeros(n)
        x[support] = weights
        return {
            "place": range(len(self))[place],
            "n_atoms": int(self.n_atoms[place]),
            "support": support,
            "weights": weights,
            "x": x,
        }

    def to_frame(self) -> Any:
        """Return the weights as a pandas DataFrame: a row for each atom, a column for each size."""
        from pandas import DataFrame

        fits = [self[i] for i in range(len(self))]
        return DataFrame({fit.n_atoms: fit.x for fit in fits}, index=self.labels.atoms)

    def at_most(self, n_atoms: int) -> P:
        """Return the best fit found with at most `n_atoms`."""
        place = int(min(count(n_atoms, "n_atoms"), self.n_atoms[-1]) - self.n_atoms[0])
        if place < 0:
            raise ValueError(
                f"the path begins with fits of {self.n_atoms[0]} atoms; got n_atoms={n_atoms}."
            )
        return self[place]

    def by_bic(self) -> P:
        """Return the fit with the least BIC."""
        return self[int(np.argmin(self.bic))]

    def sizes(self) -> Array:
        """Return how many atoms each fit has."""
        return np.array([len(support) for support in self.supports])


def folds(counted: Array, n_folds: int, random_state: int) -> Array:
    """Return the fold of each row that counts, dealt at random, and -1 for the other rows."""
    m = int(np.count_nonzero(counted))
    if not 2 <= count(n_folds, "n_folds") <= m:
        raise ValueError(f"n_folds must lie between 2 and the {m} rows; got {n_folds}.")
    fold = np.full(len(counted), -1)
    fold[counted] = np.random.default_rng(random_state).permutation(np.arange(m) % n_folds)
    return fold
