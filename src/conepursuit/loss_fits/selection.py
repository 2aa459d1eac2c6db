"""Fits with few atoms under any loss: which atoms get weight.

The best fits found so far are kept, a few for each number of atoms, and some moves are tried from
each of them until none finds a better one:

- an atom joins: those are tried whose Newton model promises the largest decrease, where the weights
  of the other atoms are refitted with it;
- an atom leaves: those are tried whose model promises the least increase;
- an atom is exchanged: after one has joined, the one that is then worth least leaves.

The search goes a little beyond the number of atoms asked for, since good fits with few atoms are
often found by taking atoms from a larger one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.linear import dense, matvec, rmatvec
from conepursuit.loss_fits.columns import Problem
from conepursuit.objectives import EntrywiseLoss, Objective

KEPT = 4
"""How many fits are kept for each number of atoms.

Moves from the best one alone often end too early. Of 360 Poisson problems with 14 atoms, made to be
hard (overlapping bumps, dependent atoms, atoms that are nearly zero in most entries), the best 2, 3
or 4 atoms were found in 284 with one fit kept, in 333 with three, in 342 with four. Four take two
to three times as long as one.
"""

TRIED = 3
"""How many atoms a move tries: those for which a model promises most."""

BEYOND = 2
"""The search goes on until fits have this many atoms more than asked for."""

LEAST_CURVATURE = 1e-10
"""The least curvature that an atom keeps, as a share of its own, when other weights are refitted.

