"""Losses, data and starts that once broke a fit: infinite values, squares that overflow."""

import numpy as np
import pytest

from conepursuit import (
    FCMP,
    PWMP,
    AdaptiveStep,
    BetaDivergence,
    Cone,
    Dictionary,
    FunctionObjective,
    Poisson,
    Status,
    certify,
    minimize,
)

TWO = Cone(Dictionary(np.eye(2)))


def test_a_start_where_f_is_infinite_is_not_taken():
    """As in `nnfit`: the run starts where it would without it, and its trace says so."""
    loss = Poisson([1.0, 1.0])
    fit = minimize(loss, TWO, FCMP(variant=1), start=[1.0, 0.0])
    assert fit.status is Status.CONVERGED and fit.trace.start == "multiple of the sum of 2 atoms"
    np.testing.assert_allclose(fit.x, 1.0, rtol=1e-6)
    taken = minimize(loss, TWO, FCMP(variant=1), start=[2.0, 0.5])
    assert taken.trace.start == "given" and taken.trace["value"][0] == loss.value(np.array([2.0, 0.5]))


def test_a_start_serves_where_no_multiple_of_atoms_does():
    """f is NaN at the origin and along the array of ones, but finite at the start."""

    def function(x):
        bad = abs(x[0] - x[1]) < 0.1
        return (np.nan, x) if bad else (0.5 * float((x[0] - 3) ** 2), np.array([x[0] - 3, 0.0]))

    fit = minimize(
        FunctionObjective(function, 2), TWO, PWMP(AdaptiveStep()), start=[1.0, 0.0], max_iter=20
    )
    assert fit.value == pytest.approx(0.0, abs=1e-12) and fit.trace.start == "given"
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
    try:
        fit = minimize(nan_after(calls, value, gradient), TWO, PWMP(AdaptiveStep()), tol=0.0)
    except ValueError as error:
        assert calls == 1 and "where the run starts" in str(error)
    else:
        assert fit.status in (Status.DIVERGED, Status.STALLED)
        assert not fit.certificate.proven and np.isfinite(fit.x).all()


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
