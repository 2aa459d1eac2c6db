"""NetCDF and Zarr: scenes and maps with coordinates, through the library xarray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.scenes.scene import MAP_TYPE, MapFile, Scene, check_scene, chosen, imported
from conepursuit.unmixing.kinds import BAND_NAMES

NETCDF_LOCK = RLock()
"""The library of NetCDF fails if a thread writes one file while another reads one."""

LAYERS = "endmember"
"""The dimension of a map that runs over its layers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledScene(Scene):
    """A scene in a NetCDF file or a Zarr store.

    Attributes
    ----------
    array : xarray.DataArray
        The scene, not in memory, with its bands as the last dimension.
    """

    array: Any

    def _read(self, rows: slice) -> Array:
        with NETCDF_LOCK:
            return np.array(self.array[rows].values, dtype=self.dtype)

    def map_in(self, folder: Path, name: str, layers: Sequence[str]) -> LabelledMap:
        kind = ZarrMap if self.path.suffix.lower() == ".zarr" else NetcdfMap
        bands = self.array.dims[-1]
        kept = [key for key, c in self.array.coords.items() if bands not in c.dims]
        return kind(
            path=folder / f"{name}{kind.SUFFIX}",
            layers=layers,
            place=self.array.coords.to_dataset()[kept].drop_encoding(),
            sizes=dict(zip(self.array.dims, self.shape[:2], strict=False)),
            grid=self.array.encoding.get("grid_mapping"),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledMap(MapFile):
    """A map with the coordinates of its scene; it has a dimension of layers if there are several.

    Attributes
    ----------
    place : xarray.Dataset
        The coordinates of the scene that do not run over its bands.
    sizes : dict of str to int
        The names of the dimensions of rows and columns, and their lengths.
    grid : str, optional
        The coordinate that says how the scene is projected.
    """

    SUFFIX = ""

    place: Any
    sizes: dict[Any, int]
    grid: str | None

    def read(self, rows: slice) -> Array:
        with NETCDF_LOCK, _opened(self.path) as data:
            part = np.array(data[self.path.stem][rows].values)
        return part.reshape(*part.shape[:2], len(self.layers))

    def _dims(self) -> tuple[Any, ...]:
        return (*self.sizes, LAYERS) if len(self.layers) > 1 else tuple(self.sizes)

    def _shape(self) -> tuple[int, ...]:
        """Return the lengths of `_dims`."""
        sizes = {**self.sizes, LAYERS: len(self.layers)}
        return tuple(sizes[dim] for dim in self._dims())

    def _labels(self) -> Any:
        """Return the coordinates of the map: those of the scene, and the names of the layers."""
        if len(self.layers) == 1:
            return self.place
        return self.place.assign_coords({LAYERS: list(self.layers)})

    def _attributes(self) -> dict[str, str]:
        return {} if self.grid is None else {"grid_mapping": self.grid}


class NetcdfMap(LabelledMap):
    """A map in a NetCDF file."""

    SUFFIX = ".nc"

    def create(self, tile_rows: int) -> None:
        self._labels().to_netcdf(self.path, engine="netcdf4")
        with _netcdf().Dataset(self.path, "a") as file:
            for dim, length in zip(self._dims(), self._shape(), strict=True):
                if dim not in file.dimensions:
                    file.createDimension(dim, length)
            variable = file.createVariable(
                self.path.stem, MAP_TYPE, self._dims(), fill_value=nan, contiguous=True
            )
            variable.setncatts(self._attributes())

    def write(self, rows: slice, values: Array) -> None:
        with NETCDF_LOCK, _netcdf().Dataset(self.path, "a") as file:
            file[self.path.stem][rows] = values.reshape(-1, *self._shape()[1:])


class ZarrMap(LabelledMap):
    """A map in a Zarr store, with a chunk for each tile."""

    SUFFIX = ".zarr"

    def create(self, tile_rows: int) -> None:
        xarray = _xarray()
        # It takes no memory, and chunks that are all NaN are not stored.
        empty = np.broadcast_to(MAP_TYPE.type(nan), self._shape())
        variable = xarray.Variable(self._dims(), empty, self._attributes())
        chunks = (tile_rows, *self._shape()[1:])
        self._labels().assign({self.path.stem: variable}).to_zarr(
            self.path,
            mode="w-",
            encoding={self.path.stem: {"chunks": chunks, "_FillValue": nan}},
            zarr_format=2,  # with an index of its metadata, which version 3 does not have
        )

    def write(self, rows: slice, values: Array) -> None:
        part = values.reshape(-1, *self._shape()[1:])
        variable = _xarray().Variable(self._dims(), part)
        _xarray().Dataset({self.path.stem: variable}).to_zarr(
            self.path, mode="r+", region={self._dims()[0]: rows}
        )


def open_file(path: Path, name: str | None) -> LabelledScene:
    """Open the array of a name in a NetCDF file or a Zarr store, or the one with three axes."""
    data = _opened(path)
    shapes = {str(key): variable.shape for key, variable in data.data_vars.items()}
    array = data[chosen(path, shapes, name)]
    named = [dim for dim in array.dims if str(dim).lower() in BAND_NAMES]
    array = array.transpose(..., named[0] if named else array.dims[-1])
    check_scene(path, array.shape, array.dtype)
    chunks = array.encoding.get("preferred_chunks") or {}
    return LabelledScene(
        path=path,
        shape=array.shape,
        dtype=array.dtype.newbyteorder("="),
        wavelengths=_wavelengths(array),
        block_rows=int(chunks.get(array.dims[0], 1)),
        array=array,
    )


def _opened(path: Path) -> Any:
    """Return what xarray opens; values that stand for no data are NaN."""
    if path.suffix.lower() == ".zarr":
        imported("zarr", "reading Zarr")
        # On a disk, metadata are found without an index of them, which a store need not have.
        return _xarray().open_dataset(path, engine="zarr", decode_coords="all", consolidated=False)
    _netcdf()
    return _xarray().open_dataset(path, engine="netcdf4", decode_coords="all")


def _xarray() -> Any:
    return imported("xarray", "reading and writing NetCDF and Zarr")


def _netcdf() -> Any:
    return imported("netCDF4", "reading and writing NetCDF")


def _wavelengths(array: Any) -> Vector | None:
    """Return the coordinate of the bands, if it is one of numbers."""
    bands = array.dims[-1]
    along = [c for c in array.coords.values() if c.dims == (bands,) and c.dtype.kind in "fiu"]
    if not along:
        return None
    named = [c for c in along if "wavelength" in str(c.name).lower()]
    return np.asarray((named or along)[0].values, dtype=np.float64)
