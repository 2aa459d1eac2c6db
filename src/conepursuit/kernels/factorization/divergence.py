r"""Multiplicative steps for non-negative factors under the divergence of Kullback and Leibler.

For X of m x n entries with weights M, a factor F of k x m and the other, G, of k x n, with z = F'G,

    f = sum_ij M_ij (x_ij log(x_ij / z_ij) - x_ij + z_ij) + sum_ri (l1 F_ri + l2 F_ri^2 / 2).

With the shares p_r = F_ri G_rj / z_ij at the present F, Jensen's inequality bounds -log z_ij at any
other F by -sum_r p_r log(F_ri G_rj / p_r). The multiplicative step minimises this bound, so that f
never rises. Two cases need another step:

- An entry of F that is zero is not moved by a multiplicative step, and one next to zero hardly,
  even if f falls as it grows. It takes a step of Newton's method by itself, which ends short of the
  minimum, since f'' falls (`release`).
- Where f is infinite in a row of X, all entries of F for that row are raised (`lift`).

All thresholds are relative, so that the scales of X, F and G do not matter.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.shared.triangular import REORDERED, dot

TILE = 32768
"""Entries of z in a tile of rows: few enough to stay in the cache."""

LEAST_ROWS = 32
"""The least number of rows in a tile; a product of matrices with fewer is slow."""

NEGLIGIBLE = 1e-290
"""Numbers below this are next to the smallest that float64 holds to full precision.

Where z / x is not above it, x / z counts as infinite, so that sums do not overflow. An entry of F
that a step makes smaller becomes 0, since arithmetic on subnormal numbers is slow. Where z itself
is smaller and x is positive, `diverge` computes the row by `diverge_slowly`.
"""

TRAPPED = 1e-9
"""Share of the sum of a row of X up to which an entry of F is next to zero.

What counts is the entry times its price (see `grow`). Entries next to zero are moved by `release`
if f falls as they grow; larger ones move by multiplicative steps alone.
"""

SLACK = 1e-7
"""Relative excess of its pull over its price above which `release` moves an entry next to zero.

With less, it takes multiplicative steps alone. `grow` says what pull and price are.
"""

BITS, HALF = 52, 1 << 51
"""Bits of the fraction of a float64, and half the range of the fraction as an integer."""

LOG_2 = math.log(2.0)


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def divide(x: Vector, z: Vector) -> float:
    """Overwrite z with x / z, or with 0 where that is infinite; return the sum of x over these.

    `NEGLIGIBLE` says when a quotient counts as infinite. Where x = 0 it is 0, whatever z is.
    """
    lost = 0.0
    for j in range(len(x)):
        finite = z[j] > NEGLIGIBLE * x[j]
        z[j] = x[j] / z[j] if finite else 0.0
        lost += 0.0 if finite else x[j]
    return lost


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def diverge(x: Vector, z: Vector, m: Vector, near: Vector, octaves: Vector) -> float:
    """Return the sum of m (x log(x / z) - x + z); without weights, m is empty.

    Let e be the integer for which y = 2^e x is close to z, and s = (z - y) / (z + y). Then
    log(z / x) = e log 2 + 2 artanh s, where artanh is a power series. If e = 0,
    z - x - 2 x s = (z - x) s, and nothing cancels. The library's logarithm does not run in vector
    registers; this one does. e is taken from the bits of z and x, read as integers, which are about
    linear in their logarithms. `near` and `octaves` are work space for y and e.
    """
    n, weighted, odd = len(x), len(m) > 0, 0
    from_x, from_z, to_y = x.view(np.int64), z.view(np.int64), near.view(np.int64)
    for j in range(n):
        octave = (from_z[j] - from_x[j] + HALF) >> BITS
        octaves[j] = octave
        to_y[j] = from_x[j] + (octave << BITS)
        odd += x[j] > 0.0 and z[j] < NEGLIGIBLE  # bits of subnormals are not linear
    if odd > 0:
        return diverge_slowly(x, z, m)
    total = 0.0
    for j in range(n):
        y, e = near[j], octaves[j]
        s = (z[j] - y) / (z[j] + y)
        q = s * s
        series = 2.0 / 17.0 + q * (2.0 / 19.0 + q * (2.0 / 21.0 + q * (2.0 / 23.0)))
        series = 2.0 / 11.0 + q * (2.0 / 13.0 + q * (2.0 / 15.0 + q * series))
        series = 2.0 / 5.0 + q * (2.0 / 7.0 + q * (2.0 / 9.0 + q * series))
        rest = s * q * (2.0 / 3.0 + q * series)
        far = (z[j] - x[j]) - x[j] * (e * LOG_2 + 2.0 * s + rest)
        term = (z[j] - x[j]) * s - x[j] * rest if e == 0.0 else far
        term = term if x[j] > 0.0 else z[j]
        total += m[j] * term if weighted else term
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def diverge_slowly(x: Vector, z: Vector, m: Vector) -> float:
    """Return what `diverge` does, also where z is 0 or subnormal, by the library's logarithm."""
    total = 0.0
    for j in range(len(x)):
        weight = m[j] if len(m) > 0 else 1.0
        if weight > 0.0:
            entropy = x[j] * (math.log(x[j]) - math.log(z[j])) if x[j] > 0.0 else 0.0
            total += weight * (entropy - x[j] + z[j])
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def grow(f: Vector, pull: Vector, price: Vector, l2: float) -> bool:
    """Make the multiplicative step of f, a row of F'; return whether an entry is trapped at zero.

    The derivative of the objective by an entry is price + l2 f - pull: the price is the sum of its
    component plus l1, the pull the sum of its component times x / z, both with the weights of the
    entries. An entry is trapped if it is next to zero (`TRAPPED`) and its pull exceeds its price
    (`SLACK`). It stays as it is if price and l2 are 0, or the step is not finite.
    """
    trapped, mass = False, 0.0
    for r in range(len(f)):
        mass += f[r] * pull[r]  # adds up to the sum of x where x / z is finite
    for r in range(len(f)):
        root = math.hypot(price[r], 2.0 * math.sqrt(l2 * pull[r] * f[r])) if l2 > 0.0 else price[r]
        step = 2.0 * pull[r] / (price[r] + root) if root > 0.0 else 0.0
        trapped |= f[r] * price[r] <= TRAPPED * mass and pull[r] > (1.0 + SLACK) * price[r]
        grown = f[r] * step
        if grown < np.inf and (root > 0.0 or l2 > 0.0):
            f[r] = grown if grown >= NEGLIGIBLE else 0.0
    return trapped


