"""Tiles of a scene: which rows they have, what is written, and what an interrupt leaves."""

import json
import threading

import numpy as np
import pytest

from conepursuit.scenes import open_scene, streaming
from conepursuit.scenes.results import MAPS, Progress, Results, check_same, read_progress
from conepursuit.scenes.streaming import rounded_up, sample, tiles_of, unmix_tiles
from conepursuit.scenes.survey import survey
from conepursuit.unmixing import Unmixer
from scene_files import KINDS, made, save


@pytest.fixture
def begun(tmp_path):
    """Return what `unmix_tiles` takes, with created maps of a scene of 11 rows."""
    X, spectra = made()
    return begin(save(X, tmp_path / "scene.npy"), X, spectra, 4)


def begin(path, X, spectra, tile_rows):
    scene = open_scene(path)
    model = Unmixer(endmembers=spectra).find_endmembers(X)
    layers = {name: [name] for name in MAPS} | {"abundance": ["a", "b", "c"]}
    maps = {name: scene.map_in(path.parent, name, layers[name]) for name in MAPS}
    for file in maps.values():
        file.create(tile_rows)
    progress = Progress(path.parent / "progress.json", {})
    return scene, model, maps, tiles_of(scene, tile_rows), progress


@pytest.mark.parametrize("tile_rows", [1, 4, 11, 50])
def test_tiles_cover_all_rows(tile_rows, tmp_path):
    scene = open_scene(save(made()[0], tmp_path / "scene.npy"))
    tiles = tiles_of(scene, tile_rows)
    assert np.concatenate([np.arange(11)[rows] for rows in tiles]).tolist() == list(range(11))
    assert {rows.stop - rows.start for rows in tiles[:-1]} <= {tile_rows}


def test_tiles_are_of_whole_blocks_of_the_file(tmp_path, monkeypatch):
    import xarray

    data = xarray.Dataset({"X": (("y", "x", "band"), made()[0])})
    data.to_zarr(tmp_path / "s.zarr", zarr_format=2, encoding={"X": {"chunks": (3, 7, 6)}})
    monkeypatch.setattr(streaming, "TILE_BYTES", 8 * 7 * 6 * 7.5)  # seven rows and a half
    assert [rows.stop for rows in tiles_of(open_scene(tmp_path / "s.zarr"))] == [6, 11]


def test_the_sample_is_spaced_evenly_whatever_the_tiles(tmp_path, monkeypatch):
    X, _ = made()
    scene = open_scene(save(X, tmp_path / "scene.npy"))
    assert sample(scene, tiles_of(scene, 4)).step == 1
    monkeypatch.setattr(streaming, "SAMPLE_BYTES", X.size * 8 / 9)
    for tile_rows in (1, 4, 11):
        pixels, step = sample(scene, tiles_of(scene, tile_rows))
        assert step == 3
        np.testing.assert_array_equal(pixels, X[::3, ::3])


def test_maps_hold_the_answers_of_the_model(begun):
    scene, model, maps, tiles, progress = begun
    rows = []
    seconds = unmix_tiles(scene, model, maps, tiles, progress, rows.append)
    expected = model.unmix(scene.read(slice(0, 11)))
    whole = slice(0, 11)
    np.testing.assert_array_equal(
        maps["abundance"].read(whole), expected.abundances.astype(np.float32)
    )
    np.testing.assert_array_equal(
        maps["residual"].read(whole)[..., 0], expected.residual.astype(np.float32)
    )
    assert (maps["gap"].read(whole)[..., 0] >= expected.gap).all()
    assert rows == [4, 4, 3]
    assert progress.total("known") == 77
    assert progress.total("proven") == expected.proven.sum()
    assert min(seconds.values()) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_files_may_be_read_and_written_at_the_same_time(kind, tmp_path):
    X, spectra = made(60)
    scene, model, maps, tiles, progress = begin(save(X, tmp_path / f"scene.{kind}"), X, spectra, 1)
    unmix_tiles(scene, model, maps, tiles, progress, lambda done: None)
    found = maps["abundance"].read(slice(0, 60))
    np.testing.assert_array_equal(found, model.unmix(X).abundances.astype(np.float32))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_finished_tiles_are_noted_when_a_later_one_fails(error, begun, monkeypatch):
    scene, model, maps, tiles, progress = begun
    unmix = model.unmix

    def fail_at_the_third(tile):
        if len(tile) == 3:
            raise error
        return unmix(tile)

    monkeypatch.setattr(model, "unmix", fail_at_the_third)
    with pytest.raises(error):
        unmix_tiles(scene, model, maps, tiles, progress, lambda done: None)
    assert sorted(read_progress(progress.path).tiles) == [0, 4]


