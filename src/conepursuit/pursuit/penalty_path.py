"""Fits for many penalties, from the least one at which all weights are zero down."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from conepursuit.arrays import (
    Array,
    Vector,
    as_real_array,
    count,
    inner,
    is_finite,
    is_number,
    quiet,
)
from conepursuit.atoms.base import AtomSet
from conepursuit.objectives.base import Objective
from conepursuit.pursuit.algorithms import FCMP, Algorithm
from conepursuit.pursuit.domains import Cone
from conepursuit.pursuit.results import Result
from conepursuit.pursuit.solve import minimize
from conepursuit.pursuit.starts import best_multiple, check_fit


@dataclass(frozen=True, eq=False)
class PenaltyPath:
    """Penalised fits, each with its certificate.

    Attributes
    ----------
    penalties : array
        In the order of the fits, from large to small.
    results : list of Result
        One for each penalty.
    """

    penalties: Vector
    results: list[Result]

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        return (
            f"PenaltyPath({len(self)} penalties, {self.penalties[0]:.4g} to "
            f"{self.penalties[-1]:.4g}, {self.n_atoms[0]} to {self.n_atoms[-1]} atoms)"
        )

    @property
    def values(self) -> Vector:
        """f(x) + lambda * (sum of weights) of every fit."""
        return np.array([result.value for result in self.results])

    @property
    def gaps(self) -> Vector:
        """The gap of every fit: a bound on its distance from the least value, or an estimate."""
        return np.array([result.certificate.gap for result in self.results])

    @property
    def n_atoms(self) -> Array:
        """How many atoms have weight in every fit."""
        return np.array([len(result.weights) for result in self.results])

    @property
    def coef(self) -> Array:
        """The weights of all columns of a Dictionary, one row for each penalty."""
        return np.stack([result.coef for result in self.results])


@quiet
def penalty_path(
    objective: Objective,
    atoms: AtomSet,
    *,
    penalties: Any = None,
    n_penalties: int = 100,
    ratio: float = 1e-3,
    algorithm: Algorithm | None = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
) -> PenaltyPath:
    """Minimise f(x) + lambda * (sum of weights) over the cone of atoms, for many lambda.

    Parameters
    ----------
    objective : Objective
        f.
    atoms : AtomSet
        Such as ``Dictionary(D)``.
    penalties : array_like, optional
        The values of lambda; they are taken from large to small. By default they fall
        geometrically from the least one at which the origin is optimal, or, where f is infinite
        there, from one that shrinks a first fit to a tenth.
    n_penalties : int
        How many, if they are not given.
    ratio : float
        The last one as a share of the first, if they are not given.
    algorithm : Algorithm, optional
        ``FCMP(variant=1)`` by default.
    max_iter, tol
        As in `minimize`, for each lambda.

    Returns
    -------
    PenaltyPath
        Every fit starts from the one before, and has its own certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import Dictionary, LeastSquares, penalty_path
    >>> atoms = Dictionary(np.eye(3))
    >>> path = penalty_path(LeastSquares([3.0, 1.0, 2.0]), atoms, penalties=[2.5, 1.5, 0.5])
    >>> path.coef.tolist()
    [[0.5, 0.0, 0.0], [1.5, 0.0, 0.5], [2.5, 0.5, 1.5]]
    """
    check_fit(objective, Cone(atoms))
    if penalties is None:
        penalties = penalty_grid(largest_penalty(objective, atoms), n_penalties, ratio)
    lambdas = descending(penalties)
    how = FCMP(variant=1) if algorithm is None else algorithm
    results: list[Result] = []
    for penalty in lambdas:
        start = results[-1] if results else None
        cone = Cone(atoms, penalty=float(penalty))
        found = minimize(objective, cone, how, max_iter=max_iter, tol=tol, start=start)
        results.append(found.unless_interrupted())
    return PenaltyPath(lambdas, results)


SHRUNK = 0.1
"""Where f is infinite at the origin, the first penalty shrinks a first fit to this share of it."""


def largest_penalty(objective: Objective, atoms: AtomSet) -> float:
    """Return the least lambda at which the origin is optimal, max_a -<grad f(0), a>.

    Where f is infinite at the origin, as for `Poisson`, or infinitely steep, no lambda makes it
    optimal. Then it is the lambda under which the best multiple of a first fit x, that of a few
    atoms with weights of sum w, is `SHRUNK` x: minus the slope <grad f(SHRUNK x), x> / w.
    """
    value, gradient = objective.value_and_gradient(objective.origin())
    if isfinite(value) and is_finite(gradient):
        return max(0.0, -float(atoms.lmo(gradient).inner(gradient)[0])) / (atoms.accuracy or 1.0)
    first = best_multiple(objective, Cone(atoms))
    slope = inner(objective.value_and_gradient(SHRUNK * first.x)[1], first.x)
    return max(0.0, -slope) / first.size


def penalty_grid(largest: float, n_penalties: int, ratio: float) -> Vector:
    """Return penalties that fall geometrically from `largest` to `ratio` times that."""
    if not (is_number(ratio) and 0 < ratio < 1):
        raise ValueError(f"ratio must lie between 0 and 1; got {ratio!r}.")
    return largest * np.geomspace(1.0, float(ratio), count(n_penalties, "n_penalties"))


def descending(penalties: Any, name: str = "penalties") -> Vector:
    """Return penalties from large to small; negative or infinite ones raise a ValueError."""
    given = as_real_array(penalties, name).astype(np.float64).reshape(-1)
    if not len(given) or not np.isfinite(given).all() or given.min() < 0:
        raise ValueError(
            f"{name} must be finite numbers that are not negative, at least one; got {given}."
        )
    lambdas: Vector = np.sort(given)[::-1]
    return lambdas