@njit(cache=True, nogil=True, fastmath=REORDERED, error_model="numpy")
def release(
    x: Vector, G: Array, f: Vector, price: Vector, l2: float, mass: float, z: Vector
) -> None:
    """Raise the entries of f that are next to zero and should grow, one after the other.

    Each takes one step of Newton's method. The derivative of the objective by one entry is concave,
    so that a step upward ends short of the minimum. `mass` is the sum of x; z is work space.
    """
    n = len(x)
    z[:n] = 0.0
    for r in range(len(f)):
        for j in range(n):
            z[j] += f[r] * G[r, j]
    for r in range(len(f)):
        if f[r] * price[r] <= TRAPPED * mass:
            g, pull, bend = G[r], 0.0, 0.0
            for j in range(n):
                slope = g[j] / z[j] if z[j] > NEGLIGIBLE * x[j] else 0.0
                pull += x[j] * slope
                bend += x[j] * slope * slope
            step = (pull - price[r] - l2 * f[r]) / (bend + l2)
            if 0.0 < step < np.inf and pull > (1.0 + SLACK) * price[r]:
                f[r] += step
                for j in range(n):
                    z[j] += step * g[j]


@njit(cache=True, nogil=True, error_model="numpy")
def lift(x: Vector, quotients: Vector, G: Array, f: Vector) -> bool:
    """Raise all entries of f by one number so that the divergence is finite; False if it cannot.

    It is infinite where x > 0 and the quotient is 0. The number makes z add up to x over these
    places. f stays if there are none, or if no component reaches them.
    """
    lost, reach = 0.0, 0.0
    for j in range(len(x)):
        if x[j] > 0.0 and quotients[j] == 0.0:
            lost += x[j]
            for r in range(len(f)):
                reach += G[r, j]
    level = lost / reach
    if not 0.0 < level < np.inf:
        return False
    for r in range(len(f)):
        f[r] += level
    return True


@njit(cache=True, nogil=True)
def rescue(x: Vector, quotients: Vector, G: Array, f: Vector, price: Vector, l2: float) -> None:
    """`lift` the row f, or else `release` its entries; the quotients may be overwritten."""
    if not lift(x, quotients, G, f):
        release(x, G, f, price, l2, x.sum(), quotients)


