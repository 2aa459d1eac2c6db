"""What the commands print: tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from conepursuit.arrays import Array
from conepursuit.cli import printable
from conepursuit.cli.fits import Fit
from conepursuit.cli.problems import Problem
from conepursuit.cli.reading import Data

MOST_ROWS = 20
"""The most atoms or ranks that are shown."""

RELATIVE = "gap / decrease"
"""The name of the row of relative gaps in a table."""


def table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], note: str = ""
) -> Group:
    """Return a table whose first column is text and whose others are numbers."""
    out = Table(box=SIMPLE_HEAD)
    out.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        out.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        out.add_row(*(Text(printable(cell)) for cell in row))
    # A title or a caption of rich's own would be as narrow as the table.
    below = [Text(f"  {note}\n")] if note else []
    return Group(Text(printable(title), style="bold"), out, *below)


def facts(lines: Sequence[tuple[str, str]]) -> Table:
    """Return names and what is to be said of them."""
    out = Table.grid(padding=(0, 2))
    out.add_column(no_wrap=True)
    out.add_column()
    for name, text in lines:
        out.add_row(Text(f" {name}", style="bold"), Text(printable(text)))
    return out


def heading(problem: Problem) -> str:
    """Return what was solved, in words."""
    squared = problem.loss == "squared_error"
    kind = "Non-negative least squares" if squared else f"Non-negative fit, {problem.loss} loss"
    parts = [f"{kind}, {problem.A.size}"]
    parts += [f"delta {problem.delta:g}"] if problem.delta is not None else []
    parts += [f"penalty {problem.penalty:g}"] if problem.penalty else []
    atoms = "atom" if problem.max_atoms == 1 else "atoms"
    parts += [f"at most {problem.max_atoms} {atoms}"] if problem.max_atoms else []
    return ", ".join(parts)


def formula(problem: Problem) -> str:
    """Return what is reported of a fit."""
    return "||A x - b||" if problem.plain else problem.objective


def show_files(console: Console, *files: Data, note: str = "") -> None:
    """Print what tables of text were taken for, a line for each, and a note on all of them."""
    lines = [f"{data.file}: {data.understood}" for data in files if data.understood]
    for text in [*lines, note] if note else lines:
        console.print(Text(printable(text), style="dim"), soft_wrap=True)


def show_fit(console: Console, problem: Problem, fit: Fit) -> None:
    """Print the fit of one target, the largest weights first."""
    x, names = fit.x[:, 0], problem.A.columns
    support = np.flatnonzero(x)
    shown = support[np.argsort(-x[support], kind="stable")][:MOST_ROWS]
    rows = [(str(j) if names is None else names[j], f"{x[j]:.6g}") for j in shown]
    left = len(support) - len(shown)
    note = f"and {left} more with smaller weights; --out writes all" if left else ""
    status = fit.status[0]
    lines = [
        ("support", f"{len(support)} of {len(x)} atoms"),
        (problem.measure, f"{fit.measure[0]:.6g}  ({formula(problem)})"),
        ("gap", gap_in_words(fit.gap[0], bool(fit.proven[0]), problem.objective)),
        *limit_in_words(problem),
        *relative_in_words(problem, fit.relative_gap[0]),
        ("status", f"{status.name}: {status.value}"),
    ]
    console.print(Group(table(heading(problem), ("atom", "weight"), rows, note), facts(lines)))


def gap_in_words(gap: float, proven: bool, objective: str) -> str:
    """Return how far a fit may be from the best, and whether that is proved."""
    if not np.isfinite(gap):
        return f"not known: no bound on {objective} was found"
    return f"{gap:.2g} of {objective}, {'proven' if proven else 'an estimate: not proven'}"


def relative_in_words(problem: Problem, relative: float) -> list[tuple[str, str]]:
    """Return a relative gap and what it is relative to, if there is a gap."""
    if np.isnan(relative):
        return [("", f"no decrease since {problem.start}")]
    known = np.isfinite(relative)
    return [("", f"{relative:.2g} of its decrease since {problem.start}")] if known else []


def decrease_in_words(problem: Problem, relative: Array) -> tuple[str, str]:
    """Return what the relative gaps of many targets are relative to."""
    none = int(np.isnan(relative).sum())
    but = f"; none for {none} of {len(relative)} targets" if none else ""
    return "decrease", f"of that since {problem.start}{but}"


def limit_in_words(problem: Problem) -> list[tuple[str, str]]:
    """Return what the gap is to, where the number of atoms is limited."""
    return [("", "to the best fit without a limit on atoms")] if problem.max_atoms else []


def show_fits(console: Console, problem: Problem, fit: Fit) -> None:
    """Print a summary of many targets."""
    n_targets = fit.x.shape[1]
    rows = [
        spread("atoms", np.count_nonzero(fit.x, axis=0)),
        spread(problem.measure, fit.measure),
        spread("gap", fit.gap),
        spread(RELATIVE, fit.relative_gap),
    ]
    counts = Counter(status.name for status in fit.status)
    lines = [
        ("gap", f"of {problem.objective}"),
        *limit_in_words(problem),
        decrease_in_words(problem, fit.relative_gap),
        ("proven", f"{int(np.sum(fit.proven))} of {n_targets}"),
        ("status", ", ".join(f"{name} {number}" for name, number in counts.most_common())),
    ]
    title = f"{heading(problem)}, {n_targets} targets"
    console.print(Group(table(title, ("", "least", "median", "largest"), rows), facts(lines)))


def spread(name: str, numbers: Array) -> tuple[str, str, str, str]:
    """Return the least, the median and the largest of those numbers that are not NaN, as a row."""
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return name, "-", "-", "-"
    least, median, largest = (f"{of(numbers):.4g}" for of in (np.min, np.median, np.max))
    return name, least, median, largest


class Waiting:
    """Shows that something is done, where a console is a terminal."""

    def __init__(self, console: Console, what: str) -> None:
        self._status = console.status(what)

    def __enter__(self) -> Callable[[int], None]:
        self._status.start()
        return lambda done: None

    def __exit__(self, *error: Any) -> None:
        self._status.stop()
