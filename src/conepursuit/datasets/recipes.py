"""From originals, as they are distributed, to the arrays that loaders read.

A recipe takes the files in any order and under any names. Whether the arrays are the right ones is
decided by `contents`; a recipe fails only where it cannot go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.datasets.originals import (
    WrongOriginalError,
    is_matlab,
    is_nifti,
    matlab_file,
    nifti,
    numbers,
    table,
)
from conepursuit.datasets.reuters_recipe import reuters

JASPER_BANDS = np.r_[4:108, 113:154, 167:220].astype(np.uint8)
"""Channels of AVIRIS that the image of Jasper Ridge has kept, the first being 1."""


def cbcl_faces(paths: Sequence[Path]) -> dict[str, Array]:
    """Undo the photographic negative (256 - p) / 256, and make images of columns."""
    pixels = 256 - 256 * matlab_file(paths, "M")["M"]
    faces = np.rint(pixels.T).astype(np.uint8).reshape(-1, 19, 19)
    return {"faces": faces.transpose(0, 2, 1)}


def urban(paths: Sequence[Path]) -> dict[str, Array]:
    """Take two parts of the scene and the library; reflectances become integers, times 1000."""
    whole, part = matlab_file(paths, "data", "map"), matlab_file(paths, "im")
    library = matlab_file(paths, "lib6")
    return {
        "crop_a": whole["data"],
        "crop_a_anomaly_map": whole["map"],
        "crop_b": _thousandths(part["im"]),
        "library": _thousandths(library["A"]),
        "library_label": _labels(library, 6),
        "material_names": np.array([name.item() for name in library["material_names"].ravel()]),
    }


def _thousandths(reflectances: Array) -> Array:
    scaled: Array = np.rint(1000 * reflectances).astype(np.uint16)
    return scaled


def _labels(library: Mapping[str, Any], n: int) -> Array:
    """Return the number of the material of each spectrum; a library has lib1, lib2, ..."""
    sizes = [library[f"lib{i}"].shape[1] for i in range(1, n + 1)]
    return np.repeat(np.arange(n, dtype=np.uint8), sizes)


def _scene(paths: Sequence[Path], *materials: str) -> dict[str, Array]:
    """Take image, endmembers and abundances; pixels follow each other column by column."""
    scene = matlab_file(paths, "Y", "GT", "S_GT")
    shares = scene["S_GT"]
    return {
        "Y": scene["Y"],
        "endmembers": scene["GT"].T,
        "abundances": shares.reshape(-1, len(materials), order="F").T,
        "names": np.array(materials),
        "shape": np.array(shares.shape[:2], dtype=np.int64),
    }


def samson(paths: Sequence[Path]) -> dict[str, Array]:
    """Take the scene Samson."""
    return _scene(paths, "soil", "tree", "water")


def jasper_ridge(paths: Sequence[Path]) -> dict[str, Array]:
    """Take the scene Jasper Ridge, and its library of pure pixels."""
    library = matlab_file(paths, "lib4")
    return {
        **_scene(paths, "tree", "water", "soil", "road"),
        "max_value": np.array(5000, dtype=np.int64),
        "select_bands": JASPER_BANDS,
        "library": library["A"],
        "library_label": _labels(library, 4),
    }


def usgs_library(paths: Sequence[Path]) -> dict[str, Array]:
    """Sort the bands by wavelength; before the spectra stand wavelength, resolution and number."""
    library = matlab_file(paths, "datalib", "names")
    bands = library["datalib"][np.argsort(library["datalib"][:, 0], kind="stable")]
    names = (bytes(row).decode("latin-1").strip() for row in library["names"][3:])
    return {"wavelength_um": bands[:, 0], "spectra": bands[:, 3:], "names": np.array(list(names))}


def mutational_signatures(paths: Sequence[Path]) -> dict[str, Array]:
    """Bring signatures and catalogues to one order of channels, that of COSMIC."""
    text = [path for path in paths if not is_matlab(path)]
    cosmic, pcawg = table(text, "Type"), table(text, "Mutation type")
    breast = matlab_file([path for path in paths if is_matlab(path)], "originalGenomes", "types")
    channels = _shortest(cosmic[1:, 0])
    kinds, threes = ([one.item() for one in breast[name].ravel()] for name in ("types", "subtypes"))
    tumours = np.char.partition(pcawg[0, 2:], "::")
    return {
        "channels": channels,
        "cosmic_v3_4": cosmic[1:, 1:].astype(np.float64),
        "cosmic_names": _shortest(cosmic[0, 1:]),
        "pcawg_counts": _by_channel(pcawg[1:, 0], pcawg[1:, 1], pcawg[1:, 2:], channels),
        "pcawg_type": _shortest(tumours[:, 0]),
        "pcawg_id": _shortest(tumours[:, 2]),
        "breast21_counts": _by_channel(kinds, threes, breast["originalGenomes"], channels),
    }


def _by_channel(
    kinds: Iterable[str], threes: Iterable[str], counts: Array, channels: Array
) -> Array:
    """Return the rows of a catalogue, substitutions C>A in ACA, in the order of the channels."""
    own = [f"{three[0]}[{kind}]{three[2]}" for kind, three in zip(kinds, threes, strict=True)]
    return counts[[own.index(channel) for channel in channels.tolist()]].astype(np.uint32)


def _shortest(words: Array) -> Array:
    """Return text in the narrowest type that holds it."""
    return np.array(words.tolist())


def diffusion_mri(paths: Sequence[Path]) -> dict[str, Array]:
    """Take the image, and from lines of numbers the strength and the direction of its weighting."""
    image = [path for path in paths if is_nifti(path)]
    vectors = sorted((numbers(path) for path in paths if path not in image), key=np.ndim)
    if len(image) != 1 or [one.ndim for one in vectors] != [1, 2]:
        raise WrongOriginalError("an image, a file of b-values and one of b-vectors are needed")
    bval, bvec = vectors
    return {
        "signal": nifti(image[0]),
        "bval": bval,
        "bvec": bvec if bvec.shape[1] == 3 else bvec.T,
    }


RECIPES: dict[str, Callable[[Sequence[Path]], dict[str, Array]]] = {
    "cbcl_faces": cbcl_faces,
    "reuters": reuters,
    "urban": urban,
    "samson": samson,
    "jasper_ridge": jasper_ridge,
    "usgs_library": usgs_library,
    "mutational_signatures": mutational_signatures,
    "diffusion_mri_64": diffusion_mri,
    "diffusion_mri_101": diffusion_mri,
}
"""The recipe of every file that is not part of the package, by its name."""
