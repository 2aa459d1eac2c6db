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

which proves the result. Sweeps over single weights find those that are zero; then steps of Newton's
method in all others end it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import EPS
from conepursuit.kernels.factor import REORDERED, backward_solve, complete, dot, forward_solve

LEAST = 1e-300
"""What z is at least, so that nothing is divided by zero."""

SWEEPS = 2
"""Sweeps before the first step of Newton's method, as measured."""

CLOSE = 0.1
"""Share of a weight by which it may fall without another look: z, which falls no more, still bends
P about as before, so that P falls as well."""

LOOKS = 4
"""How often one weight is moved in a sweep, at most."""

RIDGE = 1e-12
"""What is added to the diagonal of a Hessian, relative to it: components may depend on others."""

SLOPE = 1e-4
"""Share of the fall that the gradient promises which a step must keep."""

HALVINGS = 30
"""Steps of Newton's method that are tried, at most."""


class Row(NamedTuple):
    """P for one row, and the present point: z = u'a, y = x / z, and the gradient g."""

    a: Array
    x: Vector
    c: Vector
    q: Vector
    u: Vector
    g: Vector
    z: Vector
    y: Vector


class Space(NamedTuple):
    """Work space of `newton_step`: of length k, k^2 or k times the longest row."""

    members: Array
    direction: Vector
    trial: Vector
    factor: Array
    scaled: Vector


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
        Most sweeps for a row, each followed by a step of Newton's method after the first ones.
    """
    k, rows = F.shape
    columns, sums, longest, missed = level(G), np.dot(G, np.ones(G.shape[1])), 0, 0
    for i in range(rows):
        longest = max(longest, indptr[i + 1] - indptr[i])
    at, alone = np.empty(longest, np.int64), np.empty(k)
    buffer, x, z, y = np.empty(k * longest), np.empty(longest), np.empty(longest), np.empty(longest)
    c, q, u, g = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    square, scaled = np.empty((k, k)), np.empty(k * longest)
    space = Space(np.empty(k, np.int64), np.empty(k), np.empty(k), square, scaled)
    for i in range(rows):
        start, end = indptr[i], indptr[i + 1]
        n, mass = choose(data[start:end], indices[start:end], columns, x, at)
        if n == 0:
            F[:, i] = 0.0
            continue
        weigh(sums, mass, l1, l2, alone, c, q)
        a = buffer[: k * n].reshape(k, n)
        gather(columns, at[:n], alone, a)
        row = Row(a, x[:n], c, q, u, g, z[:n], y[:n])
        begin(row, F[:, i], alone)
        missed += not minimise(row, space, tolerance, max_sweeps)
        for r in range(k):
            F[r, i] = u[r] * alone[r]
    return missed


@njit(cache=True, nogil=True)
def level(G: Array) -> Array:
    """Return the columns of G, each divided by its largest entry if that is not zero."""
    columns = np.ascontiguousarray(G.T)
    for j in range(len(columns)):
        top = columns[j].max() if len(G) > 0 else 0.0
        if top > 0.0:
            columns[j] /= top
    return columns


@njit(cache=True, nogil=True)
def choose(
    data: Vector, indices: Array, columns: Array, x: Vector, at: Array
) -> tuple[int, float]:
    """Write the places that matter, and x there, for a sum of 1; return their number and the sum.

    Where no component reaches an entry, phi is infinite for all weights alike.
    """
    n, largest, total = 0, 0.0, 0.0
    for p in range(len(data)):
        if data[p] > 0.0 and columns[indices[p]].max() > 0.0:
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
    sums: Vector, mass: float, l1: float, l2: float, alone: Vector, c: Vector, q: Vector
) -> None:
    """Write the weights w that components would have alone, 0 for one that is zero, and c and q."""
    root = 2.0 * math.sqrt(l2) * math.sqrt(mass)
    for r in range(len(sums)):
        price = sums[r] + l1
        part = 2.0 / (price + math.hypot(price, root)) if sums[r] > 0.0 else 0.0  # w / m
        alone[r], c[r], q[r] = mass * part, price * part, (0.5 * root * part) ** 2


@njit(cache=True, nogil=True)
def gather(columns: Array, at: Array, alone: Vector, a: Array) -> None:
    """Write w G at some places, each column divided by its largest entry."""
    k, n = a.shape
    relative, column = alone / max(alone.max(), LEAST), np.empty(k)
    for j in range(n):
        given, top = columns[at[j]], LEAST
        for r in range(k):
            column[r] = given[r] * relative[r]
            top = max(top, column[r])
        inverse = 1.0 / top
        for r in range(k):
            a[r, j] = column[r] * inverse


@njit(cache=True, nogil=True, error_model="numpy")
def begin(R: Row, f: Vector, alone: Vector) -> None:
    """Start at the best multiple of f, raised where z is far below x, which it is at no optimum."""
    k, linear, squared = len(f), 0.0, 0.0
    for r in range(k):
        R.u[r] = f[r] / alone[r] if alone[r] > 0.0 else 0.0
        linear += R.c[r] * R.u[r]
        squared += R.q[r] * R.u[r] * R.u[r]
    multiple = 2.0 / (linear + math.hypot(linear, 2.0 * math.sqrt(squared)))
    for r in range(k):
        R.u[r] = R.u[r] * multiple if 0.0 < multiple < np.inf else 0.0
    survey(R)
    for j in range(len(R.x)):
        if R.z[j] < 0.5 * R.x[j]:
            R.u[R.a[:, j].argmax()] += R.x[j]


@njit(cache=True, nogil=True)
def minimise(R: Row, space: Space, tolerance: float, max_sweeps: int) -> bool:
    """Descend to the optimum of P; return whether its bound is within the tolerance."""
    bound = survey(R)
    for count in range(max_sweeps):
        if bound <= tolerance:
            break
        sweep(R)
        bound = survey(R)
        if count + 1 >= SWEEPS and bound > tolerance and newton_step(R, space):
            bound = survey(R)
    return bound <= tolerance


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def combine(a: Array, u: Vector, z: Vector) -> None:
    """Write z = u'a."""
    z[:] = 0.0
    for r in range(len(u)):
        weight, atom = u[r], a[r]
        if weight != 0.0:
            for j in range(len(z)):
                z[j] += weight * atom[j]