@njit(cache=True, nogil=True)
def update_dense(
    X: Array, M: Array, F: Array, G: Array, l1: float, l2: float, step: bool, evaluate: bool
) -> float:
    """Make one step of F for a dense X; return the divergence before it, if asked, else 0.

    Parameters
    ----------
    X : array of shape (m, n)
        Contiguous and non-negative.
    M : array of shape (m, n) or (0, 0)
        Weights of the entries, contiguous and non-negative; of shape (0, 0) if all are 1.
    F, G : arrays of shape (k, m) and (k, n)
        Contiguous and non-negative; F is updated.
    l1, l2 : float
        Penalties of F.
    step, evaluate : bool
        Whether to make the step, and whether to sum the divergences, without penalties.
    """
    (m, n), k, weighted, value = X.shape, len(G), len(M) > 0, 0.0
    rows, columns = np.ascontiguousarray(F.T), np.ascontiguousarray(G.T)
    height = min(max(TILE // max(n, 1), LEAST_ROWS), m)
    Z, near, octaves, none = np.empty((height, n)), np.empty(n), np.empty(n), np.empty(0)
    pulls, prices, lost = np.empty((height, k)), np.empty((height, k)), np.empty(height)
    np.dot(np.ones((height, n)), columns, prices)
    for start in range(0, m, height):
        count = min(height, m - start)
        x, tile, weights = X[start : start + count], Z[:count], M[start : start + count]
        np.dot(rows[start : start + count], G, tile)
        for i in range(count if evaluate else 0):
            value += diverge(x[i], tile[i], weights[i] if weighted else none, near, octaves)
        if step:
            if weighted:
                np.dot(weights, columns, prices[:count])
                x = weights * x
            for i in range(count):
                lost[i] = divide(x[i], tile[i])
            np.dot(tile, columns, pulls[:count])
            for i in range(count):
                f, price = rows[start + i], prices[i] + l1
                if grow(f, pulls[i], price, l2) or lost[i] > 0.0:
                    rescue(x[i], tile[i], G, f, price, l2)
    if step:
        F[:] = rows.T
    return value


@njit(cache=True, nogil=True, fastmath=REORDERED)
def product_at(f: Vector, columns: Array, places: Array, z: Vector) -> None:
    """Write the entries of the row f'G at some places; G is given by its columns."""
    for p in range(len(places)):
        place, total = places[p], 0.0
        for r in range(len(f)):
            total += f[r] * columns[place, r]
        z[p] = total


@njit(cache=True, nogil=True)
def pull_at(quotients: Vector, columns: Array, places: Array, pull: Vector) -> None:
    """Write sum_p quotients[p] G[:, places[p]], the pull of a row; G is given by its columns."""
    pull[:] = 0.0
    for p in range(len(places)):
        place, quotient = places[p], quotients[p]
        for r in range(len(pull)):
            pull[r] += quotient * columns[place, r]


@njit(cache=True, nogil=True)
def update_sparse(
    data: Vector, indices: Array, indptr: Array, F: Array, G: Array,
    l1: float, l2: float, step: bool, evaluate: bool,
) -> float:  # fmt: skip
    """Make one step of F for a sparse X in CSR form; return what `update_dense` does.

    Entries that are not stored are zero and add z to the divergence. The sum of these z follows
    from the sums of the rows of G.
    """
    k, m, value, longest = len(G), len(indptr) - 1, 0.0, 0
    for i in range(m):
        longest = max(longest, indptr[i + 1] - indptr[i])
    rows, columns = np.ascontiguousarray(F.T), np.ascontiguousarray(G.T)
    sums = np.dot(G, np.ones(G.shape[1]))
    Z, near, octaves, none = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(0)
    price, pull = sums + l1, np.empty(k)
    for i in range(m):
        x, places, f = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]], rows[i]
        z = Z[: len(x)]
        product_at(f, columns, places, z)
        if evaluate:
            elsewhere = dot(f, sums, k) - z.sum()
            value += diverge(x, z, none, near, octaves) + max(elsewhere, 0.0)
        lost = divide(x, z) if step else 0.0
        if step:
            pull_at(z, columns, places, pull)
        if step and (grow(f, pull, price, l2) or lost > 0.0):
            rescue(x, z, np.ascontiguousarray(columns[places].T), f, price, l2)
    if step:
        F[:] = rows.T
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def extrapolate(new: Array, old: Array, share: float, limit: float, out: Array) -> None:
    """Write about new (new / old)^share, with the quotient held between 1 / limit and limit.

    The power is computed by a Pade approximant, which is positive. Where an entry of new or old is
    zero, new is written.
    """
    for r in range(len(new)):
        a, b, c = new[r], old[r], out[r]
        for i in range(len(a)):
            quotient = min(max(a[i] / b[i], 1.0 / limit), limit) if b[i] > 0.0 else 1.0
            ahead, behind = 1.0 + share, 1.0 - share
            c[i] = a[i] * ((ahead * quotient + behind) / (behind * quotient + ahead))
