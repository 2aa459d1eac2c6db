"""Data from originals and from the web: what users bring, damaged, misnamed, or half-downloaded."""

import csv
import gzip
import os
import tarfile
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from scipy.io import savemat

from conepursuit.cli import main
from conepursuit.datasets import (
    FILES,
    DatasetContentError,
    add,
    available,
    fetch,
    files,
    find,
    load_cbcl_faces,
    load_samson,
    load_usgs_library,
    preparing,
)
from conepursuit.datasets.contents import CONTENTS, Content, difference
from conepursuit.datasets.recipes import RECIPES

FOLDER = os.environ.get("CONEPURSUIT_DATA")
needs_data = pytest.mark.skipif(FOLDER is None, reason="CONEPURSUIT_DATA names no data folder")
ORIGINALS = Path(FOLDER or ".").parent / "originals"
WITH_ORIGINALS = {
    "cbcl_faces": ["CBCL_Face.mat"],
    "reuters": ["reuters21578.tar.xz"],
    "urban": ["spectral_library_urban.mat", "HYDICE.mat", "subimage_Urban_R162.mat"],
    "samson": ["Samson.mat"],
    "jasper_ridge": ["spectral_library_jasperRidge.mat", "Jasper.mat"],
    "usgs_library": ["USGS_1995_Library.mat"],
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A machine without data; returns the folder to which they are added."""
    monkeypatch.setenv("CONEPURSUIT_DATA", str(tmp_path / "own"))
    for module in (files, preparing):
        monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "own"


@pytest.fixture
def small(own, tmp_path, monkeypatch):
    """Two small originals of the USGS library, whose content is theirs; returns one, as bytes."""
    names = np.array([list(f"{name:<8}\n".encode()) for name in ("w", "r", "n", "salt", "snow")])
    datalib = np.array([[2.0, 0.1, 2, 0.3, 0.9], [1.0, 0.1, 1, 0.4, 0.8]])
    file = BytesIO()
    savemat(file, {"datalib": datalib, "names": names.astype(np.uint8)})
    arrays = {
        "wavelength_um": np.array([1.0, 2.0]),
        "spectra": np.array([[0.4, 0.8], [0.3, 0.9]]),
        "names": np.array(["salt", "snow"]),
    }
    content = {name: Content.of(array) for name, array in arrays.items()}
    monkeypatch.setitem(CONTENTS, "usgs_library", content)
    return file.getvalue()


def nothing_is_left(folder):
    return not folder.exists() or not [path for path in folder.rglob("*") if path.is_file()]


# ---------------------------------------------------------------- recipes


@needs_data
@pytest.mark.parametrize("name", WITH_ORIGINALS)
def test_originals_become_the_data_that_are_expected(name):
    paths = [ORIGINALS / one for one in WITH_ORIGINALS[name]]
    if not all(path.is_file() for path in paths):
        pytest.skip("there is no folder of originals beside that of data")
    arrays = RECIPES[name](paths)
    assert difference(arrays, CONTENTS[name]) is None


def as_matlab(folder, name, **arrays):
    savemat(folder / name, arrays, do_compression=True)
    return folder / name


def nifti(signal):
    """Return an image as the bytes of a NIfTI file."""
    header = bytearray(352)
    header[:4] = (348).to_bytes(4, "little")
    sizes = np.array([signal.ndim, *signal.shape], "<i2").tobytes()
    header[40 : 40 + len(sizes)] = sizes
    header[70:72] = {"u1": 2, "i2": 4, "u2": 512}[signal.dtype.str[1:]].to_bytes(2, "little")
    header[108:112] = np.array(352, "<f4").tobytes()
    return bytes(header) + signal.tobytes(order="F")


@needs_data
@pytest.mark.parametrize("directions", [64, 101])
def test_diffusion_from_what_is_as_dipy_distributes_it(directions, tmp_path, monkeypatch):
    name = f"diffusion_mri_{directions}"
    z = np.load(find(name))
    image, bval, bvec = (tmp_path / part for part in ("image", "one", "two"))
    image.write_bytes(nifti(z["signal"]) if directions == 64 else gzip.compress(nifti(z["signal"])))
    np.savetxt(bval, z["bval"][None])
    np.savetxt(bvec, z["bvec"] if directions == 64 else z["bvec"].T)
    assert difference(RECIPES[name]([bvec, image, bval]), CONTENTS[name]) is None
    with pytest.raises(ValueError, match="an image, a file of b-values and one of b-vectors"):
        RECIPES[name]([bvec, image])


@needs_data
def test_mutations_from_tables_in_another_order(tmp_path):
    z = np.load(find("mutational_signatures"))
    names = [str(channel) for channel in z["channels"]]
    with (tmp_path / "a").open("w", newline="") as file:
        write = csv.writer(file, delimiter="\t").writerow
        write(["Type", *z["cosmic_names"]])
        for channel, row in zip(names, z["cosmic_v3_4"].tolist(), strict=True):
            write([channel, *row])
    order = sorted(range(96), key=lambda i: names[i][2:5])
    with (tmp_path / "b").open("w", newline="") as file:
        write = csv.writer(file).writerow
        tumours = zip(z["pcawg_type"], z["pcawg_id"], strict=True)
        write(["Mutation type", "Trinucleotide", *map("::".join, tumours)])
        for i in order:
            write([names[i][2:5], names[i][0] + names[i][2] + names[i][6], *z["pcawg_counts"][i]])
    breast = as_matlab(
        tmp_path,
        "c",
        originalGenomes=z["breast21_counts"][order].astype(np.uint16),
        types=np.array([[names[i][2:5]] for i in order], dtype=object),
        subtypes=np.array([[names[i][0] + names[i][2] + names[i][6]] for i in order], dtype=object),
    )
    arrays = RECIPES["mutational_signatures"]([tmp_path / "b", breast, tmp_path / "a"])
    assert difference(arrays, CONTENTS["mutational_signatures"]) is None


ARTICLE = (
    '<REUTERS TOPICS="{0}" LEWISSPLIT="{1}" CGISPLIT="x" OLDID="0" NEWID="{2}">\n'
    "<TOPICS>{3}</TOPICS><TEXT{4}>&#2;\n<TITLE>{5}</TITLE><BODY>{6}</BODY></TEXT>\n</REUTERS>\n"
)


def test_which_articles_of_reuters_count_and_what_of_them(tmp_path):
    grain, gold = "<D>grain</D>", "<D>gold</D>"
    first = [
        ("YES", "TRAIN", 9, grain + gold, "", "Wheat rises", "wheat &#3;&lt;Wheat> grows"),
        ("YES", "TRAIN", 10, grain, ' TYPE="BRIEF"', "Grain", "Blah blah blah."),
        ("YES", "TRAIN", 11634, grain, "", "left out", ""),
        ("YES", "TRAIN", 3, gold, "", "in training alone", ""),
        ("NO", "TRAIN", 4, grain, "", "not indexed", ""),
        ("YES", "NOT-USED", 5, grain, "", "not used", ""),
    ]
    second = [
        ("YES", "TEST", 6, grain, "", "test", ""),
        ("YES", "TRAIN", 2, grain, ' TYPE="UNPROC"', "raw", ""),
    ]
    (tmp_path / "sgml").mkdir()
    for name, articles in (("one.sgm", first), ("two.sgm", second)):
        (tmp_path / "sgml" / name).write_text("".join(ARTICLE.format(*one) for one in articles))
    (tmp_path / "sgml" / "README").write_text("not an article")
    with tarfile.open(tmp_path / "packed", "w:gz") as archive:
        archive.add(tmp_path / "sgml", "anything")
    ways = ([tmp_path / "sgml"], [tmp_path / "packed"], sorted((tmp_path / "sgml").glob("*.sgm")))
    for paths in ways:
        found = RECIPES["reuters"](paths)
        assert found["ids"].tolist() == [10, 2, 9]  # sorted as text
        assert found["vocabulary"].item() == b"blah\ngrain\ngrows\nlt\nrises\nwheat"
        assert found["data"].tolist() == [3, 1, 1, 1, 1, 3]
        assert found["indptr"].tolist() == [0, 2, 2, 6]
        assert found["topic_names"].tolist() == ["grain"]
        assert found["topics"].tolist() == [[128]] * 3
    with pytest.raises(ValueError, match="no articles for training and test"):
        RECIPES["reuters"]([tmp_path / "sgml" / "one.sgm"])


# ---------------------------------------------------------------- adding


def test_a_file_of_any_name_is_added_and_found(small, own, tmp_path, capsys):
    (tmp_path / "spectra of mine.bin").write_bytes(small)
    assert main(["datasets", "add", "usgs_library", str(tmp_path / "spectra of mine.bin")]) == 0
    written = own / FILES["usgs_library"].path
    assert capsys.readouterr().out == f"usgs_library is ready: {written}\n"
    assert find("usgs_library") == written
    assert load_usgs_library().names.tolist() == ["salt", "snow"]
    before = written.stat().st_ino
    add("usgs_library", [tmp_path / "spectra of mine.bin"])  # again, in its place
    assert written.stat().st_ino != before
    assert [path.name for path in written.parent.iterdir()] == [written.name]


def test_without_the_variable_the_cache_is_used(small, tmp_path, monkeypatch):
    monkeypatch.delenv("CONEPURSUIT_DATA")
    (tmp_path / "a.mat").write_bytes(small)
    assert add("usgs_library", [tmp_path / "a.mat"]).is_relative_to(tmp_path / "cache")
    assert {row.file.name for row in available() if row.intact} == {
        "usgs_library",
        *(name for name, file in FILES.items() if file.packaged),
    }


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda whole: whole[: len(whole) // 2], "cannot be read as a MATLAB file"),
        (lambda whole: b"", "cannot be read as a MATLAB file"),
        (lambda whole: b"<html>404</html>", "cannot be read as a MATLAB file"),
    ],
)
def test_damaged_originals_are_refused_and_nothing_is_left(small, own, tmp_path, wrong, reason):
    path = tmp_path / "USGS_1995_Library.mat"
    path.write_bytes(wrong(small))
    with pytest.raises(DatasetContentError, match=reason) as caught:
        add("usgs_library", [path])
    assert str(path) in str(caught.value)
    assert FILES["usgs_library"].source in str(caught.value)
    assert nothing_is_left(own)


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "reuters"])
def test_another_file_is_refused(name, own, tmp_path):
    path = as_matlab(tmp_path, "other.mat", elevation=np.ones((3, 2)))
    with pytest.raises(
        DatasetContentError, match=r"cannot be prepared from .*other\.mat"
    ) as caught:
        add(name, [path])
    assert all(one in str(caught.value) for one in FILES[name].originals)
    assert nothing_is_left(own)


def test_the_right_kind_with_other_content_is_refused(own, tmp_path):
    scene = {"Y": np.ones((4, 6)), "GT": np.ones((3, 4)), "S_GT": np.ones((2, 3, 3))}
    with pytest.raises(DatasetContentError, match=r"'Y' should be <f8 of shape \(156, 9025\); got"):
        add("samson", [as_matlab(tmp_path, "a.mat", **scene)])
    with pytest.raises(DatasetContentError, match="cannot reshape"):
        add("cbcl_faces", [as_matlab(tmp_path, "b.mat", M=np.ones((5, 7)))])
    library = {"lib6": 1, "A": 1, "material_names": "a"}
    with pytest.raises(DatasetContentError, match="no file has the arrays data, map; "):
        add("urban", [as_matlab(tmp_path, "c.mat", **library)])
    (tmp_path / "d.tar.gz").write_bytes(b"\x1f\x8b not an archive")
    with pytest.raises(DatasetContentError, match=r"cannot be read as an archive of \.sgm files"):
        add("reuters", [tmp_path / "d.tar.gz"])
    assert nothing_is_left(own)


def test_what_cannot_be_added_is_said_on_one_line(own, tmp_path, capsys):
    for arguments, words in {
        ("iris", "x"): "there is no data set 'iris'. Those known: sonar,",
        ("sonar", "x"): "'sonar' is part of the package",
        ("samson", str(tmp_path / "no.mat")): "no.mat: no such file or directory",
    }.items():
        assert main(["datasets", "add", *arguments]) == 2
        told = capsys.readouterr().err
        assert words in told
        assert told.count("\n") == 1


def test_a_folder_that_cannot_be_written(small, own, tmp_path):
    (tmp_path / "a.mat").write_bytes(small)
    own.write_text("a file, where a folder is needed; root may write to any folder")
    with pytest.raises(OSError, match=r"cannot be written: .* Let the environment") as told:
        add("usgs_library", [tmp_path / "a.mat"])
    assert f"or unset it to use {tmp_path / 'cache'}" in str(told.value)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_folder_that_is_read_only(small, own, tmp_path):
    (tmp_path / "a.mat").write_bytes(small)
    own.mkdir(mode=0o500)
    with pytest.raises(OSError, match="cannot be written: permission denied"):
        add("usgs_library", [tmp_path / "a.mat"])


def test_an_interrupt_leaves_nothing_half_written(small, own, tmp_path, monkeypatch):
    (tmp_path / "a.mat").write_bytes(small)

    def interrupted(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        add("usgs_library", [tmp_path / "a.mat"])
    assert nothing_is_left(own)


@needs_data
def test_prepared_faces_are_those_of_the_folder(own, tmp_path, monkeypatch):
    """Through a whole round: an original is made of the data, added, loaded, and equal to them."""
    faces = load_cbcl_faces(scaled=False, folder=FOLDER)
    upright = faces.images().transpose(0, 2, 1).reshape(len(faces.V.T), -1)
    path = as_matlab(tmp_path, "mine.mat", M=(256 - upright.T.astype(float)) / 256)
    assert add("cbcl_faces", [path]) == own / "cbcl" / "cbcl_faces.npz"
    np.testing.assert_array_equal(load_cbcl_faces(scaled=False).V, faces.V)
    with pytest.raises(FileNotFoundError, match=r"conepursuit datasets add samson Samson\.mat"):
        load_samson()


# ---------------------------------------------------------------- fetching


class Handler(BaseHTTPRequestHandler):
    """Serves one content at every path; /short promises more than it sends."""

    def __init__(self, content, *arguments):
        self.content = content
        super().__init__(*arguments)

    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        short = self.path == "/short"
        self.wfile.write(self.content[: len(self.content) // 2] if short else self.content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(small, monkeypatch, tmp_path):
    """Return a function that lets the USGS library be at a path of a server of our own."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, small))
    thread = Thread(target=served.serve_forever, daemon=True)
    thread.start()
    (tmp_path / "downloads").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "downloads"))

    def at(path):
        address = f"http://127.0.0.1:{served.server_port}/{path}"
        file = replace(FILES["usgs_library"], addresses=(address,))
        monkeypatch.setitem(FILES, "usgs_library", file)

    yield at
    served.shutdown()
    served.server_close()
    thread.join()


