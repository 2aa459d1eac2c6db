"""ENVI: scenes, maps and libraries of spectra, through the library spectral."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import nan, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.files import reading
from conepursuit.scenes.scene import MAP_TYPE, MapFile, Scene, check_scene, imported

PLACE = "map info", "coordinate system string", "projection info", "geo points"
"""The fields of a header that say where on Earth its image is."""

MOST_BYTES, MOST_LINES = 2**23, 50_000
"""The most that is read of a header."""

ORDERS = "bsq", "bil", "bip", "BSQ", "BIL", "BIP"
"""The orders of numbers in an image by which spectral goes; any other it takes for bsq."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EnviScene(Scene):
    """A scene in an ENVI image.

    Attributes
    ----------
    image : spectral.SpyFile
        The image, as spectral opens it.
    """

    image: Any

    def _read(self, rows: slice) -> Array:
        # A memory map that stays open keeps its pages, which count as memory of the process.
        stored = self.image.open_memmap(interleave="bip")[rows]
        if self.image.scale_factor != 1:
            return np.asarray(stored / self.dtype.type(self.image.scale_factor), dtype=self.dtype)
        return np.array(stored, dtype=self.dtype)

    def map_in(self, folder: Path, name: str, layers: Sequence[str]) -> EnviMap:
        header = self.image.metadata
        place = {key: header[key] for key in PLACE if key in header}
        return EnviMap(path=folder / f"{name}.hdr", layers=layers, size=self.shape[:2], place=place)


@dataclass(frozen=True, eq=False, kw_only=True)
class EnviMap(MapFile):
    """A map in an ENVI image, layer after layer, with its numbers in a .img file.

    Attributes
    ----------
    size : tuple of int
        (rows, columns).
    place : dict
        Fields of the header of the scene, see `PLACE`.
    """

    size: tuple[int, int]
    place: dict[str, Any]

    def create(self, tile_rows: int) -> None:
        header = {
            **self.place,
            "band names": [name.replace(",", ";") for name in self.layers],
            "data ignore value": nan,
        }
        shape = (*self.size, len(self.layers))
        _envi("writing ENVI images").create_image(
            str(self.path), header, dtype=MAP_TYPE, shape=shape, interleave="bsq"
        )

    def write(self, rows: slice, values: Array) -> None:
        stored = self._image().open_memmap(interleave="bip", writable=True)
        stored[rows] = values
        stored.flush()

    def read(self, rows: slice) -> Array:
        return np.array(self._image().open_memmap(interleave="bip")[rows])

    def _image(self) -> Any:
        return _envi("writing ENVI images").open(str(self.path))


class EnviLibrary(NamedTuple):
    """The spectra of an ENVI library.

    Attributes
    ----------
    names : list of str
        What they are of.
    spectra : array of shape (n, bands)
        One spectrum per row.
    """

    names: list[str]
    spectra: Array


def open_file(path: Path, name: str | None) -> EnviScene:
    """Open the image of an ENVI header, after a look at the size of its data."""
    if name is not None:
        raise ValueError(f"{path}: an ENVI image has no arrays with names; got {name!r}.")
    image = _opened(path, "reading ENVI images")
    if not hasattr(image, "open_memmap"):
        raise ValueError(f"{path} is a library of spectra, not a scene. Use it as --library.")
    shape = (int(image.nrows), int(image.ncols), int(image.nbands))
    stored = np.dtype(image.dtype)
    check_scene(path, shape, stored)
    _check_size(path, image, shape, stored)
    native = stored.newbyteorder("=")
    scaled = np.result_type(native, np.float32) if image.scale_factor != 1 else native
    header = image.metadata
    return EnviScene(
        path=path,
        shape=shape,
        dtype=scaled,
        wavelengths=_per_band(path, "wavelength", image.bands.centers, shape[2]),
        no_data=_no_data(path, header, image.scale_factor),
        bad_bands=_bad_bands(path, header, shape[2]),
        image=image,
    )


