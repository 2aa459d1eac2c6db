r"""The best weights of given components under the divergence of Kullback and Leibler, row by row.

For each row x of a sparse matrix and components G of k x n, this minimises over f >= 0

    phi(f) = sum_j (x_j log(x_j / z_j) - x_j + z_j) + l1 sum(f) + l2 |f|^2 / 2,   z = f'G.

An entry of x that is not stored is zero and contributes z alone, which is summed through the sums s
of the rows of G. Let m = sum(x), and let w_r be the weight that component r would have alone:
w (s + l1) + l2 w^2 = m. With f = w u, up to a constant, phi / m is

    P(u) = -sum_j x_j log z_j + sum_r (c_r u_r + q_r u_r^2 / 2),   z = u'a,   c + q = 1,

where x is scaled to sum to 1, and only places with x > 0 that some component reaches are kept. a is
w G with each column divided by its largest entry, which changes P by a constant. So nothing in P
has a scale. At the minimiser sum_r u_r (c_r + q_r u_r) = 1, hence u <= 1, |u| <= 1, and z >= x. As
P is convex, its gradient g at any u proves

    P(u) - min P <= <g, u> + |min(g, 0)|.

Sweeps over single weights, which are safe from anywhere, alternate with steps of Newton's method,
which are fast near the minimiser, until this bound is within the tolerance.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import EPS
from conepursuit.kernels.factorization.divergence_newton import (
    Row,
    Space,
    combine,
    empty_space,
    newton_step,
)
from conepursuit.kernels.shared.triangular import REORDERED, dot

SMALLEST_DIVISOR = 1e-300
"""The smallest number that is divided by.

A smaller z is raised to it; a component whose entries sum to less counts as zero.
"""

CLOSE = 0.1
"""Share of a weight by which it may fall in one move of a sweep.

