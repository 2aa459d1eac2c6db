"""The fit of one target by the `active_set`: its answer is checked on the data, and certified."""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import (
    DESCENT_ROUNDINGS,
    IRREGULAR,
    LEVEL_ROUNDINGS,
    MAX_ATOMS,
    MAX_STEPS,
    OPTIMAL,
    STALLED,
)
from conepursuit.kernels.least_squares.active_set import (
    Passive,
    admit,
    drop,
    in_range,
    pursue,
    residual,
    rounding,
)
from conepursuit.kernels.least_squares.certificate import certify
from conepursuit.kernels.least_squares.refinement import accurate_residual, refine
from conepursuit.kernels.shared.passes import moments
from conepursuit.kernels.shared.rounding import doubled_rounding, product_rounding
from conepursuit.kernels.shared.triangular import backward_solve, dot, forward_solve
from conepursuit.rounding import UNIT

NEARLY_EXACT = 1e-6
"""Share of ||b|| below which a residual counts as nearly zero.

Atoms that would make the fit exact may then have slopes that are lost in the rounding of b. So a
fit from inner products is made again by QR, unless the residual is rounding, and the residual is
computed in twice the precision. With a longer residual, neither is done.
"""


@njit(cache=True, nogil=True)
def polish(atoms: Array, b: Vector, x: Vector, P: Passive, k: int, r: Vector) -> bool:
    """Compute the residual r and correct x by it; False if a weight was not positive and is now 0.

    With an orthonormal basis r is corrected as well, and accurate to its own last digits, not only
    to those of b.
    """
    residual(atoms, b, x, P.order, k, r)
    if len(P.Q):
        refine(atoms, b, x, r, P.order, k, P.C, P.Q)
    else:
        dx = np.empty(k)
        for i in range(k):
            dx[i] = dot(atoms[P.order[i]], r, len(b))
        forward_solve(P.C, k, dx)
        backward_solve(P.C, k, dx)
        for i in range(k):
            x[P.order[i]] += dx[i]
    positive = True
    for i in range(k):
        if x[P.order[i]] <= 0.0:
            x[P.order[i]], positive = 0.0, False
    return positive


@njit(cache=True, nogil=True)
def holds(g: Vector, inverse_norms: Vector, P: Passive, noise: float, partial: bool) -> bool:
    """Return whether no atom descends and the slopes of the passive ones are zero, up to rounding.

    g is A'r, computed from the data, and `noise` its expected rounding for a unit atom. If
    `partial`, only the passive atoms are checked.
    """
    for j in range(len(g)):
        slope = g[j] * inverse_norms[j]
        if P.inside[j] and abs(slope) > LEVEL_ROUNDINGS * noise:
            return False
        if not P.inside[j] and not partial and slope > DESCENT_ROUNDINGS * noise:
            return False
    return True


@njit(cache=True, nogil=True)
def enter_start(atoms: Array, b: Vector, c: Vector, G: Array, x: Vector, P: Passive, k: int) -> int:
    """Make the atoms with weight passive; one that depends on those before it gets weight 0."""
    for j in range(len(x)):
        if x[j] > 0.0 and not P.inside[j]:
            if admit(P, k, j, atoms, b, c, G):
                k += 1
            else:
                x[j] = 0.0
    P.blocked[:] = 0
    return k


@njit(cache=True, nogil=True)
def pursue_and_polish(
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
    limit: int,
    max_steps: int,
) -> tuple[int, int, int]:
    """Run `pursue` until `polish` leaves all weights positive, and check the answer on the data.

    Return what `pursue` does, and write r = b - A x and g = A'r. The code is STALLED if the answer
    fails the check, or if its residual is `NEARLY_EXACT` without QR.
    """
    k = enter_start(atoms, b, c, G, x, P, k)
    code, steps = STALLED, 0
    for _ in range(5):
        k, code, more = pursue(atoms, b, c, inverse_norms, G, x, P, k, g, limit, max_steps - steps)
        steps += more
        if polish(atoms, b, x, P, k, r):
            break
        for i in range(k - 1, -1, -1):
            if x[P.order[i]] == 0.0:
                k = drop(P, k, i, x)
    if len(P.Q):
        accurate_residual(atoms, b, np.zeros(len(b)), x, P.order, k, r)
    else:
        residual(atoms, b, x, P.order, k, r)
    np.dot(atoms, r, g)
    noise = rounding(b, x, inverse_norms, P.order, k)
    if code == STALLED and len(P.Q):  # an atom that QR refuses is a combination of others
        code = OPTIMAL
    if code != MAX_STEPS and not holds(g, inverse_norms, P, noise, code == MAX_ATOMS):
        code = STALLED
    if code == OPTIMAL and len(P.Q) == 0 and k < min(atoms.shape):
        left, whole = np.sqrt(dot(r, r, len(r))), np.sqrt(dot(b, b, len(b)))
        if noise < left < NEARLY_EXACT * whole:
            code = STALLED
    return k, code, steps