TILE = {"known": 4, "proven": 3}


@pytest.mark.parametrize(
    "content",
    ["", "[" * 100_000, "[]", "{}", {"tiles": [], "identity": {}}, {"tiles": {}, "identity": 3},
     {"tiles": {"a": TILE}, "identity": {}}, {"tiles": {"0": True}, "identity": {}},
     {"tiles": {"0": {**TILE, "known": 10**400}}, "identity": {}},
     {"tiles": {"0": {**TILE, "proven": 5}}, "identity": {}}],
    ids=range(10),
)  # fmt: skip
def test_progress_that_is_damaged_is_named(content, tmp_path):
    path = tmp_path / "progress.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ValueError, match=r"progress.json is not .*--overwrite.*, or is damaged"):
        read_progress(path)


def test_an_error_of_the_writer_ends_the_run(begun, monkeypatch):
    scene, model, maps, tiles, progress = begun

    def no_room(rows, values):
        raise OSError(28, "No space left on device", "gap.npy")

    monkeypatch.setattr(type(maps["gap"]), "write", lambda self, *a: no_room(*a))
    with pytest.raises(OSError, match="No space left"):
        unmix_tiles(scene, model, maps, tiles, progress, lambda done: None)
    assert not progress.tiles


def test_one_tile_is_read_ahead_and_no_more(begun):
    scene, model, maps, _, progress = begun
    unmix, ahead = model.unmix, []
    lock, reads = threading.Lock(), [0]

    class Counting:
        def read(self, rows):
            with lock:
                reads[0] += 1
            return scene.read(rows)

    def counted(tile):
        ahead.append(reads[0])
        return unmix(tile)

    model.unmix = counted
    unmix_tiles(Counting(), model, maps, tiles_of(scene, 1), progress, lambda done: None)
    assert all(read <= done + 2 for done, read in enumerate(ahead))


def test_a_bound_stays_a_bound():
    values = np.array([0.0, 1e-60, 1 / 3, 0.1, 1e300, np.inf, np.nan])
    up = rounded_up(values)
    assert up.dtype == np.float32
    assert (up[:-1] >= values[:-1]).all()
    assert np.isnan(up[-1])
    np.testing.assert_allclose(up[2:4], values[2:4], rtol=2e-7)


def test_the_survey_is_that_of_all_pixels(begun):
    scene, model, maps, tiles, progress = begun
    unmix_tiles(scene, model, maps, tiles, progress, lambda done: None)
    found = model.unmix(scene.read(slice(0, 11)))
    seen = survey(maps, tiles_of(scene, 2), scene.shape)
    np.testing.assert_allclose(seen.mean, found.abundances.mean(axis=(0, 1)), rtol=1e-6)
    np.testing.assert_allclose(seen.largest, found.abundances.max(axis=(0, 1)), rtol=1e-6)
    assert seen.residual_rms == pytest.approx(np.sqrt((found.residual**2).mean()), rel=1e-6)
    assert seen.gap_largest == pytest.approx(found.gap.max(), rel=1e-6)
    assert seen.abundances.shape == (11, 7, 3)


def test_what_differs_from_an_interrupted_run_is_named():
    before = {"--loss": "huber", "scene": {"shape": [1, 2, 3]}}
    check_same(before, dict(before))
    with pytest.raises(ValueError, match='has --loss "huber"; now it is not set'):
        check_same(before, {**before, "--loss": None})


def test_damaged_progress_is_refused(tmp_path):
    path = tmp_path / "progress.json"
    for text in ("{", "[]", json.dumps({"tiles": {}})):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"damaged.*--overwrite"):
            read_progress(path)


def test_only_own_files_are_deleted(tmp_path):
    results = Results(tmp_path)
    kept = tmp_path / "notes.txt"
    kept.write_text("mine")
    (tmp_path / "abundance.zarr").mkdir()
    (tmp_path / "gap.tif").write_text("old")
    results.begin(0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "unfinished"]
