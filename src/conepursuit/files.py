"""Files that are written under another name and renamed, so that an interrupt leaves no half."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of `path` when it is complete.

    It is written under another name in the same folder. After an error it is deleted, and `path`
    is left as it is.
    """
    target = path.resolve()  # a symbolic link is followed, not replaced
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