@njit(cache=True, nogil=True)
def fit(
    atoms: Array,
    b: Vector,
    c: Vector,
    inverse_norms: Vector,
    G: Array,
    x: Vector,
    C: Array,
    order: Array,
    y: Vector,
    k: int,
    r: Vector,
    p: Vector,
    g: Vector,
    orthogonal: bool,
    limit: int,
    max_steps: int,
) -> tuple[int, int, int, bool]:
    """Minimise ||A x - b|| over x >= 0, on the Gram matrix if it can be trusted, or by QR.

    Parameters
    ----------
    atoms : array of shape (n, m)
        The columns of A, as rows.
    b, c, inverse_norms : arrays of shape (m,), (n,), (n,)
        The target, A'b, and one over the norms of the atoms (0 for a zero atom).
    G : array of shape (>= n, >= n) or (0, 0)
        A'A; empty where few of its entries are needed, which are then computed one by one.
    x : array of shape (n,)
        The start, and on return the solution.
    C, order, y, k : arrays and int
        The factor of the first k atoms in `order`, with y solving C y = A_P'b.
    r, p, g : arrays of shape (m,), (m,) and (n,)
        On return b - A x, computed from the data; b minus its projection on the orthonormal basis,
        if QR was needed; and A'r.
    orthogonal : bool
        Whether to begin with QR.
    limit, max_steps : int
        The most atoms with weight, and the most solves.

    Returns
    -------
    int, int, int, bool
        The number of passive atoms, why it ended, the number of solves, whether QR was needed.
    """
    n, m = atoms.shape
    inside, blocked = np.zeros(n, np.bool_), np.zeros(n, np.int8)
    cosines, sines, steps, code = np.empty(n), np.empty(n), 0, STALLED
    if not orthogonal:
        for i in range(k):
            inside[order[i]] = True
        P = Passive(C, order, y, np.empty((0, m)), p, inside, blocked, cosines, sines)
        k, code, steps = pursue_and_polish(
            atoms, b, c, inverse_norms, G, x, P, k, r, g, limit, max_steps
        )
        if code != STALLED:
            return k, code, steps, False
        inside[:], blocked[:] = False, 0
    basis = np.empty((min(n, m) + 1, m))
    p[:] = b
    P = Passive(C, order, y, basis, p, inside, blocked, cosines, sines)
    k, code, more = pursue_and_polish(
        atoms, b, c, inverse_norms, G, x, P, 0, r, g, limit, max_steps - steps
    )
    return k, code, steps + more, True


@njit(cache=True, nogil=True)
def fit_target(
    atoms: Array, b: Vector, G: Array, x: Vector, inexact: float, limit: int, max_steps: int
) -> tuple[Vector, float, float, bool, int, int]:
    """Fit one target on all atoms from a start x, which becomes the solution, and certify it.

    G is the Gram matrix, or empty; `inexact` the relative error of the entries of atoms and b.

    Returns
    -------
    array, float, float, bool, int, int
        A'(A x - b), ||A x - b||, the gap, whether it is proved, why the fit ended, how many
        solves it took.
    """
    n, m = atoms.shape
    size = min(n, m) + 1
    c, norms, inverse_norms, sums = np.empty(n), np.empty(n), np.zeros(n), np.empty(n)
    g, r = np.empty(n), np.empty(m)
    regular = in_range(dot(b, b, m), b)
    for j in range(n):
        column = atoms[j]
        c[j], square, sums[j] = moments(column, b)
        regular &= in_range(square, column)
        norms[j] = np.sqrt(square)
        if square > 0.0:
            inverse_norms[j] = 1.0 / norms[j]
    if not regular:
        return g, 0.0, 0.0, False, IRREGULAR, 0
    C, order, y = np.empty((size, size)), np.empty(size, np.int64), np.empty(size)
    k, code, steps, orthogonal = fit(
        atoms, b, c, inverse_norms, G, x, C, order, y, 0, r, np.empty(m), g, False, limit, max_steps
    )
    distance = residual_error(atoms, b, x, order, k, norms, orthogonal, inexact, r, g)
    gap, proven = certify(atoms, b, x, order, k, C, r, distance, norms, sums, inexact, g)
    g *= -1.0
    return g, np.sqrt(dot(r, r, m)), gap, proven, code, steps


@njit(cache=True, nogil=True)
def residual_error(
    atoms: Array,
    b: Vector,
    x: Vector,
    order: Array,
    k: int,
    norms: Vector,
    accurate: bool,
    inexact: float,
    r: Vector,
    g: Vector,
) -> float:
    """Return a bound on the distance of r from b - A x.

    r is `accurate` if it was computed in twice the precision. If it was not and is `NEARLY_EXACT`,
    it is computed again in that way, and g = A'r with it.
    """
    size = np.sqrt(dot(b, b, len(b)))
    for i in range(k):
        size += x[order[i]] * norms[order[i]]
    if k == 0:
        return 0.0
    if not accurate:
        if dot(r, r, len(r)) > NEARLY_EXACT**2 * dot(b, b, len(b)):
            return float(product_rounding(k) * size)
        accurate_residual(atoms, b, np.zeros(len(b)), x, order, k, r)
        np.dot(atoms, r, g)
    return float(1.02 * UNIT * np.sqrt(dot(r, r, len(r))) + (doubled_rounding(k) + inexact) * size)
