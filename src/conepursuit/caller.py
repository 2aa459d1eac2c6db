"""Warnings that are shown at the line of the user that caused them."""

from __future__ import annotations

import sys
from warnings import warn

BETWEEN = ("conepursuit", "joblib", "numpy", "sklearn")
"""Packages whose functions may stand between the line of a user and a warning."""


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line of code that is of none of the packages in `BETWEEN`.

    Python shows a DeprecationWarning to those whose own script caused it, and to nobody else; any
    other warning is shown once for each line, with the line.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _package(frame.f_globals) in BETWEEN:
        frame, level = frame.f_back, level + 1
    warn(message, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    """Return the name of the package of a module with these global names."""
    return str(names.get("__name__", "")).split(".")[0]
