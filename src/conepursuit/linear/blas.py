"""One thread of the BLAS, for work that is divided among threads or processes already."""

from __future__ import annotations

from threading import Lock
from typing import Any


class OneBlasThread:
    """A context in which the BLAS uses one thread; any number of threads may be inside at once.

    The number of threads belongs to the whole process. The first to enter sets it and the last to
    leave restores it, so that no thread restores it while another one is at work.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._libraries: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._libraries is None:
                from threadpoolctl import ThreadpoolController

                self._libraries = ThreadpoolController()
            if not self._inside:
                self._limit = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


ONE_BLAS_THREAD = OneBlasThread()
"""The context of this process; its libraries are searched for when it is first entered."""
