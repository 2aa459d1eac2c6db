"""Non-negative least squares of many targets on one dictionary, one target after the other.

Every target starts afresh, so that neither the order of the targets nor the number of threads
changes a bit of the result. The weights that the active set of `inverse` finds are corrected once
by the residual. A target for which that does not suffice gets the code REDO, and its caller fits it
by `one_target.fit_target`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import (
    DESCENT_ROUNDINGS,
    LEVEL_ROUNDINGS,
    MAX_STEPS,
    OPTIMAL,
    REDO,
    STALLED,
)
from conepursuit.kernels.least_squares.active_set import in_range
from conepursuit.kernels.least_squares.certificate import settled, tilted_gap
from conepursuit.kernels.least_squares.inverse import (
    WIDTH,
    aligned,
    end,
    multiply,
    multiply_some,
    padded,
    price,
    pursue,
    subtract_rows,
)
from conepursuit.kernels.shared.rounding import expected_rounding, product_rounding, resolution
from conepursuit.kernels.shared.triangular import dot
from conepursuit.rounding import FLOOR

VISIBLE = 1e-13
"""Share of ||r||^2: a correction of the weights that lowers it by more is made to r as well.

The effect of a smaller correction on r is ignored.
"""

ROUGH = 1e-6
"""Share of ||b|| by which a correction may change a weight times the norm of its atom.

The error that is left is about the square of that share. A larger correction is not trusted, and
the target is left to another kernel.
"""

CANCELLING = 16.0
"""Ratio of sum_i x_i ||a_i|| to ||b|| above which all slopes are computed from the residual.

