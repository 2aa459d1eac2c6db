"""Scenes as they come, matrices of pixels as solvers take them, and answers of the same kind."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from conepursuit.arrays import Array, as_real_array, is_labelled
from conepursuit.linear import is_dask
from conepursuit.matrix_fits.lazy import labelled, whole_targets

BAND_NAMES = "band", "bands", "wavelength", "wavelengths", "spectral", "channel"
"""Names of the dimension of a labelled array that runs over the bands; otherwise it is the last."""


SEARCHED = 2**30
"""The most of a Dask array, in bytes of float64, in which endmembers are looked for in memory."""


@dataclass(frozen=True, eq=False)
class Kind:
    """What a scene was given as, so that answers can be of the same kind.

    Attributes
    ----------
    shape : tuple of int
        The shape of an answer with one number for each pixel.
    labelled : DataArray or None
        The scene, where it is an `xarray.DataArray` with its bands as the last dimension.
    """

    shape: tuple[int, ...]
    labelled: Any = None

    def per_pixel(self, values: Array, name: str) -> Any:
        """Return one number for each pixel in the shape of the scene."""
        found = values.reshape(self.shape)
        if self.labelled is None:
            return found
        return self._labelled(found, self.labelled.dims[:-1], name)

    def per_endmember(self, values: Array) -> Any:
        """Return an array (pixels, n) in the shape of the scene, with a last axis of length n."""
        found = values.reshape(*self.shape, -1)
        if self.labelled is None:
            return found
        return self._labelled(found, (*self.labelled.dims[:-1], "endmember"), "abundance")

    def _labelled(self, values: Array, dims: Any, name: str) -> Any:
        """Return a DataArray with the coordinates of the scene that do not run over its bands."""
        return labelled(values, self.labelled, self.labelled.dims[-1], dims, name)


def bands_last(scene: Any) -> tuple[Any, Any]:
    """Return the array of a scene with its bands as the last axis, and its labels or None.

    Of a DataArray, the bands are the dimension with a name in `BAND_NAMES`, or the last one.
    """
    if not is_labelled(scene):
        return scene, None
    named = [dim for dim in scene.dims if str(dim).lower() in BAND_NAMES]
    turned = scene.transpose(..., named[0] if named else scene.dims[-1])
    return turned.data, turned


def as_lazy_scene(scene: Any) -> tuple[Any, Kind] | None:
    """Return a scene in a Dask array, with whole pixels in each block, and what kind it was.

    None if it is in memory.
    """
    values, labels = bands_last(scene)
    if not is_dask(values):
        return None
    check_shape(values.shape)
    return whole_targets(values, -1, "X"), Kind(values.shape[:-1], labels)


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise a ValueError if a scene has no such shape."""
    if len(shape) not in (2, 3) or 0 in shape:
        raise ValueError(
            "a scene must have the shape (pixels, bands) or (rows, columns, bands), and a pixel; "
            f"got {shape}. Use X[None, :] for one pixel."
        )


def check_size(shape: tuple[int, ...]) -> None:
    """Raise a ValueError if a scene is too large to look for its endmembers in memory."""
    size = 8 * prod(shape)
    if size > SEARCHED:
        raise ValueError(
            f"a scene of shape {shape} takes {size / 2**30:.3g} GiB in memory, where its "
            "endmembers are looked for. Call find_endmembers with a part of it, such as "
            "X[::4, ::4], and then unmix(X)."
        )


def as_pixels(scene: Any) -> tuple[Array, Kind]:
    """Return a scene as an array (pixels, bands), and what kind it was.

    Parameters
    ----------
    scene : array_like of shape (pixels, bands) or (rows, columns, bands), or xarray.DataArray
        The scene; `bands_last` says which dimension its bands are. Numbers keep their type.
    """
    scene, labels = bands_last(scene)
    if isinstance(scene, np.ma.MaskedArray):
        scene = np.ma.filled(scene.astype(np.float64), np.nan)
    values = as_real_array(scene, "the scene")
    check_shape(values.shape)
    return values.reshape(-1, values.shape[-1]), Kind(values.shape[:-1], labels)
