"""Time of nnls against the number of atoms, beside scipy's, to see that there is no cliff.

``python nnls_sizes.py measure after.json`` times both on one thread by the CPU clock, the least of
some calls; ``python nnls_sizes.py plot before.json after.json picture.svg`` draws two runs, such as
those of two versions of the code, and scipy's times from the last of them.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402  # the settings above must come first
import json  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from time import process_time  # noqa: E402

import matplotlib  # noqa: E402

matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import scipy.optimize  # noqa: E402

import conepursuit  # noqa: E402
from nnls_problems import noisy, smooth, sparse_weights  # noqa: E402

ROWS = 300
SIZES = (100, 200, 300, 400, 500, 550, 600, 800, 1000, 1400, 1700, 1800, 2000, 2100, 2800, 4000)
ENOUGH = 0.5
"""Seconds after which no further call is timed."""


def random_nonnegative(n, rng):
    A = rng.random((ROWS, n))
    return A, noisy(A @ sparse_weights(n, n // 10, rng), 0.1, rng)


def signed(n, rng):
    """Return normal atoms that all lean to one side, and a target half of which is noise.

    Without the lean, twice as many atoms as rows would fit every target exactly.
    """
    A = rng.standard_normal((ROWS, n)) + 0.3
    return A, noisy(A @ sparse_weights(n, 20, rng), 1.0, rng)


FAMILIES = {
    "smooth, exact": lambda n, rng: smooth(ROWS, n, 0.02, 0.0, rng),
    "smooth, 1 % noise": lambda n, rng: smooth(ROWS, n, 0.02, 1e-2, rng),
    "random non-negative, 10 % noise": random_nonnegative,
    "signed, no exact fit": signed,
}


def least_time(call):
    """Return the CPU time of a call, in seconds: the least of at most seven."""
    call()
    times = []
    while len(times) < 7 and sum(times) < ENOUGH:
        began = process_time()
        call()
        times.append(process_time() - began)
    return min(times)


def measure(path):
    """Write the times of both solvers for all families and sizes."""
    found = {}
    for family, make in FAMILIES.items():
        found[family] = {"conepursuit": [], "scipy": []}
        for n in SIZES:
            A, b = make(n, np.random.default_rng(0))
            solvers = {
                "conepursuit": partial(conepursuit.nnls, A, b),
                "scipy": partial(scipy.optimize.nnls, A, b, maxiter=10**6),
            }
            for solver, call in solvers.items():
                found[family][solver].append(least_time(call))
    Path(path).write_text(json.dumps(found, indent=1))


def plot(before, after, picture):
    """Draw one panel for each family."""
    old, new = (json.loads(Path(path).read_text()) for path in (before, after))
    figure, axes = plt.subplots(2, 2, figsize=(9, 7), sharex=True, layout="constrained")
    for axis, family in zip(axes.flat, FAMILIES, strict=True):
        lines = (
            ("before", old[family]["conepursuit"], "C1", "o--"),
            ("after", new[family]["conepursuit"], "C0", "o-"),
            ("scipy", new[family]["scipy"], "0.5", "s:"),
        )
        for label, times, colour, style in lines:
            axis.loglog(SIZES, 1e3 * np.array(times), style, color=colour, label=label, ms=4)
        axis.set_title(family)
        axis.grid(alpha=0.3, which="both")
        axis.set_xticks(
            [100, 200, 500, 1000, 2000, 4000], ["100", "200", "500", "1000", "2000", "4000"]
        )
        axis.minorticks_off()
    axes[0, 0].legend()
    figure.supxlabel(f"atoms (of {ROWS} entries)")
    figure.supylabel("CPU time in ms")
    figure.savefig(picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("measure").add_argument("path")
    drawing = commands.add_parser("plot")
    for argument in ("before", "after", "picture"):
        drawing.add_argument(argument)
    options = vars(parser.parse_args())
    {"measure": measure, "plot": plot}[options.pop("command")](**options)


if __name__ == "__main__":
    main()
