"""What the benchmarks share: calls in turns by the CPU clock, and tables."""

from __future__ import annotations

from time import process_time

from rich.console import Console
from rich.table import Table


def timed(calls, repeat):
    """Return the CPU times of some calls, made in turns."""
    times = {name: [] for name in calls}
    for _ in range(repeat):
        for name, call in calls.items():
            began = process_time()
            call()
            times[name].append(process_time() - began)
    return times


def show(title, headings, rows):
    table = Table(*headings, title=title)
    for row in rows:
        table.add_row(*row)
    Console(width=130).print(table)
