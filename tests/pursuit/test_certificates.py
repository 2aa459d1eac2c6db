"""Gaps: a proof is never below the truth, and what is no proof does not call itself one."""

import numpy as np
import pytest
from scipy.optimize import nnls

from conepursuit import (
    AMP,
    FCMP,
    FW,
    NNMP,
    PWMP,
    ApproximateOracle,
    Composed,
    Cone,
    Dictionary,
    FunctionAtoms,
    FunctionObjective,
    Hull,
    Iterate,
    LeastSquares,
    NonnegativeSphere,
    Quadratic,
    Span,
    Symmetric,
    Union,
    UnitVectors,
    certify,
    minimize,
)
from conepursuit.pursuit.certify import least_tilt
from problems import random_problem


def random_weights(rng, n):
    return rng.exponential(1.0, n) * (rng.random(n) < rng.random()) * 10.0 ** rng.integers(-3, 3)


def test_a_proven_gap_is_never_below_the_true_suboptimality_in_10000_random_states():
    rng = np.random.default_rng(0)
    proven = 0
    for _ in range(500):
        D, y = random_problem(rng, 8, 12, noise=1.0)
        D = D - 0.2 * (rng.random() < 0.5)  # some with entries of either sign
        f, atoms = LeastSquares(y), Dictionary(D)
        w, residual = nnls(D, y)
        optimum = 0.5 * residual**2
        for domain in (Cone(atoms), Cone(atoms, radius=1.01 * w.sum() + 1e-9)):
            for k in range(13):
                weights = random_weights(rng, 12) if k % 2 else w * rng.uniform(0.9, 1.1, 12)
                certificate = certify(f, domain, weights=weights)
                value = f.value(D @ weights)
                if certificate.proven:
                    proven += 1
                    rounding = 1e-13 * (value + f.value(np.zeros(8)))
                    assert certificate.gap >= value - optimum - rounding
    assert proven > 10000


