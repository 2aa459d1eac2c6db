"""Coordinate descent on one factor of a least-squares factorisation, and entries of a product.

A factor is stored with one component per row, so that the loops over samples run over contiguous
memory: X is approximated by ``F.T @ G``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array
from conepursuit.kernels.shared.triangular import REORDERED

BLOCK = 64
"""Samples whose weights are held in the cache through all sweeps."""


@njit(cache=True, nogil=True, fastmath=REORDERED)
def hals(gram: Array, target: Array, F: Array, sweeps: int) -> None:
    """Minimise 1/2 <F, gram F> - <target, F> over F >= 0 by cyclic coordinate descent, in place.

    Parameters
    ----------
    gram : array of shape (k, k)
        G G', with the weight of a squared penalty added to its diagonal.
    target : array of shape (k, n)
        G X', less the weight of a linear penalty.
    F : array of shape (k, n)
        Where to start; overwritten.
    sweeps : int
        How often every component is updated; each update is exact, so that the function never
        rises.
    """
    k, n = F.shape
    tile, aim, rest = np.empty((k, BLOCK)), np.empty((k, BLOCK)), np.empty(BLOCK)
    tile[:], aim[:] = 0.0, 0.0
    for start in range(0, n, BLOCK):
        width = min(BLOCK, n - start)
        for r in range(k):
            for c in range(width):
                tile[r, c], aim[r, c] = F[r, start + c], target[r, start + c]
        for _ in range(sweeps):
            for r in range(k):
                if gram[r, r] > 0:
                    _descend(gram[r], aim[r], tile, r, rest)
        for r in range(k):
            for c in range(width):
                F[r, start + c] = tile[r, c]


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _descend(row: Array, aim: Array, tile: Array, r: int, rest: Array) -> None:
    """Minimise over component r for a block of samples; `rest` is work space.

    `row` and `aim` are row r of the Gram matrix and of the target, `tile` holds all components.
    """
    k = len(tile)
    for c in range(BLOCK):
        rest[c] = aim[c]
    s = 0
    while s + 8 <= k:
        a, b, d, e = row[s], row[s + 1], row[s + 2], row[s + 3]
        f, g, h, i = row[s + 4], row[s + 5], row[s + 6], row[s + 7]
        for c in range(BLOCK):
            rest[c] -= (
                (a * tile[s, c] + b * tile[s + 1, c])
                + (d * tile[s + 2, c] + e * tile[s + 3, c])
                + (f * tile[s + 4, c] + g * tile[s + 5, c])
                + (h * tile[s + 6, c] + i * tile[s + 7, c])
            )
        s += 8
    while s + 2 <= k:
        a, b = row[s], row[s + 1]
        for c in range(BLOCK):
            rest[c] -= a * tile[s, c] + b * tile[s + 1, c]
        s += 2
    if s < k:
        a = row[s]
        for c in range(BLOCK):
            rest[c] -= a * tile[s, c]
    scale = 1.0 / row[r]
    for c in range(BLOCK):
        tile[r, c] = max(0.0, tile[r, c] + rest[c] * scale)


@njit(cache=True, nogil=True, fastmath=REORDERED)
def entries(indices: Array, indptr: Array, F: Array, G: Array) -> Array:
    """Return the entries of F G' at the places of a CSR matrix, for samples in rows."""
    out = np.empty(len(indices))
    k = F.shape[1]
    for i in range(len(indptr) - 1):
        for place in range(indptr[i], indptr[i + 1]):
            j, total = indices[place], 0.0
            for s in range(k):
                total += F[i, s] * G[j, s]
            out[place] = total
    return out
