"""Imaging spectroscopy: scenes of which every pixel is a spectrum, and libraries of spectra."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.datasets.files import stored
from conepursuit.datasets.records import DataSet, Record
from conepursuit.datasets.registry import FILES

URBAN_SCALE = 1000
"""What a reflectance of 1 is stored as."""

URBAN_REMOVED = np.r_[1:5, 76, 87, 101:112, 136:154, 198:211]
"""Channels of the 210 that water vapour or noise spoils, the first being 1."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Cube(Record):
    """An image of spectra.

    Attributes
    ----------
    Y : array of shape (n_bands, n_pixels)
        The spectra, pixels as columns.
    shape : tuple of int
        Rows and columns of the image.
    order : {"C", "F"}
        Whether the pixels follow each other row by row, "C", or column by column, "F".
    """

    Y: Array
    shape: tuple[int, int]
    order: Literal["C", "F"]

    @property
    def image(self) -> Array:
        """The same as an array of shape (rows, columns, n_bands)."""
        return np.moveaxis(self.maps(self.Y), 0, -1)

    def maps(self, H: Array) -> Array:
        """Return the rows of H, abundances say, as an array (n_rows, rows, columns)."""
        H = np.asarray(H)
        if H.ndim != 2 or H.shape[1] != self.Y.shape[1]:
            raise ValueError(
                f"H must have one column for each of the {self.Y.shape[1]} pixels; got shape "
                f"{H.shape}."
            )
        if self.order == "C":
            return H.reshape(-1, *self.shape)
        return H.reshape(-1, *self.shape[::-1]).transpose(0, 2, 1)

    def window(self, rows: int, columns: int) -> Cube:
        """Return the upper left corner of the image, its pixels row by row."""
        return _cube(self.image[:rows, :columns])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Scene(DataSet, Cube):
    """An image of spectra whose materials, and their shares in every pixel, are taken as known.

    The truth is an estimate by F. Zhu, not a measurement.

    Attributes
    ----------
    Y : array of shape (n_bands, n_pixels)
        The reflectance, pixels as columns.
    shape, order
        How the pixels make an image, see `Cube`.
    endmembers : array of shape (n_bands, k)
        The spectra of the materials.
    abundances : array of shape (k, n_pixels)
        The share of every material in a pixel.
    materials : array of str of shape (k,)
        What they are called.
    """

    endmembers: Array
    abundances: Array
    materials: Array


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JasperRidge(Scene):
    """Jasper Ridge: trees, water, soil and a road, with a library of pure pixels.

    Attributes
    ----------
    Y : array of shape (198, 10000)
        The reflectance, pixels as columns; the stored integers where not scaled.
    shape, order
        How the pixels make an image, see `Cube`.
    endmembers, abundances, materials : array
        The truth, see `Scene`: reflectances of shape (198, 4), shares of shape (4, 10000), names.
    bands : array of int of shape (198,)
        The channels of AVIRIS that were kept, of 224, the first being 1.
    library : array of shape (198, 529)
        The reflectance of pure pixels.
    library_labels : array of str of shape (529,)
        The material of each.
    """

    bands: Array
    library: Array
    library_labels: Array


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Urban(DataSet):
    """Two parts of the HYDICE scene Urban, and a library of pure pixels from all of it.

    The parts have no pixel in common. There is no truth; `endmembers` stands in.

    Attributes
    ----------
    crop_a, crop_b : Cube
        Of 80 x 100 and 34 x 78 pixels in 162 bands.
    anomalies : array of bool of shape (80, 100)
        Which pixels of crop_a are marked as anomalous.
    library : array of shape (162, 651)
        Pure pixels.
    library_labels : array of str of shape (651,)
        The material of each.
    materials : array of str of shape (6,)
        What the materials are called.
    bands : array of int of shape (162,)
        The channels that were kept, of 210, the first being 1.
    """

    crop_a: Cube
    crop_b: Cube
    anomalies: Array
    library: Array
    library_labels: Array
    materials: Array
    bands: Array

    @property
    def endmembers(self) -> Array:
        """The mean spectrum of every material in the library, of shape (162, 6)."""
        of = (self.library[:, self.library_labels == name] for name in self.materials)
        return np.column_stack([spectra.mean(axis=1) for spectra in of])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SpectralLibrary(DataSet):
    """Spectra of minerals and other materials.

    Attributes
    ----------
    spectra : array of shape (n_bands, n_spectra)
        Reflectances, spectra as columns.
    wavelengths : array of shape (n_bands,)
        In micrometres, ascending.
    names : array of str of shape (n_spectra,)
        What the spectra are of.
    """

    spectra: Array
    wavelengths: Vector
    names: Array


