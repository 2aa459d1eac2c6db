"""Data beyond memory and beyond one process: what Dask adds to the time of a fit.

Pixels of 162 bands, 6 endmembers, made at random. The first table compares `nnls` on an array in
memory, by two threads, with the same array cut into blocks for Dask's threads. The second reads the
blocks from Zarr on disk, in a process of its own, and has the growth of its memory (on Linux). The
third fits few targets on 2048 atoms in many small blocks, whose Gram matrix is computed once. The
fourth compares the passes of `GreedyNMF` over a matrix of float32 in 40 blocks with the two
products of each block that a sweep cannot do without, and has the growth of the memory of a process
that holds the matrix and fits 20 components. The fifth is about a dictionary of 3.2 GB; see
`scale_dictionary`. Wall clock, contestants in turns, the minimum.

Run it with ``make bench-scale`` on a quiet machine; ``--targets``, ``--rows`` and ``--atoms`` make
it smaller.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import dask
import dask.array as da
import numpy as np
import zarr
from dask.delayed import delayed
from threadpoolctl import threadpool_limits

from conepursuit import GreedyNMF, nnls
from conepursuit.factorization.lazy_data import LazyFactorData
from scale_dictionary import ROWS, from_a_file, in_a_cluster
from timing import show

BANDS, ENDMEMBERS, THREADS = 162, 6, 2
HELD, CHUNK, STORED = 100_000, 50_000, 1_000
"""Targets in a block in memory, in a block that is read from a file, and in a chunk of the file.

To read a chunk of a file takes three times its size: compressed, decompressed, and in the block.
"""

COLUMNS, COMPONENTS, BLOCKS = 400, 20, 40
"""Of the matrix that is factorised."""


def seconds(calls, repeat):
    """Return the least wall-clock time of some calls, made in turns."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(repeat):
        for name, call in calls.items():
            began = perf_counter()
            call()
            best[name] = min(best[name], perf_counter() - began)
    return best


def pixels(count, seed=0):
    """Return mixtures of the endmembers with noise, one in each column."""
    rng = np.random.default_rng(seed)
    noisy = spectra() @ rng.dirichlet(np.ones(ENDMEMBERS), count).T
    noisy += 0.01 * rng.standard_normal((BANDS, count))
    return noisy


def spectra():
    return np.random.default_rng(1).random((BANDS, ENDMEMBERS)) + 0.1


def compute(*arrays):
    return dask.compute(*arrays, scheduler="threads", num_workers=THREADS)


def in_memory(targets, repeat):
    """Yield the rows of the first table."""
    A, B = spectra(), pixels(targets)
    blocks = da.from_array(B, chunks=(BANDS, HELD), name=False)
    turned = da.from_array(np.ascontiguousarray(B.T), chunks=(HELD, BANDS), name=False).T
    best = seconds(
        {
            "in memory": lambda: nnls(A, B, n_jobs=THREADS),
            "Dask": lambda: fields(A, blocks),
            "Dask, a pixel side by side": lambda: fields(A, turned),
        },
        repeat,
    )
    for name, time in best.items():
        yield name, f"{time:.3f} s", f"{time / best['in memory']:.2f}"


def fields(A, blocks):
    fit = nnls(A, blocks)
    return compute(fit.x, fit.rnorm, fit.gap, fit.proven)


