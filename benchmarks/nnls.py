"""Non-negative least squares against its peers: time to a verified suboptimality.

Suboptimality is (f(x) - f*) / f(0) with f = ||A x - b||^2 / 2, from the weights that a solver
returned and a proven bound on f*; the worst of many targets counts. Every solver runs in the layout
it likes best, converted before the clock starts, with the loosest of its own settings that reaches
the level. One thread, CPU clock, contestants in turns; the cells are "minimum / median".

- "- (1e-03)": the solver did not reach the level within a minute, but this.
- "-": it raised or took over a minute at once, or was not tried (``Variant.suits``).
- "≈": a loop over some of the targets, extrapolated.

Run it with ``CONEPURSUIT_DATA=... make bench-nnls``; it takes about half an hour.
"""

from __future__ import annotations

import os

THREADS = int(os.environ.get("NNLS_THREADS", "1"))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = str(THREADS)
os.environ["OMP_WAIT_POLICY"] = "passive"  # or the idle threads of one solver slow the next one
if "MALLOC_TRIM_THRESHOLD_" not in os.environ:  # read by the allocator at the start of a process
    os.environ |= {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
    import sys

    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse  # noqa: E402  # the settings above must come first
import math  # noqa: E402
import multiprocessing  # noqa: E402
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from time import perf_counter, process_time  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import conepursuit  # noqa: E402
from nnls_problems import CASES, Problem, problem  # noqa: E402
from nnls_solvers import OURS, SOLVERS  # noqa: E402

LEVELS = (1e-6, 1e-10)
CPU_LIMIT = 60
LONGEST_LOOP = 30.0
"""Seconds above which a loop over targets is timed on some of them and extrapolated."""
START_UP = """
import numpy, scipy.optimize, scipy.sparse.linalg
from time import perf_counter
began = perf_counter()
import conepursuit
imported = perf_counter() - began
rng = numpy.random.default_rng(0)
A, b = rng.random((50, 100)), rng.random(50)
began = perf_counter()
conepursuit.nnls(A, b)
print(imported, perf_counter() - began)
"""
SPARSE = """
import numpy
from pathlib import Path
from time import perf_counter
from conepursuit import nnls
from nnls_problems import sparse_problem
A, b = sparse_problem(numpy.random.default_rng(0))
nnls(A[:, :10], b)
began = perf_counter()
x = nnls(A, b).x
elapsed = perf_counter() - began
peak = next(s for s in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in s)
print(elapsed, int(peak.split()[1]) / 1024, numpy.sum((A @ x - b) ** 2) / (b @ b))
"""  # not getrusage: its peak outlives exec, so that it would be that of this process

clock = process_time if THREADS == 1 else perf_counter


def forked(call, cpu_limit=resource.RLIM_INFINITY):
    """Return what a call returns in a process of its own, or None where it raised or ran too long.

    A process can be stopped in the middle of C code, and takes its threads and memory with it.
    """
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)

    def work():
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit, cpu_limit))
        sender.send(call())

    process = fork.Process(target=work)
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return None
    finally:
        process.join()


def attempt(variant, problem, setting):
    """Return the wall time of a call, as a limit makes the CPU clock coarse, and its weights."""
    call = variant.prepare(problem, setting, 1)
    began = perf_counter()
    raw = call()
    return perf_counter() - began, variant.weights(problem, raw)


def seconds(call, loops=1):
    """Return the time of a call; it loops where one call is too short for the clock."""
    began = clock()
    for _ in range(loops):
        call()
    return (clock() - began) / loops


