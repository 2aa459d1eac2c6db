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
from conepursuit.cli.fits import Fit, Problem

MOST_ROWS = 20
"""The most atoms or ranks that are shown."""


def table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], note: str = ""
) -> Group:
    """Return a table whose first column is text and whose others are numbers."""
    out = Table(box=SIMPLE_HEAD)
    out.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        out.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        out.add_row(*map(Text, row))
    # A title or a caption of rich's own would be as narrow as the table.
    below = [Text(f"  {note}\n")] if note else []
    return Group(Text(title, style="bold"), out, *below)


def facts(lines: Sequence[tuple[str, str]]) -> Table:
    """Return names and what is to be said of them."""
    out = Table.grid(padding=(0, 2))
    out.add_column(no_wrap=True)
    out.add_column()
    for name, text in lines:
        out.add_row(Text(f" {name}", style="bold"), Text(text))
    return out


def heading(problem: Problem) -> str:
    """Return what was solved, in words."""
    squared = problem.loss == "squared"
    kind = "Non-negative least squares" if squared else f"Non-negative fit, {problem.loss} loss"
    parts = [f"{kind}, {problem.A.size}"]
    parts += [f"penalty {problem.penalty:g}"] if problem.penalty else []
    parts += [f"at most {problem.max_atoms} atoms"] if problem.max_atoms else []
    return ", ".join(parts)


def formula(problem: Problem) -> str:
    """Return what is reported of a fit."""
    if problem.plain:
        return "||A x - b||"
    loss = "1/2 ||A x - b||^2" if problem.loss == "squared" else f"{problem.loss} loss"
    return f"{loss} + {problem.penalty:g} sum(x)" if problem.penalty else loss


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
        ("gap", gap_in_words(fit.gap[0], bool(fit.proven[0]))),
        ("status", f"{status.name}: {status.value}"),
    ]
    console.print(Group(table(heading(problem), ("atom", "weight"), rows, note), facts(lines)))


def gap_in_words(gap: float, proven: bool) -> str:
    """Return how far a fit may be from the best, and whether that is proved."""
    return f"{gap:.2g}, proven" if proven else f"{gap:.2g}, an estimate: not proven"


def show_fits(console: Console, problem: Problem, fit: Fit) -> None:
    """Print a summary of many targets."""
    n_targets = fit.x.shape[1]
    rows = [
        spread("atoms", np.count_nonzero(fit.x, axis=0)),
        spread(problem.measure, fit.measure),
        spread("gap", fit.gap),
    ]
    counts = Counter(status.name for status in fit.status)
    lines = [
        ("proven", f"{int(np.sum(fit.proven))} of {n_targets}"),
        ("status", ", ".join(f"{name} {number}" for name, number in counts.most_common())),
    ]
    title = f"{heading(problem)}, {n_targets} targets"
    console.print(Group(table(title, ("", "least", "median", "largest"), rows), facts(lines)))


def spread(name: str, numbers: Array) -> tuple[str, str, str, str]:
    """Return the least, the median and the largest of some numbers, as a row."""
    least, median, largest = (f"{np.quantile(numbers, q):.4g}" for q in (0.0, 0.5, 1.0))
    return name, least, median, largest


class Waiting:
    """Shows that something is done, where a console is a terminal."""

    def __init__(self, console: Console, what: str) -> None:
        # What takes long may not be the fit.
        self._status = console.status(f"{what} (the first run after installation compiles)")

    def __enter__(self) -> Callable[[int], None]:
        self._status.start()
        return lambda done: None

    def __exit__(self, *error: Any) -> None:
        self._status.stop()
