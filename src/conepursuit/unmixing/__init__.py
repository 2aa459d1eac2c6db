"""Hyperspectral unmixing: the spectra of pure materials in a scene, and how good they are.

Everywhere here a scene is an array X of shape (pixels, bands), endmembers are one spectrum per
row, (n, bands), and abundances have shape (pixels, n), so that ``X ~ abundances @ endmembers``.

- ``pixels``: what an extractor may take for granted of X, and which of near equals is chosen.
- ``extraction``: `spa`, `snpa` and `xray`, which choose pixels one after the other.
- ``subspace``: `vca`, and `hysime`, the number of endmembers; both look at leading eigenvectors.
- ``clustering``: `h2nmf`, which splits the scene into clusters.
- ``agreement``: spectral angles, the matching of endmembers to a truth, the error of abundances.
- ``unmixer``: `Unmixer`, from a scene to abundances; ``kinds``: images and labelled arrays.

Extractors return the indices of pixels; ``X[indices]`` are the endmembers. Pixels that are all
zero count as absent: they are never chosen.
"""

from conepursuit.unmixing.agreement import (
    Matching,
    abundance_rmse,
    match_endmembers,
    spectral_angles,
)
from conepursuit.unmixing.clustering import Clusters, h2nmf
from conepursuit.unmixing.extraction import snpa, spa, xray
from conepursuit.unmixing.subspace import hysime, vca
from conepursuit.unmixing.unmixer import Unmixed, Unmixer

__all__ = [
    "Clusters",
    "Matching",
    "Unmixed",
    "Unmixer",
    "abundance_rmse",
    "h2nmf",
    "hysime",
    "match_endmembers",
    "snpa",
    "spa",
    "spectral_angles",
    "vca",
    "xray",
]