def test_fetched_data_are_prepared(server, own, capsys):
    server("spectra.mat")
    assert main(["datasets", "fetch", "usgs_library"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("The terms of usgs_library: public domain")
    assert f"usgs_library is ready: {own / FILES['usgs_library'].path}" in out
    assert load_usgs_library().spectra.tolist() == [[0.4, 0.8], [0.3, 0.9]]


@pytest.mark.parametrize("path", ["short", "missing"])
def test_a_download_that_fails_leaves_nothing(server, own, tmp_path, path):
    server(path)
    with pytest.raises(OSError, match=f"/{path} could not be fetched: .*datasets add usgs_library"):
        fetch("usgs_library")
    assert nothing_is_left(own)
    assert not list((tmp_path / "downloads").iterdir())


def test_an_interrupted_download_leaves_nothing(server, own, tmp_path, monkeypatch):
    pooch = pytest.importorskip("pooch")

    def interrupted(self, url, output_file, _):
        Path(output_file).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    server("spectra.mat")
    with pytest.raises(KeyboardInterrupt):
        fetch("usgs_library")
    assert nothing_is_left(own)
    assert not list((tmp_path / "downloads").iterdir())


def test_only_what_the_terms_allow_is_fetched():
    assert {name for name, file in FILES.items() if file.addresses} == {"reuters", "usgs_library"}
    for name, file in FILES.items():
        if file.packaged:
            with pytest.raises(ValueError, match="is part of the package"):
                fetch(name)
        elif not file.addresses:
            with pytest.raises(ValueError, match="its terms do not say that it may be") as caught:
                fetch(name)
            assert file.source in str(caught.value)
            assert file.adding in str(caught.value)


def test_without_pooch_it_is_said_what_to_install(own, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ImportError, match=r'fetch needs pooch: pip install "conepursuit\[cli\]"'):
        fetch("usgs_library")
