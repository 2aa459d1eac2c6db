"""``conepursuit unmix``: from a scene in a file to a folder of maps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console

from conepursuit.arrays import Array
from conepursuit.callbacks import batch_progress
from conepursuit.cli import DONE, INTERRUPTED, complain
from conepursuit.cli.display import Waiting
from conepursuit.cli.endmembers import (
    Endmembers,
    numbered,
    read_library,
    read_spectra,
    write_spectra,
)
from conepursuit.cli.layouts import Layout
from conepursuit.cli.unmixed import ENDMEMBERS, Run, show, write_results
from conepursuit.scenes.results import (
    MAPS,
    Progress,
    Results,
    check_same,
    digest,
    map_bytes,
    read_progress,
    scene_identity,
)
from conepursuit.scenes.scene import MapFile, Scene, open_scene
from conepursuit.scenes.streaming import sample, tiles_of, unmix_tiles
from conepursuit.unmixing import Unmixer


@dataclass(frozen=True, kw_only=True)
class Options:
    """What was asked for, by the names of the options."""

    endmembers: int | None
    extractor: str
    library: str | None
    sum_to_one: bool
    max_endmembers: int | None
    loss: str
    bad_bands: str | None
    no_data: float | None
    tile_rows: int | None
    layout: Layout


def unmix(given: str, out: Path, options: Options, *, resume: bool, overwrite: bool) -> int:
    """Unmix the scene in a file, print and write what was found, and return the exit code."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that read and write formats
        Results(out).check(resume=resume, overwrite=overwrite)
        _check(options)
        scene = _as_asked(open_scene(given), options)
        _check_apart(scene, out)
        run = _begun(scene, options, Results(out), resume=resume)
        run.seconds["finding endmembers"] = perf_counter() - start
        try:
            _write_maps(run)
            summary = write_results(run, start)
        except KeyboardInterrupt:
            done = f"{len(run.progress.tiles)} of {len(run.tiles)} tiles are in {out}."
            complain(f"{done} The same command with --resume goes on.", INTERRUPTED)
            raise
        except Exception:
            if not run.progress.total("known"):
                run.results.discard()  # no pixel was unmixed: there is nothing to resume
            raise
    show(Console(highlight=False), run, summary)
    return DONE


def _check(options: Options) -> None:
    """Raise a ValueError if options do not go together."""
    if (options.endmembers is None) == (options.library is None):
        both = "both" if options.library is not None else "neither"
        raise ValueError(
            f"--endmembers N finds spectra in the scene, --library FILE brings them; got {both}. "
            "Use one of them."
        )


def _check_apart(scene: Scene, out: Path) -> None:
    """Raise a ValueError if the scene is in the folder of the results, where it may be replaced."""
    if out.resolve() in scene.path.resolve().parents:
        raise ValueError(f"--out must not hold the scene, {scene.path}. Use another folder.")


def _as_asked(scene: Scene, options: Options) -> Scene:
    """Return the scene with the bad bands and the value without data of the options."""
    bands = scene.shape[2]
    bad = np.zeros(bands, dtype=bool) if scene.bad_bands is None else scene.bad_bands.copy()
    if options.bad_bands is not None:
        bad[bands_of(options.bad_bands, bands)] = True
    if bad.all():
        raise ValueError(f"all {bands} bands are bad, by --bad-bands and by {scene.path}.")
    if options.no_data is not None:
        _check_no_data(options.no_data, scene.dtype)
    no_data = scene.no_data if options.no_data is None else options.no_data
    return replace(scene, bad_bands=bad if bad.any() else None, no_data=no_data)


def _check_no_data(value: float, dtype: np.dtype[Any]) -> None:
    """Raise a ValueError if a scene of integers cannot hold the value that stands for no data."""
    if dtype.kind not in "iu":
        return
    limits = np.iinfo(dtype)
    if not value.is_integer() or not limits.min <= value <= limits.max:
        raise ValueError(
            f"--no-data must be an integer from {limits.min} to {limits.max}, as the scene holds "
            f"{dtype}; got {value:g}."
        )


def bands_of(given: str, bands: int) -> list[int]:
    """Return the bands of a text like 0-3,105.

    Parameters
    ----------
    given : str
        Numbers and ranges, counted from 0, both ends included.
    bands : int
        How many there are.
    """
    found: list[int] = []
    for part in given.split(","):
        first, _, last = part.strip().partition("-")
        ends = [first, last or first]
        if not all(end.strip().isdecimal() for end in ends):
            raise ValueError(
                f"--bad-bands must be numbers and ranges, as in 0-3,105; got {part.strip()!r}."
            )
        low, high = map(int, ends)
        if not low <= high < bands:
            raise ValueError(
                f"--bad-bands must be from 0 to {bands - 1}, the smaller first; got {part.strip()}."
            )
        found.extend(range(low, high + 1))
    return found


