"""The constants and the rates of conepursuit.theory; the theorems at every step of random runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conepursuit import (
    AMP,
    FCMP,
    FW,
    MP,
    NNMP,
    PWMP,
    AdaptiveStep,
    ApproximateOracle,
    Composed,
    Cone,
    CurvatureStep,
    Dictionary,
    ExactStep,
    FunctionAtoms,
    Huber,
    Hull,
    LeastSquares,
    Logistic,
    Quadratic,
    UnitVectors,
    minimize,
    plot_convergence,
)
from conepursuit.experiments import theory, tightness
from conepursuit.experiments.theory import random_atoms, random_quadratic
from conepursuit.theory import (
    TooLargeError,
    affine_linear_bound,
    affine_linear_rate,
    affine_sublinear_bound,
    atomic_norm,
    check_rates,
    cone_width,
    curvature_constant,
    diameter,
    good_steps,
    good_steps_bound,
    linear_bound,
    linear_rate,
    radius,
    rate_bounds,
    strong_convexity_constant,
    sublinear_bound,
)

# The gauge


@given(seed=st.integers(0, 10**6), power=st.integers(-60, 60))
def test_the_gauge_proves_itself(seed, power):
    rng = np.random.default_rng(seed)
    A, scale = random_atoms(rng), 10.0**power
    x = scale * A @ (rng.random(A.shape[1]) * rng.integers(0, 2, A.shape[1]))
    value = atomic_norm(A, x)
    tiny = 1e-9 * scale
    np.testing.assert_allclose(A @ value.weights, x, rtol=0, atol=tiny * radius(A))
    assert (value.weights >= 0).all()
    assert value.weights.sum() == pytest.approx(value, rel=1e-12)
    assert (value.dual @ A).max() <= 1 + 1e-9
    assert value.dual @ x == pytest.approx(value, rel=1e-8, abs=tiny)
    assert value == pytest.approx(Dictionary(A).gauge(x), rel=1e-7, abs=1e2 * tiny)


def test_outside_the_cone_the_dual_separates():
    rng = np.random.default_rng(0)
    for _ in range(50):
        A = rng.random((3, 5))
        x = A @ rng.random(5) - rng.uniform(1, 3, 3)
        value = atomic_norm(A, x)
        assert value == np.inf
        assert value.weights is None
        assert (value.dual @ A).max() <= 1e-12
        assert value.dual @ x > 0


def test_the_gauge_at_the_ends():
    assert atomic_norm(np.eye(2), [0.0, 0.0]) == 0
    assert atomic_norm([[2.0]], [3.0]) == 1.5
    assert atomic_norm([[2.0]], [-3.0]) == np.inf
    assert atomic_norm([[2.0, 0.0, -1.0]], [-3.0]).weights.tolist() == [0.0, 0.0, 3.0]
    assert atomic_norm(UnitVectors(3), [1.0, 2.0, 3.0]) == pytest.approx(6)
    with pytest.raises(ValueError, match="shape of an atom"):
        atomic_norm(np.eye(2), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("ratio", [1e4, 1e8])
def test_the_gauge_of_atoms_of_unlike_lengths(ratio):
    rng = np.random.default_rng(0)
    short = rng.standard_normal((3, 3))
    A = np.hstack([short, ratio * rng.standard_normal((3, 1))])
    assert atomic_norm(A, short.sum(axis=1)) == pytest.approx(3, rel=1e-9)
    assert Dictionary(A).gauge(short.sum(axis=1)) == pytest.approx(3, rel=1e-6)


@pytest.mark.parametrize("angle", [1e-5, 1e-7])
def test_the_gauge_of_atoms_that_are_nearly_parallel(angle):
    assert atomic_norm([[1.0, 1.0], [0.0, angle]], [2.0, angle]) == pytest.approx(2)
    assert atomic_norm([[1.0, 1.0], [0.0, angle]], [2.0, 1e-3]) == np.inf


# The constants


def test_curvature_constants_by_hand():
    f, A = Quadratic(np.diag([4.0, 1.0]), np.ones(2)), np.array([[1.0, -1.0], [0.0, 3.0]])
    assert curvature_constant(f, A) == pytest.approx(13)  # <s, Q s> = 4 and 4 + 9
    assert curvature_constant(f, A, pairwise=True) == pytest.approx(25)  # s - v = (2, -3)
    assert curvature_constant(f, A, 3.0, pairwise=True) == pytest.approx(9 * 25)
    loss = Logistic(np.array([1.0, -1.0]))
    assert curvature_constant(loss, A) == pytest.approx(loss.smoothness * 10)
    assert curvature_constant(loss, A, pairwise=True) == pytest.approx(loss.smoothness * 13)


def test_curvature_constants_bound_every_step():
    rng = np.random.default_rng(0)
    for _ in range(100):
        A = random_atoms(rng)
        f = random_quadratic(rng, A)
        points = np.hstack([A, np.zeros((len(A), 1))])
        s, v = points[:, rng.integers(0, points.shape[1], 2)].T
        assert s @ f.Q @ s <= curvature_constant(f, A) * (1 + 1e-12)
        assert (s - v) @ f.Q @ (s - v) <= curvature_constant(f, A, pairwise=True) * (1 + 1e-12)
        assert curvature_constant(f, A) <= f.smoothness * radius(A) ** 2 * (1 + 1e-12)
        bound = f.smoothness * diameter(A) ** 2
        assert curvature_constant(f, A, pairwise=True) <= bound * (1 + 1e-12)


def test_the_strong_convexity_constant_bounds_the_error():
    """f(x) - f* <= <r, s - v>^2 / (2 mu_f), and mu_f >= mu CWidth^2 (C1, C2)."""
    rng = np.random.default_rng(0)
    tightest = np.inf
    for _ in range(150):
        A = random_atoms(rng)
        f = random_quadratic(rng, A)
        mu = strong_convexity_constant(f, A)
        assert mu >= f.strong_convexity * cone_width(A) ** 2 * (1 - 1e-9)
        best = minimize(f, Cone(Dictionary(A)), FCMP(variant=1), tol=1e-15).value
        for _ in range(20):
            active = rng.permutation(A.shape[1])[: rng.integers(0, A.shape[1] + 1)]
            x = A[:, active] @ (3 * rng.random(len(active)))
            value, gradient = f.value_and_gradient(x)
            scores = -gradient @ A
            span = scores.max(initial=0) - scores[active].min(initial=0)
            if value - best > 1e-10:
                ratio = span**2 / (2 * mu * (value - best))
                assert ratio >= 1 - 1e-9
                tightest = min(tightest, ratio)
    assert tightest < 1.5


def test_the_constants_are_affine_invariant():
    rng = np.random.default_rng(0)
    for _ in range(40):
        A = random_atoms(rng)
        f, M = random_quadratic(rng, A), rng.standard_normal((len(A), len(A))) + 2 * np.eye(len(A))
        other, B = Quadratic(M.T @ f.Q @ M, M.T @ f.c), np.linalg.solve(M, A)
        for pairwise in (False, True):
            same = curvature_constant(other, B, pairwise=pairwise)
            assert same == pytest.approx(curvature_constant(f, A, pairwise=pairwise), rel=1e-9)
        same = strong_convexity_constant(other, B)
        assert same == pytest.approx(strong_convexity_constant(f, A), rel=1e-6)


def test_a_singular_quadratic_has_a_rate():
    design = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    f, A = Composed(LeastSquares([1.0, 2.0]), design), np.eye(3)
    assert strong_convexity_constant(f, A) == pytest.approx(cone_width(design) ** 2)
    cone = Cone(UnitVectors(3))
    margins = check_rates(minimize(f, cone, PWMP(ExactStep())), f, cone, PWMP(ExactStep()))
    assert margins.smallest["Theorem 6"] >= 1
    assert "Theorem 3" not in margins  # mu = 0


def test_a_quadratic_that_falls_without_bending_has_no_rate():
    A, f = np.array([[1.0, 2.0], [0.0, 1.0]]), Quadratic(np.diag([1.0, 0.0]), [1.0, -0.001])
    assert strong_convexity_constant(f, A) == 0
    cone, algorithm = Cone(Dictionary(A)), PWMP(ExactStep())
    margins = check_rates(minimize(f, cone, algorithm, max_iter=50), f, cone, algorithm)
    assert "Theorem 6" not in margins
    assert margins.smallest["Theorem 6, mu = 0"] >= 1


def test_other_losses_have_bounds():
    A, f = np.eye(2), Huber([3.0, -1.0], delta=1.0)
    assert curvature_constant(f, A, pairwise=True) == pytest.approx(2 * f.smoothness)
    assert strong_convexity_constant(f, A) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: curvature_constant(LeastSquares([1.0, 2.0]), np.eye(3)), "fit the objective"),
        (lambda: strong_convexity_constant(Quadratic(np.zeros((2, 2)), [1, 1]), np.eye(2)), "line"),
        (lambda: curvature_constant(LeastSquares([1.0]), np.eye(1), rho=-1.0), "rho"),
        (lambda: sublinear_bound(-1, smoothness=1, rho=1, radius=1, start=1), "got -1"),
        (lambda: affine_sublinear_bound(1, curvature=1, start=1, accuracy=2), r"\(0, 1\]"),
        (lambda: affine_linear_rate(curvature=0, strong_convexity=1), "positive for a rate"),
    ],
)
def test_constants_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# The bounds


def test_bounds_are_the_formulas():
    """Theorems 2, 3, 5 and 6 with the corrections, against numbers worked out by hand."""
    t, half = np.array([0, 4]), {"start": 3.0, "accuracy": 0.5}
    two = sublinear_bound(t, smoothness=2.0, rho=3.0, radius=0.5, **half)
    np.testing.assert_allclose(two, [4 * (4 * 4.5 + 3) / 4, 4 * (4 * 4.5 + 3) / 6])
    np.testing.assert_allclose(affine_sublinear_bound(t, curvature=4.5, **half), two)
    pairwise = good_steps_bound(t, smoothness=2.0, rho=3.0, diameter=0.5, **half)
    np.testing.assert_allclose(pairwise, [4.5 / 0.25 + 3, 2 * (4.5 / 0.25 + 3) / 3])
    away = good_steps_bound(t, smoothness=2.0, rho=3.0, diameter=0.5, away=True, **half)
    np.testing.assert_allclose(away, [4.5 / 0.125 + 3, 2 * (4.5 / 0.125 + 3) / 2.5])
    norms = {"smoothness": 2.0, "strong_convexity": 0.5, "width": 0.5, "diameter": 2.0}
    beta = 0.25 * 0.5 * 0.25 / 8
    assert linear_rate(**norms, accuracy=0.5) == pytest.approx(beta)
    assert linear_rate(**norms, accuracy=0.5, away=True) == pytest.approx(beta / 4)
    curve = linear_bound([0, 1, 2], start=3.0, **norms, accuracy=0.5)
    np.testing.assert_allclose(curve, 3 * (1 - beta) ** np.arange(3))
    affine = {"curvature": 8.0, "strong_convexity": 0.125, "accuracy": 0.5}
    assert affine_linear_rate(**affine) == pytest.approx(beta)
    assert affine_linear_rate(**{**affine, "curvature": 72.0}, rho=3.0) == pytest.approx(beta)
    np.testing.assert_allclose(affine_linear_bound([0, 1, 2], start=3.0, **affine), curve)


# The theorems


CHUNKS = range(4)


@pytest.mark.parametrize("seed", CHUNKS)
def test_the_theorems_on_random_tiny_problems(seed):
    """160 in all: geometric decrease at good steps, exact oracles and the worst of accuracy d.

    `conepursuit reproduce theory` looks at 1,000.
    """
    corrective = ("AMP", "PWMP", "PWMP, affine inv.", "FCMP variant 0", "FCMP variant 1")
    tallies = theory.run(160 // len(CHUNKS), seed, corrective)
    assert {accuracy for _, _, accuracy in tallies} == {1.0, 0.7, 0.3}
    assert all(tally.n_claims > 20 for tally in tallies.values())
    smallest = {key: tally.smallest for key, tally in tallies.items()}
    assert min(smallest.values()) >= 1 - 1e-9
    if seed == 0:
        assert smallest["PWMP, affine inv.", "Theorem 6", 1.0] < 1.2  # the rate is nearly attained


def test_every_bound_of_every_algorithm():
    tallies = theory.run(15, seed=9)
    assert len({name for name, _, _ in tallies}) == 10
    assert min(tally.smallest for tally in tallies.values()) >= 1 - 1e-9


@pytest.mark.parametrize("seed", CHUNKS)
def test_a_quarter_is_right_for_amp_in_four_hundred_runs(seed):
    least, example = theory.away_steps(20 // len(CHUNKS), 20, seed=seed)
    assert 0.25 <= least < 0.5
    assert 0.25 <= example < 0.5


def test_the_good_step_of_amp_that_violates_the_published_rate():
    """B1 of the errata, with its numbers."""
    atoms, y = theory.COUNTEREXAMPLE
    f, cone = LeastSquares(y), Cone(Dictionary(atoms))
    result = minimize(f, cone, AMP(), max_iter=20, tol=0.0)
    beta = (cone_width(atoms) / diameter(atoms)) ** 2
    assert beta == pytest.approx(0.07217, abs=5e-6)
    best = minimize(f, cone, FCMP(variant=1), tol=1e-15).value
    errors = result.trace["value"] - best
    gains = 1 - errors[1:] / errors[:-1]
    assert result.trace["good"][12]
    assert gains[12] == pytest.approx(0.02586, abs=5e-6)
    assert beta / 4 < gains[12] < beta / 2
    margins = check_rates(result, f, cone, AMP())
    assert margins["Theorem 3"][12] == pytest.approx(gains[12] / (beta / 4), rel=1e-6)
    assert margins.smallest["Theorem 3"] >= 1
    assert margins.smallest["Theorem 3, radius"] >= 1


def test_margins_of_a_violated_theorem_are_below_one():
    """A width that is too large makes a promise that is not kept."""
    atoms, y = theory.COUNTEREXAMPLE
    f, cone = LeastSquares(y), Cone(Dictionary(atoms))
    result = minimize(f, cone, AMP(), max_iter=20, tol=0.0)
    doubled = check_rates(result, f, cone, AMP(), width=2 * cone_width(atoms))
    assert doubled.smallest["Theorem 3"] < 1


def test_bounds_lie_above_the_run_and_can_be_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    atoms, y = theory.COUNTEREXAMPLE
    f, cone = LeastSquares(y), Cone(Dictionary(atoms))
    best = minimize(f, cone, FCMP(variant=1), tol=1e-15)
    for algorithm in (NNMP(), AMP(), PWMP(), FCMP(variant=1)):
        result = minimize(f, cone, algorithm, max_iter=30)
        curves = rate_bounds(result, f, cone, algorithm, optimum=best)
        assert curves
        for curve in curves.values():
            assert (curve >= result.trace["value"] - best.value).all()
        axes = plot_convergence(result, optimum=best.value, bounds=curves)
        assert len(axes.lines) == 1 + len(curves)
        pyplot.close("all")


def test_of_bad_steps_nothing_is_promised():
    """The run of the figure in docs/theory.md, whose third step is clipped."""
    atoms = np.array([[1.5, 0.56, 0.27], [0.15, 0.42, 0.37]])
    f, cone = LeastSquares([0.6, 1.9]), Cone(Dictionary(atoms))
    result = minimize(f, cone, PWMP(), max_iter=12, tol=0.0)
    k, good = good_steps(result), result.trace["good"]
    assert not good[2]
    assert k[:5].tolist() == [0, 1, 2, 2, 3]
    assert len(k) == len(good)
    margins = check_rates(result, f, cone, PWMP())["Theorem 3"]
    assert np.isnan(margins[2])
    assert (margins[[0, 1, 3]] >= 1).all()


def test_rho_bounds_the_weights_of_all_iterates():
    atoms = np.array([[1.5, 0.56, 0.27], [0.15, 0.42, 0.37]])
    f, cone = LeastSquares([2.0, 1.0]), Cone(Dictionary(atoms))
    best = minimize(f, cone, FCMP(variant=1), tol=1e-15)
    wide = minimize(f, cone, PWMP(), start=[0.0, 0.0, 6.0], max_iter=12, tol=0.0)
    rho = wide.trace["size"].max()
    assert rho == 6.0 > best.iterate.size
    expected = good_steps_bound(
        good_steps(wide),
        smoothness=1.0,
        rho=rho,
        diameter=diameter(atoms),
        start=wide.trace["value"][0] - best.value,
    )
    found = rate_bounds(wide, f, cone, PWMP(), optimum=best)["Theorem 3, mu = 0"]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("domain", "algorithm", "message"),
    [
        (Hull(UnitVectors(2), radius=1.0), FW(), "got Hull"),
        (Cone(UnitVectors(2), penalty=0.1), PWMP(), "penalty=0.1"),
        (Cone(UnitVectors(2)), MP(), "got MP"),
        (Cone(UnitVectors(2)), PWMP(AdaptiveStep()), "AdaptiveStep"),
        (Cone(FunctionAtoms(lambda g: -g, 2, accuracy=None)), PWMP(), "promises none"),
    ],
)
def test_check_rates_refuses_what_no_theorem_speaks_of(domain, algorithm, message):
    f = LeastSquares([1.0, 2.0])
    result = minimize(f, Cone(UnitVectors(2)), PWMP())
    with pytest.raises(ValueError, match=message):
        check_rates(result, f, domain, algorithm)


def test_check_rates_refuses_results_of_other_problems():
    f, cone = LeastSquares([1.0, 2.0]), Cone(UnitVectors(2))
    run = minimize(f, cone, PWMP())
    for other in (LeastSquares([1.0, 3.0]), LeastSquares([1.0, 2.0, 3.0])):
        with pytest.raises(ValueError, match="different problems"):
            check_rates(run, other, Cone(UnitVectors(len(other.y))), PWMP())
    with pytest.raises(ValueError, match="got float"):
        check_rates(run, f, cone, PWMP(), optimum=0.0)
    with pytest.raises(ValueError, match="width is a number"):
        check_rates(run, f, cone, PWMP(), width=-1.0)
    with pytest.raises(ValueError, match="which NNMP does not make"):
        check_rates(minimize(f, cone, FCMP()), f, cone, NNMP())
    with pytest.raises(ValueError, match="start at the origin"):
        check_rates(minimize(f, cone, NNMP(), start=[1.0, 1.0]), f, cone, NNMP())


def test_check_rates_refuses_constants_that_are_too_small():
    f, cone = LeastSquares([1.0, 2.0]), Cone(UnitVectors(2))
    forgotten = PWMP(CurvatureStep(curvature_constant(f, np.eye(2))))
    run = minimize(f, cone, forgotten, max_iter=3, tol=0.0)
    with pytest.raises(ValueError, match="pairwise=True"):
        check_rates(run, f, cone, forgotten)
    large = np.random.default_rng(0).random((12, 60))
    f, cone = LeastSquares(np.ones(12)), Cone(Dictionary(large))
    with pytest.raises(TooLargeError, match="give width="):
        check_rates(minimize(f, cone, PWMP()), f, cone, PWMP())
    separable = Logistic(np.array([1.0, 1.0]))
    run = minimize(separable, Cone(UnitVectors(2)), PWMP(), max_iter=5)
    with pytest.raises(ValueError, match="no minimiser"):
        check_rates(run, separable, Cone(UnitVectors(2)), PWMP())


def test_which_bounds_speak_of_which_run():
    f, cone = LeastSquares([1.0, 2.0]), Cone(UnitVectors(2))

    def names(algorithm, **given):
        return list(check_rates(minimize(f, cone, algorithm), f, cone, algorithm, **given))

    assert names(NNMP()) == ["Theorem 2"]
    assert names(NNMP(ExactStep())) == ["Theorem 2", "Theorem 5"]
    assert names(NNMP(ExactStep(), norm="euclidean")) == ["Theorem 2"]  # not affine invariant
    assert names(NNMP(CurvatureStep(1.0))) == ["Theorem 5"]
    assert names(AMP()) == ["Theorem 3, mu = 0", "Theorem 3", "Theorem 3, radius", "Theorem 6"]
    assert names(FCMP(variant=0)) == ["Theorem 2", "Theorem 3", "Theorem 6"]
    assert names(FCMP()) == ["Theorem 2", "Theorem 5", "Theorem 3", "Theorem 6"]
    assert names(PWMP(), width=0.0, convexity=0.0) == ["Theorem 3, mu = 0"]


def test_an_approximate_oracle_is_taken_at_its_word():
    atoms, y = theory.COUNTEREXAMPLE
    f, exact = LeastSquares(y), Cone(Dictionary(atoms))
    rough = Cone(ApproximateOracle(exact.atoms, 0.5))
    result = minimize(f, exact, PWMP(), max_iter=20, tol=0.0)
    sharp = check_rates(result, f, exact, PWMP())["Theorem 3"]
    loose = check_rates(result, f, rough, PWMP())["Theorem 3"]
    np.testing.assert_allclose(loose, 4 * sharp)


def test_the_curvature_of_a_step_counts_by_its_scale():
    atoms, y = theory.COUNTEREXAMPLE
    f, cone = LeastSquares(y), Cone(Dictionary(atoms))
    C = curvature_constant(f, atoms, pairwise=True)
    for algorithm in (PWMP(CurvatureStep(C)), PWMP(CurvatureStep(9 * C, rho=3.0))):
        result = minimize(f, cone, algorithm, max_iter=20, tol=0.0)
        margins = check_rates(result, f, cone, algorithm)
        assert list(margins) == ["Theorem 6, mu = 0", "Theorem 6"]
        assert margins.smallest["Theorem 6"] == pytest.approx(1.75, abs=0.75)


# The experiments


def test_tightness_of_theorem_3():
    outcomes = tightness.run()
    first = outcomes[0].ratios["diameter"]  # the numbers of errata D2
    assert first.mean() == pytest.approx(87, abs=1)
    assert np.median(first) == pytest.approx(3.3, abs=0.05)
    assert first.min() == pytest.approx(1.01, abs=0.005)
    for outcome in outcomes:
        assert outcome.width == pytest.approx(np.sin(outcome.theta / 2), abs=1e-12)
        assert all((ratios >= 1 - 1e-12).all() for ratios in outcome.ratios.values())
        assert outcome.worst == pytest.approx(1, abs=1e-9)  # with the radius the bound is exact
        assert outcome.along >= 1
    assert min(o.ratios["radius"].min() for o in outcomes) < 1.001
