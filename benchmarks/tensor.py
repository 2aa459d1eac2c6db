"""Non-negative tensor factorisation against TensorLy's `non_negative_parafac_hals`.

TensorLy runs 20 and 100 iterations, without its test for convergence, from its default start by
SVD and from a random one. Ours runs with defaults, but for max_iter and tol=0, with the least
number of sweeps after which the relative error is no worse; what is timed is the whole `fit`. One
thread, CPU clock, contestants in turns, "minimum / median"; the errors are means over seeds.

Run it with ``CONEPURSUIT_DATA=... make bench-tensor``; it takes about five minutes.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
if "MALLOC_TRIM_THRESHOLD_" not in os.environ:  # read by the allocator at the start of a process
    os.environ |= {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
    import sys

    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse  # noqa: E402  # the settings above must come first
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402
from statistics import mean, median  # noqa: E402
from time import process_time  # noqa: E402

import numpy as np  # noqa: E402
from tensorly.datasets import load_indian_pines  # noqa: E402
from tensorly.decomposition import non_negative_parafac_hals  # noqa: E402

from conepursuit import GreedyCP  # noqa: E402
from conepursuit.experiments.tensor import load_head  # noqa: E402
from conepursuit.tensors import outer_sum  # noqa: E402
from timing import show, timed  # noqa: E402

SEEDS = range(5)

MOST = 1000
"""Sweeps after which ours is taken not to reach the level."""

LEVEL = 1e-9
"""Share of TensorLy's error that ours may be above it, where both are at one minimum."""


def made(seed=0):
    """Return a tensor of rank 20 and 128 x 128 x 24 entries, with noise."""
    rng = np.random.default_rng(seed)
    factors = [rng.random((20, n)) * (rng.random((20, n)) < 0.5) for n in (128, 128, 24)]
    X = outer_sum(factors)
    return X + 0.1 * X.mean() * np.abs(rng.standard_normal(X.shape))


def problems(folder):
    """Yield name, data and rank."""
    yield "made, 128 x 128 x 24", made(), 20
    if folder:
        yield "head, 197 x 233 x 24", load_head(), 20
    yield "Indian Pines, 145 x 145 x 200", np.asarray(load_indian_pines().tensor, dtype=float), 10


def theirs(X, rank, sweeps, seed, **options):
    """Return the factors of TensorLy, without the test for convergence unless it is asked for."""
    options = {"tol": 0, **options}
    return non_negative_parafac_hals(X, rank, n_iter_max=sweeps, random_state=seed, **options)


def their_error(X, found):
    first, *others = found.factors
    Z = outer_sum([(first * found.weights).T, *(factor.T for factor in others)])
    return float(np.linalg.norm(X - Z) / np.linalg.norm(X))


def ours(X, rank, sweeps, seed=None, **options):
    return GreedyCP(rank, max_iter=sweeps, tol=0.0, random_state=seed, **options).fit(X)


def least_sweeps(X, rank, level):
    """Return the least number of sweeps after which the mean of ours is at the level, or None."""

    def reached(sweeps):
        errors = (ours(X, rank, sweeps, seed).reconstruction_err_ for seed in SEEDS)
        return mean(errors) <= level * (1 + LEVEL)

    few, many = 0, 1
    while not reached(many):
        few, many = many, 2 * many
        if many > MOST:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if reached(middle) else (middle, many)
    return many


def cell(times):
    return f"{1e3 * min(times):.0f} / {1e3 * median(times):.0f} ms"


def level_rows(folder, repeat):
    for name, X, rank in problems(folder):
        for start in ("svd", "random"):
            for sweeps in (20, 100):
                seeds = SEEDS if start == "random" else [0]
                found = [theirs(X, rank, sweeps, seed, init=start) for seed in seeds]
                level = mean(their_error(X, each) for each in found)
                needed = least_sweeps(X, rank, level)
                if needed is None:
                    yield name, start, str(sweeps), f"{level:.6f}", "-", "-", "not reached"
                    continue
                calls = {
                    "theirs": lambda X=X, r=rank, n=sweeps, s=start: theirs(X, r, n, 0, init=s),
                    "ours": lambda X=X, r=rank, n=needed: ours(X, r, n, 0),
                }
                times = timed(calls, repeat)
                yield (
                    name, start, str(sweeps), f"{level:.6f}", cell(times["theirs"]),
                    cell(times["ours"]), f"{min(times['theirs']) / min(times['ours']):.1f}",
                )  # fmt: skip


