"""Where the files of data lie, and whether they are the right ones. Nothing is downloaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import file_digest
from pathlib import Path

import numpy as np

from conepursuit.arrays import Array
from conepursuit.datasets.registry import FILES, File

VARIABLE = "CONEPURSUIT_DATA"
"""The environment variable that names a folder of data."""


class DatasetNotFoundError(FileNotFoundError):
    """A file of data is in none of the folders where it was looked for."""


class DatasetChecksumError(ValueError):
    """A file of data is not the one that the loaders were written for."""


@dataclass(frozen=True)
class Availability:
    """Whether a file of data is here.

    Attributes
    ----------
    file : File
        Which one.
    path : Path or None
        Where it was found, if it was.
    intact : bool
        Whether it was found and its checksum is right.
    """

    file: File
    path: Path | None
    intact: bool


def find(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return where a file of data lies, its checksum verified.

    Parameters
    ----------
    name : str
        A key of `FILES`.
    folder : path, optional
        Where to look first. Then come the folder that the environment variable CONEPURSUIT_DATA
        names, and `cache_folder()`.

    Raises
    ------
    DatasetNotFoundError
        It is in none of them. The message says where it comes from and where to put it.
    DatasetChecksumError
        The first that was found is another file.
    """
    if name not in FILES:
        raise ValueError(f"there is no data set {name!r}. Those known: {', '.join(FILES)}.")
    file = FILES[name]
    path = _located(file, folder)
    if path is None:
        raise DatasetNotFoundError(_missing(file, folder))
    received = _checksum(path)
    if received != file.sha256:
        raise DatasetChecksumError(
            f"{path} is not the file {file.path} that is expected: its sha256 should be "
            f"{file.sha256}; got {received}. Replace it by an intact copy, or move it away to "
            "have the other folders searched."
        )
    return path


def available(folder: str | os.PathLike[str] | None = None) -> list[Availability]:
    """Return for every file of data whether it is here, and where; the order is that of `FILES`."""
    rows = []
    for file in FILES.values():
        path = _located(file, folder)
        rows.append(Availability(file, path, path is not None and _checksum(path) == file.sha256))
    return rows


def cache_folder() -> Path:
    """Return the user's folder for data, which need not exist."""
    if sys.platform == "win32":
        given, usual = os.environ.get("LOCALAPPDATA"), Path("AppData", "Local")
    elif sys.platform == "darwin":
        given, usual = None, Path("Library", "Caches")
    else:
        given, usual = os.environ.get("XDG_CACHE_HOME"), Path(".cache")
    if given and Path(given).is_absolute():  # the XDG specification ignores any other
        return Path(given, "conepursuit")
    return Path.home() / usual / "conepursuit"


def stored(name: str, folder: str | os.PathLike[str] | None = None) -> dict[str, Array]:
    """Return the arrays of a file by their names; objects in it, which are code, are refused."""
    with np.load(find(name, folder), allow_pickle=False) as file:
        return dict(file)


def _folders(first: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield the folders where data may be, in the order in which they are searched."""
    for folder in (first, os.environ.get(VARIABLE)):
        if folder:
            yield Path(folder).expanduser()
    yield cache_folder()


def _located(file: File, folder: str | os.PathLike[str] | None) -> Path | None:
    paths = (place / file.path for place in _folders(folder))
    return next((path for path in paths if path.is_file()), None)


def _missing(file: File, folder: str | os.PathLike[str] | None) -> str:
    looked = "\n".join(f"  {place / file.path}" for place in _folders(folder))
    unset = "" if os.environ.get(VARIABLE) else f" {VARIABLE} is not set."
    return (
        f"the data set {file.name!r} needs the file {file.path}, which is in none of\n"
        f"{looked}\n"
        f"It is not part of the package, and nothing is downloaded.{unset}\n"
        f"Data: {file.upstream}.\n"
        f"Prepared from: {file.source}.\n"
        f"Terms: {file.terms}.\n"
        f"Put it at {cache_folder() / file.path}, or let {VARIABLE} name the folder that holds "
        f"{file.path}. Its sha256 is {file.sha256}."
    )


def _checksum(path: Path) -> str:
    """Return the sha256, computed once for as long as the file stays as it is."""
    state = path.stat()
    return _computed(path.resolve(), state.st_mtime_ns, state.st_size)


@cache
def _computed(path: Path, mtime: int, size: int) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
