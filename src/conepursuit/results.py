"""What a run yields, and what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import Array, Vector, as_float_array, zeros
from conepursuit.atoms.base import Atoms
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.certificates import Certificate, certifier
from conepursuit.domains import Domain, describe
from conepursuit.iterate import Direction, Iterate, Local
from conepursuit.objectives.base import Objective


class Status(Enum):
    """Why a run ended; the value says it in words."""

    CONVERGED = "the gap is within the tolerance"
    STATIONARY = "no direction of descent is left: x is a minimiser"
    STALLED = "no step makes progress: the limit of the arithmetic, or of the oracle, is reached"
    MAX_ITER = "max_iter iterations were made; raise it, or start= from this result's iterate"
    MAX_TIME = "max_time seconds have passed; raise it, or start= from this result's iterate"
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
        """Whether the answer is a minimiser, to the tolerance or to the arithmetic."""
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
        f(0) - f(x).
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
    """

    iteration: int
    value: float
    decrease: float
    certificate: Certificate
    direction: Direction
    iterate: Iterate
    step: float
    good: bool

    def within(self, tol: float) -> bool:
        """Return whether gap <= tol * (f(0) - f(x))."""
        return self.certificate.gap <= tol * self.decrease


class Trace(Mapping[str, Array]):
    """The history of a run: one array per quantity, one entry per state.

    ``step`` and ``good`` in row t belong to the step from state t to t + 1, as ``kind`` does. No
    step leaves the last state: there ``step`` is nan and ``good`` True.
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
        "time",
    )

    def __init__(self) -> None:
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

    def __repr__(self) -> str:
        return f"Trace({len(self._rows)} states: {', '.join(self.KEYS)})"


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

    def __repr__(self) -> str:
        proof = "proven" if self.certificate.proven else "estimate"
        return (
            f"Result({self.status.name}, n_iter={self.n_iter}, value={self.value:.6g}, "
            f"gap={self.certificate.gap:.2g} ({proof}), n_atoms={len(self.weights)})"
        )


def origin(objective: Objective, domain: Domain) -> Iterate:
    """Return x = 0 without atoms."""
    like = getattr(objective, "y", None)
    return Iterate(zeros(objective.shape, like), domain.atoms.empty(), np.zeros(0))


def certify(
    objective: Objective, domain: Domain, point: Any = None, *, x: Any = None, weights: Any = None
) -> Certificate:
    """Audit anybody's answer from the problem's data alone.

    Parameters
    ----------
    objective, domain
        The problem.
    point : Result, Iterate or array_like
        A result, or x, or the weights of all columns of a Dictionary; for an array the shape
        tells which.
    x, weights : array_like
        The same, said explicitly. A given x is taken to lie in the domain.

    Returns
    -------
    Certificate
        Recomputed with one call of the oracle; nothing of a solver's bookkeeping is used.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import Cone, Dictionary, LeastSquares, certify
    >>> D = Dictionary([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> certify(LeastSquares([2.0, 1.0, 1.0]), Cone(D), weights=[1.0, 1.0]).gap
    0.0
    """
    check_fit(objective, domain)
    iterate = _point(objective, domain, point, x, weights)
    value, gradient = objective.value_and_gradient(iterate.x)
    return certifier(objective, domain)(Local(domain, iterate, gradient), value)


def check_fit(objective: Objective, domain: Domain) -> None:
    """Raise ValueError unless these are an objective and a domain of one shape."""
    if not isinstance(objective, Objective):
        raise ValueError(
            f"the objective must be an Objective; got {type(objective).__name__}. "
            "Use LeastSquares(y) or FunctionObjective(function, shape)."
        )
    if not hasattr(domain, "refit"):
        raise ValueError(
            f"the domain must be a Cone, Span or Hull; got {type(domain).__name__}. "
            "Use Cone(Dictionary(D)) for the columns of a matrix D."
        )
    if tuple(objective.shape) != tuple(domain.atoms.shape):
        raise ValueError(
            f"{objective!r} takes arrays of shape {tuple(objective.shape)}, but the "
            f"atoms of {describe(domain)} have shape {tuple(domain.atoms.shape)}. "
            "They must agree; atoms are columns."
        )


def check_weights(iterate: Iterate, domain: Domain) -> None:
    """Raise ValueError unless the weights are allowed by the domain."""
    weights = iterate.weights
    if not np.isfinite(weights).all():
        raise ValueError("the weights must be finite; got NaN or infinity.")
    if not domain.signed and (weights < 0).any():
        raise ValueError(
            f"{describe(domain)} needs non-negative weights; the least is "
            f"{weights.min():.3g}. Use Span(atoms) for weights of either sign."
        )
    if domain.room(np.zeros(0)) < np.inf and weights.sum() > domain.radius * (1 + 1e-9):
        raise ValueError(
            f"{describe(domain)} needs weights that sum to at most {domain.radius}; "
            f"they sum to {weights.sum():.6g}."
        )


def as_iterate(objective: Objective, domain: Domain, point: Any) -> Iterate:
    """Return a result, an iterate, or the weights of all columns of a Dictionary as an iterate."""
    if isinstance(point, Result):
        point = point.iterate
    if isinstance(point, Iterate):
        if tuple(point.x.shape) != tuple(objective.shape):
            raise ValueError(
                f"the iterate has x of shape {tuple(point.x.shape)}, but "
                f"{objective!r} takes shape {tuple(objective.shape)}."
            )
        iterate = _adopted(domain, point)
    elif isinstance(domain.atoms, Dictionary):
        weights = as_float_array(point, "weights")
        batch = domain.atoms.batch(weights)
        weights = weights[list(batch.keys)]
        iterate = Iterate(zeros(objective.shape), batch, weights).recomputed()
    else:
        raise ValueError(
            f"weights need a Dictionary of atoms; got {domain.atoms!r}. "
            "Give the iterate of a result."
        )
    check_weights(iterate, domain)
    return iterate


def _adopted(domain: Domain, point: Iterate) -> Iterate:
    """Return an iterate on atoms of the domain's own, with a table of its own."""
    batch = domain.atoms.empty()
    for place, key in enumerate(point.atoms.keys):
        own = domain.atoms.atom(key)
        batch = batch.join(point.atoms[[place]] if own is None else own)
    return Iterate(point.x, batch, point.weights.copy()).recomputed()


def _point(objective: Objective, domain: Domain, point: Any, x: Any, weights: Any) -> Iterate:
    """Turn what `certify` was given into an iterate."""
    if sum(given is not None for given in (point, x, weights)) != 1:
        raise ValueError("certify needs exactly one of a point, x= and weights=.")
    if isinstance(point, Result | Iterate):
        return as_iterate(objective, domain, point)
    if point is not None:
        n = getattr(domain.atoms, "n_atoms", None)
        shape = np.shape(point)
        is_x, is_weights = shape == tuple(objective.shape), shape == (n,)
        if is_x == is_weights:
            raise ValueError(
                f"an array of shape {shape} may be {'either' if is_x else 'neither'} "
                f"of x, shape {tuple(objective.shape)}, and the weights of all atoms"
                f"{f', shape ({n},)' if n else ''}. Pass x= or weights=."
            )
        x, weights = (point, None) if is_x else (None, point)
    if weights is not None:
        return as_iterate(objective, domain, weights)
    full = as_float_array(x, "x")
    if full.shape != tuple(objective.shape):
        raise ValueError(f"x must have shape {tuple(objective.shape)}; got {full.shape}.")
    if domain.penalty:
        raise ValueError("a penalised problem is about weights, not x. Pass weights=.")
    return Iterate(full, domain.atoms.empty(), np.zeros(0))
