"""Non-negative logistic and Poisson regression against their peers, to a verified suboptimality.

Logistic: (f(x) - f*) / (f(0) - f*), from the weights that a solver returned and a fit to 1e-14 for
f*. Every solver runs with the loosest of its settings that reaches the level; one thread, CPU
clock, contestants in turns, "minimum / median". Poisson: all tumours of PCAWG on the COSMIC
signatures, wall clock, with the largest proven gap; the peers are loops over some of the tumours,
extrapolated.

Run it with ``CONEPURSUIT_DATA=... make bench-glm``; it takes about eight minutes.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"
if "MALLOC_TRIM_THRESHOLD_" not in os.environ:  # read by the allocator at the start of a process
    os.environ |= {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
    import sys

    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse  # noqa: E402  # the settings above must come first
import warnings  # noqa: E402
from pathlib import Path  # noqa: E402
from statistics import median  # noqa: E402
from time import perf_counter, process_time  # noqa: E402

import numpy as np  # noqa: E402
from scipy.optimize import minimize  # noqa: E402
from sklearn.decomposition import non_negative_factorization  # noqa: E402

from conepursuit import Logistic, Poisson, nnfit  # noqa: E402
from timing import show, timed  # noqa: E402

LEVELS = (1e-6, 1e-8, 1e-10)
CORRELATIONS = (0.0, 0.5, 0.9, 0.99)
SAMPLE = 40
"""Tumours that a loop of a peer is timed on."""


def design(correlation, order, n=5000, p=500, seed=0):
    """Return features that follow an autoregression, and labels of a tenth of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = correlation * X[:, j - 1] + (1 - correlation**2) ** 0.5 * X[:, j]
    weights = np.where(rng.random(p) < 0.1, rng.random(p), 0.0)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ weights)), 1.0, -1.0)
    return np.asarray(X, order=order), y


def ours(X, y, tol):
    return nnfit(Logistic(y), X, tol=tol).x


def lbfgsb(X, y, ftol):
    def function(c):
        margins = y * (X @ c)
        return np.logaddexp(0, -margins).sum(), X.T @ (-y / (1 + np.exp(margins)))

    options = {"maxiter": 10**5, "maxfun": 10**5, "ftol": ftol, "gtol": 1e-12}
    bounds = [(0, None)] * X.shape[1]
    start = np.zeros(X.shape[1])
    return minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x


def prox_newton(X, y, tol):
    from skglm.datafits import Logistic as SkglmLogistic
    from skglm.penalties import PositiveConstraint
    from skglm.solvers import ProxNewton

    solver = ProxNewton(fit_intercept=False, tol=tol, max_iter=1000, max_pn_iter=10000)
    return solver.solve(X, y, SkglmLogistic(), PositiveConstraint())[0]


SETTINGS = tuple(10.0**-k for k in range(2, 15))
SOLVERS = {"conepursuit": ours, "L-BFGS-B": lbfgsb, "skglm ProxNewton": prox_newton}


def qualified(solve, X, y, value, best, level):
    """Return the loosest setting with which a solver reaches a level, None if none does."""
    at_zero = len(y) * np.log(2.0)
    for setting in SETTINGS:
        if value(solve(X, y, setting)) - best <= level * (at_zero - best):
            return setting
    return None


def logistic_rows(repeat):
    for correlation in CORRELATIONS:
        for order in "CF":
            X, y = design(correlation, order)
            value = Logistic(y).value
            best = value(X @ nnfit(Logistic(y), X, tol=1e-14).x)
            for level in LEVELS:
                settings = {
                    name: qualified(
                        solve, X, y, lambda c, X=X, value=value: value(X @ c), best, level
                    )
                    for name, solve in SOLVERS.items()
                }
                calls = {
                    name: lambda solve=SOLVERS[name], s=setting, X=X, y=y: solve(X, y, s)
                    for name, setting in settings.items()
                    if setting is not None
                }
                times = timed(calls, repeat)
                fastest = min(times["conepursuit"])
                yield (
                    f"{correlation:g}", order, f"{level:.0e}",
                    *(cell(times.get(name)) for name in SOLVERS),
                    *(f"{min(times[name]) / fastest:.2f}" if name in times else "-"
                      for name in list(SOLVERS)[1:]),
                )  # fmt: skip


