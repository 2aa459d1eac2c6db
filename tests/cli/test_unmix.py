"""``conepursuit unmix``: maps of every format, interrupts, and what it says of bad input."""

import gzip
import json
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from conepursuit.cli import main, unmixing
from conepursuit.cli.unmixing import bands_of
from conepursuit.unmixing import Unmixer
from scene_files import KINDS, jasper_ridge, made, map_bytes, read_map, save

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def quick(monkeypatch):
    """Draw nothing: most tests look at maps."""
    monkeypatch.setattr("conepursuit.cli.unmixed.picture", lambda *a, **k: b"")
    monkeypatch.setattr("conepursuit.cli.unmixed.draw", lambda plot: "<svg></svg>")


@pytest.fixture
def scene(tmp_path):
    """Save a scene of 11 x 7 pixels in 6 bands as scene.npy, and return it and its spectra."""
    X, spectra = made()
    save(X, tmp_path / "scene.npy")
    return SimpleNamespace(X=X, spectra=spectra)


def run(capsys, *arguments):
    """Run the command; return its exit code and what it printed on stdout and on stderr."""
    capsys.readouterr()
    code = main(["unmix", *map(str, arguments)])
    return code, *capsys.readouterr()


def check_maps(folder, kind, X, model):
    """Compare maps with the answers of a model."""
    expected = model.unmix(X)
    found = read_map(folder, "abundance", kind)
    np.testing.assert_array_equal(found, expected.abundances.astype(np.float32))
    residual = read_map(folder, "residual", kind)[:, :, 0]
    np.testing.assert_array_equal(residual, expected.residual.astype(np.float32))
    np.testing.assert_allclose(read_map(folder, "gap", kind)[:, :, 0], expected.gap, rtol=1e-6)


