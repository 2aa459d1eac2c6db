"""Bounds on widths for sets that are too large to be enumerated."""

from __future__ import annotations

from itertools import combinations, islice
from math import comb, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from conepursuit.arrays import Array, Vector
from conepursuit.theory.faces import FLAT, span
from conepursuit.theory.sets import as_points
from conepursuit.theory.widths import hull_distance

MOST_BASES = 200_000
"""Bases whose least singular values are computed for a lower bound."""

ROUNDING = 1e-14
"""What a singular value of points within the unit ball may be off by."""


class Bracket(NamedTuple):
    """Bounds on a width: lower <= width <= upper."""

    lower: float
    upper: float


def cone_width_bounds(A: Any, *, tries: int = 50, random_state: int = 0) -> Bracket:
    """Return bounds on the cone width, at any size.

    Parameters
    ----------
    A : array_like of shape (d, n), or a finite atom set
        One atom per column; the origin is implied.
    tries : int
        Local searches for the upper bound.
    random_state : int
        Seed of their starts.

    Returns
    -------
    Bracket
        ``(lower, upper)``. Where the origin is in the relative interior of the hull these are
        bounds on the minimal directional width too; `upper` always bounds the pyramidal width.

    Notes
    -----
    *Lower.* Every feasible r is B b with B linearly independent atoms and b >= 0 off S; so
    ``||r||^2 = <r, B b> <= max(sum b+, sum b-) * w(r)``, w the width along r, and w(r) / ||r|| is
    at least sigma_min(B) / sqrt(rank). For linearly independent atoms that is one singular value;
    otherwise all bases are tried if there are at most 200,000, and beyond that the bound is 0. It
    is exact for orthonormal atoms.

    *Upper.* Any S and any feasible r bound the width from above. The convex function ||r|| is
    maximised over the r with w(r) <= 1 by linear programmes, each of which maximises the inner
    product with the last r, from random starts. Each costs one HiGHS run with n variables.
    """
    points = as_points(A)
    atoms, rng = points.rows[1:].T, np.random.default_rng(random_state)
    basis = span(points.rows)
    rank, n = len(basis), atoms.shape[1]
    upper = 1.0
    for attempt in range(tries):
        size = int(rng.integers(0, min(rank, n) + 1)) if attempt else 0
        active = rng.permutation(n)[:size]
        start = basis.T @ rng.standard_normal(rank)
        upper = min(upper, _narrow(atoms, active, start))
    lower = min(_least_basis(basis @ atoms), upper)
    return Bracket(lower * points.scale, upper * points.scale)


def _narrow(atoms: Array, active: Array, r: Vector) -> float:
    """Return the least w(r) / ||r|| met by successive linear programmes, for one active set S."""
    n = atoms.shape[1]
    gram = atoms.T @ atoms
    free = np.isin(np.arange(n), active)
    bounds = [(None if f else 0.0, None) for f in free] + [(0.0, None)] * 2
    # <s, A b> <= p and -<v, A b> <= q with p + q <= 1: the width along r = A b is at most 1.
    rows = np.block(
        [
            [gram, np.full((n, 1), -1.0), np.zeros((n, 1))],
            [-gram[active], np.zeros((len(active), 1)), np.full((len(active), 1), -1.0)],
            [np.zeros((1, n)), np.ones((1, 2))],
        ]
    )
    right = np.append(np.zeros(n + len(active)), 1.0)
    best = 1.0
    for _ in range(50):
        cost = np.append(-(r @ atoms), [0.0, 0.0])
        answer = linprog(cost, A_ub=rows, b_ub=right, bounds=bounds, method="highs")
        if not answer.success:
            break
        weights = np.where(free, answer.x[:n], np.maximum(answer.x[:n], 0.0))
        r = atoms @ weights
        heights, length = r @ atoms, float(np.linalg.norm(r))
        if length <= FLAT:
            break
        width = max(heights.max(), 0.0) - min(heights[active].min(initial=0.0), 0.0)
        if width / length >= best * (1 - 1e-9):
            break
        best = float(width) / length
    return best


def _least_basis(atoms: Array) -> float:
    """Return min sigma_min(B) / sqrt(rank) over the bases B among the columns, 0 if too many."""
    rank, n = atoms.shape
    if comb(n, rank) > MOST_BASES:
        return 0.0
    least, subsets = 1.0, combinations(range(n), rank)
    while chunk := list(islice(subsets, 5000)):
        values = np.linalg.svd(atoms[:, chunk].transpose(1, 0, 2), compute_uv=False)[:, -1]
        least = min(least, float(values[values > FLAT].min(initial=1.0)))
    return max(least - ROUNDING, 0.0) / sqrt(rank)


def pyramidal_width_bounds(A: Any, *, tries: int = 50, random_state: int = 0) -> Bracket:
    """Return bounds on the pyramidal width, at any size.

    Parameters
    ----------
    A, tries, random_state
        As in `cone_width_bounds`.

    Returns
    -------
    Bracket
        ``(lower, upper)``.

    Notes
    -----
    *Lower.* For linearly independent atoms, points u of a face and w of the others' hull have
    ``u - w = P b`` with the n + 1 points P, the sum of b zero, and ||b|| >= 2 / sqrt(n + 1): the
    distance is at least that times the least singular value of P on vectors of sum zero. Otherwise
    the bound is 0.

    *Upper.* The cone width is never smaller, and neither is the distance of a vertex from the hull
    of the other atoms.
    """
    points = as_points(A)
    rows = points.rows
    n = len(rows) - 1
    upper = cone_width_bounds(A, tries=tries, random_state=random_state).upper / points.scale
    whole = frozenset(range(n + 1))
    for i in whole:
        distance = hull_distance(rows, frozenset({i}), whole - {i})[0]
        if distance > FLAT:  # otherwise the point is no vertex
            upper = min(upper, distance)
    lower = 0.0
    if len(span(rows)) == n:
        centred = rows.T - rows.mean(axis=0)[:, None]
        values = np.linalg.svd(centred, compute_uv=False)
        lower = max(float(values[n - 1]) - ROUNDING, 0.0) * 2 / sqrt(n + 1)
    return Bracket(min(lower, upper) * points.scale, upper * points.scale)
