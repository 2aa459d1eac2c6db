"""Whether a table of text has a header and names of rows: told where it is clear, or asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

CORNERS = {"", "atom"}
"""What stands above names of rows, whatever these are: of pandas and R, and of our own weights."""

MISSING = {"", "na", "n/a", "nan", "null"}
"""What stands for a number that is missing, in any case."""

Line: TypeAlias = tuple[int, list[str]]
"""The number of a line, from 1, and its cells."""

ASK_HEADER = "Use --header or --no-header."
ASK_ROW_NAMES = "Use --row-names or --no-row-names."


@dataclass(frozen=True)
class Layout:
    """Whether the first line is a header and the first column holds names; None is to be told."""

    header: bool | None = None
    row_names: bool | None = None


def is_missing(cell: str) -> bool:
    """Return whether a cell stands for a number that is missing."""
    return cell.strip().lower() in MISSING


def is_number(cell: str) -> bool:
    """Return whether a cell is a number; 1_2, which Python takes for one, is a name."""
    with suppress(ValueError):
        float(cell)
        return "_" not in cell and not is_missing(cell)
    return False


def is_text(cell: str) -> bool:
    """Return whether a cell is neither a number nor missing."""
    return not is_number(cell) and not is_missing(cell)


def substitution(cells: Sequence[str]) -> str | None:
    """Return the name of a base substitution in two cells, or None if they hold none.

    Catalogues of mutations, as of PCAWG, have a column for the change and one for the base with its
    two neighbours, where those of COSMIC have one name for both.

    >>> substitution(["C>A", "ACG"])
    'A[C>A]G'
    """
    change, context = (cell.strip() for cell in cells[:2])
    if not re.fullmatch(r"([ACGT])>[ACGT] [ACGT]\1[ACGT]", f"{change} {context}"):
        return None
    return f"{context[0]}[{change}]{context[2]}"


def monotone(numbers: Sequence[float]) -> bool:
    """Return whether numbers strictly rise or strictly fall."""
    pairs = list(pairwise(numbers))
    return all(x < y for x, y in pairs) or all(x > y for x, y in pairs)


def regular(numbers: Sequence[float]) -> bool:
    """Return whether numbers look like an axis: three or more, strictly monotone, equally spaced.

    Steps may differ by a thousandth, since they may be rounded.
    """
    if len(numbers) < 3 or not monotone(numbers):
        return False
    steps = [y - x for x, y in pairwise(numbers)]
    return max(steps) - min(steps) <= 1e-3 * abs(steps[0])


def counting(names: Sequence[str]) -> bool:
    """Return whether names count 0, 1, 2, ... or 1, 2, 3, ..."""
    n = len(names)
    return n > 1 and list(names) in ([str(i) for i in range(n)], [str(i + 1) for i in range(n)])


def check_separator(lines: Sequence[Line], delimiter: str, path: Path) -> None:
    """Raise a ValueError where cells are separated by semicolons."""
    first, second = (delimiter.join(cells) for _, cells in (lines[0], lines[-1]))
    outside = re.sub(r"(?<=\d),(?=\d)", "", second) if delimiter == "," else second
    if ";" in first and ";" in second and delimiter not in outside:
        raise ValueError(
            f"{path} looks like semicolon-separated values, perhaps with decimal commas; got "
            f"{second[:40]!r} on line {lines[-1][0]}. Save it with commas and decimal points."
        )


def has_header(lines: Sequence[Line], path: Path, wanted: bool | None) -> bool:
    """Return whether the first of one or two lines is a header.

    It is one if all of its cells are text, or if it begins with a corner; a line of numbers is
    none, unless it looks like an axis and the second does not: that may be either.
    """
    if wanted is not None:
        return wanted
    (line, first), second = lines[0], lines[-1][1] if len(lines) > 1 else None
    texts = [cell for cell in first if is_text(cell)]
    numbers = [float(cell) for cell in first if is_number(cell)]
    if len(first) > 1 and first[0].strip() in CORNERS:
        return _has_header_below_corner(first, path)
    same = second is not None and len(second) == len(first)
    if texts and numbers and same:
        raise ValueError(
            f"{path} may or may not have a header: line {line} holds text, {texts[0].strip()!r}, "
            f"and numbers, {numbers[0]:g}. {ASK_HEADER}"
        )
    if texts:
        return second is not None or not numbers
    if same and second and _is_axis(first) and not _is_axis(second):
        raise ValueError(
            f"{path} may or may not have a header: the numbers on line {line}, "
            f"{', '.join(first[:3])}, ..., are equally spaced. {ASK_HEADER}"
        )
    return False


def _is_axis(cells: list[str]) -> bool:
    """Return whether cells are numbers that look like an axis."""
    return all(map(is_number, cells)) and regular([float(cell) for cell in cells])


def _has_header_below_corner(first: list[str], path: Path) -> bool:
    """Return whether a line is a header that begins with a corner; or with a missing number."""
    rest = first[1:]
    if first[0].strip() or any(map(is_text, rest)):
        return True
    if all(map(is_missing, rest)):
        return False
    if not any(map(is_missing, rest)) and monotone([float(cell) for cell in rest]):
        return True
    raise ValueError(
        f"{path} may or may not have a header: the first cell is empty, and the rest of its line "
        f"are numbers, but in no order. {ASK_HEADER}"
    )


def check_short_header(names: Sequence[str], lines: Sequence[int], path: Path) -> None:
    """Raise a ValueError unless names of rows go with a header that has none for them, as R's."""
    numbers = [i for i, name in enumerate(names) if is_number(name)]
    if numbers and not counting(names):
        i = numbers[0]
        raise ValueError(
            f"{path} has one name fewer in its header than columns, and the first column holds "
            f"neither names nor 1, 2, 3, ...; got {names[i]!r} on line {lines[i]}. If its commas "
            "are decimal ones, save it with decimal points; else use --row-names."
        )


def check_first_column(numbers: Sequence[float], path: Path) -> None:
    """Raise a ValueError where a first column of numbers may be an axis or numbers of samples."""
    if regular(numbers):
        start = ", ".join(f"{number:g}" for number in numbers[:3])
        raise ValueError(
            f"{path} may or may not have row names: the numbers in its first column, {start}, "
            f"..., are equally spaced. {ASK_ROW_NAMES}"
        )
