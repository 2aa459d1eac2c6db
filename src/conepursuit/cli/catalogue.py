"""``conepursuit datasets``."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conepursuit.datasets import Availability, available, cache_folder
from conepursuit.datasets.files import VARIABLE


def show_datasets() -> None:
    """Print the files of data, whether they are here, whose they are and under which terms."""
    out = Table(title="Data sets", title_justify="left", title_style="bold", show_lines=True)
    out.add_column("name", no_wrap=True)
    out.add_column("here", no_wrap=True)
    for heading in ("source", "terms"):
        out.add_column(heading, overflow="fold")
    entries = available()
    for entry in entries:
        file = entry.file
        out.add_row(file.name, presence(entry), Text(file.upstream), Text(file.terms))
    console = Console(highlight=False)
    console.print(out)
    missing = next((entry.file.path for entry in entries if entry.path is None), None)
    console.print(whereabouts(missing), markup=False, soft_wrap=True)


def whereabouts(missing: str | None) -> str:
    """Return where files are looked for and, if one is missing, where it belongs."""
    given = os.environ.get(VARIABLE)
    folders = f"{cache_folder()}" + (f", after {given} ({VARIABLE})" if given else "")
    if missing is None:
        return f"Files are looked for in {folders}."
    place = Path(given) if given else cache_folder()
    other = "" if given else f", or below a folder that {VARIABLE} names"
    return f"Missing files belong below {place}{other}: the first of them is {place / missing}."


def presence(entry: Availability) -> str:
    """Return whether a file is here, in a word."""
    if entry.path is None:
        return "no"
    return "yes" if entry.intact else "altered"
