"""Where the files of data lie, and whether they are the right ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from conepursuit.arrays import Array
from conepursuit.datasets.contents import CONTENTS, difference
from conepursuit.datasets.registry import FILES, File

VARIABLE = "CONEPURSUIT_DATA"
"""The environment variable that names a folder of data."""

PACKAGED = Path(__file__).parent / "packaged"
"""The folder of the data that are part of the package."""


class DatasetNotFoundError(FileNotFoundError):
    """A file of data is in none of the folders where it was looked for.

    Attributes
    ----------
    file : File
        Which one.
    """

    def __init__(self, message: str, file: File) -> None:
        super().__init__(message)
        self.file = file


class DatasetContentError(ValueError):
    """A file of data holds something else than the loaders were written for."""


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
        Whether it was found and holds what it should.
    """

    file: File
    path: Path | None
    intact: bool


def known(name: str) -> File:
    """Return the file of a data set, by its name."""
    if name not in FILES:
        raise ValueError(f"there is no data set {name!r}. Those known: {', '.join(FILES)}.")
    return FILES[name]


def find(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return where a file of data lies, its content verified.

    Parameters
    ----------
    name : str
        A key of `FILES`.
    folder : path, optional
        Where to look first. Then come the folder that the environment variable CONEPURSUIT_DATA
        names, `cache_folder()`, and the data of the package.

    Raises
    ------
    DatasetNotFoundError
        It is in none of them. The message says where it comes from and how to get it.
    DatasetContentError
        The first that was found holds something else.
    """
    file = known(name)
    path = _located(file, folder)
    if path is None:
        raise DatasetNotFoundError(_missing(file, folder), file)
    wrong = _fault(path, name)
    if wrong is not None:
        raise DatasetContentError(
            f"{path} does not hold the data set {name!r}: {wrong}. Replace it by an intact copy, "
            "or move it away to have the other folders searched."
        )
    return path


def available(folder: str | os.PathLike[str] | None = None) -> list[Availability]:
    """Return for every file of data whether it is here, and where; the order is that of `FILES`."""
    rows = []
    for name, file in FILES.items():
        path = _located(file, folder)
        rows.append(Availability(file, path, path is not None and _fault(path, name) is None))
    return rows


def own_folder() -> Path:
    """Return the folder for data that are added: that of CONEPURSUIT_DATA, or `cache_folder()`."""
    given = os.environ.get(VARIABLE)
    return Path(given).expanduser() if given else cache_folder()


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
    """Return the arrays of a file by their names."""
    return _arrays(find(name, folder))


def _arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a file; objects in it, which are code, are refused."""
    if path.suffix == ".csv":  # the sonar data: numbers, and a letter at the end of each line
        rows = np.loadtxt(path, delimiter=",", dtype=str)
        return {"X": rows[:, :-1].astype(np.float64), "label": np.array(rows[:, -1].tolist())}
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def _folders(first: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield the folders where data may be, in the order in which they are searched."""
    for folder in (first, os.environ.get(VARIABLE)):
        if folder:
            yield Path(folder).expanduser()
    yield cache_folder()
    yield PACKAGED


def _located(file: File, folder: str | os.PathLike[str] | None) -> Path | None:
    paths = (place / file.path for place in _folders(folder))
    return next((path for path in paths if path.is_file()), None)


def _missing(file: File, folder: str | os.PathLike[str] | None) -> str:
    looked = "\n".join(f"  {place / file.path}" for place in _folders(folder))
    unset = "" if os.environ.get(VARIABLE) else f"{VARIABLE} is not set.\n"
    return (
        f"the data set {file.name!r} is not here. {file.advice}\n"
        f"It was looked for as\n{looked}\n{unset}"
        f"Data: {file.upstream}.\nPrepared from: {file.source}.\nTerms: {file.terms}."
    )


def _fault(path: Path, name: str) -> str | None:
    """Return what is wrong with a file, found out once for as long as the file stays as it is."""
    state = path.stat()
    return _found_fault(path.resolve(), name, state.st_mtime_ns, state.st_size)


@cache
def _found_fault(path: Path, name: str, mtime: int, size: int) -> str | None:
    try:
        arrays = _arrays(path)
    except Exception as error:  # damaged archives raise almost anything
        return f"it cannot be read: {error}"
    return difference(arrays, CONTENTS[name])
