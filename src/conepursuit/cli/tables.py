"""Tables of text, with names of columns and rows where there are some."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

CORNERS = {"", "atom"}
"""What stands above names of rows, whatever these are: of pandas and R, and of our own weights."""

MISSING = {"", "na", "n/a", "nan", "null"}
"""What stands for a number that is missing, in any case."""

Line: TypeAlias = tuple[int, list[str]]
"""The number of a line, from 1, and its cells."""


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


def read_table(path: Path, delimiter: str) -> Table:
    """Return a table of numbers, with or without a line and a column of names."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            return _parsed(_lines(csv.reader(file, delimiter=delimiter)), path)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a table of text in UTF-8: {error}.") from None


def _lines(reader: Iterator[list[str]]) -> Iterator[Line]:
    """Yield the lines that are not blank."""
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield reader.line_num, cells  # type: ignore[attr-defined]  # it is a csv.reader


def _parsed(lines: Iterator[Line], path: Path) -> Table:
    """Return the numbers, line by line."""
    head = [line for line in (next(lines, None), next(lines, None)) if line is not None]
    if not head:
        raise ValueError(f"{path} is empty.")
    header, named = layout([cells for _, cells in head], path)
    columns = [cell.strip() for cell in head[0][1]] if header else None
    first = head[header]
    width = len(first[1])
    if columns is not None and named and len(columns) == width:
        columns = columns[1:]  # what stands above the names of rows
    skip = int(named)
    if columns is not None and len(columns) != width - skip:
        raise ValueError(
            f"{path} must have a name for each column; got {len(columns)} names on line "
            f"{head[0][0]} and {width - skip} columns on line {first[0]}."
        )
    numbers, ends = array("d"), array("q")
    rows: list[str] = []
    for line, cells in _chained(head[header:], lines):
        if len(cells) != width:
            raise ValueError(
                f"{path} must have as many columns on each line; got {len(cells)} on line {line}, "
                f"and {width} on line {first[0]}."
            )
        try:
            numbers.extend(map(float, cells[skip:]))
        except ValueError:
            # Those before the cell that is wrong are there already.
            del numbers[len(ends) * (width - skip) :]
            numbers.extend(_numbers(cells, skip, line, path))
        ends.append(line)
        rows.extend(cell.strip() for cell in cells[:skip])
    return Table(numbers, ends, columns, rows if named else None)


def _chained(first: list[Line], rest: Iterator[Line]) -> Iterator[Line]:
    yield from first
    yield from rest


def layout(head: list[list[str]], path: Path) -> tuple[bool, bool]:
    """Return whether the first line is a header, and whether the first column has names of rows.

    The header is told by a cell that is not a number; names of rows by one that is not a number
    in the line below, by one of `CORNERS`, or by a header that is one cell shorter, as R writes it.
    """
    first, second = head[0], head[-1]
    counted = [str(i) for i in range(len(first) - 1)]
    by_pandas = len(first) > 1 and not first[0].strip() and first[1:] == counted
    header = by_pandas or any(is_text(cell) for cell in first)
    if not header:
        return False, False
    if len(head) == 1:
        raise ValueError(f"{path} has a line of names, but no numbers.")
    named = len(second) > 1 and (is_text(second[0]) or len(second) == len(first) + 1)
    unclear = first[0].strip() not in CORNERS and not any(is_text(cell) for cell in first[1:])
    if named and unclear and len(second) == len(first):
        raise ValueError(
            f"{path} may or may not have a header: every line begins with text, and the "
            "rest of the first one are numbers. Remove the first column, or give the columns "
            "names that are not numbers."
        )
    return True, named or (len(first) > 1 and first[0].strip() in CORNERS)


def is_text(cell: str) -> bool:
    """Return whether a cell is neither a number nor missing."""
    with suppress(ValueError):
        float(cell)
        return False
    return cell.strip().lower() not in MISSING


def _numbers(cells: list[str], skip: int, line: int, path: Path) -> Iterator[float]:
    """Yield the numbers of a line, NaN for those that are missing."""
    for column, cell in enumerate(cells[skip:]):
        if is_text(cell):
            raise ValueError(
                f"{path} must hold numbers; got {cell.strip()!r} on line {line}, column {column} "
                "counted from 0."
            )
        yield float("nan") if cell.strip().lower() in MISSING else float(cell)
