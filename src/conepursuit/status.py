"""Why a run ended, and what is proved of its answer; nothing of the library is imported here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf


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
    """First-order optimality at a point, and the bound on f(x) - f* that follows from it.

    g is the gradient at x, lambda the penalty on the sum of weights, 0 if there is none.

    Attributes
    ----------
    violation : float
        max(0, -min_z <g, z> - lambda): how steeply f descends along the best atom.
    complementarity : float
        <g, x> + lambda * (sum of weights). On a cone or a span, x is a minimiser exactly if this
        and the violation are zero.
    gap : float
        A bound on f(x) - f* if `proven`, otherwise an estimate.
    method : str
        How the gap is known: "radius", from a bound on the weights of a minimiser, or because no
        atom descends, so that none is needed; "dual", from a dual point; "estimate", not proved.
    accuracy : float
        delta of the oracle's answer, promised or measured; nan where nothing is known of it.
    rounding : float
        An upper bound on the part of the gap that is an allowance for rounding.
    """

    violation: float
    complementarity: float
    gap: float
    method: str
    accuracy: float = 1.0
    rounding: float = 0.0

    @property
    def proven(self) -> bool:
        """Whether f(x) - f* <= gap is proved, with all rounding errors counted, and finite."""
        return (self.method != "estimate") & (abs(self.gap) < inf)  # of many targets, arrays
