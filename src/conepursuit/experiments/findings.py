"""What an experiment is, and what it finds: numbers beside the paper's, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Part: TypeAlias = Callable[[], Any]
"""Computes one part of an experiment; what it returns can be written as JSON."""


@dataclass(frozen=True)
class Comparison:
    """One line of the summary.

    Attributes
    ----------
    what : str
        What is compared.
    paper, ours : str
        The two, as they are printed; "-" where the paper says nothing.
    agrees : bool or None
        Whether the claim of the paper holds here; None where this run is too small to tell.
    remark : str
        Why the two differ, in one sentence; "" where they do not.
    """

    what: str
    paper: str
    ours: str
    agrees: bool | None
    remark: str = ""

    @property
    def verdict(self) -> str:
        """What became of the claim, in two words at most."""
        return {True: "agrees", False: "differs", None: "not tested"}[self.agrees]


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes
    ----------
    title : str
        What it shows.
    columns : sequence of str
        The headings. All columns but the first hold numbers.
    rows : sequence of sequences of str
        The cells.
    note : str
        What a reader must know; may be "".
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Findings:
    """What an experiment found.

    Attributes
    ----------
    comparisons : sequence of Comparison
        The lines of the summary.
    tables : sequence of Table
        The tables.
    figures : mapping of str to callable
        For each figure its caption, and a function that draws it on matplotlib axes that it is
        given.
    """

    comparisons: Sequence[Comparison]
    tables: Sequence[Table]
    figures: Mapping[str, Callable[[Any], None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A figure or a table of the paper, to be run again.

    Attributes
    ----------
    name, title : str
        How it is called, and what it is about.
    source : str
        The figures, tables or theorems of the paper that it redoes, and their section.
    parts : callable
        ``parts(quick)`` returns functions by name. Each computes a part that is kept once it is
        finished, so that an interrupted run goes on where it was; `quick` asks for a small budget.
    present : callable
        ``present(results)`` makes the findings of what the parts returned, read back from JSON.
        Parts whose data are missing are not among them.
    """

    name: str
    title: str
    source: str
    parts: Callable[[bool], Mapping[str, Part]]
    present: Callable[[Mapping[str, Any]], Findings]
