"""Finite atom sets as points, their size, and the gauge of their hull."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from conepursuit.arrays import Array, Vector, as_real_array
from conepursuit.atoms import ApproximateOracle, AtomSet, Dictionary, Symmetric, UnitVectors
from conepursuit.atoms.dictionary import gauge_programme
from conepursuit.least_squares.api import nnls
from conepursuit.linear import as_matrix, dense

ORIGIN = -1
"""The index that stands for the origin among the indices of columns."""

PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""Options of HiGHS: tighter tolerances than its defaults of 1e-7."""

INNER_ROUNDING = 4e-15
"""An inner product of up to this share of the norms is rounding and counts as not positive."""

NEAR = 2e-7
"""A point whose distance from the cone is at most this share of its norm may count as inside.

One that is farther away has an infinite gauge.
"""


@dataclass(frozen=True)
class Points:
    """The origin and the atoms that are not the origin, one row each, the longest of norm 1.

    Attributes
    ----------
    rows : array of shape (n + 1, d)
        The origin first.
    scale : float
        What the rows were divided by, the radius.
    columns : array of int
        Which column of the user's matrix a row was; -1 for the origin.
    """

    rows: Array
    scale: float
    columns: Array

    @property
    def directions(self) -> Array:
        """The rows with every atom of norm 1: the same cone."""
        lengths = np.linalg.norm(self.rows, axis=1, keepdims=True)
        lengths[0] = 1.0
        directions: Array = self.rows / lengths
        return directions

    def named(self, rows: Any) -> tuple[int, ...]:
        """Return rows as columns of the user's matrix."""
        return tuple(int(self.columns[i]) for i in sorted(rows))


def as_points(A: Any) -> Points:
    """Read atoms, given as columns or as a finite atom set."""
    matrix = atoms_as_columns(A)
    largest = float(np.abs(matrix).max(initial=0.0))
    used = np.flatnonzero(matrix.any(axis=0))
    if not largest:
        raise ValueError(
            f"a set needs an atom besides the origin; got {matrix.shape[1]} columns, all zero. "
            "Give the atoms as the columns of A."
        )
    rows = np.vstack([np.zeros(matrix.shape[0]), matrix[:, used].T / largest])
    longest = float(np.linalg.norm(rows, axis=1).max())
    return Points(rows / longest, largest * longest, np.append(ORIGIN, used))


def atoms_as_columns(A: Any) -> Array:
    """Return the atoms as the columns of an array."""
    if isinstance(A, ApproximateOracle):
        return A.atoms.dense
    if isinstance(A, Dictionary):
        return A.dense
    if isinstance(A, UnitVectors):
        return np.eye(A.n_atoms)
    if isinstance(A, Symmetric):
        half = atoms_as_columns(A.atoms)
        return np.hstack([half, -half])
    if isinstance(A, AtomSet):
        raise ValueError(
            f"this needs a finite set, as a matrix of columns or a Dictionary; got {A!r}."
        )
    return dense(as_matrix(A, "A")).astype(np.float64, copy=False)


def as_vector(given: Any, points: Points, name: str) -> Vector:
    """Read a vector of the length of an atom."""
    vector = as_real_array(given, name)
    if vector.shape != points.rows.shape[1:]:
        raise ValueError(
            f"{name} must have the shape of an atom, {points.rows.shape[1:]}; got {vector.shape}."
        )
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} must be finite; got NaN or infinite entries.")
    return vector.astype(np.float64, copy=False)


def as_direction(given: Any, points: Points) -> Vector:
    """Read a direction and make it a unit vector."""
    r = as_vector(given, points, "r")
    largest = float(np.abs(r).max())
    if not largest:
        raise ValueError("a width needs a direction; got r = 0.")
    unit: Vector = r / largest
    return unit / np.linalg.norm(unit)


def radius(A: Any) -> float:
    """Return the largest norm of an atom."""
    return as_points(A).scale


