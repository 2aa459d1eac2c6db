"""Options that commands share, and the values that options take."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any
from warnings import catch_warnings, simplefilter

import typer

from conepursuit.cli import DONE, complain
from conepursuit.losses import loss_named, named_losses


def loss_option(old: tuple[str, ...], help_: str, *, factorizes: bool = False) -> Any:
    """Return the option --loss, which takes the names in the table and says what replaced old ones.

    `help_` comes after the names.
    """
    names = named_losses(factorizes=factorizes)

    def read(given: str) -> str:
        try:
            with catch_warnings():
                simplefilter("ignore", DeprecationWarning)  # said in the way of a command line
                name = loss_named(given, names, old).name
        except ValueError as wrong:
            raise typer.BadParameter(str(wrong)) from None
        if name != given:
            complain(f"--loss {given} is called {name} now; the old name will be removed.", DONE)
        return name

    return typer.Option(
        parser=read,
        metavar="LOSS",
        help=f"{', '.join(names)}{help_}.",
        autocompletion=lambda: names,
    )


class Format(StrEnum):
    """How factors are written."""

    NPY = "npy"
    CSV = "csv"


class Extractor(StrEnum):
    """How endmembers are found: the names in `conepursuit.unmixing.unmixer`."""

    SPA = "spa"
    SNPA = "snpa"
    XRAY = "xray"
    VCA = "vca"
    H2NMF = "h2nmf"


class Transposed(StrEnum):
    """The files of a fit whose rows are atoms or targets."""

    A = "a"
    B = "b"
    BOTH = "both"


Transpose = Annotated[
    Transposed | None,
    typer.Option(
        case_sensitive=False,
        metavar="|".join(Transposed),
        help="The file whose rows are atoms or targets.",
    ),
]

Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether all tables of text begin with a line of names.",
        show_default="detected",
    ),
]

RowNames = Annotated[
    bool | None,
    typer.Option(
        "--row-names/--no-row-names",
        help="Whether their first columns hold names of rows.",
        show_default="detected",
    ),
]


def show_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        from importlib.metadata import version

        print(f"conepursuit {version('conepursuit')}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=show_version, is_eager=True, help="The version.")
]
