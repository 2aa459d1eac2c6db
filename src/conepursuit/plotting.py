"""Figures of runs; matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.pursuit.results import Result

LINES = ("-", "--", "-.", ":")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""


def plot_convergence(
    results: Result | Sequence[Result] | Mapping[str, Result],
    *,
    optimum: float | Result | None = None,
    bounds: Mapping[str, Array | Callable[[Array], Array]] | None = None,
    ax: Any = None,
) -> Any:
    """Plot suboptimality against iteration.

    Parameters
    ----------
    results : Result, sequence or mapping of Result
        The runs; the keys of a mapping name them in the legend.
    optimum : float or Result, optional
        f*, or the result whose value it is. Without it the gap of each run is drawn, which bounds
        the suboptimality where it is proven.
    bounds : mapping of str to array or callable, optional
        Curves of theory, as arrays over the iterations 0, 1, ... or functions of them.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
    """
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            'plot_convergence needs matplotlib: pip install "conepursuit[plots]".'
        ) from None
    if isinstance(results, Result):
        results = [results]
    if isinstance(optimum, Result):
        optimum = optimum.value
    if not isinstance(results, Mapping):
        results = {f"run {i}" if len(results) > 1 else "run": r for i, r in enumerate(results)}
    if ax is None:
        ax = pyplot.figure(figsize=(6.4, 4.2), layout="constrained").add_subplot()
    longest = 1
    for i, (name, result) in enumerate(results.items()):
        trace = result.trace
        error = trace["gap"] if optimum is None else trace["value"] - optimum
        longest = max(longest, len(error))
        ax.plot(
            np.arange(len(error)),
            np.where(error > 0, error, np.nan),
            label=name,
            color=COLOURS[i % len(COLOURS)],
            linestyle=LINES[i // len(COLOURS) % len(LINES)],
            marker="." if len(error) < 20 else None,
        )
    iterations = np.arange(longest)
    for i, (name, bound) in enumerate((bounds or {}).items()):
        curve = np.asarray(bound(iterations) if callable(bound) else bound)
        ax.plot(
            np.arange(len(curve)),
            curve,
            label=name,
            color="0.45",
            linewidth=1.2,
            linestyle=LINES[(i + 1) % len(LINES)],
        )
    ax.set_yscale("log")
    ax.set_xlabel("iteration")
    ax.set_ylabel("gap" if optimum is None else "suboptimality f(x) − f*")
    ax.grid(True, which="major", color="0.9")
    ax.legend(frameon=False)
    return ax
