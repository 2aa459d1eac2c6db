"""The files that commands write."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from conepursuit.files import replacing


def write_json(path: Path, content: Any) -> None:
    """Write JSON; numbers keep all their digits, and those that are not finite become null."""
    text = json.dumps(_finite(content), indent=1, ensure_ascii=False, allow_nan=False)
    with replacing(path) as file:
        file.write(text.encode() + b"\n")


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; floats of Python keep all their digits."""
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        text.detach()


def write_npy(path: Path, values: Any) -> None:
    """Write an array."""
    import numpy as np

    with replacing(path) as file:
        np.save(file, values, allow_pickle=False)


def check_target(path: Path, suffixes: Sequence[str], inputs: Sequence[Path]) -> None:
    """Raise a ValueError unless a file can be written there, before there is anything to lose."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"--out must end in {' or '.join(suffixes)}; got {str(path)!r}.")
    if path.is_dir():
        raise ValueError(f"--out must be a file; {path} is a folder.")
    if not path.parent.is_dir():
        raise ValueError(f"--out: there is no folder {path.parent}. Make it first.")
    if path.exists() and any(path.samefile(other) for other in inputs):
        raise ValueError(f"--out would replace {path}, which is read. Give another name.")
