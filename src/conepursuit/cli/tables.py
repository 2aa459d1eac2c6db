"""Tables of text, with names of columns and rows where there are some."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from reprlib import repr as shown

from conepursuit.cli.layouts import (
    CORNERS,
    Layout,
    Line,
    check_first_column,
    check_separator,
    check_short_header,
    has_header,
    is_missing,
    is_number,
    is_text,
    substitution,
)
from conepursuit.cli.opening import kind_of, opened

DETECT = Layout()

TABLES = ".csv", ".tsv", ".txt"
"""What the names of tables end in, before the suffix of a compression."""


@dataclass(frozen=True, eq=False)
class Table:
    """The numbers of a table, row after row, and names where it has some.

    Attributes
    ----------
    numbers : array of float
        NaN for cells that are empty.
    lines : array of int
        The line of the file on which each row ends.
    columns, rows : list of str, optional
        Their names.
    name_columns : int
        In how many columns of the file the names of rows stand.
    """

    numbers: array[float]
    lines: array[int]
    columns: list[str] | None
    rows: list[str] | None
    name_columns: int

    @property
    def understood(self) -> str:
        """What the table was taken for, in words."""
        names = ("no row names", "row names", "row names in two columns")[self.name_columns]
        return f"{'no header' if self.columns is None else 'header'}, {names}"


def read_table(path: Path, wanted: Layout = DETECT) -> Table:
    """Return a table of numbers, with or without a line and columns of names."""
    with _cells(path) as (lines, delimiter):
        return _parsed(lines, path, delimiter, wanted)


def first_cells(path: Path) -> list[str]:
    """Return the cells of the first line that is not blank; none if there is no such line."""
    with _cells(path) as (lines, _):
        return next(lines, (0, []))[1]


@contextmanager
def _cells(path: Path) -> Iterator[tuple[Iterator[Line], str]]:
    """Open a table; return its lines that are not blank, and what separates their cells.

    That is a comma in .csv and a tab in .tsv. In .txt it is whichever of these stands on the first
    line that is not blank, or else white space.
    """
    with opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            lines, delimiter = iter(text), "," if kind_of(path) == ".csv" else "\t"
            if kind_of(path) == ".txt":
                first = next((line for line in lines if line.strip()), "")
                text.seek(0)
                delimiter = next((d for d in ("\t", ",") if d in first), " ")
                if delimiter == " ":
                    lines = (" ".join(line.split()) for line in text)
            yield _lines(csv.reader(lines, delimiter=delimiter)), delimiter
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a table of text in UTF-8: {error}.") from None


def _lines(reader: Iterator[list[str]]) -> Iterator[Line]:
    """Yield the lines that are not blank."""
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield reader.line_num, cells  # type: ignore[attr-defined]  # it is a csv.reader


def _parsed(lines: Iterator[Line], path: Path, delimiter: str, wanted: Layout) -> Table:
    """Return the numbers, line by line."""
    head = _head(lines)
    if not head:
        raise ValueError(f"{path} is empty.")
    if not wanted.row_names:
        check_separator(head[:2], delimiter, path)
    header = has_header(head[:2], path, wanted.header)
    body = head[header:]
    if not body:
        raise ValueError(f"{path} has a line of names, but no numbers.")
    width = len(body[0][1])
    first = head[0][1]
    corner = header and first[0].strip() in CORNERS
    short = header and not corner and len(first) == width - 1
    told = wanted.row_names
    if told is None and corner:
        told = True
    named = int(width > 1 and (_begins_with_name(body) or short if told is None else told))
    if named and width > 2 and substitution(body[0][1]) is not None:
        named = 2
    columns = _columns(head, named, short, path) if header else None
    grid = Grid(path, width, named, check=told is None and not short)
    for line in chain(body, lines):
        grid.add(*line)
    if short and named and told is None:
        check_short_header(grid.rows, grid.lines, path)
    if header and not named and told is None and width > 1:
        check_first_column(grid.numbers[::width], path)
    return Table(grid.numbers, grid.lines, columns, grid.rows if named else None, named)


def _head(lines: Iterator[Line]) -> list[Line]:
    """Return the first two lines, and those up to one whose first cell is not missing."""
    head: list[Line] = []
    for line in lines:
        head.append(line)
        if len(head) > 1 and not is_missing(line[1][0]):
            break
    return head


def _begins_with_name(body: list[Line]) -> bool:
    """Return whether the first cell of a first column that is not missing is text."""
    told = [cells[0] for _, cells in body if not is_missing(cells[0])]
    return bool(told) and is_text(told[0])


def _columns(head: list[Line], named: int, short: bool, path: Path) -> list[str]:
    """Return the names of the columns that hold numbers; `named` columns hold names of rows."""
    (line, cells), (below, others) = head[:2]
    columns = [cell.strip() for cell in cells]
    if not short:
        columns = columns[named:]  # what stands above the names of rows
    n_columns = len(others) - named
    if len(columns) != n_columns:
        raise ValueError(
            f"{path} must have a name for each column; got {len(columns)} names on line "
            f"{line} and {n_columns} columns on line {below}."
        )
    return columns


class Grid:
    """Collects numbers and names, line by line.

    Parameters
    ----------
    path : Path
        The file.
    width : int
        Its number of cells on each line.
    skip : int
        How many of them are names.
    check : bool
        Whether the first column was told to hold names, or numbers, by its first cell.
    """

    def __init__(self, path: Path, width: int, skip: int, *, check: bool) -> None:
        self.path, self.width, self.skip, self.check = path, width, skip, check
        self.numbers, self.lines = array("d"), array("q")
        self.rows: list[str] = []

    def add(self, line: int, cells: list[str]) -> None:
        """Add a line, or say what is wrong with it."""
        if len(cells) != self.width:
            raise ValueError(
                f"{self.path} must have as many columns on each line; got {len(cells)} on line "
                f"{line}, and {self.width} on line {self.lines[0]}."
            )
        if self.check and self.skip and is_number(cells[0]):
            raise ValueError(
                f"{self.path} must hold names or numbers in its first column, not both; got "
                f"{cells[0].strip()!r} on line {line}, column 0 counted from 0, below "
                f"{self._text()}. If all are names, use --row-names."
            )
        try:
            self.numbers.extend(map(float, cells[self.skip :]))
        except ValueError:
            # Those before the cell that is wrong are there already.
            del self.numbers[len(self.lines) * (self.width - self.skip) :]
            self.numbers.extend(self._parsed(line, cells))
        self.lines.append(line)
        if self.skip:
            self.rows.append(
                cells[0].strip() if self.skip == 1 else self._substitution(line, cells)
            )

    def _substitution(self, line: int, cells: list[str]) -> str:
        """Return the name of a row in two columns."""
        name = substitution(cells)
        if name is None:
            raise ValueError(
                f"{self.path} must have names of rows in its first two columns that are like 'C>A' "
                f"and 'ACA'; got {cells[0].strip()!r} and {cells[1].strip()!r} on line {line}."
            )
        return name

    def _text(self) -> str:
        """Return the first name, and where it is."""
        i = next(i for i, name in enumerate(self.rows) if is_text(name))
        return f"{self.rows[i]!r} on line {self.lines[i]}"

    def _parsed(self, line: int, cells: list[str]) -> Iterator[float]:
        """Yield the numbers of a line, NaN for those that are missing."""
        for column, cell in enumerate(cells[self.skip :]):
            if is_text(cell):
                named = self.check and self.width > 1 and column == self.skip == 0
                hint = " If the first column holds names, use --row-names." if named else ""
                raise ValueError(
                    f"{self.path} must hold numbers; got {shown(cell.strip())} on line {line}, "
                    f"column {column} counted from 0.{hint}"
                )
            yield float("nan") if is_missing(cell) else float(cell)