@njit(cache=True, nogil=True, error_model="numpy")
def survey(R: Row) -> float:
    """Write z, x / z and the gradient anew; return the bound of P less its least value."""
    n, inward, outward = len(R.x), 0.0, 0.0
    combine(R.a, R.u, R.z)
    for j in range(n):
        R.z[j] = max(R.z[j], LEAST)
        R.y[j] = R.x[j] / R.z[j]
    for r in range(len(R.u)):
        slope = R.c[r] + R.q[r] * R.u[r] - dot(R.a[r], R.y, n)
        R.g[r] = slope
        inward += R.u[r] * slope
        outward += min(slope, 0.0) ** 2
    return inward + math.sqrt(outward)


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
    solution that is never too large, and nearer than that of Newton's method.
    """
    reach, price = pull / bend, c + q * u  # how far the pole is
    if not 0.0 < reach < np.inf:
        return u if pull > price else 0.0
    total = price + q * reach
    root = math.hypot(price - q * reach, 2.0 * math.sqrt(q * reach * pull))
    best = u + 2.0 * (pull - price) / ((total + root) / reach)
    return best if best > 0.0 else 0.0


@njit(cache=True, nogil=True)
def newton_step(R: Row, space: Space) -> bool:
    """Move all weights that are not zero by Newton's method; False if P would not fall.

    Weights that would be negative become zero. If that does not lower P, the step ends where the
    first weight reaches zero, at most, and is shortened from there.
    """
    count, u, trial, d = solve(R, space), R.u, space.trial, space.direction
    members, length, first = space.members, 1.0, 1.0
    for i in range(count):
        if u[members[i]] < -first * d[i]:
            first = -u[members[i]] / d[i]
    for _ in range(HALVINGS):
        promise = 0.0
        trial[:] = 0.0
        for i in range(count):
            r = members[i]
            trial[r] = max(length * d[i], -u[r])
            promise += R.g[r] * trial[r]
        if promise < 0.0 and difference(R, trial) <= SLOPE * promise:
            for i in range(count):
                u[members[i]] = max(u[members[i]] + trial[members[i]], 0.0)
            return True
        length = min(0.5 * length, first)
    return False


@njit(cache=True, nogil=True)
def solve(R: Row, space: Space) -> int:
    """Write the members and the direction of a step of Newton's method; return their number.

    A component that depends on those before it, to rounding, is left out.
    """
    count, n, order, C = 0, len(R.x), space.members, space.factor
    for r in range(len(R.u)):
        if R.u[r] > 0.0:
            order[count] = r
            count += 1
    b = space.scaled[: count * n].reshape(count, n)
    for j in range(n):
        R.z[j] = math.sqrt(R.x[j]) / R.z[j]
    for i in range(count):
        atom = R.a[order[i]]
        for j in range(n):
            b[i, j] = atom[j] * R.z[j]
    for j in range(n):
        R.z[j] = R.x[j] / R.y[j]
    hessian, rank, rows = np.dot(b, b.T), 0, np.empty(count, np.int64)
    for i in range(count):
        r, row = order[i], hessian[i]
        for s in range(rank):
            C[rank, s] = row[rows[s]]
        if complete(C, rank, (1.0 + RIDGE) * row[i] + R.q[r], EPS):
            order[rank], rows[rank], space.direction[rank] = r, i, -R.g[r]
            rank += 1
    forward_solve(C, rank, space.direction)
    backward_solve(C, rank, space.direction)
    return rank


@njit(cache=True, nogil=True)
def difference(R: Row, step: Vector) -> float:
    """Return how much P rises with a step, without cancellation of its values; y is lost."""
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
