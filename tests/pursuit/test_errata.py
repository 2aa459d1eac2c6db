"""Where the paper is wrong or silent: one test for each of A1-A15 and C1-C7 of docs/errata.md."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import nnls

from conepursuit import (
    AFW,
    AMP,
    FCMP,
    FW,
    MP,
    NNMP,
    OMP,
    PWMP,
    AdaptiveStep,
    ApproximateOracle,
    Composed,
    Cone,
    CurvatureStep,
    Dictionary,
    ExactStep,
    FunctionAtoms,
    FunctionObjective,
    Hull,
    LeastSquares,
    NonnegativeSphere,
    Quadratic,
    Span,
    Status,
    Symmetric,
    UnitVectors,
    iterates,
    minimize,
)
from conepursuit.datasets import make_synthetic
from conepursuit.testing import check_objective
from problems import random_problem


def states(f, domain, algorithm, n=100):
    return [s for s, _ in zip(iterates(f, domain, algorithm), range(n + 1), strict=False)]


def unit_columns(rng, d, n):
    D = rng.standard_normal((d, n))
    return D / np.linalg.norm(D, axis=0)


# A. Definitions that decide whether an algorithm is right


@pytest.mark.parametrize("algorithm", [AMP(), PWMP(), FCMP(variant=0)], ids=str)
def test_a1_the_origin_is_an_atom_of_infinite_weight_and_never_stored(algorithm):
    D, y = random_problem(np.random.default_rng(0))
    run = states(LeastSquares(y), Cone(Dictionary(D)), algorithm)
    assert run[1].value < run[0].value  # v_0 = 0 does not hold the method at x_0
    for before, after in pairwise(run):
        d = before.direction
        if d.kind == "forward":
            assert d.max_step == np.inf
            assert after.good
        assert all(0 <= key < 30 for key in after.iterate.atoms.keys)


def test_a2_a_step_is_unconstrained_only_if_no_stored_weight_decreases():
    """z - v may happen to be an atom; the weight of v bounds the step all the same."""
    D = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])  # the third is the first minus the second
    f, cone = LeastSquares([3.0, -5.0]), Cone(Dictionary(D[:, :2]))
    start = np.array([0.0, 0.5])
    state = next(iterates(f, cone, PWMP(), start=start))
    assert state.direction.kind == "pairwise"
    assert state.direction.max_step == 0.5
    state = next(iterates(f, Cone(Dictionary(D)), PWMP(), start=np.append(start, 0)))
    assert state.direction.max_step == 0.5


@pytest.mark.parametrize("seed", range(5))
def test_a2_on_a_symmetric_set_amp_never_steps_away(seed):
    rng = np.random.default_rng(seed)
    D, y = unit_columns(rng, 10, 15), rng.standard_normal(10)
    for atoms in (Symmetric(Dictionary(D)), Dictionary(np.hstack([D, -D]))):
        run = minimize(LeastSquares(y), Cone(atoms), AMP(), max_iter=300, tol=0)
        assert set(run.trace["kind"]) == {"forward"}


def test_a3_ties_do_not_depend_on_rounding():
    """After an exact step origin and atom tie; the same run in another order of sums agrees."""
    rng = np.random.default_rng(3)
    D, y = random_problem(rng, 50, 100)
    order = rng.permutation(50)
    one = minimize(LeastSquares(y), Cone(Dictionary(D)), PWMP(), max_iter=25, tol=0)
    two = minimize(LeastSquares(y[order]), Cone(Dictionary(D[order])), PWMP(), max_iter=25, tol=0)
    assert (one.trace["kind"] == two.trace["kind"]).all()
    assert one.atoms.keys == two.atoms.keys
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-9)
    assert one.trace["kind"][1] == "forward"  # the tie of origin and z_0 goes to the origin


def test_a3_among_tied_atoms_the_heaviest_is_taken():
    """v and z alike; and the origin, whose weight has no bound, goes before all atoms."""
    cone, weights = Cone(Dictionary(np.eye(3))), np.array([1.0, 2.0, 0.5])
    for gradient, v, z in (
        ([1.0, 1.0, 0.0], 1, None),
        ([-1.0, -1.0, 1.0], 2, 1),
        ([0.0, 0.0, -1.0], None, 2),
    ):
        f = LeastSquares(weights - np.array(gradient))
        d = next(iterates(f, cone, PWMP(), start=weights)).direction
        assert d.away == v
        assert (d.toward and d.toward.keys[0]) == z


@pytest.mark.parametrize("seed", range(5))
def test_a4_atoms_without_weight_are_not_active(seed):
    """Otherwise AMP would make null steps, and k(t) >= t / 2 would fail."""
    D, y = random_problem(np.random.default_rng(seed), 10, 40, noise=2.0)
    run = states(LeastSquares(y), Cone(Dictionary(D)), AMP(ExactStep()), 300)
    assert all((s.iterate.weights > 0).all() for s in run)
    good = np.cumsum([s.good for s in run[1:]])
    t = np.arange(1, len(run))
    assert (good >= t / 2).all()


def test_a5_a_dropped_atom_has_weight_exactly_zero_and_leaves():
    dropped = 0
    for seed in range(30):
        D, y = random_problem(np.random.default_rng(seed), 6, 12, noise=1.0)
        cone, hull = Cone(Dictionary(D)), Hull(Dictionary(D), radius=1.0)
        for domain, algorithm in ((cone, AMP()), (cone, PWMP()), (hull, AFW())):
            for before, after in pairwise(states(LeastSquares(y), domain, algorithm)):
                if not after.good:
                    gone = before.iterate.atoms.keys[before.direction.away]
                    assert gone not in after.iterate.atoms.keys
                    dropped += 1
    assert dropped > 10


def test_a6_an_atom_selected_again_has_its_weight_increased():
    D, y = random_problem(np.random.default_rng(6), 20, 30)
    run = states(LeastSquares(y), Cone(Dictionary(D)), NNMP(), 200)
    forward = [s for s in run if s.direction.kind == "forward"]
    assert len(forward) > 60
    assert len(run[-1].iterate.weights) <= 30
    assert len(set(run[-1].iterate.atoms.keys)) == len(run[-1].iterate.weights)

    def corner(g):  # generated anew at every call, equal in value
        return np.eye(3)[int(np.argmin(g))]

    f = Quadratic(np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]]), [3.0, 2, 1])
    result = minimize(f, Cone(FunctionAtoms(corner, 3)), NNMP(), max_iter=100, tol=0)
    assert len(result.weights) <= 3


@pytest.mark.parametrize(
    "algorithm", [NNMP(), AMP(), PWMP(), FCMP(variant=0), FCMP(variant=1)], ids=str
)
def test_a7_stationary_points_end_the_run_before_any_division(algorithm):
    f = LeastSquares([-1.0, -2.0, 0.0])
    result = minimize(f, Cone(UnitVectors(3)), algorithm, tol=0)
    assert result.n_iter == 0
    assert result.status in (Status.CONVERGED, Status.STATIONARY)
    assert result.certificate.violation == result.certificate.complementarity == 0
    inside = minimize(LeastSquares([1.0, 2.0, 3.0]), Cone(UnitVectors(3)), algorithm, tol=0)
    assert inside.value == 0
    assert inside.certificate.gap <= 1e-28  # the rounding of x, squared


def test_a7_the_gap_is_complementarity_plus_rho_times_violation():
    D, y = random_problem(np.random.default_rng(7))
    f = FunctionObjective(LeastSquares(y).value_and_gradient, y.shape, smoothness=1.0)
    for state in states(f, Cone(Dictionary(D), radius=25.0), NNMP(), 30):
        c = state.certificate
        assert c.proven
        assert c.method == "radius"
        assert c.gap == pytest.approx(c.complementarity + 25.0 * c.violation, rel=1e-11)


def test_a8_all_three_normalisations_of_the_backward_direction():
    """The step does not depend on the scale of -x; only the comparison with z does."""
    D, y = random_problem(np.random.default_rng(8), 10, 20, noise=1.0)
    atoms = Dictionary(D)
    for norm, size in (
        ("weights", lambda s: s.iterate.size),
        ("gauge", lambda s: atoms.gauge(s.iterate.x)),
        ("euclidean", lambda s: np.linalg.norm(s.iterate.x) / atoms.radius),
    ):
        run = states(LeastSquares(y), Cone(atoms), NNMP(norm=norm), 60)
        shrinking = [s for s in run[:-1] if s.direction.kind == "shrink"]
        assert shrinking
        for state in shrinking:
            assert state.direction.max_step == pytest.approx(size(state), rel=1e-6)
        for before, after in pairwise(run):
            if before.direction.kind == "shrink":  # an exact search along -x ends where <g, x> = 0
                assert abs(after.certificate.complementarity) <= 1e-9 * before.value


def test_a8_the_gauge_is_not_the_sum_of_weights_of_a_wasteful_representation():
    D = Dictionary([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    f, start = LeastSquares([-1.0, -1.0]), np.array([1.0, 1.0, 0.0])  # x is the third atom
    for norm, size in (("gauge", 1.0), ("weights", 2.0), ("euclidean", 1.0)):
        state = next(iterates(f, Cone(D), NNMP(norm=norm), start=start))
        assert state.direction.kind == "shrink"
        assert state.direction.max_step == pytest.approx(size)


def test_a8_on_a_symmetric_set_the_gauge_never_goes_back_and_the_euclidean_norm_does():
    atoms = Symmetric(UnitVectors(2))
    f = Quadratic(np.eye(2), [0.0, 0.0])  # gradient x
    start = minimize(LeastSquares([1.0, 1.0]), Cone(atoms), NNMP()).iterate
    for norm, kind in (("gauge", "forward"), ("euclidean", "shrink")):
        state = next(iterates(f, Cone(atoms), NNMP(norm=norm), start=start))
        assert state.direction.kind == kind


def test_a9_the_gauge_is_infinite_outside_the_cone_and_zero_at_the_origin():
    D = np.array([[1.0, 1.0], [0.0, 1.0]])
    atoms = Dictionary(D)
    assert atoms.gauge(np.zeros(2)) == 0
    assert atoms.gauge(np.array([0.0, 1.0])) == np.inf
    assert atoms.gauge(np.array([3.0, 1.0])) == pytest.approx(3.0)
    assert atoms.gauge(np.array([3e-9, 1e-9])) == pytest.approx(3e-9)  # no absolute tolerance
    assert NonnegativeSphere(2).gauge(np.array([3.0, 4.0])) == pytest.approx(5.0)
    assert NonnegativeSphere(2).gauge(np.array([3.0, -4.0])) == np.inf
    assert UnitVectors(2).gauge(np.array([3.0, 4.0])) == 7
    assert Symmetric(UnitVectors(2)).gauge(np.array([3.0, -4.0])) == 7
    assert Symmetric(atoms).gauge(np.array([0.0, 1.0])) == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(10))
def test_a10_nnmp_shrinks_by_at_most_a_half(seed):
    D, y = random_problem(np.random.default_rng(seed), 10, 25, noise=1.5)
    B = np.random.default_rng(seed).standard_normal((10, 10))
    for f in (LeastSquares(y), Quadratic(B.T @ B + np.eye(10), B @ y)):
        for before, after in pairwise(states(f, Cone(Dictionary(D)), NNMP(), 200)):
            if before.direction.kind == "shrink":
                share = after.step * before.direction.shrink
                assert share <= 0.5
                np.testing.assert_allclose(
                    after.iterate.weights, (1 - share) * before.iterate.weights, rtol=1e-14
                )


@pytest.mark.parametrize("algorithm", [NNMP(), AMP(), PWMP()], ids=str)
def test_a10_too_small_an_l_is_noticed_and_the_cone_is_not_left(algorithm):
    D, y = random_problem(np.random.default_rng(10), 20, 30, noise=1.0)
    wrong = FunctionObjective(LeastSquares(y).value_and_gradient, y.shape, smoothness=0.3)
    seen = []
    result = minimize(wrong, Cone(Dictionary(D)), algorithm, callback=seen.append)
    assert result.status is Status.RISING
    assert "L" in result.message
    assert result.value == pytest.approx(min(s.value for s in seen))
    assert all((s.iterate.weights > 0).all() for s in seen)


def test_a11_each_algorithm_says_which_set_it_minimises_over():
    D, y = random_problem(np.random.default_rng(11), 20, 10, noise=1.0)
    f, atoms = LeastSquares(y), Dictionary(D - 0.5)
    with pytest.raises(ValueError, match=r"MP needs a Span; got Cone.*PWMP"):
        minimize(f, Cone(atoms), MP())
    for algorithm in (NNMP(), AMP(), PWMP()):
        with pytest.raises(ValueError, match="needs a Cone"):
            minimize(f, Span(atoms), algorithm)
    span = 0.5 * np.linalg.lstsq(D - 0.5, y, rcond=None)[1][0]
    conic = 0.5 * nnls(D - 0.5, y)[1] ** 2
    assert span < conic
    for algorithm in (MP(), OMP(variant=0)):
        result = minimize(f, Span(atoms), algorithm, tol=1e-12, max_iter=5000)
        assert result.value == pytest.approx(span, rel=1e-9)
        assert (result.weights < 0).any()
    # Frank-Wolfe with too small a radius finds another point, and its gap is right about it.
    size = float(nnls(D - 0.5, y)[0].sum())
    short = minimize(f, Hull(atoms, radius=0.5 * size), FW(), max_iter=3000, tol=1e-4)
    assert short.value > conic + 10 * short.certificate.gap


def test_a12_the_variants_of_fcmp_agree_for_least_squares_and_differ_otherwise():
    rng = np.random.default_rng(12)
    D, y = random_problem(rng)
    f, cone = LeastSquares(y), Cone(Dictionary(D))
    zero, one = minimize(f, cone, FCMP(variant=0)), minimize(f, cone, FCMP(variant=1))
    assert zero.atoms.keys == one.atoms.keys
    np.testing.assert_allclose(zero.trace["value"], one.trace["value"], rtol=1e-10)
    B = rng.standard_normal((20, 20))
    g = Quadratic(B.T @ B / 20 + 0.1 * np.eye(20), D.sum(axis=1))
    zero = minimize(g, cone, FCMP(variant=0), max_iter=3000)
    one = minimize(g, cone, FCMP(variant=1))
    assert zero.status is one.status is Status.CONVERGED
    assert zero.value == pytest.approx(one.value, rel=1e-6)
    assert zero.n_iter > 2 * one.n_iter
    # Variant 0 selects atoms that are active already; that is no reason to stop.
    chosen = [
        s.direction.toward.keys[0] in s.iterate.atoms.keys
        for s in states(g, cone, FCMP(variant=0), zero.n_iter)
        if s.direction.toward is not None
    ]
    assert sum(chosen) > len(chosen) / 2


def test_a13_good_steps_of_fcmp_variant_0():
    """A step of variant 0 is good where a pairwise step from there would be."""
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        D, B = rng.random((8, 20)), rng.standard_normal((8, 8))
        f = Quadratic(B.T @ B / 8 + 0.05 * np.eye(8), D @ rng.random(20))
        for before, after in pairwise(states(f, Cone(Dictionary(D)), FCMP(variant=0))):
            gradient = f.value_and_gradient(before.iterate.x)[1]
            keys, weights = before.iterate.atoms.keys, before.iterate.weights
            scores = np.array([D[:, k] @ gradient for k in keys])
            if not keys or scores.max() < 1e-6 or before.direction.toward is None:
                continue
            v = int(scores.argmax())
            difference = D[:, before.direction.toward.keys[0]] - D[:, keys[v]]
            step = -gradient @ difference / (f.smoothness * difference @ difference)
            assert after.good == (step < weights[v])
            found.append(after.good)
    assert 10 < sum(found) < len(found), (sum(found), len(found))


def test_a14_an_oracle_that_finds_no_descent_means_the_origin():
    rng = np.random.default_rng(14)
    D = unit_columns(rng, 6, 20)
    for delta in (1.0, 0.7, 0.3):
        atoms = ApproximateOracle(Dictionary(D), delta)
        for _ in range(50):
            g = rng.standard_normal(6)
            score, exact = float(atoms.lmo(g).inner(g)[0]), float((D.T @ g).min())
            assert score <= delta * exact + 1e-15
            assert (score < 0) == (exact < 0)
    f = LeastSquares([-1.0, -1.0, -1.0])
    for atoms in (UnitVectors(3), NonnegativeSphere(3)):
        state = next(iterates(f, Cone(atoms), PWMP()))
        assert state.direction.slope == 0


def test_a14_delta_enters_the_gap():
    D, y = random_problem(np.random.default_rng(14), noise=1.0)
    optimum = 0.5 * nnls(D, y)[1] ** 2
    worst = Cone(ApproximateOracle(Dictionary(D), 0.3))
    for state in states(LeastSquares(y), worst, PWMP(), 200):
        assert state.certificate.proven
        assert state.value - optimum <= state.certificate.gap + 1e-12 * optimum


def test_a15_separable_logistic_loss_has_no_minimiser():
    rng = np.random.default_rng(15)
    X = rng.random((40, 5))  # all labels are 1, so every positive weight helps

    def logistic(z):
        return float(np.logaddexp(0, -z).sum()), -1 / (1 + np.exp(np.clip(z, -700, 700)))

    f = Composed(FunctionObjective(logistic, 40), X)
    for algorithm in (PWMP(AdaptiveStep()), FCMP(variant=1)):
        result = minimize(f, Cone(UnitVectors(5)), algorithm, max_iter=50, tol=1e-8)
        assert np.isfinite(result.x).all()
        assert not result.certificate.proven


def test_a15_shifted_kullback_leibler_has_a_smoothness_constant():
    rng = np.random.default_rng(15)
    y, shift = rng.poisson(2.0, 12).astype(float), 0.1

    def kl(x):
        ratio = (y + shift) / (x + shift)
        return float(((y + shift) * np.log(ratio) - y + x).sum()), 1 - ratio

    f = FunctionObjective(kl, 12, smoothness=(y.max() + shift) / shift**2)
    check_objective(f, rng.random((20, 12)) * 3)
    D = rng.random((12, 8))
    short = minimize(f, Cone(Dictionary(D)), PWMP(), max_iter=3000, tol=1e-9)
    adaptive = minimize(f, Cone(Dictionary(D)), PWMP(AdaptiveStep()), max_iter=3000, tol=1e-9)
    assert (np.diff(short.trace["value"]) <= 1e-12 * abs(short.trace["value"][0])).all()
    assert adaptive.value <= short.value + 1e-9 * short.trace["value"][0]


def test_a15_adaptive_steps_stay_inside_a_domain():
    """-log is infinite at the border; steps that would leave are shortened."""

    def barrier(x):
        if (x <= -1).any() or (x >= 3).any():
            return np.inf, np.full_like(x, np.nan)
        return float(-np.log(1 + x).sum() - np.log(3 - x).sum()), -1 / (1 + x) + 1 / (3 - x)

    f = FunctionObjective(barrier, 4)
    for algorithm in (NNMP(AdaptiveStep()), PWMP(AdaptiveStep()), FCMP(variant=1),
                      PWMP(ExactStep())):  # fmt: skip
        result = minimize(f, Cone(UnitVectors(4)), algorithm, max_iter=500, tol=1e-10)
        np.testing.assert_allclose(result.x, np.ones(4), atol=1e-4)
        assert np.isfinite(result.trace["value"]).all()


# C. The affine-invariant algorithms


def affine_pair(seed, d=10, n=15):
    """Return one least-squares problem in two systems of coordinates."""
    rng = np.random.default_rng(seed)
    D, y = random_problem(rng, d, n, noise=1.0)
    M = np.linalg.qr(rng.standard_normal((d, d)))[0] @ np.diag(rng.uniform(0.5, 2, d))
    f = LeastSquares(y)
    return D, f, Composed(f, M), Dictionary(np.linalg.solve(M, D))


def constants(D):
    """Return max_s <s, s> and max_{s,v} ||s - v||^2 with the origin among the atoms."""
    A = np.hstack([np.zeros((len(D), 1)), D])
    square = np.sum(A**2, axis=0)
    return float(square.max()), float((square[:, None] + square - 2 * A.T @ A).max())


def test_c1_the_strong_convexity_constant_needs_the_square_of_gamma():
    """eps <= <r, s - v>^2 / (2 mu_f) at every state, in any units; no bound by <r, s - v> is.

    With atoms 0, e_1, e_2 and mu = 1 the constant is mu CWidth^2 = 1/2.
    """
    ratios = []
    for seed in range(40):
        for scale in (1e-3, 1.0, 1e3):
            y = scale * np.random.default_rng(seed).standard_normal(2) * 3
            optimum = 0.5 * float(np.minimum(y, 0) @ np.minimum(y, 0))
            for state in states(LeastSquares(y), Cone(UnitVectors(2)), PWMP(CurvatureStep(2.0))):
                error, slope = state.value - optimum, -state.direction.slope
                assert error <= slope**2 / (2 * 0.5) * (1 + 1e-9) + 1e-14 * (y @ y)
                if slope > 1e-6 * scale:
                    ratios.append(error / slope)
    assert max(ratios) > 1e4 * min(ratios)


def test_c2_rho_and_the_constants_form_a_consistent_pair():
    """beta = rho^2 mu_f / C with mu_f >= mu CWidth^2 holds at every good step."""
    n = 3
    beta = (1 / n) / 2.0  # atoms 0, e_1..e_n: cone width 1 / sqrt(n), squared diameter 2
    for seed in range(30):
        y = np.random.default_rng(seed).standard_normal(n) * 3
        f, optimum = LeastSquares(y), 0.5 * float(np.minimum(y, 0) @ np.minimum(y, 0))
        for rho in (1.0, 5.0):
            rule = CurvatureStep(2.0 * rho**2, rho)
            for before, after in pairwise(states(f, Cone(UnitVectors(n)), PWMP(rule), 60)):
                if after.good:
                    bound = (1 - beta) * (before.value - optimum)
                    assert after.value - optimum <= bound + 1e-14 * f.value(np.zeros(n))


@pytest.mark.parametrize("kind", [AMP, PWMP])
def test_c3_the_affine_invariant_step_is_clipped(kind):
    clipped = 0
    for seed in range(40):
        D, y = random_problem(np.random.default_rng(seed), 6, 20, noise=2.0)
        rule = CurvatureStep(constants(D)[1])
        for before, after in pairwise(states(LeastSquares(y), Cone(Dictionary(D)), kind(rule), 80)):
            assert (after.iterate.weights > 0).all()
            assert after.step <= before.direction.max_step
            clipped += not after.good
    assert clipped > 0


@pytest.mark.parametrize("kind", [NNMP, AMP, PWMP])
def test_c4_only_the_ratio_of_curvature_and_rho_squared_matters(kind):
    D, y = random_problem(np.random.default_rng(4))
    f, cone, C = LeastSquares(y), Cone(Dictionary(D)), constants(D)[1]
    one = minimize(f, cone, kind(CurvatureStep(C)), max_iter=50, tol=0)
    two = minimize(f, cone, kind(CurvatureStep(16 * C, rho=4.0)), max_iter=50, tol=0)
    assert (one.trace["value"] == two.trace["value"]).all()


def test_c5_the_diameter_of_the_set_suffices_as_curvature():
    """s in A and v in S: each step makes the progress that L diam(A)^2 promises."""
    for seed in range(10):
        D, y = random_problem(np.random.default_rng(seed), 10, 20, noise=1.0)
        radius, diameter = constants(D)
        assert diameter < 4 * radius
        run = states(LeastSquares(y), Cone(Dictionary(D)), PWMP(CurvatureStep(diameter)), 80)
        for before, after in pairwise(run):
            if after.good:
                promised = before.direction.slope**2 / (2 * diameter)
                assert before.value - after.value >= promised * (1 - 1e-9) - 1e-13 * run[0].value


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["nnmp", "gauge", "amp", "pwmp"])
def test_c6_curvature_steps_commute_with_a_change_of_variables(kind, seed):
    D, f, mapped, atoms = affine_pair(seed)
    radius, diameter = constants(D)
    algorithm = {
        "nnmp": NNMP(CurvatureStep(radius)),
        "gauge": NNMP(CurvatureStep(radius), norm="gauge"),
        "amp": AMP(CurvatureStep(diameter)),
        "pwmp": PWMP(CurvatureStep(diameter)),
    }[kind]
    one = minimize(f, Cone(Dictionary(D)), algorithm, max_iter=60, tol=0)
    two = minimize(mapped, Cone(atoms), algorithm, max_iter=60, tol=0)
    assert (one.trace["kind"] == two.trace["kind"]).all()
    assert one.atoms.keys == two.atoms.keys
    error = np.abs(one.trace["value"] - two.trace["value"]).max()
    assert error <= 1e-12 * one.trace["value"][0]


def test_c6_variant_1_is_affine_invariant_and_the_short_step_is_not():
    D, f, mapped, atoms = affine_pair(6)
    one = minimize(f, Cone(Dictionary(D)), FCMP(variant=1), tol=1e-12)
    two = minimize(mapped, Cone(atoms), FCMP(variant=1), max_iter=one.n_iter, tol=0)
    n = min(len(one.trace["value"]), len(two.trace["value"]))
    np.testing.assert_allclose(one.trace["value"][:n], two.trace["value"][:n], rtol=1e-10)
    short = [
        minimize(g, Cone(a), PWMP(), max_iter=20, tol=0).trace["value"][20]
        for g, a in ((f, Dictionary(D)), (mapped, atoms))
    ]
    assert abs(short[0] - short[1]) > 1e-6 * one.trace["value"][0]


def test_c6_the_euclidean_norm_is_refused():
    D, y = random_problem(np.random.default_rng(6))
    with pytest.raises(ValueError, match="not affine invariant"):
        minimize(LeastSquares(y), Cone(Dictionary(D)),
                 NNMP(CurvatureStep(1.0), norm="euclidean"))  # fmt: skip


def test_c7_one_diameter_for_every_direction_slows_pwmp_down():
    errors = {"short": [], "curvature": []}
    for seed in range(5):
        D, y = make_synthetic(np.random.default_rng(seed))
        optimum = 0.5 * nnls(D, y)[1] ** 2
        for name, algorithm in (
            ("short", PWMP()),
            ("curvature", PWMP(CurvatureStep(constants(D)[1]))),
        ):
            run = minimize(LeastSquares(y), Cone(Dictionary(D)), algorithm, max_iter=50, tol=0)
            assert (np.diff(run.trace["value"]) <= 1e-12 * run.trace["value"][0]).all()
            errors[name].append(run.value - optimum)
    assert np.mean(errors["short"]) < 1e-3 * np.mean(errors["curvature"])
