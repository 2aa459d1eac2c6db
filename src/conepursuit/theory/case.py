"""A run with the constants that the theorems ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from conepursuit.algorithms import AMP, FCMP, NNMP, PWMP, Algorithm, LineAlgorithm
from conepursuit.arrays import Array, Vector
from conepursuit.atoms import ApproximateOracle
from conepursuit.domains import Cone, Domain
from conepursuit.objectives import Objective
from conepursuit.results import Result
from conepursuit.solve import minimize
from conepursuit.steps import CurvatureStep, ExactStep, ShortStep
from conepursuit.theory import rates
from conepursuit.theory.constants import curvature_constant, strong_convexity_constant
from conepursuit.theory.sets import atoms_as_columns, diameter, radius
from conepursuit.theory.widths import cone_width

ROUNDING = 1e-14
"""Share of |f| that is rounding in a difference of two values."""


def good_steps(result: Result) -> Vector:
    """Return k(t), the number of good steps before each state of a run."""
    good = result.trace["good"][:-1]
    return np.append(0, np.cumsum(good))


@dataclass(frozen=True)
class Case:
    """A run with the constants that the theorems ask for."""

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
                f"the theorems are about NNMP, AMP, PWMP and FCMP; got {self.algorithm!r}."
            )
        self.algorithm.check(self.objective, self.domain)
        step = getattr(self.algorithm, "step", ShortStep())
        if not isinstance(step, ShortStep | ExactStep | CurvatureStep):
            raise ValueError(
                "the theorems are about steps with a known constant: ShortStep, ExactStep or "
                f"CurvatureStep; got {step!r}."
            )
        if self.domain.atoms.accuracy is None:
            raise ValueError(
                f"the theorems need the accuracy of the oracle, and {self.domain.atoms!r} "
                "promises none."
            )
        self._check_belongs(self.result)
        if self.given_optimum is not None:
            self._check_belongs(self.given_optimum)

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
        return minimize(self.objective, Cone(exact), FCMP(variant=1), tol=1e-15)

    @cached_property
    def width(self) -> float:
        return cone_width(self.atoms) if self.given_width is None else self.given_width

    @cached_property
    def convexity(self) -> float:
        if self.given_convexity is not None:
            return self.given_convexity
        return strong_convexity_constant(self.objective, self.atoms)

    @property
    def rounding(self) -> float:
        """What a difference of values may be off by."""
        return ROUNDING * float(np.abs(self.result.trace["value"]).max())

    @property
    def noise(self) -> float:
        """What f(x) - f* may be off by."""
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
        """Whether the steps are at least as good as those with L."""
        if self.objective.smoothness is None:
            return False
        return not isinstance(getattr(self.algorithm, "step", None), CurvatureStep)

    def curvature(self, pairwise: bool) -> float | None:
        """Return C / rho^2 of steps that are at least as good as the affine-invariant ones."""
        if isinstance(self.algorithm, FCMP):
            exact = self.algorithm.variant == 1
        else:
            assert isinstance(self.algorithm, LineAlgorithm)
            if getattr(self.algorithm, "norm", None) == "euclidean":
                return None  # not affine invariant (C6)
            if isinstance(self.algorithm.step, CurvatureStep):
                return self.algorithm.step.curvature / self.algorithm.step.rho**2
            exact = isinstance(self.algorithm.step, ExactStep)
        if not exact or self.objective.smoothness is None:
            return None
        return curvature_constant(self.objective, self.atoms, pairwise=pairwise)

    def sublinear(self) -> Iterator[tuple[str, Vector]]:
        """Yield the bounds of order 1 / t."""
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
        """Yield the rates beta of good steps."""
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
        if (C := self.curvature(pairwise=True)) is not None:
            mu = self.convexity
            if mu > 0:
                yield (
                    "Theorem 6",
                    rates.affine_linear_rate(curvature=C, strong_convexity=mu, **common),
                )
