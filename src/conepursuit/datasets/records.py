"""What loaders return: named arrays that can say where they come from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from inspect import cleandoc
from typing import Any

from conepursuit.datasets.registry import File


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Record:
    """Named arrays, shown by their shapes."""

    def __repr__(self) -> str:
        parts = (f"{f.name}={_brief(getattr(self, f.name))}" for f in fields(self) if f.repr)
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DataSet(Record):
    """What a loader returns.

    Attributes
    ----------
    source : File
        The file it was read from, with origin and terms.
    """

    source: File = field(repr=False)

    @property
    def description(self) -> str:
        """What the data are, where they come from, and under which terms."""
        about = cleandoc(self.__doc__ or "").partition("\n\nAttributes\n")[0]
        return (
            f"{about}\n\nData: {self.source.upstream}.\nPrepared from: {self.source.source}.\n"
            f"Terms: {self.source.terms}."
        )


def _brief(value: Any) -> str:
    """Return dtype and shape of an array, and what Python says of anything else."""
    if not hasattr(value, "dtype"):
        return repr(value)
    return f"<{value.dtype} {'x'.join(map(str, value.shape))}>"
