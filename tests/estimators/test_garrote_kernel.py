"""Coordinate descent for the non-negative garrote against a solver of another kind."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from conepursuit.kernels import factorization as kernels

SWEEPS = {"logistic": kernels.logistic_sweeps, "squared": kernels.squared_sweeps}
LOSSES = list(SWEEPS)


def losses(loss, x, y):
    """Return l(x, y) and its derivative in x."""
    if loss == "logistic":
        return np.logaddexp(0, -x * y), -y * expit(-x * y)
    return (x - y) ** 2 / 2, x - y


class Problem:
    """A random problem with samples of weight zero, a zero atom and a duplicated one."""

    def __init__(self, loss, seed, n=40, p=12, penalty=0.7):
        rng = np.random.default_rng(seed)
        self.loss, self.penalty = loss, penalty
        self.atoms = rng.normal(size=(p, n)) * rng.uniform(0.2, 3, (p, 1))
        self.atoms[3] = 0
        self.atoms[7] = self.atoms[5]
        x = 0.3 + rng.normal(size=n) + (rng.random(p) * (rng.random(p) < 0.5)) @ self.atoms
        self.y = np.where(x > 0, 1.0, -1.0) if loss == "logistic" else x
        self.weights = rng.uniform(0, 2, n) * (rng.random(n) < 0.9)

    def value_and_gradient(self, b, c):
        each, slopes = losses(self.loss, b + c @ self.atoms, self.y)
        slopes = self.weights * slopes
        value = self.weights @ each + self.penalty * c.sum()
        return value, slopes.sum(), self.atoms @ slopes + self.penalty

    def value(self, b, c):
        return self.value_and_gradient(b, c)[0]

    def reference(self, intercept, b=0.0):
        """Return the least value that L-BFGS-B finds."""

        def function(v):
            value, slope, scores = self.value_and_gradient(v[0], v[1:])
            return value, np.append(slope if intercept else 0.0, scores)

        start = np.append(b, np.zeros(len(self.atoms)))
        bounds = [(None, None)] + [(0, None)] * len(self.atoms)
        options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 30}
        return minimize(
            function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        ).fun

    def sweep(self, intercept=False, c=None, b=0.0, tol=1e-10, max_sweeps=10_000):
        """Return c, b, the number of sweeps and whether they converged."""
        c = np.zeros(len(self.atoms)) if c is None else np.array(c, dtype=float)
        arguments = (self.atoms, self.y, self.weights, self.penalty, intercept, c, b)
        b, sweeps, converged = SWEEPS[self.loss](*arguments, tol, max_sweeps)
        return c, b, sweeps, converged


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("loss", LOSSES)
def test_the_value_is_that_of_another_solver(loss, seed, intercept):
    problem = Problem(loss, seed)
    c, b, _, converged = problem.sweep(intercept, b=0.2)
    best = problem.reference(intercept, b=0.2)
    assert converged
    assert (c >= 0).all()
    assert intercept or b == 0.2
    assert problem.value(b, c) == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(15, 40), (200, 9)])
def test_tall_and_wide_problems(loss, shape):
    problem = Problem(loss, 3, *shape)
    c, b, _, converged = problem.sweep(True)
    assert converged
    assert problem.value(b, c) == pytest.approx(problem.reference(True), rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_first_order_conditions(loss):
    problem = Problem(loss, 0)
    c, b, _, _ = problem.sweep(True)
    value, slope, scores = problem.value_and_gradient(b, c)
    assert slope == pytest.approx(0, abs=1e-8 * value)
    np.testing.assert_allclose(scores[c > 0], 0, atol=1e-8 * value)
    assert (scores > -1e-8 * value).all()
    assert 0 < (c > 0).sum() < len(c)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("start", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_sweep_raises_the_objective(loss, start, intercept):
    problem = Problem(loss, 1)
    begin = np.full(len(problem.atoms), start)
    values = [problem.value(0.0, begin)]
    for k in range(1, 25):
        c, b, _, _ = problem.sweep(intercept, begin, max_sweeps=k)
        values.append(problem.value(b, c))
    assert (np.diff(values) <= 1e-13 * np.abs(values[1:])).all()
    assert values[-1] < values[0]


def test_curvature_bound_holds_and_is_attained():
    steps = np.linspace(-1, 1, 401)
    for margin in (-30.0, -2.0, -0.1, 0.0, 0.5, 4.0, 900.0):
        for reach in (0.0, 0.3, 1.0, 5.0):
            near = margin + reach * steps
            attained = (expit(near) * expit(-near)).max()
            bound = kernels.logistic_curvature(margin, reach)
            assert bound >= attained * (1 - 1e-12)
            assert bound == pytest.approx(attained, rel=1e-3)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("loss", LOSSES)
def test_units_of_the_atoms_do_not_matter(loss, scale):
    problem = Problem(loss, 2)
    c, _, sweeps, _ = problem.sweep()
    problem.atoms, problem.penalty = scale * problem.atoms, scale * problem.penalty
    scaled, _, again, converged = problem.sweep()
    assert converged
    assert again == pytest.approx(sweeps, abs=1)
    np.testing.assert_allclose(scale * scaled, c, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_answer_is_a_good_start(loss):
    problem = Problem(loss, 4)
    c, b, sweeps, _ = problem.sweep(True, tol=0.0)
    again, b_again, more, converged = problem.sweep(True, c, b, tol=1e-10)
    assert converged
    assert more <= 2 < sweeps
    np.testing.assert_allclose(again, c, rtol=1e-9, atol=1e-12)
    assert b_again == pytest.approx(b, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_bad_start_does_not_loosen_the_tolerance(loss):
    problem = Problem(loss, 4)
    c, b, _, converged = problem.sweep(True, np.full(len(problem.atoms), 1e3), tol=1e-8)
    assert converged
    assert problem.value(b, c) == pytest.approx(problem.reference(True), rel=1e-8)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("loss", LOSSES)
def test_without_tolerance_it_stops_at_rounding(loss, seed):
    assert Problem(loss, seed).sweep(True, tol=0.0)[3]


@pytest.mark.parametrize("loss", LOSSES)
def test_too_few_sweeps_are_reported(loss):
    _, _, sweeps, converged = Problem(loss, 0).sweep(max_sweeps=2)
    assert (sweeps, converged) == (2, False)


@pytest.mark.parametrize("loss", LOSSES)
def test_weight_on_an_atom_without_use_is_taken_off(loss):
    problem = Problem(loss, 0)
    problem.atoms[4] = np.where(problem.weights > 0, 0.0, 1.0)  # only where nothing counts
    start = np.zeros(len(problem.atoms))
    start[[3, 4]] = 1e6
    c, _, _, converged = problem.sweep(c=start)
    assert converged
    assert c[3] == c[4] == 0


def test_a_large_penalty_leaves_the_intercept():
    problem = Problem("logistic", 0, penalty=1e4)
    c, b, _, converged = problem.sweep(True, np.ones(12))
    positive, negative = (problem.weights[problem.y == sign].sum() for sign in (1, -1))
    assert converged
    assert not c.any()
    assert b == pytest.approx(np.log(positive / negative), rel=1e-8)

    problem = Problem("squared", 0, penalty=1e4)
    c, b, _, converged = problem.sweep(True, np.ones(12))
    assert converged
    assert not c.any()
    assert b == pytest.approx(np.average(problem.y, weights=problem.weights), rel=1e-12)


def test_separable_labels_without_penalty_have_no_minimiser():
    problem = Problem("logistic", 0, penalty=0.0)
    problem.y = np.where(problem.atoms[0] > 0, 1.0, -1.0)
    c, _, _, _ = problem.sweep(max_sweeps=200)
    assert np.isfinite(c).all()
    assert problem.value(0.0, c) < 1e-3


@pytest.mark.parametrize("loss", LOSSES)
def test_samples_without_weight_leave_nothing_but_the_penalty(loss):
    problem = Problem(loss, 0)
    problem.weights = np.zeros(len(problem.y))
    c, b, _, converged = problem.sweep(True, np.ones(12), b=0.5)
    assert converged
    assert not c.any()
    assert b == 0.5
