"""Every loss against the table of conjugates in docs/certificates.md, to 50 digits.

The excess l(x) + l*(v) - v x of a loss is what every proof of a fit is made of. Here l* is the
formula of the table, evaluated by mpmath; the losses of Python and of the kernels are held to it,
at ordinary points and where digits are lost most easily: zeros in the data, the ends of domains, x
far below or above the data.
"""

import mpmath
import numpy as np
import pytest

from conepursuit import (
    FCMP,
    BetaDivergence,
    Cone,
    Dictionary,
    EntrywiseLoss,
    FreeIntercept,
    Huber,
    KullbackLeibler,
    LeastSquares,
    Logistic,
    Poisson,
    certify,
    minimize,
    nnfit,
)
from conepursuit.kernels import loss_fits
from conepursuit.losses import kernel_code

inf, kernel = mpmath.inf, loss_fits.losses


def squares(x, y):
    return (x - y) ** 2 / 2


def squares_conjugate(v, y):
    return v * v / 2 + v * y


def huber(x, y, delta=0.5):
    r = abs(x - y)
    return r * r / 2 if r <= delta else delta * r - delta**2 / mpmath.mpf(2)


def huber_conjugate(v, y, delta=0.5):
    return v * v / 2 + v * y if abs(v) <= delta else inf


def logistic(x, y):
    return mpmath.log1p(mpmath.exp(-y * x))


def logistic_conjugate(v, y):
    p = -v * y
    if not 0 <= p <= 1:
        return inf
    return sum(q * mpmath.log(q) for q in (p, 1 - p) if q > 0)


def divergence(x, y, e=0):
    x, y = x + e, y + e
    if x < 0 or (x == 0 and y > 0):
        return inf
    return x - y + (y * mpmath.log(y / x) if y > 0 else 0)


def divergence_conjugate(v, y, e=0):
    if y + e == 0:
        return 0 if v <= 1 else inf
    return -(y + e) * mpmath.log(1 - v) - e * v if v < 1 else inf


def poisson(x, y):
    if x < 0 or (x == 0 and y > 0):
        return inf
    return x - (y * mpmath.log(x) if y > 0 else 0)


def poisson_conjugate(v, y):
    if y == 0:
        return 0 if v <= 1 else inf
    return y * mpmath.log(y) - y - y * mpmath.log(1 - v) if v < 1 else inf


def beta(b):
    b = mpmath.mpf(b)

    def loss(x, y):
        return (y**b + (b - 1) * x**b - b * y * x ** (b - 1)) / (b * (b - 1)) if x >= 0 else inf

    def conjugate(v, y):
        if b == 2:
            return max(y + v, mpmath.mpf(0)) ** 2 / 2 - y * y / 2
        if y == 0:
            return (b - 1) / b * v ** (b / (b - 1)) if v > 0 else mpmath.mpf(0)

        def rising(s):  # the slope at x = y exp(s), less v
            return y ** (b - 1) * (mpmath.exp((b - 1) * s) - mpmath.exp((b - 2) * s)) - v

        low, high = mpmath.mpf(-1), mpmath.mpf(1)
        while rising(low) > 0:
            low *= 2
        while rising(high) < 0:
            high *= 2
        for _ in range(180):
            middle = (low + high) / 2
            low, high = (low, middle) if rising(middle) > 0 else (middle, high)
        z = y * mpmath.exp(low)
        return v * z - loss(z, y)

    return loss, conjugate


E = mpmath.mpf("0.125")
TABLE = {
    "LeastSquares": (LeastSquares, squares, squares_conjugate),
    "Huber": (lambda y: Huber(y, 0.5), huber, huber_conjugate),
    "Logistic": (Logistic, logistic, logistic_conjugate),
    "KullbackLeibler": (KullbackLeibler, divergence, divergence_conjugate),
    "KullbackLeibler shifted": (
        lambda y: KullbackLeibler(y, shift=0.125),
        lambda x, y: divergence(x, y, E),
        lambda v, y: divergence_conjugate(v, y, E),
    ),
    "Poisson": (Poisson, poisson, poisson_conjugate),
    "BetaDivergence 1": (lambda y: BetaDivergence(y, 1), divergence, divergence_conjugate),
    **{
        f"BetaDivergence {b}": (lambda y, b=b: BetaDivergence(y, b), *beta(b))
        for b in (1.25, 1.5, 1.75, 2)
    },
}
POSITIVE = [name for name in TABLE if name.startswith(("Kull", "Poisson", "Beta"))]


