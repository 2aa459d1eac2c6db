"""Originals as they are distributed: MATLAB files, tables of text, NIfTI images, archives.

Files are known by what they hold, never by their names.
"""

from __future__ import annotations

import csv
import gzip
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from conepursuit.arrays import Array

_NIFTI_TYPES = {2: "u1", 4: "i2", 16: "f4", 512: "u2"}
"""The codes of a NIfTI header for the types of its entries."""


class WrongOriginalError(ValueError):
    """A file is not, or not all of, the original that data are prepared from."""


@contextmanager
def _taken_for(path: Path, kind: str) -> Iterator[None]:
    """Say of any error that the file is damaged or of another kind."""
    try:
        yield
    except Exception as error:  # readers of damaged files raise almost anything
        reason = str(error).rstrip(".") or type(error).__name__
        raise WrongOriginalError(f"{path} cannot be read as {kind}: {reason}") from None


def matlab_file(paths: Sequence[Path], *names: str) -> dict[str, Any]:
    """Return the arrays of the first of some MATLAB files that has all those named."""
    from scipy.io import loadmat

    seen = []
    for path in paths:
        content = path.read_bytes()
        with _taken_for(path, "a MATLAB file"):
            arrays: dict[str, Any] = loadmat(BytesIO(content))
        if set(names) <= set(arrays):
            return arrays
        seen.append(f"{path} has {', '.join(n for n in arrays if n[0] != '_') or 'none'}")
    raise WrongOriginalError(
        f"no file has the arrays {', '.join(names)}; {'; '.join(seen) or 'none is of MATLAB'}"
    )


def is_matlab(path: Path) -> bool:
    """Return whether a file begins as those of MATLAB do."""
    return _beginning(path, 6) == b"MATLAB"


def table(paths: Sequence[Path], corner: str) -> Array:
    """Return the cells of the first of some tables whose upper left one is `corner`, as text."""
    for path in paths:
        content = path.read_bytes()
        with _taken_for(path, "a table"):
            lines = content.decode("utf-8-sig").splitlines()
            cells = list(csv.reader(lines, delimiter="\t" if "\t" in lines[0] else ","))
            if cells[0][0] == corner:
                return np.array(cells)
    raise WrongOriginalError(f"no file is a table that begins with {corner!r}")


def nifti(path: Path) -> Array:
    """Return the entries of a NIfTI-1 image, compressed or not, as they are stored."""
    content = path.read_bytes()
    with _taken_for(path, "a NIfTI image"):
        content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        n_axes, *sizes = np.frombuffer(content, "<i2", 8, 40).tolist()
        code, (start,) = np.frombuffer(content, "<i2", 1, 70), np.frombuffer(content, "<f4", 1, 108)
        kind = np.dtype(_NIFTI_TYPES[int(code[0])]).newbyteorder("<")
        shape = tuple(sizes[:n_axes])
        entries = np.frombuffer(content, kind, int(np.prod(shape)), int(start))
        return entries.reshape(shape, order="F")


def is_nifti(path: Path) -> bool:
    """Return whether a file begins as NIfTI images do, or is compressed."""
    return _beginning(path, 4) == b"\x5c\x01\0\0" or _beginning(path, 2) == b"\x1f\x8b"


def numbers(path: Path) -> Array:
    """Return the numbers of a file of text, line by line."""
    content = path.read_bytes()
    with _taken_for(path, "lines of numbers"):
        return np.loadtxt(BytesIO(content))


def texts(paths: Sequence[Path], suffix: str) -> Iterator[str]:
    """Yield the texts of files with a suffix, from folders, archives or given one by one."""
    for path in paths:
        if path.is_dir():
            yield from (one.read_text("latin-1") for one in sorted(path.glob(f"*{suffix}")))
        elif path.suffix == suffix:
            yield path.read_text("latin-1")
        else:
            content = path.read_bytes()
            with _taken_for(path, f"an archive of {suffix} files"):
                found = _unpacked(content, suffix)
            yield from found


def _unpacked(content: bytes, suffix: str) -> list[str]:
    found = {}
    with tarfile.open(fileobj=BytesIO(content)) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(suffix) else None
            if file is not None:
                found[member.name] = file.read().decode("latin-1")
    return [text for _, text in sorted(found.items())]


def _beginning(path: Path, n_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(n_bytes)
