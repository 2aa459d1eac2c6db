"""Progress bars for runs and for fits of many targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, log
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conepursuit.pursuit.results import State


class ProgressBar:
    """Show a bar that fills as the gap falls, with the numbers of the current state.

    Parameters
    ----------
    tol : float
        The tolerance of the run; the bar is full when the relative gap has reached it.
    console : rich.console.Console, optional
        Where to draw; the terminal by default.

    Notes
    -----
    Needs rich: ``pip install "conepursuit[cli]"``.

    Examples
    --------
    >>> minimize(objective, domain, algorithm, callback=ProgressBar())  # doctest: +SKIP
    """

    def __init__(self, tol: float = 1e-8, console: Any = None) -> None:
        progress = rich_progress()
        self.tol, self._start, self._share = tol, inf, 0.0
        self._progress = progress.Progress(
            progress.BarColumn(),
            progress.TextColumn("{task.description}"),
            progress.TimeElapsedColumn(),
            console=console,
        )
        self._task: Any = None

    def __call__(self, state: State) -> None:
        """Draw the bar for a state of the run."""
        if self._task is None:
            self._start, self._share = inf, 0.0
            self._task = self._progress.add_task("", total=1.0)
            self._progress.start()
        gap = state.certificate.gap
        relative = gap / state.decrease if state.decrease > 0 else inf
        self._start = min(self._start, relative) if self._start == inf else self._start
        if relative <= self.tol:
            self._share = 1.0
        elif relative < self._start < inf and self.tol > 0:
            self._share = max(
                self._share, log(self._start / relative) / log(self._start / self.tol)
            )
        sign = "≤" if state.certificate.proven else "≈"
        text = (
            f"iteration {state.iteration}  f {state.value:.6g}  gap {sign} {gap:.2g}  "
            f"atoms {len(state.iterate.weights)}"
        )
        self._progress.update(self._task, completed=self._share, description=text)

    def close(self) -> None:
        """Stop drawing and leave the bar on the screen; `minimize` calls this at the end."""
        if self._task is not None:
            self._progress.stop()
            self._task = None


def close(callback: Any) -> None:
    """Call the method `close` of a callback, if it has one."""
    if callback is not None and hasattr(callback, "close"):
        callback.close()


def rich_progress() -> Any:
    """Return the module rich.progress; an ImportError says how to install rich."""
    try:
        from rich import progress
    except ImportError:
        raise ImportError('progress bars need rich: pip install "conepursuit[cli]".') from None
    return progress


@contextmanager
def batch_progress(
    total: int, console: Any = None, what: str = "targets"
) -> Iterator[Callable[[int], None]]:
    """Show a bar over many targets, or what else; yield a function that advances it by a number."""
    progress = rich_progress()
    columns = (
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn(what),
        progress.TimeRemainingColumn(elapsed_when_finished=True),
    )
    with progress.Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.advance(task, done)
