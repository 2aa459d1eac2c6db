"""What is asked of a scene in a file and of a map that is written, whatever the format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.files import reading

FORMATS = {
    ".hdr": "envi",
    ".mat": "plain",
    ".npy": "plain",
    ".npz": "plain",
    ".tif": "geotiff",
    ".tiff": "geotiff",
    ".nc": "labelled",
    ".nc4": "labelled",
    ".zarr": "labelled",
}
"""The modules that open files, by suffix."""

MAP_TYPE = np.dtype(np.float32)
"""The type of the numbers in maps; NaN where a pixel has no data."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene(ABC):
    """A scene in a file, of which a few rows are read at a time.

    Attributes
    ----------
    path : Path
        The file, or the folder of a Zarr store.
    shape : tuple of int
        (rows, columns, bands).
    dtype : dtype
        The type of the numbers that `read` returns.
    wavelengths : array of shape (bands,), optional
        The wavelengths of the bands, in the units of the file.
    no_data : float, optional
        A pixel of which all bands hold this value has no data.
    bad_bands : array of bool of shape (bands,), optional
        The bands that the file marks as bad.
    block_rows : int
        The rows that the file stores together: tiles of a multiple of them are read fastest.
    """

    path: Path
    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    wavelengths: Vector | None = None
    no_data: float | None = None
    bad_bands: Array | None = None
    block_rows: int = 1

    def read(self, rows: slice) -> Array:
        """Return some rows, an array (rows, columns, bands) in memory."""
        with reading(self.path, f"a whole {self.path.suffix} file"):
            return self._read(rows)

    @abstractmethod
    def _read(self, rows: slice) -> Array:
        """Return what `read` does, with whatever error the library of the format raises."""

    @abstractmethod
    def map_in(self, folder: Path, name: str, layers: Sequence[str]) -> MapFile:
        """Return the map of a name in a folder, of the format and the place of this scene.

        Nothing is written yet. Layers are what the map has in place of bands.
        """


@dataclass(frozen=True, eq=False, kw_only=True)
class MapFile(ABC):
    """A map on disk: the rows and columns of a scene, with a few layers in place of bands.

    Every method opens and closes the file, so that what is written does not depend on how often a
    run was interrupted.

    Attributes
    ----------
    path : Path
        The file.
    layers : sequence of str
        The names of the layers.
    """

    path: Path
    layers: Sequence[str]

    @abstractmethod
    def create(self, tile_rows: int) -> None:
        """Make the file, to be written in tiles of so many rows."""

    @abstractmethod
    def write(self, rows: slice, values: Array) -> None:
        """Write some rows, of shape (rows, columns, layers) and type `MAP_TYPE`."""

    @abstractmethod
    def read(self, rows: slice) -> Array:
        """Return some rows, of shape (rows, columns, layers)."""


def open_scene(given: str | Path) -> Scene:
    """Open the scene in a file; no pixel of a large one is read.

    Parameters
    ----------
    given : str or Path
        A file with a suffix in `FORMATS`; of ENVI the header. ``file.mat:name`` is one of several
        arrays in a .mat, .npz, NetCDF or Zarr file.

    Returns
    -------
    Scene
        The scene, with what its file says of wavelengths, bad bands and values without data.
    """
    path, name = _located(str(given))
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(
            f"{path}: a scene must have the suffix {', '.join(FORMATS)}; got {suffix!r}. Of an "
            "ENVI image, give the header."
        )
    with reading(path, f"a {suffix} file"):
        scene: Scene = import_module(f"conepursuit.scenes.{FORMATS[suffix]}").open_file(path, name)
    return scene


def _located(given: str) -> tuple[Path, str | None]:
    """Return the path of a file, and the name of the array in it if one was given."""
    if Path(given).exists():
        return Path(given), None
    start, _, name = given.rpartition(":")
    if start and Path(start).exists():
        return Path(start), name
    raise ValueError(f"{given}: there is no such file.")


def check_scene(given: str | Path, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Raise a ValueError unless an array can be a scene."""
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError(
            f"{given}: a scene must have the shape (rows, columns, bands), and a pixel; got "
            f"{tuple(shape)}. Reshape an array (pixels, bands) first."
        )
    if dtype.kind not in "fiu":
        raise ValueError(f"{given}: a scene must hold real numbers; got the type {dtype}.")


def chosen(path: Path, shapes: dict[str, tuple[int, ...]], name: str | None) -> str:
    """Return the array of a file that is the scene: the one of that name, or with three axes."""
    cubes = [key for key, shape in shapes.items() if len(shape) == 3]
    if name is None and len(cubes) == 1:
        return cubes[0]
    if name is not None and name in shapes:
        return name
    held = ", ".join(f"{key} {shape}" for key, shape in shapes.items()) or "none"
    asked = f"got {name!r}" if name is not None else f"{len(cubes)} of them have three axes"
    raise ValueError(f"{path} holds the arrays {held}; {asked}. Choose one by {path}:name.")


def imported(module: str, what: str) -> Any:
    """Return a module of a library that may be missing; the ImportError says how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(
            f'{what} needs {error.name}: pip install "conepursuit[scenes]".'
        ) from None