def shortened(variant, problem):
    """Return the problem, or some of its targets where a loop over all would take too long."""
    n_targets = problem.B.shape[1]
    if not variant.looped or n_targets == 1:
        return problem
    some = problem.some(20)
    each = seconds(variant.prepare(some, variant.settings[len(variant.settings) // 2], 1)) / 20
    return problem if each * n_targets < LONGEST_LOOP else problem.some(max(20, int(2 / each)))


class Entry(NamedTuple):
    """A call that reached a level, its expected time, and the share of the targets it solves."""

    call: Callable[[], Any]
    expected: float
    share: float


def qualify(variant, problem):
    """Return the first entry to reach each level, and the best suboptimality of all."""
    entries, best = {}, math.inf
    part = shortened(variant, problem)
    if variant.compiled:
        variant.prepare(part, variant.settings[0], 1)()
    for setting in variant.settings:
        outcome = forked(partial(attempt, variant, part, setting), CPU_LIMIT)
        if outcome is None:
            break
        reached = part.suboptimality(outcome[1])
        best = min(best, reached)
        share = part.B.shape[1] / problem.B.shape[1]
        entry = Entry(variant.prepare(part, setting, THREADS), outcome[0], share)
        entries = {level: entry for level in LEVELS if reached <= level} | entries
        if len(entries) == len(LEVELS):
            break
    return entries, best


def timed(entries, repeat):
    """Return the times of entries by their calls. They take turns, and slow ones fewer of them."""
    times = {entry.call: [] for entry in entries}
    for turn in range(repeat):
        for call, expected, share in entries:
            if turn * expected < 20:
                loops = math.ceil(0.02 / max(expected, 1e-6))
                times[call].append(seconds(call, loops) / share)
    return times


class Cell(NamedTuple):
    """What a solver did at a level."""

    least: float
    median: float
    text: str


def cell(entries, times, best):
    """Return the least and the median time of the fastest entry, or the best without one."""
    if not entries:
        return Cell(math.inf, math.inf, f"- ({best:.0e})" if best < math.inf else "-")
    entry = min(entries, key=lambda entry: min(times[entry.call]))
    least, median = min(times[entry.call]), float(np.median(times[entry.call]))
    mark = "≈ " if entry.share < 1 else ""
    return Cell(least, median, f"{mark}{duration(least)} / {duration(median)}")


def duration(time):
    unit, scale = next((u, s) for u, s in (("s", 1), ("ms", 1e3), ("µs", 1e6)) if time * s >= 1)
    return f"{time * scale:.3g} {unit}"


def measure(case_name, solvers, repeat):
    """Return the rows of a case, one for each level."""
    case = CASES[case_name]
    instance = Problem(*problem(case_name), case.exact_fit)
    found = {
        solver: [
            qualify(variant, instance) for variant in SOLVERS[solver] if variant.suits(instance)
        ]
        for solver in solvers
    }
    entries = [e for variants in found.values() for passed, _ in variants for e in passed.values()]
    times = timed(dict.fromkeys(entries), repeat)
    rows = []
    for level, goal in zip(LEVELS, case.goals, strict=True):
        cells = {
            solver: cell(
                [passed[level] for passed, _ in variants if level in passed],
                times,
                min((best for _, best in variants), default=math.inf),
            )
            for solver, variants in found.items()
        }
        texts = [each.text for each in cells.values()]
        rows.append([case_name, f"{level:.0e}", *compared(cells, goal), *texts])
    return rows


def compared(cells, goal):
    """Return the goal and (best peer / ours), by the least and by the median times."""
    if not cells.get(OURS, Cell(math.inf, 0, "")).least < math.inf:
        return f"{goal:g}", "-"
    best = min((c for solver, c in cells.items() if solver != OURS), key=lambda c: c.least)
    own = cells[OURS]
    return f"{goal:g}", f"{best.least / own.least:.2f} / {best.median / own.median:.2f}"


def path_rows(repeat):
    A, b = problem("2000 x 20000")
    A32, b32 = A.astype(np.float32), b.astype(np.float32)
    calls = [
        Entry(lambda: [A.T @ b for _ in range(100)], 1, 1),
        Entry(lambda: conepursuit.nnls_path(A, b, 100), 1, 1),
        Entry(lambda: conepursuit.nnls_path(A32, b32, 100), 1, 1),
    ]
    for entry in calls:
        entry.call()
    times = timed(calls, repeat).values()
    products, double, single = ([min(t), float(np.median(t))] for t in times)
    quotients = [np.divide(double, products), np.divide(single, double)]
    labels = [
        ("2000 x 20000: path of 100 atoms / 100 products A.T @ r", "1.1"),
        ("2000 x 20000: path of 100 atoms in float32 / float64", "0.6"),
    ]
    return [
        [*label, f"{q[0]:.2f} / {q[1]:.2f}"] for label, q in zip(labels, quotients, strict=True)
    ]


def sparse_rows(repeat):
    runs = fresh(SPARSE, repeat)
    least, median, error = runs.min(axis=0), np.median(runs, axis=0), runs[:, 2].max()
    name, times = "100000 x 100000 sparse", f"{duration(least[0])} / {duration(median[0])}"
    return [
        [f"{name}, wall clock to {error:.0e}", "2 s", times],
        [f"{name}, peak memory", "500 MB", f"{least[1]:.0f} / {median[1]:.0f} MB"],
    ]


def start_rows(repeat):
    runs = fresh(START_UP, repeat)
    least, median = runs.min(axis=0), np.median(runs, axis=0)
    labels = [
        ("import beyond numpy and scipy, wall clock", "0.3 s"),
        ("first call in a process, wall clock", "0.5 s"),
    ]
    cells = (f"{duration(a)} / {duration(b)}" for a, b in zip(least, median, strict=True))
    return [[*label, cell] for label, cell in zip(labels, cells, strict=True)]


def fresh(script, repeat):
    """Return the numbers that a script prints in processes of its own, after one to fill caches."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    command = [sys.executable, "-c", script]
    runs = [
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        for _ in range(repeat + 1)
    ]
    return np.array([[float(word) for word in run.split()] for run in runs[1:]])


FIGURES = {"path": path_rows, "sparse": sparse_rows, "start-up": start_rows}


def show(title, headings, rows, markdown):
    if markdown:
        lines = [headings, ["---"] * len(headings), *rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        print(f"\n{title}\n\n{table}", flush=True)
        return
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == headings[0] else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ", ".join([*CASES, *FIGURES]).replace("%", "%%")  # argparse formats its help
    parser.add_argument("--only", action="append", help=f"part of a name: {names}")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--peers-only", action="store_true", help="leave conepursuit out")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of convergence, by solvers that are made to stop early

    def wanted(name):
        return not options.only or any(part in name for part in options.only)

    peers = [s for s in SOLVERS if s != OURS] if THREADS == 1 else ["spams"]
    solvers = peers if options.peers_only else [OURS, *peers]
    cases = [c for c in CASES if wanted(c) and (THREADS == 1 or CASES[c].many_targets)]
    measured = (forked(partial(measure, case, solvers, options.repeat)) for case in cases)
    rows = [row for case_rows in measured for row in case_rows]
    title = "NNLS, " + ("CPU clock, one thread" if THREADS == 1 else "wall clock, two threads")
    title += "" if "CONEPURSUIT_DATA" in os.environ else ", scenes emulated"
    if rows:
        show(title, ["problem", "level", "goal", "ratio", *solvers], rows, options.markdown)
    if THREADS > 1:
        return
    figures = [] if options.peers_only else [make for name, make in FIGURES.items() if wanted(name)]
    if figures:
        rows = [row for make in figures for row in make(options.repeat)]
        show("Single figures", ["figure", "goal", "measured"], rows, options.markdown)
    if any(CASES[case].many_targets for case in cases):  # threads are set before numpy is imported
        subprocess.run(
            [sys.executable, *sys.argv], env=os.environ | {"NNLS_THREADS": "2"}, check=True
        )


if __name__ == "__main__":
    main()
