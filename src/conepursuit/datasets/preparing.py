"""Data that users bring or fetch, prepared for the loaders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from conepursuit.datasets.contents import CONTENTS, difference
from conepursuit.datasets.files import (
    VARIABLE,
    DatasetContentError,
    cache_folder,
    known,
    own_folder,
)
from conepursuit.datasets.registry import File
from conepursuit.files import replacing


def add(name: str, originals: Sequence[str | os.PathLike[str]]) -> Path:
    """Prepare a data set from its originals, as they are distributed, and keep it.

    Parameters
    ----------
    name : str
        A key of `FILES`; its ``originals`` are the names of the files that are needed.
    originals : sequence of paths
        These files, in any order and under any names; for reuters, a folder or an archive too.

    Returns
    -------
    Path
        What was written, whole or not at all: in the folder that the environment variable
        CONEPURSUIT_DATA names, or in `cache_folder()`.

    Raises
    ------
    DatasetContentError
        The files are damaged or others, or one is missing.
    """
    from conepursuit.datasets.recipes import RECIPES

    file = _outside(name)
    try:
        arrays: dict[str, Any] = RECIPES[name]([Path(one).expanduser() for one in originals])
        wrong = difference(arrays, CONTENTS[name])
    except (ValueError, TypeError) as error:
        wrong = str(error).rstrip(".")
    if wrong is not None:
        raise DatasetContentError(
            f"the data set {name!r} cannot be prepared from "
            f"{', '.join(str(one) for one in originals)}: {wrong}. It needs "
            f"{' and '.join(file.originals)}: {file.source}."
        )
    path = own_folder() / file.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as out:
            np.savez_compressed(out, **arrays)
    except OSError as error:
        raise OSError(_unwritable(path, error)) from None
    return path


def _outside(name: str) -> File:
    """Return the file of a data set that is not part of the package."""
    file = known(name)
    if file.packaged:
        raise ValueError(f"the data set {name!r} is part of the package; load it as it is.")
    return file


def _unwritable(path: Path, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    usual = f", or unset it to use {cache_folder()}" if os.environ.get(VARIABLE) else ""
    return (
        f"{path} cannot be written: {reason}. Let the environment variable {VARIABLE} name a "
        f"folder that can be written{usual}."
    )


def fetch(name: str) -> Path:
    """Get the originals of a data set from the web, where its terms allow it, and prepare it.

    Parameters
    ----------
    name : str
        A key of `FILES` whose ``addresses`` are known.

    Returns
    -------
    Path
        What was written, as by `add`.

    Raises
    ------
    ValueError
        The data set cannot be fetched; the message says where to get it.
    OSError
        A download failed. Nothing of it is left.
    """
    file = _outside(name)
    if not file.addresses:
        raise ValueError(
            f"the data set {name!r} is not fetched, since its terms do not say that it may be: "
            f"{file.terms}. Get the originals from {file.source}, and run: {file.adding}"
        )
    with TemporaryDirectory() as folder:
        return add(name, [_downloaded(address, Path(folder), file) for address in file.addresses])


def _downloaded(address: str, folder: Path, file: File) -> Path:
    """Return where what lies at an address was put."""
    try:
        from pooch import HTTPDownloader
    except ImportError:
        raise ImportError('fetch needs pooch: pip install "conepursuit[cli]".') from None
    path = folder / address.rpartition("/")[2]
    try:
        HTTPDownloader()(address, path, None)
    except OSError as error:  # what requests raises is one
        raise OSError(
            f"{address} could not be fetched: {error}. Get {' and '.join(file.originals)} by other "
            f"means, and run: {file.adding}"
        ) from None
    return path
