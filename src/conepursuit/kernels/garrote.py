"""Cyclic coordinate descent for the non-negative garrote, logistic and least squares.

Both functions minimise, over c >= 0 and where asked a free intercept b,

    F(b, c) = sum_i w_i l(b + <z_i, c>, y_i) + penalty * sum_j c_j.

Both keep the pull p_i = -w_i l'(b + <z_i, c>, y_i) up to date. The score dF/dc_j of an atom is
``penalty - <a_j, p>``, where a_j, a row of `atoms`, holds the j-th entries of all z_i.

References
----------
[1] E. Makalic, D. F. Schmidt. Logistic Regression with the Nonnegative Garrote. Australasian Joint
Conference on Artificial Intelligence, 2011.
[2] A. Genkin, D. D. Lewis, D. Madigan. Large-Scale Bayesian Logistic Regression for Text
Categorization. Technometrics 49(3), 2007.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conepursuit.arrays import Array, Vector
from conepursuit.kernels.constants import EPS
from conepursuit.kernels.shared.triangular import dot

PULL_ROUNDING = 4 * EPS
"""The rounding of a pull, as a share of the sum of the absolute values of its terms.

Violations of optimality up to the norm of this rounding count as zero.
"""

WIDEST = 1e100
"""The largest first trust region, for atoms whose entries are all below its inverse."""


@njit(cache=True, nogil=True)
def logistic_sweeps(
    atoms: Array,
    y: Vector,
    weights: Vector,
    penalty: float,
    intercept: bool,
    c: Vector,
    b: float,
    tol: float,
    max_sweeps: int,
) -> tuple[float, int, bool]:
    """Minimise F for l(x, y) = log(1 + exp(-x y)), changing c in place.

    Parameters
    ----------
    atoms : array of shape (p, n)
        Column j of Z as row j.
    y : array of shape (n,)
        Labels, +1 or -1.
    weights : array of shape (n,)
        w >= 0, one for each sample.
    penalty : float
        lambda >= 0.
    intercept : bool
        Whether b is fitted; otherwise it is kept.
    c : array of shape (p,)
        Where to start, c >= 0; overwritten with the answer.
    b : float
        The intercept to start from.
    tol : float
        Stop when no optimality violation is more than this share of ||p|| at the origin, or than
        rounding. The violation of an atom is |dF/dc_j| / ||a_j||, and 0 where c_j = 0 and the
        score is not negative. The share is not of the violation at the start: from a bad start that
        would end the sweeps too early, and from a good one never.
    max_sweeps : int
        Most sweeps over all atoms.

    Returns
    -------
    float, int, bool
        b, how many sweeps were made, and whether the last one met the tolerance.

    Notes
    -----
    With r_i = y_i (b + <z_i, c>) and D_j the trust region of c_j, the curvature of F along c_j is,
    within the region, at most sum_i w_i z_ij^2 B(r_i, D_j |z_ij|) with

        B(r, d) = 1/4 if |r| <= d, otherwise 1 / (2 + exp(|r| - d) + exp(d - |r|)).

    A step minimises the quadratic model with this curvature over the region and c_j >= 0, so that
    F never rises; then D_j becomes max(2 |step|, D_j / 2) [2]. The intercept is one more
    coordinate, without bound and penalty, which each sweep begins with.
    """
    norms = measure(atoms, penalty, c)
    radii = first_radii(atoms)
    radius, ones = 1.0, np.ones(len(y))
    margins, pull = np.empty(len(y)), np.empty(len(y))
    level = 0.5 * np.sqrt(dot(weights, weights, len(y)))
    noise = logistic_pull(atoms, y, weights, c, b, margins, pull)
    allowed = max(tol * level, noise)
    if violation(atoms, norms, penalty, intercept, c, pull) <= allowed:
        return b, 0, True
    for sweep in range(1, max_sweeps + 1):
        met = 0.0
        if intercept:
            score = -pull.sum()
            met = abs(score) / np.sqrt(len(y))
            step = trusted_step(ones, weights, margins, score, radius)
            if step != 0.0:
                b, radius = b + step, max(2.0 * abs(step), 0.5 * radius)
                logistic_move(ones, y, weights, step, margins, pull)
        steepest = logistic_sweep(atoms, norms, y, weights, penalty, c, radii, margins, pull)
        noise = logistic_pull(atoms, y, weights, c, b, margins, pull)
        allowed = max(tol * level, noise)
        if max(met, steepest) <= allowed and (  # all are computed only if those met are small
            violation(atoms, norms, penalty, intercept, c, pull) <= allowed
        ):
            return b, sweep, True
    return b, max_sweeps, False


@njit(cache=True, nogil=True)
def squared_sweeps(
    atoms: Array,
    y: Vector,
    weights: Vector,
    penalty: float,
    intercept: bool,
    c: Vector,
    b: float,
    tol: float,
    max_sweeps: int,
) -> tuple[float, int, bool]:
    """Minimise F for l(x, y) = (x - y)^2 / 2, changing c in place.

    Parameters and returned values are those of `logistic_sweeps`, except that y holds real numbers.
    Each step minimises F over its coordinate exactly.
    """
    norms = measure(atoms, penalty, c)
    curvatures, total = squared_curvatures(atoms, weights), weights.sum()
    ones, pull = np.ones(len(y)), np.empty(len(y))
    level = squared_level(y, weights, intercept)
    noise = squared_pull(atoms, y, weights, c, b, pull)
    allowed = max(tol * level, noise)
    if violation(atoms, norms, penalty, intercept, c, pull) <= allowed:
        return b, 0, True
    for sweep in range(1, max_sweeps + 1):
        met = 0.0
        if intercept and total > 0.0:
            score = -pull.sum()
            met = abs(score) / np.sqrt(len(y))
            b -= score / total
            squared_move(ones, weights, -score / total, pull)
        steepest = squared_sweep(atoms, norms, weights, curvatures, penalty, c, pull)
        noise = squared_pull(atoms, y, weights, c, b, pull)
        allowed = max(tol * level, noise)
        if max(met, steepest) <= allowed and (  # all are computed only if those met are small
            violation(atoms, norms, penalty, intercept, c, pull) <= allowed
        ):
            return b, sweep, True
    return b, max_sweeps, False


@njit(cache=True, nogil=True)
def measure(atoms: Array, penalty: float, c: Vector) -> Vector:
    """Return the norms of the atoms; under a penalty, the weights c of zero atoms are set to 0."""
    p, n = atoms.shape
    norms = np.empty(p)
    for j in range(p):
        norms[j] = np.sqrt(dot(atoms[j], atoms[j], n))
        if norms[j] == 0.0 and penalty > 0.0:
            c[j] = 0.0
    return norms


@njit(cache=True, nogil=True)
def projected(score: float, weight: float) -> float:
    """Return the violation of optimality: |score| for a positive weight, else max(0, -score)."""
    return abs(score) if weight > 0.0 else max(0.0, -score)


@njit(cache=True, nogil=True)
def violation(
    atoms: Array, norms: Vector, penalty: float, intercept: bool, c: Vector, pull: Vector
) -> float:
    """Return the largest optimality violation of the atoms, over their norms, and the intercept."""
    n = len(pull)
    largest = abs(pull.sum()) / np.sqrt(n) if intercept else 0.0
    for j in range(len(c)):
        if norms[j] > 0.0:
            score = penalty - dot(atoms[j], pull, n)
            largest = max(largest, projected(score, c[j]) / norms[j])
    return largest


@njit(cache=True, nogil=True)
def combine(atoms: Array, c: Vector, b: float, x: Vector, sizes: Vector) -> None:
    """Write b + Z c as x, and the sums of the absolute values of its terms as `sizes`."""
    x[:] = b
    sizes[:] = abs(b)
    for j in range(len(c)):
        if c[j] > 0.0:
            for i in range(len(x)):
                term = c[j] * atoms[j, i]
                x[i] += term
                sizes[i] += abs(term)


@njit(cache=True, nogil=True)
def logistic_pull(
    atoms: Array, y: Vector, weights: Vector, c: Vector, b: float, margins: Vector, pull: Vector
) -> float:
    """Compute margins y (b + Z c) and pull from scratch; return the norm of the pull's rounding."""
    sizes = np.empty(len(y))
    combine(atoms, c, b, margins, sizes)
    square = 0.0
    for i in range(len(y)):
        margins[i] *= y[i]
        pull[i] = weights[i] * y[i] / (1.0 + np.exp(margins[i]))
        lost = abs(pull[i]) + 0.25 * weights[i] * sizes[i]
        square += lost * lost
    return PULL_ROUNDING * float(np.sqrt(square))


