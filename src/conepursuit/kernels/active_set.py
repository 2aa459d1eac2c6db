"""Active-set solution of small quadratic programmes on an updated Cholesky factor.

The lower factor C of Q on the passive atoms is kept row by row, so that every inner loop runs over
contiguous memory. Adding and removing an atom costs O(k^2).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector

EPS = float(np.finfo(np.float64).eps)
DEPENDENT = 32 * EPS
"""Squared sine of the angle to the passive atoms below which an atom is a combination of them."""


@njit(cache=True, nogil=True)
def forward_solve(C: Array, k: int, y: Vector) -> None:
    """Overwrite y with the solution of C y' = y."""
    for i in range(k):
        total = y[i]
        for j in range(i):
            total -= C[i, j] * y[j]
        y[i] = total / C[i, i]


@njit(cache=True, nogil=True)
def backward_solve(C: Array, k: int, y: Vector) -> None:
    """Overwrite y with the solution of C' y' = y."""
    for i in range(k - 1, -1, -1):
        y[i] /= C[i, i]
        for j in range(i):
            y[j] -= y[i] * C[i, j]


@njit(cache=True, nogil=True)
def append(C: Array, order: Array, k: int, Q: Array, atom: int) -> bool:
    """Add an atom to the factor as row k; False if it depends on those there, and C is as before.

    The first k entries of row k then hold the solution of C y = Q[order, atom].
    """
    row = C[k]
    for i in range(k):
        row[i] = Q[atom, order[i]]
    forward_solve(C, k, row)
    pivot = Q[atom, atom]
    for i in range(k):
        pivot -= row[i] * row[i]
    if not pivot > DEPENDENT * (k + 1) * Q[atom, atom]:
        return False
    row[k] = np.sqrt(pivot)
    order[k] = atom
    return True


@njit(cache=True, nogil=True)
def remove(C: Array, order: Array, k: int, place: int) -> None:
    """Delete row `place` of a factor of k rows by plane rotations."""
    cosines, sines = np.empty(k), np.empty(k)
    for i in range(place, k - 1):
        order[i] = order[i + 1]
        old, row = C[i + 1], C[i]
        for j in range(place):
            row[j] = old[j]
        carried = old[place]
        for j in range(place, i):
            row[j] = cosines[j] * carried + sines[j] * old[j + 1]
            carried = cosines[j] * old[j + 1] - sines[j] * carried
        length = np.hypot(carried, old[i + 1])
        cosines[i], sines[i] = carried / length, old[i + 1] / length
        row[i] = length


@njit(cache=True, nogil=True)
def shift(Q: Array, order: Array, k: int, delta: Vector, step: float, gradient: Vector) -> None:
    """Add step * Q[:, order] @ delta to the gradient."""
    for i in range(k):
        change = step * delta[i]
        row = Q[order[i]]
        for j in range(len(gradient)):
            gradient[j] += change * row[j]


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
    """Minimise over the passive atoms, letting those go that reach zero; return how many stay."""
    delta = np.empty(len(weights))
    while k > 0:
        for i in range(k):
            delta[i] = -gradient[order[i]]
        forward_solve(C, k, delta)
        backward_solve(C, k, delta)
        step, block = 1.0, -1
        if not signed:
            for i in range(k):
                if weights[order[i]] + step * delta[i] < 0.0:
                    step, block = -weights[order[i]] / delta[i], i
        for i in range(k):
            weights[order[i]] += step * delta[i]
        shift(Q, order, k, delta, step, gradient)
        if block < 0:
            break
        weights[order[block]] = 0.0
        for i in range(k - 1, -1, -1):
            if weights[order[i]] <= 0.0:
                weights[order[i]] = 0.0
                passive[order[i]] = False
                remove(C, order, k, i)
                k -= 1
    return k


@njit(cache=True, nogil=True)
def absorb(
    Q: Array,
    gradient: Vector,
    weights: Vector,
    C: Array,
    order: Array,
    k: int,
    atom: int,
    signed: bool,
    passive: Array,
) -> int:
    """Make an atom with weight passive; one that depends on the others gives them its weight.

    Moving along the null direction leaves x as it is. If a weight of the others reaches zero
    first, that atom leaves, and the dependence with it.
    """
    delta = np.empty(len(weights))
    while not append(C, order, k, Q, atom):
        for i in range(k):
            delta[i] = C[k, i]
        backward_solve(C, k, delta)
        step, block = weights[atom], -1
        if not signed:
            for i in range(k):
                if weights[order[i]] + step * delta[i] < 0.0:
                    step, block = -weights[order[i]] / delta[i], i
        for i in range(k):
            weights[order[i]] += step * delta[i]
        weights[atom] -= step
        shift(Q, order, k, delta, step, gradient)
        for j in range(len(gradient)):
            gradient[j] -= step * Q[atom, j]
        if block < 0:
            weights[atom] = 0.0
            return k
        weights[order[block]] = 0.0
        passive[order[block]] = False
        remove(C, order, k, block)
        k -= 1
    passive[atom] = True
    return k + 1


@njit(cache=True, nogil=True)
def exchange(
    Q: Array,
    gradient: Vector,
    weights: Vector,
    C: Array,
    order: Array,
    k: int,
    atom: int,
    passive: Array,
) -> int:
    """Bring in an atom that depends on the passive ones, for those whose weight it uses up.

    Moving along the null direction leaves x as it is, but lowers a penalty or frees room in a hull
    where the gradient of the atom says so. Return k with the atom appended as row k, or -k - 1 if
    no weight bounds the move.
    """
    delta = np.empty(len(weights))
    while True:
        for i in range(k):
            delta[i] = -C[k, i]
        backward_solve(C, k, delta)
        step, block = np.inf, -1
        for i in range(k):
            if delta[i] < 0.0 and -weights[order[i]] / delta[i] < step:
                step, block = -weights[order[i]] / delta[i], i
        if block < 0:
            return -k - 1
        for i in range(k):
            weights[order[i]] += step * delta[i]
        weights[atom] += step
        shift(Q, order, k, delta, step, gradient)
        for j in range(len(gradient)):
            gradient[j] += step * Q[atom, j]
        for i in range(k - 1, -1, -1):
            if i == block or weights[order[i]] <= 0.0:
                weights[order[i]] = 0.0
                passive[order[i]] = False
                remove(C, order, k, i)
                k -= 1
        if append(C, order, k, Q, atom):
            return k


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
            k = absorb(Q, gradient, weights, C, order, k, atom, signed, passive)
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
        blocked[entering] = True  # until the passive set has changed otherwise
        if not append(C, order, k, Q, entering):
            k = exchange(Q, gradient, weights, C, order, k, entering, passive)
            if k < 0:  # no end along the null direction: the atom stays out
                k = -k - 1
                continue
        passive[entering] = True
        k = descend(Q, gradient, weights, C, order, k + 1, signed, passive)
        if passive[entering]:
            blocked[:] = False
    return k
