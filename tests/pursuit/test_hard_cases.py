"""Problems that once broke the core, each with what it is about."""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from conepursuit import (
    AFW,
    AMP,
    FCMP,
    FW,
    NNMP,
    PFW,
    PWMP,
    AdaptiveStep,
    ApproximateOracle,
    Composed,
    Cone,
    Dictionary,
    ExactStep,
    FunctionObjective,
    Hull,
    LeastSquares,
    NonnegativeSphere,
    Quadratic,
    Status,
    Symmetric,
    Union,
    UnitVectors,
    certify,
    iterates,
    minimize,
)
from problems import random_problem


def penalised_optimum(D, y, penalty):
    """Return the least 1/2 ||D w - y||^2 + penalty * sum(w) over w >= 0, by trying supports."""
    best = 0.5 * float(y @ y)
    for k in range(1, min(D.shape) + 1):
        for support in combinations(range(D.shape[1]), k):
            part = D[:, support]
            if np.linalg.matrix_rank(part) == k:
                w = np.linalg.solve(part.T @ part, part.T @ y - penalty)
                if (w >= 0).all():
                    value = 0.5 * float(np.sum((part @ w - y) ** 2)) + penalty * float(w.sum())
                    best = min(best, value)
    return best


@pytest.mark.parametrize("variant", [0, 1])
def test_dependent_atoms_trade_places_under_a_penalty(variant):
    """Moving along a null direction leaves x but lowers the sum of weights."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        D, y = rng.integers(0, 4, (2, 5)).astype(float), rng.integers(0, 5, 2).astype(float)
        cone = Cone(Dictionary(D), penalty=1.0)
        result = minimize(LeastSquares(y), cone, FCMP(variant=variant), tol=1e-11)
        assert result.value == pytest.approx(penalised_optimum(D, y, 1.0), abs=1e-9)


@pytest.mark.parametrize("variant", [0, 1])
def test_dependent_atoms_trade_places_in_a_hull(variant):
    for seed in range(200):
        rng = np.random.default_rng(seed)
        D, y = rng.integers(0, 4, (2, 5)).astype(float), rng.integers(0, 5, 2).astype(float)
        hull = Hull(Dictionary(D), radius=1.0)
        result = minimize(LeastSquares(y), hull, FCMP(variant=variant), tol=1e-10)
        assert result.certificate.gap <= 1e-9 * (1 + y @ y)


def test_many_atoms_and_a_penalty():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        D = rng.standard_normal((20, 100))
        D /= np.linalg.norm(D, axis=0)
        y = rng.standard_normal(20)
        cone = Cone(Dictionary(D), penalty=0.02 * float((D.T @ y).max()))
        result = minimize(LeastSquares(y), cone, FCMP(variant=1))
        assert result.status is Status.CONVERGED
        assert result.certificate.proven


def test_atoms_without_curvature():
    f = Quadratic(np.diag([1.0, 0.0]), [1.0, 1.0])
    for variant in (0, 1):
        bounded = minimize(f, Hull(UnitVectors(2), radius=2.0), FCMP(variant=variant))
        assert bounded.value == pytest.approx(-2.0)
        free = minimize(f, Cone(UnitVectors(2)), FCMP(variant=variant), max_iter=50)
        assert free.status in (Status.UNBOUNDED, Status.MAX_ITER)


def test_a_start_on_other_atoms_is_rebuilt_on_the_domains_own():
    f = LeastSquares([1.0, 1.0])
    plain, mirrored = Dictionary(np.eye(2)), Dictionary(np.diag([1.0, -1.0]))
    other = minimize(f, Cone(plain), PWMP())
    result = minimize(f, Cone(mirrored), PWMP(), start=other)
    assert result.value == pytest.approx(0.5)
    assert certify(f, Cone(mirrored), other).gap >= 2.0 - 0.5
    with pytest.raises(ValueError, match="no atom with the key"):
        minimize(f, Cone(Symmetric(plain)), PWMP(), start=other)
    with pytest.raises(ValueError, match="no atom with the key"):
        minimize(f, Cone(NonnegativeSphere(2)), PWMP(), start=other)
    with pytest.raises(ValueError, match="its keys are 0 to 0"):
        minimize(f, Cone(Dictionary([[1.0], [1.0]])), PWMP(), start=other)


@pytest.mark.parametrize(
    "atoms",
    [
        Symmetric(Dictionary(np.eye(4)[:, :3])),
        Union(UnitVectors(4), Dictionary(np.ones((4, 2)))),
        UnitVectors(4),
        NonnegativeSphere(4),
    ],
    ids=repr,
)
def test_every_set_takes_its_own_iterates_back(atoms):
    f = LeastSquares([1.0, -2.0, 3.0, 0.5])
    first = minimize(f, Cone(atoms), PWMP(), max_iter=3, tol=0)
    again = minimize(f, Cone(atoms), PWMP(), start=first, max_iter=0)
    assert again.atoms.keys == first.atoms.keys
    np.testing.assert_allclose(again.x, first.x, atol=1e-14)


def test_threads_may_share_a_start():
    D, y = random_problem(np.random.default_rng(0), 20, 60)
    f, cone = LeastSquares(y), Cone(Dictionary(D))
    start = minimize(f, cone, FCMP(variant=1), max_iter=4, tol=0)

    def run(_):
        return minimize(f, cone, FCMP(variant=1), start=start).value

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(run, range(32)))) == 1


@pytest.mark.parametrize("algorithm", [FCMP(variant=1), PWMP(), AMP(), NNMP()], ids=str)
def test_a_long_atom_does_not_hide_a_short_one(algorithm):
    """The estimate of the gap and the ties of scores are free of the scale of single atoms."""
    for D, y in (
        (np.diag([1e9, -1.0]), [1.0, -1.0]),
        (np.diag([1e11, 1.0]), [1.0, 1.0]),
        (np.array([[0.01, 0.0], [-0.01, 1e11]]), [1.0, 0.0]),
    ):
        result = minimize(LeastSquares(y), Cone(Dictionary(D)), algorithm, max_iter=3000)
        assert result.value <= 1e-6


@pytest.mark.parametrize(
    "algorithm",
    [PWMP(AdaptiveStep()), NNMP(AdaptiveStep()), PWMP(ExactStep()), FCMP(variant=1)],
    ids=str,
)
def test_a_pole_near_the_start(algorithm):
    """The slope at 0 is a million times that at the far end of a step."""

    def f(x):
        z = x + 1e-8
        if (z <= 0).any():
            return np.inf, 0 * x
        return float((x - 0.01 * np.log(z)).sum()), 1 - 0.01 / z

    result = minimize(FunctionObjective(f, 1), Cone(UnitVectors(1)), algorithm)
    assert result.status is Status.CONVERGED
    assert result.x[0] == pytest.approx(0.01, rel=1e-3)


def test_a_flat_minimum_on_the_line():
    def quartic(x):
        return float(((x - 0.37) ** 4).sum() / 4), (x - 0.37) ** 3

    for algorithm in (PWMP(ExactStep()), AMP(ExactStep())):
        result = minimize(FunctionObjective(quartic, 3), Cone(UnitVectors(3)), algorithm)
        np.testing.assert_allclose(result.x, 0.37, atol=1e-2)


def test_an_approximate_oracle_proves_no_minimiser():
    worst = ApproximateOracle(Dictionary(np.diag([1.0, 0.9])), 0.8)
    result = minimize(LeastSquares([1.0, 1.0]), Cone(worst, penalty=0.95), PWMP())
    assert result.status is Status.STALLED
    assert result.certificate.gap >= 1.0 - 0.99875
    slanted = ApproximateOracle(Dictionary([[1.0, 1.0], [1.0, 0.8]]), 0.8)
    result = minimize(LeastSquares([1.0, 1.0]), Hull(slanted, radius=0.5), FW())
    assert not result.status.success


def test_the_gap_of_an_ill_conditioned_quadratic_stays_a_bound():
    f = Quadratic(np.array([[0.1, -0.3], [-0.3, 0.9 + 1e-10]]), [1.0, 0.0])
    certificate = certify(f, Cone(UnitVectors(2)), x=np.zeros(2))
    assert certificate.proven
    assert certificate.gap >= 44999933831  # in exact rationals


def test_spectra_of_sparse_matrices():
    n = 300
    path = sparse.diags_array([np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n))
    laplacian = (path.T @ path).tocsc()  # the vector of ones is in its kernel
    exact = 2 + 2 * np.cos(np.pi / n)
    for L in (Quadratic(laplacian, np.ones(n)).smoothness,
              Composed(LeastSquares(np.ones(n - 1)), path.tocsr()).smoothness):  # fmt: skip
        assert exact <= L <= 1.001 * exact
    assert Quadratic(sparse.csc_array([[2.0]]), [1.0]).smoothness == 2.0
    for Q, message in (
        (-sparse.eye_array(n), "eigenvalue -1"),
        (sparse.csc_array([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (sparse.csc_array([[np.nan]]), "finite"),
        (sparse.csc_array([[1j]]), "real numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            Quadratic(Q, np.ones(Q.shape[0]))


def test_frank_wolfe_at_a_vertex():
    for seed in range(100):
        D = np.random.default_rng(seed).random((3, 4))
        hull = Hull(Dictionary(D), radius=0.7)
        for algorithm in (AFW(), PFW(), FW()):
            result = minimize(LeastSquares(10 * D[:, 0]), hull, algorithm, tol=1e-9, max_iter=200)
            assert result.status not in (Status.UNBOUNDED, Status.RISING)
            assert np.isfinite(result.value)


def test_fcmp_notices_that_the_arithmetic_is_exhausted():
    ended = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        D, y = rng.standard_normal((8, 15)), rng.standard_normal(8)
        result = minimize(LeastSquares(y), Cone(Dictionary(D)), FCMP(variant=1), tol=0)
        ended += result.status is not Status.MAX_ITER
    assert ended >= 48


def test_an_ill_conditioned_refit_never_makes_f_rise():
    """Atoms at angles down to 1e-7 to one line, of either sign: slow or stuck, but descending."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        D = rng.standard_normal((8, 1)) + 10.0 ** rng.uniform(-7, -4) * rng.standard_normal((8, 11))
        D *= rng.choice([-1.0, 1.0], 11)
        y = rng.standard_normal(8)
        for variant in (0, 1):
            cone = Cone(Dictionary(D))
            result = minimize(LeastSquares(y), cone, FCMP(variant=variant), max_iter=100)
            assert result.status is not Status.RISING
            # weights of 1e7 that cancel leave 1e-9 of x to rounding
            assert (np.diff(result.trace["value"]) <= 1e-8 * (y @ y)).all()