def diameter(A: Any) -> float:
    """Return the largest distance of two atoms, one of which may be the origin."""
    points = as_points(A)
    return float(pdist(points.rows).max()) * points.scale


class AtomicNorm(float):
    """The gauge of a point, a float that carries its proof.

    Attributes
    ----------
    weights : array of shape (n,) or None
        w >= 0 with A w = x and sum(w) equal to the gauge, which is therefore no larger. None where
        the gauge is infinite.
    dual : array of shape (d,)
        u with <u, a> <= 1 for every atom and <u, x> equal to the gauge, which is therefore no
        smaller: <u, x> = <u, A w> <= sum(w) for all w >= 0 with A w = x. Where the gauge is
        infinite, u separates x from the cone: <u, a> <= 0 for every atom and <u, x> > 0.
    """

    weights: Vector | None
    dual: Vector


def atomic_norm(A: Any, x: Any) -> AtomicNorm:
    """Return ||x||_A = min{c >= 0 : x in c conv(A u {0})}, with its proof.

    Parameters
    ----------
    A : array_like of shape (d, n), or a finite atom set
        One atom per column; the origin is implied.
    x : array_like of shape (d,)
        The point.

    Returns
    -------
    AtomicNorm
        A float, 0 at x = 0 and inf outside the cone, with `weights` and `dual`.

    Notes
    -----
    The linear programme min sum(w), A w = x, w >= 0, solved by HiGHS at any size. It is a norm
    only where conv(A) is symmetric. A point outside the cone by no more than 2e-7 of its norm may
    count as inside. Raises ArithmeticError where atoms are so nearly dependent that neither a
    gauge nor a separation can be proved.

    Examples
    --------
    >>> from conepursuit.theory import atomic_norm
    >>> value = atomic_norm([[2.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    >>> value, value.weights, value.dual
    (1.5, array([0.5, 1. ]), array([0.5, 1. ]))
    """
    columns = atoms_as_columns(A)
    points = as_points(columns)
    x = as_vector(x, points, "x")
    size = float(np.abs(x).max())
    if not size:
        return _proved(0.0, np.zeros(columns.shape[1]), np.zeros(len(x)))
    matrix, target = points.rows[1:].T, x / size
    solved = gauge_programme(matrix, target, PRECISE)
    if solved is None:
        directions = points.directions[1:].T
        fit = nnls(directions, target)
        away = target - directions @ fit.x
        length = float(np.linalg.norm(target))
        below = float((away @ directions).max()) <= INNER_ROUNDING * length
        # <u, x> = ||u||^2 must exceed what the rounding of <u, a> may add up to for x.
        if below and np.linalg.norm(away) > NEAR * length:
            return _proved(inf, None, away)
        solved = gauge_programme(matrix, target - away, PRECISE)
    if solved is None or not _holds(matrix, target, *solved):
        raise ArithmeticError(
            "the linear programme of the gauge could not be solved to 1e-6: some atoms are nearly "
            "dependent. Merge them."
        )
    weights = np.zeros(columns.shape[1])
    weights[points.columns[1:]] = solved[0] * (size / points.scale)
    dual = solved[1] / max(1.0, float((solved[1] @ matrix).max()))
    return _proved(float(weights.sum()), weights, dual / points.scale)


def _holds(matrix: Array, x: Vector, weights: Vector, dual: Vector) -> bool:
    """Return whether weights and dual prove the gauge, up to small tolerances.

    The weights must make x, the dual be at most 1 on every atom, and both give the same gauge.
    """
    total = float(weights.sum())
    return (
        float(np.linalg.norm(matrix @ weights - x)) <= NEAR * float(np.linalg.norm(x))
        and float((dual @ matrix).max()) <= 1 + 1e-8
        and abs(float(dual @ x) - total) <= 1e-6 * total
    )


def _proved(value: float, weights: Vector | None, dual: Vector) -> AtomicNorm:
    proved = AtomicNorm(value)
    proved.weights, proved.dual = weights, dual
    return proved
