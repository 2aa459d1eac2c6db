"""A fit of one target under one of the `losses`, and its objective.

For a target y with weights w the objective is

    F(c) = sum_i w_i l(x_i, y_i) + penalty sum_j c_j,   x = sum_j c_j a_j,   c >= 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import EPS
from conepursuit.kernels.least_squares.inverse import WIDTH, aligned, multiply, padded
from conepursuit.kernels.loss_fits.losses import loss, margin, size, slope


class Problem(NamedTuple):
    """The loss, the penalty and the atoms, for targets with the same weights of their entries.

    `code` and `parameter` name the loss as in `losses`. `rows` holds the n atoms and, after them,
    the sum of the atoms, each scaled to about the same length, from which a fit may start. `prices`
    are the penalties for a unit of weight of each row, `norms` their lengths over the entries with
    weight. Zeros pad `rows` in both directions. `gram` is the Hessian of the loss if that is the
    same for all targets, otherwise empty.
    """

    code: int
    parameter: float
    penalty: float
    rows: Array
    norms: Vector
    prices: Vector
    gram: Array


class Fit(NamedTuple):
    """The arrays of the fit of one target: its data, its state, and work space.

    Over the entries: the target y with weights w, the fit x, the fit `ahead` that the last model
    proposes, g = w l'(x), the curvatures of the model as `metric`, a vector t of a proof, and
    |A| c as `spread`. Over the atoms: the weights c, the derivatives of F as `dual` and, for a
    proof, minus these as `descent`, the `products` of the atoms with t, and bounds on the errors of
    both. Of the quadratic model: its atoms, listed by `members`, their weights v and derivatives
    `descent`; its Hessian Q, made of the scaled atoms B at the entries `where` it is curved; and
    the factor C of the atoms that are passive in it, listed by `order`.
    """

    y: Vector
    w: Vector
    x: Vector
    ahead: Vector
    g: Vector
    metric: Vector
    t: Vector
    c: Vector
    dual: Vector
    products: Vector
    v: Vector
    descent: Vector
    descent_error: Vector
    products_error: Vector
    spread: Vector
    where: Array
    members: Array
    B: Array
    Q: Array
    C: Array
    order: Array


@njit(cache=True, nogil=True)
def empty_fit(n: int, m: int) -> Fit:
    """Return memory for a fit of m entries by n atoms and their sum."""
    width, height = padded(m), padded(n + 1) + WIDTH
    entry, atom = aligned(8, width), aligned(7, height)
    return Fit(
        entry[0], entry[1], entry[2], entry[3], entry[4], entry[5], entry[6],
        atom[0], atom[1], atom[2], atom[3], atom[4], atom[5], atom[6], entry[7],
        np.zeros(width, np.int64), np.zeros(height, np.int64),
        aligned(height, width), aligned(height, height), aligned(height, height),
        np.zeros(height, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def combine(P: Problem, c: Vector, x: Vector) -> None:
    """Write x = sum_j c_j a_j."""
    x[:] = 0.0
    for j in range(len(P.norms)):
        if c[j] != 0.0:
            row, weight = P.rows[j], c[j]
            for i in range(len(x)):
                x[i] += weight * row[i]


@njit(cache=True, nogil=True)
def differentiate(P: Problem, S: Fit) -> None:
    """Write g = w l'(x), and the derivative of F by each weight."""
    for i in range(len(S.y)):
        S.g[i] = S.w[i] * slope(P.code, P.parameter, S.y[i], S.x[i]) if S.w[i] > 0.0 else 0.0
    multiply(P.rows, S.g, len(P.norms), len(S.g), S.dual)
    for j in range(len(P.norms)):
        S.dual[j] += P.prices[j]


@njit(cache=True, nogil=True)
def paid(P: Problem, c: Vector) -> float:
    """Return the penalty of the weights c."""
    total = 0.0
    for j in range(len(P.prices)):
        total += c[j] * P.prices[j]
    return total


@njit(cache=True, nogil=True)
def objective(P: Problem, S: Fit) -> float:
    """Return F(c), from c and x."""
    total = paid(P, S.c)
    for i in range(len(S.y)):
        if S.w[i] > 0.0:
            total += S.w[i] * loss(P.code, P.parameter, S.y[i], S.x[i])
    return total


@njit(cache=True, nogil=True)
def rounding(P: Problem, S: Fit) -> float:
    """Return the rounding of F(c): a few units in the last place of the sizes of its terms."""
    total = paid(P, S.c)
    for i in range(len(S.y)):
        if S.w[i] > 0.0:
            total += S.w[i] * size(P.code, P.parameter, S.y[i], S.x[i])
    return 8.0 * EPS * total


@njit(cache=True, nogil=True)
def inside(P: Problem, S: Fit) -> bool:
    """Return whether x is in the domain of the loss at every entry with weight."""
    for i in range(len(S.y)):
        if S.w[i] > 0.0 and not margin(P.code, P.parameter, S.y[i], S.x[i]) > 0.0:
            return False
    return True
