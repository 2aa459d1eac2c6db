"""Non-negative fits under other losses, against solvers and formulas that are not the kernel."""

import os
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from conepursuit.kernels import loss_fits as kernels
from conepursuit.kernels.constants import (
    BETA,
    CONVERGED,
    HUBER,
    INFEASIBLE,
    KULLBACK_LEIBLER,
    LOGISTIC,
    MAX_STEPS,
    SQUARED,
)

losses = kernels.losses
LOSSES = [
    (SQUARED, 0.0),
    (LOGISTIC, 0.0),
    (KULLBACK_LEIBLER, 0.0),
    (KULLBACK_LEIBLER, 0.5),
    (HUBER, 0.7),
    (BETA, 1.1),
    (BETA, 1.5),
]
NAMES = ["squared", "logistic", "kl", "kl_shifted", "huber", "beta_1.1", "beta_1.5"]
every_loss = pytest.mark.parametrize(("code", "parameter"), LOSSES, ids=NAMES)


class Fits:
    """What the kernel returns for some targets."""

    def __init__(
        self, loss, atoms, targets, weights=None, penalty=0.0, tol=1e-9, max_steps=200, c=None
    ):
        atoms, targets = np.ascontiguousarray(atoms, float), np.ascontiguousarray(targets, float)
        count, n = len(targets), len(atoms)
        weights = np.ones((1, atoms.shape[1])) if weights is None else np.array(weights, float)
        self.c = np.zeros((count, n)) if c is None else c.copy()
        self.dual, self.value, self.gap = np.zeros((count, n)), np.zeros(count), np.zeros(count)
        self.proven, self.status = np.zeros(count, bool), np.zeros(count, np.int64)
        self.n_iter = np.zeros(count, np.int64)
        kernels.fit_losses(
            *loss, atoms, targets, weights, penalty, tol, max_steps, self.c, self.dual,
            self.value, self.gap, self.proven, self.status, self.n_iter,
        )  # fmt: skip

    def converged(self):
        return np.all(self.status == CONVERGED) and np.all(self.proven)


def entries(code, p, y, x):
    """Return the losses of entries and their slopes, from the textbook."""
    if code == SQUARED:
        return (x - y) ** 2 / 2, x - y
    if code == LOGISTIC:
        return np.logaddexp(0, -y * x), -y / (1 + np.exp(y * x))
    if code == HUBER:
        r = x - y
        inner = abs(r) <= p
        return np.where(inner, r**2 / 2, p * abs(r) - p**2 / 2), np.clip(r, -p, p)
    if code == KULLBACK_LEIBLER:
        x, y = x + p, y + p
        safe = np.where(y > 0, y, 1.0)
        return np.where(y > 0, y * np.log(safe / x) - y + x, x), 1 - y / x
    value = (y**p + (p - 1) * x**p - p * y * x ** (p - 1)) / (p * (p - 1))
    return value, x ** (p - 1) - y * x ** (p - 2)


def objective(loss, atoms, y, w, penalty, c):
    """Return F and its gradient, by NumPy; infinity outside the domain."""
    x = c @ atoms
    if loss[0] in (KULLBACK_LEIBLER, BETA) and np.any(x + loss[1] * (loss[0] != BETA) <= 0):
        return np.inf, np.zeros_like(c)
    value, slope = entries(*loss, y, x)
    return w @ value + penalty * c.sum(), atoms @ (w * slope) + penalty


def reference(loss, atoms, y, w, penalty, near):
    """Return the least value that L-BFGS-B finds, from several starts."""
    best = np.inf
    for start in (near, near + 0.01, np.full(len(atoms), 0.5)):
        found = minimize(
            lambda c: objective(loss, atoms, y, w, penalty, c), start, jac=True,
            method="L-BFGS-B", bounds=[(0, None)] * len(atoms),
            options={"ftol": 0, "gtol": 1e-13, "maxiter": 5000, "maxfun": 10000, "maxls": 50},
        )  # fmt: skip
        best = min(best, found.fun)
    return best


