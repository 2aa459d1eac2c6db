"""How far to go along a direction.

Rules are immutable; what they learn during a run lives in the function that `start` returns. The
caller clips a step at ``direction.max_step``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from typing import ClassVar, Protocol, TypeAlias

from scipy.optimize import brentq

from conepursuit.arrays import Array, inner, norm
from conepursuit.objectives.base import Objective
from conepursuit.pursuit.iterate import Direction, Line

Stepper: TypeAlias = Callable[[Array, Array, Direction], float]
"""Takes x, d as an array, and the Direction; returns the step."""

EXPANSIONS = 150
"""The most steps tried in search of a minimum on a line, each up to ten times the one before.

If f still falls after these, it counts as falling without end.
"""

HUGE = 1e100
"""Slopes above this are never taken for rounding; the norms to compare them with may overflow."""

FLAT = 1e-14
"""Positive slopes of at most this times ||g|| ||d|| are rounding and count as zero."""


class StepRule(Protocol):
    """A rule for the step; `monotone` says whether f never rises under it."""

    monotone: ClassVar[bool]

    def start(self, objective: Objective) -> Stepper:
        """Return the stepper of one run; raise ValueError if the objective lacks what it needs."""


@dataclass(frozen=True)
class ShortStep:
    """Minimise the quadratic upper bound f(x) + s <g, d> + s^2 L/2 ||d||^2.

    The rule of Algorithms 2 and 3 of the paper. It needs L; for least squares, with L = 1, it is
    the exact step.
    """

    monotone: ClassVar[bool] = True

    def start(self, objective: Objective) -> Stepper:
        L = objective.smoothness
        if L is None:
            raise ValueError(
                f"ShortStep needs the smoothness L; {objective!r} has none. "
                "Use AdaptiveStep(), which estimates it, or give smoothness=."
            )
        return lambda x, vector, d: _model_step(d.line, L * inner(vector, vector))


@dataclass(frozen=True)
class CurvatureStep:
    """The affine-invariant step rho^2 <-g, d> / C of Algorithms 5 and 6 of the paper.

    Parameters
    ----------
    curvature : float
        C, an upper bound on the curvature constant of f over rho * A: for a quadratic with
        Hessian Q, rho^2 max_s <s, Q s> for NNMP and rho^2 max_{s,v} <s - v, Q (s - v)> for AMP
        and PWMP. L rho^2 radius(A)^2 and L rho^2 diam(A)^2 are bounds.
    rho : float
        The scale that C was taken at. Only C / rho^2 matters.
    """

    curvature: float
    rho: float = 1.0
    monotone: ClassVar[bool] = True
    affine_invariant: ClassVar[bool] = True
    """The same run is made in any coordinates of x."""

    def __post_init__(self) -> None:
        if not (0 < self.curvature < inf and 0 < self.rho < inf):
            raise ValueError(
                "CurvatureStep needs a positive curvature and rho; "
                f"got {self.curvature} and {self.rho}."
            )

    def start(self, objective: Objective) -> Stepper:
        factor = self.rho**2 / self.curvature
        return lambda x, vector, d: -d.slope * factor


@dataclass(frozen=True)
class ExactStep:
    """Minimise f along the line.

    In closed form where the Hessian is constant, otherwise the root of the derivative.
    """

    monotone: ClassVar[bool] = True

    def start(self, objective: Objective) -> Stepper:
        if objective.quadratic:
            return lambda x, vector, d: _model_step(d.line, objective.curvature(x, vector) or 0.0)
        return lambda x, vector, d: line_minimum(objective, x, vector, d.line)


@dataclass(frozen=True)
class AdaptiveStep:
    """The short step with L estimated on the way; needs no L and respects the domain of f.

    Notes
    -----
    A step s is accepted if f is finite at x + s d and <grad f(x + s d), d> <= 0, that is, if it
    does not pass the minimum on the line; a step that does is shortened by the secant rule. By
    convexity f never rises, and with M the estimate the decrease is at least
    ``<g, d>^2 / (2 max(L, M) ||d||^2)`` as for the short step. Gradients are compared because
    values lose half their digits near a minimiser.
    """

    monotone: ClassVar[bool] = True

    def start(self, objective: Objective) -> Stepper:
        estimate: float | None = None

        def step(x: Array, vector: Array, d: Direction) -> float:
            nonlocal estimate
            square = inner(vector, vector)
            if square == 0:
                return _model_step(d.line, 0.0)
            if estimate is None:
                estimate = first_estimate(objective, x, vector, d.line, square)
            trial = min(_model_step(d.line, estimate * square), d.max_step)
            if trial == inf:
                return inf
            taken, slope = shortened(objective, x, vector, d.line, trial)
            if taken > 0:
                secant = (slope - d.slope) / (taken * square)
                estimate = max(secant, estimate / 4) if taken == trial else max(secant, estimate)
            return taken

        return step


@dataclass(frozen=True)
class OpenLoopStep:
    """The step 2 / (t + 2) of Frank-Wolfe in iteration t, whatever f is; f may rise."""

    monotone: ClassVar[bool] = False
    shares: ClassVar[bool] = True
    """Steps are shares of the way to a point of a bounded set."""

    def start(self, objective: Objective) -> Stepper:
        iteration = -1

        def step(x: Array, vector: Array, d: Direction) -> float:
            nonlocal iteration
            iteration += 1
            return 2.0 / (iteration + 2.0)

        return step


def slope_at(objective: Objective, point: Array, vector: Array, charge: float) -> float:
    """Return the slope <grad f, vector> + charge at a point of a line, inf outside the domain of f.

    A positive slope that may be rounding (`FLAT`) counts as zero.
    """
    value, gradient = objective.value_and_gradient(point)
    if not isfinite(value):
        return inf
    slope = inner(gradient, vector) + charge
    if not isfinite(slope):
        return inf
    level = 0 < slope < HUGE and slope <= FLAT * norm(gradient) * norm(vector)
    return 0.0 if level else slope


def shortened(
    objective: Objective, x: Array, vector: Array, line: Line, step: float
) -> tuple[float, float]:
    """Return a step of at most `step` that does not pass the minimum, and the slope there.

    The step is 0 if none is found.
    """
    for attempt in range(200):
        there = slope_at(objective, x + step * vector, vector, line.charge)
        if there <= 0:
            return step, there
        secant = line.slope / (line.slope - there) if there < inf else 0.5
        # If f is very steep at x, secants hardly shorten the step: then it is halved.
        step *= min(max(secant, 0.05), 0.95 if attempt < 3 else 0.5)
    return 0.0, line.slope


def damped(
    objective: Objective, x: Array, value: float, vector: Array, line: Line
) -> tuple[float, float, Array]:
    """Return a step along a Newton direction, with the value and the gradient there.

    Notes
    -----
    The step 1 is tried first. A step is taken if f does not rise, beyond rounding, and does not
    ascend there by more than a tenth of the slope at the start; one that is too long is shortened
    by the secant rule. Where f still descends there by more than a fifth of that slope, the model
    has too much curvature, and the step is made longer by the same rule, up to ``line.max_step``.
    The step is 0 if none is taken.
    """
    step, slack = 1.0, 4e-16 * abs(value)
    taken: tuple[float, float, Array] | None = None
    for attempt in range(100):
        there, gradient = objective.value_and_gradient(x + step * vector)
        slope = inner(gradient, vector) + line.charge if isfinite(there) else inf
        bend = slope - line.slope  # 0 on a straight piece of f
        secant = 0.5 if not isfinite(slope) else (-line.slope / bend if bend > 0 else inf)
        if slope <= -0.1 * line.slope and there + step * line.charge <= value + slack:
            taken = step, there, gradient
            if slope >= 0.2 * line.slope or step == line.max_step:
                break
            step = min(step * min(secant, 4.0), line.max_step)
        elif taken is not None:
            break
        else:
            # If f bends close to x only, secants hardly shorten the step: then it is halved.
            step *= min(max(secant, 0.05), 0.95 if attempt < 3 else 0.5)
    return taken or (0.0, value, gradient)


def _model_step(line: Line, curvature: float) -> float:
    """Minimise s * slope + s^2 * curvature / 2; without curvature go as far as allowed."""
    return -line.slope / curvature if curvature > 0 else line.max_step


def first_estimate(
    objective: Objective, x: Array, vector: Array, line: Line, square: float
) -> float:
    """Estimate the curvature along a line where nothing is known of its scale.

    It is 0 if there is none, and inf if no step is short enough for f to be finite there.
    """
    if square == 0:
        return 1.0
    step, outside, there = min(1.0 / square**0.5, line.max_step), False, inf
    for _ in range(EXPANSIONS):
        there = slope_at(objective, x + step * vector, vector, line.charge)
        if there == inf:
            step, outside = step / 10, True
        elif there - line.slope < -0.1 * line.slope and step < line.max_step and not outside:
            step = min(10 * step, line.max_step)  # the slope has hardly changed
        else:
            break
    else:
        return inf if outside else 0.0
    return float(max(there - line.slope, -1e-3 * line.slope) / (step * square))


def line_minimum(objective: Objective, x: Array, vector: Array, line: Line) -> float:
    """Return the root of the slope along a line, or max_step if f still falls there."""

    def slope(step: float) -> float:
        return slope_at(objective, x + step * vector, vector, line.charge)

    curvature, size = objective.curvature(x, vector), norm(vector)
    guess = 1.0 / size if size else line.max_step
    if curvature is not None and curvature > 0:  # it may be negative by rounding
        guess = -line.slope / curvature
    low, high, outside = 0.0, min(guess, line.max_step), inf
    for _ in range(EXPANSIONS):
        there = slope(high)
        if there == 0:
            return high
        if 0 < there < inf:
            root, _report = brentq(
                slope, low, high, xtol=1e-14 * high, rtol=1e-14, full_output=True, disp=False
            )
            return float(root)
        if there == inf:
            outside, high = high, 0.5 * (low + high)
        elif high >= line.max_step:
            return line.max_step
        else:
            low, high = high, min(10 * high, 0.5 * (high + outside), line.max_step)
    return low if outside < inf else inf
