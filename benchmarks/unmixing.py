"""Unmixing of the scene Urban against SPAMS, SciPy, quadprog and pysptools.

94,249 pixels of 162 bands, made from two parts of the scene, and 6 endmembers. One thread, CPU
clock, contestants in turns, the minimum; slow ones are timed on the first pixels alone. Answers are
compared with ours: the column has the largest excess of the loss of a pixel, relative to
1/2 ||x||^2; that of ours is the largest proven gap.

Run it with ``CONEPURSUIT_DATA=... make bench-unmixing``; it takes about two minutes. pysptools is
not installed with the others, since it needs a compiler for cvxopt on some machines:
``pip install pysptools cvxopt`` adds its row.
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
import warnings  # noqa: E402

import numpy as np  # noqa: E402
import quadprog  # noqa: E402
import spams  # noqa: E402
from scipy.optimize import nnls as scipy_nnls  # noqa: E402

from conepursuit import nnls  # noqa: E402
from nnls_problems import problem  # noqa: E402
from timing import show, timed  # noqa: E402

FEW = 2000
"""Pixels on which loops in Python are timed."""

FEWEST = 100
"""Pixels on which pysptools is timed."""


def scipy_loop(A, B):
    return np.array([scipy_nnls(A, b)[0] for b in B.T]).T


def spams_nonnegative(A, B):
    """Return weights by LARS without a penalty, which needs unit atoms."""
    sizes = np.linalg.norm(A, axis=0)
    atoms = np.asfortranarray(A / sizes)
    found = spams.lasso(B, atoms, lambda1=0.0, mode=2, pos=True, numThreads=1)
    return found.toarray() / sizes[:, None]


def spams_simplex(A, B):
    return spams.decompSimplex(B, A, numThreads=1).toarray()


def quadprog_loop(A, B):
    """Return weights of sum 1 by the dual method of Goldfarb and Idnani, one pixel at a time."""
    n = A.shape[1]
    G, C = A.T @ A, np.hstack([np.ones((n, 1)), np.eye(n)])
    limits = np.concatenate([[1.0], np.zeros(n)])
    return np.array([quadprog.solve_qp(G, A.T @ b, C, limits, 1)[0] for b in B.T]).T


def pysptools_loop(A, B):
    from pysptools.abundance_maps import amaps

    return np.asarray(amaps.FCLS(np.ascontiguousarray(B.T), np.ascontiguousarray(A.T))).T


PEERS = {
    "a >= 0": (
        ("ours", lambda A, B: nnls(A, B, n_jobs=1).x, None),
        ("SPAMS, lasso", spams_nonnegative, None),
        ("SciPy, a loop", scipy_loop, FEW),
    ),
    "a >= 0, sum 1": (
        ("ours", lambda A, B: nnls(A, B, sum_to=1.0, n_jobs=1).x, None),
        ("SPAMS, decompSimplex", spams_simplex, None),
        ("quadprog, a loop", quadprog_loop, FEW),
        ("pysptools, FCLS", pysptools_loop, FEWEST),
    ),
}


def losses(A, B, x):
    rest = A @ x - B
    return 0.5 * np.einsum("ij,ij->j", rest, rest)


def rows(repeat):
    A, B = (np.asfortranarray(each) for each in problem("162 x 6 x 94249 Urban"))
    for constraint, peers in PEERS.items():
        options = {"sum_to": 1.0} if "sum" in constraint else {}
        best = nnls(A, B, **options)
        least, scale = losses(A, B, best.x), 0.5 * np.einsum("ij,ij->j", B, B)
        ours = None
        for name, solve, most in peers:
            part = B[:, :most] if most else B
            try:
                found = solve(A, part)
            except ImportError:
                continue
            times = timed({name: lambda part=part, solve=solve: solve(A, part)}, repeat)[name]
            each = min(times) / part.shape[1]
            ours = each if ours is None else ours
            count = part.shape[1]
            excess = (losses(A, part, found) - least[:count]) / scale[:count]
            worst = (best.gap / scale).max() if name == "ours" else excess.max()
            yield constraint, name, f"{1e6 * each:.3g} µs", f"{each / ours:.1f}", f"{worst:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    headings = ("constraint", "solver", "a pixel", "over ours", "worst excess")
    show("Urban, 162 bands, 6 endmembers", headings, rows(arguments.repeat))


if __name__ == "__main__":
    main()