If it falls by more, it is moved again, up to `LOOKS` times. If not, no entry of z falls by a larger
share, so that the curvature of P is about as before, and the move lowers P.
"""

LOOKS = 4
"""How often one weight is moved in a sweep, at most."""


@njit(cache=True, nogil=True)
def fit_rows(
    data: Vector, indices: Array, indptr: Array, F: Array, G: Array,
    l1: float, l2: float, tolerance: float, max_sweeps: int,
) -> int:  # fmt: skip
    """Minimise phi for every row; return how many rows did not reach the tolerance.

    Parameters
    ----------
    data, indices, indptr : array
        X >= 0 of shape (rows, n), as in `scipy.sparse.csr_array`; no entry is stored twice.
    F : array of shape (k, rows)
        Weights >= 0 to start from, which may be zeros; overwritten with the solution. Components
        that are zero get the weight 0, as do all in a row that no component reaches.
    G : array of shape (k, n)
        The components, contiguous and non-negative.
    l1, l2 : float
        Penalties >= 0 on the sum of weights and on half their squares.
    tolerance : float
        A row is done when its gradient proves that phi exceeds its least value by at most this
        times the sum of the row. Rounding allows about 1e-14.
    max_sweeps : int
        Most sweeps for a row, each followed by a step of Newton's method.
    """
    k, rows = F.shape
    (columns, reached, sums), longest, missed = level(G), 0, 0
    for i in range(rows):
        longest = max(longest, indptr[i + 1] - indptr[i])
    at, unit = np.empty(longest, np.int64), np.empty(k)
    buffer, x, z, y = np.empty(k * longest), np.empty(longest), np.empty(longest), np.empty(longest)
    c, q, u, g = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    space = empty_space(k, longest)
    for i in range(rows):
        start, end = indptr[i], indptr[i + 1]
        n, mass = choose(data[start:end], indices[start:end], reached, x, at)
        if n == 0:
            F[:, i] = 0.0
            continue
        weigh(sums, mass, l1, l2, unit, c, q)
        a = buffer[: k * n].reshape(k, n)
        gather(columns, at[:n], unit, a)
        row = Row(a, x[:n], c, q, u, g, z[:n], y[:n])
        begin(row, F[:, i], mass, unit)
        missed += not minimise(row, space, tolerance, max_sweeps)
        for r in range(k):
            F[r, i] = u[r] * unit[r] * mass
    return missed


@njit(cache=True, nogil=True)
def level(G: Array) -> tuple[Array, Array, Vector]:
    """Return the scaled columns of G, whether each is reached, and the sums of its rows.

    A column is reached if its largest entry is positive, and is divided by it. A component whose
    sum is below `SMALLEST_DIVISOR` counts as zero.
    """
    columns, sums = np.ascontiguousarray(G.T), np.dot(G, np.ones(G.shape[1]))
    reached = np.zeros(len(columns), np.bool_)
    for r in range(len(G)):
        if sums[r] < SMALLEST_DIVISOR:
            columns[:, r], sums[r] = 0.0, 0.0
    for j in range(len(columns) if len(G) > 0 else 0):
        top = columns[j].max()
        reached[j] = top > 0.0
        if reached[j]:
            columns[j] /= top
    return columns, reached, sums


@njit(cache=True, nogil=True)
def choose(data: Vector, indices: Array, reached: Array, x: Vector, at: Array) -> tuple[int, float]:
    """Write the places that matter, and x there, scaled to sum to 1; return how many, and the sum.

    They are those with x > 0 that some component reaches. At a place with x > 0 that none reaches,
    phi is infinite whatever the weights are.
    """
    n, largest, total = 0, 0.0, 0.0
    for p in range(len(data)):
        if data[p] > 0.0 and reached[indices[p]]:
            x[n], at[n] = data[p], indices[p]
            largest = max(largest, x[n])
            n += 1
    for p in range(n):
        x[p] /= largest
        total += x[p]
    for p in range(n):
        x[p] /= total
    return n, total * largest


@njit(cache=True, nogil=True, error_model="numpy")
def weigh(
    sums: Vector, mass: float, l1: float, l2: float, unit: Vector, c: Vector, q: Vector
) -> None:
    """Write w / m as `unit`, and c and q, for every component; the module says what they are.

    `mass` is m. A component that is zero has w = 0.
    """
    root = 2.0 * math.sqrt(l2) * math.sqrt(mass)
    for r in range(len(sums)):
        price = sums[r] + l1
        unit[r] = 2.0 / (price + math.hypot(price, root)) if sums[r] > 0.0 else 0.0
        c[r], q[r] = price * unit[r], (0.5 * root * unit[r]) ** 2


@njit(cache=True, nogil=True)
def gather(columns: Array, at: Array, unit: Vector, a: Array) -> None:
    """Write a, which is w G at some places, each column divided by its largest entry."""
    k, n = a.shape
    relative, column = unit / max(unit.max(), SMALLEST_DIVISOR), np.empty(k)
    for j in range(n):
        given, top = columns[at[j]], SMALLEST_DIVISOR
        for r in range(k):
            column[r] = given[r] * relative[r]
            top = max(top, column[r])
        inverse = 1.0 / top
        for r in range(k):
            a[r, j] = column[r] * inverse


@njit(cache=True, nogil=True, error_model="numpy")
def begin(R: Row, f: Vector, mass: float, unit: Vector) -> None:
    """Write the u to start from: the multiple of f with the least P, or zero if f is zero."""
    k, linear, squared = len(f), 0.0, 0.0
    for r in range(k):
        R.u[r] = f[r] / unit[r] / mass if unit[r] > 0.0 else 0.0
        linear += R.c[r] * R.u[r]
        squared += R.q[r] * R.u[r] * R.u[r]
    multiple = 2.0 / (linear + math.hypot(linear, 2.0 * math.sqrt(squared)))
    for r in range(k):
        R.u[r] = R.u[r] * multiple if 0.0 < multiple < np.inf else 0.0


@njit(cache=True, nogil=True)
def minimise(R: Row, space: Space, tolerance: float, max_sweeps: int) -> bool:
    """Minimise P over u; return whether P(u) - min P is proved to be within the tolerance."""
    bound = survey(R)
    for _ in range(max_sweeps):
        if bound <= tolerance:
            break
        sweep(R)
        bound = survey(R)
        if bound > tolerance and newton_step(R, space):
            bound = survey(R)
    return bound <= tolerance


@njit(cache=True, nogil=True, error_model="numpy")
def survey(R: Row) -> float:
    """Compute z, x / z and the gradient from u, after `lift`; return the bound on P(u) - min P."""
    n, inward, outward = len(R.x), 0.0, 0.0
    combine(R.a, R.u, R.z)
    if lift(R):
        combine(R.a, R.u, R.z)
    for j in range(n):
        R.z[j] = max(R.z[j], SMALLEST_DIVISOR)
        R.y[j] = R.x[j] / R.z[j]
    for r in range(len(R.u)):
        slope = R.c[r] + R.q[r] * R.u[r] - dot(R.a[r], R.y, n)
        R.g[r] = slope
        inward += R.u[r] * slope
        outward += min(slope, 0.0) ** 2
    return inward + math.sqrt(outward)


@njit(cache=True, nogil=True)
def lift(R: Row) -> bool:
    """Raise a weight for every entry with z < x / 2; return whether there are any.

    A minimiser has z >= x. Such entries occur at the start, and where the z that a sweep has
    updated is larger, by rounding, than the z that belongs to u.
    """
    low = False
    for j in range(len(R.x)):
        if R.z[j] < 0.5 * R.x[j]:
            nearest = R.a[:, j].argmax()
            if R.a[nearest, j] > 0.0:
                R.u[nearest] += R.x[j]
                low = True
    return low


@njit(cache=True, nogil=True)
def sweep(R: Row) -> None:
    """Move one weight after the other close to where P is least along it; z is updated.

    Weights that are zero, with a derivative that is not negative at the last survey, are skipped.
    """
    for r in range(len(R.u)):
        if R.u[r] > 0.0 or R.g[r] < 0.0:
            for _ in range(LOOKS):
                before = R.u[r]
                pull, bend = look(R.a[r], R.x, R.z)
                R.u[r] = minimiser(before, pull, bend, R.c[r], R.q[r])
                step = R.u[r] - before
                move(R.a[r], step, R.z)
                if step >= -CLOSE * before:
                    break


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def look(a: Vector, x: Vector, z: Vector) -> tuple[float, float]:
    """Return the pull, sum_j x_j a_j / z_j, and the bend, sum_j x_j (a_j / z_j)^2."""
    pull, bend = 0.0, 0.0
    for j in range(len(x)):
        quotient = a[j] / z[j]
        pull += x[j] * quotient
        bend += x[j] * quotient * quotient
    return pull, bend


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def move(a: Vector, step: float, z: Vector) -> None:
    """Add step * a to z; an entry falls to no less than EPS times its old value, so that z > 0."""
    for j in range(len(z)):
        z[j] = max(z[j] + step * a[j], EPS * z[j])


@njit(cache=True, nogil=True, error_model="numpy")
def minimiser(u: float, pull: float, bend: float, c: float, q: float) -> float:
    """Return an approximate minimiser of P along one weight u; it never exceeds the exact one.

    As a function of the weight t, the pull is a sum of terms x / (t - p) with poles p <= 0, so that
    1 / pull, a harmonic mean, is concave. Its tangent at u gives a model of the pull with one pole.
    The solution of c + q t = model is never too large, and closer than that of Newton's method. The
    formula is written so that nothing cancels, even if the pole is far away.
    """
    reach, price = pull / bend, c + q * u  # from the pole to u; the price of one more unit of u
    if not 0.0 < reach < np.inf:
        return u if pull > price else 0.0
    total = price + q * reach
    root = math.hypot(price - q * reach, 2.0 * math.sqrt(q * reach * pull))
    best = u + 2.0 * (pull - price) / ((total + root) / reach)
    return best if best > 0.0 else 0.0