def points(name, rng):
    """Yield y, x and v, of all sizes, at the ends of the domains and beyond those of l*."""
    for _ in range(60):
        y = float(rng.choice([0.0, 1.0, rng.random(), 10 ** rng.uniform(-6, 6)]))
        x = float(10 ** rng.choice([rng.uniform(-1, 1), rng.uniform(-18, 18)]))
        v = float(rng.choice([-1, 1]) * 10 ** rng.choice([rng.uniform(-2, 1), rng.uniform(-9, 9)]))
        if name in POSITIVE:
            x = 0.0 if y == 0 and rng.random() < 0.3 else x
            v = float(rng.choice([v, rng.random(), 1 - 10 ** rng.uniform(-12, 0), 0.0, 1.0]))
        elif name == "Logistic":
            y, x = float(rng.choice([-1.0, 1.0])), float(rng.choice([-1, 1]) * min(x, 500))
            v = float(rng.choice([v, -y * rng.random(), -y, 0.0, -y * 10 ** rng.uniform(-20, 0)]))
        else:
            y, x = y * rng.choice([-1, 1]), x * rng.choice([-1, 1])
            v = float(rng.choice([v, rng.uniform(-0.5, 0.5), 0.5]))
        yield float(y), float(x), float(v)


@pytest.mark.parametrize("name", TABLE)
def test_excesses_are_those_of_the_table_to_the_rounding_that_proofs_allow_for(name):
    make, loss, conjugate = TABLE[name]
    rng = np.random.default_rng(list(name.encode()))
    for y, x, v in points(name, rng):
        objective = make(np.array([y]))
        with np.errstate(all="ignore"):
            found = float(objective.excesses(np.array([x]), np.array([v]))[0])
            size = float(objective.sizes(np.array([x]))[0])
        with mpmath.workdps(50):
            Y, X, V = mpmath.mpf(y), mpmath.mpf(x), mpmath.mpf(v)
            exact = loss(X, Y) + conjugate(V, Y) - V * X
            if not mpmath.isfinite(exact):
                assert found == np.inf, (y, x, v)
                continue
            allowed = 16 * 2.3e-16 * (size + abs(v * x) + abs(exact))
            assert found >= exact - allowed, (y, x, v, found, exact)
            assert found == np.inf or found <= exact + 1e3 * allowed, (y, x, v, found, exact)


def kernel_cases(name, rng):
    """Yield y, x and v for which v is in the domain of l*, or far outside."""
    for y, x, v in points(name, rng):
        if name.startswith("Beta") and y > 0 and x == 0:
            continue
        yield y, x, v


@pytest.mark.parametrize("name", [n for n in TABLE if not n.endswith((" 1", " 2"))])
def test_excesses_of_the_kernels_are_those_of_the_table(name):
    make, loss, conjugate = TABLE[name]
    rng = np.random.default_rng(list(name.encode()))
    for y, x, v in kernel_cases(name, rng):
        code, p = kernel_code(make(np.array([y])))
        slope = kernel.slope(code, p, y, x)
        change = v - slope
        if not np.isfinite(slope) or slope + change != v or change == 0:
            continue  # the kernel is given the change, which must lead to v
        found = kernel.young(code, p, y, x, change)
        with mpmath.workdps(50):
            Y, X, V = mpmath.mpf(y), mpmath.mpf(x), mpmath.mpf(v)
            exact = loss(X, Y) + conjugate(V, Y) - V * X
            if not mpmath.isfinite(exact):
                assert found > 1e300, (y, x, v)
                continue
            terms = abs(v * x) + abs(slope * x) + abs(exact) + abs(x) + abs(y) + 1
            allowed = 64 * 2.3e-16 * float(terms) * (1 + abs(x) + abs(y))
            assert not found < exact - allowed, (y, x, v, found, exact)


def test_the_slope_at_the_end_of_the_domain_counts():
    """At y = 0 and v < 0 the conjugate of a beta divergence is attained at x = 0, and is 0."""
    for b in (1.25, 1.5, 1.75, 2.0):
        loss = BetaDivergence([0.0], b)
        excess = loss.excesses(np.array([2.0]), np.array([-3.0]))[0]
        assert excess == pytest.approx(2**b / b + 6.0)
    code, p = kernel_code(BetaDivergence([0.0], 1.5))
    slope = kernel.slope(code, p, 0.0, 2.0)
    assert kernel.young(code, p, 0.0, 2.0, -3.0 - slope) == pytest.approx(2**1.5 / 1.5 + 6.0)
    # by hand: f(x) = 8.5 and the minimum is 0.25, at the weights (1/2, 0)
    atoms = Dictionary([[1.0, 0.0], [1.0, 3.0], [0.0, 1.0]])
    audit = certify(BetaDivergence([1.0, 0.0, 0.0], 2.0), Cone(atoms), weights=[1.0, 1.0])
    assert audit.proven
    assert 8.25 <= audit.gap <= 8.5 + 1e-9


def test_a_share_of_the_slopes_raises_a_signed_atom_by_less_than_a_positive_one():
    """A stopped logistic fit of signed atoms: the true excess at x = 0 is computed by hand."""
    fit = nnfit(Logistic([[1.0], [1.0]]), [[2.0], [-1.0]], max_iter=1)
    w = np.linspace(0, 2, 200_001)
    least = np.logaddexp(0, -2 * w) + np.logaddexp(0, w)
    assert fit.proven[0]
    assert fit.value[0] - least.min() <= fit.gap[0] < 0.01
    rng = np.random.default_rng(5)
    A, y = rng.standard_normal((20, 5)), rng.choice([-1.0, 1.0], (20, 8))
    best = nnfit(Logistic(y), A).value
    for steps in (1, 2, 3):
        stopped = nnfit(Logistic(y), A, max_iter=steps)
        assert (stopped.value - best <= stopped.gap + 1e-12)[stopped.proven].all()