def _begun(scene: Scene, options: Options, results: Results, *, resume: bool) -> Run:
    """Return a run with its endmembers: a new one, or an interrupted one."""
    tiles = tiles_of(scene, options.tile_rows)
    library = None
    if options.library is not None:
        library = read_library(options.library, scene.shape[2], options.layout)
    identity = _identity(scene, options, library, tiles[0].stop)
    if resume and results.progress.is_file():
        progress = read_progress(results.progress)
        unknown = {*identity, "source", "endmembers"} - set(progress.identity)
        if unknown or not isinstance(progress.identity["source"], str):
            raise ValueError(f"{results.progress} is damaged. Use --overwrite for a new run.")
        check_same(progress.identity, identity)
        found = read_spectra(results.unfinished / ENDMEMBERS, progress.identity["source"])
        check_same(progress.identity, {"endmembers": digest(found.spectra)})
        return _run(scene, options, found, results, progress, tiles)
    found = library or _found_in(scene, options, tiles)
    identity |= {"source": found.source, "endmembers": digest(found.spectra)}
    run = _run(scene, options, found, results, Progress(results.progress, identity), tiles)
    results.begin(map_bytes(scene.shape, len(found.names)))
    try:
        _create_files(run)
    except BaseException:
        results.discard()  # there is nothing yet that a resumed run could use
        raise
    return run


def _create_files(run: Run) -> None:
    """Write all that a run needs to be resumed: endmembers, maps without content, progress."""
    path, found = run.results.unfinished / ENDMEMBERS, run.endmembers
    write_spectra(path, found.names, found.spectra, run.scene.wavelengths)
    for file in run.maps.values():
        file.create(run.tiles[0].stop)
    run.progress.save()


def _run(
    scene: Scene,
    options: Options,
    found: Endmembers,
    results: Results,
    progress: Progress,
    tiles: list[slice],
) -> Run:
    model = _model(scene, options, found.spectra).find_endmembers(scene.read(slice(0, 1)))
    return Run(scene, model, found, results, progress, tiles, _maps(scene, results, found))


def _maps(scene: Scene, results: Results, found: Endmembers) -> dict[str, MapFile]:
    layers = {name: [name] for name in MAPS} | {"abundance": found.names}
    return {name: scene.map_in(results.unfinished, name, layers[name]) for name in MAPS}


def _identity(
    scene: Scene, options: Options, library: Endmembers | None, tile_rows: int
) -> dict[str, Any]:
    """Return what the maps depend on, by names that a message can use."""
    bad = [] if scene.bad_bands is None else np.flatnonzero(scene.bad_bands).tolist()
    return {
        "scene": scene_identity(scene),
        "--endmembers": options.endmembers,
        "--extractor": options.extractor if library is None else None,
        "--library": None if library is None else digest(library.spectra),
        "--sum-to-one": options.sum_to_one,
        "--max-endmembers": options.max_endmembers,
        "--loss": options.loss,
        "--bad-bands": bad,
        "--no-data": None if scene.no_data is None else str(scene.no_data),
        "--tile-rows": tile_rows,
        "version": version("conepursuit"),
    }


def _found_in(scene: Scene, options: Options, tiles: list[slice]) -> Endmembers:
    """Return endmembers that are pixels of the scene."""
    n = options.endmembers
    assert n is not None
    with Waiting(Console(stderr=True), f"looking for {n} endmembers"):
        pixels, step = sample(scene, tiles)
        model = _model(scene, options, None)
        try:
            model.find_endmembers(pixels)
        except ValueError as error:
            raise ValueError(f"--endmembers {n}: {error}") from None
    part = "the whole scene" if step == 1 else f"one pixel of each {step} x {step}"
    source = f"{options.extractor}, in {part}"
    return Endmembers(numbered(n), model.endmembers_, source)


def _model(scene: Scene, options: Options, spectra: Array | None) -> Unmixer:
    """Return a model for a scene, with endmembers that are known or to be found."""
    return Unmixer(
        options.endmembers if spectra is None else None,
        endmembers=spectra,
        extractor=options.extractor,
        sum_to_one=options.sum_to_one,
        max_endmembers=options.max_endmembers,
        loss=options.loss,
        bad_bands=scene.bad_bands,
        no_data=scene.no_data,
        n_jobs=-1,
    )


def _write_maps(run: Run) -> None:
    """Unmix all tiles that are left."""
    left = sum(t.stop - t.start for t in run.tiles if t.start not in run.progress.tiles)
    with _bar(left) as advance:
        seconds = unmix_tiles(run.scene, run.model, run.maps, run.tiles, run.progress, advance)
    run.seconds.update(seconds)
    if not run.progress.total("known"):
        raise ValueError(
            f"no pixel of {run.scene.path} has data: all are NaN in a band that counts, or hold "
            f"the value {run.scene.no_data} in all of them."
        )


def _bar(rows: int) -> AbstractContextManager[Callable[[int], None]]:
    """Show a bar over rows with the time that is left, where stderr is a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        return batch_progress(rows, console, "rows")
    return nullcontext(lambda done: None)
