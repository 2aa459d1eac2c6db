"""Losses, data and starts that once broke a fit: infinite values, squares that overflow."""

from decimal import Decimal, localcontext
from math import isfinite
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from conepursuit import (
    FCMP,
    PWMP,
    AdaptiveStep,
    BetaDivergence,
    Cone,
    Dictionary,
    FreeIntercept,
    FunctionObjective,
    Huber,
    KullbackLeibler,
    LeastSquares,
    Objective,
    Poisson,
    Status,
    certify,
    minimize,
    nnfit,
    nnls,
    nnls_gram,
    nnls_path,
    penalty_path,
)
from conepursuit.estimators import GreedyNMF
from conepursuit.loss_fits import last_step
from conepursuit.loss_fits.columns import Problem
from conepursuit.loss_fits.last_step import conjugate_gradients
from conepursuit.loss_fits.one_target import inside

TWO = Cone(Dictionary(np.eye(2)))


def test_a_start_where_f_is_infinite_is_not_taken():
    """As in `nnfit`: the run starts where it would without it, and its trace says so."""
    loss = Poisson([1.0, 1.0])
    fit = minimize(loss, TWO, FCMP(variant=1), start=[1.0, 0.0])
    assert fit.status is Status.CONVERGED
    assert fit.trace.start == "multiple of the sum of 2 atoms"
    np.testing.assert_allclose(fit.x, 1.0, rtol=1e-6)
    taken = minimize(loss, TWO, FCMP(variant=1), start=[2.0, 0.5])
    assert taken.trace.start == "given"
    assert taken.trace["value"][0] == loss.value(np.array([2.0, 0.5]))


def test_a_start_serves_where_no_multiple_of_atoms_does():
    """f is NaN at the origin and along the array of ones, but finite at the start."""

    def function(x):
        bad = abs(x[0] - x[1]) < 0.1
        return (np.nan, x) if bad else (0.5 * float((x[0] - 3) ** 2), np.array([x[0] - 3, 0.0]))

    fit = minimize(
        FunctionObjective(function, 2), TWO, PWMP(AdaptiveStep()), start=[1.0, 0.0], max_iter=20
    )
    assert fit.value == pytest.approx(0.0, abs=1e-12)
    assert fit.trace.start == "given"
    with pytest.raises(ValueError, match="infinite or NaN at the origin"):
        minimize(FunctionObjective(function, 2), TWO, PWMP(AdaptiveStep()))


def nan_after(calls, value, gradient):
    """Return a function whose gradient, or value, is NaN from some call on."""
    left = [calls]

    def function(x):
        left[0] -= 1
        if left[0] >= 0:
            return 0.5 * float((x - 1) @ (x - 1)), x - 1
        return value, np.full(2, gradient)

    return FunctionObjective(function, 2)


@pytest.mark.parametrize(("value", "gradient"), [(np.nan, 0.0), (1.0, np.nan), (np.inf, 1.0)])
@pytest.mark.parametrize("calls", range(1, 8))
def test_nobody_pressed_ctrl_c(calls, value, gradient):
    """Whenever f fails, the run has a status, or the error says what is wrong with f."""
    loss, how = nan_after(calls, value, gradient), PWMP(AdaptiveStep())
    if calls == 1:
        with pytest.raises(ValueError, match="where the run starts"):
            minimize(loss, TWO, how, tol=0.0)
        return
    fit = minimize(loss, TWO, how, tol=0.0)
    assert fit.status in (Status.DIVERGED, Status.STALLED)
    assert not fit.certificate.proven
    assert np.isfinite(fit.x).all()


@pytest.mark.parametrize(
    ("loss", "x"),
    [
        (Poisson([1.0, 1.0]), [1.0, 0.0]),
        (BetaDivergence([1.0, 1.0], 1.5), [1.0, 0.0]),  # finite, with an infinite slope
        (BetaDivergence([1.0, 1.0], 1.0), [1.0, 0.0]),
    ],
)
def test_certify_refuses_points_outside_the_domain_of_f(loss, x):
    with pytest.raises(ValueError, match="infinite or NaN at the point given"):
        certify(loss, TWO, weights=x)
    with pytest.raises(ValueError, match="infinite or NaN at the point given"):
        certify(loss, TWO, x=x)


