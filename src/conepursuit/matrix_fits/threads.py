"""Threads over many targets: kernels release the interpreter's lock, so that threads are enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from os import cpu_count
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


R = TypeVar("R")


CHUNKS_EACH = 4
"""With several threads there are at least this many chunks for each, if targets suffice.

Then all threads end at about the same time.
"""


def run(task: Callable[[T], R], parts: Iterable[T], n_jobs: int) -> Iterator[R]:
    """Yield the results of a task on all parts, in their order, by `n_jobs` threads.

    After an error or Ctrl-C no other part is begun, and those under way are not waited for.
    """
    if n_jobs == 1:
        yield from map(task, parts)
        return
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(n_jobs)
    try:
        yield from pool.map(task, parts)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def chunks(n_targets: int, most: int, n_jobs: int) -> list[slice]:
    """Return slices of at most `most` targets; for several threads, `CHUNKS_EACH` or more each."""
    if n_jobs > 1:
        most = min(most, n_targets // (CHUNKS_EACH * n_jobs))
    size = max(1, most)
    return [slice(i, min(i + size, n_targets)) for i in range(0, n_targets, size)]


def threads(n_jobs: Any) -> int:
    """Return a number of threads, with None for one and -1 for all cores."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be a number of threads, or -1 for all cores; got {n_jobs!r}."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, (cpu_count() or 1) + 1 + int(n_jobs))