def problem(seed, code, n=6, m=25, signed=False):
    rng = np.random.default_rng(seed)
    atoms = (
        rng.standard_normal((n, m)) if signed else rng.random((n, m)) * (rng.random((n, m)) < 0.8)
    )
    positive = code in (KULLBACK_LEIBLER, BETA)
    if signed and positive:
        atoms += 1.0
    y = 3 * rng.standard_normal(m) + 1
    if code == LOGISTIC:
        y = np.where(y + rng.standard_normal(m) > 0, 1.0, -1.0)
    if positive:
        y = rng.poisson(4.0, m) + 1.0 * signed
    return atoms, y, rng.integers(1, 4, m) / 2.0


@every_loss
@pytest.mark.parametrize("signed", [False, True], ids=["nonnegative", "signed"])
@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_value(code, parameter, signed, penalty):
    for seed in range(4):
        atoms, y, w = problem(seed, code, signed=signed)
        fit = Fits((code, parameter), atoms, y[None], w[None], penalty, 1e-11)
        value, dual = objective((code, parameter), atoms, y, w, penalty, fit.c[0])
        best = reference((code, parameter), atoms, y, w, penalty, fit.c[0])
        assert fit.converged()
        np.testing.assert_allclose(fit.value, value, rtol=1e-12)
        np.testing.assert_allclose(fit.dual[0], dual, atol=1e-9 * (1 + abs(dual).max()))
        assert abs(value - best) <= 1e-8 * abs(best)
        assert np.all(fit.c >= 0)


@every_loss
@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_gap_is_a_bound_and_values_fall(code, parameter, penalty):
    for seed in range(5):
        atoms, y, _ = problem(seed, code)
        best = Fits((code, parameter), atoms, y[None], None, penalty, 1e-14)
        before = np.inf
        for steps in range(8):
            fit = Fits((code, parameter), atoms, y[None], None, penalty, 1e-14, steps)
            assert fit.proven[0]
            assert fit.value[0] <= before * (1 + 1e-14)
            assert fit.gap[0] >= fit.value[0] - best.value[0] - 1e-13 * (1 + best.value[0])
            before = fit.value[0]


@pytest.mark.parametrize(("code", "parameter"), [*LOSSES, (KULLBACK_LEIBLER, 0.0), (BETA, 1.95)])
def test_divergences_to_50_digits(code, parameter):
    rng, p = np.random.default_rng(code), parameter

    def exact(y, x, z):
        with mpmath.workdps(50):
            y, x, z, q = mpmath.mpf(y), mpmath.mpf(x), mpmath.mpf(z), mpmath.mpf(p)

            def value(x):
                if code == LOGISTIC:
                    return mpmath.log1p(mpmath.exp(-y * x))
                if code == KULLBACK_LEIBLER:
                    return (y + q) * mpmath.log((y + q) / (x + q)) - y + x if y + q else x + q
                if code == BETA:
                    return (y**q + (q - 1) * x**q - q * y * x ** (q - 1)) / (q * (q - 1))
                r = abs(x - y)
                return q * r - q**2 / 2 if code == HUBER and r > q else r**2 / 2

            return value(x) - value(z) - mpmath.diff(value, z) * (x - z)

    for _ in range(60):
        y = float(rng.integers(0, 4)) if code in (KULLBACK_LEIBLER, BETA) else rng.standard_normal()
        y = np.sign(y) if code == LOGISTIC else y
        z = abs(rng.standard_normal()) * 10 ** rng.uniform(-2, 1)
        x = z * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-4, -0.1))
        expected = float(exact(y, x, z))
        change = losses.slope(code, p, y, z) - losses.slope(code, p, y, x)
        assert losses.divergence(code, p, y, x, z) == pytest.approx(expected, rel=1e-10, abs=1e-25)
        assert losses.young(code, p, y, x, change) == pytest.approx(expected, rel=1e-8, abs=1e-20)


