"""Fits with a given sum of weights where the norms of the atoms differ by many powers of ten.

Weights x with the sum s are s times shares y that sum to one, and b - A x is minus the sum of
y_j (s a_j - b): the shortest vector in the hull of these points is asked for. With one more row of
k below the points, and k below zeros as the target, ordinary least squares over y >= 0 finds a
multiple of y, whatever k > 0 is (Lawson and Hanson, Solving Least Squares Problems, chapter 23).
There each column may be measured in units of its own.
"""

from __future__ import annotations

from math import fsum, inf
from typing import Any

import numpy as np

from conepursuit.arrays import EPS, Array, Vector, norm
from conepursuit.kernels import least_squares as kernels
from conepursuit.least_squares.one_target import fit_one
from conepursuit.least_squares.sum_kernels import WeightSum
from conepursuit.rounding import product_rounding

MOST_TILTED = 64
"""The most levels of the slopes for which a tilted bound is computed."""


def shortest_in_hull(
    matrix: Array, b: Vector, total: WeightSum, norms: Vector, max_steps: int
) -> Vector:
    """Return weights with the given sum, by the shortest vector in the hull of s a_j - b.

    Notes
    -----
    The larger k is than that vector, the more alike are the columns; the smaller, the more alike
    are all targets. So there are two fits: with the shortest point for k, and with what is found.
    For ``sum_at_most`` there is one more atom, of zeros, for what is missing from s.
    """
    n, s = matrix.shape[1], total.s
    points = np.empty((len(b) + 1, n + total.at_most))
    points[:-1] = -b[:, None]
    points[:-1, :n] += s * matrix
    target, y = np.zeros(len(points)), np.zeros(points.shape[1])
    k = float(np.sqrt((points[:-1] ** 2).sum(axis=0)).min())
    for _ in range(2):
        points[-1] = target[-1] = k
        found = fit_one(points, target, None, 0.0, len(y), max_steps, 0.0).x
        whole = fsum(found)
        if not 0 < whole < inf:
            break
        y = found / whole
        k = norm(points[:-1] @ y)
        if not k > 0:
            break
    x: Vector = s * y[:n]
    if not total.at_most or fsum(x) > s:
        _close(x, s, norms)
    return x


def _close(x: Vector, s: float, norms: Vector) -> None:
    """Add what is missing of the sum s to the weight that can take it with the least effect."""
    for j in np.argsort(norms):
        lack = s - fsum(x)
        if abs(lack) <= EPS * s / 2:
            return
        if x[j] > 0 and x[j] + lack > 0:
            x[j] += lack


def tilted_sum_gap(
    matrix: Array, x: Vector, r: Vector, slopes: Vector, norms: Vector, total: WeightSum,
    length: float, distance: float,
) -> float:  # fmt: skip
    """Return a bound on f(x) - f* in which atoms of large norm do not decide alone.

    `slopes` are A'r as computed, `length` and `distance` upper bounds of ||r|| and of
    ||b - A x - r||.

    Notes
    -----
    For every number top, every t and v >= 0 with <a_j, r - v t> <= top for all j,

        f(x) - f* <= sum_j x_j (top - <a_j, r - v t>) + (s - sum(x)) top
                     + 1/2 ||b - A x - r + v t||^2

    where for ``sum_at_most`` top must not be negative. The slopes of long atoms are rounding of
    their norms; with a top among the slopes of shorter ones, a small v lowers the others to it. The
    functional t has <t, a> = ||a|| for the atoms with weight.
    """
    used = np.flatnonzero(x)
    if not len(used):
        return inf
    noise = product_rounding(len(r))
    unit = matrix[:, used] / norms[used]
    t: Any = np.linalg.lstsq(unit.T, np.ones(len(used)), rcond=EPS)[0]
    s = np.asarray(t @ matrix, dtype=np.float64)
    size = 1.01 * norm(t)
    errors, s_errors = noise * length * norms, noise * size * norms
    lack = abs(total.s - fsum(x)) + 2 * EPS * EPS * total.s
    order = used[np.argsort(norms[used])][:MOST_TILTED]
    tops = np.append((slopes + errors)[order], 0.0)
    gap = inf
    for top in np.unique(np.maximum(tops, 0.0) if total.at_most else tops):
        g = slopes - top
        g_errors = errors + EPS * (np.abs(slopes) + abs(top))
        found = kernels.tilted_gap(g, g_errors, s, s_errors, x, size, distance)
        gap = min(gap, (1.0 + 4 * EPS) * (float(found) + lack * abs(float(top))))
    return gap
