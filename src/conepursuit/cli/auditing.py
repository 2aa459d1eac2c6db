"""``conepursuit solve --certify``."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.text import Text

from conepursuit.arrays import Array
from conepursuit.cli import DONE, NOT_CONVERGED, complain, printable
from conepursuit.cli.display import (
    RELATIVE,
    decrease_in_words,
    facts,
    gap_in_words,
    heading,
    relative_in_words,
    show_files,
    spread,
    table,
)
from conepursuit.cli.fits import read_weights, relative_gaps
from conepursuit.cli.layouts import Layout
from conepursuit.cli.problems import Problem, read_problem, target_names
from conepursuit.cli.tables import DETECT
from conepursuit.least_squares.audit import certify_nnls

PASSING_SHARE = 1e-14
"""An answer also passes whose gap is at most this share of 1/2 ||b||^2."""


def audit(A: str, b: str, x: str, layout: Layout = DETECT, **options: Any) -> int:
    """Audit the weights in a file from the data alone; return 0 if they are a solution.

    The other options are those of `read_problem`.
    """
    problem = read_problem(A, b, layout, **options)
    data = read_weights(x, problem, layout)
    weights = data.values
    certificate = certify_nnls(problem.A.values, problem.b.values, weights)
    gap, violation = np.atleast_1d(certificate.gap), np.atleast_1d(certificate.violation)
    proven = np.atleast_1d(np.asarray(certificate.method) != "estimate") & np.isfinite(gap)
    console = Console(highlight=False)
    show_files(console, problem.A, problem.b, data, note=problem.matching)
    at_zero, there = _values(problem, weights)
    relative = relative_gaps(problem, problem.b.values, gap, there)
    title = f"{heading(problem)}: audit of {x}"
    if problem.many:
        rows = [spread("gap", gap), spread(RELATIVE, relative), spread("violation", violation)]
        summary = table(f"{title}, {len(gap)} targets", ("", "least", "median", "largest"), rows)
        lines = [
            ("gap", f"of {problem.objective}"),
            decrease_in_words(problem, relative),
            ("proven", f"{int(proven.sum())} of {len(gap)}"),
        ]
        console.print(Group(summary, facts(lines)))
    else:
        steepest = f"{violation[0]:.2g}  (how steeply an atom descends; 0 at a solution)"
        words = gap_in_words(gap[0], bool(proven[0]), problem.objective)
        lines = [("gap", words), *relative_in_words(problem, relative[0])]
        lines += [("violation", steepest)]
        console.print(Group(Text(printable(title), style="bold"), facts(lines)))
    good = gap <= np.maximum(problem.tolerance * (at_zero - there), PASSING_SHARE * at_zero)
    return _verdict(problem, x, good)


def _values(problem: Problem, weights: Array) -> tuple[Array, Array]:
    """Return 1/2 ||A x - b||^2 for each target, at x = 0 and at the weights."""
    targets = problem.b.values.reshape(len(problem.b.values), -1)
    residuals = targets - np.asarray(problem.A.values @ weights).reshape(targets.shape)
    at_zero, there = (0.5 * (r**2).sum(axis=0) for r in (targets, residuals))
    return at_zero, there


def _verdict(problem: Problem, x: str, good: Array) -> int:
    """Say which targets have no solution in a file, if there are some."""
    if good.all():
        return DONE
    which = ""
    if problem.many:
        first = target_names(problem)[int(np.argmin(good))]
        which = f" for {int((~good).sum())} of {len(good)} targets, the first of them {first!r}"
    bound = f"the gap is more than {problem.tolerance:g} of the decrease since x = 0"
    return complain(f"{x} is not a solution{which}: {bound}.", NOT_CONVERGED)
