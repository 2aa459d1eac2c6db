"""Bad input is named before iteration 0; degenerate input is solved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from conepursuit import (
    AFW,
    AMP,
    FCMP,
    FW,
    NNMP,
    OMP,
    PFW,
    PWMP,
    AdaptiveStep,
    ApproximateOracle,
    Cone,
    CurvatureStep,
    Dictionary,
    FunctionAtoms,
    FunctionObjective,
    Hull,
    LeastSquares,
    NonnegativeSphere,
    OpenLoopStep,
    ShortStep,
    Span,
    Status,
    Symmetric,
    Union,
    UnitVectors,
    iterates,
    minimize,
)
from problems import brute_force_nnls, random_problem

D, Y = random_problem(np.random.default_rng(0))
F, ATOMS = LeastSquares(Y), Dictionary(D)
NO_L = FunctionObjective(F.value_and_gradient, Y.shape)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Dictionary([[1.0, np.nan]]), r"dictionary must be finite.*shape \(1, 2\)"),
        (lambda: Dictionary([[1.0, -np.inf]]), "dictionary must be finite"),
        (lambda: Dictionary(sparse.csc_array([[1.0, np.nan]])), "dictionary must be finite"),
        (lambda: Dictionary(np.empty((3, 0))), r"at least one row.*got shape \(3, 0\)"),
        (lambda: Dictionary(np.ones(3)), r"a matrix.*got shape \(3,\). Use v\[:, None\]"),
        (lambda: Dictionary([["a", "b"]]), "real numbers"),
        (lambda: Dictionary(LinearOperator((3, 2), matvec=lambda v: np.ones(3), dtype=float)),
         "without rmatvec"),
        (lambda: Dictionary(D, functional=np.ones(3)), r"functional must have shape \(20,\)"),
        (lambda: Cone(D), r"needs an atom set; got ndarray. Use Cone\(Dictionary\(D\)\)"),
        (lambda: Cone(ATOMS, radius=-1.0), "must be positive; got -1"),
        (lambda: Cone(ATOMS, penalty=-1.0), "penalty must be non-negative and finite; got -1"),
        (lambda: Cone(ATOMS, penalty=np.nan), "penalty"),
        (lambda: Hull(ATOMS, radius=-2.0), "must be positive; got -2"),
        (lambda: Hull(ATOMS, radius=np.nan), "must be positive; got nan"),
        (lambda: Hull(ATOMS, radius=np.inf), r"finite radius.*Cone\(atoms\)"),
        (lambda: UnitVectors(0), "at least one entry"),
        (lambda: NonnegativeSphere(()), "at least one entry"),
        (lambda: Union(), "at least one atom set"),
        (lambda: Union(UnitVectors(3), UnitVectors(4)), "one shape"),
        (lambda: Symmetric(D), "needs atom sets"),
        (lambda: ApproximateOracle(ATOMS, 0.0), r"delta in \(0, 1\].*got 0"),
        (lambda: FunctionAtoms(lambda g: g, 3, accuracy=2.0), "accuracy"),
        (lambda: CurvatureStep(-1.0), "positive curvature"),
        (lambda: FCMP(variant=2), "variant must be 0 or 1; got 2"),
        (lambda: minimize(LeastSquares(np.ones(3)), Cone(ATOMS), PWMP()),
         r"shape \(3,\).*atoms.*shape \(20,\)"),
        (lambda: minimize(NO_L, Cone(ATOMS), PWMP()), r"ShortStep needs.*Use AdaptiveStep\(\)"),
        (lambda: minimize(NO_L, Cone(ATOMS), FCMP(variant=0)),
         r"FCMP\(variant=0\) needs a positive"),
        (lambda: minimize(F, Cone(ATOMS), FW()),
         r"FW needs a Hull; got Cone\(Dictionary\(20 x 30\)\). Use Hull\(atoms, radius"),
        (lambda: minimize(F, Cone(ATOMS), AFW()), "AFW needs a Hull"),
        (lambda: minimize(F, Cone(ATOMS), PFW()), "PFW needs a Hull"),
        (lambda: minimize(F, Span(ATOMS), FW()), "FW needs a Hull"),
        (lambda: minimize(F, Cone(ATOMS), OMP()), "OMP needs a Span"),
        (lambda: minimize(F, Hull(ATOMS, 1.0), AMP()), "AMP needs a Cone"),
        (lambda: minimize(F, Cone(ATOMS), PWMP(OpenLoopStep())), "cannot use OpenLoopStep"),
        (lambda: minimize(F, Cone(ATOMS), NNMP(norm="l2")), "norm must be"),
        (lambda: minimize(F, Cone(Union(ATOMS)), NNMP(norm="gauge")), "needs the gauge"),
        (lambda: minimize(F, Cone(FunctionAtoms(lambda g: -g, 20)), NNMP(norm="euclidean")),
         "needs the radius"),
        (lambda: minimize(F, Cone(ATOMS), PWMP(), max_iter=-1), "got max_iter=-1"),
        (lambda: minimize(F, Cone(ATOMS), PWMP(), tol=-1e-3), "tol"),
        (lambda: minimize(F, Cone(ATOMS), PWMP(), tol=np.nan), "tol"),
        (lambda: minimize(F, Cone(ATOMS), PWMP(), max_time=0.0), "max_time"),
        (lambda: minimize(F, Cone(ATOMS), PWMP(), start=np.ones(3)), "must have 30 entries"),
        (lambda: minimize(F, Cone(ATOMS), PWMP(), start=-np.ones(30)), "non-negative weights"),
        (lambda: minimize(F, Hull(ATOMS, 1.0), PWMP(), start=np.ones(30)), "sum to at most 1"),
        (lambda: minimize(F, Cone(NonnegativeSphere(20)), PWMP(), start=Y), "finite set"),
        (lambda: minimize(F, Cone(ATOMS), PWMP(ShortStep)), "needs a step rule; got ShortStep"),
        (lambda: minimize(F, Cone(ATOMS), PWMP("short")), "needs a step rule; got 'short'"),
        (lambda: minimize(FunctionObjective(lambda x: 1.0, 20), Cone(ATOMS), PWMP(AdaptiveStep())),
         r"must return \(value, gradient\)"),
        (lambda: Hull(ATOMS, radius=None), "must be positive; got None"),
        (lambda: minimize(FunctionObjective(lambda x: (np.inf, x), 20), Cone(ATOMS),
                          PWMP(AdaptiveStep())), "NaN at the origin, and at every multiple"),
        (lambda: minimize(F, Cone(FunctionAtoms(lambda g: g[:3], 20)), PWMP()),
         r"atom of shape \(20,\); got \(3,\)"),
    ],
)  # fmt: skip
def test_bad_input_is_a_value_error_that_says_what_would_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_errors_come_when_iterates_is_called_not_when_it_is_consumed():
    with pytest.raises(ValueError, match="FW needs a Hull"):
        iterates(F, Cone(ATOMS), FW())


CONIC = [NNMP(), AMP(), PWMP(), FCMP(variant=0), FCMP(variant=1), PWMP(AdaptiveStep())]


@given(
    data=st.data(),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 5)),
    algorithm=st.sampled_from([FCMP(variant=0), FCMP(variant=1), PWMP()]),
)
def test_small_integer_problems_are_solved(data, shape, algorithm):
    """Rank-deficient, duplicated, collinear and zero atoms come up all the time here."""
    entries = st.integers(-2, 2)
    D = np.array(data.draw(st.lists(st.lists(entries, min_size=shape[1], max_size=shape[1]),
                                    min_size=shape[0], max_size=shape[0])), float)  # fmt: skip
    y = np.array(data.draw(st.lists(entries, min_size=shape[0], max_size=shape[0])), dtype=float)
    optimum, _ = brute_force_nnls(D, y)
    result = minimize(LeastSquares(y), Cone(Dictionary(D)), algorithm, tol=1e-12, max_iter=5000)
    assert result.value == pytest.approx(optimum, abs=1e-9 * (1 + y @ y))
    assert (result.weights > 0).all()


@pytest.mark.parametrize("algorithm", CONIC, ids=str)
def test_badly_scaled_atoms(algorithm):
    """Atoms from 1e-12 to 1e12: the same x, and weights that undo the scale."""
    D, y = random_problem(np.random.default_rng(1), 10, 12, noise=0.5)
    scales = 10.0 ** np.linspace(-12, 12, 12)
    optimum, x = brute_force_nnls(D, y)
    result = minimize(LeastSquares(y), Cone(Dictionary(D * scales)), algorithm, max_iter=4000)
    assert result.value - optimum >= -1e-12 * optimum
    assert result.certificate.gap >= result.value - optimum - 1e-12 * optimum
    if isinstance(algorithm, FCMP):
        assert result.status is Status.CONVERGED
        assert result.certificate.proven
        np.testing.assert_allclose(result.x, x, atol=1e-6 * np.abs(x).max())
    else:  # line steps between atoms of such lengths get stuck, and say so
        assert result.status in (Status.STALLED, Status.MAX_ITER, Status.CONVERGED)


@pytest.mark.parametrize("algorithm", CONIC, ids=str)
@pytest.mark.parametrize("factor", [1e-100, 1e-12, 1e12, 1e100])
def test_any_units_of_the_target(algorithm, factor):
    D, y = random_problem(np.random.default_rng(2), 10, 12, noise=0.5)
    plain = minimize(LeastSquares(y), Cone(Dictionary(D)), algorithm, max_iter=50)
    scaled = minimize(LeastSquares(factor * y), Cone(Dictionary(D)), algorithm, max_iter=50)
    assert scaled.value / factor**2 == pytest.approx(plain.value, rel=1e-6)
    if algorithm != PWMP(AdaptiveStep()):  # its estimate sees the rounding
        assert scaled.n_iter == plain.n_iter
        np.testing.assert_allclose(scaled.weights / factor, plain.weights, rtol=1e-6)


@pytest.mark.parametrize("algorithm", CONIC, ids=str)
def test_nearly_parallel_atoms(algorithm):
    rng = np.random.default_rng(3)
    base = rng.random((10, 6))
    D = np.hstack([base, base + 1e-6 * rng.standard_normal((10, 6))])
    y = base @ rng.random(6) + 0.1 * rng.standard_normal(10)
    optimum, _ = brute_force_nnls(D, y)
    result = minimize(LeastSquares(y), Cone(Dictionary(D)), algorithm, max_iter=2000)
    assert (result.weights > 0).all()
    assert result.value >= optimum * (1 - 1e-12)
    if isinstance(algorithm, FCMP):
        assert result.value <= optimum * (1 + 1e-9)
    if result.status is Status.CONVERGED and result.certificate.proven:
        assert result.value - optimum <= result.certificate.gap + 1e-14 * (y @ y)


@pytest.mark.parametrize("algorithm", CONIC, ids=str)
def test_one_row_one_column_and_a_zero_target(algorithm):
    for matrix, y, expected in (
        ([[2.0]], [3.0], 0.0),
        ([[2.0]], [-3.0], 4.5),
        ([[2.0, -1.0, 0.0]], [3.0], 0.0),
        ([[1.0], [1.0]], [1.0, 3.0], 1.0),
        ([[1.0], [1.0]], [0.0, 0.0], 0.0),
    ):
        result = minimize(LeastSquares(y), Cone(Dictionary(matrix)), algorithm)
        assert result.value == pytest.approx(expected, abs=1e-9)
