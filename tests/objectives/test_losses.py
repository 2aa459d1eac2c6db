"""The losses: what they know of themselves, and every algorithm on every one of them."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

from conepursuit import (
    AMP,
    FCMP,
    NNMP,
    PWMP,
    AdaptiveStep,
    BetaDivergence,
    Cone,
    Dictionary,
    ExactStep,
    FreeIntercept,
    Huber,
    KullbackLeibler,
    LeastSquares,
    Logistic,
    Poisson,
    ShortStep,
    Status,
    UnitVectors,
    certify,
    iterates,
    minimize,
)
from conepursuit.testing import check_objective

DATA = os.environ.get("CONEPURSUIT_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="CONEPURSUIT_DATA names no data folder")

COUNTS = np.array([0.0, 3.0, 1.0, 0.0, 7.0, 2.0])
LABELS = np.array([1, 0, 0, 1, 1, 0])
REALS = np.array([0.5, -2.0, 3.0, 0.1, -0.2, 4.0])
WEIGHTS = np.array([1.0, 0.5, 2.0, 0.0, 3.0, 1.0])
MASK = np.array([False, True, False, False, False, False])

MAKERS = {
    "squared": lambda y, **k: LeastSquares(y, **k),
    "logistic": lambda y, **k: Logistic(y, **k),
    "huber": lambda y, **k: Huber(y, 0.8, **k),
    "kl": lambda y, **k: KullbackLeibler(y, **k),
    "shifted kl": lambda y, **k: KullbackLeibler(y, shift=0.1, **k),
    "poisson": lambda y, **k: Poisson(y, **k),
    "beta 1": lambda y, **k: BetaDivergence(y, 1, **k),
    "beta 1.2": lambda y, **k: BetaDivergence(y, 1.2, **k),
    "beta 1.7": lambda y, **k: BetaDivergence(y, 1.7, **k),
    "beta 2": lambda y, **k: BetaDivergence(y, 2, **k),
}
"""Losses by name."""

SMOOTH = ("squared", "logistic", "huber", "shifted kl")


def data_of(name, size=6, rng=None):
    """Return data that a loss takes."""
    if rng is None:
        return {"squared": REALS, "huber": REALS, "logistic": LABELS}.get(name, COUNTS)
    if name in ("squared", "huber"):
        return 2 * rng.standard_normal(size)
    if name == "logistic":
        return rng.random(size) < 0.5
    return rng.poisson(3.0, size).astype(float)


def problem_of(name, seed, m=40, n=15):
    """Return a loss and a dictionary with which it has a minimiser, signed where it may be."""
    rng = np.random.default_rng(seed)
    if name in ("squared", "huber", "logistic"):
        D = rng.standard_normal((m, n))
    else:
        D = rng.random((m, n)) * (rng.random((m, n)) < 0.5) + 0.02 * (rng.random((m, 1)) < 0.8)
        D[D.max(axis=1) == 0, 0] = 1.0
    x = D @ (rng.random(n) * (rng.random(n) < 0.5))
    if name == "logistic":
        y = rng.random(m) < 1 / (1 + np.exp(-x))
    elif name in ("squared", "huber"):
        y = x + rng.standard_normal(m)
    else:
        y = rng.poisson(20 * x).astype(float)
    return MAKERS[name](y), D


def reference(loss, D, penalty=0.0):
    """Return the least value, found by L-BFGS-B from the interior at tight tolerances."""
    start, best = np.full(D.shape[1], 1.0 / D.shape[1]), np.inf
    unit = 1.0 / np.linalg.norm(D.T @ loss.value_and_gradient(D @ start)[1])

    def function(c):
        value, gradient = loss.value_and_gradient(D @ c)
        return unit * (value + penalty * c.sum()), unit * (D.T @ gradient + penalty)

    for _ in range(8):  # restarts forget a poor model of the curvature
        answer = scipy_minimize(
            function, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * D.shape[1],
            options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 20000, "maxfun": 50000, "maxcor": 50},
        )  # fmt: skip
        start, best = answer.x, min(best, answer.fun / unit)
    return best


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
def test_derivatives_and_conjugate(name, weights, mask):
    loss = MAKERS[name](data_of(name), weights=weights, mask=mask)
    rng = np.random.default_rng(0)
    signed = name in ("squared", "huber", "logistic")
    points = rng.standard_normal((20, 6)) if signed else rng.gamma(1.0, 2.0, (20, 6)) + 0.05
    check_objective(loss, points)


@pytest.mark.parametrize("name", ["squared", "huber", "logistic", "kl", "poisson", "beta 1.7"])
def test_a_free_intercept_is_the_least_over_all(name):
    rng = np.random.default_rng(1)
    data = data_of(name) + (name in ("kl", "poisson", "beta 1.7"))
    loss = MAKERS[name](data, weights=WEIGHTS)
    profile = FreeIntercept(loss)
    points = rng.gamma(1.0, 1.0, (20, 6)) + 0.1
    check_objective(profile, points)
    for x in points[:5]:
        shifts = np.linspace(-8, 12, 4001)
        with np.errstate(all="ignore"):
            values = [loss.value(x + b) for b in shifts]
        assert profile.value(x) <= min(values) + 1e-12
        assert profile.value(x) >= min(values) - 1e-3
        assert profile.value(x + 3.0) == pytest.approx(profile.value(x), rel=1e-12)


@pytest.mark.parametrize("name", ["squared", "logistic", "kl", "poisson", "beta 1.2", "beta 1.7"])
@pytest.mark.parametrize("free", [False, True], ids=["plain", "intercept"])
def test_hessians_are_the_derivatives_of_gradients(name, free):
    rng = np.random.default_rng(4)
    loss = MAKERS[name](data_of(name) + (name not in ("squared", "logistic")), weights=WEIGHTS)
    loss = FreeIntercept(loss) if free else loss
    x, D = rng.gamma(2.0, 1.0, 6) + 0.2, rng.random((6, 3))
    hessian, step = loss.hessian(x), 1e-6
    for d in D.T:
        up, down = (loss.value_and_gradient(x + s * d)[1] for s in (step, -step))
        np.testing.assert_allclose(hessian(d), (up - down) / (2 * step), rtol=1e-4, atol=1e-7)
    atoms = Dictionary(D)
    batch = atoms.empty()
    for j in range(3):
        batch = batch.join(atoms.atom(j))
    expected = D.T @ np.stack([hessian(d) for d in D.T], axis=1)
    np.testing.assert_allclose(loss.model(x, batch, batch), expected, rtol=1e-10, atol=1e-12)


def test_an_intercept_of_zero_counts_is_not_negative():
    loss = FreeIntercept(Poisson([0.0, 0.0, 0.0, 1.0]))
    x = np.array([1.0, 2.0, 3.0, 40.0])
    assert loss.intercept(x) == 0.0
    assert loss.value(x) == Poisson([0.0, 0.0, 0.0, 1.0]).value(x)
    free = FreeIntercept(Poisson([1.0, 1.0, 2.0, 3.0]))
    assert free.intercept(x) < 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        D = rng.random((30, 8))
        y = rng.poisson(0.6 * D[:, 0])
        result = minimize(FreeIntercept(Poisson(y)), Cone(Dictionary(D)), FCMP(variant=1))
        wide = minimize(
            Poisson(y), Cone(Dictionary(np.hstack([D, np.ones((30, 1))]))), FCMP(variant=1)
        )
        assert result.status.success
        assert result.certificate.proven
        assert result.value == pytest.approx(wide.value, rel=1e-7)


@pytest.mark.parametrize("name", MAKERS)
def test_weights_are_replication_and_a_mask_is_removal(name):
    rng = np.random.default_rng(2)
    counts = np.array([1, 3, 2, 0, 1, 4])
    y, x = data_of(name), rng.gamma(1.0, 2.0, 6) + 0.1
    u = 0.1 * rng.random(6) * (counts > 0)
    weighted, repeated = MAKERS[name](y, weights=counts), MAKERS[name](np.repeat(y, counts))
    long = np.repeat(x, counts)
    assert weighted.value(x) == pytest.approx(repeated.value(long), rel=1e-13)
    gradient = weighted.value_and_gradient(x)[1]
    copies = repeated.value_and_gradient(long)[1]
    sums = [copies[np.repeat(np.arange(6), counts) == i].sum() for i in range(6)]
    np.testing.assert_allclose(gradient, sums, rtol=1e-13, atol=1e-14)
    shares = np.repeat(u / np.maximum(counts, 1), counts)
    assert weighted.conjugate(u) == pytest.approx(repeated.conjugate(shares), rel=1e-12)
    holes = np.where(counts == 0, np.nan, y)
    masked, removed = MAKERS[name](holes, mask=counts == 0), MAKERS[name](y[counts > 0])
    assert masked.value(x) == pytest.approx(removed.value(x[counts > 0]), rel=1e-13)
    assert weighted.conjugate(np.ones(6)) == np.inf


@pytest.mark.parametrize("name", MAKERS)
def test_masked_problems_are_solved_as_if_rows_were_removed(name):
    loss, D = problem_of(name, 3)
    gone = np.random.default_rng(3).random(40) < 0.3
    short = MAKERS[name](loss.y[~gone])
    holes = MAKERS[name](np.where(gone, np.nan, loss.y), mask=gone)
    atoms = Dictionary(D)
    one = minimize(holes, Cone(atoms, penalty=0.1), FCMP(variant=1))
    two = minimize(short, Cone(Dictionary(D[~gone]), penalty=0.1), FCMP(variant=1))
    assert one.certificate.proven
    assert one.status.success
    assert one.value == pytest.approx(two.value, rel=1e-9)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_fcmp_finds_the_minimum_and_proves_it(name, seed, penalty):
    loss, D = problem_of(name, seed)
    result = minimize(loss, Cone(Dictionary(D), penalty=penalty), FCMP(variant=1), tol=1e-9)
    best = reference(loss, D, penalty)
    decrease = result.trace["value"][0] - result.value
    assert result.status is Status.CONVERGED
    assert abs(result.value - best) <= 1e-8 * (decrease + abs(best))
    assert result.certificate.proven
    assert result.certificate.gap <= 1e-6 * decrease
    assert result.certificate.gap >= result.value - best - 1e-13 * (abs(best) + decrease)
    assert (np.diff(result.trace["value"]) <= 1e-13 * (abs(best) + decrease)).all()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", [NNMP, AMP, PWMP])
@pytest.mark.parametrize("step", [AdaptiveStep(), ExactStep(), ShortStep()], ids=repr)
def test_line_algorithms_never_rise_and_stay_in_the_domain(name, kind, step):
    loss, D = problem_of(name, 5)
    if isinstance(step, ShortStep) and name not in SMOOTH:
        with pytest.raises(ValueError, match="needs the smoothness L"):
            minimize(loss, Cone(Dictionary(D)), kind(step))
        return
    result = minimize(loss, Cone(Dictionary(D)), kind(step), max_iter=150, tol=1e-6)
    values = result.trace["value"]
    exact = minimize(loss, Cone(Dictionary(D)), FCMP(variant=1))
    decrease = values[0] - exact.value
    assert np.isfinite(values).all()
    assert (np.diff(values) <= 1e-13 * (abs(values[:-1]) + decrease)).all()
    share = {"shifted kl": 1.0}.get(name, 0.1) if isinstance(step, ShortStep) else 0.05
    assert result.value - exact.value <= share * decrease
    missing = result.value - exact.value - 1e-12 * (abs(exact.value) + 1)
    assert result.certificate.gap >= missing or not result.certificate.proven


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*MAKERS]), st.integers(0, 10**6))
def test_every_gap_on_the_way_is_a_bound(name, seed):
    loss, D = problem_of(name, seed, m=12, n=6)
    cone = Cone(Dictionary(D), penalty=0.3)
    best = minimize(loss, cone, FCMP(variant=1), tol=1e-12).value
    for state in iterates(loss, cone, PWMP(AdaptiveStep())):
        if state.certificate.proven:
            missing = state.value - best
            assert state.certificate.gap >= missing - 1e-11 * (abs(best) + abs(state.value) + 1)
        if state.iteration == 20:
            break


def test_a_run_starts_inside_the_domain_and_says_so():
    loss, D = problem_of("poisson", 6)
    run = minimize(loss, Cone(Dictionary(D)), FCMP(variant=1))
    assert run.trace.start.startswith("multiple of ")
    assert run.trace["n_atoms"][0] >= 1
    assert "start: multiple of" in repr(run.trace)
    smooth = minimize(LeastSquares(REALS), Cone(UnitVectors(6)), FCMP())
    assert smooth.trace.start == "origin"
    again = minimize(LeastSquares(REALS), Cone(UnitVectors(6)), FCMP(), start=smooth)
    assert again.trace.start == "given"


def test_the_start_is_the_best_multiple():
    A = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    first = next(iterates(Poisson([2.0, 3.0, 1.0]), Cone(Dictionary(A)), PWMP(AdaptiveStep())))
    np.testing.assert_allclose(first.iterate.x, 6.0 / 4.0 * A[:, 0], rtol=1e-10)
    needed = next(iterates(Poisson([2.0, 3.0]), Cone(UnitVectors(2)), PWMP(AdaptiveStep())))
    np.testing.assert_allclose(needed.iterate.x, [2.5, 2.5], rtol=1e-10)


def test_zero_counts_and_exact_fits():
    A = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    nothing = minimize(Poisson(np.zeros(3)), Cone(Dictionary(A)), FCMP(variant=1))
    assert nothing.status.success
    assert nothing.value == 0
    exact = minimize(KullbackLeibler([3.0, 6.0, 0.0]), Cone(Dictionary(A)), FCMP(variant=1))
    assert exact.status.success
    np.testing.assert_allclose(exact.x, [3.0, 6.0, 0.0], rtol=1e-12)
    both = minimize(KullbackLeibler([3.0, 6.0, 5.0]), Cone(Dictionary(A)), FCMP(variant=1))
    assert both.status.success
    assert both.certificate.proven
    assert abs(both.value) <= 1e-12


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("algorithm", [FCMP(variant=1), PWMP(AdaptiveStep())])
def test_separable_labels_have_no_minimiser(intercept, algorithm):
    rng = np.random.default_rng(7)
    D = rng.standard_normal((30, 4))
    loss = Logistic(D[:, 0] + D[:, 2] > 0)
    loss = FreeIntercept(loss) if intercept else loss
    result = minimize(loss, Cone(Dictionary(D)), algorithm, max_iter=200)
    assert result.status is Status.UNBOUNDED
    assert np.isfinite(result.weights).all()
    assert "no minimiser" in result.message
    penalised = minimize(loss, Cone(Dictionary(D), penalty=0.1), FCMP(variant=1))
    assert penalised.status is Status.CONVERGED


def test_a_huber_loss_without_curvature_at_the_start_is_not_unbounded():
    loss = Huber([100.0, 90.0], 1.0)
    result = minimize(loss, Cone(Dictionary(np.ones((2, 1)))), FCMP(variant=1))
    assert result.status.success
    assert 90 <= result.weights[0] <= 100


def test_labels_may_be_written_in_three_ways():
    signs = np.array([1, -1, 1])
    for y in (signs, signs > 0, (signs > 0).astype(int)):
        assert Logistic(y).value(np.array([1.0, 2.0, 3.0])) == pytest.approx(
            np.logaddexp(0, -signs * np.array([1.0, 2.0, 3.0])).sum()
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Poisson([1.0, -2.0]), "not negative; the least is -2"),
        (lambda: KullbackLeibler([-1e-9, 1.0]), "not negative"),
        (lambda: BetaDivergence([-1.0], 1.5), "not negative"),
        (lambda: BetaDivergence([1.0], 0.5), "between 1 and 2, where the divergence is convex"),
        (lambda: KullbackLeibler([1.0], shift=-1.0), "shift must be finite and not negative"),
        (lambda: Huber([1.0], 0.0), "delta must be positive and finite; got 0"),
        (lambda: Logistic([0, 1, 2]), "two classes, -1 and 1 or 0 and 1; got 0, 1, 2"),
        (lambda: Logistic([-1, 0, 1]), "two classes"),
        (lambda: Logistic(["a", "b"]), "real numbers"),
        (lambda: Poisson([1.0, np.nan]), "finite; got NaN"),
        (lambda: Poisson([1.0, np.nan], mask=[True, False]), "finite; got NaN"),
        (lambda: Poisson([1.0, 2.0], mask=[1, 0]), "booleans, True for what is left out"),
        (lambda: Poisson([1.0, 2.0], mask=[True, True]), "no entry of y counts"),
        (lambda: Poisson([1.0, 2.0], weights=[1.0, -1.0]), "not negative; got -1"),
        (lambda: Poisson([1.0, 2.0], weights=[1.0] * 3), r"shape of y, \(2,\)"),
        (lambda: Cone(UnitVectors(2), penalty=-1.0), "penalty must be non-negative"),
        (lambda: FreeIntercept(3), "loss over entries"),
        (lambda: minimize(Poisson([1.0, 2.0]), Cone(Dictionary([[1.0], [0.0]])),
                          FCMP(variant=1)), "positive where all atoms are zero"),
        (lambda: minimize(Poisson([1.0, 2.0]), Cone(UnitVectors(2)), PWMP()), "AdaptiveStep"),
        (lambda: minimize(Poisson([1.0]), Cone(UnitVectors(1)), FCMP(variant=1), max_atoms=0),
         "max_atoms must be a positive integer; got 0"),
    ],
)  # fmt: skip
def test_bad_data_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_masked_nan_is_fine():
    loss = Poisson([1.0, np.nan, 2.0], mask=[False, True, False])
    assert np.isfinite(loss.value(np.ones(3)))


@needs_data
@pytest.mark.parametrize("name", [*MAKERS])
def test_tumours(name):
    stored = np.load(Path(DATA) / "mutational_signatures" / "sbs96.npz")
    D, Y = stored["cosmic_v3_4"], stored["pcawg_counts"].astype(float)
    for i in (3, 700, 2100):
        y = Y[:, i] > np.median(Y[:, i]) if name == "logistic" else Y[:, i]
        loss = MAKERS[name](y)
        result = minimize(loss, Cone(Dictionary(D)), FCMP(variant=1), tol=1e-9)
        decrease = result.trace["value"][0] - result.value
        scale = 1.0 / Y[:, i].sum()  # L-BFGS-B wants numbers of order one
        best = reference(loss, D / scale)
        assert result.status.success
        assert result.certificate.proven
        assert result.certificate.gap <= 1e-6 * decrease
        assert abs(result.value - best) <= 1e-8 * (decrease + abs(best))
        assert certify(loss, Cone(Dictionary(D)), result).gap <= 1e-6 * decrease
