"""The compiled loops, by purpose: `shared`, `least_squares`, `loss_fits` and `factorization`.

Their sources are in the folder ``cpp``, by the same names. They are built once for each level of
x86-64 and once elsewhere, and the module for the processor at hand is taken; no result depends on
the level beyond rounding. The variable CONEPURSUIT_LEVEL asks for a lower level.
"""

from __future__ import annotations

from importlib import import_module
from os import environ
from typing import TYPE_CHECKING

try:
    level = import_module("conepursuit.kernels._cpu").level
except ImportError as missing:
    raise ImportError(
        "the compiled kernels of conepursuit are missing; install the package again, with "
        "`pip install .` or `make`, rather than use its sources as they are."
    ) from missing

_compiled = import_module(f"conepursuit.kernels._v{environ.get('CONEPURSUIT_LEVEL') or level()}")

FILE = str(_compiled.__file__)
"""Where the module is that was taken."""

if TYPE_CHECKING:  # the stubs beside this file
    from conepursuit.kernels import factorization as factorization
    from conepursuit.kernels import least_squares as least_squares
    from conepursuit.kernels import loss_fits as loss_fits
    from conepursuit.kernels import shared as shared
else:
    shared = _compiled.shared
    least_squares = _compiled.least_squares
    loss_fits = _compiled.loss_fits
    factorization = _compiled.factorization
