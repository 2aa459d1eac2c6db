"""What a run yields, and what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf, isfinite, isnan, nan
from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import Array, Vector, is_finite
from conepursuit.atoms.base import Atoms
from conepursuit.certificates import Certificate, certifier, likely_gain, local_bound
from conepursuit.domains import Domain
from conepursuit.iterate import Direction, Iterate, Local
from conepursuit.objectives.base import Objective, check_real
from conepursuit.points import check_fit, point_to_certify

LOOSE = 1e3
"""A proven gap so many times larger than what first-order conditions suggest is improved."""

LITTLE = 1e-10
"""Share of f and its decrease up to which a gap may be called rounding."""


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


class State(NamedTuple):
    """One iteration of a run, before its step.

    Attributes
    ----------
    iteration : int
        0 at the start.
    value : float
        f(x), with the penalty.
    decrease : float
        f(0) - f(x), or, where f(0) is infinite, the decrease since the first point inside the
        domain of f.
    certificate : Certificate
        How far x may be from a minimiser.
    direction : Direction
        Where the algorithm goes next.
    iterate : Iterate
        x with its atoms and weights.
    step : float
        The step that led here, nan at the start.
    good : bool
        Whether that step was good: not clipped at the weight of an atom.
    rounding : float
        How much of f(x) is rounding.
    """

    iteration: int
    value: float
    decrease: float
    certificate: Certificate
    direction: Direction
    iterate: Iterate
    step: float
    good: bool
    rounding: float = 0.0

    def within(self, tol: float) -> bool:
        """Return whether gap <= tol * (f(0) - f(x)), or is no more than rounding.

        That is the rounding of f, or twice what the certificate allows for it, if that is little.
        """
        little = LITTLE * (abs(self.value) + abs(self.decrease))
        rounding = max(self.rounding, min(2.0 * self.certificate.rounding, little))
        return self.certificate.gap <= max(tol * self.decrease, rounding)


class Trace(Mapping[str, Array]):
    """The history of a run: one array per quantity, one entry per state.

    ``step`` and ``good`` in row t belong to the step from state t to t + 1, as ``kind`` does. No
    step leaves the last state: there ``step`` is nan and ``good`` True. ``size`` is the sum of the
    weights, ``accuracy`` delta of the oracle's answer, 1 for an exact oracle, nan where nothing is
    known.

    Attributes
    ----------
    start : str
        Where the run began: "origin", "given", or which multiple of atoms.
    """

    KEYS = (
        "value",
        "gap",
        "violation",
        "complementarity",
        "kind",
        "step",
        "good",
        "n_atoms",
        "size",
        "accuracy",
        "time",
    )

    def __init__(self, start: str = "origin") -> None:
        self.start = start
        self._rows: list[tuple[Any, ...]] = []

    def record(self, state: State, time: float) -> None:
        """Append a state."""
        certificate = state.certificate
        self._rows.append(
            (
                state.value,
                certificate.gap,
                certificate.violation,
                certificate.complementarity,
                state.direction.kind,
                state.step,
                state.good,
                len(state.iterate.weights),
                state.iterate.size,
                certificate.accuracy,
                time,
            )
        )

    def __getitem__(self, key: str) -> Array:
        if key not in self.KEYS:
            raise KeyError(f"{key!r}; a trace has {', '.join(self.KEYS)}")
        place = self.KEYS.index(key)
        column = [row[place] for row in self._rows]
        if key in ("step", "good"):  # a state knows the step that led to it
            column = [*column[1:], np.nan if key == "step" else True]
        return np.array(column)

    def __iter__(self) -> Iterator[str]:
        return iter(self.KEYS)

    def __len__(self) -> int:
        return len(self.KEYS)

    @property
    def n_states(self) -> int:
        """How many states are recorded."""
        return len(self._rows)

    def __repr__(self) -> str:
        start = "" if self.start == "origin" else f", start: {self.start}"
        return f"Trace({self.n_states} states: {', '.join(self.KEYS)}{start})"


@dataclass(frozen=True)
class Result:
    """What `minimize` found, with the proof.

    Attributes
    ----------
    iterate : Iterate
        The answer; give it to ``minimize(..., start=)`` to go on.
    value : float
        f(x), with the penalty, computed afresh.
    certificate : Certificate
        Computed afresh from atoms and weights.
    status : Status
        Why the run ended.
    n_iter : int
        Steps made.
    trace : Trace
        The history.
    """

    iterate: Iterate
    value: float
    certificate: Certificate
    status: Status
    n_iter: int
    trace: Trace = field(repr=False)

    @property
    def x(self) -> Array:
        """The minimiser found."""
        return self.iterate.x

    @property
    def atoms(self) -> Atoms:
        """The atoms with weight."""
        return self.iterate.atoms

    @property
    def weights(self) -> Vector:
        """Their weights."""
        return self.iterate.weights

    @property
    def message(self) -> str:
        """The status in words."""
        return self.status.value

    def unless_interrupted(self) -> Result:
        """Return this result; raise KeyboardInterrupt if Ctrl-C ended the run.

        `minimize` hands the best iterate to a person at the keyboard. Code that makes many runs
        must stop instead of going on with the next.
        """
        if self.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return self

    def __repr__(self) -> str:
        proof = "proven" if self.certificate.proven else "estimate"
        return (
            f"Result({self.status.name}, n_iter={self.n_iter}, value={self.value:.6g}, "
            f"gap={self.certificate.gap:.2g} ({proof}), n_atoms={len(self.weights)})"
        )


def certify(
    objective: Objective, domain: Domain, point: Any = None, *, x: Any = None, weights: Any = None
) -> Certificate:
    """Audit anybody's answer from the problem's data alone.

    Parameters
    ----------
    objective, domain
        The problem.
    point : Result, Iterate or array_like
        A result, or x, or the weights of all atoms of a finite set; for an array the shape tells
        which.
    x, weights : array_like
        The same, said explicitly. Whether an x lies in the domain is asked of the gauge of its
        atoms, a linear programme for a Dictionary; weights need none.

    Returns
    -------
    Certificate
        Recomputed with one call of the oracle; nothing of a solver's bookkeeping is used. Where
        it cannot be told whether x lies in the domain, the gap is an estimate.

    Raises
    ------
    ValueError
        If the point does not lie in the domain, or if f or its gradient is infinite there.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import Cone, Dictionary, LeastSquares, certify
    >>> D = Dictionary([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> round(certify(LeastSquares([2.0, 1.0, 1.0]), Cone(D), weights=[1.0, 1.0]).gap, 12)
    0.0
    """
    check_fit(objective, domain)
    iterate, inside = point_to_certify(objective, domain, point, x, weights)
    value, certificate = audited(objective, domain, iterate)
    if isnan(certificate.violation):
        which = f"the gradient of {objective!r}" if isfinite(value) else repr(objective)
        raise ValueError(
            f"{which} is infinite or NaN at the point given, so that nothing can be said about "
            "it. Give a point inside the domain of the objective."
        )
    return certificate if inside else replace(certificate, method="estimate")


def audited(objective: Objective, domain: Domain, iterate: Iterate) -> tuple[float, Certificate]:
    """Return f(x), with the penalty, and the certificate of an iterate, computed afresh.

    Where the atoms have no positive functional, one is made from those with weight. Where f or
    its gradient is infinite, nothing is known: the gap is infinite, the rest NaN.
    """
    value, gradient = objective.value_and_gradient(iterate.x)
    check_real(value, gradient)
    if not (isfinite(value) and is_finite(gradient)):
        return value + domain.penalty * iterate.size, Certificate(nan, nan, inf, "estimate", nan)
    local, drift = Local(domain, iterate, gradient), iterate.atoms.drift(iterate.weights)
    certificate = certifier(objective, domain)(local, value, drift)
    likely = likely_gain(local) + certificate.rounding
    if not (certificate.proven and objective.quadratic) or certificate.gap > LOOSE * likely:
        gap = local_bound(objective, local, value, drift)
        if gap is not None and (gap < certificate.gap or not certificate.proven):
            certificate = replace(certificate, gap=gap, method="dual")
    return value + domain.penalty * iterate.size, certificate
