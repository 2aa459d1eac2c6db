"""nnfit: the minimiser of every loss, and a proof with it."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from scipy import sparse

from conepursuit import (
    FCMP,
    BetaDivergence,
    Cone,
    Dictionary,
    FreeIntercept,
    Huber,
    KullbackLeibler,
    LeastSquares,
    Logistic,
    Poisson,
    Status,
    minimize,
    nnfit,
)
from conepursuit.loss_fits.columns import Problem
from conepursuit.loss_fits.last_step import closed

LOSSES = {
    "logistic": lambda y, **kw: Logistic(y > np.median(y), **kw),
    "huber": lambda y, **kw: Huber(y, 0.5, **kw),
    "squares": LeastSquares,
    "poisson": Poisson,
    "divergence": lambda y, **kw: KullbackLeibler(y, shift=0.1, **kw),
    "beta": lambda y, **kw: BetaDivergence(y, 1.5, **kw),
    "intercept, logistic": lambda y, **kw: FreeIntercept(Logistic(y > np.median(y), **kw)),
    "intercept, huber": lambda y, **kw: FreeIntercept(Huber(y, 0.5, **kw)),
    "intercept, squares": lambda y, **kw: FreeIntercept(LeastSquares(y, **kw)),
}
SIGNED = [name for name in LOSSES if name not in ("poisson", "divergence", "beta")]
ONE_TARGET = [name for name in LOSSES if not name.startswith("intercept")]


@pytest.fixture(params=LOSSES)
def loss(request):
    return LOSSES[request.param]


def counts(A, rng):
    """Return counts around a sparse combination of atoms; none where there is no atom."""
    mean = np.abs(A) @ (rng.random(A.shape[1]) * (rng.random(A.shape[1]) < 0.3))
    return rng.poisson(3 * mean).astype(float)


def hard_matrix(rng, nonnegative):
    """Return a matrix with some of what is hard: zero, equal, collinear and long columns."""
    m, n = rng.integers(2, 30), rng.integers(1, 40)
    A = rng.random((m, n)) if nonnegative else rng.standard_normal((m, n))
    if rng.random() < 0.3:
        A *= rng.random((m, n)) < 0.3
    if rng.random() < 0.3:
        A[:, 0] = A[:, -1]
    if rng.random() < 0.3 and n > 2:
        A[:, 2], A[:, 1] = A[:, 0] + 2 * A[:, 1], 0.0
    if rng.random() < 0.3:
        A *= 10.0 ** rng.integers(-5, 6, n)
    return A


def check_against_the_loop(objective, A, penalty):
    fit = nnfit(objective, A, penalty=penalty)
    result = minimize(objective, Cone(Dictionary(A), penalty=penalty), FCMP(variant=1), tol=1e-10)
    start = minimize(
        objective, Cone(Dictionary(A), penalty=penalty), FCMP(variant=1), max_iter=0
    ).value
    rounding = 4 * objective.rounding(result.x) + 1e-13 * abs(result.value) + 1e-300
    excess = fit.value - result.value
    assert (fit.x >= 0).all()
    total = objective.value(A @ fit.x) + penalty * fit.x.sum()
    assert abs(total - fit.value) <= rounding + 1e-9 * abs(fit.value)
    assert excess <= 1e-7 * (start - result.value) + rounding
    if fit.proven:
        assert excess <= fit.gap + rounding
    assert fit.status.success or (fit.status is Status.UNBOUNDED and penalty == 0)
    return fit


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_the_generic_loop(name, seed):
    rng = np.random.default_rng(seed)
    A = hard_matrix(rng, nonnegative=name not in SIGNED or seed % 2)
    weights = rng.random(len(A)) * (rng.random(len(A)) < 0.8) if seed % 3 == 0 else None
    if weights is not None and not weights.any():
        weights = None
    objective = LOSSES[name](counts(A, rng), weights=weights)
    check_against_the_loop(objective, A, penalty=(0.0, 0.1, 3.0, 0.0)[seed % 4])


@pytest.mark.parametrize("penalty", [0.0, 0.5])
@pytest.mark.parametrize("order", ["C", "F"])
def test_agrees_with_bounded_quasi_newton_steps_on_many_atoms(order, penalty):
    rng = np.random.default_rng(0)
    A = np.asarray(rng.standard_normal((400, 120)), order=order)
    A[:, 1:] += 0.8 * A[:, :-1]
    y = np.where(rng.random(400) < 1 / (1 + np.exp(-A[:, :5].sum(axis=1))), 1.0, -1.0)

    def total(w):
        value, gradient = Logistic(y).value_and_gradient(A @ w)
        return value + penalty * w.sum(), A.T @ gradient + penalty

    peer = scipy.optimize.minimize(
        total,
        np.zeros(120),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * 120,
        options={"maxiter": 10_000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    fit = nnfit(Logistic(y), A, penalty=penalty)
    decrease = 400 * np.log(2) - peer.fun
    assert fit.status is Status.CONVERGED
    assert fit.proven
    assert fit.gap <= 1e-8 * decrease
    assert abs(fit.value - peer.fun) <= 1e-8 * decrease
    assert fit.value - peer.fun <= fit.gap + 1e-13 * abs(peer.fun)


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-8])
def test_the_gap_is_proven_and_no_smaller_than_the_excess(loss, tol):
    rng = np.random.default_rng(1)
    for _ in range(3):
        A = rng.random((60, 8)) + 0.1
        objective = loss(counts(A, rng))
        fit, best = nnfit(objective, A, tol=tol), nnfit(objective, A, tol=1e-13).value
        assert fit.proven
        assert fit.status is Status.CONVERGED
        assert -1e-12 * abs(best) <= fit.value - best <= fit.gap + 1e-12 * (1 + abs(best))


def test_a_proof_looks_at_all_atoms():
    # Scores of an earlier point, where no atom descends, say nothing about this one.
    problem = Problem(LeastSquares([1.0, 2.0]), Dictionary(np.eye(2)), 0.0)
    stale = replace(problem.at(np.zeros(2)), scores=np.ones(2), fresh=False)
    point, gap, proven = closed(problem, stale, 1e-8, direct=False)
    assert not proven or gap >= point.value


def test_a_loose_tolerance_takes_no_more_steps():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((300, 80))
    objective = Logistic(rng.random(300) < 0.5)
    steps = [nnfit(objective, A, tol=tol).n_iter for tol in (1e-2, 1e-5, 1e-8, 1e-11)]
    assert steps == sorted(steps)


@pytest.mark.parametrize("name", LOSSES)
def test_whole_weights_are_repeated_rows(name):
    rng = np.random.default_rng(3)
    A = rng.random((15, 6)) + 0.1
    y, times = rng.permutation(15) + 1.0, rng.integers(1, 4, 15)
    labels = {"y": y, "weights": times.astype(float)}
    if "logistic" in name:
        labels["y"] = y % 2
        weighted = FreeIntercept(Logistic(**labels)) if "," in name else Logistic(**labels)
        repeated = Logistic(np.repeat(y % 2, times))
        repeated = FreeIntercept(repeated) if "," in name else repeated
    else:
        weighted, repeated = LOSSES[name](**labels), LOSSES[name](np.repeat(y, times))
    ours, theirs = nnfit(weighted, A), nnfit(repeated, np.repeat(A, times, axis=0))
    assert ours.value == pytest.approx(theirs.value, rel=1e-8)
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ONE_TARGET)
def test_masked_rows_might_as_well_be_removed(name):
    rng = np.random.default_rng(4)
    A = rng.random((20, 6)) + 0.1
    y = (rng.permutation(20) + 1.0) % (2 if name == "logistic" else 99)
    mask = np.arange(20) % 4 == 0
    make = Logistic if name == "logistic" else LOSSES[name]
    ours = nnfit(make(np.where(mask, np.nan, y), mask=mask), A)
    theirs = nnfit(make(y[~mask]), A[~mask])
    assert ours.value == pytest.approx(theirs.value, rel=1e-9)
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ONE_TARGET)
def test_many_targets_are_single_ones(name):
    rng = np.random.default_rng(5)
    A = rng.random((25, 8)) + 0.1
    Y = rng.poisson(4.0, (25, 3)).astype(float)
    make = (lambda y: Logistic(y > 3)) if name == "logistic" else LOSSES[name]
    together = nnfit(make(Y), A, penalty=0.2, n_jobs=2)
    assert together.x.shape == together.dual.shape == (8, 3)
    for i in range(3):
        single = nnfit(make(Y[:, i]), A, penalty=0.2)
        assert abs(together.value[i] - single.value) <= together.gap[i] + single.gap + 1e-9
        assert together.status[i].success


@pytest.mark.parametrize("name", LOSSES)
def test_every_kind_of_matrix_gives_the_same(name):
    rng = np.random.default_rng(6)
    A = ((rng.random((40, 50)) + 0.1) * (rng.random((40, 50)) < 0.4)).astype(np.float32)
    A[:, 0] += 0.5
    objective, wide = LOSSES[name](rng.poisson(3.0, 40).astype(float)), A.astype(float)
    expected = nnfit(objective, wide, penalty=0.1)
    for matrix in (A, np.asfortranarray(wide), sparse.csr_array(wide), sparse.csc_matrix(wide)):
        fit = nnfit(objective, matrix, penalty=0.1)
        assert abs(fit.value - expected.value) <= fit.gap + expected.gap + 1e-12 * abs(fit.value)


def test_an_operator_goes_through_the_loop():
    rng = np.random.default_rng(7)
    A = rng.random((20, 5))
    objective = Poisson(rng.poisson(5.0, 20) + 1)
    fit = nnfit(objective, sparse.linalg.aslinearoperator(A))
    assert fit.value == pytest.approx(nnfit(objective, A).value, rel=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_separable_classes_have_no_minimiser(intercept):
    rng = np.random.default_rng(8)
    A = rng.standard_normal((40, 5))
    objective = Logistic(A[:, 0] + A[:, 1] > 0)
    fit = nnfit(FreeIntercept(objective) if intercept else objective, A)
    assert fit.status is Status.UNBOUNDED
    assert np.isfinite(fit.x).all()
    assert fit.value < 1e-3


def test_some_atoms_may_have_no_end_and_the_fit_is_still_proven():
    # The last atom separates the last two rows, which no other atom touches.
    A = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    fit = nnfit(Logistic([1, 1, 0, 1, 1]), A)
    best = 2 * np.log(1.5) + np.log(3)
    assert fit.status is Status.CONVERGED
    assert fit.proven
    assert best - 1e-12 <= fit.value <= best + fit.gap + 1e-12
    assert fit.x[0] == pytest.approx(np.log(2), abs=1e-4)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_labels_of_one_class_need_no_atoms(penalty):
    fit = nnfit(FreeIntercept(Logistic(np.ones(5))), np.eye(5), penalty=penalty)
    assert fit.status is Status.CONVERGED
    assert fit.value < 1e-15
    assert not fit.x.any()


def test_more_atoms_than_rows_fit_exactly(loss):
    rng = np.random.default_rng(9)
    A = np.abs(rng.standard_normal((12, 40)))
    y = A @ rng.random(40)
    fit = nnfit(loss(y), A)
    assert fit.status.success or fit.status is Status.UNBOUNDED
    assert np.isfinite(fit.x).all()


def test_degenerate_shapes(loss):
    y = np.array([1.0, 2.0, 0.5])
    for A in (np.zeros((3, 2)), np.ones((3, 1)), np.ones((3, 2)), np.eye(3)):
        if not A.any() and not np.isfinite(loss(y).value_and_gradient(np.zeros(3))[1]).all():
            with pytest.raises(ValueError, match="infinite"):
                nnfit(loss(y), A)
            continue
        fit = nnfit(loss(y), A)
        assert fit.status.success or fit.status is Status.UNBOUNDED
    one = nnfit(loss(y[:1]), [[2.0]])
    assert np.isfinite(one.x).all()


def test_constant_counts():
    fit = nnfit(BetaDivergence(np.ones(4), 1.5), np.eye(4))
    np.testing.assert_allclose(fit.x, 1.0, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_units_of_the_data_do_not_matter(scale):
    rng = np.random.default_rng(10)
    A, y = rng.random((20, 8)), rng.poisson(5.0, 20) + 1.0
    for make in (LeastSquares, Poisson, lambda y: FreeIntercept(LeastSquares(y))):
        plain, scaled = nnfit(make(y), A), nnfit(make(scale * y), A)
        assert scaled.status.success
        np.testing.assert_allclose(scaled.x / scale, plain.x, rtol=1e-3, atol=1e-3)


def test_starts(loss):
    rng = np.random.default_rng(11)
    A = rng.random((30, 12)) + 0.1
    objective = loss(counts(A, rng))
    cold = nnfit(objective, A)
    again = nnfit(objective, A, start=cold)
    elsewhere = nnfit(objective, A, start=rng.random(12) + 0.1)
    assert again.n_iter <= 1
    for fit in (again, elsewhere):
        assert fit.status is Status.CONVERGED
        assert abs(fit.value - cold.value) <= fit.gap + cold.gap + 1e-12 * abs(cold.value)


def test_a_start_where_f_is_infinite_is_left():
    fit = nnfit(Poisson([3.0, 4.0]), np.eye(2), start=[1.0, 0.0])
    np.testing.assert_allclose(fit.x, [3.0, 4.0], rtol=1e-4)


def test_a_weight_of_a_zero_column_goes_away():
    fit = nnfit(LeastSquares([1.0, 2.0]), [[1.0, 0.0], [1.0, 0.0]], penalty=0.5, start=[0.0, 3.0])
    np.testing.assert_allclose(fit.x, [1.25, 0.0], atol=1e-6)


def test_a_step_may_be_the_last():
    rng = np.random.default_rng(12)
    A = rng.standard_normal((100, 40))
    objective = Logistic(rng.random(100) < 0.5)
    fit, best = nnfit(objective, A, max_iter=1), nnfit(objective, A).value
    assert fit.n_iter <= 1
    assert not fit.status.success
    if fit.proven:
        assert fit.value - best <= fit.gap


@pytest.mark.parametrize(
    ("A", "options", "message"),
    [
        (np.eye(4), {}, "one entry, or one row"),
        (np.eye(3), {"penalty": -1.0}, "penalty"),
        (np.full((3, 3), np.nan), {}, "finite"),
        (np.eye(3), {"start": [1.0, -1.0, 0.0]}, "negative"),
        (np.eye(3), {"start": [1.0, np.nan, 0.0]}, "finite"),
        (np.eye(3), {"start": [1.0, 1.0]}, "shape"),
        (np.eye(3), {"tol": -1.0}, "tol"),
        (np.eye(3), {"max_iter": -1}, "max_iter"),
    ],
)
def test_bad_input(A, options, message):
    with pytest.raises(ValueError, match=message):
        nnfit(LeastSquares([1.0, 2.0, 3.0]), A, **options)


def test_an_objective_is_asked_for():
    with pytest.raises(ValueError, match="must be an Objective"):
        nnfit(np.ones(3), np.eye(3))
    with pytest.raises(ValueError, match="finite"):
        nnfit(LeastSquares([1.0, np.nan]), np.eye(2))
