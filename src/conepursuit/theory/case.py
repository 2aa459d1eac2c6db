"""A run with the constants that the theorems need, and the bounds that apply to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, is_number
from conepursuit.atoms import ApproximateOracle
from conepursuit.objectives import Objective
from conepursuit.pursuit.algorithms import AMP, FCMP, NNMP, PWMP, Algorithm, LineAlgorithm
from conepursuit.pursuit.domains import Cone, Domain
from conepursuit.pursuit.results import Result
from conepursuit.pursuit.solve import minimize
from conepursuit.pursuit.steps import CurvatureStep, ExactStep, ShortStep
from conepursuit.status import Status
from conepursuit.theory import rates
from conepursuit.theory.constants import curvature_constant, strong_convexity_constant
from conepursuit.theory.faces import TooLargeError
from conepursuit.theory.sets import atoms_as_columns, diameter, radius
from conepursuit.theory.widths import cone_width

DIFFERENCE_ROUNDING = 1e-14
"""A difference of two values of f may be off by this share of the largest |f| of a run."""

KINDS = {
    "NNMP": {"forward", "shrink"},
    "AMP": {"forward", "away"},
    "PWMP": {"forward", "away", "pairwise"},
    "FCMP": {"refit", "forward", "away", "pairwise"},
}
"""The kinds of directions that a run of each algorithm may have."""


def good_steps(result: Result) -> Vector:
    """Return k(t), the number of good steps before each state of a run."""
    good = result.trace["good"][:-1]
    return np.append(0, np.cumsum(good))


@dataclass(frozen=True)
class Case:
    """A run with the constants that the theorems need.

    Attributes
    ----------
    result, objective, domain, algorithm
        The run, and the problem and the algorithm that made it.
    given_optimum, given_width, given_convexity
        The values of `optimum`, `width` and `convexity` that the user gives, None to compute them.
    atoms : array of shape (d, n)
        The atoms as columns.
    optimum : Result
        A minimiser.
    width, convexity : float
        The `cone_width` and the `strong_convexity_constant`, or lower bounds.
    errors : array
        f(x_t) - f* at every state.
    rho : float
        The largest sum of weights, of all iterates and of the minimiser.
    accuracy : float
        delta of the oracle.
    away : bool
        Whether the algorithm is AMP.
    """

    result: Result
    objective: Objective
    domain: Domain
    algorithm: Algorithm
    given_optimum: Result | None
    given_width: float | None
    given_convexity: float | None

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Cone) or self.domain.penalty:
            raise ValueError(
                "the theorems are about a Cone without a penalty; got "
                f"{self.domain!r}. Use Cone(atoms)."
            )
        if not isinstance(self.algorithm, NNMP | AMP | PWMP | FCMP):
            raise ValueError(
                "the theorems are about NNMP(), AMP(), PWMP() and FCMP(); got "
                f"{getattr(self.algorithm, '__name__', repr(self.algorithm))}."
            )
        self.algorithm.check(self.objective, self.domain)
        step = getattr(self.algorithm, "step", ShortStep())
        if not isinstance(step, ShortStep | ExactStep | CurvatureStep):
            raise ValueError(
                f"the theorems are about steps with a known constant; got {step!r}. Use "
                "ShortStep(), ExactStep() or CurvatureStep(C)."
            )
        if self.domain.atoms.accuracy is None:
            raise ValueError(
                f"the theorems need the accuracy of the oracle, and {self.domain.atoms!r} "
                "promises none. Use a Dictionary, or say what it promises."
            )
        self._check_belongs(self.result)
        self._check_run()
        if self.given_optimum is not None:
            self._check_belongs(self.given_optimum)
        for name, given in (("width", self.given_width), ("convexity", self.given_convexity)):
            if given is not None and not (is_number(given) and 0 <= given < inf):
                raise ValueError(
                    f"{name} is a number that is not negative; got {given!r}. A lower bound will "
                    "do, such as cone_width_bounds(A).lower."
                )

    def _check_run(self) -> None:
        """Raise a ValueError if no theorem applies to the run, or another algorithm made it."""
        trace, name = self.result.trace, type(self.algorithm).__name__
        strange = set(trace["kind"][:-1]) - KINDS[name if name in KINDS else "FCMP"]
        if strange:
            raise ValueError(
                f"the run has steps of the kind {sorted(strange)[0]!r}, which {name} does not "
                "make. Give the algorithm that made the run."
            )
        if trace.start != "origin" and isinstance(self.algorithm, NNMP | FCMP):
            raise ValueError(
                f"the theorems about {name} suppose a start at the origin; got a run that starts "
                f"elsewhere ({trace.start}). Run it without start=."
            )
        if self.result.status is Status.RISING:
            raise ValueError(
                "f rose in this run: L, or the C of its CurvatureStep, is too small, and no "
                "theorem holds. For AMP and PWMP use curvature_constant(f, A, pairwise=True)."
            )

    def _check_belongs(self, given: Result) -> None:
        """Raise ValueError if a result is not one of this problem."""
        if not isinstance(given, Result):
            raise ValueError(
                "the run and its optimum must be what minimize returned; got "
                f"{type(given).__name__}."
            )
        shape = tuple(self.objective.shape)
        there = self.objective.value(given.x) if given.x.shape == shape else np.nan
        size = max(abs(there), abs(given.value), 1e-6 * float(np.abs(given.trace["value"]).max()))
        if not abs(there - given.value) <= 1e-6 * size:
            raise ValueError(
                f"the result has f(x) = {given.value:.6g}, the objective {there:.6g} at that x: "
                "they belong to different problems. Give what minimize(objective, domain, "
                "algorithm) returned."
            )

    @cached_property
    def atoms(self) -> Array:
        return atoms_as_columns(self.domain.atoms)

    @cached_property
    def optimum(self) -> Result:
        if self.given_optimum is not None:
            return self.given_optimum
        atoms = self.domain.atoms
        exact = atoms.atoms if isinstance(atoms, ApproximateOracle) else atoms
        found = minimize(
            self.objective, Cone(exact), FCMP(variant=1), tol=1e-15
        ).unless_interrupted()
        if found.status is Status.UNBOUNDED:
            raise ValueError("f has no minimiser over this cone, and the theorems suppose one.")
        return found

    @cached_property
    def width(self) -> float:
        if self.given_width is not None:
            return self.given_width
        return self._enumerated(lambda: cone_width(self.atoms), "width")

    @cached_property
    def convexity(self) -> float:
        if self.given_convexity is not None:
            return self.given_convexity
        return self._enumerated(
            lambda: strong_convexity_constant(self.objective, self.atoms), "convexity"
        )

    def _enumerated(self, compute: Callable[[], float], name: str) -> float:
        """Return a constant; where the set is too large, the error names the argument to give."""
        try:
            return compute()
        except TooLargeError as error:
            raise TooLargeError(f"{error.reason} (give {name}=, a lower bound, or 0)") from None

    @property
    def rounding(self) -> float:
        """How far a difference of two values of f may be off by rounding."""
        return DIFFERENCE_ROUNDING * float(np.abs(self.result.trace["value"]).max())

    @property
    def noise(self) -> float:
        """How far f(x) - f* may be off, by rounding or by the gap of the optimum."""
        return max(self.rounding, self.optimum.certificate.gap)

    @cached_property
    def errors(self) -> Vector:
        errors: Vector = self.result.trace["value"] - self.optimum.value
        return errors

    @cached_property
    def rho(self) -> float:
        return float(max(self.result.trace["size"].max(), self.optimum.iterate.size))

    @property
    def accuracy(self) -> float:
        accuracy = self.domain.atoms.accuracy
        assert accuracy is not None
        return accuracy

    @property
    def away(self) -> bool:
        return isinstance(self.algorithm, AMP)

    @property
    def by_norms(self) -> bool:
        """Whether steps lower f at least as much as short steps with L: then bounds in L hold."""
        if self.objective.smoothness is None:
            return False
        return not isinstance(getattr(self.algorithm, "step", None), CurvatureStep)

    def curvature(self, pairwise: bool) -> float | None:
        """Return a C / rho^2 whose affine-invariant steps are no better than those of the run.

        The bounds with C hold then. It is None where no such C is known.
        """
        if isinstance(self.algorithm, FCMP):
            exact = self.algorithm.variant == 1
        else:
            assert isinstance(self.algorithm, LineAlgorithm)
            if getattr(self.algorithm, "norm", None) == "euclidean":
                return None  # not affine invariant (C6)
            if isinstance(self.algorithm.step, CurvatureStep):
                return self._checked_curvature(self.algorithm.step, pairwise)
            exact = isinstance(self.algorithm.step, ExactStep)
        if not exact or self.objective.smoothness is None:
            return None
        return curvature_constant(self.objective, self.atoms, pairwise=pairwise)

    def _checked_curvature(self, step: CurvatureStep, pairwise: bool) -> float:
        """Return C / rho^2 of a step rule.

        If it is too small for a quadratic, whose curvature constant is known, raise a ValueError.
        """
        given = step.curvature / step.rho**2
        if self.objective.quadratic:
            least = curvature_constant(self.objective, self.atoms, pairwise=pairwise)
            if given < least * (1 - 1e-9):
                raise ValueError(
                    f"C / rho^2 of the CurvatureStep must be at least {least:.6g} for "
                    f"{type(self.algorithm).__name__}; got {given:.6g}. Use "
                    f"curvature_constant(f, A{', pairwise=True' if pairwise else ''})."
                )
        return given

    def sublinear(self) -> Iterator[tuple[str, Vector]]:
        """Yield name and values, over the states, of each bound of order 1 / t that applies."""
        common: dict[str, Any] = {"start": self.errors[0], "accuracy": self.accuracy}
        t, L = np.arange(len(self.errors)), self.objective.smoothness
        if isinstance(self.algorithm, NNMP | FCMP):
            if self.by_norms and L is not None:
                size = radius(self.atoms)
                yield (
                    "Theorem 2",
                    rates.sublinear_bound(t, smoothness=L, rho=self.rho, radius=size, **common),
                )
            if (C := self.curvature(pairwise=False)) is not None:
                bound = rates.affine_sublinear_bound(t, curvature=C * self.rho**2, **common)
                yield "Theorem 5", bound
        else:
            k, common["away"] = good_steps(self.result), self.away
            if self.by_norms and L is not None:
                size, rho = diameter(self.atoms), self.rho
                yield (
                    "Theorem 3, mu = 0",
                    rates.good_steps_bound(k, smoothness=L, rho=rho, diameter=size, **common),
                )
            if (C := self.curvature(pairwise=True)) is not None:
                yield (
                    "Theorem 6, mu = 0",
                    rates.good_steps_bound(k, smoothness=C, rho=self.rho, diameter=1.0, **common),
                )

    def linear(self) -> Iterator[tuple[str, float]]:
        """Yield name and beta of each linear rate that applies: good steps leave 1 - beta."""
        if isinstance(self.algorithm, NNMP):
            return
        common: dict[str, Any] = {"accuracy": self.accuracy, "away": self.away}
        L, mu = self.objective.smoothness, self.objective.strong_convexity
        if self.by_norms and L is not None and mu > 0 and self.width > 0:
            common_norms = {
                "smoothness": L,
                "strong_convexity": mu,
                "width": self.width,
                **common,
            }
            yield "Theorem 3", rates.linear_rate(diameter=diameter(self.atoms), **common_norms)
            if self.away:
                name, size = "Theorem 3, radius", radius(self.atoms)
                yield name, rates.linear_rate(diameter=size, **common_norms)
        C = self.curvature(pairwise=True)
        if C is None and self.by_norms and L is not None and self.objective.quadratic:
            C = L * diameter(self.atoms) ** 2
        if C is not None:
            mu = self.convexity
            if mu > 0:
                yield (
                    "Theorem 6",
                    rates.affine_linear_rate(curvature=C, strong_convexity=mu, **common),
                )
