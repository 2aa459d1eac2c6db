"""Proofs hold in floating point: bounds on rounding against exact fractions, and what they mean."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.datasets import load_diabetes

from conepursuit import (
    FCMP,
    Cone,
    ConicRegressor,
    Dictionary,
    FreeIntercept,
    LeastSquares,
    certify,
    certify_nnls,
    minimize,
    nnfit,
    nnls,
)
from conepursuit.kernels import least_squares as kernels
from conepursuit.rounding import UNIT, doubled_rounding, lane_rounding, product_rounding
from exact import Problem, exceeds
from families import FAMILIES


def exact_dot(a, b):
    return sum(
        (Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)),
        start=Fraction(0),
    )


def excess(A, b, x, weights=None):
    """Return f(x) - f* as a fraction."""
    found = Problem(np.asarray(A), np.asarray(b)[:, None], weights).excesses(np.asarray(x)[:, None])
    return Fraction(*found[0])


@pytest.mark.parametrize("m", [1, 7, 16, 50, 333])
def test_products_are_no_further_off_than_their_bounds(m):
    rng = np.random.default_rng(m)
    for spread in (0, 8):
        a = rng.standard_normal((4, m)) * 10.0 ** rng.uniform(-spread, spread, m)
        r = rng.standard_normal(m) * 10.0 ** rng.uniform(-spread, spread, m)
        a[1] -= (a[1] @ r) / (r @ r) * r  # orthogonal up to rounding
        order, lanes, doubled = np.arange(4), np.empty(4), np.empty(4)
        kernels.lane_slopes(a, order, 4, r, lanes)
        kernels.accurate_slopes(a, order, 4, r, doubled)
        for i in range(4):
            truth = exact_dot(a[i], r)
            size = Fraction(float(np.linalg.norm(a[i]) * np.linalg.norm(r)))
            assert abs(Fraction(float(a[i] @ r)) - truth) <= Fraction(product_rounding(m)) * size
            assert abs(Fraction(float(lanes[i])) - truth) <= Fraction(lane_rounding(m)) * size
            error = abs(Fraction(float(doubled[i])) - truth)
            assert error <= Fraction(UNIT) * abs(truth) + Fraction(doubled_rounding(m)) * size


OPPOSITE = [
    ([[1.0, -1.0], [0.0, 1e-15]], [0.0, 1.0]),
    (
        [[-1.1054295066685638, 1.105429506668564], [-0.5251319109645468, 0.5251319109645469]],
        [-0.08363781396014451, 2.5882174703058647],
    ),
    # Three atoms whose sum is zero up to rounding.
    (
        [
            [1.6128415826650593, 0.32161952798744636, -1.9344611106525056],
            [-1.7646352025152154, 1.925871582383677, -0.1612363798684615],
            [-0.682559310202688, 0.39930877479310495, 0.28325053540958306],
        ],
        [-0.5168385433149765, -0.9530714502512604, 2.2992191894450467],
    ),
]


@pytest.mark.parametrize(("A", "b"), OPPOSITE)
def test_nearly_opposite_atoms_have_no_false_proof(A, b):
    A, b = np.array(A), np.array(b)
    cone = Cone(Dictionary(A))
    one, many = nnls(A, b), nnls(A, np.stack([b, b, -b], axis=1))
    other, loop = nnfit(LeastSquares(b), A), minimize(LeastSquares(b), cone, FCMP(variant=1))
    answers = [(one.x, one.gap, one.proven), (many.x[:, 1], many.gap[1], many.proven[1])]
    answers.append((other.x, other.gap, other.proven))
    answers.append((loop.coef, loop.certificate.gap, loop.certificate.proven))
    for x in [one.x, np.zeros_like(one.x)]:
        for audit in (certify_nnls(A, b, x), certify(LeastSquares(b), cone, weights=x)):
            answers.append((x, audit.gap, audit.proven))
    for x, gap, proven in answers:
        assert not proven or excess(A, b, x) <= Fraction(float(gap))


def test_proofs_of_centred_data_say_something():
    """Sums of centred columns are rounding noise, and no functional."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X - X.mean(axis=0), y - y.mean()
    for fit in (nnls(X, y), nnls(X, np.stack([y, y], axis=1))):
        assert np.all(fit.proven)
        assert np.all(fit.gap <= 1e-12 * 0.5 * (y @ y))
    audit = certify_nnls(X, y, nnls(X, y).x)
    assert audit.proven
    assert nnls(X, y).gap <= audit.gap <= 1e-10 * 0.5 * (y @ y)
    result = minimize(LeastSquares(y), Cone(Dictionary(X)), FCMP(variant=1), tol=1e-12)
    assert result.certificate.proven
    assert result.certificate.gap <= 1e-9 * 0.5 * (y @ y)
    model = ConicRegressor(fit_intercept=True).fit(X, y)
    assert model.proven_
    assert model.gap_ <= 1e-10 * y.var()


