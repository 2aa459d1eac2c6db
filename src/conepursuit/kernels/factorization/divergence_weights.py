r"""The best weights of given components under the divergence of Kullback and Leibler, row by row.

For each row x of a sparse matrix and components G of k x n, this minimises over f >= 0

    phi(f) = sum_j (x_j log(x_j / z_j) - x_j + z_j) + l1 sum(f) + l2 |f|^2 / 2,   z = f'G.

What is not stored is zero and contributes z only, through the sums s of the rows of G. With the
mass m = sum(x) and the weight w_r that component r would have alone, w (s + l1) + l2 w^2 = m, put
f = w u. Up to a constant phi / m is then

    P(u) = -sum_j x_j log z_j + sum_r (c_r u_r + q_r u_r^2 / 2),   z = u'a,   c + q = 1,

where x sums to 1, only places with x > 0 are left, and those that no component reaches are left
out. There a = w G, and each of its columns is divided by its largest entry, which changes P by a
constant. So nothing in P has a scale. Its optimum has sum_r u_r (c_r + q_r u_r) = 1, hence u <= 1,
|u| <= 1, and z >= x. As P is convex, with the gradient g

    P(u) - min P <= <g, u> + |min(g, 0)|,

which proves the result. Sweeps over single weights, which are safe from anywhere, take turns with
steps of Newton's method, which end it.
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
"""What z and the sum of a component are at least, so that nothing is divided by zero."""

CLOSE = 0.1
"""Share of a weight by which it may fall without another look: z, which falls no more, still bends
P about as before, so that P falls as well."""

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
        X >= 0 of shape (rows, n), as in `scipy.sparse.csr_array`; an entry that is stored is not
        stored again.
    F : array of shape (k, rows)
        Weights >= 0 to start from, which may be zeros; overwritten with the solution. Components
        that are zero get the weight 0, as do all in a row that no component reaches.
    G : array of shape (k, n)
        The components, contiguous and non-negative.
    l1, l2 : float
        Penalties >= 0 on the sum of weights and on half their squares.
    tolerance : float
        phi is within this times the sum of the row of its least value, as proved by its gradient.
        What rounding allows is about 1e-14.
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
    """Return the columns of G, each divided by its largest entry, if that is positive, and sums.

    A component with next to no sum is taken for zero, so that it can be divided by.
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
    """Write the places that matter, and x there, for a sum of 1; return their number and the sum.

    Where no component reaches an entry, phi is infinite for all weights alike.
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
    """Write w / m, where w is the weight of a component alone, 0 if that is zero, and c and q."""
    root = 2.0 * math.sqrt(l2) * math.sqrt(mass)
    for r in range(len(sums)):
        price = sums[r] + l1
        unit[r] = 2.0 / (price + math.hypot(price, root)) if sums[r] > 0.0 else 0.0
        c[r], q[r] = price * unit[r], (0.5 * root * unit[r]) ** 2


@njit(cache=True, nogil=True)
def gather(columns: Array, at: Array, unit: Vector, a: Array) -> None:
    """Write w G at some places, each column divided by its largest entry."""
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
    """Start at the best multiple of f; at zero if there is none."""
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
    """Descend to the optimum of P; return whether its bound is within the tolerance."""
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
    """Write z, x / z and the gradient anew; return the bound of P less its least value."""
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
    """Raise weights where z is far below x, as it is at no optimum; return whether there are any.

    So it is at the start, and where rounding left a part of z that is not there.
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
    """Move one weight after the other next to where P is least; z is kept up, roughly.

    What is zero and was right so at the last survey is passed over.
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
    """Return the sums of x a / z and of x (a / z)^2."""
    pull, bend = 0.0, 0.0
    for j in range(len(x)):
        quotient = a[j] / z[j]
        pull += x[j] * quotient
        bend += x[j] * quotient * quotient
    return pull, bend


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def move(a: Vector, step: float, z: Vector) -> None:
    """Add step * a to z, of which no more than rounding may be left where it would be zero."""
    for j in range(len(z)):
        z[j] = max(z[j] + step * a[j], EPS * z[j])


@njit(cache=True, nogil=True, error_model="numpy")
def minimiser(u: float, pull: float, bend: float, c: float, q: float) -> float:
    """Return about where P is least along one weight, and not more than that, from a model of it.

    The pull is a sum of x / (t - p) with poles p <= 0, of which the harmonic mean, 1 / pull, is
    concave in t. With the tangent of that instead the pull has one pole, and c + q t = pull a
    solution that is never too large, and nearer than that of Newton's method. It is written so that
    nothing cancels, even if the pole is far away.
    """
    reach, price = pull / bend, c + q * u  # from the pole to u, and what one more of it costs
    if not 0.0 < reach < np.inf:
        return u if pull > price else 0.0
    total = price + q * reach
    root = math.hypot(price - q * reach, 2.0 * math.sqrt(q * reach * pull))
    best = u + 2.0 * (pull - price) / ((total + root) / reach)
    return best if best > 0.0 else 0.0
