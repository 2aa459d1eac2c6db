"""The nearest points of a hull to all pixels of a scene."""

from __future__ import annotations

import numpy as np

from conepursuit.arrays import EPS, Array
from conepursuit.least_squares.api import nnls

ROW = 10.0
"""Length of the entries of the row that pulls sums towards 1, over that of the longest atom.

Each round of corrections divides the error of a sum by at least 1 + ROW^2.
"""

ROUNDS, SETTLED = 30, 16 * EPS
"""Most rounds of corrections, and the error of a sum that is rounding."""


def hull_weights(atoms: Array, targets: Array) -> Array:
    """Return the weights of the nearest points of the hull of atoms and the origin.

    Row i of the result is ``argmin ||targets[i] - h @ atoms||`` over h >= 0 with sum(h) <= 1.

    Parameters
    ----------
    atoms : array of shape (k, bands)
        The spectra that, with the origin, span the hull.
    targets : array of shape (pixels, bands)
        The pixels to be approximated.

    Returns
    -------
    array of shape (pixels, k)
        The weights.

    Notes
    -----
    With ``atoms.T = Q R``, only the k numbers ``Q' targets[i]`` of a pixel matter. Where the
    non-negative fit has a sum of at most 1, it is the answer. Elsewhere the sum is 1, and the
    weights are those of `_simplex_weights`.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit.unmixing.projections import hull_weights
    >>> hull_weights(np.eye(2), np.array([[0.2, 0.3], [2.0, 1.5], [-1.0, 0.5]])).round(12).tolist()
    [[0.2, 0.3], [0.75, 0.25], [0.0, 0.5]]
    """
    Q, R = np.linalg.qr(atoms.T)
    reduced = (targets @ Q).T
    weights = nnls(R, reduced).x
    over = np.flatnonzero(weights.sum(axis=0) > 1.0)
    if len(over):
        weights[:, over] = _simplex_weights(R, np.ascontiguousarray(reduced[:, over]))
    return weights.T


def _simplex_weights(A: Array, B: Array) -> Array:
    """Return ``argmin ||A h - b||`` over h >= 0 with sum 1, for every column b of B.

    For the columns whose non-negative fit has a sum of at least 1.

    Notes
    -----
    Let h(s) be the non-negative fit of (b, c s) by A with a row of c below it. If its sum is 1, it
    satisfies the optimality conditions of the problem, with the multiplier c^2 (1 - s) of the sum.
    The sum of h(s) is a piecewise linear function of s. Where the atoms with weight have the Gram
    matrix G and g = 1'G^-1 1, its slope is c^2 g / (1 + c^2 g). No slope exceeds 1, so the rule
    ``s <- s + 1 - sum h(s)``, begun with s = 1, keeps sums from falling below 1. And g is at least
    1 / ||a||^2 for any atom a with weight, so that each round divides what a sum exceeds 1 by, by
    at least 1 + ROW^2.
    """
    c = ROW * float(np.sqrt(np.einsum("ij,ij->j", A, A).max()))
    matrix = np.vstack([A, np.full(A.shape[1], c)])
    weights, s = np.empty((A.shape[1], B.shape[1])), np.ones(B.shape[1])
    going = np.arange(B.shape[1])
    for _ in range(ROUNDS):
        weights[:, going] = nnls(matrix, np.vstack([B[:, going], c * s[going]])).x
        excess = weights[:, going].sum(axis=0) - 1.0
        s[going] -= excess
        going = going[np.abs(excess) > SETTLED * (1.0 + np.abs(s[going]))]
        if not len(going):
            break
    weights /= weights.sum(axis=0)
    return weights
