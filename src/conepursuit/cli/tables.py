"""Tables of text, with names of columns and rows where there are some."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
)

DETECT = Layout()


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
    """

    numbers: array[float]
    lines: array[int]
    columns: list[str] | None
    rows: list[str] | None


def read_table(path: Path, delimiter: str, wanted: Layout = DETECT) -> Table:
    """Return a table of numbers, with or without a line and a column of names."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            return _parsed(_lines(csv.reader(file, delimiter=delimiter)), path, delimiter, wanted)
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
    named = width > 1 and (_begins_with_name(body) or short if told is None else told)
    columns = _columns(head, named, short, path) if header else None
    grid = Grid(path, width, int(named), check=told is None and not short)
    for line in _chained(body, lines):
        grid.add(*line)
    if short and named and told is None:
        check_short_header(grid.rows, grid.lines, path)
    if header and not named and told is None and width > 1:
        check_first_column(grid.numbers[::width], path)
    return Table(grid.numbers, grid.lines, columns, grid.rows if named else None)


def _head(lines: Iterator[Line]) -> list[Line]:
    """Return the first two lines, and those up to one whose first cell is not missing."""
    head: list[Line] = []
    for line in lines:
        head.append(line)
        if len(head) > 1 and not is_missing(line[1][0]):
            break
    return head


def _chained(first: list[Line], rest: Iterator[Line]) -> Iterator[Line]:
    yield from first
    yield from rest


def _begins_with_name(body: list[Line]) -> bool:
    """Return whether the first cell of a first column that is not missing is text."""
    told = [cells[0] for _, cells in body if not is_missing(cells[0])]
    return bool(told) and is_text(told[0])


def _columns(head: list[Line], named: bool, short: bool, path: Path) -> list[str]:
    """Return the names of the columns that hold numbers."""
    (line, cells), (below, others) = head[:2]
    columns = [cell.strip() for cell in cells]
    if named and not short:
        columns = columns[1:]  # what stands above the names of rows
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
        self.rows.extend(cell.strip() for cell in cells[: self.skip])

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
                    f"{self.path} must hold numbers; got {cell.strip()!r} on line {line}, column "
                    f"{column} counted from 0.{hint}"
                )
            yield float("nan") if is_missing(cell) else float(cell)
