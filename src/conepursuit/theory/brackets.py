"""Bounds on widths for sets that are too large to be enumerated."""

from __future__ import annotations

from itertools import combinations, islice
from math import comb, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from conepursuit.arrays import Array, Vector
from conepursuit.theory.faces import APART
from conepursuit.theory.sets import as_points
from conepursuit.theory.widths import hull_distance

MOST_BASES = 200_000
"""The most bases that are tried for a lower bound on the cone width; with more the bound is 0."""

SINGULAR_ROUNDING = 1e-13
"""How far a singular value of points within the unit ball may be off.

One that is at most this counts as zero, and lower bounds are reduced by it.
"""


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
    *Lower.* Every feasible r is B b with B linearly independent atoms and b >= 0 off the active
    set S; so
    ``||r||^2 = <r, B b> <= max(sum b+, sum b-) * w(r)``, w the width along r, and w(r) / ||r|| is
    at least sigma_min(B) / sqrt(rank). For linearly independent atoms that is one singular value;
    otherwise all bases are tried if there are at most 200,000, and beyond that the bound is 0. It
    is exact for orthonormal atoms.

    *Upper.* Any S and any feasible r bound the width from above. The convex function ||r|| is
    maximised over the r with w(r) <= 1 by linear programmes, each of which maximises the inner
    product with the last r, from random starts. Each takes a few HiGHS runs with n + d variables.
    """
    points = as_points(A)
    atoms, rng = points.rows[1:].T, np.random.default_rng(random_state)
    _, values, basis = np.linalg.svd(points.rows, full_matrices=False)
    basis = basis[values > SINGULAR_ROUNDING]
    rank, n = len(basis), atoms.shape[1]
    atoms, upper = basis @ atoms, 1.0
    for attempt in range(tries):
        size = int(rng.integers(0, min(rank, n) + 1)) if attempt else 0
        active = rng.permutation(n)[:size]
        upper = min(upper, _narrow(atoms, active, rng.standard_normal(rank)))
    lower = min(_least_basis(atoms), upper)
    return Bracket(lower * points.scale, upper * points.scale)


def _narrow(atoms: Array, active: Array, r: Vector) -> float:
    """Return the least w(r) / ||r|| met by successive linear programmes, for one active set S."""
    d, n = atoms.shape
    free = np.isin(np.arange(n), active)
    # The variables are r = A b, b, p and q: <s, r> <= p and -<v, r> <= q with p + q <= 1.
    narrow = sparse.block_array(
        [
            [atoms.T, None, np.full((n, 1), -1.0), None],
            [-atoms[:, active].T, None, None, np.full((len(active), 1), -1.0)],
            [None, sparse.csr_array((1, n)), np.ones((1, 1)), np.ones((1, 1))],
        ],
        format="csr",
    )
    made = sparse.block_array([[sparse.eye_array(d), -atoms, sparse.csr_array((d, 2))]])
    bounds = [(None, None)] * d + [(None if f else 0.0, None) for f in free] + [(0.0, None)] * 2
    programme = {
        "A_ub": narrow,
        "b_ub": np.append(np.zeros(n + len(active)), 1.0),
        "A_eq": made.tocsr(),
        "b_eq": np.zeros(d),
        "bounds": bounds,
        "method": "highs",
    }
    best = 1.0
    for _ in range(50):
        answer = linprog(np.concatenate([-r, np.zeros(n + 2)]), **programme)
        if not answer.success:
            break
        weights = answer.x[d : d + n]
        r = atoms @ np.where(free, weights, np.maximum(weights, 0.0))
        heights, length = r @ atoms, float(np.linalg.norm(r))
        if length <= APART:
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
        least = min(least, float(values[values > SINGULAR_ROUNDING].min(initial=1.0)))
    # Between SINGULAR_ROUNDING and APART it is open whether atoms are dependent.
    return (least - SINGULAR_ROUNDING) / sqrt(rank) if least >= APART else 0.0


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
    *Lower.* Let u be a point of a face and w one of the hull of the atoms off that face. For
    linearly independent atoms ``u - w = P b`` with the n + 1 points P, the sum of b zero, and
    ||b|| >= 2 / sqrt(n + 1): the distance is at least that times the least singular value of P on
    vectors of sum zero. Otherwise the bound is 0.

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
        if distance >= APART:  # otherwise the point may be no vertex
            upper = min(upper, distance)
    lower = 0.0
    if rows.shape[1] >= n:
        values = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
        least = float(values[n - 1])
        lower = (least - SINGULAR_ROUNDING) * 2 / sqrt(n + 1) if least >= APART else 0.0
    return Bracket(min(lower, upper) * points.scale, upper * points.scale)