def load_samson(*, folder: str | os.PathLike[str] | None = None) -> Scene:
    """Load the scene Samson: soil, trees and water.

    Parameters
    ----------
    folder : path, optional
        Where to look first, see `find`.

    Returns
    -------
    Scene
        95 x 95 pixels in 156 bands from 0 to 1, three endmembers. Each endmember was scaled to a
        maximum of 1 (water to 0.999), so that abundances are not the weights of a fit of Y.
    """
    z = stored("samson", folder)
    return Scene(
        source=FILES["samson"],
        Y=z["Y"],
        shape=_shape(z["shape"]),
        order="F",
        endmembers=z["endmembers"],
        abundances=z["abundances"],
        materials=z["names"],
    )


def load_jasper_ridge(
    *, scaled: bool = True, folder: str | os.PathLike[str] | None = None
) -> JasperRidge:
    """Load the scene Jasper Ridge: trees, water, soil and a road.

    Parameters
    ----------
    scaled : bool
        True divides Y by 5000, which makes it a reflectance as endmembers and library are; False
        keeps the integers from 0 to 5437.
    folder : path, optional
        Where to look first, see `find`.

    Returns
    -------
    JasperRidge
        100 x 100 pixels in 198 bands, four endmembers, and a library of 529 pure pixels.
    """
    z = stored("jasper_ridge", folder)
    return JasperRidge(
        source=FILES["jasper_ridge"],
        Y=z["Y"] / z["max_value"] if scaled else z["Y"],
        shape=_shape(z["shape"]),
        order="F",
        endmembers=z["endmembers"],
        abundances=z["abundances"],
        materials=z["names"],
        bands=z["select_bands"].astype(np.intp),
        library=z["library"],
        library_labels=z["names"][z["library_label"]],  # its own names say dirt for soil
    )


def load_urban(*, scaled: bool = True, folder: str | os.PathLike[str] | None = None) -> Urban:
    """Load parts of the HYDICE scene Urban, and its library of pure pixels.

    The paper took every fourth pixel of the whole scene, 5,929 of them; as many are in
    ``crop_a.window(77, 77)``.

    Parameters
    ----------
    scaled : bool
        True divides by 1000, which makes everything a reflectance; False keeps the integers.
    folder : path, optional
        Where to look first, see `find`.

    Returns
    -------
    Urban
        With attributes crop_a, crop_b, anomalies, library, library_labels, materials, bands and
        endmembers.
    """
    z = stored("urban", folder)
    a, b, library = (
        z[name] / URBAN_SCALE if scaled else z[name] for name in ("crop_a", "crop_b", "library")
    )
    return Urban(
        source=FILES["urban"],
        crop_a=_cube(a),
        crop_b=_cube(b),
        anomalies=z["crop_a_anomaly_map"].astype(bool),
        library=library,
        library_labels=z["material_names"][z["library_label"]],
        materials=z["material_names"],
        bands=np.setdiff1d(np.arange(1, 211), URBAN_REMOVED),
    )


def load_usgs_library(*, folder: str | os.PathLike[str] | None = None) -> SpectralLibrary:
    """Load the spectral library of the USGS of 1995, as AVIRIS would see it.

    Parameters
    ----------
    folder : path, optional
        Where to look first, see `find`.

    Returns
    -------
    SpectralLibrary
        498 reflectances in 224 bands from 0.38 to 2.51 micrometres; none is missing.
    """
    z = stored("usgs_library", folder)
    return SpectralLibrary(
        source=FILES["usgs_library"],
        spectra=z["spectra"],
        wavelengths=z["wavelength_um"],
        names=z["names"],
    )


def _cube(image: Array) -> Cube:
    """Return an array of shape (rows, columns, n_bands) with its pixels row by row."""
    rows, columns, n_bands = image.shape
    return Cube(Y=image.reshape(-1, n_bands).T, shape=(rows, columns), order="C")


def _shape(stored_shape: Array) -> tuple[int, int]:
    rows, columns = stored_shape.tolist()
    return rows, columns
