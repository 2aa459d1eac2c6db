"""Non-negative least squares of one target: an active set that admits blocks of atoms.

Atoms are rows of contiguous memory. Those that may have weight are called passive. Two ways to keep
the factor C of their Gram matrix share one loop: from inner products, which a Gram matrix holds or
which are computed when an atom enters; and from an orthonormal basis of the passive atoms, which is
as accurate as a QR factorisation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import (
    DESCENT_ROUNDINGS,
    EPS,
    ILL_CONDITIONED,
    LARGEST_SQUARE,
    MAX_ATOMS,
    MAX_STEPS,
    OPTIMAL,
    SMALLEST_SQUARE,
    STALLED,
)
from conepursuit.kernels.shared.rounding import expected_rounding
from conepursuit.kernels.shared.triangular import (
    append,
    backward_solve,
    complete,
    dot,
    remove,
    rotate,
    rotate_rows,
)

SHARE, GROWTH = 0.5, 0.25
"""Which atoms enter together.

Atoms enter with the steepest one if their slopes are above the share SHARE of its slope; others
wait. The number that may enter at once is doubled only up to the share GROWTH of the passive atoms.
"""

DEPENDENT = 100 * EPS
"""Sine of the angle between an atom and the span of the passive atoms, for an orthonormal basis.

Above this, the atom enters; otherwise it counts as a combination of the passive ones.
"""

EXHAUSTED = 2.0
"""A residual of at most this many times EPS ||b|| is rounding of b, and no further atom enters.

Slopes along a longer residual count.
"""

IDLE, REFUSED = 1, 2
"""Why an atom is blocked, as bits; see `Passive`."""

COHERENT = 0.8
"""Two atoms do not enter together if the cosine of their angle is above this.

