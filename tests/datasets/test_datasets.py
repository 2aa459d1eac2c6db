"""Loaders against what is known of the data, files that are missing or wrong, and generators."""

import os
import sys
from dataclasses import FrozenInstanceError
from itertools import islice
from math import pi, sin
from pathlib import Path

import numpy as np
import pytest

from conepursuit import nnls
from conepursuit.datasets import (
    FILES,
    DatasetContentError,
    DatasetNotFoundError,
    available,
    cache_folder,
    files,
    find,
    iter_synthetic,
    load_cbcl_faces,
    load_diffusion_mri,
    load_jasper_ridge,
    load_mni152,
    load_mutational_signatures,
    load_reuters,
    load_samson,
    load_sonar,
    load_urban,
    load_usgs_library,
    make_sparse_conic,
    make_synthetic,
    make_theta_set,
)
from conepursuit.datasets.contents import CONTENTS, Content
from conepursuit.datasets.recipes import RECIPES
from conepursuit.theory import cone_width

FOLDER = os.environ.get("CONEPURSUIT_DATA")
needs_data = pytest.mark.skipif(FOLDER is None, reason="CONEPURSUIT_DATA names no data folder")

LOADERS = {
    "sonar": load_sonar,
    "cbcl_faces": load_cbcl_faces,
    "reuters": load_reuters,
    "urban": load_urban,
    "mni152": load_mni152,
    "samson": load_samson,
    "jasper_ridge": load_jasper_ridge,
    "usgs_library": load_usgs_library,
    "mutational_signatures": load_mutational_signatures,
    "diffusion_mri_64": load_diffusion_mri,
    "diffusion_mri_101": lambda **given: load_diffusion_mri(101, **given),
}


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without any data; returns the folder of the cache."""
    monkeypatch.delenv("CONEPURSUIT_DATA", raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(files, "PACKAGED", tmp_path / "no package")
    return tmp_path / "cache"


SMALL = {"Y": np.arange(6.0).reshape(2, 3), "names": np.array(["soil", "tree"])}


@pytest.fixture
def registered(monkeypatch):
    """Return a function that puts the small arrays, now those of samson, into a folder."""
    content = {name: Content.of(array) for name, array in SMALL.items()}
    monkeypatch.setitem(CONTENTS, "samson", content)

    def register(folder, **arrays):
        path = folder / FILES["samson"].path
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **(arrays or SMALL))
        return path

    return register


def relative(E, Y):
    """Return the residual of the non-negative fit of Y by E over the norm of Y, and the weights."""
    fit = nnls(E, Y)
    return np.linalg.norm(fit.rnorm) / np.linalg.norm(Y), fit.x


# ---------------------------------------------------------------- the data themselves


@needs_data
@pytest.mark.parametrize("name", FILES)
def test_every_file_has_a_loader_that_says_whose_it_is(name):
    data = LOADERS[name](folder=FOLDER)
    assert data.source is FILES[name]
    assert FILES[name].terms in data.description
    assert FILES[name].upstream in data.description
    assert "Attributes" not in data.description
    assert len(repr(data)) < 500
    with pytest.raises(FrozenInstanceError):
        data.source = None


def test_sonar():
    data = load_sonar()
    assert data.X.shape == (208, 60)
    assert data.X[0, :3].tolist() == [0.02, 0.0371, 0.0428]
    assert (data.X.min(), data.X.max()) == (0, 1)
    assert ((data.y == 1).sum(), (data.y == -1).sum()) == (111, 97)
    assert data.y[0] == -1


def test_sonar_of_the_experiment():
    X, y = load_sonar(all_rows=False, unit_norm=True, return_X_y=True)
    table = np.loadtxt(find("sonar"), delimiter=",", dtype=str)[1:]
    raw = table[:, :60].astype(float)
    np.testing.assert_allclose(X, raw / np.sqrt((raw**2).sum(axis=1))[:, None], rtol=1e-14)
    assert [{1: "M", -1: "R"}[label] for label in y] == table[:, 60].tolist()
    assert len(y) == 207


@needs_data
def test_faces():
    data = load_cbcl_faces()
    assert data.V.shape == (361, 2429)
    assert (data.V**2).sum() == pytest.approx(42823.17, abs=5e-3)
    assert data.V.max() == pytest.approx(0.618, abs=5e-4)
    assert (data.V == 0).mean() == pytest.approx(0.444, abs=5e-4)
    raw = load_cbcl_faces(scaled=False)
    p = raw.V.astype(float)
    np.testing.assert_array_equal(data.V, np.clip(((p - p.mean()) / p.std() + 0.25) * 0.25, 0, 1))
    assert raw.V.dtype == np.uint8
    assert (raw.V.min(), raw.V.max()) == (0, 255)
    assert raw.images().shape == (2429, 19, 19)
    # a face is brighter at the cheeks than where the eyes are, and left is as right
    mean = raw.images().mean(axis=0)
    assert mean[11, [4, 14]].min() > mean[5, [4, 14]].max()
    assert np.abs(mean - mean[:, ::-1]).mean() < np.abs(mean - mean[::-1]).mean() / 2
    np.testing.assert_array_equal(data.images(data.V[:, :2])[1].ravel(), data.V[:, 1])


@needs_data
def test_reuters():
    data = load_reuters()
    assert data.X.shape == (7769, 26001)
    assert (data.X.nnz, data.X.sum(), data.X.data.max()) == (433_413, 658_425, 47)
    assert 0.5 * (data.X.data**2).sum() == 921_003.5
    assert (data.X.dtype, data.X.indices.dtype, data.X.indptr.dtype) == (
        np.float64,
        np.int32,
        np.int32,
    )
    assert data.vocabulary.shape == (26001,)
    assert sorted(set(data.vocabulary)) == data.vocabulary.tolist()
    assert data.topics.shape == (7769, 90)
    assert data.topics.any(axis=1).all()
    assert data.topics.any(axis=0).all()
    assert len(set(data.ids)) == 7769
    assert [str(i) for i in data.ids] == sorted(map(str, data.ids))  # as NLTK sorts them


@needs_data
def test_the_topics_of_reuters_belong_to_its_articles():
    data = load_reuters()
    wheat = data.X[:, [int(np.flatnonzero(data.vocabulary == "wheat")[0])]].toarray()[:, 0]
    about = data.topics[:, data.topic_names == "wheat"][:, 0]
    assert wheat[about].mean() > 50 * wheat[~about].mean()


def test_mni152():
    data, raw = load_mni152(), load_mni152(scaled=False)
    assert data.V.shape == (45_901, 24)
    assert data.V.mean() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(data.V, raw.V / raw.V.mean(), rtol=1e-14)
    assert (raw.V.dtype, raw.V.min(), raw.V.max()) == (np.uint8, 0, 254)
    assert raw.images().shape == (24, 197, 233)


@needs_data
def test_samson():
    data = load_samson()
    assert (data.Y.shape, data.shape, data.endmembers.shape) == ((156, 9025), (95, 95), (156, 3))
    assert (data.Y.min(), data.Y.max(), len(np.unique(data.Y))) == (0, 1, 1375)
    assert data.materials.tolist() == ["soil", "tree", "water"]
    error, weights = relative(data.endmembers, data.Y)
    assert error == pytest.approx(0.033, abs=5e-4)
    for own, true in zip(weights, data.abundances, strict=True):
        assert 0.90 <= np.corrcoef(own, true)[0, 1] <= 0.99


@needs_data
def test_jasper_ridge():
    data, raw = load_jasper_ridge(), load_jasper_ridge(scaled=False)
    assert (data.Y.shape, data.shape, data.endmembers.shape) == ((198, 10000), (100, 100), (198, 4))
    assert (raw.Y.dtype, raw.Y.min(), raw.Y.max()) == (np.uint16, 0, 5437)
    np.testing.assert_array_equal(data.Y, raw.Y / 5000)
    _, weights = relative(data.endmembers, data.Y)
    errors = np.linalg.norm(data.Y - data.endmembers @ weights, axis=0)
    assert np.median(errors / np.linalg.norm(data.Y, axis=0)) == pytest.approx(0.055, abs=5e-4)
    off = data.Y - data.endmembers @ data.abundances
    assert np.linalg.norm(off) / np.linalg.norm(data.Y) == pytest.approx(0.17, abs=5e-3)
    for own, true in zip(weights, data.abundances, strict=True):
        assert 0.97 <= np.corrcoef(own, true)[0, 1] <= 0.99
    assert (len(data.bands), data.bands[0], data.bands[-1]) == (198, 4, 219)


@needs_data
def test_the_library_of_jasper_ridge_is_labelled_by_its_materials():
    data = load_jasper_ridge()
    assert data.library.shape == (198, 529)
    _, weights = relative(data.endmembers, data.library)
    own = data.materials[weights.argmax(axis=0)]
    assert (own == data.library_labels).mean() > 0.95


@needs_data
def test_pixels_make_an_image():
    data = load_samson()
    image = data.image
    assert image.shape == (95, 95, 156)
    np.testing.assert_array_equal(image[3, 7], data.Y[:, 3 + 7 * 95])  # column by column
    np.testing.assert_array_equal(data.maps(data.abundances)[1, 3, 7], data.abundances[1, 668])
    corner = data.window(4, 9)
    assert (corner.shape, corner.order) == ((4, 9), "C")
    np.testing.assert_array_equal(corner.Y[:, 3 * 9 + 7], image[3, 7])
    np.testing.assert_array_equal(corner.image, image[:4, :9])
    with pytest.raises(ValueError, match="each of the 36 pixels; got shape"):
        corner.maps(data.abundances)


@needs_data
def test_urban():
    data, raw = load_urban(), load_urban(scaled=False)
    stored = np.load(find("urban"))
    expected = stored["crop_a"][:77, :77].reshape(-1, 162).T / 1000.0
    assert expected.shape == (162, 5929)
    np.testing.assert_array_equal(data.crop_a.window(77, 77).Y, expected)
    np.testing.assert_array_equal(data.crop_a.image[5, 60], stored["crop_a"][5, 60] / 1000.0)
    np.testing.assert_array_equal(raw.crop_b.image, stored["crop_b"])
    assert (raw.crop_a.Y.max(), raw.crop_b.Y.max(), raw.library.max()) == (592, 635, 592)
    assert data.crop_b.shape == (34, 78)
    assert data.anomalies.shape == data.crop_a.shape
    assert 0 < data.anomalies.sum() < 100
    assert relative(data.endmembers, data.crop_a.Y)[0] == pytest.approx(0.043, abs=5e-4)
    assert data.library_labels.shape == (651,)
    assert set(data.library_labels) == set(data.materials)
    assert data.bands.shape == (162,)
    assert not {4, 76, 87, 101, 111, 136, 153, 198, 210} & set(data.bands.tolist())
    assert {5, 75, 77, 86, 88, 100, 112, 135, 154, 197} <= set(data.bands.tolist())


@needs_data
def test_usgs_library():
    data = load_usgs_library()
    assert data.spectra.shape == (224, 498)
    assert data.spectra.min() == pytest.approx(0.0047, abs=5e-5)
    assert data.spectra.max() == pytest.approx(1.018, abs=5e-4)
    assert data.wavelengths[[0, -1]] == pytest.approx([0.383, 2.508], abs=5e-4)
    assert (np.diff(data.wavelengths) > 0).all()
    assert data.names.shape == (498,)
    assert data.names[0] == "Acmite NMNH133746"


@needs_data
def test_mutational_signatures():
    data = load_mutational_signatures()
    assert data.signatures.shape == (96, 86)
    np.testing.assert_allclose(data.signatures.sum(axis=0), 1, atol=5e-7)
    assert data.catalogues.shape == (96, 2780)
    totals = data.catalogues.sum(axis=0)
    assert (data.catalogues.max(), totals.min(), totals.max()) == (727_224, 21, 2_432_617)
    assert (data.breast_catalogues.shape, data.breast_catalogues.max()) == ((96, 21), 18_171)
    assert data.catalogues.dtype == data.breast_catalogues.dtype == np.float64
    assert len(data.tumour_types) == len(data.tumour_ids) == 2780
    assert (data.signature_names[0], data.channels[0]) == ("SBS1", "A[C>A]A")
    # SBS1 is C>T where a G follows
    at = data.signatures[:, 0].argsort()[-4:]
    assert all(channel[2:] == "C>T]G" for channel in data.channels[at])


@needs_data
def test_signatures_explain_the_catalogues():
    data = load_mutational_signatures()
    Y = data.catalogues[:, ::10]
    fit = data.signatures @ nnls(data.signatures, Y).x
    cosines = (fit * Y).sum(axis=0) / np.linalg.norm(fit, axis=0) / np.linalg.norm(Y, axis=0)
    assert np.median(cosines) == pytest.approx(0.996, abs=5e-4)


@needs_data
@pytest.mark.parametrize(
    ("directions", "shape", "largest"), [(64, (10, 10, 10), 1675), (101, (6, 10, 10), 1004)]
)
def test_diffusion_mri(directions, shape, largest):
    data = load_diffusion_mri(directions)
    signal = np.load(find(f"diffusion_mri_{directions}"))["signal"]
    assert data.shape == shape
    assert data.Y.shape == (directions + 1, np.prod(shape))
    assert (data.Y.dtype, data.Y.max()) == (np.float64, largest)
    np.testing.assert_array_equal(data.volumes()[3], signal[..., 3])
    np.testing.assert_array_equal(data.volumes(data.Y[:2])[1], signal[..., 1])
    assert data.bvals.shape == (directions + 1,)
    lengths = np.linalg.norm(data.bvecs, axis=1)
    np.testing.assert_allclose(lengths[1:], 1, atol=1e-6)
    assert lengths[0] == pytest.approx(0 if directions == 64 else 1)
    assert data.bvals.argmin() == 0


def test_there_is_no_other_diffusion_data():
    with pytest.raises(ValueError, match="must be 64 or 101; got 65"):
        load_diffusion_mri(65)


# ---------------------------------------------------------------- where files lie


def test_the_registry_is_consistent():
    assert list(LOADERS) == list(FILES)
    for name, file in FILES.items():
        assert file.name == name
        assert CONTENTS[name]
        assert file.packaged == (files.PACKAGED / file.path).is_file()
        assert file.packaged == (name not in RECIPES)
        assert not Path(file.path).is_absolute()
        assert len(Path(file.path).parts) == 2
        assert "://" not in file.upstream + file.source + file.terms
        assert all(address.startswith("https://") for address in file.addresses)
    assert list(CONTENTS) == list(FILES)


def test_what_is_in_the_package_has_its_terms_beside_it():
    terms = (files.PACKAGED / "LICENSES.md").read_text(encoding="utf-8")
    kept = {path.relative_to(files.PACKAGED).as_posix() for path in files.PACKAGED.glob("*/*")}
    assert kept == {file.path for file in FILES.values() if file.packaged}
    assert all(f"## {path}\n" in terms for path in kept)
    assert "CC BY 4.0" in terms
    assert "Permission to use, copy, modify, and distribute" in terms


@needs_data
def test_the_data_of_the_folder_are_all_found(monkeypatch):
    for row in available():
        assert row.intact
        assert row.path == Path(FOLDER, row.file.path) == find(row.file.name)
    monkeypatch.delenv("CONEPURSUIT_DATA")
    monkeypatch.setattr(files, "cache_folder", lambda: Path(FOLDER))
    assert find("sonar") == Path(FOLDER, "sonar", "sonar.all-data.csv")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_says_what_to_do(nowhere, name, tmp_path):
    file = FILES[name]
    with pytest.raises(FileNotFoundError) as caught:
        LOADERS[name](folder=tmp_path / "mine")
    assert type(caught.value) is DatasetNotFoundError
    message = str(caught.value)
    assert caught.value.file is file
    for part in (file.upstream, file.source, file.terms, file.advice):
        assert part in message
    assert f"  {tmp_path / 'mine' / file.path}\n" in message
    assert f"  {nowhere / file.path}\n" in message
    assert "CONEPURSUIT_DATA is not set" in message


def test_a_missing_file_names_the_folder_of_the_variable(nowhere, tmp_path, monkeypatch):
    monkeypatch.setenv("CONEPURSUIT_DATA", str(tmp_path / "named"))
    with pytest.raises(DatasetNotFoundError) as caught:
        find("samson")
    assert f"  {tmp_path / 'named' / 'samson' / 'samson.npz'}\n" in str(caught.value)
    assert "is not set" not in str(caught.value)


def test_an_unknown_name():
    with pytest.raises(ValueError, match=r"no data set 'iris'\. Those known: sonar, cbcl_faces"):
        find("iris")


def test_which_folder_comes_first(nowhere, registered, tmp_path, monkeypatch):
    packaged = registered(files.PACKAGED)
    assert find("samson") == packaged
    cached = registered(nowhere)
    assert find("samson") == cached
    named = registered(tmp_path / "named")
    monkeypatch.setenv("CONEPURSUIT_DATA", str(tmp_path / "named"))
    assert find("samson") == named
    mine = registered(tmp_path / "mine")
    assert find("samson", tmp_path / "mine") == mine
    assert find("samson", tmp_path / "elsewhere") == named
    monkeypatch.setenv("CONEPURSUIT_DATA", "")
    monkeypatch.chdir(tmp_path / "named")  # an empty variable does not mean the current folder
    assert find("samson") == cached


def test_a_folder_may_begin_at_home(nowhere, registered, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    path = registered(tmp_path / "data")
    assert find("samson", "~/data") == path
    monkeypatch.setenv("CONEPURSUIT_DATA", "~/data")
    assert find("samson") == path


def test_content_counts_and_not_the_bytes_of_a_file(nowhere, registered):
    path = registered(nowhere)
    before = path.read_bytes()
    np.savez_compressed(path, Y=np.asfortranarray(SMALL["Y"]), names=SMALL["names"], other=1)
    assert path.read_bytes() != before
    assert find("samson") == path
    np.testing.assert_array_equal(files.stored("samson")["Y"], SMALL["Y"])


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"Y": SMALL["Y"] + 1e-9}, "the entries of the array 'Y' are others"),
        ({"Y": SMALL["Y"][::-1]}, "the entries of the array 'Y' are others"),
        ({"Y": SMALL["Y"].T}, r"'Y' should be <f8 of shape \(2, 3\); got <f8 of shape \(3, 2\)"),
        ({"Y": SMALL["Y"].astype("f4")}, r"got <f4 of shape \(2, 3\)"),
        ({"names": np.array(["soil", "road"])}, "the entries of the array 'names' are others"),
    ],
)
def test_a_wrong_file_is_refused(nowhere, registered, arrays, reason):
    path = registered(nowhere, **(SMALL | arrays))
    with pytest.raises(DatasetContentError, match=reason) as caught:
        load_samson()
    assert str(path) in str(caught.value)
    assert "Replace it" in str(caught.value)
    (row,) = (row for row in available() if row.file.name == "samson")
    assert (row.path, row.intact) == (path, False)


def test_damaged_files_and_missing_arrays_are_refused(nowhere, registered):
    path = registered(nowhere, Y=SMALL["Y"])
    with pytest.raises(DatasetContentError, match="there is no array 'names', but 'Y'"):
        find("samson")
    whole = registered(nowhere).read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"text"):
        path.write_bytes(content)
        with pytest.raises(DatasetContentError, match="it cannot be read"):
            find("samson")


def test_a_wrong_file_is_not_passed_over(nowhere, registered, tmp_path, monkeypatch):
    registered(nowhere)
    registered(tmp_path / "named", Y=np.ones(3))
    monkeypatch.setenv("CONEPURSUIT_DATA", str(tmp_path / "named"))
    with pytest.raises(DatasetContentError, match="named"):
        find("samson")


def test_available_says_what_is_missing(nowhere, registered):
    path = registered(nowhere)
    rows = {row.file.name: (row.path, row.intact) for row in available()}
    assert rows == dict.fromkeys(FILES, (None, False)) | {"samson": (path, True)}


def test_a_file_is_checked_once(nowhere, registered, monkeypatch):
    path = registered(nowhere)
    seen, whole = [], files.difference

    def counted(arrays, expected):
        seen.append(list(arrays))
        return whole(arrays, expected)

    monkeypatch.setattr(files, "difference", counted)
    find("samson")
    find("samson")
    assert len(seen) == 1
    np.savez(path, Y=SMALL["Y"] + 1, names=SMALL["names"])
    os.utime(path, ns=(0, 0))
    with pytest.raises(DatasetContentError):
        find("samson")
    assert len(seen) == 2


def test_nothing_is_unpickled(nowhere, registered):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("a file was unpickled",)

    registered(nowhere, Y=np.array([Bomb()], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load_samson()


@pytest.mark.parametrize(
    ("platform", "variable", "usual"),
    [
        ("linux", "XDG_CACHE_HOME", ".cache/conepursuit"),
        ("darwin", None, "Library/Caches/conepursuit"),
        ("win32", "LOCALAPPDATA", "AppData/Local/conepursuit"),
    ],
)
def test_the_cache_is_where_the_platform_has_it(platform, variable, usual, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == tmp_path / "home" / usual
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "other"))
        assert cache_folder() == tmp_path / "other" / "conepursuit"
        monkeypatch.setenv(variable, "relative")
        assert cache_folder() == tmp_path / "home" / usual


# ---------------------------------------------------------------- generators


def test_the_synthetic_problem_is_that_of_the_paper():
    rng, ours = np.random.default_rng(3), np.random.default_rng(3)
    for made in iter_synthetic(3, 3):
        A = rng.random((50, 100))
        A = A / np.linalg.norm(A, axis=0)
        y = A @ rng.uniform(0, 5, 100)
        y[list(set(rng.integers(0, 50, 10)))] *= -1
        for atoms, target in (made, make_synthetic(ours)):
            np.testing.assert_array_equal(atoms, A)
            np.testing.assert_array_equal(target, y)


def test_iterators_go_on():
    rng = np.random.default_rng(0)
    first = list(iter_synthetic(2, rng))
    later = next(iter_synthetic(random_state=rng))
    for (A, _), (B, _) in zip([*first, later], islice(iter_synthetic(None, 0), 3), strict=True):
        np.testing.assert_array_equal(A, B)
    assert not list(iter_synthetic(0))


def test_the_script_draws_as_matlab_does():
    u = np.random.RandomState(5489).random_sample(5212 * 2)
    for k, (atoms, y) in enumerate(iter_synthetic(2, stream="script")):
        own = u[5212 * k :]
        A = own[:5000].reshape(50, 100, order="F")
        np.testing.assert_allclose(atoms, A / np.linalg.norm(A, axis=0), rtol=1e-14)
        clean = atoms @ (5 * own[5001:5101])
        signs = np.ones(50)
        signs[[int(50 * v) for v in own[5101:5111]]] = -1
        np.testing.assert_allclose(y, signs * clean, rtol=1e-12)
    assert u[0] == pytest.approx(0.8147, abs=5e-5)  # what MATLAB shows after rng(0)


def test_the_script_can_be_repeated_and_continued():
    whole = [y for _, y in iter_synthetic(3, stream="script")]
    twister = np.random.RandomState(5489)
    for y in whole:
        np.testing.assert_array_equal(make_synthetic(twister, stream="script")[1], y)
    np.testing.assert_array_equal(make_synthetic(stream="script")[1], whole[0])
    np.testing.assert_array_equal(make_synthetic(0, stream="script")[1], whole[0])
    assert not np.array_equal(make_synthetic(1, stream="script")[1], whole[0])


def test_the_script_gives_the_numbers_of_the_errata():
    """Algorithm 1, Variant 1, leaves the cone on these data: the mean error reaches -0.26 (A11)."""
    errors = []
    for A, y in iter_synthetic(20, stream="script"):
        active, x, own = [], np.zeros(50), []
        while len(own) < 50:
            scores = A.T @ (x - y)
            if scores.min() < -1e-9:
                active = [*dict.fromkeys([*active, int(scores.argmin())])]
                x = A[:, active] @ np.linalg.lstsq(A[:, active], y, rcond=None)[0]
            own.append(0.5 * ((y - x) ** 2).sum())
        errors.append(np.array(own) - 0.5 * nnls(A, y).rnorm ** 2)
    assert np.mean(errors, axis=0).min() == pytest.approx(-0.26, abs=5e-3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stream": "matlab"}, "must be 'plain' or 'script'; got 'matlab'"),
        ({"random_state": np.random.RandomState(0)}, "got a RandomState"),
        ({"random_state": np.random.default_rng(0), "stream": "script"}, "got a Generator"),
        ({"n_problems": -1}, "non-negative integer or None, for no end; got -1"),
        ({"n_problems": 1.5}, "got 1.5"),
    ],
)
def test_synthetic_problems_that_cannot_be_made(given, message):
    with pytest.raises(ValueError, match=message):
        iter_synthetic(**given)


@pytest.mark.parametrize("theta", [0.1, 0.7, 1.5, pi / 2, 2.5])
def test_theta_set(theta):
    atoms = make_theta_set(theta)
    a, b = np.array([1, 0]), np.array([np.cos(theta), np.sin(theta)])
    np.testing.assert_allclose(atoms.T, [-a, b, a, -b], atol=1e-15)
    assert cone_width(atoms) == pytest.approx(sin(min(theta, pi - theta) / 2), rel=1e-9)


@pytest.mark.parametrize("theta", [0, -1.0, pi, np.nan, "1", None])
def test_theta_sets_that_cannot_be_made(theta):
    with pytest.raises(ValueError, match="above 0 and below pi; got"):
        make_theta_set(theta)


def test_sparse_conic():
    made = make_sparse_conic(40, 90, 7, noise=0.3, random_state=1)
    atoms, weights, y = made
    assert (atoms.shape, weights.shape, y.shape) == ((40, 90), (90,), (40,))
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=0), 1)
    active = weights[weights != 0]
    assert len(active) == 7
    assert active.min() >= 1
    assert active.max() <= 2
    clean = atoms @ weights
    assert np.linalg.norm(y - clean) == pytest.approx(0.3 * np.linalg.norm(clean))
    for again, own in zip(
        make_sparse_conic(40, 90, 7, noise=0.3, random_state=1), made, strict=True
    ):
        np.testing.assert_array_equal(again, own)
    assert make_sparse_conic(4, 30, 30).weights.min() >= 1
    other = make_sparse_conic(40, 90, 7, noise=0.3, random_state=2)
    assert not np.array_equal(other.weights > 0, weights > 0)


def test_sparse_conic_without_noise_is_recovered():
    atoms, weights, y = make_sparse_conic(60, 50, 6, random_state=0)
    np.testing.assert_array_equal(y, atoms @ weights)
    np.testing.assert_allclose(nnls(atoms, y).x, weights, atol=1e-12)


@pytest.mark.parametrize("coherence", [0.0, 0.5, 0.9])
def test_coherence_is_the_correlation_of_neighbours(coherence):
    atoms = make_sparse_conic(20_000, 12, 3, coherence=coherence, random_state=0).atoms
    gram = atoms.T @ atoms
    for apart in (1, 2, 5):
        np.testing.assert_allclose(np.diag(gram, apart), coherence**apart, atol=0.03)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_samples": 0}, "n_samples must be a positive integer; got 0"),
        ({"n_atoms": 2.0}, "n_atoms must be a positive integer; got 2.0"),
        ({"n_active": True}, "n_active must be a positive integer; got True"),
        ({"n_atoms": 5, "n_active": 6}, "at most n_atoms, 5; got 6"),
        ({"noise": -0.1}, "noise must be a number from 0 on; got -0.1"),
        ({"noise": np.inf}, "noise must be a number from 0 on; got inf"),
        ({"coherence": 1}, "from 0 to below 1; got 1"),
        ({"coherence": -0.5}, "from 0 to below 1; got -0.5"),
    ],
)
def test_sparse_problems_that_cannot_be_made(given, message):
    with pytest.raises(ValueError, match=message):
        make_sparse_conic(**given)
