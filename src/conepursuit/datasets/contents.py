"""What the files of data hold: dtype, shape and a hash of each array that a loader reads.

Files are known by their content, not by their bytes: whoever prepares the same data makes another
file, compressed by another library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from conepursuit.arrays import Array


@dataclass(frozen=True)
class Content:
    """What an array holds.

    Attributes
    ----------
    dtype : str
        Its type, as ``dtype.str`` gives it.
    shape : tuple of int
        Its shape.
    digest : str
        The BLAKE2b hash of its entries row by row, 16 bytes in hexadecimal.

    Examples
    --------
    >>> import numpy as np
    >>> Content.of(np.zeros((2, 3), dtype=np.uint8))
    Content(dtype='|u1', shape=(2, 3), digest='47ee6a0fc73ed479c76c97e8a878cf94')
    """

    dtype: str
    shape: tuple[int, ...]
    digest: str

    @classmethod
    def of(cls, array: Array) -> Content:
        """Return the content of an array, whatever its order in memory."""
        digest = blake2b(array.tobytes(), digest_size=16).hexdigest()
        return cls(array.dtype.str, array.shape, digest)


def difference(arrays: Mapping[str, Array], expected: Mapping[str, Content]) -> str | None:
    """Return in which way arrays are not what is expected, None where they are.

    Arrays that are not expected do no harm.
    """
    for name, content in expected.items():
        if name not in arrays:
            return f"there is no array {name!r}, but {', '.join(map(repr, arrays)) or 'none'}"
        own = Content.of(arrays[name])
        if (own.dtype, own.shape) != (content.dtype, content.shape):
            return (
                f"the array {name!r} should be {content.dtype} of shape {content.shape}; got "
                f"{own.dtype} of shape {own.shape}"
            )
        if own.digest != content.digest:
            return f"the entries of the array {name!r} are others than those expected"
    return None


CONTENTS: dict[str, dict[str, Content]] = {
    "sonar": {
        "X": Content("<f8", (208, 60), "299eb05656c43163c4cea6c8efd67ad5"),
        "label": Content("<U1", (208,), "7fc7c983d5d221a533dc815f21cb2c25"),
    },
    "cbcl_faces": {
        "faces": Content("|u1", (2429, 19, 19), "2ba85559c58b6931814759001c5c407d"),
    },
    "reuters": {
        "data": Content("|u1", (433413,), "f90bc2cff5033e79c1fcd81ead4c5f5f"),
        "indices": Content("<u2", (433413,), "77a827d48e623bf0ab345283779f6054"),
        "indptr": Content("<i4", (7770,), "1aae722d6d865e7c494db5dc317356e1"),
        "shape": Content("<i8", (2,), "62534cc9d0b576c12dffde97acfac162"),
        "ids": Content("<i4", (7769,), "6a4fd7c43b5d1008e0513365643c4552"),
        "vocabulary": Content("|S202982", (), "1b61d52493cc9f63697bc4fafd78d6f1"),
        "topics": Content("|u1", (7769, 12), "892e621f8e1104dfabcd10a373bd4efc"),
        "topic_names": Content("<U15", (90,), "ea368cf3e6641cd3654da54e18c3a589"),
    },
    "urban": {
        "crop_a": Content("<u2", (80, 100, 162), "d37b629c70fbd8679902d3f0ce9c3836"),
        "crop_a_anomaly_map": Content("|u1", (80, 100), "521e9ce5712d1f16c703622d081fc5dc"),
        "crop_b": Content("<u2", (34, 78, 162), "64bf725bd93e85327a5e1fa35f70d8f0"),
        "library": Content("<u2", (162, 651), "c49859ab5c4494afc91591a65d4fbf4e"),
        "library_label": Content("|u1", (651,), "ba77c39fe7ee40939df1f94c73153d35"),
        "material_names": Content("<U7", (6,), "580894e28518acab0b929783d5eb31f2"),
    },
    "mni152": {
        "volume": Content("|u1", (24, 197, 233), "a1c6a63e210efa9f3502326b7bb6eefc"),
    },
    "samson": {
        "Y": Content("<f8", (156, 9025), "a2edbd1dfaa9f3a22cef20076a9918df"),
        "endmembers": Content("<f8", (156, 3), "314380212363c9af7b038bcb71ba939d"),
        "abundances": Content("<f8", (3, 9025), "76f738ccf84efc8bbc81a9450a68dc7b"),
        "names": Content("<U5", (3,), "1f27ba17666dfc9a44c2a2dc480b93c6"),
        "shape": Content("<i8", (2,), "4d7aa6ea55c348aee56c0ad0e0197e76"),
    },
    "jasper_ridge": {
        "Y": Content("<u2", (198, 10000), "525d6ade22be1a420d2a81fc3b4083f5"),
        "max_value": Content("<i8", (), "567dbca47ccf8e72a6a2f1ac25309925"),
        "endmembers": Content("<f8", (198, 4), "8e9e7783a1bb9712cafd019f3b7da04f"),
        "abundances": Content("<f8", (4, 10000), "556b08acf338466ddcb79a21ebb506e4"),
        "names": Content("<U5", (4,), "0d41e2dc8e7d413567f7972eb1c591c3"),
        "shape": Content("<i8", (2,), "93c9bcb748b4c15e46c4c7e05cd015ed"),
        "select_bands": Content("|u1", (198,), "b018c6f397e2899acbafe5f14c143434"),
        "library": Content("<f8", (198, 529), "878180fe27c67dcccad6e417245805a0"),
        "library_label": Content("|u1", (529,), "4906f72304544ef1c46bc26df1ede47d"),
    },
    "usgs_library": {
        "wavelength_um": Content("<f8", (224,), "5d65d0100afeaf8626c3d1c9400f1033"),
        "spectra": Content("<f8", (224, 498), "fa96ddddf89ab8e18198b8162eec78f0"),
        "names": Content("<U25", (498,), "2f7fe6e5e599ad436437d59e43b4256c"),
    },
    "mutational_signatures": {
        "channels": Content("<U7", (96,), "bac72636218dda2b66d1e6e64f493060"),
        "cosmic_v3_4": Content("<f8", (96, 86), "7b41b518ddf0d33a508d5f5c3e89d573"),
        "cosmic_names": Content("<U6", (86,), "2e158f819fafed2220b148d5bc91a48e"),
        "pcawg_counts": Content("<u4", (96, 2780), "051acfe2507359caf916034014d279a5"),
        "pcawg_type": Content("<U19", (2780,), "9e2c013f59e721c0e4dd95eb9a9fdbdb"),
        "pcawg_id": Content("<U8", (2780,), "c5b23641e43160e33a25014ee9c0cd85"),
        "breast21_counts": Content("<u4", (96, 21), "accee520dbac4676aa31eef470110f67"),
    },
    "diffusion_mri_64": {
        "signal": Content("<i2", (10, 10, 10, 65), "a8f48f84bc19ea60a042533e26f3e060"),
        "bval": Content("<f8", (65,), "c0a2b9fd1eac37729ce0bf413f1c2b8a"),
        "bvec": Content("<f8", (65, 3), "94ce9aa1bde0434291e91d1ab296f60d"),
    },
    "diffusion_mri_101": {
        "signal": Content("<u2", (6, 10, 10, 102), "dd096214c134fc16ef3a45fa1157d834"),
        "bval": Content("<f8", (102,), "0ab8d87246abb5950519fc69b450d793"),
        "bvec": Content("<f8", (102, 3), "d6c00bb1aece1abbab03f4f5997c6629"),
    },
}
"""The arrays of every file, by its name."""
