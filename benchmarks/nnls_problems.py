"""The non-negative least-squares problems of ``nnls.py``, each from a seeded generator.

The scenes are real when the environment variable CONEPURSUIT_DATA names the folder of the data, and
emulated at the same size when it does not. A problem knows its optimum by a proven lower bound.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from conepursuit.datasets import make_synthetic


class Case(NamedTuple):
    """How a problem is made, and the wanted (best peer / ours) at the two suboptimalities."""

    make: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
    goals: tuple[float, float]
    exact_fit: bool = False
    many_targets: bool = False


class Problem:
    """A matrix and its targets as columns, in the layouts that the solvers ask for."""

    def __init__(self, A, b, exact_fit=False):
        self.A, self.exact_fit = np.ascontiguousarray(A), exact_fit
        self.B = np.asfortranarray(b.reshape(len(b), -1))

    @cached_property
    def fortran(self):
        return np.asfortranarray(self.A)

    @cached_property
    def norms(self):
        norms = np.linalg.norm(self.B, axis=0)
        return np.where(norms > 0, norms, 1)

    @cached_property
    def unit_targets(self):
        return np.asfortranarray(self.B / self.norms)

    @cached_property
    def steepest(self):
        """Largest correlation with a unit target: the scale of a tolerance on the gradient."""
        return float(np.max(self.A.T @ self.unit_targets))

    @cached_property
    def optima(self):
        """Lower bounds on f, proven and within 1e-11 of f(0)."""
        if self.exact_fit:
            return np.zeros(self.B.shape[1])
        X = np.stack([nnls(self.A, b, maxiter=10**6)[0] for b in self.B.T], axis=1)
        gaps = self._gaps(X)
        assert np.all(gaps <= 1e-11 * self.norms**2 / 2)
        return self._values(X) - gaps

    def suboptimality(self, X):
        """Return the worst (f(x) - f*) / f(0) of columns of weights, infinite if any is invalid."""
        if not np.all(X >= 0):
            return math.inf
        return float(np.max((self._values(X) - self.optima) / (self.norms**2 / 2)))

    def some(self, n_targets):
        """Return the problem with some of its targets, evenly spaced."""
        columns = np.linspace(0, self.B.shape[1] - 1, n_targets).astype(int)
        return Problem(self.A, self.B[:, columns], self.exact_fit)

    def _values(self, X):
        return np.sum((self.B - self.A @ X) ** 2, axis=0) / 2

    def _gaps(self, X):
        """Return bounds on f(x) - f*, for non-negative atoms.

        f is convex: f* >= f(x) + g.(x* - x). With t such that g_j >= -t 1.a_j for all atoms,
        g.x* >= -t 1.A x*, and 1.A x* <= sqrt(d) ||b||, as A x* is the projection of b on a cone.
        """
        G = self.A.T @ (self.A @ X - self.B)
        t = np.maximum(np.max(-G / self.A.sum(axis=0)[:, None], axis=0), 0)
        return np.sum(G * X, axis=0) + t * np.sqrt(len(self.A)) * self.norms


def noisy(b, share, rng):
    """Return targets with Gaussian noise of a share of the norm of each."""
    scale = share * np.linalg.norm(b, axis=0) / np.sqrt(len(b))
    return b + scale * rng.standard_normal(b.shape)


def sparse_weights(n, n_active, rng):
    weights = np.zeros(n)
    weights[rng.choice(n, n_active, replace=False)] = rng.uniform(1, 5, n_active)
    return weights


def decays(rng):
    t, tau = np.linspace(0, 5, 32), np.geomspace(0.05, 20, 60)
    A = np.exp(-t[:, None] / tau)
    return A, noisy(A[:, [12, 30, 47]] @ np.array([1.0, 2.0, 1.5]), 1e-2, rng)


def hilbert(rng):
    A = 1 / (np.arange(60)[:, None] + np.arange(40) + 1.0)
    return A, noisy(A @ rng.random(40), 1e-2, rng)


def tall(rng):
    A = rng.random((500, 200))
    return A, noisy(A @ sparse_weights(200, 100, rng), 0.1, rng)


def bumps(rng):
    points, centres = np.linspace(0, 1, 200), np.linspace(0, 1, 400)
    A = np.exp(-0.5 * ((points[:, None] - centres) / 0.02) ** 2)
    return A, noisy(A @ sparse_weights(400, 15, rng), 0.05, rng)


def smooth(m, n, width, share, rng):
    """Return overlapping bumps and a sum of all of them, with a share of noise."""
    points, centres = np.linspace(0, 1, m), np.linspace(0, 1, n)
    A = np.exp(-0.5 * ((points[:, None] - centres) / width) ** 2)
    return A, noisy(A @ rng.random(n), share, rng)


def dense_fit(rng):
    """Return non-negative atoms and a target in their cone that needs 800 of them."""
    A = rng.random((1000, 1000))
    return A, A @ sparse_weights(1000, 800, rng)


def random_atoms(d, n, n_active, rng):
    """Return non-negative unit atoms and a noisy sparse combination, as in iteration_cost.py."""
    A = rng.random((d, n))
    A /= np.linalg.norm(A, axis=0)
    return A, noisy(A @ sparse_weights(n, n_active, rng), 0.1, rng)


def exact_fit(rng):
    """Return signed atoms and a target inside their cone; a basic solution has d of them."""
    A = rng.standard_normal((1000, 5000))
    return A, A @ np.abs(rng.standard_normal(5000))


def load(name):
    """Return the arrays of a file of the data folder, or None where there is no such folder."""
    folder = os.environ.get("CONEPURSUIT_DATA")
    return np.load(Path(folder) / name) if folder else None


def emulated(d, n, n_targets, rng):
    """Return smooth spectra and targets that mix a few of them."""
    bands = np.linspace(0, 1, d)[:, None]
    A = 0.2 + sum(
        rng.random(n) * np.exp(-0.5 * ((bands - rng.random(n)) / 0.15) ** 2) for _ in range(4)
    )
    return A, noisy(A @ abundances(n, min(4, n), n_targets, rng), 1e-2, rng)


def abundances(n, n_active, n_targets, rng):
    """Return columns with n_active weights that sum to one."""
    order = np.argsort(rng.random((n, n_targets)), axis=0)[:n_active]
    weights = np.zeros((n, n_targets))
    np.put_along_axis(weights, order, rng.dirichlet(np.ones(n_active), n_targets).T, axis=0)
    return weights


def urban(rng):
    data = load("urban/urban_subsets.npz")
    if data is None:
        return emulated(162, 6, 94249, rng)
    library, labels = data["library"] / 1000, data["library_label"]
    A = np.stack([library[:, labels == k].mean(axis=1) for k in range(6)], axis=1)
    pixels = np.concatenate([data[crop].reshape(-1, 162) for crop in ("crop_a", "crop_b")]) / 1000
    return A, noisy(pixels[np.arange(94249) % len(pixels)].T, 1e-2, rng)


def samson(rng):
    data = load("samson/samson.npz")
    return emulated(156, 3, 9025, rng) if data is None else (data["endmembers"], data["Y"])


def signatures(rng):
    data = load("mutational_signatures/sbs96.npz")
    if data is None:
        A = rng.dirichlet(np.full(96, 0.3), 79).T
        return A, rng.poisson(1e4 * A @ abundances(79, 5, 3000, rng)).astype(float)
    counts = data["pcawg_counts"]
    Y = rng.poisson(counts[:, np.arange(3000) % counts.shape[1]])
    return np.ascontiguousarray(data["cosmic_v3_4"][:, :79]), Y.astype(float)


def minerals(rng):
    data = load("usgs_library/usgs_1995_aviris224.npz")
    if data is None:
        return emulated(224, 60, 50000, rng)
    A = np.ascontiguousarray(data["spectra"][:, ::8][:, :60])
    return A, noisy(A @ abundances(60, 4, 50000, rng), 1e-2, rng)


def sparse_problem(rng):
    """Return 10^5 sparse non-negative atoms in 10^5 dimensions and a target made of 200."""
    size = 10**5
    rows, columns = rng.integers(0, size, 10**6), np.repeat(np.arange(size), 10)
    A = sp.csc_array((rng.random(10**6), (rows, columns)), shape=(size, size))
    return A, A @ sparse_weights(size, 200, rng)


SMOOTH = ((60, 100, 0.05), (300, 500, 0.02), (300, 600, 0.02), (1000, 2000, 0.01))
"""Rows, atoms and widths of dictionaries of bumps."""

CASES = {
    "50 x 100 paper": Case(make_synthetic, (1.2, 1.2)),
    "32 x 60 decays": Case(decays, (1.2, 1.2)),
    "60 x 40 Hilbert": Case(hilbert, (1.2, 1.2)),
    "500 x 200": Case(tall, (1.5, 1.5)),
    "200 x 400 bumps": Case(bumps, (2, 2)),
    "1000 x 5000": Case(lambda rng: random_atoms(1000, 5000, 50, rng), (8, 8)),
    "2000 x 20000": Case(lambda rng: random_atoms(2000, 20000, 100, rng), (8, 30)),
    "1000 x 5000 exact fit": Case(exact_fit, (1, 1), exact_fit=True),
    **{
        f"{m} x {n} smooth, exact": Case(partial(smooth, m, n, width, 0.0), (1, 1), exact_fit=True)
        for m, n, width in SMOOTH
    },
    **{
        f"{m} x {n} smooth, 1 % noise": Case(partial(smooth, m, n, width, 1e-2), (1, 1))
        for m, n, width in SMOOTH
    },
    "1000 x 1000 exact fit, 800 positive": Case(dense_fit, (1, 1), exact_fit=True),
    "162 x 6 x 94249 Urban": Case(urban, (10, 10), many_targets=True),
    "156 x 3 x 9025 Samson": Case(samson, (8, 8), many_targets=True),
    "96 x 79 x 3000 signatures": Case(signatures, (5, 5), many_targets=True),
    "224 x 60 x 50000 minerals": Case(minerals, (4, 4), many_targets=True),
}


def problem(name):
    """Return the matrix and the target or targets of a case."""
    return CASES[name].make(np.random.default_rng(0))