@njit(cache=True, nogil=True)
def logistic_sweep(
    atoms: Array,
    norms: Vector,
    y: Vector,
    weights: Vector,
    penalty: float,
    c: Vector,
    radii: Vector,
    margins: Vector,
    pull: Vector,
) -> float:
    """Step along each weight in turn; return the largest violation met."""
    n, largest = len(y), 0.0
    for j in range(len(c)):
        if norms[j] == 0.0:
            continue
        score = penalty - dot(atoms[j], pull, n)
        gap = projected(score, c[j])
        if gap == 0.0:
            continue
        largest = max(largest, gap / norms[j])
        step = max(trusted_step(atoms[j], weights, margins, score, radii[j]), -c[j])
        if step != 0.0:
            c[j] += step
            radii[j] = max(2.0 * abs(step), 0.5 * radii[j])
            logistic_move(atoms[j], y, weights, step, margins, pull)
    return largest


@njit(cache=True, nogil=True)
def first_radii(atoms: Array) -> Vector:
    """Return trust regions in which no margin changes by more than 1."""
    radii = np.empty(len(atoms))
    for j in range(len(atoms)):
        radii[j] = 1.0 / max(np.abs(atoms[j]).max(), 1.0 / WIDEST)
    return radii


@njit(cache=True, nogil=True)
def trusted_step(
    atom: Vector, weights: Vector, margins: Vector, score: float, radius: float
) -> float:
    """Return the step that minimises the quadratic upper bound of F within the trust region."""
    curvature = 0.0
    for i in range(len(margins)):
        if atom[i] != 0.0:
            bound = logistic_curvature(margins[i], radius * abs(atom[i]))
            curvature += weights[i] * atom[i] * atom[i] * bound
    if abs(score) < curvature * radius:
        return -score / curvature
    return -float(np.sign(score)) * radius