What an atom that depends on those with weight would gain is bounded by it.
"""

BLOCK = 2**20
"""The most entries of columns whose best multiples are computed at once."""

SCALING_STEPS = 8
"""Newton steps for the best multiple of each atom, which only ranks them."""


RIDGE = 1e-10
"""The diagonal of a Hessian is raised by this share, so that it has an inverse."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Some atoms, their weights, the value of the fit with the penalty, and its gap.

    The weights are positive, or zero for atoms that every fit must have. The gap is a bound, or an
    estimate of one, to the best fit with these atoms.
    """

    support: Array
    weights: Vector
    value: float
    gap: float

    @property
    def key(self) -> tuple[int, ...]:
        """The support as a tuple."""
        return tuple(self.support.tolist())


class Selection:
    """A search for the best fits with few atoms.

    Parameters
    ----------
    objective : Objective
        f, with a Hessian.
    atoms : Dictionary
        The columns to choose from, of an array or a sparse matrix.
    penalty : float
        The price of a unit of weight.
    forced, forbidden : arrays of int
        Atoms that every fit has, and atoms that none has.
    fit : callable
        Returns the weights, the value and the gap of a fit on a matrix of some of the columns.

    Attributes
    ----------
    kept : dict
        The best fits found with each number of atoms, the very best first: lists of `Choice`.
    n_fits : int
        How many fits were made.
    """

    def __init__(
        self,
        objective: Objective,
        atoms: Dictionary,
        penalty: float,
        forced: Array,
        forbidden: Array,
        fit: Callable[[Any], tuple[Vector, float, float]],
    ) -> None:
        self.problem, self.fit = Problem(objective, atoms, penalty), fit
        self.objective, self.matrix, self.forced = objective, atoms.matrix, forced
        self.allowed = np.ones(atoms.n_atoms, dtype=bool)
        self.allowed[forbidden] = False
        self.kept: dict[int, list[Choice]] = {}
        self.n_fits = 0
        self._seen: set[tuple[int, ...]] = set()
        self._done: set[tuple[int, ...]] = set()

    def search(self, most: int, start: Array) -> None:
        """Look for the best fits with up to `most` atoms, the forced ones included.

        The atoms in `start`, if any, are one of the first fits.
        """
        self._begin()
        if len(start):
            self._offer(self._fitted(start))
        while (fit := self._next()) is not None:
            for place in self._least_worth(fit, TRIED):
                self._offer(self._without(fit, place))
            if self._next() is fit:  # otherwise a smaller one was found, which goes first
                self._done.add(fit.key)
                self._join(fit, most + BEYOND)

    def _next(self) -> Choice | None:
        """Return the fit with the fewest atoms from which no move was tried; None if all were."""
        sizes = sorted(self.kept)
        untried = (fit for size in sizes for fit in self.kept[size] if fit.key not in self._done)
        return next(untried, None)

    def path(self, most: int) -> list[tuple[int, Choice]]:
        """Return numbers of atoms, one after the other, each with the best fit of at most so many.

        They go from 1, or from the number of the forced atoms, to the last that is better than all
        smaller ones. Numbers without a fit of finite value are left out, at the beginning; if all
        are without one, a ValueError is raised.
        """
        if min(self.kept, default=0) > most:
            raise ValueError(
                f"f is finite from {min(self.kept)} atoms on, as far as can be seen, but max_atoms "
                f"is {most}. Allow more atoms, or mask entries that few atoms reach."
            )
        fits: list[tuple[int, Choice]] = []
        lowest: Choice | None = None
        for size in range(most + 1):
            found = self.kept[size][0] if size in self.kept else None
            if lowest is None or (found is not None and found.value < lowest.value):
                lowest = found
            if lowest is not None and size >= max(1, len(self.forced)):
                fits.append((size, lowest))
        while len(fits) > 1 and fits[-1][1] is fits[-2][1]:
            fits.pop()
        return fits

    def _begin(self) -> None:
        """Make the first fits: of the forced atoms, of no atom, of single atoms, or of all."""
        if len(self.forced):
            self._offer(self._fitted(self.forced))
        else:
            none = np.empty(0, dtype=np.intp)
            value = self.objective.value(self.objective.origin())
            self._offer(Choice(none, np.empty(0), value, 0.0))
            if not self.kept and isinstance(self.objective, EntrywiseLoss):
                for atom in self._single_atoms(self.objective):
                    self._offer(self._fitted([atom]))
        if not self.kept:
            self._offer(self._fitted(np.flatnonzero(self.allowed)))
        if not self.kept:
            raise ValueError(
                f"{self.objective!r} is infinite for every combination of the atoms, as far as can "
                "be seen: some entry of the data is positive where all atoms are zero. Mask such "
                "entries, or add an atom that reaches them."
            )

    def _fitted(self, atoms: Sequence[int] | Array) -> Choice | None:
        """Return the fit of some atoms; None if these were fitted before."""
        support = np.sort(np.asarray(atoms, dtype=np.intp))
        key = tuple(support.tolist())
        if key in self._seen:
            return None
        self._seen.add(key)
        self.n_fits += 1
        weights, value, gap = self.fit(self.matrix[:, support])
        kept = (weights > 0) | np.isin(support, self.forced)
        return Choice(support[kept], weights[kept], value, gap)

    def _offer(self, choice: Choice | None) -> None:
        """Keep a fit if it is one of the best with as many atoms, by more than the gaps."""
        if choice is None or not choice.value < inf:
            return
        kept = self.kept.setdefault(len(choice.support), [])
        if all(choice.key != known.key for known in kept):
            worse = (choice.value < known.value - max(choice.gap, known.gap) for known in kept)
            kept.insert(
                next((i for i, is_worse in enumerate(worse) if is_worse), len(kept)), choice
            )
            del kept[KEPT:]

    def _without(self, choice: Choice, place: int) -> Choice | None:
        """Return the fit without one of the atoms; None if that was fitted before."""
        return self._fitted(np.delete(choice.support, place))

    def _join(self, choice: Choice, limit: int) -> None:
        """Try one atom more, where that makes at most `limit`, and exchanges of another for it."""
        gains = self._gains(choice)
        for atom in least(np.where(gains > 0, -gains, inf), TRIED):
            larger = self._fitted([*choice.support, atom])
            if larger is None or not larger.value < inf:
                continue
            if len(larger.support) <= limit:
                self._offer(larger)
            if len(larger.support) > len(choice.support) > 0:
                for place in self._least_worth(larger, 1):
                    if larger.support[place] != atom:
                        self._offer(self._without(larger, place))

    def _least_worth(self, choice: Choice, count: int) -> Array:
        """Return the places of the atoms whose loss would raise f least, the least one first.

        In the quadratic model, f rises by w_i^2 / (2 (Q^-1)_ii) where atom i leaves and the other
        weights are refitted.
        """
        support, weights = choice.support, choice.weights
        free = ~np.isin(support, self.forced)
        if len(support) < 2 or not free.any():
            return np.empty(0, dtype=np.intp)
        scale, hessian = self._hessian(choice, matvec(self.matrix[:, support], weights))
        rises = (scale * weights) ** 2 / np.linalg.inv(hessian).diagonal()
        return least(np.where(free, rises, inf), count)

    def _hessian(self, choice: Choice, x: Array) -> tuple[Vector, Array]:
        """Return the Hessian in the weights of a fit as scale and matrix: Q = diag(s) R diag(s).

        The diagonal of R is 1, raised a little.
        """
        wanted = np.zeros(len(self.allowed), dtype=bool)
        wanted[choice.support] = True
        self.problem.choose(wanted)
        hessian = self.problem.hessian(x)
        scale = np.sqrt(np.maximum(hessian.diagonal(), 0.0))  # rounding may be below zero
        scale[scale == 0] = 1.0
        hessian /= np.outer(scale, scale)
        hessian[np.diag_indices_from(hessian)] = 1.0 + RIDGE
        return scale, hessian

    def _gains(self, choice: Choice) -> Vector:
        """Return how much f falls in the quadratic model if an atom joins, for every atom.

        It is s^2 / (2 q) for an atom that descends with slope s; q is the curvature along it that
        is left when the weights of the fit are refitted. Other atoms promise nothing.
        """
        weights = np.zeros(len(self.allowed))
        weights[choice.support] = choice.weights
        point = self.problem.at(weights)
        own = self.objective.curvatures_along(point.x, self.matrix)
        assert own is not None
        left = own.copy()
        if len(choice.support):
            hessian = self.objective.hessian(point.x)
            assert hessian is not None
            columns = (dense(self.matrix[:, [j]])[:, 0] for j in choice.support)
            across = np.array([rmatvec(self.matrix, hessian(a)) for a in columns])
            scale, matrix = self._hessian(choice, point.x)
            across /= scale[:, None]
            left -= (across * np.linalg.solve(matrix, across)).sum(axis=0)
        left = np.maximum(left, LEAST_CURVATURE * own)
        descends = self.allowed & (point.scores < 0)
        descends[choice.support] = False
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            gains: Vector = np.where(descends, 0.5 * point.scores**2 / left, 0.0)
        return np.minimum(gains, sys.float_info.max)

    def _single_atoms(self, loss: EntrywiseLoss) -> Array:
        """Return the atoms whose best multiples have the least losses, where f(0) is infinite.

        Only atoms are looked at that are not zero where the loss at 0 is infinite.
        """
        needed = loss.counted & ~np.isfinite(loss.losses(loss.origin()))
        nonzero = np.asarray((self.matrix[np.flatnonzero(needed)] != 0).sum(axis=0))
        atoms = np.flatnonzero(self.allowed & (nonzero == np.count_nonzero(needed)))
        step = max(1, BLOCK // len(loss.y))
        values = [
            best_multiples(loss, dense(self.matrix[:, atoms[i : i + step]]), self.problem.penalty)
            for i in range(0, len(atoms), step)
        ]
        return atoms[least(np.concatenate(values), TRIED)] if values else atoms


def least(values: Vector, count: int) -> Array:
    """Return the places of the least values, at most so many; infinite ones are left out."""
    order = np.argsort(values, kind="stable")[:count]
    return order[np.isfinite(values[order])]


def best_multiples(loss: EntrywiseLoss, columns: Array, penalty: float) -> Vector:
    """Return the least loss of a multiple of each column, nearly, with the penalty.

    Newton's method for the logarithm of the multiple t, from that which sums to the data.
    """
    n = columns.shape[1]
    weights = None if loss.weights is None else np.repeat(loss.weights[:, None], n, axis=1)
    each = type(loss)(np.repeat(loss.y[:, None], n, axis=1), weights=weights, **loss.options())
    with np.errstate(all="ignore"):
        t = each.weighted(each.y).sum(axis=0) / each.weighted(columns).sum(axis=0)
        for _ in range(SCALING_STEPS):
            x = t * columns
            slope = (each.weighted(each.slopes(x)) * x).sum(axis=0) + penalty * t
            bend = (each.weighted(each.curvatures(x)) * x**2).sum(axis=0)
            t = t * np.exp(np.clip(-slope / (bend + np.maximum(slope, 0.0)), -1.0, 1.0))
        values: Vector = each.weighted(each.losses(t * columns)).sum(axis=0) + penalty * t
    return np.where(np.isfinite(values), values, inf)