@pytest.mark.parametrize("penalty", [0.0, 0.3, 3.0])
def test_gaps_with_a_penalty(penalty):
    """Soft thresholding is known in closed form; no positive functional is needed for the lasso."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        y = rng.standard_normal(5) * 2
        for atoms, best in (
            (Dictionary(np.eye(5)), np.maximum(y - penalty, 0)),
            (Dictionary(np.hstack([np.eye(5), -np.eye(5)])),
             np.sign(y) * np.maximum(abs(y) - penalty, 0)),
        ):  # fmt: skip
            optimum = 0.5 * float((best - y) @ (best - y)) + penalty * float(abs(best).sum())
            weights = random_weights(rng, atoms.n_atoms)
            certificate = certify(LeastSquares(y), Cone(atoms, penalty=penalty), weights=weights)
            value = LeastSquares(y).value(atoms.dense @ weights) + penalty * weights.sum()
            if atoms.n_atoms == 5 or penalty:
                assert certificate.proven
            if certificate.proven:
                assert certificate.gap >= value - optimum - 1e-13 * (y @ y + value)


def test_gaps_on_a_hull():
    rng = np.random.default_rng(2)
    for _ in range(300):
        y, radius = rng.standard_normal(4) * 3, rng.uniform(0.5, 3)
        f, hull = LeastSquares(y), Hull(Dictionary(np.eye(4)), radius=radius)
        optimum = minimize(f, hull, FCMP(variant=1), tol=1e-13).value
        weights = rng.dirichlet(np.ones(5))[:4] * radius
        certificate = certify(f, hull, weights=weights)
        assert certificate.proven
        assert certificate.gap >= f.value(weights) - optimum - 1e-13 * (y @ y)


def test_gaps_of_quadratics():
    rng = np.random.default_rng(3)
    for _ in range(200):
        B = rng.standard_normal((5, 5))
        f = Quadratic(B.T @ B + 0.01 * np.eye(5), rng.standard_normal(5))
        cone = Cone(Dictionary(np.eye(5)))
        optimum = minimize(f, cone, FCMP(variant=1), tol=1e-13).value
        weights = random_weights(rng, 5)
        certificate = certify(f, cone, weights=weights)
        assert certificate.method == "dual"
        assert certificate.gap >= f.value(weights) - optimum - 1e-12 * (1 + abs(optimum))


def test_the_gap_closes_at_the_optimum():
    rng = np.random.default_rng(4)
    for _ in range(50):
        D, y = random_problem(rng, 10, 15, noise=1.0)
        result = minimize(LeastSquares(y), Cone(Dictionary(D)), FCMP(variant=1), tol=1e-12)
        assert result.certificate.proven
        assert result.certificate.gap <= 1e-12 * (y @ y)


def test_units_do_not_matter():
    D, y = random_problem(np.random.default_rng(5), noise=1.0)
    w = np.ones(30)
    plain = certify(LeastSquares(y), Cone(Dictionary(D)), weights=w)
    scaled = certify(LeastSquares(1e-6 * y), Cone(Dictionary(1e3 * D)), weights=1e-9 * w)
    assert scaled.gap == pytest.approx(1e-12 * plain.gap, rel=1e-9)


def test_without_a_functional_or_radius_the_gap_is_an_estimate():
    rng = np.random.default_rng(6)
    D, y = rng.standard_normal((10, 30)), rng.standard_normal(10)
    f = LeastSquares(y)
    nothing = FunctionObjective(f.value_and_gradient, 10, smoothness=1.0)
    result = minimize(nothing, Cone(Dictionary(D)), NNMP(), max_iter=5)
    assert not result.certificate.proven
    assert "estimate" in repr(result)
    for domain in (Span(Dictionary(D)), Cone(Symmetric(Dictionary(D)))):
        assert not certify(nothing, domain, x=y / 2).proven
    # Least squares never fall below zero, which is a bound, if a poor one.
    bound = certify(f, Span(Dictionary(D)), x=y / 2)
    assert bound.gap <= f.value(y / 2) * (1 + 1e-12)
    assert not certify(nothing, Cone(Dictionary(abs(D))), weights=np.full(30, 1e-3)).proven
    # Where no atom descends, <g, x> is a bound without any radius.
    assert certify(nothing, Cone(Dictionary(abs(D))), weights=np.ones(30)).proven
    # At the origin nothing is known, and nothing is claimed.
    assert certify(nothing, Cone(Dictionary(abs(D))), weights=np.zeros(30)).gap == np.inf


def test_a_functional_can_be_asked_for():
    rng = np.random.default_rng(7)
    direction = rng.standard_normal(6)
    D = rng.standard_normal((6, 20))
    D *= np.sign(direction @ D)  # all in one half space: the cone is pointed
    y = rng.standard_normal(6)
    f, plain = LeastSquares(y), Dictionary(D)
    found = plain.find_functional()
    assert (D.T @ found >= np.linalg.norm(D, axis=0) * (1 - 1e-9)).all()
    for functional in (found, direction):
        cone = Cone(Dictionary(D, functional=functional))
        result = minimize(f, cone, FCMP(variant=1), tol=1e-10)
        assert result.certificate.proven
        assert result.value == pytest.approx(0.5 * nnls(D, y)[1] ** 2, rel=1e-9)
    assert Dictionary(np.hstack([D, -D])).find_functional() is None
    with pytest.raises(ValueError, match="positive inner product"):
        Dictionary(D, functional=-direction)


def test_certify_recomputes_everything_from_the_data():
    D, y = random_problem(np.random.default_rng(8))
    f, cone = LeastSquares(y), Cone(Dictionary(D))
    result = minimize(f, cone, AMP(), max_iter=15)
    full = result.coef
    answers = [certify(f, cone, point) for point in (result, result.iterate, full, result.x)]
    answers += [certify(f, cone, x=result.x), certify(f, cone, weights=full)]
    for answer in answers:
        assert answer.gap == pytest.approx(result.certificate.gap, rel=1e-9)
        assert answer.violation == pytest.approx(result.certificate.violation, rel=1e-9)
    # A solver that lies about its x is found out.
    liar = Iterate(y, result.atoms, result.weights)
    assert certify(f, cone, liar).gap == pytest.approx(result.certificate.gap, rel=1e-9)


def test_certify_refuses_what_is_not_in_the_domain():
    f, square = LeastSquares(np.ones(3)), Dictionary(np.eye(3))
    with pytest.raises(ValueError, match="either of x"):
        certify(f, Cone(square), np.ones(3))
    with pytest.raises(ValueError, match="neither of x"):
        certify(f, Cone(square), np.ones(7))
    with pytest.raises(ValueError, match="non-negative weights; the least is -1"):
        certify(f, Cone(square), weights=[1.0, -1.0, 0.0])
    with pytest.raises(ValueError, match="sum to at most 2"):
        certify(f, Hull(square, radius=2.0), weights=[1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="weights must be finite"):
        certify(f, Cone(square), weights=[1.0, np.nan, 0.0])
    with pytest.raises(ValueError, match="exactly one"):
        certify(f, Cone(square))
    with pytest.raises(ValueError, match="Pass weights="):
        certify(f, Cone(square, penalty=1.0), x=np.ones(3))
    with pytest.raises(ValueError, match="finite set of atoms"):
        certify(f, Cone(NonnegativeSphere(3)), weights=np.ones(3))
    with pytest.raises(ValueError, match="non-negative weights"):
        certify(f, Cone(UnitVectors(3)), [-1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="outside Cone"):
        certify(f, Cone(Dictionary([[1.0], [0.0], [0.0]])), x=[1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match=r"outside Hull.*the radius 1"):
        certify(f, Hull(Dictionary(np.eye(3)[:, :2]), radius=1.0), x=[1.0, 1.0, 0.0])


def test_an_x_that_cannot_be_placed_is_not_proven():
    f, union = LeastSquares(-np.ones(3)), Cone(Union(UnitVectors(3)))
    assert not certify(f, union, x=-np.ones(3)).proven


def test_an_oracle_that_promises_nothing_proves_nothing():
    """A heuristic that misses the atom that matters ends without a proof."""
    blind = FunctionAtoms(lambda g: np.array([1.0, 0.0]), 2, accuracy=None, functional=np.ones(2))
    result = minimize(LeastSquares([1.0, 2.0]), Cone(blind), PWMP())
    assert result.value == pytest.approx(2.0)
    assert not result.certificate.proven


def test_frank_wolfe_and_conic_gaps_agree_with_the_definition():
    D, y = random_problem(np.random.default_rng(9))
    f = Composed(LeastSquares(y), np.eye(20))  # no conjugate, so that only the radius is used
    hull = Hull(Dictionary(D), radius=7.0)
    result = minimize(f, hull, FW(), max_iter=10)
    gradient = result.x - y
    assert result.certificate.gap == pytest.approx(
        gradient @ result.x - 7.0 * min(0, (D.T @ gradient).min()), rel=1e-11
    )
    assert result.certificate.method == "radius"


def test_the_estimate_stops_a_run_that_has_converged():
    rng = np.random.default_rng(10)
    D, y = rng.standard_normal((20, 12)), rng.standard_normal(20)
    result = minimize(LeastSquares(y), Cone(Dictionary(D)), PWMP(), tol=1e-8)
    missing = result.value - 0.5 * nnls(D, y)[1] ** 2
    assert missing <= 1e-7 * (y @ y)
    # On the way there is no positive functional; the atoms that are left with weight make one.
    assert result.certificate.proven
    assert missing <= result.certificate.gap + 1e-15 * (y @ y)


def test_the_least_tilt_makes_no_atom_descend():
    for scores, products, least in (
        ([1.0, 2.0], [1.0, -1.0], 0.0),
        ([-1.0, 2.0], [2.0, 1.0], 0.5),
        ([-1.0, 2.0], [1.0, -1.0], 1.0),
        ([-1.0, 0.5], [1.0, -1.0], np.inf),  # what one atom needs, the other cannot bear
        ([-1.0, 2.0], [0.0, 1.0], np.inf),
        ([-1.0, 2.0], [-1.0, 1.0], np.inf),
    ):
        assert least_tilt(np.array(scores), np.array(products)) == least


def test_what_an_approximate_oracle_may_have_missed_is_in_the_gap():
    y = np.array([1.0, 0.35])
    atoms = ApproximateOracle(Dictionary(np.eye(2)), 0.3)  # answers with the second column
    result = minimize(LeastSquares(y), Cone(atoms, radius=1.35), NNMP(), max_iter=0)
    assert result.certificate.proven
    assert result.certificate.accuracy == 0.3
    assert result.certificate.gap >= 0.5 * y @ y
