"""Scenes as they come, matrices of pixels as solvers take them, and answers of the same kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from conepursuit.arrays import Array, as_real_array

BAND_NAMES = "band", "bands", "wavelength", "wavelengths", "spectral", "channel"
"""Names of the dimension of a labelled array that runs over the bands; otherwise it is the last."""


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
        scene = self.labelled
        bands = scene.dims[-1]
        kept = {key: c for key, c in scene.coords.items() if bands not in c.dims}
        return type(scene)(values, dims=dims, coords=kept, attrs=scene.attrs, name=name)


def as_pixels(scene: Any) -> tuple[Array, Kind]:
    """Return a scene as an array (pixels, bands), and what kind it was.

    Parameters
    ----------
    scene : array_like of shape (pixels, bands) or (rows, columns, bands), or xarray.DataArray
        The scene. Of a DataArray, the bands are the dimension with a name in `BAND_NAMES`, or the
        last one. Numbers keep their type.
    """
    labelled = scene if hasattr(scene, "dims") and hasattr(scene, "coords") else None
    if labelled is not None:
        named = [dim for dim in labelled.dims if str(dim).lower() in BAND_NAMES]
        labelled = labelled.transpose(..., named[0] if named else labelled.dims[-1])
        scene = labelled.values
    if isinstance(scene, np.ma.MaskedArray):
        scene = np.ma.filled(scene.astype(np.float64), np.nan)
    values = as_real_array(scene, "the scene")
    if values.ndim not in (2, 3) or 0 in values.shape:
        raise ValueError(
            "a scene must have the shape (pixels, bands) or (rows, columns, bands), and a pixel; "
            f"got {values.shape}. Use X[None, :] for one pixel."
        )
    return values.reshape(-1, values.shape[-1]), Kind(values.shape[:-1], labelled)
