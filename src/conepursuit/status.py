"""Why a run ended, and what is proved of its answer: two leaves that import nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """Why a run ended; the value says it in words."""

    CONVERGED = "the gap is within the tolerance"
    STATIONARY = "no direction of descent is left: x is a minimiser"
    STALLED = "no step makes progress: the limit of the arithmetic, or of the oracle, is reached"
    MAX_ITER = "max_iter iterations were made; raise it, or start= from this result's iterate"
    MAX_TIME = "max_time seconds have passed; raise it, or start= from this result's iterate"
    MAX_ATOMS = "max_atoms atoms have weight; raise it for a closer fit"
    STOPPED = "the callback returned True"
    INTERRUPTED = "interrupted from the keyboard; this is the best iterate so far"
    RISING = (
        "f rose along a step that promises descent: L (or the curvature C) is too small, or f "
        "too ill conditioned; give a larger one, or use AdaptiveStep()"
    )
    UNBOUNDED = "f falls without end along a direction of the domain: there is no minimiser"
    DIVERGED = "the value or gradient became NaN or infinite; this is the best iterate before"

    @property
    def success(self) -> bool:
        """Whether the gap is within the tolerance, or no direction descends."""
        return self in (Status.CONVERGED, Status.STATIONARY)


@dataclass(frozen=True, slots=True)
class Certificate:
    """First-order optimality at a point, and what follows from it.

    Attributes
    ----------
    violation : float
        max(0, -min_z <g, z>): how steeply the best atom descends (over lambda, if penalised).
    complementarity : float
        <g, x>, with the penalty's share. On a cone or a span both are zero exactly at a minimiser.
    gap : float
        A bound on f(x) - f*, or an estimate of one.
    method : str
        "radius" where a bound on the weights of a minimiser proves the gap, or where none is
        needed as no atom descends; "dual" where a dual point does; "estimate" where nothing does.
    accuracy : float
        delta of the oracle's answer, promised or measured; nan where nothing is known of it.
    rounding : float
        How much of the gap, at most, is there for the rounding of what it was computed from.
    """

    violation: float
    complementarity: float
    gap: float
    method: str
    accuracy: float = 1.0
    rounding: float = 0.0

    @property
    def proven(self) -> bool:
        """Whether f(x) - f* <= gap is proved, with the rounding of everything it is made of."""
        return self.method != "estimate"