def read_library(path: Path) -> EnviLibrary:
    """Return the spectra of an ENVI library: of a .sli file with a header beside it, or the header.

    Parameters
    ----------
    path : Path
        ``minerals.sli`` with ``minerals.hdr`` or ``minerals.sli.hdr``, or one of these headers.
    """
    headers = [path] if path.suffix.lower() == ".hdr" else [path.with_suffix(".hdr")]
    headers += [path.with_name(f"{path.name}.hdr")]
    header = next((file for file in headers if file.is_file()), None)
    if header is None:
        raise ValueError(f"{path}: there is no header {headers[0]} beside it.")
    library = _opened(header, "reading ENVI libraries")
    if not hasattr(library, "spectra"):
        raise ValueError(f"{path} is an image, not a library of spectra.")
    spectra = np.asarray(library.spectra, dtype=np.float64)
    names = [str(name) for name in library.names]
    return EnviLibrary(names, spectra)


def _envi(what: str) -> Any:
    return imported("spectral.io.envi", what)


def _opened(path: Path, what: str) -> Any:
    """Return what spectral opens, with errors as a ValueError that names the file."""
    envi = _envi(what)
    with warnings.catch_warnings(), _unlogged(), reading(path, "a header of ENVI's"):
        warnings.simplefilter("ignore")  # names of fields in capitals: nothing to be done
        _check_text(path)
        _check_fields(envi.read_envi_header(str(path)))
        return envi.open(str(path))


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep spectral from printing that it does not understand a field."""
    logger = logging.getLogger("spectral")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _check_text(path: Path) -> None:
    """Raise a ValueError if a header is too long to be read; spectral is slow for many lines."""
    size = path.stat().st_size
    lines = len(path.read_bytes().splitlines()) if size <= MOST_BYTES else 0
    if max(size / MOST_BYTES, lines / MOST_LINES) > 1:
        raise ValueError(f"it has {size} bytes; {MOST_BYTES} on {MOST_LINES} lines are the most")


def _check_fields(header: dict[str, Any]) -> None:
    """Raise a ValueError if fields have values from which spectral would make something else."""
    for name in ("samples", "lines", "bands"):
        if int(header[name]) < 1:
            raise ValueError(f"{name} must be a positive number; got {header[name]}")
    if header["interleave"] not in ORDERS:
        raise ValueError(f"interleave must be bsq, bil or bip; got {header['interleave']!r}")
    if header["byte order"] not in ("0", "1"):
        raise ValueError(f"byte order must be 0 or 1; got {header['byte order']!r}")
    scale = float(header.get("reflectance scale factor", 1.0))
    if not np.isfinite(scale) or scale == 0.0:
        raise ValueError(f"reflectance scale factor must be finite and not 0; got {scale}")


def _check_size(path: Path, image: Any, shape: tuple[int, ...], stored: np.dtype[Any]) -> None:
    """Raise a ValueError unless the file of the numbers has the size that the header implies."""
    expected = int(image.offset) + prod(shape) * stored.itemsize
    found = Path(image.filename).stat().st_size
    if found != expected:
        kind = "truncated" if found < expected else "too long"
        raise ValueError(
            f"{image.filename} is {kind}: {path} says {shape[0]} rows, {shape[1]} columns and "
            f"{shape[2]} bands of {stored.name}, which take {expected} bytes; got {found}."
        )


def _per_band(path: Path, field: str, values: Any, bands: int) -> Vector | None:
    """Return a number for each band, if the header has them."""
    if not values:
        return None
    if len(values) != bands:
        raise ValueError(
            f"{path}: the field {field!r} must have a number for each of {bands} bands; got "
            f"{len(values)}."
        )
    return np.asarray(values, dtype=np.float64)  # text is an error, of which `reading` tells


def _bad_bands(path: Path, header: dict[str, Any], bands: int) -> Array | None:
    """Return which bands the header marks as bad, by zeros in the field bbl."""
    good = _per_band(path, "bbl", header.get("bbl"), bands)
    return None if good is None else good == 0


def _no_data(path: Path, header: dict[str, Any], scale: float) -> float | None:
    """Return the value that stands for no data, in the units of what is read."""
    given = header.get("data ignore value")
    if given is None:
        return None
    try:
        return float(given) / scale
    except (TypeError, ValueError):
        raise ValueError(
            f"{path}: the field 'data ignore value' must be a number; got {given!r}."
        ) from None
