"""The algorithms: which direction to take, and how to move along it.

References
----------
[1] F. Locatello, M. Tschannen, G. Rätsch, M. Jaggi. Greedy Algorithms for Cone Constrained
Optimization with Convergence Guarantees. NIPS 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, Protocol, TypeAlias

from conepursuit.arrays import norm, zeros
from conepursuit.atoms.base import Atoms
from conepursuit.objectives.base import Objective
from conepursuit.pursuit.domains import Cone, Domain, Hull, Span, describe
from conepursuit.pursuit.full_correction import Corrector, Move
from conepursuit.pursuit.iterate import Direction, Iterate, Local
from conepursuit.pursuit.steps import ShortStep, StepRule

Update: TypeAlias = Callable[[Iterate, Local, Direction], Move]
"""Takes an iterate, what is known there, and a direction; makes one step along it."""


class Algorithm(Protocol):
    """A choice of directions and a way to move along them; immutable."""

    @property
    def monotone(self) -> bool:
        """Whether f never rises."""

    def check(self, objective: Objective, domain: Domain) -> None:
        """Raise a ValueError, which says what would do, if objective or domain do not fit."""

    def direction(self, local: Local) -> Direction:
        """Return the direction to take; if its slope is not negative, no direction descends."""

    def start(self, objective: Objective) -> Update:
        """Return the function that makes the steps of one run, with what it learns on the way."""


@dataclass(frozen=True)
class LineAlgorithm:
    """An algorithm that moves along a line, by a step rule.

    A subclass defines `direction`, and `domains` if it takes domains other than cones.

    Parameters
    ----------
    step : StepRule
        How far to go along a direction.
    """

    step: StepRule = field(default_factory=ShortStep)
    domains: ClassVar[tuple[type, ...]] = (Cone,)
    advice: ClassVar[str] = "Use Cone(atoms)."
    bounded: ClassVar[bool] = False
    """Whether x + d lies in a bounded set for every direction d, so that a step is a share of d."""

    @property
    def monotone(self) -> bool:
        """Whether f never rises."""
        return self.step.monotone

    def check(self, objective: Objective, domain: Domain) -> None:
        """Raise a ValueError if the domain or the step rule does not fit."""
        name = type(self).__name__
        _check_domain(name, self.domains, self.advice, domain)
        if isinstance(self.step, type) or not hasattr(self.step, "start"):
            got = getattr(self.step, "__name__", repr(self.step))
            raise ValueError(f"{name} needs a step rule; got {got}. Use {name}(ShortStep()), say.")
        if getattr(self.step, "shares", False) and not self.bounded:
            raise ValueError(
                f"{name} cannot use {type(self.step).__name__}, whose steps are shares of a "
                "bounded set. Use FW on a Hull, or AdaptiveStep()."
            )

    def start(self, objective: Objective) -> Update:
        """Return the function that makes the steps of one run."""
        rule = self.step.start(objective)

        def update(iterate: Iterate, local: Local, d: Direction) -> Move:
            vector = iterate.vector(d)
            step = min(rule(iterate.x, vector, d), d.max_step)
            if step == inf:
                return iterate, step, True
            clipped = d.away is not None and step >= d.max_step
            return iterate.moved(d, step, vector), step, not clipped

        return update


def _check_domain(name: str, kinds: tuple[type, ...], advice: str, domain: Domain) -> None:
    if not isinstance(domain, kinds):
        names = " or a ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{name} needs a {names}; got {describe(domain)}. {advice}")


def forward(local: Local, toward: Atoms | None = None, score: float | None = None) -> Direction:
    """Return the direction towards the oracle's atom, or towards another with its `score`.

    The step is bounded by the weight that the domain has room for.
    """
    room = local.domain.room(local.iterate.weights)
    return local.direction("forward", room, gain=1.0, toward=toward, score=score)


def backward(local: Local) -> Direction:
    """Return the direction that takes weight off the active atom of steepest ascent.

    Where that is the origin, nothing can be taken: the slope and the longest step are 0.
    """
    v = local.away
    if v is None:
        return local.direction("away", 0.0)
    return local.direction("away", float(local.iterate.weights[v]), away=v)


def pairwise(local: Local) -> Direction:
    """Return z - v, which moves weight from v to z.

    z is the atom of steepest descent, v the active atom of steepest ascent. Where v is the origin,
    the direction is z. Where z descends by rounding only, it is -v if that descends.
    """
    z, score = local.settled
    v = local.away
    if v is None:
        return forward(local, z, score or None)
    if score == 0:
        back = backward(local)
        return back if back.slope < 0 else forward(local)
    weight = float(local.iterate.weights[v])
    return local.direction("pairwise", weight, gain=1.0, toward=z, score=score, away=v)


def steeper(first: Direction, second: Direction) -> Direction:
    """Return the direction of steeper descent; a tie, up to rounding, goes to the first."""
    return second if second.slope < first.slope - 1e-12 * abs(first.slope) else first


class MP(LineAlgorithm):
    """Generalised matching pursuit, Algorithm 1 (variant 0) of [1]: d = z, on a Span.

    z is the oracle's atom.
    """

    domains = (Span,)
    advice = "Use Span(atoms), or a conic algorithm such as PWMP: on a cone MP may stall."

    def direction(self, local: Local) -> Direction:
        """Return z."""
        return forward(local)


@dataclass(frozen=True)
class NNMP(LineAlgorithm):
    """Non-negative matching pursuit, Algorithm 2 of [1]: d = z, or -x / n(x) where steeper.

    z is the oracle's atom.

    Parameters
    ----------
    step : StepRule
        How far to go; with ``CurvatureStep`` this is Algorithm 5.
    norm : {"weights", "gauge", "euclidean"}
        What n(x) is. "weights": the sum of the weights, an upper bound on the gauge of x that costs
        nothing. "gauge": the gauge itself, for which the sublinear rate is stated; for a dictionary
        it takes a linear programme. "euclidean": ||x|| / radius(A), a lower bound on the gauge, for
        which the rate holds as well.
    """

    norm: str = "weights"

    def check(self, objective: Objective, domain: Domain) -> None:
        """Raise a ValueError if the domain, the step rule or the norm does not fit."""
        super().check(objective, domain)
        if self.norm not in ("weights", "gauge", "euclidean"):
            raise ValueError(f'norm must be "weights", "gauge" or "euclidean"; got {self.norm!r}.')
        if self.norm == "euclidean" and getattr(self.step, "affine_invariant", False):
            raise ValueError(
                "the step of the affine-invariant NNMP depends on the scale of -x, "
                'and the Euclidean norm is not affine invariant. Use norm="gauge" '
                'or norm="weights".'
            )
        if self.norm == "euclidean" and domain.atoms.radius is None:
            raise ValueError(
                f'norm="euclidean" needs the radius of {domain.atoms!r}, which it '
                'does not know. Use norm="weights".'
            )
        if self.norm == "gauge" and domain.atoms.gauge(zeros(domain.atoms.shape)) is None:
            raise ValueError(
                f'norm="gauge" needs the gauge of {domain.atoms!r}, which it does '
                'not know. Use norm="weights".'
            )

    def direction(self, local: Local) -> Direction:
        """Return the direction z, or -x / n(x) where that is steeper."""
        ahead = forward(local)
        if local.height <= 0 or not len(local.iterate.weights):
            return ahead
        scale = self._scale(local)
        return steeper(ahead, local.direction("shrink", scale, shrink=1.0 / scale))

    def _scale(self, local: Local) -> float:
        """Return n(x), by which the direction -x is divided."""
        size, atoms = local.iterate.size, local.domain.atoms
        if self.norm == "euclidean":
            return norm(local.iterate.x) / (atoms.radius or 1.0)
        if self.norm == "gauge":
            return min(atoms.gauge(local.iterate.x) or size, size)
        return size


class AMP(LineAlgorithm):
    """Away-steps matching pursuit, Algorithm 3 of [1]: d = z, or -v where that is steeper.

    z is the oracle's atom, v the active atom of steepest ascent. With ``CurvatureStep`` this is
    Algorithm 6.
    """

    def direction(self, local: Local) -> Direction:
        """Return the steeper of z and -v.

        Ties go to z, so that on symmetric sets with exact oracles no step is made along -v.
        """
        return steeper(forward(local), backward(local))


class PWMP(LineAlgorithm):
    """Pairwise matching pursuit, Algorithm 3 of [1]: d = z - v.

    z is the oracle's atom, v the active atom of steepest ascent, the origin included. On a Hull
    this is pairwise Frank-Wolfe, with ``CurvatureStep`` Algorithm 6.
    """

    domains: ClassVar[tuple[type, ...]] = (Cone, Hull)

    def direction(self, local: Local) -> Direction:
        """Return z - v; `Local.away` and `Local.settled` decide ties."""
        return pairwise(local)


class FW(LineAlgorithm):
    """Frank-Wolfe on radius * conv(A u {0}): d = radius * z - x.

    z is the oracle's atom, or the origin where no atom descends.
    """

    domains = (Hull,)
    advice = "Use Hull(atoms, radius=...) or a conic algorithm such as PWMP."
    bounded = True

    def direction(self, local: Local) -> Direction:
        """Return radius * z - x."""
        gain = local.domain.radius if local.score < 0 else 0.0  # otherwise z is the origin
        return local.direction("forward", 1.0, gain=gain, shrink=1.0)


class AFW(FW):
    """Away-steps Frank-Wolfe: d = radius * z - x, or x - radius * v where that is steeper.

    z is the oracle's atom, v the active atom of steepest ascent. The origin counts as active with
    the weight that is left, radius - sum(w).
    """

    bounded = False

    def direction(self, local: Local) -> Direction:
        """Return the steeper of the Frank-Wolfe and the away direction."""
        ahead = super().direction(local)
        radius, size, v = local.domain.radius, local.iterate.size, local.away
        w = 0.0 if v is None else float(local.iterate.weights[v])
        if size == 0 or w >= radius * (1 - 1e-12):  # x is a vertex
            return ahead
        if v is None:
            back = local.direction(
                "away", local.domain.room(local.iterate.weights) / size, shrink=-1.0
            )
        else:
            back = local.direction("away", w / (radius - w), away=v, loss=radius, shrink=-1.0)
        return steeper(ahead, back)


class PFW(PWMP):
    """Pairwise Frank-Wolfe: PWMP on a Hull."""

    domains = (Hull,)
    advice = FW.advice


@dataclass(frozen=True)
class FCMP:
    """Fully corrective matching pursuit, Algorithm 4 of [1]: all weights are fitted anew.

    Parameters
    ----------
    variant : {0, 1}
        0 projects x - g / L onto the cone of the active atoms; 1, the default, minimises f over
        it. For least squares the two are the same, and are non-negative orthogonal matching
        pursuit.
    """

    variant: int = 1
    domains: ClassVar[tuple[type, ...]] = (Cone, Hull, Span)
    advice: ClassVar[str] = "Use Cone(atoms)."
    monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.variant not in (0, 1):
            raise ValueError(f"variant must be 0 or 1; got {self.variant!r}.")

    def check(self, objective: Objective, domain: Domain) -> None:
        """Raise a ValueError if the domain or the objective does not fit."""
        name = type(self).__name__
        _check_domain(name, self.domains, self.advice, domain)
        if self.variant == 0 and not objective.smoothness:
            raise ValueError(
                f"{name}(variant=0) needs a positive smoothness L; {objective!r} has "
                f"{objective.smoothness}. Use {name}(variant=1)."
            )

    def direction(self, local: Local) -> Direction:
        """Return a refit of all weights, with the oracle's atom added where it descends.

        The slope is negative, and a refit lowers f, while the oracle's atom descends or an active
        atom has a score that is not zero.
        """
        ascent = float(abs(local.scores).max()) if len(local.iterate.weights) else 0.0
        toward = local.answer if local.score < 0 else None
        return Direction("refit", min(local.score, 0.0) - ascent, toward=toward)

    def start(self, objective: Objective) -> Update:
        """Return the function that makes the steps of one run."""
        return Corrector(objective, exact=self.variant == 1, rescue=self._rescue)

    @staticmethod
    def _rescue(local: Local) -> Direction:
        """Return the direction of a single step where a refit does not move x."""
        return forward(local) if local.domain.signed else pairwise(local)


class OMP(FCMP):
    """Generalised orthogonal matching pursuit, Algorithm 1 (variant 1) of [1]: FCMP on a Span.

    Parameters
    ----------
    variant : {0, 1}
        0, the algorithm of [1], projects x - g / L onto the span of the active atoms; 1, the
        default, minimises f over it. For least squares the two are the same.
    """

    domains = (Span,)
    advice = "Use Span(atoms), or FCMP, which is its counterpart on a cone."