UNEVEN = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize("length", [1e-300, 1e-165, 1e160, 1e300])
@pytest.mark.parametrize("loss", [Huber, LeastSquares, Poisson, KullbackLeibler])
@pytest.mark.parametrize("many", [False, True])
def test_squares_of_a_column_that_overflow_or_underflow(kind, length, loss, many):
    """The weights are those of the same atoms at length one, divided by the length."""
    y = UNEVEN @ [1.0, 3.0, 2.0]
    y = y[:, None] if many else y
    fit = nnfit(loss(y), kind(UNEVEN * [1.0, length, 1.0]), tol=1e-12)
    even = nnfit(loss(y), UNEVEN, tol=1e-12)
    np.testing.assert_allclose(fit.value, even.value, rtol=1e-9, atol=1e-10)
    assert np.isfinite(fit.x).all()
    assert np.isfinite(fit.dual).all()
    assert np.all(fit.proven)
    np.testing.assert_allclose((fit.x.T * [1.0, length, 1.0]).T, even.x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("many", [False, True])
def test_long_and_short_columns_with_a_penalty(many):
    """All columns have to be scaled by one power of two, as each has its price."""
    y = np.array([1.0, 2.0, 3.0])
    y = y[:, None] if many else y
    fit = nnfit(Huber(y), UNEVEN * 1e-165, penalty=1e-166)
    even = nnfit(Huber(y), UNEVEN, penalty=0.1)
    np.testing.assert_allclose(fit.x * 1e-165, even.x, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(fit.value, even.value, rtol=1e-8)
    for length in (1e-165, 1e165):
        mixed = nnfit(Huber(y), UNEVEN * [1.0, length, 1.0], penalty=0.1)
        assert np.isfinite(mixed.x).all()
        assert np.isfinite(mixed.value).all()


@pytest.mark.parametrize("loss", [LeastSquares, Poisson, KullbackLeibler])
@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("many", [False, True])
def test_data_whose_squares_overflow_are_refused(loss, size, many):
    y = size * np.ones((3, 1) if many else 3)
    with pytest.raises(ValueError, match="so large or small that their squares"):
        nnfit(loss(y), UNEVEN)
    fit = nnfit(Huber(y), UNEVEN)  # straight beyond delta
    assert all(np.isfinite(each).all() for each in (fit.x, fit.value, fit.dual))


def test_weights_too_large_for_a_float():
    """x* is about 1e310: the answer is the largest float, with the value and the gap it has."""
    for many in (False, True):
        y = np.ones((5, 1) if many else 5)
        fit = nnfit(Huber(y), np.full((5, 4), 1e-310))
        assert np.isfinite(fit.x).all()
        assert np.max(fit.x) > 1e307
        assert np.all(fit.value > 0)
        assert np.all(fit.gap >= fit.value * (1 - 1e-9))
        assert np.all(fit.status == Status.STALLED)
        x, rnorm = solution = nnls(np.full((5, 4), 1e-310), y)
        assert np.isfinite(x).all()
        assert np.max(x) > 1e307
        fitted = np.ldexp(np.full((5, 4), 1e-310), 1000) @ np.ldexp(x, -1000)
        np.testing.assert_allclose(rnorm, np.linalg.norm(y - fitted, axis=0), rtol=1e-12)
        assert np.all(solution.gap >= 0.5 * rnorm**2 * (1 - 1e-9))
        assert np.all(solution.status == Status.STALLED)


def test_weights_too_small_for_a_float():
    x, rnorm = fit = nnls(np.array([[1e300]]), np.array([1e-300]))
    assert x[0] == 0
    assert rnorm == 1e-300
    assert fit.status is Status.STALLED
    assert all(isfinite(v) for v in (*fit.dual, fit.gap))


def test_no_entry_without_weight_hides_a_slope():
    """Rounding is judged by the entries that count: as for one target, so for many."""
    y, weights, A = np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([[1.0], [1e-18]])
    many = nnfit(LeastSquares(y[:, None], weights=weights[:, None]), A)
    one = nnfit(LeastSquares(y, weights=weights), A)
    assert one.x[0] == pytest.approx(1e18)
    assert many.x[0, 0] == pytest.approx(1e18)
    assert many.status[0] is Status.CONVERGED


def test_a_long_atom_does_not_hide_the_others():
    """A fit starts from the sum of all atoms at one length, whatever their units."""
    A = np.array([[0.1, 3.0, 1e18], [0.02, 4.0, 0.03], [0.04, 2.0, 0.0], [60.0, 0.2, 0.0]])
    y = np.array([[1.1], [1.4], [0.8], [0.1]])
    for penalty in (0.0, 1e-3):
        fit = nnfit(KullbackLeibler(y), A, penalty=penalty)
        one = nnfit(KullbackLeibler(y[:, 0]), A, penalty=penalty)
        assert fit.status[0] is Status.CONVERGED
        assert fit.proven[0]
        assert fit.value[0] == pytest.approx(one.value, rel=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "kullback_leibler"])
@pytest.mark.filterwarnings("ignore:GreedyNMF made max_iter")
def test_transform_is_no_worse_than_fit(loss):
    for seed in (*range(40), 302, 689):
        rng = np.random.default_rng(seed)
        m, n = rng.integers(2, 7, 2)
        rank = min(int(rng.integers(1, 4)), m, n)
        X = rng.integers(0, 4, (m, n)).astype(float) if seed % 2 else rng.exponential(size=(m, n))
        X = X if seed % 2 else X**2
        X[rng.random((m, n)) < 0.3] = np.nan
        if np.isnan(X).all(axis=1).any() or np.isnan(X).all(axis=0).any():
            continue
        model = GreedyNMF(rank, loss=loss).fit(X)
        seen = ~np.isnan(X)
        kind = LeastSquares if loss == "squared_error" else KullbackLeibler
        reached = kind(X[seen]).value((model.transform(X) @ model.components_)[seen])
        found = 0.5 * model.reconstruction_err_**2
        assert reached <= found * (1 + 1e-9) + 1e-12 * np.nansum(X**2)


def test_factors_whose_squares_underflow():
    W = GreedyNMF(4, loss="kullback_leibler").fit_transform(np.eye(3, 7))
    assert np.isfinite(W).all()


def exact_beta(y, x, beta):
    """Return the divergence of one entry in many digits."""
    with localcontext(prec=60):
        y, x, b = Decimal(float(y)), Decimal(float(x)), Decimal(float(beta))
        powers = [Decimal(0) if not base else base**p for base, p in ((y, b), (x, b), (x, b - 1))]
        return float((powers[0] + (b - 1) * powers[1] - b * y * powers[2]) / (b * (b - 1)))


@pytest.mark.parametrize("beta", [1 + 1e-12, 1 + 1e-6, 1.3, 1.9, 2 - 1e-9, 2.0])
def test_beta_divergence_does_not_cancel(beta):
    """Next to beta = 1 and to x = y, where differences of powers lose all their digits."""
    rng = np.random.default_rng(0)
    y = 10 * rng.random(200) * (rng.random(200) < 0.5)
    x = np.where(rng.random(200) < 0.5, y * (1 + 1e-5 * rng.standard_normal(200)), rng.random(200))
    x[y == 0] *= 1e-8
    extremes = [(1e-300, 1.0), (1e-200, 5.0), (1.0, 1e-300), (3.0, 0.0), (0.0, 1e-300), (2.0, 2.0)]
    y, x = np.append(y, [a for a, _ in extremes]), np.append(x, [b for _, b in extremes])
    expected = [exact_beta(*each, beta) for each in zip(y, x, strict=True)]
    loss = BetaDivergence(y, beta)
    np.testing.assert_allclose(loss.losses(x), expected, rtol=1e-13, atol=1e-50)
    assert (loss.losses(np.maximum(x, 1e-3)) >= 0).all()


@pytest.mark.parametrize("beta", [1 + 1e-6, 1.3, 1.9, 2 - 1e-9, 2.0])
def test_beta_excesses_are_divergences(beta):
    """l(x) + l*(v) - v x is what the tangent at z misses at x, where v = l'(z)."""
    rng = np.random.default_rng(1)
    y, x = rng.random(50) * (rng.random(50) < 0.7), 0.1 + rng.random(50)
    loss = BetaDivergence(y, beta)
    for z in (x * (1 + 1e-6), 0.1 + rng.random(50)):
        missed = loss.losses(x) - loss.losses(z) - loss.slopes(z) * (x - z)
        found = loss.excesses(x, loss.slopes(z))
        np.testing.assert_allclose(found, missed, rtol=1e-9, atol=1e-14)
        assert (found >= 0).all()
    assert loss.excesses(x, loss.slopes(x)).max() < 1e-25


class Complex(Objective):
    """f with a complex value or gradient."""

    shape, smoothness = (2,), 1.0

    def __init__(self, value, factor):
        self.number, self.factor = value, factor

    def value_and_gradient(self, x):
        return self.number, self.factor * (x - 1.0)


@pytest.mark.parametrize(("value", "factor"), [(1.0, 1 + 1j), (1 + 0j, 1.0), (np.complex128(1), 1)])
def test_complex_objectives_are_refused(value, factor):
    own = Complex(value, factor)
    made = FunctionObjective(lambda x: (value, list(factor * (x - 1.0))), 2, smoothness=1.0)
    for loss in (own, made):
        for task in (
            lambda f: minimize(f, TWO, PWMP()),
            lambda f: certify(f, TWO, weights=[1.0, 1.0]),
            lambda f: nnfit(f, np.eye(2)),
        ):
            with pytest.raises(ValueError, match="must be real; got complex"):
                task(loss)


def test_numbers_too_large_for_a_kernel_are_no_limit():
    rng, most = np.random.default_rng(0), 10**30
    A, b = rng.random((6, 4)), rng.random((6, 2))
    for y in (b, b[:, 0]):
        for limits in ({"max_iter": most}, {"max_atoms": most}):
            np.testing.assert_array_equal(nnls(A, y, **limits).x, nnls(A, y).x)
            gram = nnls_gram(A.T @ A, A.T @ y, **limits)
            np.testing.assert_array_equal(gram.x, nnls_gram(A.T @ A, A.T @ y).x)
        np.testing.assert_array_equal(nnfit(Huber(y), A, max_iter=most).x, nnfit(Huber(y), A).x)
    assert nnls_path(A, b[:, 0], most).rnorm.tolist() == nnls_path(A, b[:, 0], 4).rnorm.tolist()
    cone = Cone(Dictionary(A))
    for limits in ({"max_iter": most}, {"max_atoms": most}):
        assert minimize(LeastSquares(b[:, 0]), cone, PWMP(), **limits).status.success
    penalty_path(LeastSquares(b[:, 0]), Dictionary(A), n_penalties=2, max_iter=most)
    GreedyNMF(2, max_iter=most, rank_sweeps=most).fit(A)


def test_more_components_than_entries_are_refused():
    X = np.random.default_rng(0).random((3, 2))
    for rank in (7, 10**30):
        with pytest.raises(ValueError, match="at most 6, the number of entries"):
            GreedyNMF(rank).fit(X)
    assert GreedyNMF(6, tol=1e-2).fit(X).n_components_ == 6


def test_weights_of_all_entries_take_no_more_than_their_roots_and_the_target():
    """Besides those two arrays there is a mask, and what is small."""
    import tracemalloc

    rng = np.random.default_rng(0)
    b, weights, A = rng.random((500, 400)), rng.random((500, 400)), rng.random((500, 2))
    nnls(A, b[:, :2], weights=weights[:, :2])
    tracemalloc.start()
    nnls(A, b, weights=weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.3 * b.nbytes


def test_what_has_drifted_out_of_the_domain_returns_to_the_first_point():
    """However narrow the domain: the way back ends at the first point, not beyond it."""
    first = SimpleNamespace(weights=np.array([1.0, 0.0]), value=1.0)
    drifted = SimpleNamespace(weights=np.array([0.0, 1.0]))
    tried = []

    def at(weights):
        tried.append(weights)
        assert (weights >= 0).all()
        assert len(tried) < 100
        found = np.array_equal(weights, first.weights)
        return SimpleNamespace(weights=weights, value=1.0 if found else np.inf)

    assert (inside(SimpleNamespace(at=at), drifted, first).weights == first.weights).all()


def test_a_linear_system_asks_nothing_of_atoms_that_are_not_in_it(monkeypatch):
    """Where no atom can move, no slope is wanted: conjugate gradients could not give it."""
    seen = []

    def recorded(product, right, error, most):
        rows = np.array([np.abs(product(unit)).max() for unit in np.eye(len(right))])
        seen.append((rows == 0).sum())
        assert (right[rows == 0] == 0).all()
        return conjugate_gradients(product, right, error, most)

    monkeypatch.setattr(last_step, "conjugate_gradients", recorded)
    rng = np.random.default_rng(0)
    A, weights = rng.random((200, 60)), rng.random(60) * (np.arange(60) < 42)
    loss = LeastSquares(A @ weights)
    problem = Problem(loss, Dictionary(A), 0.0)
    problem.choose(np.arange(60) < 50)
    _point, gap, proven = last_step.closed(problem, problem.at(1.001 * weights), 1e-8, direct=False)
    assert max(seen) >= 8
    assert proven
    assert gap <= 1e-7


@pytest.mark.parametrize(
    ("b", "beta", "A", "penalty"),
    [
        ([2.637254687045258e26], 1.5, [[2.523666755127063e-94]], 6.122202398173443e43),
        (
            [1.2098515579143206e-130], 1.25,
            [[1.0613804611685229e-158, 1.3452020002844174e246]], 1.2592243761933844e256,
        ),
        (
            [5.736589113895192e-59, 9.860572354680306e-47], 1.5,
            [[1.2366563799556382e38], [6.855180954919152e-84]], 1.353630805414311e62,
        ),
        (
            [1.5012257105171904e-75, 3.7471359693245345e89], 1.5,
            [
                [3.7402043729331077e25, 2.511159926466657e97],
                [3.012319486030505e-80, 3.0638550126554895e46],
            ],
            1.4065780336516509e135,
        ),
    ],
)  # fmt: skip
def test_where_numbers_overflow_the_gap_is_a_finite_estimate(b, beta, A, penalty):
    with np.errstate(all="ignore"):
        fit = nnfit(BetaDivergence(b, beta), A, penalty=penalty)
    assert np.isfinite(fit.gap)
    assert np.isfinite(fit.x).all()


def test_at_the_end_of_the_domain_the_gap_of_many_targets_is_a_finite_estimate():
    """The first row of A x is zero up to rounding, and the data there are positive."""
    A = np.array([[10.0, -15.0], [7.0, 1.0], [14.0, 2.0]])
    fit = nnfit(KullbackLeibler([[7.394901699054828e-17], [2.0], [0.9999999999999999]]), A)
    assert fit.gap[0] == pytest.approx(fit.value[0])
    assert not fit.proven[0]


def test_data_far_above_the_shift_of_a_divergence_are_fitted_with_a_true_gap():
    """The slope at x = 0 is 1e17 times that at the end; the digits of a scaled one were lost."""
    y, a = 1.4479708973132206e16, 0.11621007036483884
    for data in ([y], [[y]]):
        fit = nnfit(KullbackLeibler(data, shift=0.125), [[a]])
        assert np.all(fit.proven)
        np.testing.assert_allclose(np.ravel(fit.x), y / a, rtol=1e-6)
    stopped = nnfit(KullbackLeibler([[y]], shift=0.125), [[a]], max_iter=1)
    assert stopped.value[0] <= stopped.gap[0] * (1 + 1e-12)


@pytest.mark.parametrize("call", [
    lambda: nnfit(BetaDivergence([5.8e-63, 7e-63], 1.5), [[2.4e80], [2.9e80]], penalty=5.8e152),
    lambda: nnfit(
        KullbackLeibler([[7e-36], [1.9e81]], shift=0.125), [[-6.9e-84], [1.8e68]]
    ),
    lambda: nnfit(
        BetaDivergence([[3e-98]], 1.75), [[1.3e-56]], penalty=3.6e180, max_iter=1
    ),
    lambda: nnfit(
        Poisson([1.5e95, 5e89]), [[2.6e-80, 8.3e-70], [2.7e-84, 3.1e80]], penalty=4e176
    ),
])  # fmt: skip
def test_numbers_far_apart_end_with_finite_weights_and_without_a_warning(call):
    fit = call()
    assert np.isfinite(fit.x).all()
    assert np.isfinite(fit.value).all()
    assert np.isfinite(fit.gap).all()


def test_values_of_small_fits_of_large_data_have_all_digits():
    """The ratio x / y was rounded to 0 in (x - y) / y, so that the value was 2e-5 too large."""
    A, penalty = np.array([[0.01235834047525729], [1454.3169609932115]]), 6241269055754.704
    fit = nnfit(BetaDivergence([[2.0], [2.0]], 1.25), A, penalty=penalty)
    weight = fit.x[0]
    value = BetaDivergence([2.0, 2.0], 1.25).value(A @ weight) + penalty * weight[0]
    assert fit.value[0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("data", [[1.0, 1.0], [[1.0], [1.0]]])
def test_a_loss_that_no_combination_makes_finite_is_told_from_entries_that_no_atom_reaches(data):
    with pytest.raises(ValueError, match="atoms of both signs"):
        nnfit(Poisson(data), [[1.0, -1.0], [-1.0, 1.0]])
    with pytest.raises(ValueError, match="all atoms are zero"):
        nnfit(Poisson(data), [[1.0, 2.0], [0.0, 0.0]])


@pytest.mark.parametrize("call", [
    lambda A, x: certify(Huber([3.6e149], 30.0), Cone(Dictionary(A)), weights=x),
    lambda A, x: certify(BetaDivergence([2e76], 2.0), Cone(Dictionary(A)), weights=x),
    lambda A, x: minimize(Huber([3.6e149], 30.0), Cone(Dictionary(A)), PWMP(), max_iter=2),
    lambda A, x: penalty_path(Huber([3.6e149], 30.0), Dictionary(A), n_penalties=2, max_iter=2),
])  # fmt: skip
def test_numbers_that_overflow_are_no_warning(call):
    call(np.array([[7.1e233]]), np.array([4.3e-159]))


def test_intercepts_of_rows_of_very_different_size_are_found_in_few_steps():
    """Newton's method doubles b next to a pole; it took a hundred steps, and 20 s for a fit."""
    A = np.array([
        [17.6, 3.1e-100, 1.6e-21, 1.3e53], [8.5e-69, 4.9e65, 1.1e95, 1.1e-34],
        [3.8e27, 3.6e-56, 2e87, 9.2e56],
    ])  # fmt: skip
    objective = FreeIntercept(Poisson([1907656.0, 3.4e48, 8.3e80]))
    asked, derivatives = [0], objective._derivatives

    def counted(at):
        asked[0] += 1
        return derivatives(at)

    objective._derivatives = counted
    objective.value(np.zeros(3))
    assert asked[0] <= 25
    assert np.isfinite(nnfit(objective, A).value)


def test_a_curvature_that_is_negative_by_rounding_is_none():
    A, b = [[8.3e-53], [3.4e17], [1.3e74]], [2e-11, 2e-8, 1.3e85]
    run = minimize(
        FreeIntercept(KullbackLeibler(b, shift=0.125)), Cone(Dictionary(A)), FCMP(), max_iter=1
    )
    assert np.isfinite(run.value)
