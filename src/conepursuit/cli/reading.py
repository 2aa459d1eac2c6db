"""Reading matrices and targets from files, with errors that name the place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.lib.format import (
    MAGIC_PREFIX,
    read_array_header_1_0,
    read_array_header_2_0,
    read_magic,
)
from scipy import sparse

from conepursuit.arrays import Array, check_stored
from conepursuit.cli.layouts import Layout
from conepursuit.cli.opening import OPENERS, kind_of, opened
from conepursuit.cli.tables import DETECT, TABLES, read_table
from conepursuit.files import reading

SUFFIXES = ".npy, .npz, .csv, .tsv, .txt or .mtx, perhaps with .gz, .bz2 or .xz after it"

BLOCK = 2**22
"""Entries that are looked at together for NaN, and bytes that are read together."""


@dataclass(frozen=True, eq=False)
class Data:
    """What a file holds.

    Attributes
    ----------
    values : array or csc_array
        The numbers.
    file : str
        The file, as it was given.
    columns, rows : list of str, optional
        The names of columns and rows of a table of text.
    lines : sequence of int, optional
        The lines of the file on which its rows end.
    understood : str
        What a table of text was taken for, with its size, in words; empty for files of other kinds.
    """

    values: Any
    file: str
    columns: list[str] | None = None
    rows: list[str] | None = None
    lines: Sequence[int] | None = None
    understood: str = ""

    @property
    def size(self) -> str:
        """The shape, in words."""
        return " x ".join(map(str, self.values.shape))

    def taken(self, rows: Sequence[int]) -> Data:
        """Return some of the rows, in the order given."""
        names = None if self.rows is None else [self.rows[i] for i in rows]
        lines = None if self.lines is None else [self.lines[i] for i in rows]
        return replace(self, values=self.values[rows], rows=names, lines=lines)

    def transposed(self) -> Data:
        """Return rows as columns; lines of the file are then unknown."""
        with reading(Path(self.file), "a matrix"):  # there may be no memory for so many rows
            values = self.values.T.tocsc() if sparse.issparse(self.values) else self.values.T
        understood = f"{self.understood or self.size}, transposed"
        return Data(values, self.file, self.rows, self.columns, understood=understood)

    def place(self, row: int, column: int) -> str:
        """Return where an entry stands, in words."""
        name = "" if self.columns is None else f" ({self.columns[column]!r})"
        line = "" if self.lines is None else f"; line {self.lines[row]} of the file"
        return f"row {row}, column {column}{name}, counted from 0{line}"


def read_matrix(
    given: str, layout: Layout = DETECT, *, missing: bool = False, tensors: bool = False,
    transpose: bool = False,
) -> Data:  # fmt: skip
    """Return the matrix in a file, dense or sparse; NaN is an error unless it means missing.

    With `tensors`, an array of three axes or more is returned too. With `transpose`, the rows of
    the file are the columns of the matrix.
    """
    data = read(given, layout)
    if data.values.ndim != 2 and not (tensors and data.values.ndim > 2):
        raise ValueError(
            f"{given} must hold a matrix, with an atom for each column; got shape "
            f"{data.values.shape}."
        )
    check_entries(data, missing=missing and not sparse.issparse(data.values))
    return data.transposed() if transpose else data


def read_targets(given: str, layout: Layout = DETECT, *, transpose: bool = False) -> Data:
    """Return a vector, or a matrix with a target for each of several columns; both are dense.

    With `transpose`, there is a target for each row of the file.
    """
    data = read(given, layout)
    check_entries(data, missing=False)
    data = data.transposed() if transpose else data
    with reading(Path(given), "a file of targets, which are made dense,"):
        values = data.values.toarray() if sparse.issparse(data.values) else data.values
    if values.ndim not in (1, 2):
        raise ValueError(
            f"{given} must hold a vector, or a matrix with a target for each column; got shape "
            f"{values.shape}."
        )
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    return replace(data, values=values)


def read(given: str, layout: Layout = DETECT) -> Data:
    """Return what a file holds; ``file.npz:name`` is one of several arrays."""
    path, name = located(given)
    kind = kind_of(path)
    if kind in TABLES:
        table = read_table(path, layout)
        values: Any = np.frombuffer(table.numbers, dtype=np.float64).reshape(len(table.lines), -1)
        understood = f"{len(values)} x {values.shape[1]}, {table.understood}"
        data = Data(values, given, table.columns, table.rows, table.lines, understood)
    elif kind in (".npy", ".npz", ".mtx"):
        with opened(path) as file:
            data = Data(_load(path, file, name, given), given)
            while path.suffix.lower() in OPENERS and file.read(BLOCK):
                pass  # the sums that tell damage stand at the end of a compressed file
    else:
        raise ValueError(f"{given} must be a file with the suffix {SUFFIXES}; got {kind!r}.")
    if not min(data.values.shape, default=0):
        raise ValueError(f"{given} holds no numbers; its shape is {data.values.shape}.")
    return data


def located(given: str) -> tuple[Path, str | None]:
    """Return the path of a file, and the name of the array in it if one was given."""
    path, name = Path(given), None
    start, _, end = given.rpartition(":")
    if not path.exists() and kind_of(Path(start)) == ".npz":
        path, name = Path(start), end
    if given == "-" or (path.exists() and not path.is_file() and not path.is_dir()):
        raise ValueError(
            f"{path}: only named files are read, {SUFFIXES}, no pipes or devices. Save it first."
        )
    if not path.exists():
        raise ValueError(f"{path}: there is no such file.")
    if path.is_dir():
        raise ValueError(f"{path} must be a file, {SUFFIXES}; it is a folder.")
    return path, name


def _load(path: Path, file: IO[bytes], name: str | None, given: str) -> Any:
    """Return the numbers that numpy or scipy read from an open file."""
    kind = kind_of(path)
    with reading(path, "a Matrix Market file" if kind == ".mtx" else f"a {kind} file"):
        if kind == ".mtx":
            from scipy.io import mminfo, mmread

            entries = mminfo(_text_of(file))[2]
            check_held(path, file, entries // 2)  # a symmetric matrix holds half its entries
            return as_numbers(mmread(_text_of(file)), given)
        start = file.read(len(MAGIC_PREFIX))
        file.seek(0)
        if start == MAGIC_PREFIX:
            check_held(path, file, _size_said(file) + file.tell())
        elif not start.startswith(b"PK"):  # NumPy would advise to execute it, as a pickle
            raise ValueError("it does not begin as such a file does")
        loaded = np.load(file, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            loaded = _chosen(path, file, loaded, name)
        return as_numbers(loaded, given)


def _text_of(file: IO[bytes]) -> Any:
    """Return what SciPy reads text from.

    SciPy crashes where it seeks back, at a zero byte, and at the end of a last line without an end.
    """
    ends = iter([b"\n"])

    def read(size: int) -> bytes:
        part = file.read(size)
        if b"\0" in part:
            raise ValueError("it holds a zero byte, and is no text")
        return part or next(ends, b"")

    return SimpleNamespace(read=read)


def check_held(path: Path, file: IO[bytes], size: int) -> None:
    """Raise a ValueError unless a file has so many bytes, inflated; then go to its start.

    Memory is taken for what a file is said to hold before any of it is read.
    """
    file.seek(0)
    if path.suffix.lower() in OPENERS:
        held = 0
        while held < size and (part := file.read(BLOCK)):
            held += len(part)
    else:
        held = path.stat().st_size
    if held < size:
        raise ValueError(f"it is said to hold {size} bytes or more, and has {held}")
    file.seek(0)


def _chosen(path: Path, file: IO[bytes], loaded: Any, name: str | None) -> Any:
    """Return one array of a .npz file, or the sparse matrix that it holds."""
    names = loaded.files
    if name is None and {"format", "shape", "data"} <= set(names):
        check_sizes(path, loaded.zip, names)
        file.seek(0)
        return sparse.load_npz(file)
    name = names[0] if name is None and len(names) == 1 else name
    if name is not None and name in names:
        check_sizes(path, loaded.zip, [name])
        return loaded[name]
    asked = "" if name is None else f"; got {name!r}"
    raise ValueError(
        f"{path} holds the arrays {', '.join(names) or 'none'}. Choose one by {path}:name{asked}."
    )


def check_sizes(path: Path, archive: ZipFile, names: Sequence[str]) -> None:
    """Raise a ValueError if arrays of a .npz file are too large, before any of them is inflated.

    A small file may inflate to any size; the header of an array says to which.
    """
    total = 0
    for name in names:
        member = name if name in archive.namelist() else f"{name}.npy"
        with archive.open(member) as file:
            size = _size_said(file)
            held = archive.getinfo(member).file_size - file.tell()
        if size != held:
            raise ValueError(f"the array {name!r} is said to take {size} bytes, and has {held}")
        total += size
    if total > (memory := physical_memory()):
        raise ValueError(
            f"{path} holds numbers that take {total / 2**30:.3g} GiB, more than the "
            f"{memory / 2**30:.3g} GiB of memory of this machine. Save fewer of them, in float32, "
            "or as a sparse matrix."
        )


def _size_said(file: IO[bytes]) -> int:
    """Return how many bytes an array takes by its header, which is read; objects are refused."""
    major, _ = read_magic(file)
    shape, _, dtype = (read_array_header_1_0 if major == 1 else read_array_header_2_0)(file)
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError(f"an array of the type {dtype} and shape {shape} is not read")
    return prod(shape) * dtype.itemsize


def physical_memory() -> float:
    """Return the bytes of memory of this machine; inf where that is not known, as on Windows."""
    known = getattr(os, "sysconf_names", {})
    if not {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(known):
        return inf
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def as_numbers(loaded: Any, given: str) -> Any:
    """Return real numbers, a sparse matrix by columns, or say why they are not that."""
    if loaded.dtype.kind not in "fiub":
        raise ValueError(
            f"{given} must hold real numbers; got dtype {loaded.dtype}. Save it as float64."
        )
    if sparse.issparse(loaded):
        check_stored(loaded, given)
        return sparse.csc_array(loaded, dtype=np.float64)
    return loaded.astype(loaded.dtype.newbyteorder("="), copy=False)


def check_entries(data: Data, *, missing: bool) -> None:
    """Raise a ValueError that names the first entry that is infinite or, unless missing, NaN."""
    found = _first_wrong(data.values, missing)
    if found is not None:
        row, column, value = found
        place = data.place(row, column)
        if data.values.ndim > 2:
            rest = np.unravel_index(column, data.values.shape[1:])
            place = f"[{', '.join(str(i) for i in (row, *rest))}], counted from 0"
        raise ValueError(f"{data.file} must hold finite numbers; got {value} at {place}.")


def _first_wrong(values: Any, missing: bool) -> tuple[int, int, float] | None:
    """Return row, column and value of the first entry that may not be."""
    wrong = np.isinf if missing else lambda part: ~np.isfinite(part)
    if sparse.issparse(values):
        entries = values.tocoo()
        places = np.flatnonzero(wrong(entries.data))
        if not len(places):
            return None
        rows, columns = entries.coords
        first = min(places, key=lambda i: (rows[i], columns[i]))
        return int(rows[first]), int(columns[first]), float(entries.data[first])
    table: Array = values.reshape(len(values), -1)
    step = max(1, BLOCK // table.shape[1])
    for start in range(0, len(table), step):
        part = table[start : start + step]
        if (bad := wrong(part)).any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            return start + row, column, float(part[row, column])
    return None
