"""Widths of atom sets, exact for small ones.

The cone width of [1] can be read in two ways. The reading of the proofs puts the origin into every
active set; the literal one does not, and is the pyramidal width (B2 of docs/errata.md).

References
----------
[1] F. Locatello, M. Tschannen, G. Rätsch, M. Jaggi. Greedy Algorithms for Cone Constrained
Optimization with Convergence Guarantees. NIPS 2017.
[2] S. Lacoste-Julien, M. Jaggi. On the Global Linear Convergence of Frank-Wolfe Optimization
Variants. NIPS 2015.
[3] J. Peña, D. Rodríguez. Polytope Conditioning and Linear Convergence of the Frank-Wolfe
Algorithm. Mathematics of Operations Research 44, 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.least_squares.api import nnls
from conepursuit.theory.faces import SAME, Lattice, charge, enumerable, facets, positive, span
from conepursuit.theory.sets import Points, as_direction, as_points, as_vector

INSIDE = 1e-9
"""A point x counts as inside a hull if it is outside by at most this share of ||(x, 1)||."""


class Width(float):
    """A width, a float that says where it is attained.

    Attributes
    ----------
    face : tuple of int
        The columns on the face K; -1 stands for the origin, which need not be a column.
    active : tuple of int
        The columns in the active set S.
    direction : array of shape (d,)
        The unit vector r.
    """

    face: tuple[int, ...]
    active: tuple[int, ...]
    direction: Vector

    @classmethod
    def attained(
        cls, value: float, points: Points, face: Any, active: Any, direction: Vector
    ) -> Width:
        """Return a width of scaled points in the user's units.

        If rounding leaves open whether it is zero, raise a ValueError.
        """
        positive(np.array([value]))
        width = cls(value * points.scale)
        width.face, width.active = points.named(face), points.named(active)
        width.direction = direction
        return width


def directional_width(A: Any, r: Any) -> float:
    """Return dirW(A, r), the largest <r, s - v> / ||r|| over s, v in A u {0}.

    Parameters
    ----------
    A : array_like of shape (d, n), or a finite atom set
        One atom per column; the origin is implied.
    r : array_like of shape (d,)
        The direction.
    """
    points = as_points(A)
    return float(np.ptp(points.rows @ as_direction(r, points))) * points.scale


def pyramidal_directional_width(A: Any, r: Any, x: Any) -> float:
    """Return PdirW(A, r, x): the least dirW(S u {s}, r) over the S that x can be made of.

    S ranges over the sets of which x is a proper convex combination, and s is the atom of largest
    <r, s> in A u {0}.

    Parameters
    ----------
    A : array_like of shape (d, n), or a finite atom set
        One atom per column; the origin is implied.
    r : array_like of shape (d,)
        The direction.
    x : array_like of shape (d,)
        A point of conv(A u {0}).

    Notes
    -----
    Of S only the lowest atom along r matters. So the width is max <r, s> - tau, with the largest
    tau for which x lies in the hull of the atoms with <r, a> >= tau, found by bisection: log2(n)
    problems of non-negative least squares.
    """
    points = as_points(A)
    heights = points.rows @ as_direction(r, points)
    x = as_vector(x, points, "x") / points.scale
    levels = np.unique(heights)
    if not _in_hull(points.rows, x):
        raise ValueError(
            "x must lie in the hull of the atoms and the origin, which it does not; divide a "
            "point of the cone by its atomic_norm."
        )
    low, high = 0, len(levels) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if _in_hull(points.rows[heights >= levels[middle]], x):
            low = middle
        else:
            high = middle - 1
    return float(levels[-1] - levels[low]) * points.scale


def _in_hull(rows: Array, x: Vector) -> bool:
    """Return whether x is a convex combination of rows, by least squares."""
    system = np.vstack([rows.T, np.ones(len(rows))])
    target = np.append(x, 1.0)
    return bool(nnls(system, target).rnorm <= INSIDE * np.linalg.norm(target))


def pyramidal_width(A: Any) -> Width:
    """Return PWidth(A), the constant of the rates of Frank-Wolfe on conv(A u {0}) [2].

    Parameters
    ----------
    A : array_like of shape (d, n), or a finite atom set
        One atom per column; the origin is implied.

    Returns
    -------
    Width
        `face` is the face F of the Notes, `active` the atoms off F whose hull holds the point
        nearest to F.

    Notes
    -----
    It equals the facial distance of [3], the least distance between a proper face F and the hull
    of the atoms off F, computed as one problem of non-negative least squares per face: 25 ms for
    12 atoms in dimension 4. Raises `TooLargeError` where the hull may have more than 1e6 facets;
    see `pyramidal_width_bounds`.
    """
    points = enumerable(A)
    lattice = Lattice(points.rows, cone=False)
    whole, best, place = lattice.faces[-1], inf, None
    for face in lattice.faces[:-1]:
        distance, way, nearest = hull_distance(points.rows, face, whole - face)
        if distance < best:
            best, place = distance, (face, nearest, way / distance)
    assert place is not None  # the origin and another atom: there are two vertices
    return Width.attained(best, points, *place)


def hull_distance(
    rows: Array, first: frozenset[int], second: frozenset[int]
) -> tuple[float, Vector, set[int]]:
    """Return the distance of the hulls of two sets of rows, and where it is attained.

    Returns
    -------
    distance : float
        The distance.
    way : array
        The vector from the nearest point of the second hull to that of the first.
    nearest : set of int
        The rows that the nearest point of the second hull is made of.

    Notes
    -----
    The distance is the least ||M p|| over p >= 0 of sum 1, M the differences of all pairs of rows.
    Such a p, up to a factor, minimises ||M p||^2 + (sum(p) - 1)^2 over p >= 0: for p of sum 1 the
    best factor is 1 / (1 + ||M p||^2), which leaves an increasing function of ||M p||.
    """
    pairs = [(i, j) for i in first for j in second]
    ends, feet = (list(side) for side in zip(*pairs, strict=True))
    differences = (rows[ends] - rows[feet]).T
    target = np.append(np.zeros(rows.shape[1]), 1.0)
    unit = 1.0
    for _ in range(2):  # the second time in units of the distance, so that it is well conditioned
        p = nnls(np.vstack([differences / unit, np.ones(len(pairs))]), target).x
        way = differences @ (p / p.sum())
        unit = max(float(np.linalg.norm(way)), SAME)
    return float(np.linalg.norm(way)), way, {feet[i] for i in np.flatnonzero(p)}


def minimal_directional_width(A: Any) -> Width:
    """Return mDW(A), the least over directions r in lin(A) of max_z <r, z> / ||r||.

    Parameters
    ----------
    A : array_like of shape (d, n), or a finite atom set
        One atom per column; the origin is implied.

    Notes
    -----
    It is the distance of the origin from the boundary of conv(A u {0}), one convex hull: 0 unless
    the origin is in the relative interior. Raises `TooLargeError` where the hull may have more
    than 1e6 facets.
    """
    points = enumerable(A)
    charge(len(points.rows), len(span(points.rows)))
    normals, offsets = facets(points.rows)
    nearest = int(offsets.argmin())
    value = float(offsets[nearest]) if positive(offsets).all() else 0.0
    return Width.attained(value, points, (), (), normals[nearest])


def cone_width(A: Any, *, literal: bool = False) -> Width:
    """Return CWidth(A), the constant of the linear rates on cone(A).

    Parameters
    ----------
    A : array_like of shape (d, n), or a finite atom set
        One atom per column; the origin is implied.
    literal : bool
        Whether to read the definition of [1] to the letter. Then the width is the pyramidal one,
        and the lemma on the minimal directional width does not hold.

    Returns
    -------
    Width
        A float with `face`, `active` and `direction`, where it is attained.

    Notes
    -----
    In the reading that the proofs of [1] use,::

        CWidth(A) = min  max_{s in K} <r, s> - min_{v in S u {0}} <r, v>,    ||r|| = 1,

    over the g-faces K of the cone, the subsets S of K, which may be empty, and the directions r
    that are feasible from a point x in the relative interior of cone(S): r in cone(K) - cone(S).
    Literally, x is in conv(S) and r in cone(K - x), and the origin counts only if it is in S.

    Which r are feasible depends only on the smallest face F that holds S, and a larger S with the
    same F gives a larger width. A minimising r on the boundary of the feasible ones is feasible in
    a smaller K, so that r in the interior suffice: they are normals of facets of the hull of all
    s - v, and the width is the distance of such a facet from the origin. That is one convex hull
    for each K, F and minimal S: 20 to 200 ms for 12 atoms in dimension 4, more where many of them
    are on the boundary of the cone. Raises `TooLargeError` where one hull may have more than 1e6
    facets, or all of them 1e8; see `cone_width_bounds`.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit.theory import cone_width
    >>> round(cone_width(np.eye(4)), 12)
    0.5
    """
    points = enumerable(A)
    rows = points.rows
    lattice = Lattice(rows if literal else points.directions, cone=not literal)
    cases = list(_cases(lattice, literal, len(span(rows))))
    best, place = inf, None
    for face, active, inward in cases:
        heights = (rows[sorted(face)][:, None] - rows[sorted(active)]).reshape(-1, rows.shape[1])
        normals, offsets = facets(heights)
        feasible = (normals @ inward.T >= -SAME).all(axis=1)
        if feasible.any() and offsets[feasible].min() < best:
            nearest = np.flatnonzero(feasible)[offsets[feasible].argmin()]
            best, place = float(offsets[nearest]), (face, active, normals[nearest])
    assert place is not None
    return Width.attained(best, points, *place)


def _cases(
    lattice: Lattice, literal: bool, dimension: int
) -> Iterator[tuple[frozenset[int], frozenset[int], Array]]:
    """Yield K, S and the inner normals of the facets of K that hold S."""
    spent, origin = 0.0, frozenset() if literal else frozenset({0})
    spanning = {face: lattice.spanning(face) for face in lattice.faces}
    for face in lattice.faces:
        if 0 not in face or len(face) == 1:
            continue
        for smaller in (f for f in lattice.faces if f <= face):
            walls = [n for facet, n in lattice.facets[face].items() if smaller <= facet]
            inward = np.reshape(walls, (len(walls), lattice.rows.shape[1]))
            for active in spanning[smaller]:
                spent = charge(len(face) * len(active | origin), dimension, spent)
                yield face, active | origin, inward