def test_functions_that_fall_without_end():
    linear = FunctionObjective(lambda x: (-float(x.sum()), -np.ones(3)), 3)
    for algorithm in (FCMP(variant=1), PWMP(AdaptiveStep()), PWMP(ExactStep())):
        result = minimize(linear, Cone(UnitVectors(3)), algorithm)
        assert result.status is Status.UNBOUNDED
        assert np.isfinite(result.x).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: minimize(np.ones(3), Cone(UnitVectors(3)), PWMP()), "must be an Objective"),
        (lambda: minimize(LeastSquares([1.0]), UnitVectors(1), PWMP()), "must be a Cone, Span or"),
        (lambda: minimize(LeastSquares([1.0]), Cone(UnitVectors(1)), PWMP), "must be an instance"),
        (lambda: ApproximateOracle(UnitVectors(3), 0.5), "needs a Dictionary"),
        (lambda: Composed(np.ones(3), np.eye(3)), "needs an Objective"),
        (lambda: FunctionObjective(3, 4), "needs a function"),
        (lambda: FunctionObjective(np.sum, 0), "at least one entry"),
        (lambda: Dictionary(sparse.csc_array([[1j]])), "real numbers"),
    ],
)
def test_more_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_iterates_of_a_stalled_run_end():
    states = list(iterates(LeastSquares([1.0, 2.0]), Cone(UnitVectors(2)), FCMP(variant=1)))
    assert len(states) <= 4