One of them would probably leave the other without weight.
"""


class Passive(NamedTuple):
    """The passive atoms in the order of the factor, and what is kept about them.

    C is the factor of their Gram matrix, and y solves C y = A_P'b. The rows of Q are an orthonormal
    basis of them, or there are none if inner products are used; p is b minus its projection on that
    basis. `inside` marks the passive atoms. `blocked` marks those that may not enter: IDLE ones,
    which would get no weight, until x changes, and REFUSED ones, which depend on the passive atoms,
    until one of these leaves. `cosines` and `sines` are work space.
    """

    C: Array
    order: Array
    y: Vector
    Q: Array
    p: Vector
    inside: Array
    blocked: Array
    cosines: Vector
    sines: Vector


@njit(cache=True, nogil=True)
def drop(P: Passive, k: int, place: int, x: Vector) -> int:
    """Remove the passive atom at `place` of the order; return how many stay."""
    atom = P.order[place]
    x[atom] = 0.0
    P.inside[atom] = False
    remove(P.C, P.order, k, place, P.cosines, P.sines)
    rotate(P.y, k, place, P.cosines, P.sines)
    if len(P.Q):
        rotate_rows(P.Q, k, place, P.cosines, P.sines)
        for i in range(len(P.p)):
            P.p[i] += P.y[k - 1] * P.Q[k - 1, i]
    for j in range(len(P.blocked)):
        P.blocked[j] &= IDLE
    return k - 1


@njit(cache=True, nogil=True)
def append_orthogonal(P: Passive, k: int, column: Vector, atom: int) -> bool:
    """Orthogonalise an atom, twice, and add it to basis and factor; False if it is `DEPENDENT`."""
    q, row, m = P.Q[k], P.C[k], len(column)
    q[:] = column
    row[:k] = 0.0
    length, floor = 0.0, DEPENDENT * np.sqrt(dot(column, column, m))
    for _ in range(2):
        for i in range(k):
            overlap = dot(P.Q[i], q, m)
            row[i] += overlap
            for j in range(m):
                q[j] -= overlap * P.Q[i, j]
        length = np.sqrt(dot(q, q, m))
        if not length > floor:
            return False
    for j in range(m):
        q[j] /= length
    row[k] = 1.0 / length
    P.order[k] = atom
    return True


@njit(cache=True, nogil=True)
def admit(P: Passive, k: int, atom: int, atoms: Array, b: Vector, c: Vector, G: Array) -> bool:
    """Make an atom passive; if it depends on the passive ones, block it and return False."""
    column, m = atoms[atom], len(b)
    if k >= min(atoms.shape):  # more cannot be independent, though rounding may hide it
        admitted = False
    elif len(P.Q):
        admitted = append_orthogonal(P, k, column, atom)
    elif len(G):
        admitted = append(P.C, P.order, k, G[atom], atom, ILL_CONDITIONED)
    else:
        for i in range(k):
            P.C[k, i] = dot(atoms[P.order[i]], column, m)
        P.order[k] = atom
        admitted = complete(P.C, k, dot(column, column, m), ILL_CONDITIONED)
    if not admitted:
        P.blocked[atom] = REFUSED
        return False
    if len(P.Q):
        P.y[k] = dot(P.Q[k], P.p, m)
        for i in range(m):
            P.p[i] -= P.y[k] * P.Q[k, i]
    else:
        P.y[k] = (c[atom] - dot(P.C[k], P.y, k)) * P.C[k, k]
    P.inside[atom] = True
    return True


@njit(cache=True, nogil=True)
def residual(atoms: Array, b: Vector, x: Vector, order: Array, k: int, r: Vector) -> None:
    """Write b - A x as r; only the first k atoms in `order` have weight."""
    r[:] = b
    for i in range(k):
        weight, column = x[order[i]], atoms[order[i]]
        for j in range(len(b)):
            r[j] -= weight * column[j]


@njit(cache=True, nogil=True)
def admit_block(
    slopes: Vector,
    tolerance: float,
    room: int,
    P: Passive,
    k: int,
    atoms: Array,
    b: Vector,
    c: Vector,
    inverse_norms: Vector,
    G: Array,
) -> int:
    """Make the steepest atoms passive, at most `room` at once; return how many are passive.

    The first is the steepest of all. The others are steep enough relative to it (`SHARE`), and no
    two of them are `COHERENT`. Slopes of atoms that were tried are overwritten.
    """
    before, cut = k, tolerance
    while k - before < room:
        best, steepest = -1, cut
        for j in range(len(slopes)):
            if slopes[j] > steepest and not P.inside[j] and P.blocked[j] == 0:
                best, steepest = j, slopes[j]
        if best < 0:
            break
        slopes[best] = -np.inf
        coherent = False
        for i in range(before, k):
            other = P.order[i]
            product = G[other, best] if len(G) else dot(atoms[other], atoms[best], len(b))
            coherent |= product * inverse_norms[other] * inverse_norms[best] > COHERENT
        if coherent:
            continue
        if admit(P, k, best, atoms, b, c, G):
            k += 1
            cut = max(cut, SHARE * steepest)
        elif len(P.Q) == 0:  # too few digits are left in the Gram matrix for more atoms
            break
    return k


@njit(cache=True, nogil=True)
def project(P: Passive, k: int) -> float:
    """Make p orthogonal to the basis up to rounding of p, not only of b; return its norm."""
    m = len(P.p)
    for i in range(k):
        overlap = dot(P.Q[i], P.p, m)
        P.y[i] += overlap
        for j in range(m):
            P.p[j] -= overlap * P.Q[i, j]
    norm: float = np.sqrt(dot(P.p, P.p, m))
    return norm


@njit(cache=True, nogil=True)
def descend(
    P: Passive, k: int, settled: int, x: Vector, z: Vector, max_steps: int
) -> tuple[int, int]:
    """Minimise over the passive atoms; those whose weight reaches zero leave.

    Atoms that have just entered and would become negative leave before x moves, and are blocked
    until it does. If `settled` atoms are left by then, only those that were passive before are, and
    x is their minimiser already. z is work space.

    Returns
    -------
    int, int
        How many atoms stay, and how many solves it took.
    """
    steps = 0
    while k > 0 and steps < max_steps:
        steps += 1
        for i in range(k):
            z[i] = P.y[i]
        backward_solve(P.C, k, z)
        before = k
        for i in range(k - 1, -1, -1):
            if z[i] <= 0.0 and x[P.order[i]] == 0.0:
                P.blocked[P.order[i]] = IDLE
                k = drop(P, k, i, x)
        if k == settled:
            break
        if k < before:
            continue
        settled = -1
        step, last = 1.0, -1
        for i in range(k):
            weight = x[P.order[i]]
            if z[i] <= 0.0 and weight <= step * (weight - z[i]):
                step, last = weight / (weight - z[i]), i
        for j in range(len(P.blocked)):
            P.blocked[j] &= REFUSED
        if last < 0:
            for i in range(k):
                x[P.order[i]] = z[i]
            break
        for i in range(k):
            weight = x[P.order[i]]
            x[P.order[i]] = weight + step * (z[i] - weight)
        x[P.order[last]] = 0.0
        for i in range(k - 1, -1, -1):
            if x[P.order[i]] <= 0.0:
                k = drop(P, k, i, x)
    return k, steps


@njit(cache=True, nogil=True)
def survey(
    atoms: Array,
    b: Vector,
    c: Vector,
    inverse_norms: Vector,
    G: Array,
    x: Vector,
    P: Passive,
    k: int,
    r: Vector,
    g: Vector,
) -> float:
    """Write g = A'(b - A x) at the minimiser x of the passive atoms; return its tolerance.

    The slope of a unit atom counts as zero up to the tolerance. With an orthonormal basis the
    residual is p, which is orthogonal to the passive atoms up to rounding of p. So the tolerance is
    relative to p, not to b, and nearly dependent atoms can still make a fit exact. It is infinite
    if p is no more than the rounding of b (`EXHAUSTED`).
    """
    if len(P.Q):
        left = project(P, k)
        np.dot(atoms, P.p, g)
        exhausted = left <= EXHAUSTED * EPS * np.sqrt(dot(b, b, len(b)))
        return np.inf if exhausted else DESCENT_ROUNDINGS * EPS * left
    if len(G) == 0:
        residual(atoms, b, x, P.order, k, r)
        np.dot(atoms, r, g)
    else:
        for j in range(len(g)):
            g[j] = c[j]
        for i in range(k):
            weight, row = x[P.order[i]], G[P.order[i]]
            for j in range(len(g)):
                g[j] -= weight * row[j]
    return rounding(b, x, inverse_norms, P.order, k)


@njit(cache=True, nogil=True)
def pursue(
    atoms: Array,
    b: Vector,
    c: Vector,
    inverse_norms: Vector,
    G: Array,
    x: Vector,
    P: Passive,
    k: int,
    g: Vector,
    limit: int,
    max_steps: int,
) -> tuple[int, int, int]:
    """Admit the steepest atoms and minimise over the passive ones, until no atom descends.

    Returns
    -------
    int, int, int
        How many atoms are passive, why it ended, and how many solves it took.
    """
    n = len(x)
    r, z, slopes, room = np.empty(len(b)), np.empty(n + 1), np.empty(n), 1
    k, steps = descend(P, k, -1, x, z, max_steps)
    while True:
        tolerance = survey(atoms, b, c, inverse_norms, G, x, P, k, r, g)
        for j in range(n):
            slopes[j] = g[j] * inverse_norms[j]
        free, refused = False, False
        for j in range(n):
            if slopes[j] > tolerance and not P.inside[j]:
                free |= P.blocked[j] == 0
                refused |= P.blocked[j] == REFUSED
        if refused and (not free or len(P.Q) == 0):
            return k, STALLED, steps
        if not free:
            return k, OPTIMAL, steps
        if k >= limit:
            return k, MAX_ATOMS, steps
        if steps >= max_steps:
            return k, MAX_STEPS, steps
        before = k
        k = admit_block(slopes, tolerance, room, P, k, atoms, b, c, inverse_norms, G)
        entered = k - before
        if entered == 0:  # all that were tried are blocked now
            continue
        k, more = descend(P, k, before, x, z, max_steps - steps)
        steps += more
        if limit < n:
            continue
        room = min(2 * room, max(2, int(GROWTH * k))) if k == before + entered else (room + 1) // 2


@njit(cache=True, nogil=True)
def rounding(b: Vector, x: Vector, inverse_norms: Vector, order: Array, k: int) -> float:
    """Return the expected rounding of <a, b - A x> for a unit atom a."""
    size = np.sqrt(dot(b, b, len(b)))
    for i in range(k):
        size += x[order[i]] / inverse_norms[order[i]]
    noise: float = expected_rounding(len(b)) * size
    return noise


@njit(cache=True, nogil=True)
def in_range(square: float, entries: Vector) -> bool:
    """Return whether a sum of squares is finite and lost nothing to overflow or underflow."""
    if square == 0.0:
        return not np.any(entries)
    return SMALLEST_SQUARE <= square <= LARGEST_SQUARE
