"""What a fresh process pays: the import, the first call, and a later call with the same data.

Every row is a process of its own, on one thread, CPU clock, minimum over the processes. Modules are
compiled to bytecode before. The import is that from a bare interpreter, with all that it needs; the
first rows are those of others. Estimators need what scikit-learn's need. Run it with
``make bench-start``; it takes about ten minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from timing import show

PROGRAM = """
from time import process_time

def seconds(call):
    began = process_time()
    call()
    return process_time() - began

began = process_time()
{imports}
loading = process_time() - began
{data}
first = seconds(lambda: {call})
print(loading, first, min(seconds(lambda: {call}) for _ in range(5)))
"""

DATA = """
import numpy as np
A = np.sin(np.arange(5000.0) ** 2).reshape(50, 100)  # numpy.random stays unloaded
P, b = np.abs(A), np.abs(A) @ np.maximum(A[0], 0.0) + 0.1 * A[:, 0]
labels = np.where(A @ np.maximum(A[0], 0.0) > 0, 1, -1)
G, c, counts = P.T @ P + np.eye(100), P.T @ b, np.round(10 * b)
"""

OTHERS = {
    "numpy": ("import numpy", "np.linalg.norm(b)"),
    "scipy's nnls": ("import numpy\nfrom scipy.optimize import nnls", "nnls(P, b)"),
    "scikit-learn's LinearRegression": (
        "import sklearn.model_selection\nfrom sklearn.linear_model import LinearRegression",
        "LinearRegression().fit(P, b)",
    ),
}

OURS = {
    "nnls": ("nnls", "nnls(P, b)"),
    "nnls, signed atoms": ("nnls", "nnls(A, b)"),
    "nnls, 50 targets": ("nnls", "nnls(P, P[:, ::2])"),
    "nnls, lists": ("nnls", "nnls(P.tolist(), b.tolist())"),
    "nnls, max_atoms": ("nnls", "nnls(P, b, max_atoms=5)"),
    "nnls_path": ("nnls_path", "nnls_path(P, b, 10)"),
    "nnls_gram": ("nnls_gram", "nnls_gram(G, c)"),
    "certify_nnls": ("certify_nnls", "certify_nnls(A, b, np.maximum(A[0], 0.0))"),
    "nnfit, Poisson": ("nnfit, Poisson", "nnfit(Poisson(counts), P)"),
    "nnfit, Logistic": ("nnfit, Logistic", "nnfit(Logistic(labels), A, penalty=0.1)"),
    "nnfit, Huber, 50 targets": ("nnfit, Huber", "nnfit(Huber(P[:, ::2]), P)"),
    "minimize, FCMP": (
        "minimize, LeastSquares, Cone, Dictionary, FCMP",
        "minimize(LeastSquares(b), Cone(Dictionary(P)), FCMP())",
    ),
    "minimize, Quadratic": (
        "minimize, Quadratic, Cone, UnitVectors, PWMP",
        "minimize(Quadratic(G, c), Cone(UnitVectors(100)), PWMP(), max_iter=20)",
    ),
    "minimize, Logistic, AFW": (
        "minimize, Logistic, Hull, Dictionary, AFW",
        "minimize(Logistic(labels), Hull(Dictionary(A), 5.0), AFW(), max_iter=20)",
    ),
    "minimize, rank one": (
        "minimize, LeastSquares, Cone, NonnegativeRankOne, PWMP",
        "minimize(LeastSquares(P), Cone(NonnegativeRankOne(P.shape)), PWMP(), max_iter=3)",
    ),
    "certify": (
        "certify, LeastSquares, Cone, Dictionary",
        "certify(LeastSquares(b), Cone(Dictionary(P)), np.maximum(A[0], 0.0))",
    ),
    "penalty_path": (
        "penalty_path, LeastSquares, Dictionary",
        "penalty_path(LeastSquares(b), Dictionary(P), n_penalties=5)",
    ),
    "ConicRegressor": ("ConicRegressor", "ConicRegressor().fit(P, b)"),
    "ConicRegressorCV": ("ConicRegressorCV", "ConicRegressorCV().fit(P[:, :5], b)"),
    "ConicClassifier": ("ConicClassifier", "ConicClassifier().fit(A, labels)"),
    "ConicCoder": ("ConicCoder", "ConicCoder(P.T).fit_transform(P.T)"),
    "NonnegativeGarroteRegressor": (
        "NonnegativeGarroteRegressor",
        "NonnegativeGarroteRegressor().fit(A[:, :20], b)",
    ),
    "GreedyNMF": ("GreedyNMF", "GreedyNMF(5).fit(P)"),
    "GreedyNMF, kullback_leibler": (
        "GreedyNMF",
        "GreedyNMF(5, loss='kullback_leibler').fit(P)",
    ),
    "datasets": ("datasets", "datasets.make_sparse_conic(50, 100, 5, random_state=0)"),
    "theory": ("theory", "theory.cone_width(A[:3, :6])"),
}

HELP = ("from conepursuit.cli import main", "main(['--help'])")


def measured(imports, call, environment):
    """Return the seconds of the import, of the first call and of a later one."""
    program = PROGRAM.format(imports=imports, data=DATA, call=call)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def main(repeat):
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    cases = dict(OTHERS)
    for name, (names, call) in OURS.items():
        cases[name] = f"from conepursuit import {names}", call
    cases["conepursuit --help"] = HELP
    rows = []
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, **single, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for imports, _ in cases.values():
            measured(imports, "None", environment)
        for name, (imports, call) in cases.items():
            runs = [measured(imports, call, environment) for _ in range(repeat)]
            loading, first, later = (min(times) for times in zip(*runs, strict=True))
            rows.append([name, f"{1e3 * loading:.0f}", f"{1e3 * first:.2f}", f"{1e3 * later:.2f}"])
    show("Cold starts, in milliseconds", ("", "import", "first call", "later call"), rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=10, help="processes for each row")
    main(parser.parse_args().repeat)
