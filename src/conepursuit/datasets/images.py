"""Pictures of faces and of a head, and the diffusion of water in a brain."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.datasets.files import stored
from conepursuit.datasets.records import DataSet
from conepursuit.datasets.registry import FILES


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Images(DataSet):
    """Grey images of one size as the columns of a matrix.

    Attributes
    ----------
    V : array of shape (n_pixels, n_images)
        The pixels of an image, row by row.
    shape : tuple of int
        Height and width.
    """

    V: Array
    shape: tuple[int, int]

    def images(self, W: Array | None = None) -> Array:
        """Return the columns of W, by default of V, as an array (n_images, height, width)."""
        columns = self.V if W is None else np.asarray(W)
        return columns.T.reshape(-1, *self.shape)


def load_cbcl_faces(*, scaled: bool = True, folder: str | os.PathLike[str] | None = None) -> Images:
    """Load the 2,429 faces of 19 x 19 pixels of the MIT CBCL database, all upright.

    Parameters
    ----------
    scaled : bool
        True standardises all pixels p by one mean and one deviation and clips them, as the paper
        does: ((p - mean) / std + 1/4) / 4 on [0, 1]. Then ||V||^2 = 42823.17 and 44 % are zero.
        False keeps the integers from 0 to 255.
    folder : path, optional
        Where to look first, see `find`.

    Returns
    -------
    Images
        With V of shape (361, 2429), faces as columns, and ``images()``.
    """
    faces = stored("cbcl_faces", folder)["faces"]
    V = faces.reshape(len(faces), -1).T
    if scaled:
        p = V.astype(np.float64)
        V = np.clip(((p - p.mean()) / p.std() + 0.25) * 0.25, 0.0, 1.0)
    return Images(source=FILES["cbcl_faces"], V=V, shape=faces.shape[1:])


def load_mni152(*, scaled: bool = True, folder: str | os.PathLike[str] | None = None) -> Images:
    """Load 24 axial slices of an average head, the ICBM152 T1 template.

    Parameters
    ----------
    scaled : bool
        True divides by the mean of all pixels; False keeps the integers from 0 to 254.
    folder : path, optional
        Where to look first, see `find`.

    Returns
    -------
    Images
        With V of shape (45901, 24), slices as columns, and ``images()``.
    """
    volume = stored("mni152", folder)["volume"]
    V = volume.reshape(len(volume), -1).T
    if scaled:
        V = V.astype(np.float64) / volume.mean()
    return Images(source=FILES["mni152"], V=V, shape=volume.shape[1:])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DiffusionMRI(DataSet):
    """The signal of diffusion-weighted magnetic resonance in a small block of a brain.

    Attributes
    ----------
    Y : array of shape (n_measurements, n_voxels)
        The signal as float64, voxels as columns.
    bvals : array of shape (n_measurements,)
        How strongly a measurement is weighted by diffusion, in s/mm^2.
    bvecs : array of shape (n_measurements, 3)
        In which direction: unit vectors, and zero where there is none.
    shape : tuple of int
        Of the block.
    """

    Y: Array
    bvals: Vector
    bvecs: Array
    shape: tuple[int, int, int]

    def volumes(self, H: Array | None = None) -> Array:
        """Return the rows of H, by default of Y, as an array (n_rows, *shape)."""
        rows = self.Y if H is None else np.asarray(H)
        return rows.reshape(-1, *self.shape)


def load_diffusion_mri(
    directions: Literal[64, 101] = 64, *, folder: str | os.PathLike[str] | None = None
) -> DiffusionMRI:
    """Load a block of a diffusion-weighted image.

    Parameters
    ----------
    directions : 64 or 101
        64 has 65 measurements of 10 x 10 x 10 voxels, all but one at about 1000 s/mm^2; 101 has
        102 of 6 x 10 x 10 voxels, at 15 to 4065 s/mm^2.
    folder : path, optional
        Where to look first, see `find`.

    Returns
    -------
    DiffusionMRI
        With attributes Y, bvals, bvecs and shape. The measurement without weighting of the first
        has no direction; its vector, NaN as shipped, is zero here.
    """
    if directions not in (64, 101):
        raise ValueError(f"directions must be 64 or 101; got {directions!r}.")
    name = f"diffusion_mri_{directions}"
    z = stored(name, folder)
    signal = z["signal"]
    return DiffusionMRI(
        source=FILES[name],
        Y=signal.reshape(-1, signal.shape[-1]).T.astype(np.float64),
        bvals=z["bval"],
        bvecs=np.nan_to_num(z["bvec"]),
        shape=signal.shape[:-1],
    )