def cell(times):
    return "-" if not times else f"{1e3 * min(times):.1f} / {1e3 * median(times):.1f} ms"


def poisson_rows(folder):
    stored = np.load(Path(folder) / "mutational_signatures" / "sbs96.npz")
    D, Y = stored["cosmic_v3_4"], stored["pcawg_counts"].astype(float)
    nnfit(Poisson(Y[:, :2]), D)  # loads the kernel
    for threads in (1, 2):
        times = []
        for _ in range(5):
            began = perf_counter()
            fit = nnfit(Poisson(Y), D, n_jobs=threads)
            times.append(perf_counter() - began)
        decrease = start_values(D, Y) - fit.value
        assert fit.proven.all()
        yield (
            f"conepursuit, {threads} thread{'s'[: threads - 1]}", f"{min(times):.2f} s",
            f"{(fit.gap / decrease).max():.1e}, proven",
        )  # fmt: skip
    some = np.random.default_rng(0).choice(Y.shape[1], SAMPLE, replace=False)
    decrease = (start_values(D, Y) - fit.value)[some]
    for name, solve in (("L-BFGS-B in a loop", poisson_lbfgsb), ("multiplicative", multiplicative)):
        began = process_time()
        weights = solve(D, Y[:, some])
        time = (process_time() - began) * Y.shape[1] / SAMPLE
        values = np.array(
            [Poisson(Y[:, i]).value(D @ c) for i, c in zip(some, weights.T, strict=True)]
        )
        worst = ((values - fit.value[some]) / decrease).max()
        yield f"{name}, 1 thread", f"≈ {time:.0f} s", f"{worst:.1e}, not proven"


def start_values(D, Y):
    """Return the losses of the best multiples of the sum of all signatures."""
    total = D.sum(axis=1)
    X = total[:, None] * (Y.sum(axis=0) / total.sum())
    return (X - Y * np.log(X)).sum(axis=0)


def poisson_lbfgsb(D, Y):
    weights = []
    for y in Y.T:
        scaled, unit = D * y.sum(), 1.0 / y.sum()

        def function(c, y=y, scaled=scaled, unit=unit):
            value, gradient = Poisson(y).value_and_gradient(scaled @ c)
            return unit * value, unit * (scaled.T @ gradient)

        options = {"maxiter": 10**4, "maxfun": 10**5, "ftol": 1e-13, "gtol": 1e-10}
        start = np.full(D.shape[1], 1.0 / D.shape[1])
        answer = minimize(
            function, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * D.shape[1],
            options=options,
        )  # fmt: skip
        weights.append(answer.x * y.sum())
    return np.stack(weights, axis=1)


def multiplicative(D, Y):
    """Return scikit-learn's multiplicative updates of the weights alone."""
    W, _, _ = non_negative_factorization(
        Y.T, H=D.T, n_components=D.shape[1], update_H=False, solver="mu",
        beta_loss="kullback-leibler", max_iter=5000, tol=1e-12,
    )  # fmt: skip
    return W.T


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--only", choices=["logistic", "poisson"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.only != "poisson":
        headings = ("correlation", "order", "to", *SOLVERS, "L-BFGS-B / ours", "skglm / ours")
        rows = logistic_rows(arguments.repeat)
        show("Non-negative logistic regression, 5000 x 500", headings, rows)
    folder = os.environ.get("CONEPURSUIT_DATA")
    if arguments.only != "logistic" and folder:
        headings = ("2780 tumours", "time", "largest relative gap")
        show("Poisson, 96 channels, 86 signatures", headings, poisson_rows(folder))


if __name__ == "__main__":
    main()
