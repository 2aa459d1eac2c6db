"""What a call mentions besides A and the targets: weights, penalties, points and numbers.

Each function takes a random generator, A and B, and returns A, B and a dict of the other data.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import optimize

import conepursuit
from conepursuit import AMP, FCMP, NNMP, PWMP
from exact import Problem

ALGORITHMS = [FCMP(variant=0), FCMP(variant=1), PWMP(), AMP(), NNMP()]
"""Those of `minimize`; the first three take hulls."""


def joined(*prepares):
    """Return the function that lets several functions, one after the other, add data."""

    def prepare(rng, A, B):
        data = {}
        for each in prepares:
            A, B, more = each(rng, A, B)
            data |= more
        return A, B, data

    return prepare


def plain(rng, A, B):
    return A, B, {}


def with_limit(rng, A, B):
    return A, B, {"k": int(rng.integers(1, A.shape[1] + 1))}


def row_weights(rng, shape):
    """Return weights of rows: ordinary, powers of four, some zero, or far apart."""
    how = rng.integers(4)
    if how == 0:
        return rng.random(shape)
    if how == 1:
        return 4.0 ** rng.integers(-5, 6, shape)
    if how == 2:
        return rng.integers(0, 3, shape).astype(float)
    return 10.0 ** rng.uniform(-10, 10, shape)


def with_weights(rng, A, B):
    w = row_weights(rng, len(A))
    return A, B, {"w": w if w.any() else w + 1.0}


def with_own_weights(rng, A, B):
    W = row_weights(rng, B.shape)
    W[0] += ~W.any(axis=0)
    return A, B, {"W": W}


def with_mask(rng, A, B):
    w = (rng.random(len(A)) < 0.7).astype(float)
    w[rng.integers(len(A))] = 1.0
    return A, B, {"w": w}


def with_start(rng, A, B):
    return A, B, {"X": feasible(rng, A, B)}


def with_answers(rng, A, B):
    """Give the weights that nnls returns."""
    return A, B, {"X": answers(A, B)}


def answers(A, B):
    """Return the weights of nnls, 0 where they overflow or where it fails, seen elsewhere."""
    try:
        with warnings.catch_warnings(action="ignore"):
            found = conepursuit.nnls(A, B).x
    except Exception:
        found = np.zeros((A.shape[1], B.shape[1]))
    return np.nan_to_num(found, posinf=0.0)


def with_answers_of_scipy(rng, A, B):
    """Give the weights that SciPy's solver returns, or random ones where it gives up."""
    X = feasible(rng, A, B)
    for i, b in enumerate(B.T):
        try:
            found = optimize.nnls(A, b)[0]
        except (RuntimeError, ValueError, np.linalg.LinAlgError):
            continue
        X[:, i] = found if np.isfinite(found).all() else X[:, i]
    return A, B, {"X": np.maximum(X, 0.0)}


def feasible(rng, A, B):
    """Return weights that are not negative, with fits of the size of the targets."""
    X = rng.random((A.shape[1], B.shape[1])) * (rng.random((A.shape[1], 1)) < 0.6)
    with np.errstate(all="ignore"):
        size = np.abs(B).max(axis=0, initial=0.0) / np.abs(A).max(axis=0, initial=0.0)[:, None]
    return X * np.where(np.isfinite(size) & (size < 1e300), size, 1.0)


def as_integers(rng, A, B):
    """Round the data to integers whose Gram matrix is exact."""
    with np.errstate(all="ignore"):
        A, B = (np.nan_to_num(np.round(1000 * (M / np.abs(M).max()))) for M in (A, B))
    return A, B, {}


def as_float32(rng, A, B):
    with np.errstate(all="ignore"):
        return A.astype(np.float32).clip(-3e38, 3e38).astype(np.float64), B, {}