@every_loss
def test_degenerate_dictionaries(code, parameter):
    atoms, y, w = problem(1, code)
    clean = Fits((code, parameter), atoms, y[None], w[None], tol=1e-11)
    scales = 10.0 ** np.linspace(-8, 8, 20)[:, None]
    copies = np.vstack([atoms, atoms, 3 * atoms[:2], atoms[:1] + atoms[1:2], np.zeros((5, len(y)))])
    fit = Fits((code, parameter), copies[: len(scales)] * scales, y[None], w[None], tol=1e-11)
    assert fit.converged()
    assert np.all(np.isfinite(fit.c))
    np.testing.assert_allclose(fit.value, clean.value, rtol=1e-9)
    one = Fits((code, parameter), atoms[:, :1] + 0.1, y[:1][None], tol=1e-11)
    assert one.converged()


@every_loss
def test_weights_replicate_and_remove(code, parameter):
    atoms, y, _ = problem(2, code)
    w = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    times = w.astype(int)
    copied = Fits((code, parameter), np.repeat(atoms, times, axis=1), np.repeat(y, times)[None])
    weighted = Fits((code, parameter), atoms, np.where(w > 0, y, 0.0)[None], w[None])
    assert copied.converged()
    assert weighted.converged()
    np.testing.assert_allclose(weighted.value, copied.value, rtol=1e-8)
    spoilt = np.where(w > 0, atoms, 1e9 * np.sin(np.arange(len(y))))
    other = Fits((code, parameter), spoilt, np.where(w > 0, y, 0.0)[None], w[None])
    np.testing.assert_allclose(other.value, weighted.value, rtol=1e-8)


@every_loss
@pytest.mark.parametrize("shared", [False, True], ids=["own weights", "shared weights"])
def test_slices_change_no_bit(code, parameter, shared):
    atoms, _, w = problem(3, code)
    targets = np.stack([problem(seed, code)[1] for seed in range(7)])
    weights = w[None] if shared else np.repeat(w[None], 7, axis=0)
    whole = Fits((code, parameter), atoms, targets, weights)
    for first, last in ((0, 1), (1, 4), (4, 7)):
        rows = slice(first, last)
        part = Fits((code, parameter), atoms, targets[rows], weights if shared else weights[rows])
        for name in ("c", "dual", "value", "gap", "status", "n_iter"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows])


@every_loss
def test_starts(code, parameter):
    atoms, y, w = problem(4, code)
    cold = Fits((code, parameter), atoms, y[None], w[None], tol=1e-9)
    warm = Fits((code, parameter), atoms, y[None], w[None], tol=1e-8, c=cold.c)
    wild = Fits((code, parameter), atoms, y[None], w[None], tol=1e-9, c=cold.c + 1e3)
    assert warm.n_iter[0] == 0
    assert warm.converged()
    assert wild.converged()
    np.testing.assert_allclose(wild.value, cold.value, rtol=1e-8)


@pytest.mark.parametrize("loss", [(KULLBACK_LEIBLER, 0.0), (BETA, 1.5)])
def test_counts(loss):
    rng = np.random.default_rng(0)
    atoms = rng.random((10, 30)) * (rng.random((10, 30)) < 0.5)
    none = Fits(loss, atoms, np.zeros((1, 30)))
    assert none.converged()
    assert none.value[0] == 0
    assert not np.any(none.c)
    few, many = rng.poisson(0.3, (20, 30)), rng.poisson(10.0 ** rng.uniform(0, 6, (20, 30)))
    for counts in (few, many):
        reached = counts * np.any(atoms, axis=0)
        fits = Fits(loss, atoms, reached, tol=1e-9)
        assert fits.converged()


