"""GeoTIFF: scenes and maps, through the library rasterio."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.scenes.scene import MAP_TYPE, MapFile, Scene, check_scene, imported


@dataclass(frozen=True, eq=False, kw_only=True)
class TiffScene(Scene):
    """A scene in a GeoTIFF.

    Attributes
    ----------
    image : rasterio.DatasetReader
        The image, open.
    """

    image: Any

    def _read(self, rows: slice) -> Array:
        window = _window(rows, self.shape[1])
        with _rasterio().Env():  # without it, GDAL prints
            return np.ascontiguousarray(np.moveaxis(self.image.read(window=window), 0, 2))

    def map_in(self, folder: Path, name: str, layers: Sequence[str]) -> TiffMap:
        profile = {
            "driver": "GTiff",
            "dtype": MAP_TYPE.name,
            "height": self.shape[0],
            "width": self.shape[1],
            "count": len(layers),
            "crs": self.image.crs,
            "transform": self.image.transform,
            "nodata": nan,
            "interleave": "band",
            "BIGTIFF": "IF_SAFER",
        }
        return TiffMap(path=folder / f"{name}.tif", layers=layers, profile=profile)


@dataclass(frozen=True, eq=False, kw_only=True)
class TiffMap(MapFile):
    """A map in a GeoTIFF, with the place of its scene.

    Attributes
    ----------
    profile : dict
        What `rasterio.open` needs to make it.
    """

    profile: dict[str, Any]

    def create(self, tile_rows: int) -> None:
        # GDAL fills the file when it closes it, so that every tile has its place from the start.
        with _rasterio().open(self.path, "w", **self.profile) as file:
            file.descriptions = list(self.layers)

    def write(self, rows: slice, values: Array) -> None:
        with _rasterio().open(self.path, "r+") as file:
            window = _window(rows, self.profile["width"])
            file.write(np.ascontiguousarray(np.moveaxis(values, 2, 0)), window=window)

    def read(self, rows: slice) -> Array:
        with _rasterio().open(self.path) as file:
            return np.moveaxis(file.read(window=_window(rows, self.profile["width"])), 0, 2)


def open_file(path: Path, name: str | None) -> TiffScene:
    """Open a GeoTIFF."""
    if name is not None:
        raise ValueError(f"{path}: a GeoTIFF has no arrays with names; got {name!r}.")
    rasterio = _rasterio()
    with warnings.catch_warnings(), rasterio.Env():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        image = rasterio.open(path, driver="GTiff")
    shape = (image.height, image.width, image.count)
    dtype = np.result_type(*image.dtypes)
    check_scene(path, shape, dtype)
    return TiffScene(
        path=path,
        shape=shape,
        dtype=dtype,
        no_data=None if image.nodata is None else float(image.nodata),
        block_rows=int(image.block_shapes[0][0]),
        image=image,
    )


def _rasterio() -> Any:
    rasterio = imported("rasterio", "reading and writing GeoTIFF")
    imported("rasterio.errors", "reading and writing GeoTIFF")
    return rasterio


def _window(rows: slice, columns: int) -> Any:
    windows = imported("rasterio.windows", "reading and writing GeoTIFF")
    return windows.Window(0, rows.start, columns, rows.stop - rows.start)
