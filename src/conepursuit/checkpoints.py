"""Checkpoints: files from which a long run that was ended goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from os import PathLike
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, Protocol
from warnings import warn

import numpy as np

from conepursuit.files import reading, replacing

VERSION = 1
"""The version of the files that are written; those of a newer one are refused."""

MARK = "conepursuit_checkpoint"
"""The name in a file under which its version stands, by which a checkpoint is known."""


class Savable(Protocol):
    """A moment of a run that a checkpoint can hold, such as a `State`."""

    def saved(self) -> dict[str, Any]:
        """Return what a run needs to go on: numbers, strings and arrays under their names.

        The entry ``kind`` is a string that says what made them, such as "minimize".
        """


class Saved(SimpleNamespace):
    """What a checkpoint holds, each entry under its name as an attribute.

    That of a run of `minimize` has ``iteration``, ``value``, ``decrease``, ``shape`` (that of x),
    ``keys`` and ``weights``. ``kind`` says what made it, and ``path`` is its file.
    """

    kind: str
    path: Path

    def check_kind(self, kind: str) -> None:
        """Raise ValueError unless the checkpoint was made by `kind`."""
        if self.kind != kind:
            raise ValueError(
                f"{self.path} is a checkpoint of {self.kind}, from which {kind} cannot go on. "
                f"Give it to {self.kind}."
            )


@contextmanager
def named_if_saved(start: Any) -> Iterator[None]:
    """Name the file in the errors of whatever is made of a start, if that is a checkpoint."""
    if not isinstance(start, Saved):
        yield
        return
    with reading(start.path, "a checkpoint of this problem"):
        yield


class Checkpoint:
    """Keep the state of a run in a file, from which it goes on after a crash.

    Parameters
    ----------
    path : str or path
        The file, by convention with the suffix .npz. It is replaced as a whole by each write: an
        end of the process in the middle leaves the one before.
    seconds : float
        Least time between two writes; up to so many seconds of work are lost where a process is
        killed. The first two states of a run are written whatever the time, so that atoms that
        cannot be written are found at once, and so is the last one, after Ctrl-C and errors too.

    Warns
    -----
    RuntimeWarning
        Once in a run, if the file cannot be written, as on a disk that is full. The run goes on,
        and so do the attempts.

    Notes
    -----
    ``minimize(..., start=Checkpoint.load(path))`` goes on: the answer is that of the run that was
    not interrupted, up to the tolerance. States count their iterations from that of the
    checkpoint on; ``max_iter``, ``max_time`` and ``result.n_iter`` are about the new run alone.
    What a step rule has learned is not kept: `AdaptiveStep` looks for its constant again, and
    `OpenLoopStep` begins with the step 1, which forgets any start.

    Atoms are kept by their keys where these are integers, as those of a `Dictionary`, and with
    their vectors otherwise. A set of one's own with integer keys needs the method
    ``AtomSet.atom``, which makes atoms anew from them.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from conepursuit import PWMP, Checkpoint, Cone, Dictionary, LeastSquares, minimize
    >>> problem = LeastSquares([2.0, 1.0]), Cone(Dictionary([[1.0, 0.5], [0.0, 1.0]])), PWMP()
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.npz"
    >>> result = minimize(*problem, max_iter=2, callback=Checkpoint(path))
    >>> Checkpoint.load(path).iteration
    2
    >>> minimize(*problem, start=Checkpoint.load(path)).status.name
    'CONVERGED'
    """

    def __init__(self, path: str | PathLike[str], *, seconds: float = 60.0) -> None:
        if not seconds >= 0:
            raise ValueError(f"seconds must not be negative; got {seconds!r}.")
        self.path, self.seconds = Path(path), seconds
        if not self.path.resolve().parent.is_dir():
            raise FileNotFoundError(
                f"the folder of the checkpoint {self.path} does not exist. Make it first."
            )
        self._begin()

    def _begin(self) -> None:
        """Prepare for the first state of a run."""
        self._last: Savable | None = None  # not yet written
        self._n_tried, self._when, self._warned = 0, -inf, False

    def __call__(self, state: Savable) -> None:
        """Take the state of a run, and write it if the last write was long ago."""
        self._last = state
        if self._n_tried < 2 or monotonic() - self._when >= self.seconds:
            self._write_last()

    def close(self) -> None:
        """Write the last state unless that is done; `minimize` calls this when a run ends."""
        if self._last is not None:
            self._write_last()
        self._begin()

    def _write_last(self) -> None:
        assert self._last is not None
        entries = self._last.saved()
        self._n_tried += 1
        try:
            self.write(**entries)
            self._last = None
        except OSError as error:
            warned, self._warned = self._warned, True
            if not warned:
                warn(
                    f"the checkpoint {self.path} cannot be written, and the run goes on without "
                    f"it: {error}. It is tried again.",
                    RuntimeWarning,
                    stacklevel=2,
                )
        self._when = monotonic()

    def write(self, kind: str, **entries: Any) -> None:
        """Replace the file by one with these numbers, strings and arrays, whatever the time.

        Parameters
        ----------
        kind : str
            What makes the checkpoint, such as "minimize", and is to go on from it.
        **entries : array_like
            What it needs for that; `load` returns them as attributes.
        """
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in entries.items()}
        objects = [name for name, array in arrays.items() if array.dtype.hasobject]
        if objects:
            raise ValueError(
                f"a checkpoint holds numbers, strings and arrays of them; got Python objects in "
                f"{', '.join(objects)}."
            )
        arrays |= {MARK: np.asarray(VERSION), "kind": np.asarray(kind)}
        with replacing(self.path) as file:
            np.savez(file, **arrays)

    @staticmethod
    def load(path: str | PathLike[str]) -> Saved:
        """Return what a checkpoint holds, to be given to ``start=``.

        A ValueError says what is wrong with a file that is no checkpoint, is damaged, or was
        written by a newer version of this library.
        """
        place = Path(path)
        with place.open("rb") as raw, reading(place, "a checkpoint"):
            file = np.load(raw, allow_pickle=False)
            entries = dict(file.items()) if isinstance(file, np.lib.npyio.NpzFile) else {}
            if MARK not in entries:
                raise ValueError(f"it holds {', '.join(entries) or 'one array'}")
            version = int(entries.pop(MARK))
            if version > VERSION:
                raise ValueError(
                    f"{place} is a checkpoint of version {version}, written by a newer "
                    f"conepursuit; this one reads versions up to {VERSION}. Update conepursuit."
                )
            plain = {
                name: value.item() if value.ndim == 0 else value for name, value in entries.items()
            }
            if not isinstance(plain.get("kind"), str):
                raise ValueError("it does not say what made it")
            return Saved(**{**plain, "path": place})
