"""The files that the loaders read: what they are called, and whose they are."""

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
    sha256 : str
        Its checksum, in hexadecimal.
    upstream : str
        Who made the data.
    source : str
        Where the numbers were taken from, and what was done to them.
    terms : str
        What is known of the terms of use. A reading, not legal advice; the licence of a repository
        that carries data does not bind their owner.
    """

    name: str
    path: str
    sha256: str
    upstream: str
    source: str
    terms: str


_MUA = "GitHub ricardoborsoi/MUA_SparseUnmixing at 089f5d61"
_UNMIXING = "GitHub UPCGIT/Hyperspectral-Unmixing-Models at 3ec77a26"

_ALL = (
    File(
        name="sonar",
        path="sonar/sonar.all-data.csv",
        sha256="3079c09b5d2789a0f96aff82c28e5164fafe2495c5f8da96c6c256c1bd25763f",
        upstream="UCI Machine Learning Repository, Connectionist Bench (Sonar, Mines vs. Rocks), "
        "Gorman and Sejnowski 1988",
        source="sonar.csv of GitHub jbrownlee/Datasets at d20fcb64, byte for byte",
        terms="CC BY 4.0, as the UCI site says",
    ),
    File(
        name="cbcl_faces",
        path="cbcl/cbcl_faces.npz",
        sha256="128b589b8e12fc634e822bf6541d9f7ad84bf0b28eb83eb7e3ef79ef7c4c6459",
        upstream="MIT CBCL Face Database #1, the 2,429 faces for training",
        source="data/CBCL_Face.mat of GitHub hiroyuki-kasai/NMFLibrary at ed44132d, its "
        "photographic negative (256 - p)/256 undone to pixels p of 0 to 255",
        terms="research data of MIT CBCL; whether they may be passed on is unclear",
    ),
    File(
        name="reuters",
        path="reuters/reuters_train_counts.npz",
        sha256="0e0f179a63a0ab53f4e08c95efa16cf32167a729d3203804e0ad524b5afae8f9",
        upstream="Reuters-21578, Distribution 1.0",
        source="the SGML files of GitHub colibri17/TextCategorization at b6c2ca3d: the articles "
        "for training of the 90 topics that occur in training and in test, counted by "
        "scikit-learn's CountVectorizer(stop_words='english')",
        terms="free distribution for research purposes only; cite it by its name",
    ),
    File(
        name="urban",
        path="urban/urban_subsets.npz",
        sha256="66b81de5ac2d0af2964d04ef052231eead54a7afa3c61a1cd30f3e2351ffac18",
        upstream="HYDICE Urban, US Army Geospatial Center",
        source="HYDICE.mat of GitHub shendb2022/DSC at e6a662ef, DATA/subimage_Urban_R162.mat of "
        "ricardoborsoi/MultiscaleKernelSURelease at 6cd4f83f, and "
        f"real_data/spectral_library_urban.mat of {_MUA}",
        terms="not stated",
    ),
    File(
        name="mni152",
        path="mni152_t1/mni152_t1_24slices.npz",
        sha256="a2ec79c202b107a5965ecac3fd5a820927528e0bedb74560146139fc4eb71a7b",
        upstream="ICBM152 2009a symmetric T1 template, McConnell Brain Imaging Centre, Montreal "
        "Neurological Institute",
        source="mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz of nilearn 0.14.1, axial slices "
        "36, 41, ..., 151",
        terms="may be passed on with the notice of the McConnell Brain Imaging Centre",
    ),
    File(
        name="samson",
        path="samson/samson.npz",
        sha256="2b861d1366b147dfcdabe0ab764b4963d72bea84f704541890cf4d5a85dd5553",
        upstream="Samson, ground truth by F. Zhu (arXiv 1708.05125)",
        source=f"Datasets/Samson.mat of {_UNMIXING}, abundances in the order of the pixels",
        terms="not stated",
    ),
    File(
        name="jasper_ridge",
        path="jasper_ridge/jasper_ridge.npz",
        sha256="28ee3ebfb0be8eb0b4fcfefb91ecd4705ee190933a6cf9319a2316f5e83ebe41",
        upstream="Jasper Ridge, AVIRIS (NASA), ground truth by F. Zhu (arXiv 1708.05125)",
        source=f"Datasets/Jasper.mat of {_UNMIXING}, abundances in the order of the pixels; the "
        f"library of pure pixels from {_MUA}",
        terms="not stated",
    ),
    File(
        name="usgs_library",
        path="usgs_library/usgs_1995_aviris224.npz",
        sha256="f0074d919845d57008f6e83cd0e35a78d38ab95aa245f762434adb45cfbcdab6",
        upstream="USGS Digital Spectral Library splib04 (1995), convolved to AVIRIS",
        source=f"USGS_1995_Library.mat of {_MUA}, rows sorted by wavelength",
        terms="public domain, a work of the US government",
    ),
    File(
        name="mutational_signatures",
        path="mutational_signatures/sbs96.npz",
        sha256="a8dc7472055e1469f6f8a21a0326494a1f5556db56e58bb9974a05cfb7828b02",
        upstream="COSMIC v3.4 SBS signatures (GRCh37); PCAWG catalogues, Alexandrov et al. 2020 "
        "(Synapse syn11801889); 21 breast cancers, Nik-Zainal et al. 2012",
        source="COSMIC_v3.4_SBS_GRCh37.txt and 21_breast_WGS_substitutions.mat of "
        "SigProfilerAssignment 1.1.5; data/WGS_PCAWG.96.csv of GitHub victorvelasco/hdpExtra at "
        "0d109f9a",
        terms="those of COSMIC for the signatures; not stated for the catalogues",
    ),
    File(
        name="diffusion_mri_64",
        path="diffusion_mri/small_64D.npz",
        sha256="6d4329e6e33f6e5182570b4e8dfd48a122bb5b530122c39de31d243c1ed39d8c",
        upstream="DIPY, small_64D",
        source="dipy/data/files/small_64D.* of dipy 1.12.1",
        terms="BSD 3-Clause, as DIPY",
    ),
    File(
        name="diffusion_mri_101",
        path="diffusion_mri/small_101D.npz",
        sha256="d668f055a9171b5d79ab86556ecc30d219af7d71e7a90af522f007a094a49c88",
        upstream="DIPY, small_101D",
        source="dipy/data/files/small_101D.* of dipy 1.12.1",
        terms="BSD 3-Clause, as DIPY",
    ),
)

FILES = {file.name: file for file in _ALL}
"""Every file by its name."""
