"""The folder of a run: what is in it, how far the run is, and how an interrupted one goes on.

Everything is written into the folder ``unfinished`` inside the folder of the results. It is moved
out of there when all is complete, so that a map with its own name is a whole map.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.files import reading, replacing
from conepursuit.scenes.scene import Scene

UNFINISHED, PROGRESS = "unfinished", "progress.json"

MAPS = "abundance", "residual", "gap"
"""The maps of a run; abundance has a layer for each endmember, the others have one."""

MAP_SUFFIXES = ".npy", ".hdr", ".img", ".tif", ".nc", ".zarr"

OWN = (
    *(f"{name}{suffix}" for name in MAPS for suffix in MAP_SUFFIXES),
    "endmembers.csv",
    "pictures",
    "report.html",
    "summary.json",
    UNFINISHED,
)
"""What runs leave in their folder, and what a new one may delete there."""

MOST_PIXELS = 2**53
"""More pixels than any tile has."""

SAMPLED_ROWS = 16
"""The rows of a scene by which it is known again."""


@dataclass(frozen=True)
class Results:
    """The folder of the results of a run.

    Attributes
    ----------
    folder : Path
        The folder.
    """

    folder: Path

    @property
    def unfinished(self) -> Path:
        """Where everything is written until all of it is complete."""
        return self.folder / UNFINISHED

    @property
    def progress(self) -> Path:
        """The file that says which tiles are finished."""
        return self.unfinished / PROGRESS

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Raise a ValueError unless a run can begin here, or go on; nothing is changed."""
        if resume and overwrite:
            raise ValueError("--resume and --overwrite do not go together. Leave one out.")
        if not self.folder.parent.is_dir():
            raise ValueError(f"--out: there is no folder {self.folder.parent}. Make it first.")
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"--out must be a folder; {self.folder} is a file.")
        if overwrite or not self.folder.exists() or not any(self.folder.iterdir()):
            return
        if resume and not self.progress.is_file():
            raise ValueError(
                f"--resume: there is no unfinished run in {self.folder}. Use --overwrite for a "
                "new one in its place, or another folder."
            )
        if not resume:
            way = "--resume to go on with it" if self.progress.is_file() else "another folder"
            kind = "an unfinished run" if self.progress.is_file() else "files"
            raise ValueError(
                f"--out: {self.folder} holds {kind}. Use {way}, or --overwrite for a new run in "
                "its place."
            )

    def begin(self, needed: int) -> None:
        """Make the folder, without the results of another run.

        Parameters
        ----------
        needed : int
            The bytes that the maps will take.
        """
        for name in OWN:
            old = self.folder / name
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        self.unfinished.mkdir(parents=True)
        free = shutil.disk_usage(self.unfinished).free
        if needed > free:
            self.unfinished.rmdir()
            raise ValueError(
                f"--out: the maps take {needed / 1e6:,.0f} MB, and {self.folder} has room for "
                f"{free / 1e6:,.0f} MB. Use a folder on another disk."
            )

    def discard(self) -> None:
        """Delete what is unfinished."""
        shutil.rmtree(self.unfinished)

    def complete(self) -> None:
        """Move everything to where it belongs; the run is at its end."""
        self.progress.unlink()
        for path in sorted(self.unfinished.iterdir()):
            path.replace(self.folder / path.name)
        self.unfinished.rmdir()


@dataclass
class Progress:
    """Which tiles of a run are finished; written to a file after each of them.

    Attributes
    ----------
    path : Path
        The file.
    identity : dict
        What the results depend on: the scene, the settings and the endmembers.
    tiles : dict of int to dict
        The finished tiles, by the number of their first row: how many pixels they have with data
        ("known"), and how many of these have a proof ("proven").
    """

    path: Path
    identity: dict[str, Any]
    tiles: dict[int, dict[str, int]] = field(default_factory=dict)

    def finish(self, first_row: int, known: int, proven: int) -> None:
        """Note that a tile is on disk."""
        self.tiles[first_row] = {"known": known, "proven": proven}
        self.save()

    def save(self) -> None:
        """Write the file."""
        content = {"identity": self.identity, "tiles": self.tiles}
        with replacing(self.path) as file:
            file.write(json.dumps(content, indent=1).encode())

    def total(self, what: str) -> int:
        """Return the sum of "known" or "proven" over all tiles."""
        return sum(tile[what] for tile in self.tiles.values())


def read_progress(path: Path) -> Progress:
    """Return how far a run is."""
    with reading(path, "the progress of a run, which --overwrite begins anew,"):
        content = json.loads(path.read_text(encoding="utf-8"))
        tiles = {
            int(row): {what: int(tile[what]) for what in ("known", "proven")}
            for row, tile in content["tiles"].items()
        }
        if not all(0 <= tile["proven"] <= tile["known"] < MOST_PIXELS for tile in tiles.values()):
            raise ValueError("a tile has numbers of pixels that cannot be")
        return Progress(path, {**content["identity"]}, tiles)


def check_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise a ValueError that names the first thing that differs from an interrupted run."""
    for name in before:
        if name in now and before[name] != now[name]:
            raise ValueError(
                f"--resume: the unfinished run has {name} {_shown(before[name])}; now it is "
                f"{_shown(now[name])}. Use what it was, or --overwrite for a new run."
            )


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def digest(*arrays: Array) -> str:
    """Return a short text that differs if arrays do."""
    found = sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def scene_identity(scene: Scene) -> dict[str, Any]:
    """Return what a scene is known by: its shape, its type and a digest of some of its rows."""
    rows = np.unique(np.linspace(0, scene.shape[0] - 1, SAMPLED_ROWS).astype(int)).tolist()
    seen = digest(*(scene.read(slice(row, row + 1)) for row in rows))
    return {"shape": list(scene.shape), "dtype": scene.dtype.name, "rows": seen}


def map_bytes(shape: Sequence[int], n_endmembers: int) -> int:
    """Return the size of all maps of a scene."""
    return int(shape[0]) * int(shape[1]) * (n_endmembers + 2) * 4
