"""The commands of ``conepursuit datasets``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conepursuit.cli import DONE

datasets = typer.Typer(
    invoke_without_command=True,
    epilog="Example: conepursuit datasets add cbcl_faces CBCL_Face.mat",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A name that conepursuit datasets lists.")
]


@datasets.callback()
def list_datasets(context: typer.Context) -> int:
    """List the data sets that experiments use, and how to get those that are not here."""
    if context.invoked_subcommand is None:
        from conepursuit.cli.catalogue import show_datasets

        show_datasets()
    return DONE


@datasets.command(epilog="Example: conepursuit datasets add cbcl_faces CBCL_Face.mat")
def add(
    name: Name,
    originals: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="The originals as they are distributed, under any names."
        ),
    ],
) -> int:
    """Prepare a data set from its originals.

    It is checked, and written to the folder that the environment variable CONEPURSUIT_DATA names,
    or to the cache of the user.
    """
    from conepursuit.datasets import add

    print(f"{name} is ready: {add(name, originals)}")
    return DONE


@datasets.command(epilog="Example: conepursuit datasets fetch usgs_library")
def fetch(name: Name) -> int:
    """Download the originals of a data set whose terms allow it, and prepare it."""
    from conepursuit.datasets import fetch
    from conepursuit.datasets.files import known

    if known(name).addresses:
        print(f"The terms of {name}: {known(name).terms}.")
    print(f"{name} is ready: {fetch(name)}")
    return DONE
