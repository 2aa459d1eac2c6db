"""The state of each iteration, the trace of a run, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.atoms.base import Atoms
from conepursuit.pursuit.iterate import Direction, Iterate
from conepursuit.status import Certificate, Status

LITTLE = 1e-10
"""Up to this share of |f(x)| + |decrease| a gap that is the rounding of its proof is accepted.

`State.within` does not accept a larger one for that reason, and the run goes on.
"""


class State(NamedTuple):
    """One iteration of a run, before its step.

    Attributes
    ----------
    iteration : int
        0 at the start; that of the checkpoint where a run goes on from one.
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
        The gap that the rounding of f(x) alone may cause.
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

        Rounding is `rounding`, or twice that of the certificate, which counts up to `LITTLE` times
        |f(x)| + |decrease|.
        """
        little = LITTLE * (abs(self.value) + abs(self.decrease))
        rounding = max(self.rounding, min(2.0 * self.certificate.rounding, little))
        return self.certificate.gap <= max(tol * self.decrease, rounding) < inf

    def saved(self) -> dict[str, Any]:
        """Return what a `Checkpoint` keeps, from which `minimize` goes on."""
        iterate = self.iterate
        return {
            "kind": "minimize",
            "iteration": self.iteration,
            "value": self.value,
            "decrease": self.decrease,
            "shape": np.array(iterate.x.shape, dtype=np.int64),
            "weights": iterate.weights,
            **iterate.atoms.saved(),
        }


class Trace(Mapping[str, Array]):
    """The history of a run: one array per quantity, one entry per state.

    ``step`` and ``good`` in row t belong to the step from state t to t + 1, as ``kind`` does. No
    step leaves the last state: there ``step`` is nan and ``good`` True. ``size`` is the sum of the
    weights, ``accuracy`` delta of the oracle's answer, 1 for an exact oracle, nan where nothing is
    known. ``passes`` says how often all blocks of a dictionary beyond memory were read since the
    run began; it is nan for other atoms.

    Attributes
    ----------
    start : str
        Where the run began: "origin", "given", or "multiple of" an atom or of a sum of atoms.
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
        "passes",
        "time",
    )

    def __init__(self, start: str = "origin") -> None:
        self.start = start
        self._rows: list[tuple[Any, ...]] = []

    def record(self, state: State, passes: float, time: float) -> None:
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
                passes,
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
    """What `minimize` found, with its certificate.

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
    n_columns : int or None
        How many weights `coef` has; None where the atoms are not the columns of a matrix.

    Examples
    --------
    ``x`` is a point, the sum of the atoms; its weights are in ``coef``, one for each column:

    >>> from conepursuit import FCMP, Cone, Dictionary, LeastSquares, minimize
    >>> atoms = Dictionary([[2.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> result = minimize(LeastSquares([6.0, -1.0]), Cone(atoms), FCMP())
    >>> result.x, result.coef
    (array([6., 0.]), array([3., 0., 0.]))
    """

    iterate: Iterate
    value: float
    certificate: Certificate
    status: Status
    n_iter: int
    trace: Trace = field(repr=False)
    n_columns: int | None = None

    @property
    def x(self) -> Array:
        """The minimiser found, a point: the sum of the atoms, each times its weight.

        The weights of all columns of a Dictionary, which `nnls` calls x, are in `coef`.
        """
        return self.iterate.x

    @property
    def coef(self) -> Vector:
        """The weights of all columns of a Dictionary, zero for those without weight.

        UnitVectors have one for each entry. Results over other sets have no such vector.
        """
        if self.n_columns is None:
            raise AttributeError(
                "coef has a weight for each column of a Dictionary, and these atoms are no "
                "columns. Use result.weights, and result.atoms or its keys."
            )
        full = np.zeros(self.n_columns)
        full[list(self.atoms.keys)] = self.weights
        return full

    @property
    def gap(self) -> float:
        """The gap of the certificate: a bound on f(x) - f*, or an estimate of one."""
        return self.certificate.gap

    @property
    def proven(self) -> bool:
        """Whether the gap is a proof."""
        return self.certificate.proven

    @property
    def atoms(self) -> Atoms:
        """The atoms with weight."""
        return self.iterate.atoms

    @property
    def weights(self) -> Vector:
        """The weights of `atoms`."""
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
