"""Real data to try things on, and generators of problems with known properties.

The loaders read prepared files, which are not part of the package and are never downloaded: most
are other people's, and some not ours to pass on. `available` says which are here. A file that is
missing is named by the error, with where it comes from, under which terms, and where to put it:
the folder that the environment variable CONEPURSUIT_DATA names, or `cache_folder()`.

- ``registry``, ``files``, ``records``: which files there are, where they lie, what loaders return.
- ``spectra``, ``images``, ``counts``, ``sonar``: the loaders.
- ``generators``: problems that are made.

>>> from conepursuit.datasets import make_sparse_conic
>>> atoms, weights, y = make_sparse_conic(50, 100, 5, random_state=0)
>>> atoms.shape, int((weights > 0).sum()), bool(abs(atoms @ weights - y).max() < 1e-12)
((50, 100), 5, True)
"""

from conepursuit.datasets.counts import (
    MutationalSignatures,
    Reuters,
    load_mutational_signatures,
    load_reuters,
)
from conepursuit.datasets.files import (
    Availability,
    DatasetChecksumError,
    DatasetNotFoundError,
    available,
    cache_folder,
    find,
)
from conepursuit.datasets.generators import (
    SparseConic,
    iter_synthetic,
    make_sparse_conic,
    make_synthetic,
    make_theta_set,
)
from conepursuit.datasets.images import (
    DiffusionMRI,
    Images,
    load_cbcl_faces,
    load_diffusion_mri,
    load_mni152,
)
from conepursuit.datasets.records import DataSet
from conepursuit.datasets.registry import FILES, File
from conepursuit.datasets.sonar import Sonar, load_sonar
from conepursuit.datasets.spectra import (
    Cube,
    JasperRidge,
    Scene,
    SpectralLibrary,
    Urban,
    load_jasper_ridge,
    load_samson,
    load_urban,
    load_usgs_library,
)

__all__ = [
    "FILES",
    "Availability",
    "Cube",
    "DataSet",
    "DatasetChecksumError",
    "DatasetNotFoundError",
    "DiffusionMRI",
    "File",
    "Images",
    "JasperRidge",
    "MutationalSignatures",
    "Reuters",
    "Scene",
    "Sonar",
    "SparseConic",
    "SpectralLibrary",
    "Urban",
    "available",
    "cache_folder",
    "find",
    "iter_synthetic",
    "load_cbcl_faces",
    "load_diffusion_mri",
    "load_jasper_ridge",
    "load_mni152",
    "load_mutational_signatures",
    "load_reuters",
    "load_samson",
    "load_sonar",
    "load_urban",
    "load_usgs_library",
    "make_sparse_conic",
    "make_synthetic",
    "make_theta_set",
]