def head_rows(repeat):
    """Yield what is reached on the head at rank 20, to convergence and with all ranks."""
    X = load_head()
    began = process_time()
    found = [theirs(X, 20, 5000, seed, init="random", tol=1e-8) for seed in SEEDS]
    seconds = (process_time() - began) / len(SEEDS)
    errors = [their_error(X, each) for each in found]
    yield "TensorLy's HALS, random starts, tol=1e-8", f"{mean(errors):.5f}", f"{seconds:.2f} s"
    for label, options in (
        ("ours, defaults", {}),
        ("ours, path=True (FCMP, all ranks)", {"path": True}),
        ("ours, path=True, algorithm='pwmp'", {"path": True, "algorithm": "pwmp"}),
    ):
        began = process_time()
        fits = [GreedyCP(20, random_state=seed, **options).fit(X) for seed in SEEDS]
        seconds = (process_time() - began) / len(SEEDS)
        yield label, f"{mean(each.reconstruction_err_ for each in fits):.5f}", f"{seconds:.2f} s"
    calls = {"default": lambda: non_negative_parafac_hals(X, 20, random_state=0)}
    times = timed(calls, repeat)["default"]
    yield "TensorLy's HALS, defaults (SVD, 100 iterations)", "", f"{min(times):.2f} s"


MEMORY = """
import resource, sys
import numpy as np
from conepursuit import GreedyCP
X = np.random.default_rng(0).random((400, 400, 100))
GreedyCP(2, max_iter=2).fit(X[:9, :9, :9])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
GreedyCP(10, max_iter=5, tol=0.0, path=sys.argv[1] == "True").fit(X)
print(1 + (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / X.nbytes)
"""


def memory_rows():
    """Yield the peak memory of a fit, with the tensor itself, over the size of the tensor."""
    for path in (False, True):
        command = [sys.executable, "-W", "ignore", "-c", MEMORY, str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        yield f"400 x 400 x 100, path={path}", f"{float(run.stdout):.2f}"


def sparse_rows():
    """Yield the fit of a sparse tensor that would not fit into memory if it were dense."""
    import sparse

    rng, shape, count = np.random.default_rng(0), (10**4, 10**4, 10**3), 10**7
    places = np.array([rng.integers(0, n, count) for n in shape])
    X = sparse.COO(places, rng.random(count), shape)
    del places
    began = process_time()
    fit = GreedyCP(10, max_iter=10, tol=0.0).fit(X)
    seconds = process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield "10^4 x 10^4 x 10^3, 10^7 entries", str(fit.n_iter_), f"{seconds:.0f} s", f"{peak:.2f} GB"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", choices=["level", "head", "memory", "sparse"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    folder, only = os.environ.get("CONEPURSUIT_DATA"), arguments.only
    if only in (None, "level"):
        headings = ("data", "start", "iterations", "error", "TensorLy", "ours", "ratio")
        show("Time to TensorLy's error", headings, level_rows(folder, arguments.repeat))
    if only in (None, "head") and folder:
        headings = ("method", "mean error, 5 seeds", "CPU time of a fit")
        show("The head at rank 20", headings, head_rows(arguments.repeat))
    if only in (None, "memory"):
        show("Peak memory, with the tensor", ("tensor", "times its size"), memory_rows())
    if only in (None, "sparse"):
        headings = ("tensor", "sweeps at rank 10", "CPU time", "peak memory of the process")
        show("A sparse tensor", headings, sparse_rows())


if __name__ == "__main__":
    main()