def test_a_functional_counts_only_beyond_its_own_rounding():
    g, none = np.array([-1.0, 1e-17]), np.zeros(2)
    s = np.array([1.0, 1e-17])
    assert kernels.least_tilt(g, none, s, none) == pytest.approx(1.0)
    assert kernels.least_tilt(g, none, s, np.full(2, 1e-16)) == -1.0
    # A slope that is zero up to rounding asks for a tilt; one that is clearly negative does not.
    assert kernels.least_tilt(-np.ones(2), np.full(2, 0.1), -np.ones(2), none) == 0.0
    assert kernels.least_tilt(
        np.array([-1.0, 0.0]), np.full(2, 0.1), np.ones(2), none
    ) == pytest.approx(0.1)


def test_weighted_data_are_proved_with_the_rounding_of_their_weights():
    rng = np.random.default_rng(3)
    for _ in range(50):
        A, b, w = rng.random((4, 3)), rng.random(4), rng.random(4)
        fit = nnls(A, b, weights=w)
        assert fit.proven
        assert excess(A, b, fit.x, w) <= Fraction(fit.gap)


def test_weights_times_subnormal_entries_prove_nothing():
    A, b = np.array([[-4.0474e-320], [4.0474e-320]]), np.array([0.2998946937450624, 1.607294222838])
    assert nnls(A, b).proven or nnls(A, b).gap > 0
    fit = nnls(A, b, weights=[1.0, 2.0])
    assert not fit.proven
    assert not certify_nnls(A, b, fit.x, weights=[1.0, 2.0]).proven


TINY = 3e-323
"""So small that it times the root of a weight of 1/256 underflows to zero."""


@pytest.mark.parametrize("kind", [np.array, sparse.csc_array])
@pytest.mark.parametrize("targets", [(), (1,), (3,)])
@pytest.mark.parametrize("atoms", [[[TINY]], [[TINY, 1.0], [-TINY, 0.5]], [[TINY, 0], [0, 1.0]]])
def test_row_weights_that_make_atoms_vanish_prove_nothing(kind, targets, atoms, monkeypatch):
    monkeypatch.setattr("conepursuit.matrix_fits.arguments.SMALL_ENOUGH", 0)
    A, w = np.array(atoms), np.full(len(atoms), 0.00390625)
    B = np.full((len(A), *targets), 0.19105195601007105)
    for fit in (nnls(kind(A), B, weights=w), nnls(kind(A), B, weights=w, max_atoms=2)):
        flat = zip(fit.x.reshape(A.shape[1], -1).T, np.ravel(fit.gap), strict=True)
        for proven, b, (x, gap) in zip(
            np.ravel(fit.proven), B.reshape(len(A), -1).T, flat, strict=True
        ):
            assert not proven or excess(A, b, x, w) <= Fraction(gap)
    audit = certify_nnls(kind(A), B, np.zeros((A.shape[1], *targets)), weights=w)
    assert not np.any(audit.proven)
    if len(targets):
        assert not nnls(kind(A), B, weights=np.broadcast_to(w[:, None], B.shape)).proven.any()


def test_row_weights_that_make_a_target_vanish_prove_nothing():
    audit = certify_nnls([[1.0]], [TINY], [0.0], weights=[0.00390625])
    assert not audit.proven or audit.gap > 0


