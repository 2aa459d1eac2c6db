"""Coordinate descent for one factor of a factorisation with weighted or missing entries.

For data X of shape (rows, cols) both sweeps lower, over F >= 0 and with G fixed,

    f(F) = 1/2 sum_ij m_ij (x_ij - <F[:, i], G[:, j]>)^2 + l1 sum(F) + l2/2 ||F||^2,   m >= 0.

An entry of weight 0 is missing. The other factor is updated by the same functions from transposed
data, with F and G swapped. Rows of X share no unknowns, and each step minimises f over one entry of
F. A step needs the pull of the data, <G[r], m_i * (x_i - fit)>, which is computed in one of two
ways:

- from the weighted residual of the row, which is updated after each step: O(cols) for a step;
- from the row's own Gram matrix G diag(m_i) G': O(cols k^2 / 2) once, and O(k) for a step.

The Gram matrices of many rows are one product of matrices, of m with the products of two rows of G,
which runs at the full speed of the machine. The second way pays for few components or many sweeps.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import LARGEST_SQUARE
from conepursuit.kernels.shared.triangular import REORDERED, dot

SMALLEST = 1e-305
"""Curvatures below this have lost digits to underflow and count as zero; see `minimiser`."""

COMPONENTS = 16
"""With more components per sweep than this, rows are updated by residuals, else by Gram matrices.

