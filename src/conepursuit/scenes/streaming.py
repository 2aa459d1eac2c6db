"""From a scene to maps, tile by tile: one tile is read, one unmixed and one written at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from math import ceil, inf, sqrt
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import Array
from conepursuit.scenes.results import Progress
from conepursuit.scenes.scene import MAP_TYPE, MapFile, Scene
from conepursuit.unmixing import Unmixed, Unmixer

TILE_BYTES = 64e6
"""The size of a tile as the solver sees it, in float64."""

SAMPLE_BYTES = 256e6
"""The most of a scene, in float64, in which endmembers are looked for.

The methods that find them hold about three copies.
"""


class Sample(NamedTuple):
    """Pixels of a scene in which endmembers are looked for.

    Attributes
    ----------
    pixels : array of shape (rows, columns, bands)
        The pixels.
    step : int
        Every so-many-th row and column was taken; 1 for the whole scene.
    """

    pixels: Array
    step: int


def tiles_of(scene: Scene, tile_rows: int | None = None) -> list[slice]:
    """Return the rows of each tile of a scene.

    Parameters
    ----------
    scene : Scene
        The scene.
    tile_rows : int, optional
        How many rows a tile has; the last may have fewer. By default tiles are of about
        `TILE_BYTES`, and of whole blocks of the file where that is possible.
    """
    rows, columns, bands = scene.shape
    if tile_rows is None:
        tile_rows = max(1, int(TILE_BYTES / (8 * columns * bands)))
        tile_rows -= tile_rows % scene.block_rows if scene.block_rows < tile_rows else 0
    return [slice(i, min(i + tile_rows, rows)) for i in range(0, rows, tile_rows)]


def sample(scene: Scene, tiles: Sequence[slice]) -> Sample:
    """Return the whole of a scene, or as many of its pixels, evenly spaced, as memory is for."""
    rows, columns, bands = scene.shape
    step = max(1, ceil(sqrt(8.0 * rows * columns * bands / SAMPLE_BYTES)))
    parts = []
    for tile in tiles:
        first = -tile.start % step  # rows are counted from the top of the scene
        parts.append(scene.read(tile)[first::step, ::step].copy())
    return Sample(np.concatenate(parts), step)


def unmix_tiles(
    scene: Scene,
    model: Unmixer,
    maps: Mapping[str, MapFile],
    tiles: Sequence[slice],
    progress: Progress,
    advance: Callable[[int], None],
) -> dict[str, float]:
    """Unmix the tiles of a scene that are not finished, and write them.

    A thread reads the next tile and another writes the one before, while this one is unmixed. So
    the memory that is used is that of a few tiles. After an error or Ctrl-C the tile that is being
    written is completed.

    Parameters
    ----------
    scene : Scene
        The scene.
    model : Unmixer
        With its endmembers found.
    maps : mapping of str to MapFile
        The maps "abundance", "residual" and "gap", created.
    tiles : sequence of slice
        All tiles.
    progress : Progress
        Where finished tiles are noted.
    advance : callable
        Is called with the number of rows of each tile that is written.

    Returns
    -------
    dict of str to float
        Seconds that were spent on reading, unmixing and writing; these overlap.
    """
    seconds = {"reading": 0.0, "unmixing": 0.0, "writing": 0.0}

    def read(rows: slice) -> Array:
        with _timed(seconds, "reading"):
            return scene.read(rows)

    def write(rows: slice, found: Unmixed) -> None:
        with _timed(seconds, "writing"):
            write_tile(maps, rows, found)
            known = int(np.isfinite(found.residual).sum())
            progress.finish(rows.start, known, int(found.proven.sum()))
        advance(rows.stop - rows.start)

    todo = [rows for rows in tiles if rows.start not in progress.tiles]
    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as writer:
        coming = reader.submit(read, todo[0]) if todo else None
        written: Future[None] | None = None
        for i, rows in enumerate(todo):
            assert coming is not None
            tile = coming.result()
            coming = reader.submit(read, todo[i + 1]) if i + 1 < len(todo) else None
            with _timed(seconds, "unmixing"):
                found = model.unmix(tile)
            if written is not None:
                written.result()  # its error, if there was one, and not more than one to write
            written = writer.submit(write, rows, found)
        if written is not None:
            written.result()
    return seconds


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    start = perf_counter()
    yield
    seconds[what] += perf_counter() - start


def write_tile(maps: Mapping[str, MapFile], rows: slice, found: Unmixed) -> None:
    """Write the rows of one tile into all maps."""
    maps["abundance"].write(rows, found.abundances.astype(MAP_TYPE))
    maps["residual"].write(rows, found.residual.astype(MAP_TYPE)[:, :, None])
    maps["gap"].write(rows, rounded_up(found.gap)[:, :, None])


def rounded_up(values: Array) -> Any:
    """Return numbers in the type of maps, none of them smaller: a bound stays a bound."""
    with np.errstate(over="ignore"):
        near = values.astype(MAP_TYPE)
    return np.where(near < values, np.nextafter(near, MAP_TYPE.type(inf)), near)