Below, those of atoms without weight come from the Gram matrix, in which not much cancels.
"""


@njit(cache=True, nogil=True)
def fit_targets(
    atoms: Array,
    targets: Array,
    G: Array,
    inverse_norms: Vector,
    sums: Vector,
    limit: int,
    max_steps: int,
    X: Array,
    duals: Array,
    rnorms: Vector,
    gaps: Vector,
    proven: Array,
    codes: Array,
    counts: Array,
) -> None:
    """Fit and certify every row of `targets`; X, duals and the rest are written, a row for each.

    Rows of zeros follow the atoms, to fill the lanes of `inverse.multiply`, and zeros pad the rows
    of the Gram matrix `G`. `sums` are the sums of the entries of each atom.
    """
    n, m = len(inverse_norms), targets.shape[1]
    size = padded(n) + WIDTH
    order, steep = np.zeros(size, np.int64), np.zeros(size, np.int64)
    H, work = aligned(size, size), aligned(8, size)
    full, c, g, weights, z, scale, u, v = (
        work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7]
    )  # fmt: skip
    full[:n] = inverse_norms
    r, t, slopes, noise = np.empty(m), np.empty(m), g[:n], product_rounding(m)
    norms, g_error = np.zeros(n), np.empty(n)
    for j in range(n):
        if inverse_norms[j] > 0.0:
            norms[j] = 1.0 / inverse_norms[j]
    s_error, enough = noise * np.sqrt(m) * norms, 0.5 * resolution(m)
    for i in range(len(targets)):
        b = targets[i]
        multiply(atoms, b, n, m, c)
        end(c, n)
        square = dot(b, b, m)
        tolerance = expected_rounding(m) * 2.0 * np.sqrt(square)
        k, code, counts[i] = pursue(
            G, c, full, tolerance, n, limit, max_steps,
            order, steep, H, weights, z, g, scale, u, v,
        )  # fmt: skip
        for j in range(m):
            r[j] = b[j]
        subtract_rows(atoms, order, weights, k, m, r)
        before = (1.0 + noise) * np.sqrt(dot(r, r, m)) + FLOOR * np.sqrt(square)
        reach = length(weights, inverse_norms, order, k)
        if reach > CANCELLING * np.sqrt(square):
            multiply(atoms, r, n, m, g)
        positive = correct(
            atoms, r, m, order, H, weights, k, G, g, u, v, full, ROUGH * np.sqrt(square)
        )
        moved = length(u, inverse_norms, order, k)
        reach += moved
        if dot(u, v, k) > VISIBLE * dot(r, r, m):  # the fall of ||r||^2 by the correction
            subtract_rows(atoms, order, u, k, m, r)
        end(g, n)
        level = holds(g, inverse_norms, order, k, LEVEL_ROUNDINGS * tolerance)
        steepest = price(g, full, padded(n), u, v) > DESCENT_ROUNDINGS * tolerance
        doubtful = code == STALLED or (code == OPTIMAL and steepest) or not level
        doubtful = not positive or (doubtful and code != MAX_STEPS)
        for j in range(n):
            X[i, j], duals[i, j] = 0.0, -g[j]
        for j in range(k):
            X[i, order[j]] = weights[j]
        rnorms[i] = np.sqrt(dot(r, r, m))
        distance = product_rounding(k) * (np.sqrt(square) + reach)
        slope_errors(norms, order, k, m, np.sqrt(square) + reach, before + moved, distance, g_error)
        gaps[i] = tilted_gap(slopes, g_error, sums, s_error, X[i], np.sqrt(m), distance)
        if not gaps[i] <= enough * square and k > 0:
            functional(atoms, inverse_norms, order, H, k, u, v, t)
            multiply(atoms, t, n, m, u)
            span = 1.01 * np.sqrt(dot(t, t, m))
            if span < np.inf:
                other = noise * span * norms
                also = tilted_gap(slopes, g_error, u[:n], other, X[i], span, distance)
                gaps[i] = min(gaps[i], also)
        # The kernel for one target may prove more, since it computes in twice the precision.
        doubtful |= code == OPTIMAL and not gaps[i] <= enough * square
        codes[i] = code if in_range(square, b) and not doubtful else REDO
        most = (1.0 + noise) * rnorms[i] + distance + moved
        gaps[i], proven[i] = settled(gaps[i], slopes, norms, X[i], most, np.sqrt(square))


@njit(cache=True, nogil=True)
def slope_errors(
    norms: Vector,
    order: Array,
    k: int,
    m: int,
    size: float,
    length: float,
    distance: float,
    out: Vector,
) -> None:
    """Write bounds on how far the computed slopes may be from the products <a, q>.

    q is the computed residual minus the correction of the weights times the atoms; `length` bounds
    the sum of both norms. The slopes of the passive atoms are computed from that residual, and from
    the Gram matrix for the correction. Those of the other atoms come from the Gram matrix, as sums
    of numbers whose sizes add up to at most `size`. They are slopes of the exact residual,
    which is at most `distance` from q.
    """
    noise = product_rounding(m + k)
    for j in range(len(norms)):
        out[j] = norms[j] * (noise * size + distance)
    for i in range(k):
        out[order[i]] = norms[order[i]] * noise * length


@njit(cache=True, nogil=True, error_model="numpy")
def length(weights: Vector, inverse_norms: Vector, order: Array, k: int) -> float:
    """Return sum_i |x_i| ||a_i|| over the k passive atoms."""
    total = 0.0
    for i in range(k):
        total += abs(weights[i]) / inverse_norms[order[i]]
    return total


@njit(cache=True, nogil=True)
def correct(
    atoms: Array,
    r: Vector,
    m: int,
    order: Array,
    H: Array,
    weights: Vector,
    k: int,
    G: Array,
    g: Vector,
    change: Vector,
    passive: Vector,
    inverse_norms: Vector,
    most: float,
) -> bool:
    """Correct the weights once by the residual r, and the slopes g; return whether that suffices.

    The slopes of the passive atoms are computed from r, and all slopes are updated by the Gram
    matrix. It does not suffice, as H is too inaccurate, if a weight is not positive afterwards, or
    changes, times the norm of its atom, by more than `most`. `change` receives the correction,
    `passive` the slopes before it.
    """
    multiply_some(atoms, order, r, k, m, passive)
    end(passive, k)
    multiply(H, passive, k, padded(k), change)
    end(change, k)
    positive = True
    for i in range(k):
        g[order[i]] = passive[i]
        weights[i] += change[i]
        positive &= weights[i] > 0.0
        positive &= abs(change[i]) <= most * inverse_norms[order[i]]
    subtract_rows(G, order, change, k, G.shape[1], g)
    return positive


@njit(cache=True, nogil=True)
def holds(g: Vector, inverse_norms: Vector, order: Array, k: int, tolerance: float) -> bool:
    """Return whether no passive unit atom has a slope of a size above the tolerance."""
    steepest = 0.0
    for i in range(k):
        steepest = max(steepest, abs(g[order[i]]) * inverse_norms[order[i]])
    return steepest <= tolerance


@njit(cache=True, nogil=True, error_model="numpy")
def functional(
    atoms: Array,
    inverse_norms: Vector,
    order: Array,
    H: Array,
    k: int,
    z: Vector,
    lengths: Vector,
    t: Vector,
) -> None:
    """Write the t in the span of the passive atoms with <t, a> = ||a||; as in `certificate`."""
    for i in range(k):
        lengths[i] = -1.0 / inverse_norms[order[i]]
    end(lengths, k)
    multiply(H, lengths, k, padded(k), z)
    end(z, k)
    for j in range(len(t)):
        t[j] = 0.0
    subtract_rows(atoms, order, z, k, len(t), t)
