"""``conepursuit solve``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console

from conepursuit.callbacks import batch_progress
from conepursuit.cli import DONE, NOT_CONVERGED, complain
from conepursuit.cli.display import Waiting, show_files, show_fit, show_fits
from conepursuit.cli.fits import Problem, fit_all, read_problem, write_fit
from conepursuit.cli.layouts import Layout
from conepursuit.cli.reading import located
from conepursuit.cli.tables import DETECT
from conepursuit.cli.writing import check_target


def solve(
    A: str,
    b: str,
    layout: Layout = DETECT,
    *,
    loss: str,
    penalty: float,
    max_atoms: int | None,
    out: Path | None,
) -> int:
    """Fit the targets in a file, print and write the answer, and return the exit code."""
    if out is not None:
        check_target(out, (".json", ".csv"), [located(given)[0] for given in (A, b)])
    problem = read_problem(A, b, layout, loss=loss, penalty=penalty, max_atoms=max_atoms)
    with progress(problem) as advance:
        fit = fit_all(problem, advance)
    console = Console(highlight=False)
    show_files(console, problem.A, problem.b)
    (show_fits if problem.many else show_fit)(console, problem, fit)
    if out is not None:
        write_fit(out, problem, fit)
        console.print(f" The weights are in {out}.", markup=False, soft_wrap=True)
    if not fit.failures:
        return DONE
    worst = max(fit.failures, key=lambda i: float(fit.gap[i]))
    which = f" for {len(fit.failures)} of {fit.x.shape[1]} targets" if problem.many else ""
    return complain(f"not converged{which}: {fit.status[worst].value}.", NOT_CONVERGED)


def progress(problem: Problem) -> AbstractContextManager[Callable[[int], None]]:
    """Show a bar over many targets, or that something is done; where stderr is a terminal."""
    console = Console(stderr=True)
    if problem.many and console.is_terminal:
        return batch_progress(problem.b.values.shape[1], console)
    return Waiting(console, f"fitting {problem.A.size}")
