"""What one iteration costs, in units of the one pass over the dictionary that it cannot avoid.

On 2000 x 20000 the time per iteration is divided by the time of ``D.T @ g`` in the same run. On
50 x 100 that product takes two microseconds, and what counts is the overhead beyond it. One thread,
CPU clock; minimum and median over repetitions. Run it with ``make bench``.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
if "MALLOC_TRIM_THRESHOLD_" not in os.environ:  # read by the allocator at the start of a process
    os.environ |= {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
    import sys

    os.execv(sys.executable, [sys.executable, *sys.argv])

from time import process_time  # noqa: E402  # the settings above must come first

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from conepursuit import (  # noqa: E402
    AFW,
    AMP,
    FCMP,
    FW,
    MP,
    NNMP,
    OMP,
    PFW,
    PWMP,
    Cone,
    Dictionary,
    Hull,
    LeastSquares,
    Span,
    iterates,
)


def problem(d, n, n_active, rng):
    """Return a dictionary of non-negative unit atoms and a noisy sparse combination of them."""
    D = rng.random((d, n))
    D /= np.linalg.norm(D, axis=0)
    weights = np.zeros(n)
    weights[rng.choice(n, n_active, replace=False)] = rng.uniform(1, 5, n_active)
    y = D @ weights
    return D, y + 0.1 * np.linalg.norm(y) / np.sqrt(d) * rng.standard_normal(d)


def seconds(call, repeat):
    """Return the least and the median CPU time of a call."""
    times = []
    for _ in range(repeat):
        began = process_time()
        call()
        times.append(process_time() - began)
    return min(times), float(np.median(times))


def iteration_times(objective, domain, algorithm, n_iter):
    """Return the CPU time of each iteration of one run, and the number of atoms at its end."""
    run, times, state = iterates(objective, domain, algorithm), [], None
    for _ in range(n_iter + 1):
        began = process_time()
        following = next(run, None)
        if following is None:
            break
        state = following
        times.append(process_time() - began)
    return np.array(times[1:]), len(state.iterate.weights)


def contestants(D, y):
    atoms = Dictionary(D)
    cone, span, hull = Cone(atoms), Span(atoms), Hull(atoms, 10 * np.linalg.norm(y))
    return [
        (NNMP(), cone), (AMP(), cone), (PWMP(), cone), (MP(), span),
        (FW(), hull), (AFW(), hull), (PFW(), hull),
        (FCMP(variant=0), cone), (FCMP(variant=1), cone), (OMP(variant=0), span),
    ]  # fmt: skip


def large(console, rng, order):
    D, y = problem(2000, 20000, 300, rng)
    D, objective, g = np.asarray(D, order=order), LeastSquares(y), rng.standard_normal(2000)
    table = Table(title=f"2000 x 20000, {order} order: iteration / (D.T @ g)")
    for heading in ("algorithm", "minimum", "median", "atoms", "D.T @ g [ms]"):
        table.add_column(heading, justify="left" if heading == "algorithm" else "right")
    for algorithm, domain in contestants(D, y):
        corrective = isinstance(algorithm, FCMP)
        least, median = seconds(lambda: D.T @ g, 20)
        times, n_atoms = iteration_times(objective, domain, algorithm, 200 if corrective else 60)
        late = times[-30:]  # with the most atoms
        table.add_row(
            str(algorithm).split("(")[0] + (f" v{algorithm.variant}" if corrective else ""),
            f"{late.min() / least:.2f}", f"{np.median(late) / median:.2f}", str(n_atoms),
            f"{1e3 * median:.1f}",
        )  # fmt: skip
    console.print(table)


def small(console, rng):
    D, y = problem(50, 100, 30, rng)
    objective, g = LeastSquares(y), rng.standard_normal(50)
    table = Table(title="50 x 100: iteration - (D.T @ g) [µs]")
    for heading in ("algorithm", "minimum", "median"):
        table.add_column(heading, justify="left" if heading == "algorithm" else "right")
    product = seconds(lambda: [D.T @ g for _ in range(1000)], 5)[1] / 1000
    for algorithm, domain in contestants(D, y):
        runs = []
        for _ in range(15):
            run = iterates(objective, domain, algorithm)
            next(run)
            began, steps = process_time(), 0
            for _state in zip(range(200), run, strict=False):
                steps += 1
            runs.append((process_time() - began) / max(steps, 1) - product)
        name = str(algorithm).split("(")[0]
        if isinstance(algorithm, FCMP):
            name += f" v{algorithm.variant}"
        table.add_row(name, f"{1e6 * min(runs):.0f}", f"{1e6 * np.median(runs):.0f}")
    console.print(table)


if __name__ == "__main__":
    out, generator = Console(), np.random.default_rng(0)
    small(out, generator)
    for layout in ("C", "F"):
        large(out, generator, layout)
