"""The bounds of the theorems, compared with runs."""

from __future__ import annotations

from math import inf

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.objectives import Objective
from conepursuit.pursuit.algorithms import Algorithm
from conepursuit.pursuit.domains import Domain
from conepursuit.pursuit.results import Result
from conepursuit.theory.case import Case, good_steps

CLEAR = 100.0
"""Margins are taken where f(x) - f*, or a decrease, exceeds this many times its rounding.

Where it does not, the margin is nan.
"""


class Margins(dict[str, Array]):
    """For each bound of the paper an array of margins, one for each state of a run.

    A margin is a bound on f(x) - f* over its measured value, or a measured decrease over the one
    that is promised. It is at least 1 where the theorem holds, and nan where the theorem says
    nothing or rounding hides the answer.
    """

    @property
    def smallest(self) -> dict[str, float]:
        """The least margin of each bound, inf where none could be measured."""
        return {name: float(np.min(m[~np.isnan(m)], initial=inf)) for name, m in self.items()}


def rate_bounds(
    result: Result,
    objective: Objective,
    domain: Domain,
    algorithm: Algorithm,
    *,
    optimum: Result | None = None,
    width: float | None = None,
    convexity: float | None = None,
) -> dict[str, Vector]:
    """Return every bound of the paper that applies to a run, as curves over its states.

    Parameters
    ----------
    result : Result
        What ``minimize(objective, domain, algorithm)`` returned.
    objective, domain, algorithm
        What it was given: a Cone of finitely many atoms, and NNMP, AMP, PWMP or FCMP, with
        ShortStep, ExactStep or CurvatureStep.
    optimum : Result, optional
        The minimiser; computed where it is not given.
    width : float, optional
        The `cone_width` of the atoms, or a lower bound on it, as for a set that is too large to
        be enumerated; computed where it is not given. With 0 Theorem 3 is left out.
    convexity : float, optional
        The `strong_convexity_constant`, or a lower bound on it; computed where it is not given.
        With 0 Theorem 6 is left out.

    Returns
    -------
    dict of str to array
        Bounds on f(x_t) - f*, for ``plot_convergence(result, optimum=, bounds=)``.

    """
    case = Case(result, objective, domain, algorithm, optimum, width, convexity)
    curves = dict(case.sublinear())
    for name, beta in case.linear():
        curves[name] = case.errors[0] * (1 - beta) ** good_steps(result)
    return curves


def check_rates(
    result: Result,
    objective: Objective,
    domain: Domain,
    algorithm: Algorithm,
    *,
    optimum: Result | None = None,
    width: float | None = None,
    convexity: float | None = None,
) -> Margins:
    """Return the margin of every bound of the paper along a run.

    Parameters
    ----------
    result, objective, domain, algorithm, optimum, width, convexity
        As in `rate_bounds`.

    Returns
    -------
    Margins
        For the sublinear bounds, the bound over f(x_t) - f* at state t > 0. For the geometric
        decrease of Theorems 3 and 6, the decrease in the step from state t over the one promised,
        beta (f(x_t) - f*); nan at bad steps, for which nothing is promised. Margins below 1, by
        more than rounding, are violations.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import Cone, Dictionary, LeastSquares, PWMP, minimize
    >>> from conepursuit.theory import check_rates
    >>> f, cone = LeastSquares([1.0, 2.0]), Cone(Dictionary([[1.0, 0.0], [0.0, 1.0]]))
    >>> margins = check_rates(minimize(f, cone, PWMP()), f, cone, PWMP())
    >>> list(margins), margins["Theorem 3"].round(2)
    (['Theorem 3, mu = 0', 'Theorem 3', 'Theorem 6'], array([3.2, 4. , nan]))
    """
    case = Case(result, objective, domain, algorithm, optimum, width, convexity)
    errors, good = case.errors, result.trace["good"]
    seen = errors > CLEAR * case.noise
    margins = Margins()
    claimed = seen & (np.arange(len(errors)) > 0)  # at t = 0 a bound says nothing
    for name, bound in case.sublinear():
        margins[name] = np.divide(bound, errors, out=np.full(len(errors), np.nan), where=claimed)
    gained = np.append(errors[:-1] - errors[1:], np.nan)
    for name, beta in case.linear():
        promised = beta * errors
        # The decrease must exceed its rounding, too, not f(x) - f* alone.
        told = seen & good & (promised > CLEAR * case.rounding)
        margins[name] = np.divide(gained, promised, out=np.full(len(errors), np.nan), where=told)
    return margins