@pytest.mark.parametrize(
    ("atom", "entry", "weight"),
    [
        (1e-113, 1e-294, 1.0),
        (1e-113, 1e-294, 1e80),
        (1e100, 1.0, 1e40),
        (1e-200, 1e-200, 1e100),
        (1.0, 0.0, 1e140),
        (1e-120, 1e-310, 1e30),
        (-1.5749117760712694e-109, 0.7695286510820845, 4.0336941373177997e-244),
        (1e-300, 1e-300, 1.0),
        (1e10, 0.0, 1e-311),
    ],
)
def test_audits_in_any_units_prove_a_finite_gap(atom, entry, weight):
    A, b, x = np.full((2, 1), atom), np.full(2, entry), np.array([weight])
    audit = certify_nnls(A, b, x)
    true = excess(A, b, x)
    assert audit.proven
    assert true <= Fraction(audit.gap)
    assert audit.gap <= 2.0 * float(true) + 1e-12 * float(b @ b) + 1e-320
    many = certify_nnls(A, b[:, None], x[:, None])
    assert many.gap[0] == audit.gap
    operator = aslinearoperator(A) if abs(atom) > 1e-120 else A
    assert certify_nnls(operator, b, x).gap >= float(true)


@pytest.mark.parametrize("weight", [1e300, 1e200])
def test_a_gap_that_is_no_float_is_not_proven(weight):
    audit = certify_nnls([[1e10], [1.0]], [1.0, 1.0], [weight])
    assert audit.gap == np.inf
    assert not audit.proven


def test_nearly_opposite_atoms_are_solved_and_proved_down_to_small_angles():
    rng = np.random.default_rng(1)
    for power in range(4, 10):
        for _ in range(10):
            a, b = rng.standard_normal(3), rng.standard_normal(3)
            other = -a + 10.0**-power * rng.standard_normal(3)
            A = np.stack([a, other, rng.standard_normal(3)], axis=1)
            fit = nnls(A, b)
            assert fit.proven
            assert excess(A, b, fit.x) <= min(Fraction(fit.gap), Fraction(1e-8 * float(b @ b)))


def test_degenerate_solutions_are_proved_where_level_atoms_lie_in_a_half_space():
    # The third atom has no weight, and its slope is zero.
    A = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, -1.0, 1.0], [0.0, 0.0, -1.0]])
    b = A @ [1.0, 2.0, 0.0] + np.array([1.0, 1.0, 1.0, 1.0])
    fit = nnls(A, b)
    assert fit.proven
    assert fit.gap <= 1e-12 * (b @ b)


def intercept_excess(A, b, x):
    """Return f(x) - f* of least squares with a free intercept, exactly: its atoms are 1 and -1."""
    left = [Fraction(float(t)) - exact_dot(row, x) for row, t in zip(A, b, strict=True)]
    best, one = float(sum(left) / len(left)), np.ones((len(b), 1))
    weights = np.concatenate([x, [max(best, 0.0), max(-best, 0.0)]])
    return Problem(np.hstack([A, one, -one]), b[:, None]).excesses(weights[:, None])[0]


@pytest.mark.parametrize("call", ["nnfit", "certify"])
@pytest.mark.parametrize("name", FAMILIES)
def test_proofs_with_a_free_intercept_hold(name, call):
    """A dual point must sum to zero exactly; what rounding leaves of its sum is in the margins."""
    rng = np.random.default_rng(list(name.encode()))
    for _ in range(2):
        m, n = int(rng.integers(2, 7)), int(rng.integers(1, 5))
        A, B = FAMILIES[name](rng, m, n, 1)
        A, b = A + rng.choice([0.0, 1.0, 1e8]), B[:, 0]
        loss = FreeIntercept(LeastSquares(b))
        try:
            with np.errstate(all="ignore"):
                if call == "nnfit":
                    found = nnfit(loss, A)
                    x = found.x
                else:
                    x = rng.random(n) * (rng.random(n) < 0.5)
                    found = certify(loss, Cone(Dictionary(A)), weights=x)
        except ValueError:  # beyond the range of squares
            continue
        if found.proven and np.isfinite(found.gap):
            assert not exceeds(intercept_excess(A, b, x), found.gap)
