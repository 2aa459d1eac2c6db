"""Spectra for ``conepursuit unmix``: read from libraries, and written as .csv."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.cli import printable
from conepursuit.cli.layouts import Layout
from conepursuit.cli.opening import kind_of
from conepursuit.cli.reading import check_entries, read
from conepursuit.cli.tables import TABLES, first_cells
from conepursuit.cli.writing import write_csv

LABELS = "band", "wavelength", "name"
"""What the first heading of a table begins with, in any case, whose first column holds labels."""


@dataclass(frozen=True, eq=False)
class Endmembers:
    """Spectra, and what is known of them.

    Attributes
    ----------
    names : list of str
        What they are of.
    spectra : array of shape (n, bands)
        One spectrum per row.
    source : str
        Where they come from, in words.
    """

    names: list[str]
    spectra: Array
    source: str


def numbered(n: int) -> list[str]:
    """Return names for endmembers that have none."""
    return [f"endmember {i + 1}" for i in range(n)]


def read_library(given: str, bands: int, layout: Layout) -> Endmembers:
    """Return the spectra of a library.

    Parameters
    ----------
    given : str
        An ENVI library (.sli, or its header), or a table (.csv, .tsv or .txt, perhaps compressed)
        of which the lines or the columns are bands.
    bands : int
        The bands of the scene. A table with as many lines has one spectrum per column; one with
        as many columns has one per row.
    layout : Layout
        Whether a table has a header and labels.
    """
    path = Path(given)
    if not path.is_file():
        raise ValueError(f"--library: {given}: there is no such file.")
    if path.suffix.lower() in (".sli", ".hdr"):
        from conepursuit.scenes import envi

        names, spectra = envi.read_library(path)
        found = Endmembers(names, spectra, f"ENVI library {path.name}")
    elif kind_of(path) in TABLES:
        found = _of_table(path, bands, layout)
    else:
        raise ValueError(
            f"--library must be an ENVI library (.sli), .csv, .tsv or .txt; got {path.suffix!r}."
        )
    if found.spectra.shape[1] != bands:
        raise ValueError(
            f"--library: {given} has spectra of {found.spectra.shape[1]} bands, and the scene has "
            f"{bands}. Resample the library to the bands of the scene."
        )
    if not np.isfinite(found.spectra).all() or not found.spectra.any(axis=1).all():
        raise ValueError(
            f"--library: {given} must hold finite numbers, and no spectrum that is all zero."
        )
    names = [printable(name) for name in found.names]  # they go into maps, pictures and reports
    return Endmembers(names, found.spectra, found.source)


def _of_table(path: Path, bands: int, layout: Layout) -> Endmembers:
    """Return the spectra of a table, by columns or by rows."""
    data = read(str(path), _labelled(path, layout))
    check_entries(data, missing=False)
    lines, columns = data.values.shape
    if bands not in (lines, columns):
        raise ValueError(
            f"--library: {path} must have a line or a column for each of the {bands} bands of the "
            f"scene; got {lines} lines and {columns} columns of numbers. Resample the library to "
            "the bands of the scene."
        )
    by_columns = lines == bands
    spectra = data.values.T if by_columns else data.values
    names = (data.columns if by_columns else data.rows) or numbered(len(spectra))
    way = "one spectrum per column" if by_columns else "one spectrum per row"
    return Endmembers(list(names), np.array(spectra, dtype=np.float64), f"{path.name}, {way}")


def _labelled(path: Path, layout: Layout) -> Layout:
    """Return the layout, with labels of rows where the first heading says that there are some."""
    if layout.row_names is not None or layout.header is False:
        return layout
    first = first_cells(path)
    if first and first[0].strip().lower().startswith(LABELS):
        return Layout(header=True, row_names=True)
    return layout


def write_spectra(
    path: Path, names: Sequence[str], spectra: Array, wavelengths: Vector | None
) -> None:
    """Write spectra as a table with one per column, and wavelengths or numbers of bands."""
    heading = "band" if wavelengths is None else "wavelength"
    along = range(spectra.shape[1]) if wavelengths is None else wavelengths.tolist()
    rows = ([label, *values] for label, values in zip(along, spectra.T.tolist(), strict=True))
    write_csv(path, [heading, *names], rows)


def read_spectra(path: Path, source: str) -> Endmembers:
    """Return what `write_spectra` wrote, with all digits."""
    data = read(str(path), Layout(header=True, row_names=True))
    spectra = np.ascontiguousarray(data.values.T)
    return Endmembers([printable(name) for name in data.columns or ()], spectra, source)
