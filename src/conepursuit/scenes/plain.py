"""Scenes that are plain arrays, in .npy, .npz and .mat files, and maps as .npy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import unpack_from
from typing import Any
from zlib import decompress

import numpy as np

from conepursuit.arrays import Array
from conepursuit.scenes.scene import MAP_TYPE, MapFile, Scene, check_scene, chosen

MAT_MATRIX, MAT_COMPRESSED = 14, 15
MAT_KINDS = {*range(1, 8), 9, 12, 13, MAT_MATRIX, 16, 17, 18}
"""The kinds of elements in a .mat file of version 5, by their numbers there."""


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

    def _read(self, rows: slice) -> Array:
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
    if path.suffix.lower() == ".npy":
        return _scene(path, lambda: np.load(path, mmap_mode="r", allow_pickle=False))
    arrays = _arrays_of_mat(path) if path.suffix.lower() == ".mat" else _arrays_of_npz(path)
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
    from scipy.io.matlab import matfile_version

    if matfile_version(path)[0] == 1:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            _check_mat(content)
    try:
        held = loadmat(path)
    except NotImplementedError:
        raise ValueError(
            "it is of MATLAB's version 7.3, of which scipy reads none. Save it with -v7"
        ) from None
    return {key: values for key, values in held.items() if isinstance(values, np.ndarray)}


def _check_mat(data: bytes | mmap) -> None:
    """Raise a ValueError if elements of a .mat file are none; SciPy trusts them, and may crash."""
    order = "<" if bytes(data[126:128]) == b"IM" else ">"
    place = 128
    while place < len(data):
        kind, size = unpack_from(f"{order}II", data, place)
        end = place + 8 + size
        if kind == MAT_COMPRESSED:
            content = decompress(data[place + 8 : end])
            _check_elements(content, order, 0, len(content))
        else:
            _check_elements(data, order, place, min(end, len(data)))
        place = end


def _check_elements(data: bytes | mmap, order: str, place: int, stop: int) -> None:
    """Raise a ValueError unless elements of a .mat file fill the bytes up to a place."""
    start = place
    while place < stop:
        kind, size = unpack_from(f"{order}II", data, place)
        head = 8
        if kind >> 16:  # up to four bytes stand in place of their number
            kind, size, head = kind & 0xFFFF, kind >> 16, 4
        end = place + head + size
        if kind not in MAT_KINDS:
            raise ValueError(f"it has an element of the kind {kind}, and there is none")
        if end > stop:
            raise ValueError(f"it ends within an element of {size} bytes")
        if kind == MAT_MATRIX:
            _check_elements(data, order, place + head, end)
        place = end + (start - end) % 8