@njit(cache=True, nogil=True)
def logistic_curvature(margin: float, reach: float) -> float:
    """Return the largest second derivative of log(1 + exp(-r)) where |r - margin| <= reach."""
    distance = abs(margin) - reach
    if distance <= 0.0:
        return 0.25
    small = float(np.exp(-distance))
    return small / ((1.0 + small) * (1.0 + small))


@njit(cache=True, nogil=True)
def logistic_move(
    atom: Vector, y: Vector, weights: Vector, step: float, margins: Vector, pull: Vector
) -> None:
    """Update margins and pull after a step along an atom."""
    for i in range(len(y)):
        if atom[i] != 0.0:
            margins[i] += step * y[i] * atom[i]
            pull[i] = weights[i] * y[i] / (1.0 + np.exp(margins[i]))


@njit(cache=True, nogil=True)
def squared_pull(
    atoms: Array, y: Vector, weights: Vector, c: Vector, b: float, pull: Vector
) -> float:
    """Compute the pull, the weighted residual, from scratch; return the norm of its rounding."""
    sizes = np.empty(len(y))
    combine(atoms, c, b, pull, sizes)
    square = 0.0
    for i in range(len(y)):
        pull[i] = weights[i] * (y[i] - pull[i])
        lost = weights[i] * (abs(y[i]) + sizes[i])
        square += lost * lost
    return PULL_ROUNDING * float(np.sqrt(square))


@njit(cache=True, nogil=True)
def squared_level(y: Vector, weights: Vector, intercept: bool) -> float:
    """Return the norm of the pull at c = 0, with the best intercept where there is one."""
    total = weights.sum()
    mean = dot(weights, y, len(y)) / total if intercept and total > 0.0 else 0.0
    square = 0.0
    for i in range(len(y)):
        square += (weights[i] * (y[i] - mean)) ** 2
    return float(np.sqrt(square))


@njit(cache=True, nogil=True)
def squared_curvatures(atoms: Array, weights: Vector) -> Vector:
    """Return sum_i w_i z_ij^2 for every atom."""
    curvatures = np.empty(len(atoms))
    for j in range(len(atoms)):
        total = 0.0
        for i in range(len(weights)):
            total += weights[i] * atoms[j, i] * atoms[j, i]
        curvatures[j] = total
    return curvatures


@njit(cache=True, nogil=True)
def squared_sweep(
    atoms: Array,
    norms: Vector,
    weights: Vector,
    curvatures: Vector,
    penalty: float,
    c: Vector,
    pull: Vector,
) -> float:
    """Minimise over each weight in turn; return the largest violation met."""
    n, largest = len(pull), 0.0
    for j in range(len(c)):
        if norms[j] == 0.0:
            continue
        score = penalty - dot(atoms[j], pull, n)
        gap = projected(score, c[j])
        if gap == 0.0:
            continue
        largest = max(largest, gap / norms[j])
        # Without curvature the atom is zero at all samples with weight: its score is the penalty.
        step = max(-score / curvatures[j], -c[j]) if curvatures[j] > 0.0 else -c[j]
        c[j] += step
        squared_move(atoms[j], weights, step, pull)
    return largest


@njit(cache=True, nogil=True)
def squared_move(atom: Vector, weights: Vector, step: float, pull: Vector) -> None:
    """Update the pull after a step along an atom."""
    for i in range(len(pull)):
        pull[i] -= step * weights[i] * atom[i]
