"""Active-set solution of small quadratic programmes on an updated Cholesky factor."""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.shared.triangular import EPS, append, backward_solve, forward_solve, remove

DEPENDENT = 32 * EPS
"""Squared sine of the angle between an atom and the span of k passive atoms, divided by k + 1.

Above this, the atom enters their factor; otherwise it counts as a combination of them, and `admit`
moves weight from one to the other.
"""


@njit(cache=True, nogil=True)
def drop_empty(weights: Vector, C: Array, order: Array, k: int, passive: Array) -> int:
    """Remove the passive atoms whose weight is not positive; return how many stay."""
    cosines, sines = np.empty(k), np.empty(k)
    for i in range(k - 1, -1, -1):
        atom = order[i]
        if weights[atom] <= 0.0:
            weights[atom] = 0.0
            passive[atom] = False
            remove(C, order, k, i, cosines, sines)
            k -= 1
    return k


@njit(cache=True, nogil=True)
def advance(
    Q: Array,
    gradient: Vector,
    weights: Vector,
    order: Array,
    k: int,
    delta: Vector,
    step: float,
    signed: bool,
) -> tuple[float, bool]:
    """Move the passive weights by step * delta, or until one is zero; update the gradient.

    Return the step made, and whether a weight that reached zero cut it short. An infinite step that
    no weight cuts short is not made. Weights that may be `signed` cut nothing.
    """
    block = -1
    if not signed:
        for i in range(k):
            if delta[i] < 0.0 and weights[order[i]] + step * delta[i] < 0.0:
                step, block = -weights[order[i]] / delta[i], i
    if step == np.inf:
        return step, False
    for i in range(k):
        change = step * delta[i]
        weights[order[i]] += change
        row = Q[order[i]]
        for j in range(len(gradient)):
            gradient[j] += change * row[j]
    if block >= 0:
        weights[order[block]] = 0.0
    return step, block >= 0


@njit(cache=True, nogil=True)
def descend(
    Q: Array,
    gradient: Vector,
    weights: Vector,
    C: Array,
    order: Array,
    k: int,
    signed: bool,
    passive: Array,
) -> int:
    """Minimise over the passive atoms; those that reach zero leave; return how many stay."""
    delta = np.empty(len(weights))
    while k > 0:
        for i in range(k):
            delta[i] = -gradient[order[i]]
        forward_solve(C, k, delta)
        backward_solve(C, k, delta)
        _, cut = advance(Q, gradient, weights, order, k, delta, 1.0, signed)
        if not cut:
            break
        k = drop_empty(weights, C, order, k, passive)
    return k


@njit(cache=True, nogil=True)
def admit(
    Q: Array,
    gradient: Vector,
    weights: Vector,
    C: Array,
    order: Array,
    k: int,
    atom: int,
    entering: bool,
    signed: bool,
    passive: Array,
) -> int:
    """Make an atom passive; return how many are, or -1 - k if it must stay out.

    If it depends on the passive atoms, weight is moved between it and them without a change of x,
    the combination. An `entering` atom gains weight, since by its gradient this lowers a penalty or
    frees room in a hull; another one loses the weight that it has. If a passive atom reaches zero
    on the way, it leaves, and the atom is tried again without it. If none does, the atom stays out:
    it has lost all its weight, or, if it is entering, could gain weight without end.
    """
    delta, sign = np.empty(len(weights)), 1.0 if entering else -1.0
    while not append(C, order, k, Q[atom], atom, DEPENDENT * (k + 1)):
        for i in range(k):
            delta[i] = -sign * C[k, i]
        backward_solve(C, k, delta)
        limit = np.inf if entering else weights[atom]
        step, cut = advance(Q, gradient, weights, order, k, delta, limit, signed)
        if entering and not cut:
            return -1 - k
        weights[atom] += sign * step
        for j in range(len(gradient)):
            gradient[j] += sign * step * Q[atom, j]
        if not cut:
            weights[atom] = 0.0
            return -1 - k
        k = drop_empty(weights, C, order, k, passive)
    passive[atom] = True
    return k + 1


@njit(cache=True, nogil=True)
def solve(
    Q: Array,
    gradient: Vector,
    weights: Vector,
    C: Array,
    order: Array,
    k: int,
    signed: bool,
    tolerance: float,
) -> int:
    """Minimise <gradient, v - w> + 1/2 <v - w, Q (v - w)> over v >= 0 (or all v, if signed).

    Parameters
    ----------
    Q : array of shape (n, n)
        Positive semidefinite.
    gradient, weights : arrays of shape (n,)
        At the start, and on return at the solution.
    C, order : arrays of shape (>= n + 1, >= n + 1) and (>= n + 1,)
        The factor of the first k atoms in `order`, and on return of the passive ones.
    k : int
        How many rows of the factor are valid.
    signed : bool
        Whether weights may be negative.
    tolerance : float
        An atom enters if its gradient, over the root of its diagonal entry, is below minus this.

    Returns
    -------
    int
        The number of passive atoms.
    """
    n = len(weights)
    passive, blocked = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for i in range(k):
        passive[order[i]] = True
    for atom in range(n):
        if not passive[atom] and (weights[atom] != 0.0 or signed):
            admitted = admit(Q, gradient, weights, C, order, k, atom, False, signed, passive)
            k = admitted if admitted >= 0 else -1 - admitted
    k = descend(Q, gradient, weights, C, order, k, signed, passive)
    for _ in range(10 * n + 10):
        if signed:
            break
        entering, steepest = -1, -tolerance
        for atom in range(n):
            if not passive[atom] and not blocked[atom] and Q[atom, atom] > 0.0:
                slope = gradient[atom] / np.sqrt(Q[atom, atom])
                if slope < steepest:
                    entering, steepest = atom, slope
        if entering < 0:
            break
        blocked[entering] = True  # until an atom has entered and stayed
        admitted = admit(Q, gradient, weights, C, order, k, entering, True, signed, passive)
        if admitted < 0:
            k = -1 - admitted
            continue
        k = descend(Q, gradient, weights, C, order, admitted, signed, passive)
        if passive[entering]:
            blocked[:] = False
    return k
