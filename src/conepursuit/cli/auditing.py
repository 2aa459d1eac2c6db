"""``conepursuit solve --certify``."""

from __future__ import annotations

import numpy as np
from rich.console import Console, Group
from rich.text import Text

from conepursuit.arrays import Array
from conepursuit.cli import DONE, NOT_CONVERGED, complain
from conepursuit.cli.display import facts, gap_in_words, heading, show_files, spread, table
from conepursuit.cli.fits import Problem, read_problem, read_weights, target_names
from conepursuit.cli.layouts import Layout
from conepursuit.cli.tables import DETECT
from conepursuit.least_squares.audit import certify_nnls

TOLERANCE, PASSING_SHARE = 1e-8, 1e-14
"""An answer passes whose gap is at most this share of the decrease since 0, or of 1/2 ||b||^2."""


def audit(A: str, b: str, x: str, layout: Layout = DETECT) -> int:
    """Audit the weights in a file from the data alone; return 0 if they are a solution."""
    problem = read_problem(A, b, layout)
    data = read_weights(x, problem, layout)
    weights = data.values
    certificate = certify_nnls(problem.A.values, problem.b.values, weights)
    gap, violation = np.atleast_1d(certificate.gap), np.atleast_1d(certificate.violation)
    proven = np.atleast_1d(np.asarray(certificate.method) != "estimate") & np.isfinite(gap)
    console = Console(highlight=False)
    show_files(console, problem.A, problem.b, data)
    title = f"{heading(problem)}: audit of {x}"
    if problem.many:
        rows = [spread("gap", gap), spread("violation", violation)]
        summary = table(f"{title}, {len(gap)} targets", ("", "least", "median", "largest"), rows)
        lines = [
            ("gap", f"of {problem.objective}"),
            ("proven", f"{int(proven.sum())} of {len(gap)}"),
        ]
        console.print(Group(summary, facts(lines)))
    else:
        steepest = f"{violation[0]:.2g}  (how steeply an atom descends; 0 at a solution)"
        words = gap_in_words(gap[0], bool(proven[0]), problem.objective)
        lines = [("gap", words), ("violation", steepest)]
        console.print(Group(Text(title, style="bold"), facts(lines)))
    return _verdict(problem, x, gap <= largest_gaps(problem, weights))


def largest_gaps(problem: Problem, weights: Array) -> Array:
    """Return the gap of each target up to which weights count as a solution."""
    targets = problem.b.values.reshape(len(problem.b.values), -1)
    residuals = targets - np.asarray(problem.A.values @ weights).reshape(targets.shape)
    at_zero, there = (0.5 * (r**2).sum(axis=0) for r in (targets, residuals))
    largest: Array = np.maximum(TOLERANCE * (at_zero - there), PASSING_SHARE * at_zero)
    return largest


def _verdict(problem: Problem, x: str, good: Array) -> int:
    """Say which targets have no solution in a file, if there are some."""
    if good.all():
        return DONE
    which = ""
    if problem.many:
        first = target_names(problem)[int(np.argmin(good))]
        which = f" for {int((~good).sum())} of {len(good)} targets, the first of them {first!r}"
    bound = f"the gap is more than {TOLERANCE:g} of the decrease since x = 0"
    return complain(f"{x} is not a solution{which}: {bound}.", NOT_CONVERGED)