def test_exact_kullback_leibler():
    """Disjoint atoms: each weight is the ratio of counts to the sum of its atom."""
    atoms = np.zeros((2, 4))
    atoms[0, :2], atoms[1, 2:] = (1.0, 3.0), (2.0, 2.0)
    fit = Fits((KULLBACK_LEIBLER, 0.0), atoms, [[3.0, 5.0, 0.0, 2.0]], tol=1e-14)
    np.testing.assert_allclose(fit.c, [[2.0, 0.5]], rtol=1e-12)


def test_signed_start_inside_the_domain():
    """The sum of the atoms is negative somewhere, but a combination is not."""
    atoms = np.array([[1.0, 2.0, 1.0], [-5.0, 1.0, 0.5], [0.5, -0.2, 1.0]])
    y = np.array([[2.0, 3.0, 4.0]])
    for loss in ((KULLBACK_LEIBLER, 0.0), (BETA, 1.5)):
        fit = Fits(loss, atoms, y, tol=1e-11)
        assert fit.converged()
        assert (
            fit.value[0]
            <= objective(loss, atoms, y[0], np.ones(3), 0.0, np.array([1.5, 0.0, 1.0]))[0]
        )


def test_infeasible():
    atoms, y = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[1.0, 1.0], [1.0, 0.0]])
    fit = Fits((KULLBACK_LEIBLER, 0.0), atoms, y)
    assert fit.status[0] == INFEASIBLE
    assert fit.value[0] == np.inf
    assert not np.any(fit.c[0])
    assert fit.status[1] == CONVERGED
    assert Fits((KULLBACK_LEIBLER, 0.0), -atoms, y).status[0] == INFEASIBLE
    beta = Fits((BETA, 1.5), atoms, y)
    assert beta.converged()
    assert beta.value[0] == pytest.approx(1 / (1.5 * 0.5))


def test_separable_logistic():
    rng = np.random.default_rng(0)
    atoms, y = rng.random((5, 20)), np.ones((1, 20))
    fit = Fits((LOGISTIC, 0.0), atoms, y, tol=1e-8)
    assert fit.converged()
    assert fit.value[0] <= 1e-8 * 20 * np.log(2)
    assert losses.divergence(LOGISTIC, 0.0, 1.0, 800.0, 790.0) == 0  # exp(-800) is no number
    endless = Fits((LOGISTIC, 0.0), atoms, y, tol=0.0, max_steps=30)
    assert endless.status[0] in (MAX_STEPS, CONVERGED)
    assert np.all(np.isfinite(endless.c))
    partly = np.vstack([np.r_[np.ones(10), np.zeros(10)], np.r_[np.zeros(10), rng.random(10)]])
    fit = Fits(
        (LOGISTIC, 0.0), partly, np.r_[np.ones(10), np.tile([1.0, -1.0, -1.0], 4)[:10]][None]
    )
    assert fit.converged()


def test_mutational_signatures():
    folder = os.environ.get("CONEPURSUIT_DATA")
    path = Path(folder or "") / "mutational_signatures" / "sbs96.npz"
    if not folder or not path.exists():
        pytest.skip("CONEPURSUIT_DATA does not name a folder with mutational_signatures/sbs96.npz")
    with np.load(path) as data:
        atoms, counts = data["cosmic_v3_4"].T, data["pcawg_counts"].T.astype(float)
    counts = counts[np.argsort(counts.sum(axis=1))[:: len(counts) // 100]]
    fits = Fits((KULLBACK_LEIBLER, 0.0), atoms, counts, tol=1e-8)
    assert fits.converged()
    for y, c, value, gap in zip(counts, fits.c, fits.value, fits.gap, strict=True):
        start = np.full(len(atoms), y.sum() / atoms.sum())
        first = objective((KULLBACK_LEIBLER, 0.0), atoms, y, np.ones(96), 0.0, start)[0]
        last = objective((KULLBACK_LEIBLER, 0.0), atoms, y, np.ones(96), 0.0, c)[0]
        assert value == pytest.approx(last, rel=1e-9)
        assert gap <= 1.0001e-8 * (first - last)
