"""Real data to try things on, and generators of problems with known properties.

The loaders read prepared files, from the folder that the environment variable CONEPURSUIT_DATA
names, from `cache_folder()`, or from the package, which has what is small and may be passed on
(``packaged``, with the licences). `available` says which are here. The others are prepared by `add`
from the originals that their owners or carriers distribute, and `fetch` downloads these where the
terms allow it. A file is known by the arrays in it, so that anybody can make it.

- ``registry``, ``contents``: which files there are, and what they hold.
- ``files``, ``records``: where they lie, what loaders return.
- ``preparing``: `add` and `fetch`; ``recipes`` (with ``reuters_recipe``) make arrays of what
  ``originals`` reads.
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
    DatasetContentError,
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
from conepursuit.datasets.preparing import add, fetch
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
    "DatasetContentError",
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
    "add",
    "available",
    "cache_folder",
    "fetch",
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
