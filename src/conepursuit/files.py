"""Files: written under another name and renamed, so that an interrupt leaves no half, and read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from time import time
from typing import IO

ABANDONED = 600.0
"""Seconds after which what was not written to is no longer being written by another process."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of `path` when it is complete.

    It is written under another name in the same folder. After an error it is deleted, and `path`
    is left as it is. Of a process that was killed meanwhile, it is deleted by a later one.
    """
    target = path.resolve()  # a symbolic link is followed, not replaced
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    _delete_abandoned(target)
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _delete_abandoned(target: Path) -> None:
    """Delete what processes that were killed have left beside a file."""
    with suppress(OSError):  # another process may do the same
        for part in target.parent.glob(f".{escape(target.name)}.*.part"):
            if time() - part.stat().st_mtime > ABANDONED:
                part.unlink()


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Make one error that names the file of whatever a library raises while it reads a file.

    What such libraries raise depends on which byte of a damaged file is wrong. A ValueError that
    begins with the name of the file passes, and so do errors of the system, which name it too, and
    those about libraries that are missing.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What it should be, as "a .npz file".
    """
    try:
        yield
    except ImportError:
        raise
    except MemoryError as error:
        raise ValueError(f"{path} takes more memory than there is. {error}".strip()) from None
    except Exception as error:
        begin = str(path.with_suffix(""))  # an image of ENVI's lies beside its header
        system = isinstance(error, OSError) and error.filename and (error.errno or 0) > 0
        if system or (isinstance(error, ValueError) and str(error).startswith(begin)):
            raise
        told = str(error) or type(error).__name__
        raise ValueError(f"{path} is not {what}, or is damaged: {told}") from None
