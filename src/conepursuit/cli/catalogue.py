"""``conepursuit datasets``: the list."""

from __future__ import annotations

import os

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conepursuit.datasets import Availability, available, cache_folder
from conepursuit.datasets.files import VARIABLE, own_folder


def show_datasets() -> None:
    """Print the files of data, whether they are here, whose they are and under which terms."""
    out = Table(title="Data sets", title_justify="left", title_style="bold", show_lines=True)
    out.add_column("name", no_wrap=True)
    out.add_column("here", no_wrap=True)
    for heading in ("data", "terms"):
        out.add_column(heading, overflow="fold")
    entries = available()
    for entry in entries:
        file = entry.file
        out.add_row(file.name, presence(entry), Text(file.upstream), Text(file.terms))
    console = Console(highlight=False)
    console.print(out)
    for entry in entries:
        if not entry.intact:
            console.print(remedy(entry), markup=False, soft_wrap=True)
    console.print(whereabouts(), markup=False, soft_wrap=True)


def remedy(entry: Availability) -> str:
    """Return how to get a file that is not here, or not intact."""
    file = entry.file
    problem = "is not here" if entry.path is None else f"is altered, remove {entry.path}"
    return f"{file.name} {problem}. {file.advice}\n  from {file.source}\n"


def whereabouts() -> str:
    """Return where files are looked for, and where they are added."""
    given = os.environ.get(VARIABLE)
    first = f"{given} ({VARIABLE}), " if given else ""
    return (
        f"Files are looked for in {first}{cache_folder()} and in the package; they are added to "
        f"{own_folder()}."
    )


def presence(entry: Availability) -> str:
    """Return whether a file is here, in a word."""
    if entry.path is None:
        return "no"
    return "yes" if entry.intact else "altered"
