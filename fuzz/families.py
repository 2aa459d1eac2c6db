"""Families of matrices and targets that have made solvers of least squares fail.

A family is a function of a random generator, the shape (m, n) of A and a number t of targets; it
returns A and B of shape (m, t), finite floats. Any shape from 1 x 1 on is allowed.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.linalg import null_space

FAMILIES = {}


def family(function):
    """Add a function to the families, under its name."""
    FAMILIES[function.__name__.replace("_", " ")] = function
    return function


# Targets


def mixed_targets(rng, A, t):
    """Return targets of many kinds: noise, fits with and without noise, integers, zeros."""
    kinds = [gaussian_targets, fitted_targets, noisy_targets, polar_targets, integer_targets]
    parts = rng.multinomial(t, np.full(len(kinds), 1 / len(kinds)))
    B = np.concatenate([kind(rng, A, k) for kind, k in zip(kinds, parts, strict=True)], axis=1)
    return np.ascontiguousarray(B[:, rng.permutation(t)])


def gaussian_targets(rng, A, t):
    """Return noise of the size of the atoms."""
    return rng.standard_normal((len(A), t)) * (np.abs(A).max(initial=0.0) or 1.0)


def fitted_targets(rng, A, t):
    """Return combinations of the atoms, up to rounding."""
    return A @ sparse_weights(rng, A.shape[1], t)


def noisy_targets(rng, A, t):
    """Return combinations of the atoms with noise of any size."""
    B = fitted_targets(rng, A, t)
    size = 10.0 ** rng.uniform(-17, 0, t) * np.abs(B).max(axis=0, initial=0.0)
    return B + size * rng.standard_normal(B.shape)


def polar_targets(rng, A, t):
    """Return the negative of combinations of the atoms."""
    return -fitted_targets(rng, A, t)


def integer_targets(rng, A, t):
    """Return small integers."""
    return rng.integers(-3, 4, (len(A), t)).astype(float)


def sparse_weights(rng, n, t):
    """Return non-negative weights of which some are zero."""
    return rng.random((n, t)) * (rng.random((n, t)) < rng.choice([0.3, 0.7, 1.0]))


# Ordinary matrices


@family
def nonnegative(rng, m, n, t):
    A = rng.random((m, n))
    return A, mixed_targets(rng, A, t)


@family
def signed(rng, m, n, t):
    A = rng.standard_normal((m, n))
    return A, mixed_targets(rng, A, t)


@family
def integers(rng, m, n, t):
    most = rng.choice([1, 2, 5, 100])
    A = rng.integers(-most, most + 1, (m, n)).astype(float)
    return A, mixed_targets(rng, A, t) if rng.random() < 0.5 else integer_targets(rng, A, t)


@family
def zeros_and_ones(rng, m, n, t):
    A = (rng.random((m, n)) < 0.5).astype(float)
    return A, mixed_targets(rng, A, t) if rng.random() < 0.5 else integer_targets(rng, A, t)


@family
def wide_signed(rng, m, n, t):
    """Atoms that span the whole space as a cone: every target is fitted exactly."""
    A = rng.standard_normal((m, n))
    A[:, -1] = -A[:, :-1].sum(axis=1) if n > 1 else A[:, 0]
    return A, gaussian_targets(rng, A, t)


# Atoms that depend on each other


@family
def duplicates(rng, m, n, t):
    A = rng.standard_normal((m, n))[:, rng.integers(0, max(1, n // 2), n)]
    return A, mixed_targets(rng, A, t)


@family
def zero_rows_and_columns(rng, m, n, t):
    A = rng.standard_normal((m, n)) * (rng.random(n) < 0.6) * (rng.random(m) < 0.7)[:, None]
    return A, gaussian_targets(rng, A, t)


@family
def collinear(rng, m, n, t):
    A = rng.standard_normal((m, n))[:, rng.integers(0, max(1, n // 2), n)]
    A = A * rng.choice([1.0, 2.0, 3.0, 0.1, 7.7], n)
    return A, mixed_targets(rng, A, t)


@family
def nearly_collinear(rng, m, n, t):
    A = np.outer(rng.standard_normal(m), rng.uniform(0.5, 2, n))
    A += 10.0 ** rng.uniform(-17, -3) * rng.standard_normal((m, n))
    return A, mixed_targets(rng, A, t)


@family
def sums_of_atoms(rng, m, n, t):
    """Return atoms of which some are sums of two others."""
    A = rng.standard_normal((m, n)) if rng.random() < 0.5 else rng.random((m, n))
    for j in range(2, n):
        if rng.random() < 0.5:
            A[:, j] = A[:, rng.integers(0, j)] + A[:, rng.integers(0, j)]
    return A, mixed_targets(rng, A, t)


@family
def opposite(rng, m, n, t):
    A = rng.standard_normal((m, n))
    half = n // 2
    A[:, half : 2 * half] = -A[:, :half] * rng.choice([1.0, 2.0, 3.3], half)
    return A, mixed_targets(rng, A, t)


@family
def nearly_opposite(rng, m, n, t):
    """Pairs of atoms at an angle of pi less 1e-4 to 1e-17."""
    A = np.eye(m, n) if rng.random() < 0.5 else rng.standard_normal((m, n))
    half = n // 2
    A[:, half : 2 * half] = -A[:, :half]
    angle = 10.0 ** rng.uniform(-17, -4)
    A[:, half:] += angle * rng.standard_normal((m, n - half)) * (rng.random((m, n - half)) < 0.7)
    B = mixed_targets(rng, A, t)
    return A, np.where(rng.random(t) < 0.3, np.eye(m)[:, rng.integers(0, m, t)], B)


@family
def nearly_opposite_rotated(rng, m, n, t):
    A, B = nearly_opposite(rng, m, n, t)
    Q = np.linalg.qr(rng.standard_normal((m, m)))[0]
    return Q @ A, B if rng.random() < 0.5 else Q @ B


@family
def nearly_dependent_with_signs(rng, m, n, t):
    """Return atoms of which one is all but the negative of a combination of the others."""
    A = rng.standard_normal((m, n))
    A[:, -1] = -A[:, :-1] @ rng.random(n - 1)
    A[:, -1] += 10.0 ** rng.uniform(-17, -4) * rng.standard_normal(m)
    return A, mixed_targets(rng, A, t)


# Scales


@family
def scaled_rows_and_columns(rng, m, n, t):
    A = rng.standard_normal((m, n)) if rng.random() < 0.5 else rng.random((m, n))
    rows, columns = 10.0 ** rng.uniform(-8, 8, m), 10.0 ** rng.uniform(-12, 12, n)
    A = A * columns if rng.random() < 0.3 else rows[:, None] * A * columns
    return A, mixed_targets(rng, A, t)


@family
def units(rng, m, n, t):
    A = rng.standard_normal((m, n)) if rng.random() < 0.5 else rng.random((m, n))
    B = mixed_targets(rng, A, t)
    with np.errstate(over="ignore"):
        return _finite(A * 10.0 ** rng.uniform(-300, 300)), _finite(
            B * 10.0 ** rng.uniform(-300, 300)
        )


@family
def units_of_columns(rng, m, n, t):
    A = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-300, 300, n)
    return A, rng.standard_normal((m, t)) * 10.0 ** rng.uniform(-150, 150, t)


@family
def subnormal(rng, m, n, t):
    A = rng.integers(-9, 10, (m, n)) * 5e-324 * 2.0 ** rng.integers(0, 60)
    if rng.random() < 0.5:
        A = rng.standard_normal((m, n))
    if rng.random() < 0.5:
        return A, rng.standard_normal((m, t))
    return A, rng.integers(-9, 10, (m, t)) * 5e-324 * 2.0 ** rng.integers(0, 60)


@family
def range_within_columns(rng, m, n, t):
    reach = rng.choice([8.0, 20.0, 100.0])
    A = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-reach, reach, (m, n))
    return A, rng.standard_normal((m, t)) * 10.0 ** rng.uniform(-reach, reach, (m, t))


# Targets with a place in the cone


@family
def exact_fits(rng, m, n, t):
    """Integers, so that the residual of the best fit is exactly zero."""
    A = rng.integers(-4, 5, (m, n)).astype(float)
    return A, A @ (rng.integers(0, 5, (n, t)) * (rng.random((n, t)) < 0.6))


@family
def orthogonal_targets(rng, m, n, t):
    """Targets that are orthogonal to all atoms, exactly or up to rounding."""
    A = rng.standard_normal((m, n))
    if rng.random() < 0.5:
        A[m // 2 :] = 0.0
        B = rng.standard_normal((m, t))
        B[: m // 2] = 0.0
        return A, B
    A = A @ rng.standard_normal((n, n)) if m == 1 else np.outer(A[:, 0], rng.random(n))
    left = null_space(A.T)
    return A, left @ rng.standard_normal((left.shape[1], t))


@family
def zero_targets(rng, m, n, t):
    A = rng.standard_normal((m, n))
    return A, np.zeros((m, t)) * rng.choice([1.0, -1.0])


@family
def boundary_of_the_cone(rng, m, n, t):
    """Targets on a face of the cone or a hair beside it, with slopes that are all but zero."""
    A = rng.random((m, n))
    X = np.zeros((n, t))
    X[rng.integers(0, n, t), np.arange(t)] = 1.0
    return A, A @ X + 10.0 ** rng.uniform(-20, -8) * rng.standard_normal((m, t))


@family
def degenerate(rng, m, n, t):
    """Targets r + A x with <a, r> exactly or nearly zero for more atoms than have weight."""
    r = rng.integers(-2, 3, m).astype(float)
    A = rng.integers(-3, 4, (m, n)).astype(float)
    if r.any():  # r @ r A - r (r @ A) is orthogonal to r, in integers
        A = (r @ r) * A - np.outer(r, r @ A)
        A[:, rng.random(n) < 0.3] -= r[:, None]
    B = r[:, None] + A @ (rng.integers(0, 3, (n, t)) * (rng.random((n, t)) < 0.5))
    noise = rng.choice([0.0, 1e-16, 1e-12, 1e-8])
    return A, B + noise * rng.standard_normal((m, t))


# Counts and labels


@family
def zeros_in_targets(rng, m, n, t):
    """Return counts, some of which are zero although the atoms are not; some atoms are zero."""
    A = rng.random((m, n)) * (rng.random(n) < 0.9)
    B = rng.poisson(rng.choice([0.3, 2.0]), (m, t)).astype(float)
    return A, B * rng.choice([1.0, rng.random()])


@family
def zero_counts(rng, m, n, t):
    """Return counts, all zero for some targets, with atoms that are zero in some rows."""
    A = rng.random((m, n)) * (rng.random((m, n)) < 0.6)
    return A, rng.poisson(2.0, (m, t)) * (rng.random(t) < 0.5) * 1.0


@family
def ties(rng, m, n, t):
    """Return few values, equal rows and equal targets."""
    A = rng.integers(0, 3, (m, n)).astype(float)[rng.integers(0, m, m)]
    return A, rng.integers(0, 3, (m, t)).astype(float)


@family
def targets_in_other_units(rng, m, n, t):
    A = rng.random((m, n))
    B = rng.poisson(2.0, (m, t)) * rng.choice([1e-200, 1e-100, 1e-20, 1e20, 1e100])
    return A, B


@family
def separable(rng, m, n, t):
    """Return signs that a combination of the atoms has, so that labels can be told apart."""
    A = rng.standard_normal((m, n)) if rng.random() < 0.7 else rng.random((m, n)) - 0.3
    return A, np.sign(A @ rng.random((n, t)))


# Data and dictionaries


@family
def centred(rng, m, n, t):
    A = rng.random((m, n)) * 10.0 ** rng.uniform(0, 3)
    B = mixed_targets(rng, A, t)
    return A - A.mean(axis=0), B - B.mean(axis=0)


@cache
def _tables():
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

    loaders = (load_diabetes, load_wine, load_breast_cancer)
    return [load(return_X_y=True) for load in loaders]


@family
def real_data(rng, m, n, t):
    """Rows and columns of scikit-learn's tables: raw, scaled or centred."""
    table, y = _tables()[rng.integers(3)]
    rows = rng.permutation(len(y))[:m]
    A = table[np.ix_(rows, rng.integers(0, table.shape[1], n))].astype(float)
    B = np.repeat(y[rows].astype(float)[:, None], t, axis=1)
    B[:, 1:] += rng.standard_normal((m, t))[:, 1:] * B.std()
    how = rng.integers(3)
    if how == 1:
        A = A / (np.linalg.norm(A, axis=0) + (A == 0).all(axis=0))
    elif how == 2:
        A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    return A, B


@family
def bumps(rng, m, n, t):
    """Return a smooth dictionary: Gaussian bumps, all but dependent."""
    width = 10.0 ** rng.uniform(-1.5, 0.5)
    at = np.linspace(0, 1, m)[:, None] - np.sort(rng.random(n))
    A = np.exp(-0.5 * (at / width) ** 2)
    return A, mixed_targets(rng, A, t)


@family
def hilbert(rng, m, n, t):
    A = 1.0 / (np.arange(m)[:, None] + np.arange(n) + 1.0)
    A = A * rng.choice([-1.0, 1.0], n) if rng.random() < 0.5 else A
    return A, mixed_targets(rng, A, t)


@family
def vandermonde(rng, m, n, t):
    nodes = np.sort(rng.uniform(-1 if rng.random() < 0.5 else 0, 1, m))
    A = nodes[:, None] ** np.minimum(np.arange(n), 30)
    return A, mixed_targets(rng, A, t)


def _finite(array):
    return np.clip(array, -1e307, 1e307)