class LogCosh(EntrywiseLoss):
    """A user's loss with the four methods of the documentation, and nothing else."""

    def losses(self, x):
        r = np.abs(x - self.y)
        return r + np.log1p(np.exp(-2 * r)) - np.log(2)

    def slopes(self, x):
        return np.tanh(x - self.y)

    def curvatures(self, x):
        return 1 / np.cosh(x - self.y) ** 2

    def excesses(self, x, v):
        with np.errstate(all="ignore"):
            inside = v * np.arctanh(v) + 0.5 * np.log1p(-v * v)
            conjugate = np.where(np.abs(v) < 1, inside, np.where(np.abs(v) == 1, np.log(2), np.inf))
        return np.maximum(self.losses(x) + conjugate + v * self.y - v * x, 0.0)


def test_a_loss_of_ones_own_without_a_smoothness_has_finite_proofs():
    rng = np.random.default_rng(0)
    A = rng.random((10, 4))
    y = A @ [1.0, 0.0, 2.0, 0.0] + 0.1 * rng.standard_normal(10)
    run = minimize(LogCosh(y), Cone(Dictionary(A)), FCMP())
    assert run.status.success
    assert run.proven
    assert run.gap < 1e-8 * LogCosh(y).value(np.zeros(10))
    fit = nnfit(LogCosh(y), A)
    assert fit.proven
    assert abs(fit.value - run.value) <= max(fit.gap, run.gap)


class Boundless(LogCosh):
    """A user's loss of whose rounding nothing is known."""

    def steepest_bend(self, x, drift):
        return np.full(self.shape, np.inf)


def test_a_gap_that_is_not_finite_is_neither_a_proof_nor_within_a_tolerance():
    A = np.array([[1.0, 0.2], [0.3, 1.0], [0.5, 0.5]])
    y = A @ [1.0, 2.0] + [0.1, -0.1, 0.05]
    for run in (
        minimize(Boundless(y), Cone(Dictionary(A)), FCMP()),
        nnfit(Boundless(y), A),
        certify(Boundless(y), Cone(Dictionary(A)), weights=[1.0, 1.0]),
    ):
        assert not run.proven
        assert np.isfinite(run.gap)


def test_a_free_intercept_is_the_best_one_next_to_a_pole_and_in_any_unit():
    x = np.array([0.3278135555906819, 7.263427226952687])
    loss = KullbackLeibler(
        [0.7097932575518866, 1.8204687784789098],
        weights=[2.8386820976662173, 0.46120413251776515],
    )
    assert FreeIntercept(loss).value(x) == pytest.approx(1.46741287)
    rng = np.random.default_rng(1)
    for _ in range(25):
        unit = 10.0 ** rng.choice([0, 0, -100, 100])
        y, x = (np.abs(rng.standard_normal(4)) * unit for _ in range(2))
        x = x * 10.0 ** rng.uniform(-3, 3)
        for loss in (KullbackLeibler(y), BetaDivergence(y, 1.5), Huber(y, 0.5 * unit)):
            value = FreeIntercept(loss).value(x)
            pole = max(loss.lowest_shift(x), -1e300)
            steps = unit * np.concatenate([np.logspace(-12, 6, 150), -np.logspace(-12, 6, 150)])
            with np.errstate(all="ignore"):
                tried = [loss.value(x + b) for b in np.append(steps, pole + np.abs(steps))]
            assert value <= np.nanmin(tried) + 1e-12 * loss._sum(loss.sizes(x))


def test_an_intercept_that_is_held_at_the_end_of_the_domain_has_a_true_gap():
    """The least entry of x moves the intercept, which the gradient has to know."""
    A, x = [[-0.45], [0.74]], [0.6]
    loss = FreeIntercept(BetaDivergence([0.0, 0.0009], 1.25))
    audit = certify(loss, Cone(Dictionary(A)), weights=x)
    least = min(loss.value(np.array([-0.45, 0.74]) * w) for w in np.linspace(0, 0.6, 601))
    assert loss.value(np.array([-0.45, 0.74]) * 0.6) - least <= audit.gap
    gradient = loss.value_and_gradient(np.array([-0.27, 0.444]))[1]
    assert abs(gradient.sum()) <= 1e-15


def test_slopes_that_do_not_sum_to_zero_exactly_count_against_a_proof():
    """The slope at the first entry is rounding, and the way of the intercept is 1e10."""
    A = [
        [0.39991119475928844, 4464383818.44941],
        [0.00016484534895358288, 4773339.894146978],
        [2366.256545245171, 86679136453966.38],
    ]
    y = np.array([-3423042061.7627687, -3659932.4558443003, -66460757412378.28])
    x = np.array([17140103983.48391, 0.5438502142537598])
    loss = FreeIntercept(Huber(y, 30.0))
    audit = certify(loss, Cone(Dictionary(A)), weights=x)
    assert not audit.proven or audit.gap >= loss.value(A @ x) - loss.value(np.zeros(3))
