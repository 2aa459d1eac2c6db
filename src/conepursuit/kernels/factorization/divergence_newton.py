"""A step of Newton's method for the weights of one row; `divergence_weights` defines P and u.

The quadratic model of P is minimised over u >= 0 by an active set, and the step is halved until P
falls by the share `SLOPE` of what the gradient promises.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import EPS
from conepursuit.kernels.shared.triangular import (
    REORDERED,
    append,
    backward_solve,
    dot,
    forward_solve,
    remove,
)

RIDGE, FLOOR = 1e-12, 1e-13
"""Guards against components that depend on each other.

The diagonal of a Hessian is raised by the share RIDGE. A weight is free in the model if its pivot
is above the share FLOOR of its diagonal entry; otherwise it stays where it is.
"""

TURNS = 3
"""Solves for one quadratic model, at most, per weight in it; then the model is left unfinished."""

SLOPE = 1e-4
"""Share of the fall promised by the gradient that a step must reach; otherwise it is halved."""

HALVINGS = 30
"""How many lengths of a step are tried, each half the one before, until the step is given up."""


class Row(NamedTuple):
    """P for one row (a, x, c, q), and the present u with z = u'a, y = x / z and the gradient g."""

    a: Array
    x: Vector
    c: Vector
    q: Vector
    u: Vector
    g: Vector
    z: Vector
    y: Vector


class Space(NamedTuple):
    """Work space of `newton_step`.

    `chosen` lists the components of the model, `v` their weights and `slope` the derivatives of the
    model. `factor` belongs to the weights that are free, which `order` lists and `inside` marks.
    `y` holds the solution of a linear system, `cosines` and `sines` hold rotations, `step` the step
    of all weights, and `scaled`, as large as `Row.a`, the atoms of a Hessian.
    """

    chosen: Array
    v: Vector
    slope: Vector
    y: Vector
    factor: Array
    order: Array
    inside: Array
    cosines: Vector
    sines: Vector
    step: Vector
    scaled: Vector


@njit(cache=True, nogil=True)
def empty_space(k: int, longest: int) -> Space:
    """Return work space for k components and rows of at most `longest` entries."""
    return Space(
        np.empty(k, np.int64), np.empty(k), np.empty(k), np.empty(k), np.empty((k, k)),
        np.empty(k, np.int64), np.empty(k, np.bool_), np.empty(k), np.empty(k), np.empty(k),
        np.empty(k * longest),
    )  # fmt: skip


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def combine(a: Array, u: Vector, z: Vector) -> None:
    """Write z = u'a."""
    z[:] = 0.0
    for r in range(len(u)):
        weight, atom = u[r], a[r]
        if weight != 0.0:
            for j in range(len(z)):
                z[j] += weight * atom[j]


@njit(cache=True, nogil=True)
def newton_step(R: Row, S: Space) -> bool:
    """Move u towards the minimiser of a quadratic model of P; False if P does not fall on the way.

    Weights that are zero and whose derivative is not negative are left out of the model. y is
    overwritten; z and g are not updated.
    """
    count, step = 0, S.step
    for r in range(len(R.u)):
        step[r] = 0.0
        if R.u[r] > 0.0 or R.g[r] < 0.0:
            S.chosen[count], S.v[count], S.slope[count] = r, R.u[r], R.g[r]
            count += 1
    settle(hessian(R, S.chosen[:count], S.scaled), S, count)
    for i in range(count):
        step[S.chosen[i]] = S.v[i] - R.u[S.chosen[i]]
    promise = dot(R.g, step, len(step))
    for _ in range(HALVINGS):
        if promise < 0.0 and difference(R, step) <= SLOPE * promise:
            for r in range(len(step)):
                R.u[r] = max(R.u[r] + step[r], 0.0)
            return True
        step *= 0.5
        promise *= 0.5
    return False


@njit(cache=True, nogil=True)
def hessian(R: Row, chosen: Array, buffer: Vector) -> Array:
    """Return the second derivatives of P by the chosen weights, the diagonal raised by `RIDGE`.

    y is overwritten.
    """
    count, n = len(chosen), len(R.x)
    b = buffer[: count * n].reshape(count, n)
    for j in range(n):
        R.y[j] = math.sqrt(R.x[j]) / R.z[j]
    for i in range(count):
        atom = R.a[chosen[i]]
        for j in range(n):
            b[i, j] = atom[j] * R.y[j]
    H: Array = np.dot(b, b.T)
    for i in range(count):
        H[i, i] = (1.0 + RIDGE) * H[i, i] + R.q[chosen[i]]
    return H


@njit(cache=True, nogil=True)
def settle(H: Array, S: Space, count: int) -> None:
    """Minimise a quadratic function over v >= 0 by an active set, from S.v, in place.

    H is the Hessian, S.slope the gradient at S.v, which is updated with it. This is Lawson and
    Hanson's method, started from given weights: those that are positive are free at first. A free
    weight that would become negative leaves, one after the other; then the weight of steepest
    descent is freed. Each change lowers the function, so that stopping early (`TURNS`) is safe.
    """
    C, order, v, slope, y, rank = S.factor, S.order, S.v, S.slope, S.y, 0
    for i in range(count):
        S.inside[i] = v[i] > 0.0 and append(C, order, rank, H[i], i, FLOOR)
        rank += S.inside[i]
    for _ in range(TURNS * count):
        for i in range(rank):
            y[i] = -slope[order[i]]
        forward_solve(C, rank, y)
        backward_solve(C, rank, y)
        length, last = 1.0, -1
        for i in range(rank):
            if v[order[i]] + length * y[i] < 0.0:
                length, last = -v[order[i]] / y[i], order[i]
        for i in range(rank):
            v[order[i]] = max(v[order[i]] + length * y[i], 0.0)
            for s in range(count):
                slope[s] += length * y[i] * H[order[i], s]
        if last >= 0:
            rank = leave(S, rank, last)
            continue
        steepest = -1
        for i in range(count):
            if not S.inside[i] and slope[i] < (slope[steepest] if steepest >= 0 else -8.0 * EPS):
                steepest = i
        if steepest < 0 or not append(C, order, rank, H[steepest], steepest, FLOOR):
            break
        S.inside[steepest] = True
        rank += 1


@njit(cache=True, nogil=True)
def leave(S: Space, rank: int, last: int) -> int:
    """Set weight `last` to zero, take all zero weights out of the factor; return how many stay."""
    S.v[last] = 0.0
    for place in range(rank - 1, -1, -1):
        i = S.order[place]
        if S.v[i] == 0.0:
            S.inside[i] = False
            remove(S.factor, S.order, rank, place, S.cosines, S.sines)
            rank -= 1
    return rank


@njit(cache=True, nogil=True)
def difference(R: Row, step: Vector) -> float:
    """Return P(u + step) - P(u), summed from the changes of its terms, so that nothing cancels.

    It is inf where z + step'a is not positive. y is overwritten.
    """
    combine(R.a, step, R.y)
    total = 0.0
    for r in range(len(step)):
        total += step[r] * (R.c[r] + R.q[r] * (R.u[r] + 0.5 * step[r]))
    for j in range(len(R.x)):
        change = R.y[j] / R.z[j]
        if not change > -1.0:
            return np.inf
        total -= R.x[j] * math.log1p(change)
    return total