Above it the Gram matrices cost more, as measured.
"""

TILE = 1 << 20
"""Numbers in each array of fits, Gram matrices or products of a tile of rows: about 8 MB."""

PANEL = 128
"""The most products of two rows of G that one matrix product multiplies by the weights."""


@njit(cache=True, nogil=True)
def sweep_weighted(
    X: Array, M: Array, F: Array, G: Array, l1: float, l2: float, sweeps: int
) -> None:
    """Make sweeps over F, in place, for dense data.

    Parameters
    ----------
    X, M : array of shape (rows, cols)
        Data and their weights >= 0, contiguous; where the weight is 0, any finite number will do.
    F, G : array of shape (k, rows), (k, cols)
        The factor to update, F >= 0, and the other one, contiguous.
    l1, l2 : float
        Penalties >= 0 on the sum of F and on half its squares.
    sweeps : int
        How often each entry of F is updated.
    """
    k, rows = F.shape
    height = max(8, TILE // max(1, G.shape[1], k * (k + 1) // 2))
    for start in range(0, rows, height):
        end = min(start + height, rows)
        x, m, f = X[start:end], M[start:end], F[:, start:end]
        if k > COMPONENTS * sweeps:
            sweep_by_residuals(x, m, f, G, l1, l2, sweeps)
        else:
            sweep_by_grams(x, m, f, G, l1, l2, sweeps)


@njit(cache=True, nogil=True)
def sweep_observed(
    data: Vector,
    weights: Vector,
    indices: Array,
    indptr: Array,
    F: Array,
    G: Array,
    l1: float,
    l2: float,
    sweeps: int,
) -> None:
    """Make sweeps over F, in place, for data of which only stored entries are observed.

    Parameters
    ----------
    data, indices, indptr : array
        The stored entries by rows, as in `scipy.sparse.csr_array`; stored zeros are observed.
    weights : array of shape of data
        Their weights >= 0.
    F, G, l1, l2, sweeps
        As in `sweep_weighted`.
    """
    k, rows = F.shape
    atoms = np.ascontiguousarray(G.T)  # the column of G that an entry needs is contiguous
    longest = 0
    for i in range(rows):
        longest = max(longest, indptr[i + 1] - indptr[i])
    buffer, f = np.empty(k * longest), np.empty(k)
    for i in range(rows):
        start, end = indptr[i], indptr[i + 1]
        x, m, columns = data[start:end], weights[start:end], indices[start:end]
        f[:] = F[:, i]
        if k > COMPONENTS * sweeps:
            observed_by_residual(x, m, columns, atoms, buffer, f, l1, l2, sweeps)
        else:
            observed_by_gram(x, m, columns, atoms, buffer, f, l1, l2, sweeps)
        F[:, i] = f


@njit(cache=True, nogil=True, error_model="numpy")
def minimiser(weight: float, pull: float, curvature: float, l1: float, l2: float) -> float:
    """Return the value >= 0 of one entry of F, now `weight`, that minimises f.

    Where f has no curvature along the entry (`SMALLEST`), the entry becomes 0 if its penalty
    exceeds the pull of the data, and stays as it is otherwise. A minimiser is at most
    `LARGEST_SQUARE`.
    """
    total = curvature + l2
    if total < SMALLEST:
        return 0.0 if pull < l1 + l2 * weight else weight
    best = (curvature * weight + pull - l1) / total
    return min(best, LARGEST_SQUARE) if best > 0.0 else 0.0


@njit(cache=True, nogil=True)
def sweep_by_residuals(
    X: Array, M: Array, F: Array, G: Array, l1: float, l2: float, sweeps: int
) -> None:
    """Make sweeps over F by the weighted residual of each row."""
    curvatures = np.dot(M, (G * G).T)
    fits = np.dot(np.ascontiguousarray(F.T), G)
    for i in range(len(X)):
        m, pull = M[i], fits[i]
        for j in range(len(m)):
            pull[j] = m[j] * (X[i, j] - pull[j])
        descend(G, m, pull, curvatures[i], F[:, i], l1, l2, sweeps)


@njit(cache=True, nogil=True)
def descend(
    atoms: Array,
    weights: Vector,
    residual: Vector,
    curvatures: Vector,
    f: Vector,
    l1: float,
    l2: float,
    sweeps: int,
) -> None:
    """Make sweeps over the entries f of one row, in place, and update its weighted residual."""
    for _ in range(sweeps):
        for r in range(len(f)):
            pull = dot(atoms[r], residual, len(residual))
            best = minimiser(f[r], pull, curvatures[r], l1, l2)
            if best != f[r]:
                retreat(atoms[r], weights, best - f[r], residual)
                f[r] = best


@njit(cache=True, nogil=True, fastmath=REORDERED)
def retreat(a: Vector, b: Vector, step: float, out: Vector) -> None:
    """Subtract step * a * b from `out`, entry by entry."""
    for j in range(len(out)):
        out[j] -= step * (a[j] * b[j])


@njit(cache=True, nogil=True)
def sweep_by_grams(
    X: Array, M: Array, F: Array, G: Array, l1: float, l2: float, sweeps: int
) -> None:
    """Make sweeps over F by the Gram matrix of each row; a component moves in all rows at once."""
    k, rows = F.shape
    grams = weighted_grams(M, G)
    pulls = np.dot(G, (M * X).T)
    change = np.empty(rows)
    for r in range(k):
        change[:] = F[r]
        follow(grams, r, change, pulls)
    for _ in range(sweeps):
        for r in range(k):
            curvatures, pull, f = grams[place(k, r, r)], pulls[r], F[r]
            for i in range(rows):
                best = minimiser(f[i], pull[i], curvatures[i], l1, l2)
                change[i] = best - f[i]
                f[i] = best
            follow(grams, r, change, pulls)


@njit(cache=True, nogil=True)
def place(k: int, r: int, s: int) -> int:
    """Return the index of the pair r <= s among those of k components, sorted by r, then s."""
    return r * k - r * (r - 1) // 2 + s - r


@njit(cache=True, nogil=True)
def weighted_grams(M: Array, G: Array) -> Array:
    """Return sum_j m_ij G_rj G_sj for all pairs r <= s and rows i, of shape (pairs, rows)."""
    k, cols = G.shape
    pairs = k * (k + 1) // 2
    grams = np.empty((pairs, len(M)))
    products = np.empty((min(pairs, PANEL, max(8, TILE // max(1, cols))), cols))
    first, count = 0, 0
    for r in range(k):
        for s in range(r, k):
            for j in range(cols):
                products[count, j] = G[r, j] * G[s, j]
            count += 1
            if count == len(products) or r == k - 1:
                np.dot(products[:count], M.T, grams[first : first + count])
                first, count = first + count, 0
    return grams


@njit(cache=True, nogil=True)
def follow(grams: Array, r: int, change: Vector, pulls: Array) -> None:
    """Update the pulls of all rows after a change of component r."""
    k = len(pulls)
    for s in range(k):
        retreat(grams[place(k, min(r, s), max(r, s))], change, 1.0, pulls[s])


@njit(cache=True, nogil=True)
def observed_by_residual(
    x: Vector,
    weights: Vector,
    columns: Array,
    atoms: Array,
    buffer: Vector,
    f: Vector,
    l1: float,
    l2: float,
    sweeps: int,
) -> None:
    """Make sweeps over one row f by its weighted residual, from the atoms of its columns."""
    k, n = len(f), len(x)
    own = buffer[: k * n].reshape(k, n)
    for j in range(n):
        atom = atoms[columns[j]]
        for r in range(k):
            own[r, j] = atom[r]
    residual = weights * (x - np.dot(f, own))
    descend(own, weights, residual, np.dot(own * own, weights), f, l1, l2, sweeps)


@njit(cache=True, nogil=True)
def observed_by_gram(
    x: Vector,
    weights: Vector,
    columns: Array,
    atoms: Array,
    buffer: Vector,
    f: Vector,
    l1: float,
    l2: float,
    sweeps: int,
) -> None:
    """Make sweeps over one row f by its own Gram matrix, from the atoms of its columns."""
    k, n = len(f), len(x)
    own, roots = buffer[: k * n].reshape(n, k), np.sqrt(weights)
    for j in range(n):
        atom = atoms[columns[j]]
        for r in range(k):
            own[j, r] = roots[j] * atom[r]
    gram = np.dot(own.T, own)
    pulls = np.dot(own.T, roots * x) - np.dot(gram, f)
    for _ in range(sweeps):
        for r in range(k):
            best = minimiser(f[r], pulls[r], gram[r, r], l1, l2)
            if best != f[r]:
                change, row = best - f[r], gram[r]
                for s in range(k):
                    pulls[s] -= change * row[s]
                f[r] = best


@njit(cache=True, nogil=True)
def weighted_value(X: Array, M: Array, F: Array, G: Array, l1: float, l2: float) -> float:
    """Return f(F) for dense data, from the residual."""
    rows, cols = X.shape
    height, total = max(1, TILE // max(1, cols)), 0.0
    for start in range(0, rows, height):
        end = min(start + height, rows)
        r = X[start:end] - np.dot(np.ascontiguousarray(F[:, start:end].T), G)
        total += 0.5 * float((M[start:end] * r * r).sum())
    return total + float(l1 * F.sum() + 0.5 * l2 * (F * F).sum())


@njit(cache=True, nogil=True)
def observed_value(
    data: Vector,
    weights: Vector,
    indices: Array,
    indptr: Array,
    F: Array,
    G: Array,
    l1: float,
    l2: float,
) -> float:
    """Return f(F) for stored entries, from the residual."""
    k, rows = F.shape
    left, right, total = np.ascontiguousarray(F.T), np.ascontiguousarray(G.T), 0.0
    for i in range(rows):
        for entry in range(indptr[i], indptr[i + 1]):
            r = data[entry] - dot(left[i], right[indices[entry]], k)
            total += 0.5 * weights[entry] * r * r
    return total + float(l1 * F.sum() + 0.5 * l2 * (F * F).sum())
