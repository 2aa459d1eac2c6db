"""The faces of small polytopes and cones, by Qhull."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

from conepursuit.arrays import Array, Vector
from conepursuit.theory.sets import Points, as_points

SAME, APART = 1e-11, 1e-8
"""Distances within the unit ball of at most SAME are rounding, those of at least APART are real.

Between them neither is certain, and `positive` raises a ValueError.
"""

LARGEST, BUDGET = 1e6, 1e8
"""The most facets that one hull, and all hulls of a computation together, may possibly have.

That takes half a minute. Where there may be more, a TooLargeError is raised.
"""

MOST_FACES = 5000
"""The most faces of a set, and the most active sets on one of them; more are a TooLargeError."""


class TooLargeError(ValueError):
    """The set has too many atoms or dimensions to be enumerated."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"this set is too large to be enumerated: {reason}. Up to 60 atoms in dimension 4, "
            "10 in dimension 6, say, can be done; cone_width_bounds(A) and "
            "pyramidal_width_bounds(A) give bounds at any size."
        )


def charge(n_points: int, dimension: int, spent: float = 0.0) -> float:
    """Return `spent` plus the largest number of facets that a hull of `n_points` points can have.

    By McMullen's theorem that is the number of a cyclic polytope. Raises TooLargeError where it
    exceeds `LARGEST`, or the sum `BUDGET`.
    """
    half = dimension // 2
    most = comb(max(n_points - half, 0), half) + comb(max(n_points - half - 1, 0), half)
    spent += most
    if most > LARGEST or spent > BUDGET:
        raise TooLargeError(
            f"hulls such as one of {n_points} points in dimension {dimension} may have more than "
            f"{LARGEST:.0e} facets, or {BUDGET:.0e} in all"
        )
    return spent


def positive(distances: Array) -> Array:
    """Return which distances are not zero; raise ValueError where rounding leaves that open."""
    unsure = distances[(distances > SAME) & (distances < APART)]
    if len(unsure):
        raise ValueError(
            f"the set is too close to a degenerate one: {unsure[0]:.1g} of its radius cannot be "
            f"told from 0, {APART:g} could. Merge atoms that are nearly the same or dependent, and "
            "scale those that are much shorter than others."
        )
    apart: Array = distances >= APART
    return apart


def enumerable(A: Any) -> Points:
    """Read atoms; raise a ValueError if the shortest is too short to be told from the origin."""
    points = as_points(A)
    shortest = float(np.linalg.norm(points.rows[1:], axis=1).min())
    if shortest < APART:
        raise ValueError(
            f"the longest atom is {1 / shortest:.1g} times as long as the shortest, more than "
            f"{1 / APART:.0g}. Scale the atoms."
        )
    return points


def span(rows: Array) -> Array:
    """Return an orthonormal basis, as rows, of the span of points within the unit ball."""
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    kept: Array = basis[positive(values)]
    return kept


def facets(rows: Array) -> tuple[Array, Vector]:
    """Return the facets <n, x> <= b of a hull in its affine hull, with unit normals n.

    A facet that is not a simplex is returned as several, one for each simplex. A point has none.
    """
    start = rows[0]
    basis = span(rows - start)
    inside = (rows - start) @ basis.T
    if len(basis) == 0:
        return np.zeros((0, rows.shape[1])), np.zeros(0)
    if len(basis) == 1:
        normals, offsets = np.array([[1.0], [-1.0]]), np.array([inside.max(), -inside.min()])
    else:
        equations = ConvexHull(inside).equations
        normals, offsets = equations[:, :-1], -equations[:, -1]
    outside = normals @ basis
    return outside, offsets + outside @ start


class Lattice:
    """The faces of conv(points), or of cone(points), each as the set of the points on it.

    Parameters
    ----------
    rows : array of shape (n, d)
        The points, the origin first where `cone` is True.
    cone : bool
        Whether only faces that contain the origin count: those of the cone.

    Attributes
    ----------
    faces : list of frozenset
        All of them but the empty one, the smallest first.
    facets : dict
        For each face its facets, each with its inner normal. The facet of a vertex is the empty
        face; the smallest face of a cone, its lineality space, has none.
    """

    def __init__(self, rows: Array, *, cone: bool) -> None:
        charge(len(rows), len(span(rows)))
        self.rows, self._cone = rows, cone
        whole = frozenset(range(len(rows)))
        found = {whole}
        for facet in self._facets_of(whole):
            found |= {facet & face for face in found}
            if len(found) > MOST_FACES:
                raise TooLargeError(f"it has more than {MOST_FACES} faces")
        self.faces = sorted((f for f in found if f), key=lambda face: (len(face), sorted(face)))
        self.facets = {face: self._facets_of(face) for face in self.faces}

    def _facets_of(self, face: frozenset[int]) -> dict[frozenset[int], Vector]:
        members = sorted(face)
        normals, offsets = facets(self.rows[members])
        if not len(normals):
            return {} if self._cone else {frozenset(): np.zeros(self.rows.shape[1])}
        near = ~positive(offsets[:, None] - normals @ self.rows[members].T)
        found: dict[frozenset[int], Vector] = {}
        for normal, touching in zip(normals, near, strict=True):
            facet = frozenset(members[i] for i in np.flatnonzero(touching))
            if not self._cone or 0 in facet:
                found.setdefault(facet, -normal)
        return found

    def spanning(self, face: frozenset[int]) -> list[frozenset[int]]:
        """Return the smallest subsets of a face that lie in no smaller face.

        They are the smallest active sets S with a point in the relative interior of the face.
        """
        return hitting_sets([face - facet for facet in self.facets[face]])


def hitting_sets(sets: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Return the minimal sets that meet all given ones, by Berge's algorithm."""
    found = [frozenset[int]()]
    for one in sets:
        kept = [h for h in found if h & one]
        grown = {h | {i} for h in found if not h & one for i in one}
        found = kept + [g for g in grown if not any(h <= g for h in kept)]
        if len(found) > MOST_FACES:
            raise TooLargeError(f"a face has more than {MOST_FACES} active sets")
    return sorted(found, key=sorted)


def generating_faces(A: Any) -> list[tuple[int, ...]]:
    """Return the g-faces of cone(A): its faces, cut with conv(A u {0}).

    Parameters
    ----------
    A : array_like of shape (d, n), or a finite atom set
        One atom per column; the origin is implied.

    Returns
    -------
    list of tuple of int
        For each face the columns on it, the smallest face first and the whole set last. The
        origin is on all of them and not listed: () is the face {0} of a pointed cone.

    Notes
    -----
    They are the faces of conv(A u {0}) that contain the origin. One convex hull per face, at most
    2^n of them.

    Examples
    --------
    >>> from conepursuit.theory import generating_faces
    >>> generating_faces([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    [(), (0,), (1,), (0, 1, 2)]
    """
    points = as_points(A)
    lattice = Lattice(points.directions, cone=True)
    return [points.named(face - {0}) for face in lattice.faces]
