"""Step rules: where they agree, what they promise, what they ask for."""

import numpy as np
import pytest

from conepursuit import (
    AMP,
    FW,
    NNMP,
    PWMP,
    AdaptiveStep,
    Cone,
    Dictionary,
    ExactStep,
    FunctionObjective,
    Hull,
    LeastSquares,
    OpenLoopStep,
    Quadratic,
    ShortStep,
    UnitVectors,
    iterates,
    minimize,
)
from problems import random_problem


@pytest.mark.parametrize("kind", [NNMP, AMP, PWMP])
def test_short_exact_and_adaptive_steps_agree_for_least_squares(kind):
    D, y = random_problem(np.random.default_rng(0))
    f, cone = LeastSquares(y), Cone(Dictionary(D))
    short, exact, adaptive = (
        minimize(f, cone, kind(step), max_iter=15, tol=0).trace["value"]
        for step in (ShortStep(), ExactStep(), AdaptiveStep())
    )
    np.testing.assert_allclose(short, exact, rtol=1e-10)
    np.testing.assert_allclose(short[:3], adaptive[:3], rtol=1e-6)


def test_exact_steps_minimise_along_the_line():
    rng = np.random.default_rng(1)
    B = rng.standard_normal((6, 6))
    quadratic = Quadratic(B.T @ B + np.eye(6), rng.standard_normal(6))

    def cosh(x):
        return float(np.cosh(x - 1).sum()), np.sinh(x - 1)

    for f in (quadratic, FunctionObjective(cosh, 6)):
        run = iterates(f, Cone(UnitVectors(6)), NNMP(ExactStep()))
        previous = next(run)
        for _, state in zip(range(20), run, strict=False):
            gradient = f.value_and_gradient(state.iterate.x)[1]
            d = previous.iterate.vector(previous.direction)
            assert abs(gradient @ d) <= 1e-7 * abs(previous.direction.slope) + 1e-12
            previous = state


def test_adaptive_steps_do_not_depend_on_the_scale_of_f():
    for scale in (1e-12, 1.0, 1e12):

        def f(x, scale=scale):
            return scale * float(np.cosh(x - 2).sum()), scale * np.sinh(x - 2)

        objective = FunctionObjective(f, 5)
        result = minimize(objective, Cone(UnitVectors(5)), PWMP(AdaptiveStep()), tol=1e-10)
        np.testing.assert_allclose(result.x, 2.0, atol=1e-3)
        assert result.status.success
        assert (np.diff(result.trace["value"]) <= 1e-14 * result.trace["value"][0]).all()


def test_adaptive_steps_ask_for_few_gradients():
    calls = 0
    rng = np.random.default_rng(2)
    X, labels = rng.standard_normal((100, 8)), rng.choice([-1.0, 1.0], 100)

    def logistic(w):
        nonlocal calls
        calls += 1
        z = labels * (X @ w)
        return float(np.logaddexp(0, -z).sum()), X.T @ (-labels / (1 + np.exp(z)))

    result = minimize(FunctionObjective(logistic, 8), Cone(UnitVectors(8)), AMP(AdaptiveStep()),
                      max_iter=100, tol=1e-9)  # fmt: skip
    assert calls <= 3.2 * result.n_iter + 15


def test_adaptive_steps_make_the_progress_they_promise():
    """Decrease >= slope^2 / (2 max(L, M) ||d||^2); here M <= 4 L after the first estimates."""
    rng = np.random.default_rng(3)
    D, y = random_problem(rng)
    B = rng.standard_normal((20, 20)) / 5
    f = Quadratic(B.T @ B + 0.1 * np.eye(20), y)
    run = iterates(f, Cone(Dictionary(D)), NNMP(AdaptiveStep()))
    previous = next(run)
    for _, state in zip(range(100), run, strict=False):
        d = previous.iterate.vector(previous.direction)
        promised = previous.direction.slope**2 / (8 * f.smoothness * (d @ d))
        assert previous.value - state.value >= promised * (1 - 1e-9) - 1e-14 * abs(state.value)
        previous = state


def test_penalised_line_searches_see_the_penalty():
    """Without the penalty's share of the slope a search would pass the minimum."""
    y = np.array([2.0, 0.3, 1.0, -1.0])
    g = FunctionObjective(lambda x: LeastSquares(y).value_and_gradient(x), 4)
    for step in (AdaptiveStep(), ExactStep()):
        for kind in (NNMP, AMP, PWMP):
            cone = Cone(UnitVectors(4), penalty=0.5)
            result = minimize(g, cone, kind(step), max_iter=5000, tol=1e-9)
            np.testing.assert_allclose(result.x, [1.5, 0, 0.5, 0], atol=2e-3)
            assert (np.diff(result.trace["value"]) <= 1e-12).all()


def test_open_loop_steps_are_those_of_the_book():
    D, y = random_problem(np.random.default_rng(4))
    hull = Hull(Dictionary(D), radius=10.0)
    result = minimize(LeastSquares(y), hull, FW(OpenLoopStep()), max_iter=30, tol=0)
    np.testing.assert_allclose(result.trace["step"][:-1], 2 / (np.arange(30) + 2))


def test_rules_can_be_compared_and_printed():
    assert PWMP() == PWMP(ShortStep())
    assert PWMP(AdaptiveStep()) == PWMP(AdaptiveStep()) != PWMP()
    assert repr(PWMP(AdaptiveStep())) == "PWMP(step=AdaptiveStep())"
