"""``conepursuit datasets``."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conepursuit.datasets import Availability, available, cache_folder


def show_datasets() -> None:
    """Print the files of data, whether they are here, whose they are and under which terms."""
    out = Table(title="Data sets", title_justify="left", title_style="bold", show_lines=True)
    out.add_column("name", no_wrap=True)
    out.add_column("here", no_wrap=True)
    for heading in ("source", "terms"):
        out.add_column(heading, overflow="fold")
    for entry in available():
        file = entry.file
        out.add_row(file.name, presence(entry), Text(file.upstream), Text(file.terms))
    console = Console(highlight=False)
    console.print(out)
    text = f"Files are looked for in the folder $CONEPURSUIT_DATA, then in {cache_folder()}."
    console.print(text, markup=False, soft_wrap=True)


def presence(entry: Availability) -> str:
    """Return whether a file is here, in a word."""
    if entry.path is None:
        return "no"
    return "yes" if entry.intact else "altered"
