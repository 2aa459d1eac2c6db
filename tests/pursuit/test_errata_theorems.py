"""Where the paper's theorems and lemmas are wrong: B4 to B9 of docs/errata.md.

B1 and B2 are in test_rates and test_widths, with the widths that they are about.
"""

import numpy as np
import pytest

from conepursuit import (
    AMP,
    FCMP,
    OMP,
    PWMP,
    Cone,
    Dictionary,
    LeastSquares,
    Quadratic,
    Span,
    Symmetric,
    UnitVectors,
    minimize,
)
from conepursuit.theory import atomic_norm, check_rates, minimal_directional_width


def symmetric_runs(algorithm, n=40):
    for seed in range(n):
        rng = np.random.default_rng(seed)
        D, y = rng.standard_normal((10, 15)), rng.standard_normal(10)
        cone = Cone(Symmetric(Dictionary(D / np.linalg.norm(D, axis=0))))
        yield minimize(LeastSquares(y), cone, algorithm, max_iter=50, tol=0.0)


def test_b4_symmetric_sets_have_bad_steps():
    """Of PWMP, which the paper denies; AMP has none where ties go to z."""
    bad = sum(int((~run.trace["good"]).sum()) for run in symmetric_runs(PWMP()))
    assert bad > 0
    assert all(run.trace["good"].all() for run in symmetric_runs(AMP()))


def test_b4_the_origin_inside_does_not_prevent_bad_steps_of_amp():
    bad = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        D, y = rng.standard_normal((5, 14)), rng.standard_normal(5)
        if minimal_directional_width(D) == 0:
            continue
        run = minimize(LeastSquares(y), Cone(Dictionary(D)), AMP(), max_iter=80, tol=0.0)
        bad += int((~run.trace["good"]).sum())
    assert bad > 0


def test_b5_omp_is_not_fcmp_on_the_symmetric_set():
    """The span of S holds more than its cone, for S holds z and not -z."""
    apart = 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        D, y = rng.standard_normal((10, 30)), rng.standard_normal(10)
        f = LeastSquares(y)
        linear = minimize(f, Span(Dictionary(D)), OMP(), max_iter=8, tol=0.0)
        conic = minimize(f, Cone(Symmetric(Dictionary(D))), FCMP(), max_iter=8, tol=0.0)
        n = min(linear.trace.n_states, conic.trace.n_states)
        apart = max(apart, np.abs(linear.trace["value"][:n] - conic.trace["value"][:n]).max())
    assert apart > 1e-3


def test_b6_the_weights_may_sum_to_more_than_the_gauge():
    """So rho must bound what is stored; with it the rate in good steps holds."""
    largest = 1.0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        D = rng.random((3, 12))
        f = LeastSquares(D @ rng.random(12) + 0.1 * rng.standard_normal(3))
        cone = Cone(Dictionary(D))
        for algorithm in (AMP(), PWMP()):
            run = minimize(f, cone, algorithm, max_iter=60, tol=0.0)
            largest = max(largest, run.trace["size"][-1] / atomic_norm(D, run.x))
            margins = check_rates(run, f, cone, algorithm, width=1e-9)
            assert margins.smallest["Theorem 3, mu = 0"] >= 1
    assert largest > 1.05


def test_b6_without_strong_convexity_the_rate_is_in_good_steps():
    rng = np.random.default_rng(0)
    for _ in range(20):
        B = rng.standard_normal((3, 6))
        f, cone = Quadratic(B.T @ B, B.T @ rng.standard_normal(3)), Cone(UnitVectors(6))
        for algorithm in (AMP(), PWMP()):
            run = minimize(f, cone, algorithm, max_iter=100, tol=0.0)
            margins = check_rates(run, f, cone, algorithm)
            assert margins.smallest["Theorem 3, mu = 0"] >= 1


def test_b8_several_minimisers():
    """Lemma 1 speaks of points that do not minimise, not of points other than x*."""
    f, cone = Quadratic(np.ones((2, 2)), [1.0, 1.0]), Cone(UnitVectors(2))
    for x in ([1.0, 0.0], [0.0, 1.0], [0.5, 0.5]):
        gradient = f.value_and_gradient(np.array(x))[1]
        assert gradient == pytest.approx([0.0, 0.0])  # not in T_A(x), and x is a minimiser
    assert minimize(f, cone, FCMP(variant=1)).value == pytest.approx(-0.5)
