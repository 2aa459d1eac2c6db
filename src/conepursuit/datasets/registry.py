"""The files that the loaders read: what they are called, whose they are, how to get them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """A file that a loader reads.

    Attributes
    ----------
    name : str
        How `find` calls it.
    path : str
        Where it lies in a folder of data, with forward slashes.
    upstream : str
        Who made the data.
    source : str
        Where the numbers were taken from, and what was done to them.
    terms : str
        What is known of the terms of use. A reading, not legal advice; the licence of a repository
        that carries data does not bind their owner.
    originals : tuple of str
        What the files that it is prepared from are called; none where it is part of the package.
    addresses : tuple of str
        Where `fetch` gets them; none where the terms do not allow it, or no address is known.
    """

    name: str
    path: str
    upstream: str
    source: str
    terms: str
    originals: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @property
    def packaged(self) -> bool:
        """Whether it is part of the package."""
        return not self.originals

    @property
    def adding(self) -> str:
        """The command that prepares it from its originals."""
        return f"conepursuit datasets add {self.name} {' '.join(self.originals)}"

    @property
    def advice(self) -> str:
        """How to get it, in a sentence."""
        if self.packaged:
            return "It is part of the package: install conepursuit again."
        if self.addresses:
            return f"Run: conepursuit datasets fetch {self.name}"
        return f"Get the originals, and run: {self.adding}"


_MUA = "GitHub ricardoborsoi/MUA_SparseUnmixing at 089f5d61"
_RAW = "https://raw.githubusercontent.com"
"""Where GitHub has the files of a repository at a commit."""

_UNMIXING = "GitHub UPCGIT/Hyperspectral-Unmixing-Models at 3ec77a26"

_ALL = (
    File(
        name="sonar",
        path="sonar/sonar.all-data.csv",
        upstream="UCI Machine Learning Repository, Connectionist Bench (Sonar, Mines vs. Rocks), "
        "Gorman and Sejnowski 1988",
        source="sonar.csv of GitHub jbrownlee/Datasets at d20fcb64, byte for byte",
        terms="CC BY 4.0, as the UCI site says",
    ),
    File(
        name="cbcl_faces",
        path="cbcl/cbcl_faces.npz",
        upstream="MIT CBCL Face Database #1, the 2,429 faces for training",
        source="data/CBCL_Face.mat of GitHub hiroyuki-kasai/NMFLibrary at ed44132d, its "
        "photographic negative (256 - p)/256 undone to pixels p of 0 to 255",
        terms="research data of MIT CBCL; whether they may be passed on is unclear",
        originals=("CBCL_Face.mat",),
    ),
    File(
        name="reuters",
        path="reuters/reuters_train_counts.npz",
        upstream="Reuters-21578, Distribution 1.0",
        source="the SGML files of GitHub colibri17/TextCategorization at b6c2ca3d: the articles "
        "for training of the 90 topics that occur in training and in test, counted by "
        "scikit-learn's CountVectorizer(stop_words='english')",
        terms="free distribution for research purposes only; cite it by its name",
        originals=("reuters21578.tar.gz",),
        addresses=tuple(
            f"{_RAW}/colibri17/TextCategorization/b6c2ca3d46a2540843400890792e5165448b4516/"
            f"reuters21578/reut2-{i:03}.sgm"
            for i in range(22)
        ),
    ),
    File(
        name="urban",
        path="urban/urban_subsets.npz",
        upstream="HYDICE Urban, US Army Geospatial Center",
        source="HYDICE.mat of GitHub shendb2022/DSC at e6a662ef, DATA/subimage_Urban_R162.mat of "
        "ricardoborsoi/MultiscaleKernelSURelease at 6cd4f83f, and "
        f"real_data/spectral_library_urban.mat of {_MUA}",
        terms="not stated",
        originals=("HYDICE.mat", "subimage_Urban_R162.mat", "spectral_library_urban.mat"),
    ),
    File(
        name="mni152",
        path="mni152_t1/mni152_t1_24slices.npz",
        upstream="ICBM152 2009a symmetric T1 template, McConnell Brain Imaging Centre, Montreal "
        "Neurological Institute",
        source="mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz of nilearn 0.14.1, axial slices "
        "36, 41, ..., 151",
        terms="may be passed on with the notice of the McConnell Brain Imaging Centre",
    ),
    File(
        name="samson",
        path="samson/samson.npz",
        upstream="Samson, ground truth by F. Zhu (arXiv 1708.05125)",
        source=f"Datasets/Samson.mat of {_UNMIXING}, abundances in the order of the pixels",
        terms="not stated",
        originals=("Samson.mat",),
    ),
    File(
        name="jasper_ridge",
        path="jasper_ridge/jasper_ridge.npz",
        upstream="Jasper Ridge, AVIRIS (NASA), ground truth by F. Zhu (arXiv 1708.05125)",
        source=f"Datasets/Jasper.mat of {_UNMIXING}, abundances in the order of the pixels; the "
        f"library of pure pixels from {_MUA}",
        terms="not stated",
        originals=("Jasper.mat", "spectral_library_jasperRidge.mat"),
    ),
    File(
        name="usgs_library",
        path="usgs_library/usgs_1995_aviris224.npz",
        upstream="USGS Digital Spectral Library splib04 (1995), convolved to AVIRIS",
        source=f"USGS_1995_Library.mat of {_MUA}, rows sorted by wavelength",
        terms="public domain, a work of the US government",
        originals=("USGS_1995_Library.mat",),
        addresses=(
            f"{_RAW}/ricardoborsoi/MUA_SparseUnmixing/089f5d61162807a5304759e293b132ed9d0d6ab4/"
            "USGS_1995_Library.mat",
        ),
    ),
    File(
        name="mutational_signatures",
        path="mutational_signatures/sbs96.npz",
        upstream="COSMIC v3.4 SBS signatures (GRCh37); PCAWG catalogues, Alexandrov et al. 2020 "
        "(Synapse syn11801889); 21 breast cancers, Nik-Zainal et al. 2012",
        source="COSMIC_v3.4_SBS_GRCh37.txt and 21_breast_WGS_substitutions.mat of "
        "SigProfilerAssignment 1.1.5; data/WGS_PCAWG.96.csv of GitHub victorvelasco/hdpExtra at "
        "0d109f9a",
        terms="those of COSMIC for the signatures; not stated for the catalogues",
        originals=(
            "COSMIC_v3.4_SBS_GRCh37.txt",
            "21_breast_WGS_substitutions.mat",
            "WGS_PCAWG.96.csv",
        ),
    ),
    File(
        name="diffusion_mri_64",
        path="diffusion_mri/small_64D.npz",
        upstream="DIPY, small_64D",
        source="dipy/data/files/small_64D.* of dipy 1.12.1",
        terms="BSD 3-Clause for DIPY, which carries them; for the data themselves not stated",
        originals=("small_64D.nii", "small_64D.bval", "small_64D.bvec"),
    ),
    File(
        name="diffusion_mri_101",
        path="diffusion_mri/small_101D.npz",
        upstream="DIPY, small_101D",
        source="dipy/data/files/small_101D.* of dipy 1.12.1",
        terms="BSD 3-Clause for DIPY, which carries them; for the data themselves not stated",
        originals=("small_101D.nii.gz", "small_101D.bval", "small_101D.bvec"),
    ),
)

FILES = {file.name: file for file in _ALL}
"""Every file by its name."""
