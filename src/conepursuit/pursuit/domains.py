"""The sets that f is minimised over: the cone, the span or a hull of an atom set."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Protocol

from conepursuit.arrays import Array, Vector, is_number
from conepursuit.atoms.base import AtomSet
from conepursuit.pursuit.weight_programs import Cholesky, bounded, free, nonnegative

FULL = 1e-15
"""Room left in a hull counts as 0 up to this share of its radius, as the rounding of a sum."""


class Domain(Protocol):
    """The points sum_i w_i a_i for the weights w that are allowed on atoms a_i.

    Attributes
    ----------
    atoms : AtomSet
        The atoms.
    radius : float
        A bound on the sum of weights: of every point for a Hull, of a minimiser for a Cone.
    penalty : float
        lambda of f(x) + lambda * (sum of weights).
    signed : bool
        Whether weights may be negative.
    """

    @property
    def atoms(self) -> AtomSet: ...
    @property
    def radius(self) -> float: ...
    @property
    def penalty(self) -> float: ...
    @property
    def signed(self) -> bool: ...

    def room(self, weights: Vector) -> float:
        """Return how much weight may be added, inf if there is no bound."""

    def refit(self, Q: Array, scores: Vector, weights: Vector, factor: Cholesky) -> Vector:
        """Return the allowed v that minimises <scores, v - w> + 1/2 <v - w, Q (v - w)>.

        w are the current weights. `factor` is that of Q from the refit before, and is updated.
        """


@dataclass(frozen=True)
class Cone:
    """{sum_i w_i a_i : w_i >= 0}.

    Parameters
    ----------
    atoms : AtomSet
        The atoms; the origin is one of them.
    radius : float
        A known bound on the sum of weights of a minimiser. It does not restrict the iterates; it
        turns the gap into a proof.
    penalty : float
        lambda >= 0; minimise f(x) + lambda * (sum of weights).
    """

    atoms: AtomSet
    radius: float = inf
    penalty: float = 0.0
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self)

    def room(self, weights: Vector) -> float:
        return inf

    def refit(self, Q: Array, scores: Vector, weights: Vector, factor: Cholesky) -> Vector:
        return nonnegative(Q, scores, weights, factor)


@dataclass(frozen=True)
class Span:
    """{sum_i w_i a_i : w_i of either sign}.

    Parameters
    ----------
    atoms : AtomSet
        The atoms.
    """

    atoms: AtomSet
    radius: ClassVar[float] = inf
    penalty: ClassVar[float] = 0.0
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self)

    def room(self, weights: Vector) -> float:
        return inf

    def refit(self, Q: Array, scores: Vector, weights: Vector, factor: Cholesky) -> Vector:
        return free(Q, scores, weights, factor)


@dataclass(frozen=True)
class Hull:
    """{sum_i w_i a_i : w_i >= 0, sum_i w_i <= radius}, which is radius * conv(A u {0}).

    Parameters
    ----------
    atoms : AtomSet
        The atoms; the origin is one of them and carries the weight that is left.
    radius : float
        tau > 0, the largest sum of weights.
    penalty : float
        lambda >= 0; minimise f(x) + lambda * (sum of weights).
    """

    atoms: AtomSet
    radius: float
    penalty: float = 0.0
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self)
        if self.radius == inf:
            raise ValueError(
                "a Hull needs a finite radius; got inf. "
                "Use Cone(atoms) for weights without a bound."
            )

    def room(self, weights: Vector) -> float:
        room = self.radius - float(weights.sum())
        return room if room > FULL * self.radius else 0.0

    def refit(self, Q: Array, scores: Vector, weights: Vector, factor: Cholesky) -> Vector:
        return bounded(Q, scores, weights, factor, self.radius)


def describe(domain: Domain) -> str:
    """Return the name of a domain for error messages."""
    return f"{type(domain).__name__}({domain.atoms!r})"


def _check(domain: Domain) -> None:
    name = type(domain).__name__
    if not isinstance(domain.atoms, AtomSet):
        raise ValueError(
            f"{name} needs an atom set; got {type(domain.atoms).__name__}. "
            f"Use {name}(Dictionary(D)) for the columns of a matrix D."
        )
    radius, penalty = domain.radius, domain.penalty
    if not is_number(radius) or not radius > 0:
        raise ValueError(f"the radius bounds a sum of weights and must be positive; got {radius}.")
    if not is_number(penalty) or not 0 <= penalty < inf:
        raise ValueError(f"the penalty must be non-negative and finite; got {penalty}.")
