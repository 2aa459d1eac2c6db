"""The theorems are tests: explicit constants, exact and adversarial oracles."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import nnls

from conepursuit import (
    AMP,
    FCMP,
    MP,
    NNMP,
    PWMP,
    ApproximateOracle,
    Cone,
    Dictionary,
    LeastSquares,
    Quadratic,
    Span,
    Symmetric,
    UnitVectors,
    iterates,
    minimize,
)
from conepursuit.theory import sublinear_bound
from problems import random_problem


def states(f, domain, algorithm, n):
    return [s for s, _ in zip(iterates(f, domain, algorithm), range(n + 1), strict=False)]


@pytest.mark.parametrize("delta", [1.0, 0.7, 0.3])
@pytest.mark.parametrize(
    "algorithm",
    [NNMP(), NNMP(norm="gauge"), NNMP(norm="euclidean"), FCMP(variant=0), FCMP(variant=1)],
    ids=str,
)
def test_theorem_2_sublinear_bound_at_every_iteration(algorithm, delta):
    for seed in range(6):
        D, y = random_problem(np.random.default_rng(seed), 12, 20, noise=1.0)
        atoms, f = Dictionary(D), LeastSquares(y)
        oracle = atoms if delta == 1 else ApproximateOracle(atoms, delta)
        weights, residual = nnls(D, y)
        optimum = 0.5 * residual**2
        run = states(f, Cone(oracle), algorithm, 150)
        # With the weights' sum for the gauge, rho must bound that sum (errata A8).
        rho = max(weights.sum(), *(s.iterate.size for s in run))
        errors = np.array([s.value - optimum for s in run])
        bound = sublinear_bound(
            np.arange(len(run)),
            smoothness=1.0,
            rho=rho,
            radius=atoms.radius,
            accuracy=delta,
            start=errors[0],
        )
        assert (errors <= bound).all()


def test_theorem_2_for_a_quadratic_with_its_own_smoothness():
    rng = np.random.default_rng(0)
    for _ in range(5):
        B = rng.standard_normal((8, 8))
        f = Quadratic(B.T @ B, rng.standard_normal(8))
        solved = minimize(f, Cone(UnitVectors(8)), FCMP(variant=1), tol=1e-13)
        run = states(f, Cone(UnitVectors(8)), NNMP(), 200)
        rho = max(solved.weights.sum(), *(s.iterate.size for s in run))
        errors = np.array([s.value - solved.value for s in run])
        bound = sublinear_bound(
            np.arange(len(run)), smoothness=f.smoothness, rho=rho, radius=1.0, start=errors[0]
        )
        assert (errors <= bound).all()


@pytest.mark.parametrize(
    ("algorithm", "factor"), [(PWMP(), 1.0), (FCMP(variant=0), 1.0), (AMP(), 0.25)]
)
def test_theorem_3_geometric_decrease_at_good_steps(algorithm, factor):
    """Atoms 0, e_1..e_n: cone width 1/sqrt(n), squared diameter 2; AMP with a quarter (B1)."""
    for n in (1, 2, 3, 5):
        beta = factor / n / 2
        for seed in range(20):
            rng = np.random.default_rng(seed)
            scales = rng.uniform(0.2, 1.0, n)
            f = Quadratic(np.diag(scales), rng.standard_normal(n) * 3)
            ratio = f.strong_convexity / f.smoothness
            optimum = -0.5 * float((np.maximum(f.c, 0) ** 2 / scales).sum())
            for before, after in pairwise(states(f, Cone(UnitVectors(n)), algorithm, 80)):
                if after.good:
                    allowed = (1 - beta * ratio) * (before.value - optimum)
                    assert after.value - optimum <= allowed + 1e-13 * abs(optimum)


def test_slopes_are_those_of_the_directions_under_a_rough_oracle():
    """An active atom may beat the oracle's answer; PWMP then takes it, with its own score."""
    beaten = 0
    for seed in range(20):
        D, y = random_problem(np.random.default_rng(seed), 6, 12, noise=1.0)
        f = LeastSquares(y)
        for state in states(f, Cone(ApproximateOracle(Dictionary(D), 0.5)), PWMP(), 40):
            gradient = f.value_and_gradient(state.iterate.x)[1]
            vector = state.iterate.vector(state.direction)
            size = np.linalg.norm(gradient) * np.linalg.norm(vector)
            slope = min(gradient @ vector, 0.0)  # an ascent means that x is stationary
            assert abs(state.direction.slope - slope) <= 1e-12 * size
            answer = ApproximateOracle(Dictionary(D), 0.5).lmo(gradient)
            toward = state.direction.toward
            beaten += toward is not None and toward.keys != answer.keys
    assert beaten > 0


def test_nnmp_with_the_gauge_is_mp_on_symmetric_atoms():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        D, y = rng.standard_normal((10, 15)), rng.standard_normal(10)
        f = LeastSquares(y)
        conic = states(f, Cone(Symmetric(Dictionary(D))), NNMP(norm="gauge"), 40)
        linear = states(f, Span(Dictionary(D)), MP(), 40)
        assert len(conic) == len(linear)
        for a, b in zip(conic, linear, strict=True):
            np.testing.assert_allclose(a.iterate.x, b.iterate.x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("shape", [(20, 30), (30, 10), (5, 50), (1, 6), (6, 1)])
def test_fcmp_variant_1_is_nnls(shape):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        for D in (rng.random(shape), rng.standard_normal(shape)):
            y = rng.standard_normal(shape[0])
            result = minimize(LeastSquares(y), Cone(Dictionary(D)), FCMP(variant=1), tol=1e-12)
            weights, residual = nnls(D, y)
            assert result.value == pytest.approx(0.5 * residual**2, rel=1e-10, abs=1e-14 * (y @ y))
            if shape[0] >= shape[1]:  # otherwise the weights need not be unique
                found = result.coef
                np.testing.assert_allclose(found, weights, rtol=0, atol=1e-8)
