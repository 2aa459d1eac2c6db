"""Scenes that are plain arrays, in .npy, .npz and .mat files, and maps as .npy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from conepursuit.arrays import Array
from conepursuit.scenes.scene import MAP_TYPE, MapFile, Scene, check_scene, chosen


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainScene(Scene):
    """A scene in a .npy, .npz or .mat file.

    Attributes
    ----------
    array : callable
        Returns the array. A memory map is made again for every tile, since the pages of one that
        stays open count as memory of the process.
    """

    array: Callable[[], Array]

    def read(self, rows: slice) -> Array:
        return np.array(self.array()[rows], dtype=self.dtype)

    def map_in(self, folder: Path, name: str, layers: Sequence[str]) -> PlainMap:
        return PlainMap(path=folder / f"{name}.npy", layers=layers, size=self.shape[:2])


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainMap(MapFile):
    """A map in a .npy file; without the last axis where it has one layer.

    Attributes
    ----------
    size : tuple of int
        (rows, columns).
    """

    size: tuple[int, int]

    def create(self, tile_rows: int) -> None:
        shape = self.size if len(self.layers) == 1 else (*self.size, len(self.layers))
        values = np.lib.format.open_memmap(self.path, "w+", MAP_TYPE, shape)
        values.flush()

    def write(self, rows: slice, values: Array) -> None:
        stored = np.load(self.path, mmap_mode="r+")
        stored[rows] = values.reshape(-1, *stored.shape[1:])
        stored.flush()

    def read(self, rows: slice) -> Array:
        part = np.array(np.load(self.path, mmap_mode="r")[rows])
        return part.reshape(*part.shape[:2], len(self.layers))


def open_file(path: Path, name: str | None) -> PlainScene:
    """Open a .npy file as a memory map, or read the array of a name in a .npz or .mat file."""
    try:
        if path.suffix.lower() == ".npy":
            return _scene(path, lambda: np.load(path, mmap_mode="r", allow_pickle=False))
        arrays = _arrays_of_mat(path) if path.suffix.lower() == ".mat" else _arrays_of_npz(path)
    except (ValueError, EOFError, BadZipFile, TypeError) as error:
        raise ValueError(f"{path} cannot be read, or is damaged: {error}") from None
    key = chosen(path, {key: values.shape for key, values in arrays.items()}, name)
    return _scene(path, lambda: arrays[key])


def _scene(path: Path, array: Callable[[], Array]) -> PlainScene:
    found = array()
    check_scene(path, found.shape, found.dtype)
    native = found.dtype.newbyteorder("=")
    return PlainScene(path=path, shape=found.shape, dtype=native, array=array)


def _arrays_of_npz(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def _arrays_of_mat(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        held = loadmat(path)
    except NotImplementedError:
        raise ValueError(
            "it is of MATLAB's version 7.3, of which scipy reads none. Save it with -v7"
        ) from None
    except MatReadError as error:
        raise ValueError(str(error)) from None
    return {key: values for key, values in held.items() if isinstance(values, np.ndarray)}
