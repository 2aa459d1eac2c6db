"""``conepursuit solve``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.console import Console

from conepursuit.callbacks import batch_progress
from conepursuit.cli import DONE, NOT_CONVERGED, complain, printable
from conepursuit.cli.display import Waiting, show_files, show_fit, show_fits
from conepursuit.cli.fits import fit_all, write_fit
from conepursuit.cli.layouts import Layout
from conepursuit.cli.problems import Problem, read_problem
from conepursuit.cli.reading import located
from conepursuit.cli.tables import DETECT
from conepursuit.cli.writing import check_target
from conepursuit.losses import LOSSES


def solve(
    A: str,
    b: str,
    layout: Layout = DETECT,
    *,
    out: Path | None,
    **options: Any,
) -> int:
    """Fit the targets in a file, print and write the answer, and return the exit code.

    The other options are those of `read_problem` and `Problem`.
    """
    check_delta(options["loss"], options["delta"])
    if out is not None:
        check_target(out, (".json", ".csv"), [located(given)[0] for given in (A, b)])
    problem = read_problem(A, b, layout, **options)
    with progress(problem) as advance:
        fit = fit_all(problem, advance)
    console = Console(highlight=False)
    show_files(console, problem.A, problem.b, note=problem.matching)
    (show_fits if problem.many else show_fit)(console, problem, fit)
    if out is not None:
        write_fit(out, problem, fit)
        console.print(f" The weights are in {printable(str(out))}.", markup=False, soft_wrap=True)
    if not fit.failures:
        return DONE
    worst = max(fit.failures, key=lambda i: float(fit.gap[i]))
    which = f" for {len(fit.failures)} of {fit.x.shape[1]} targets" if problem.many else ""
    return complain(f"not converged{which}: {fit.status[worst].value}.", NOT_CONVERGED)


def check_delta(loss: str, delta: float | None) -> None:
    """Raise a ValueError if a parameter is given to a loss that does not have it."""
    if delta is not None and LOSSES[loss].parameter != "delta":
        have = [other.name for other in LOSSES.values() if other.parameter == "delta"]
        raise ValueError(f"--delta is the parameter of --loss {', '.join(have)}; got {loss}.")


def progress(problem: Problem) -> AbstractContextManager[Callable[[int], None]]:
    """Show a bar over many targets, or that something is done; where stderr is a terminal."""
    console = Console(stderr=True)
    if problem.many and console.is_terminal:
        return batch_progress(problem.b.values.shape[1], console)
    return Waiting(console, f"fitting {problem.A.size}")