def from_disk(targets, repeat):
    """Yield the rows of the second table."""
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "pixels.zarr")
        store = zarr.create_array(path, shape=(BANDS, targets), chunks=(BANDS, STORED), dtype="f8")
        for i in range(0, targets, CHUNK):
            stop = min(i + CHUNK, targets)
            store[:, i:stop] = pixels(stop - i, seed=i)
        done = subprocess.run(
            [sys.executable, __file__, "--disk", path, "--repeat", str(repeat)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        reading, fitted, memory = map(float, done.stdout.split())
    A, B = spectra(), pixels(targets)
    solving = seconds({"": lambda: nnls(A, B, n_jobs=THREADS)}, repeat)[""]
    larger = max(reading, solving)
    for name, time in {"reading": reading, "solving": solving, "both": fitted}.items():
        chunks = f"{memory:.1f} blocks" if name == "both" else ""
        yield name, f"{time:.3f} s", f"{time / larger:.2f}", chunks


def largest_memory():
    """Return the most bytes that this process has held in memory, as Linux counts them."""
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def measure_disk(path, repeat):
    """Print the seconds for reading, for reading and fitting, and the growth of memory in blocks.

    A few targets are fitted first, so that what is imported does not count as memory of blocks.
    """
    A, blocks = spectra(), da.from_zarr(path, chunks=(BANDS, CHUNK))

    def fit(part):
        found = nnls(A, part)
        return compute(found.x.sum(axis=1), found.gap.max(), found.proven.all())

    fit(da.from_array(pixels(10)))
    before = largest_memory()
    fitted = seconds({"": lambda: fit(blocks)}, repeat)[""]
    grown = largest_memory() - before
    reading = seconds({"": lambda: compute(blocks.sum())}, repeat)[""]
    print(reading, fitted, grown / (8 * BANDS * CHUNK))


def small_blocks(repeat):
    """Yield the rows of the third table."""
    rng = np.random.default_rng(0)
    A, B = rng.random((500, 2048)), rng.random((500, 64))
    best = seconds(
        {
            "in memory": lambda: nnls(A, B, n_jobs=THREADS),
            "Dask, 16 blocks of 4": lambda: fields(A, da.from_array(B, chunks=(500, 4))),
        },
        repeat,
    )
    for name, time in best.items():
        yield name, f"{time:.3f} s", f"{time / best['in memory']:.2f}"


def mixtures(rows):
    """Return a matrix of float32 with a rank of `COMPONENTS` but for noise, and its Dask array."""
    rng, chunk = np.random.default_rng(0), rows // BLOCKS

    def part(*shape):
        return rng.random(shape, np.float32) * (rng.random(shape, np.float32) < 0.3)

    X, H = np.empty((rows, COLUMNS), np.float32), part(COMPONENTS, COLUMNS)
    for i in range(0, rows, chunk):
        own = X[i : i + chunk]
        np.matmul(part(len(own), COMPONENTS), H, out=own)
        own += 0.1 * rng.random(own.shape, np.float32)
    return X, da.from_array(X, chunks=(chunk, COLUMNS), name=False)


def passes(rows, repeat):
    """Yield the rows of the fourth table."""
    _, blocks = mixtures(rows)
    H = np.random.default_rng(1).random((COMPONENTS, COLUMNS))
    single, left = H.astype(np.float32), np.ones((COMPONENTS, rows // BLOCKS), np.float32)

    def multiply(block):
        return (block @ single.T)[0, 0] + (left[:, : len(block)] @ block)[0, 0]

    def bare():
        compute(*(delayed(multiply)(block) for block in blocks.to_delayed().ravel()))

    loss = LazyFactorData.of(blocks, False, scale=True).loss()
    factor = loss.fitted_rows(loss.zeros(COMPONENTS)[0], H)
    residual = loss.descent((factor, H))
    with threadpool_limits(1, "blas"):
        best = seconds(
            {
                "the products of all blocks": bare,
                "a sweep": lambda: loss.update((loss.fitted_rows(factor, H), H.copy()), 1),
                "a step of both Lanczos runs": lambda: residual.sums(signed=H[0], positive=H[0]),
                "a round of the power method": lambda: residual.sums(rights=H[:1]),
            },
            repeat,
        )
    done = subprocess.run(
        [sys.executable, __file__, "--rows", str(rows), "--factorise"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    products = best["the products of all blocks"]
    fitted, count, sweeps, memory = done.stdout.split(maxsplit=3)
    for name, time in best.items():
        yield name, f"{time:.3f} s", f"{time / products:.2f}", ""
    name = f"a fit: {count} passes, {sweeps} sweeps at last"
    yield name, f"{float(fitted):.1f} s", "", memory.strip()


def measure_factors(rows):
    """Print the seconds, passes and last sweeps of a fit, and its memory, in blocks per thread."""
    X, blocks = mixtures(rows)
    GreedyNMF(2).fit(da.from_array(X[:1000], chunks=(500, COLUMNS)))
    before, began = largest_memory(), perf_counter()
    model = GreedyNMF(COMPONENTS, max_iter=20, tol=0.0).fit(blocks)
    took, grown = perf_counter() - began, largest_memory() - before
    each = grown / THREADS / (X.nbytes / BLOCKS)
    print(took, model.n_passes_, model.n_iter_, f"{each:.2f} blocks per thread")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--atoms", type=int, default=200_000)
    parser.add_argument("--disk", help=argparse.SUPPRESS)  # a Zarr array to measure
    parser.add_argument("--factorise", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    dask.config.set(scheduler="threads", num_workers=THREADS)
    if given.factorise:
        measure_factors(given.rows)
        return
    if given.disk:
        measure_disk(given.disk, given.repeat)
        return
    headings = ("", "time", "ratio")
    size = f"{given.targets:,} x {BANDS} targets, {ENDMEMBERS} atoms, {THREADS} threads"
    show(size, headings, in_memory(given.targets, given.repeat))
    show(f"{size}, from Zarr", (*headings, "memory"), from_disk(given.targets, given.repeat))
    show("64 targets, 2048 atoms", headings, small_blocks(given.repeat))
    size = f"{given.rows:,} x {COLUMNS} of float32, {COMPONENTS} components, {THREADS} threads"
    show(size, (*headings, "memory"), passes(given.rows, given.repeat))
    rows = [*in_a_cluster(given.atoms, given.repeat), *from_a_file(given.atoms)]
    show(f"a dictionary of {ROWS} x {given.atoms:,}, 100 true atoms and noise", headings, rows)


if __name__ == "__main__":
    main()