@pytest.mark.parametrize("kind", ["hdr", "tif", "zarr"])
def test_maps_of_jasper_ridge_are_the_answers_of_the_unmixer(kind, tmp_path, capsys):
    X = jasper_ridge()
    path = save(X, tmp_path / f"jasper_ridge.{kind}")
    code, out, err = run(capsys, path, "--endmembers", 4, "--out", "maps", "--tile-rows", 30)
    assert (code, err) == (0, "")
    assert "100 % of these" in out
    assert "spa, in the whole scene" in out
    model = Unmixer(4).find_endmembers(X)
    check_maps(tmp_path / "maps", kind, X, model)
    summary = json.loads((tmp_path / "maps/summary.json").read_text())
    assert summary["pixels_certified"] == X.shape[0] * X.shape[1]
    table = np.loadtxt("maps/endmembers.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(table[:, 1:].T, model.endmembers_)
    pictures = {path.name for path in (tmp_path / "maps/pictures").iterdir()}
    assert pictures == {"residual.png", "gap.png", *(f"abundance_{i}.png" for i in range(1, 5))}
    assert not (tmp_path / "maps/unfinished").exists()
    check_place(kind, tmp_path)


def check_place(kind, folder):
    """Check that a GeoTIFF is where its scene is."""
    if kind == "tif":
        import rasterio

        with (
            rasterio.open(folder / "jasper_ridge.tif") as before,
            rasterio.open(folder / "maps/abundance.tif") as after,
        ):
            assert after.transform == before.transform
            assert after.crs == before.crs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("quick")
def test_interrupted_and_resumed_maps_are_byte_identical(kind, tmp_path, capsys, monkeypatch):
    X, _ = made()
    path = save(X, tmp_path / f"scene.{kind}")
    asked = (path, "--endmembers", 3, "--tile-rows", 2)
    assert run(capsys, *asked, "--out", "whole")[0] == 0

    unmix, left = Unmixer.unmix, [3]

    def interrupted(self, tile):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return unmix(self, tile)

    monkeypatch.setattr(Unmixer, "unmix", interrupted)
    code, _, err = run(capsys, *asked, "--out", "parts")
    assert code == 130
    assert "2 of 6 tiles are in parts" in err
    assert "--resume" in err
    assert not map_bytes(tmp_path / "parts")
    code, _, err = run(capsys, *asked, "--out", "parts")
    assert code == 2
    assert "holds an unfinished run" in err
    left[0] = 3
    assert run(capsys, *asked, "--out", "parts", "--resume")[0] == 130
    left[0] = 100
    code, _, err = run(capsys, *asked, "--out", "parts", "--resume")
    assert (code, err) == (0, "")
    assert left[0] == 98  # two tiles were left
    assert map_bytes(tmp_path / "parts") == map_bytes(tmp_path / "whole")


@pytest.mark.usefixtures("scene")
def test_ctrl_c_leaves_finished_tiles(tmp_path):
    program = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
from conepursuit.cli import main
from conepursuit.unmixing import Unmixer
unmix = Unmixer.unmix
Unmixer.unmix = lambda self, tile: (time.sleep(0.2), unmix(self, tile))[1]
sys.exit(main(sys.argv[1:]))
"""
    asked = ["unmix", "scene.npy", "--endmembers", "3", "--out", "maps", "--tile-rows", "1"]
    command = [sys.executable, "-c", program, *asked]
    progress = tmp_path / "maps/unfinished/progress.json"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        end = time.monotonic() + 300
        while time.monotonic() < end and not (progress.exists() and '"0"' in progress.read_text()):
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=300)
    assert child.returncode == 130, err
    assert "of 11 tiles are in maps" in err
    assert main([*asked, "--resume"]) == 0
    X = np.load("scene.npy")
    check_maps(tmp_path / "maps", "npy", X, Unmixer(3).find_endmembers(X))


@pytest.mark.usefixtures("quick")
def test_a_resumed_run_must_be_the_same(scene, capsys, monkeypatch):
    asked = ("scene.npy", "--endmembers", 3, "--out", "maps", "--tile-rows", 2)

    def interrupt(self, tile):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Unmixer, "unmix", interrupt)
        assert run(capsys, *asked)[0] == 130
    for change, named in {
        ("--extractor", "xray"): '--extractor "spa"; now it is "xray"',
        ("--endmembers", 2): "--endmembers 3; now it is 2",
        ("--tile-rows", 3): "--tile-rows 2; now it is 3",
        ("--bad-bands", "1"): "--bad-bands []; now it is [1]",
        ("--no-data", 0): '--no-data not set; now it is "0.0"',
        ("--loss", "huber"): "--loss",
    }.items():
        code, _, err = run(capsys, *asked, *change, "--resume")
        assert code == 2
        assert named in err
        assert "--overwrite" in err
    np.save("scene.npy", scene.X + 1)
    code, _, err = run(capsys, *asked, "--resume")
    assert code == 2
    assert "the unfinished run has scene" in err
    assert run(capsys, *asked, "--overwrite")[0] == 0
    code, _, err = run(capsys, *asked, "--resume")
    assert code == 2
    assert "no unfinished run" in err


def write_library(path, spectra, *, rows=False, names=("oak", "water", "sand")):
    labels = [f"{400 + 10 * i}" for i in range(spectra.shape[1])]
    if rows:
        body = zip(names, spectra.tolist(), strict=True)
    else:
        body = zip(labels, spectra.T.tolist(), strict=True)
    head = ["name", *labels] if rows else ["wavelength", *names]
    lines = [head, *([label, *values] for label, values in body)]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")


@pytest.mark.parametrize("way", ["column", "row"])
@pytest.mark.usefixtures("quick")
def test_a_library_may_hold_spectra_as_columns_or_rows(way, scene, tmp_path, capsys):
    write_library(tmp_path / "library.csv", scene.spectra, rows=way == "row")
    code, out, _ = run(capsys, "scene.npy", "--library", "library.csv", "--out", "maps")
    assert code == 0
    assert f"library.csv, one spectrum per {way}" in out
    assert all(name in out for name in ("oak", "water", "sand"))
    model = Unmixer(endmembers=scene.spectra).find_endmembers(scene.X)
    check_maps(tmp_path / "maps", "npy", scene.X, model)
    # What is written is a library itself.
    again = run(capsys, "scene.npy", "--library", "maps/endmembers.csv", "--out", "again")
    assert again[0] == 0
    assert map_bytes(tmp_path / "again") == map_bytes(tmp_path / "maps")
    with gzip.open("library.txt.gz", "wb") as file:
        file.write((tmp_path / "maps" / "endmembers.csv").read_bytes())
    assert run(capsys, "scene.npy", "--library", "library.txt.gz", "--out", "third")[0] == 0
    assert map_bytes(tmp_path / "third") == map_bytes(tmp_path / "maps")


HOSTILE_NAMES = [
    ["\x1b[31mred", "$x^$", "{a, b}"],
    ["a\0b", "\\frac{$", "; c = {"],
    ["\uffff", "\u202eoak", "<b>[red]&amp;"],
]


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_any_characters_go_into_maps_pictures_and_reports(
    kind, tmp_path, capsys, monkeypatch
):
    X, spectra = made()
    names = HOSTILE_NAMES[KINDS.index(kind) % len(HOSTILE_NAMES)]
    path = save(X, tmp_path / f"scene.{kind}")
    quoted = [f'"{name}"' for name in names]
    write_library(tmp_path / "library.csv", spectra, names=quoted)
    asked = (path, "--library", "library.csv")
    monkeypatch.setattr("conepursuit.cli.unmixing.write_results", ctrl_c)
    assert run(capsys, *asked, "--out", "maps")[0] == 130
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *asked, "--out", "maps", "--resume")
    assert (code, err) == (0, "")
    assert all(c.isprintable() or c == "\n" for c in out)
    assert read_map(tmp_path / "maps", "abundance", kind).shape == (11, 7, 3)
    assert len(json.loads((tmp_path / "maps/summary.json").read_text())["endmembers"]) == 3


def ctrl_c(*_):
    raise KeyboardInterrupt


@pytest.mark.usefixtures("quick")
def test_an_envi_library_and_at_most_one_endmember(scene, tmp_path, capsys):
    from spectral.io import envi

    library = envi.SpectralLibrary(
        scene.spectra.astype(np.float32), {"spectra names": ["oak", "water", "sand"]}
    )
    library.save(str(tmp_path / "minerals"))
    asked = ("--library", "minerals.sli", "--max-endmembers", 1, "--out", "maps")
    assert run(capsys, "scene.npy", *asked)[0] == 0
    model = Unmixer(endmembers=scene.spectra, max_endmembers=1).find_endmembers(scene.X)
    check_maps(tmp_path / "maps", "npy", scene.X, model)
    assert (np.count_nonzero(np.load("maps/abundance.npy"), axis=2) <= 1).all()


@pytest.mark.usefixtures("scene", "quick")
def test_all_options_reach_the_unmixer(capsys, monkeypatch):
    seen = []

    def recorded(*arguments, **options):
        seen.append(dict(options))
        return Unmixer(*arguments, **{**options, "sum_to_one": False})

    monkeypatch.setattr(unmixing, "Unmixer", recorded)
    asked = ("--sum-to-one", "--extractor", "xray", "--bad-bands", "0,2-3", "--no-data", "7")
    assert run(capsys, "scene.npy", "--endmembers", 2, *asked, "--out", "maps")[0] == 0
    for options in seen:
        assert options["sum_to_one"] is True
        assert options["extractor"] == "xray"
        assert options["bad_bands"].tolist() == [True, False, True, True, False, False]
        assert options["no_data"] == 7.0


@pytest.mark.parametrize("kind", ["tif", "hdr", "npy"])
@pytest.mark.usefixtures("quick")
def test_pixels_without_data_are_nan_in_maps(kind, tmp_path, capsys):
    X, _ = made()
    X[:3] = 9999
    X[5, 5] = 0  # a pixel that is all zero has data: no material
    path = save(X, tmp_path / f"scene.{kind}", no_data=9999)
    told = () if kind != "npy" else ("--no-data", 9999)
    code, out, _ = run(capsys, path, "--endmembers", 3, *told, "--out", "maps", "--tile-rows", 2)
    assert code == 0
    assert "77, 56 of them with data" in out
    for name in ("abundance", "residual", "gap"):
        found = read_map(tmp_path / "maps", name, kind)
        assert np.isnan(found[:3]).all()
        assert np.isfinite(found[3:]).all()
    assert not read_map(tmp_path / "maps", "abundance", kind)[5, 5].any()


@pytest.mark.usefixtures("quick")
def test_one_pixel(capsys):
    np.save("scene.npy", np.array([[[3.0, 4.0]]]))
    assert run(capsys, "scene.npy", "--endmembers", 1, "--out", "maps")[0] == 0
    assert np.load("maps/abundance.npy").tolist() == [[1.0]]
    code, _, err = run(capsys, "scene.npy", "--endmembers", 2, "--out", "more")
    assert code == 2
    assert "--endmembers 2: n must be at most" in err
    assert "1 such pixels" in err


BAD = {
    "neither": ((), "got neither"),
    "both": (("--endmembers", 2, "--library", "scene.npy"), "got both"),
    "more endmembers than bands": (("--endmembers", 7), "6 bands and 77 such pixels"),
    "bad band": (("--endmembers", 2, "--bad-bands", "4-6"), "from 0 to 5, the smaller first"),
    "bad bands": (("--endmembers", 2, "--bad-bands", "a"), "as in 0-3,105; got 'a'"),
    "all bad": (("--endmembers", 2, "--bad-bands", "0-5"), "all 6 bands are bad"),
    "no data": (("--endmembers", 2, "--no-data", "-1"), "from 0 to 65535"),
    "a broken no data": (("--endmembers", 2, "--no-data", "0.5"), "got 0.5"),
    "no data as nan": (("--endmembers", 2, "--no-data", "nan"), "got nan"),
    "extractor": (("--endmembers", 2, "--extractor", "best"), "best"),
    "loss": (("--endmembers", 2, "--loss", "best"), "squared_error"),
    "limits": (("--endmembers", 2, "--sum-to-one", "--max-endmembers", 1), "do not go together"),
    "library": (("--library", "none.csv"), "none.csv: there is no such file"),
    "kind of library": (("--library", "scene.npy"), "must be an ENVI library"),
    "flags": (("--endmembers", 2, "--resume", "--overwrite"), "do not go together"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.usefixtures("scene")
def test_bad_options(name, tmp_path, capsys):
    options, text = BAD[name]
    code, out, err = run(capsys, "scene.npy", *options, "--out", "maps")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert text in err
    assert not (tmp_path / "maps").exists()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("name,1,2\na,1,2\nb,3,4\n", "line or a column for each of the 6 bands"),
        ("band,a\n" + "0,1\n" * 5 + "5,nan\n", "must hold finite numbers"),
        ("band,a,b\n" + "0,1,0\n" * 6, "no spectrum that is all zero"),
    ],
)
@pytest.mark.usefixtures("scene")
def test_bad_libraries(content, text, tmp_path, capsys):
    (tmp_path / "library.csv").write_text(content)
    code, _, err = run(capsys, "scene.npy", "--library", "library.csv", "--out", "maps")
    assert code == 2
    assert text in err


def test_an_envi_library_of_other_bands(scene, tmp_path, capsys):
    from spectral.io import envi

    library = envi.SpectralLibrary(
        scene.spectra[:, :5].astype(np.float32), {"spectra names": ["a", "b", "c"]}
    )
    library.save(str(tmp_path / "minerals"))
    code, _, err = run(capsys, "scene.npy", "--library", "minerals.sli", "--out", "maps")
    assert code == 2
    assert "spectra of 5 bands, and the scene has 6" in err


@pytest.mark.parametrize("asked", [("--endmembers", 2), ("--library", "library.csv")])
@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_scene_without_content(asked, value, scene, tmp_path, capsys):
    write_library(tmp_path / "library.csv", scene.spectra)
    np.save("scene.npy", np.full((4, 5, 6), value))
    code, _, err = run(capsys, "scene.npy", *asked, "--out", "maps")
    if value == 0.0 and asked[0] == "--library":
        assert code == 0  # a dark scene has no material, which is an answer
        return
    assert code == 2
    assert "not all zero" in err or "has data" in err
    assert not map_bytes(tmp_path)


@pytest.mark.usefixtures("scene")
def test_a_run_that_fails_at_once_leaves_nothing(tmp_path, capsys):
    asked = ("scene.npy", "--endmembers", 2, "--loss", "logistic", "--out", "maps")
    code, _, err = run(capsys, *asked)
    assert code == 2
    assert "labels of two classes" in err
    assert not any((tmp_path / "maps").iterdir())


@pytest.mark.usefixtures("scene")
def test_bad_folders(tmp_path, capsys, monkeypatch):
    asked = ("scene.npy", "--endmembers", 3, "--out")
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("")
    for out, text in {
        "none/maps": "there is no folder none. Make it first",
        "file": "file is a file",
        "full": "full holds files. Use another folder, or --overwrite",
        ".": "holds files",
    }.items():
        code, _, err = run(capsys, *asked, out)
        assert code == 2
        assert text in err
    code, _, err = run(capsys, *asked, ".", "--overwrite")
    assert code == 2
    assert "must not hold the scene" in err
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=100))
        code, _, err = run(capsys, *asked, "maps")
        assert code == 2
        assert "has room for 0 MB" in err

    def forbidden(self, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.mkdir", forbidden)
    code, _, err = run(capsys, *asked, "maps")
    assert code == 2
    assert "permission denied" in err


def test_a_truncated_image_ends_in_one_line(tmp_path, capsys):
    path = save(made()[0], tmp_path / "scene.hdr")
    data = path.with_suffix(".img")
    data.write_bytes(data.read_bytes()[:-3])
    code, _, err = run(capsys, path, "--endmembers", 2, "--out", "maps")
    assert code == 2
    assert "scene.img is truncated" in err
    code, _, err = run(capsys, "none.hdr", "--endmembers", 2, "--out", "maps")
    assert code == 2
    assert "none.hdr: there is no such file" in err


def test_bands_are_numbers_and_ranges():
    assert bands_of("0-3, 105", 200) == [0, 1, 2, 3, 105]


def test_nothing_of_a_format_is_imported_before_it_is_needed():
    program = """
import sys
import conepursuit
from conepursuit.cli import main
main(["unmix", "--help"])
import conepursuit.cli.unmixing
names = {"rasterio", "spectral", "xarray", "zarr", "netCDF4", "matplotlib.figure"}
assert not names & set(sys.modules), names & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_is_seen_in_a_browser(width, tmp_path, capsys):
    from matplotlib.image import imread

    save(made(30, 20, 20)[0], tmp_path / "scene.npy")
    assert run(capsys, "scene.npy", "--endmembers", 3, "--out", "maps")[0] == 0
    page = tmp_path / "maps/report.html"
    text = page.read_text(encoding="utf-8")
    assert "http" not in text.replace("http://www.w3.org/", "")  # names of SVG, not addresses
    assert text.count("data:image/png;base64,") == 5
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    shot = tmp_path / "report.png"
    size = [f"--screenshot={shot}", f"--window-size={width},2600"]
    folder = f"--user-data-dir={tmp_path / 'browser'}"
    subprocess.run(
        [BROWSER, *options, *size, folder, page.as_uri()], capture_output=True, check=True
    )
    seen = imread(shot)[:, :, :3]
    assert seen.shape[1] == width
    coloured = (seen.max(axis=2) - seen.min(axis=2) > 0.2).mean(axis=1)
    # Colours of maps, which the page has nowhere else, are in many rows of the screenshot.
    assert (coloured > 0.1).mean() > 0.1
