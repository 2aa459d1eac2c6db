"""A dictionary beyond memory: what a pass costs, and how many `nnls` makes.

2000 x 200,000 numbers, 3.2 GB in 50 blocks: the memory of two worker processes, or a file on disk.
The target is a sum of 100 atoms with a tenth of noise. `scale.py` shows the tables.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster, wait
from threadpoolctl import threadpool_limits

from conepursuit import Dictionary, nnls

ROWS, BLOCK, TRUE = 2000, 4000, 100
LIMIT = 10**9
"""Bytes of memory that a process may take for a file of 3.2 GB."""


def block(first):
    """Return the atoms from `first` on, as columns, in a block of the dictionary."""
    return np.random.default_rng(first).random((ROWS, BLOCK))


def target(atoms):
    """Return a sum of atoms with noise of a tenth of its size."""
    rng, clean = np.random.default_rng(1), np.zeros(ROWS)
    for first in range(0, atoms, BLOCK):
        clean += block(first)[:, :2] @ (rng.random(2) + 0.5) if first < TRUE // 2 * BLOCK else 0.0
    return clean + 0.1 * np.linalg.norm(clean) / ROWS**0.5 * rng.standard_normal(ROWS)


def in_a_cluster(atoms, repeat):
    """Yield rows for passes over blocks in two processes, and for `nnls` on them."""
    b = target(atoms)
    parts = [dask.delayed(block)(first) for first in range(0, atoms, BLOCK)]
    blocks = da.concatenate([da.from_delayed(part, (ROWS, BLOCK), float) for part in parts], axis=1)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        held = blocks.persist()
        wait(held)
        atoms_of = Dictionary(held)
        atoms_of.lmo(b)  # the norms are computed once
        best = passes(atoms_of, b, repeat)
        yield "a pass, NumPy with two threads", f"{best['NumPy']:.3f} s", "1.00"
        ratio = f"{best['Dask'] / best['NumPy']:.2f}"
        yield "a pass, two processes", f"{best['Dask']:.3f} s", ratio
        began = perf_counter()
        fit = nnls(held, b)
        yield described(fit, b), f"{perf_counter() - began:.1f} s", ""


def passes(blocks, b, repeat):
    """Return the least times of passes over a dictionary, in turns with NumPy's over a copy."""
    whole = np.empty((ROWS, blocks.n_atoms), order="F")
    for first in range(0, blocks.n_atoms, BLOCK):
        whole[:, first : first + BLOCK] = block(first)
    best = {"NumPy": np.inf, "Dask": np.inf}
    for _ in range(repeat):
        best["NumPy"] = min(best["NumPy"], seconds(lambda: product(whole, b)))
        best["Dask"] = min(best["Dask"], seconds(lambda: blocks.lmo(b)))
    return best


def product(matrix, vector):
    with threadpool_limits(2, "blas"):
        return matrix.T @ vector


def seconds(call):
    began = perf_counter()
    call()
    return perf_counter() - began


def described(fit, b):
    """Return the passes of a fit and its gap as text."""
    relative = fit.gap / (0.5 * (b @ b - fit.rnorm**2))
    proof = "proven" if fit.proven else "an estimate"
    return f"nnls: {fit.n_passes:.0f} passes, relative gap {relative:.1e}, {proof}"


def from_a_file(atoms):
    """Yield the row for `nnls` on a file, in a process whose memory is limited."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "atoms.npy"
        stored = np.lib.format.open_memmap(path, "w+", np.float64, (ROWS, atoms), True)
        for first in range(0, atoms, BLOCK):
            stored[:, first : first + BLOCK] = block(first)
        stored.flush()
        del stored
        done = subprocess.run(
            [sys.executable, __file__, str(path)], check=True, capture_output=True, text=True
        )
    text, took = done.stdout.strip().rsplit("\t", 1)
    yield f"from a file, {LIMIT / 1e9:.0f} GB of memory, {text}", took, ""


def stored_block(path, block_info=None):
    """Return a block of a dictionary in a file, of which nothing is read yet."""
    (_, _), (first, stop) = block_info[None]["array-location"]
    return np.load(path, mmap_mode="r")[:, first:stop]


def measure_file(path):
    """Print the passes and the gap of `nnls` on a file, and its seconds."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    atoms = np.load(path, mmap_mode="r").shape[1]
    # `da.from_array` would copy the file to memory.
    blocks = da.map_blocks(
        stored_block, path, dtype=float, meta=np.empty((0, 0)),
        chunks=((ROWS,), (BLOCK,) * (atoms // BLOCK)),
    )  # fmt: skip
    b = target(atoms)
    with dask.config.set(scheduler="threads", num_workers=2):
        began = perf_counter()
        fit = nnls(blocks, b)
    print(described(fit, b), f"{perf_counter() - began:.1f} s", sep="\t")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", help="a dictionary in a .npy file, in which to fit a target")
    measure_file(parser.parse_args().path)