def as_sparse(rng, A, B):
    """Spread the rows over so many that a sparse matrix is kept as one."""
    rows = np.sort(rng.permutation(1_000_000 // A.shape[1] + 2)[: len(A)])
    tall, targets = np.zeros((1_000_000 // A.shape[1] + 2, A.shape[1])), None
    tall[rows] = A
    targets = np.zeros((len(tall), B.shape[1]))
    targets[rows] = B
    return tall, targets, {}


def with_penalty(rng, A, B):
    """Give a penalty from far below the one at which nothing is fitted to a little above."""
    with np.errstate(all="ignore"):
        most = float(np.abs(A.T @ B).max())
    most = most if 0 < most < 1e300 else 1.0
    return A, B, {"penalty": most * 10.0 ** rng.uniform(-6, 0.1)}


def with_radius(rng, A, B):
    """Give a radius of a hull that is of the size of the weights of a fit."""
    with np.errstate(over="ignore"):
        most = float(answers(A, B).sum(axis=0).max())
    most = most if 0 < most < 1e300 else 1.0
    return A, B, {"radius": most * float(rng.uniform(0.1, 1.5))}


def with_bound(rng, A, B):
    """Give a bound on the sum of the weights of a minimiser, which is known exactly."""
    problem = Problem(A, B)
    points = [problem.solution(i, problem.minimiser(i, ())) for i in range(B.shape[1])]
    with np.errstate(over="ignore"):
        most = float(np.sum(points, axis=1).max())
    if not most < 1e300:  # no float bounds it
        return A, B, {"radius": np.inf}
    return A, B, {"radius": most * float(rng.uniform(1.001, 3)) or 1.0}


def with_point_and_penalty(rng, A, B):
    A, B, data = with_penalty(rng, A, B)
    return A, B, {**data, "X": feasible(rng, A, B)}


def with_entry_mask(rng, A, B):
    """Give weights of entries that are one or zero, for a mask."""
    W = (rng.random(B.shape) < 0.7).astype(float)
    W[rng.integers(len(W)), :] = 1.0
    return A, B, {"W": W}


def with_steps(rng, A, B):
    """Give a limit on the steps, which ends most runs early."""
    return A, B, {"steps": int(rng.choice([1, 2, 3, 10, 1000], p=[0.2, 0.15, 0.1, 0.1, 0.45]))}


def with_how(rng, A, B):
    """Give an algorithm and a limit on its steps, which ends most runs early."""
    how = ALGORITHMS[rng.integers(len(ALGORITHMS))]
    return A, B, {"how": how, "steps": int(rng.choice([1, 2, 3, 10, 60]))}


def with_how_in_hulls(rng, A, B):
    """Give an algorithm that takes hulls, and a limit on its steps."""
    how = ALGORITHMS[rng.integers(3)]
    return A, B, {"how": how, "steps": int(rng.choice([1, 2, 3, 10, 60]))}


def with_points(call):
    """Return the function that gives points to audit for a loss, of which `call` is the text.

    They are random, those of least squares, those of `nnfit`, at the end of the domain, or zero.
    """

    def prepare(rng, A, B):
        X = feasible(rng, A, B)
        if not A.size or rng.random() < 0.3:
            return A, B, {"X": X}
        kinds = rng.integers(0, 5, B.shape[1])
        X[:, kinds == 1] = answers(A, B)[:, kinds == 1]
        if (kinds == 2).any():
            X[:, kinds == 2] = fits(call, A, B[:, kinds == 2])
        for i in np.flatnonzero(kinds == 3):  # some entries of A x are zero
            X[A[rng.integers(len(A))] != 0, i] = 0.0
        X[:, kinds == 4] = 0.0
        return A, B, {"X": X}

    return prepare


def fits(call, A, B):
    """Return the weights of nnfit, 0 where it fails, seen elsewhere."""
    from cases import SCOPE

    X = np.zeros((A.shape[1], B.shape[1]))
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            found = eval(f"nnfit({call}, A, max_iter=30)", {**SCOPE, "A": A, "B": B}).x
        X = np.where(np.isfinite(found).all(axis=0), np.maximum(found, 0.0), X)
    except Exception:
        pass
    return X


def within(points):
    """Return the function that gives a radius and points, scaled so that they are in the hull."""

    def prepare(rng, A, B):
        A, B, data = joined(with_radius, points)(rng, A, B)
        with np.errstate(all="ignore"):
            share = 0.999 * data["radius"] / data["X"].sum(axis=0)
        share = np.where(np.isfinite(share) & (share < 1), share, 1.0)
        return A, B, {**data, "X": data["X"] * share}

    return prepare


def with_sum(rng, A, B):
    """Give a sum of weights, of the size of that of a fit or of any."""
    with np.errstate(over="ignore"):
        most = float(answers(A, B).sum(axis=0).max())
    most = most if 1e-200 < most < 1e200 else 1.0
    far = rng.uniform(-0.5, 0.5) if rng.random() < 0.7 else rng.uniform(-6, 6)
    return A, B, {"s": float(rng.choice([1.0, most * 10.0**far]))}


def as_form(rng, A, B):
    """Return G = A'A and c = A'B as they are rounded, sometimes made a little less convex."""
    how = rng.integers(4)
    with np.errstate(all="ignore"):
        if how == 0:
            A, B, _ = as_integers(rng, A, B)
        elif how == 1:
            A, B = A.astype(np.float32), B.astype(np.float32)
        G, C = (A.T @ A).astype(np.float64), (A.T @ B).astype(np.float64)
        G, C = np.nan_to_num(0.5 * (G + G.T), posinf=0.0, neginf=0.0), np.nan_to_num(C)
        if how == 2:
            share = rng.choice([2.0**-52, 1e-15, 1e-8])
            G[np.diag_indices(len(G))] *= 1 - share * (rng.random(len(G)) < 0.6)
        if how == 3 and len(G) > 1:  # two atoms that are opposite, up to a few units
            G[:2, :2] = G[0, 0] * np.array([[1.0, -1.0], [-1.0, 1 - rng.integers(3) * 2.0**-52]])
            C[1] = -C[0] * (1 + rng.choice([0.0, 1e-7, 1e-3]) * rng.standard_normal(len(C.T)))
    return G, C, {}


def as_form_of_floats32(rng, A, B):
    """Return G = A'A and c = A'B as computed in float32."""
    with np.errstate(all="ignore"):
        A, B = A.astype(np.float32), B.astype(np.float32)
        G, C = A.T @ A, (A.T @ B).astype(np.float64)
        G = np.nan_to_num(G, posinf=0.0, neginf=0.0).astype(np.float64)
    return np.tril(G) + np.tril(G, -1).T, np.nan_to_num(C, posinf=0.0, neginf=0.0), {}


def priced(rng, A, B):
    """Give a penalty in the units of the mean loss, as estimators take it."""
    A, B, data = with_penalty(rng, A, B)
    return A, B, {"alpha": data["penalty"] / len(B)}
