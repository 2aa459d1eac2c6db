"""The solvers that ``nnls.py`` compares, each with the settings that trade accuracy for time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import fnnls
import numpy as np
import scipy.optimize
import spams
from skglm.datafits import Quadratic
from skglm.penalties import PositiveConstraint
from skglm.solvers import AndersonCD
from skglm.utils.jit_compilation import compiled_clone
from sklearn.linear_model import Lasso, LinearRegression

import conepursuit
from nnls_problems import Problem


class Variant(NamedTuple):
    """One way to run a solver.

    ``prepare(problem, setting, threads)`` returns the call to time and ``weights(problem, raw)``
    the columns of weights in what it returned. Settings go from loose to tight. ``compiled`` asks
    for a call before any is timed.
    """

    prepare: Callable[[Problem, float, int], Callable[[], Any]]
    weights: Callable[[Problem, Any], np.ndarray]
    settings: tuple[float, ...] = (0.0,)
    looped: bool = False
    compiled: bool = False
    most_atoms: int = 20000
    most_targets: int = 10**6

    def suits(self, problem):
        """Return whether a Gram matrix fits into memory, and a loop is worth its time."""
        n_targets = problem.B.shape[1]
        return problem.A.shape[1] <= self.most_atoms and n_targets <= self.most_targets


def looped(solve, settings=(0.0,), **limits):
    """Return the variant of a solver of one target, ``solve(problem, setting)(b)``."""

    def prepare(problem, setting, threads):
        one, columns = solve(problem, setting), list(problem.B.T)
        return lambda: [one(b) for b in columns]

    def weights(_problem, columns):
        return np.stack(columns, axis=1)

    return Variant(prepare, weights, settings, looped=True, **limits)


def ours(problem, tol, threads):
    B = problem.B if problem.B.shape[1] > 1 else problem.B[:, 0]
    n_jobs = threads if threads > 1 else None
    return lambda: conepursuit.nnls(problem.A, B, tol=tol, n_jobs=n_jobs)


def our_weights(problem, result):
    return result.x.reshape(-1, problem.B.shape[1])


def scipy_nnls(problem, _):
    return lambda b: scipy.optimize.nnls(problem.A, b, maxiter=10**6)[0]


def spams_dictionary(problem, share, threads, cholesky=False):
    """Follow the path of the lasso to a small penalty, the only tolerance that SPAMS has."""
    return partial(
        spams.lasso, problem.unit_targets, problem.fortran, lambda1=share * problem.steepest,
        mode=2, pos=True, numThreads=threads, cholesky=cholesky,
    )  # fmt: skip


def spams_gram(problem, share, threads):
    """Do the same on the products with the atoms; to form them is a part of the solve."""
    A, B, penalty = problem.fortran, problem.unit_targets, share * problem.steepest

    def call():
        Q, q = np.asfortranarray(A.T @ A), np.asfortranarray(A.T @ B)
        return spams.lasso(B, Q=Q, q=q, lambda1=penalty, mode=2, pos=True, numThreads=threads)

    return call


def spams_weights(problem, sparse):
    return sparse.toarray() * problem.norms


def skglm_descent(problem, share):
    A = problem.fortran

    def solve(b):
        tol = share * np.max(A.T @ b) / len(b)
        solver = AndersonCD(tol=tol, max_iter=500, max_epochs=50000, fit_intercept=False)
        return solver.solve(A, b, DATAFIT, POSITIVE)[0]

    return solve


def fast_nnls(problem, _):
    return lambda b: fnnls.fnnls(problem.A, b)[0]


def sklearn_descent(problem, n_sweeps, precompute):
    """Limit the sweeps: the gap that it stops by does not close while the penalty vanishes."""
    A = problem.fortran

    def solve(b):
        model = Lasso(
            1e-14 * np.max(A.T @ b) / len(b), fit_intercept=False, positive=True, tol=1e-15,
            max_iter=int(n_sweeps), precompute=precompute,
        )  # fmt: skip
        return model.fit(A, b).coef_

    return solve


def sklearn_linear(problem, _setting, _threads):
    return partial(LinearRegression(fit_intercept=False, positive=True).fit, problem.A, problem.B)


def sklearn_weights(problem, model):
    return model.coef_.reshape(-1, problem.A.shape[1]).T


DATAFIT, POSITIVE = compiled_clone(Quadratic()), compiled_clone(PositiveConstraint())
OURS = "conepursuit"
DECADES, HALVES = (*np.logspace(-2, -12, 11), 0.0), tuple(np.logspace(-2, -12, 21))
SWEEPS = tuple(np.logspace(0, 4, 9))
SOLVERS = {
    OURS: [Variant(ours, our_weights, DECADES, compiled=True)],
    "scipy": [looped(scipy_nnls)],
    "spams": [
        Variant(spams_dictionary, spams_weights, DECADES),
        Variant(partial(spams_dictionary, cholesky=True), spams_weights, DECADES),
        Variant(spams_gram, spams_weights, DECADES, most_atoms=5000),
    ],
    "skglm": [looped(skglm_descent, HALVES, compiled=True, most_targets=1)],
    "fnnls": [looped(fast_nnls, most_atoms=5000)],
    "sklearn": [
        Variant(sklearn_linear, sklearn_weights),
        looped(partial(sklearn_descent, precompute=False), SWEEPS, most_targets=1),
        looped(partial(sklearn_descent, precompute=True), SWEEPS, most_atoms=5000, most_targets=1),
    ],
}
