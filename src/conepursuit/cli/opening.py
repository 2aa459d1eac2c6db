"""Opening files, which may be compressed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""What opens compressed files, by the end of their names."""


def kind_of(path: Path) -> str:
    """Return the suffix that says what a file holds, in lower case: .csv for table.CSV.gz."""
    inner = path.with_suffix("") if path.suffix.lower() in OPENERS else path
    return inner.suffix.lower()


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, inflated if it is compressed; errors name the file."""
    compression = path.suffix.lower()
    try:
        with OPENERS.get(compression, open)(path, "rb") as file:
            file.read(1)  # what is not compressed is told here
            file.seek(0)
            yield file
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if compression not in OPENERS or getattr(error, "filename", None) is not None:
            raise
        raise ValueError(f"{path} is not a {compression} file, or is damaged: {error}") from None
