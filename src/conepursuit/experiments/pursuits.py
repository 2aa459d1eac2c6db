"""Non-negative orthogonal matching pursuits before the paper, written from their publications.

References
----------
[1] A. M. Bruckstein, M. Elad, M. Zibulevsky. On the Uniqueness of Nonnegative Sparse Solutions to
Underdetermined Systems of Equations. IEEE Transactions on Information Theory 54, 2008.
[2] M. Yaghoobi, D. Wu, M. E. Davies. Fast Non-Negative Orthogonal Matching Pursuit. IEEE Signal
Processing Letters 22, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from conepursuit.arrays import Array, Vector

PRODUCT_ROUNDING = 1e-12
"""Inner products below this share of the norms are rounding."""


class Pursuit(NamedTuple):
    """What a pursuit did.

    Attributes
    ----------
    values : array
        1/2 ||y - A x||^2 at the start and after each atom.
    weights : array of shape (n,)
        x in the end.
    """

    values: Vector
    weights: Vector


def nnomp(atoms: Array, y: Vector, n_iter: int) -> Pursuit:
    """Take the atom closest to the residual and fit all weights anew by NNLS [1].

    Parameters
    ----------
    atoms : array of shape (d, n)
        Unit vectors.
    y : array of shape (d,)
        The target.
    n_iter : int
        The most atoms to take.
    """
    support: list[int] = []
    weights, residual = np.zeros(atoms.shape[1]), y
    values = [0.5 * float(y @ y)]
    for _ in range(n_iter):
        scores = atoms.T @ residual
        best = int(scores.argmax())
        if scores[best] <= PRODUCT_ROUNDING * np.linalg.norm(y) or best in support:
            break
        support.append(best)
        weights[support], length = nnls(atoms[:, support], y)
        residual = y - atoms @ weights
        values.append(0.5 * length**2)
    return Pursuit(np.array(values), weights)


def fnnomp(atoms: Array, y: Vector, n_iter: int) -> Pursuit:
    """Take the atom that lowers the error most among steps that keep all weights non-negative [2].

    Parameters
    ----------
    atoms, y, n_iter
        As in `nnomp`.

    Notes
    -----
    The atoms taken are kept as Q R. A new atom a with part q outside the span of Q would add
    z q / ||q||, z = <a, residual> / ||q||, and change the other weights by -z R^{-1} Q'a / ||q||;
    z is cut where the first of them reaches zero. Candidates are tried in the order of
    <a, residual>, until one needs no cut, or would not do better without one. Weights are never
    negative, unlike those of the released code, which keeps the uncut z (errata D1). Taken atoms
    are not taken again, so that it may end before the minimum.
    """
    factors = _Factors(np.zeros((len(y), 0)), np.zeros((0, 0)))
    z, residual = np.zeros(0), y.copy()
    values = [0.5 * float(y @ y)]
    for _ in range(n_iter):
        step = _best_step(atoms, factors, z, residual, PRODUCT_ROUNDING * float(np.linalg.norm(y)))
        if step is None:
            break
        factors = factors.with_atom(step)
        z = np.append(z, step.z)
        residual = residual - step.z * step.direction
        values.append(0.5 * float(residual @ residual))
    weights = np.zeros(atoms.shape[1])
    weights[factors.support] = np.maximum(factors.solve(z), 0.0)  # a cut weight is 0 up to rounding
    return Pursuit(np.array(values), weights)


class _Step(NamedTuple):
    """A candidate: its column, its inner products with Q, its own direction and length, and z."""

    column: int
    inside: Vector
    direction: Vector
    length: float
    z: float


@dataclass(frozen=True)
class _Factors:
    """The atoms taken, as Q R."""

    Q: Array
    R: Array
    support: list[int] = field(default_factory=list)

    def solve(self, right: Vector) -> Vector:
        """Return R^{-1} right."""
        solved: Vector = solve_triangular(self.R, right) if len(right) else right
        return solved

    def with_atom(self, step: _Step) -> _Factors:
        """Return the factors with one more atom."""
        k = len(self.R)
        R = np.pad(self.R, ((0, 1), (0, 1)))
        R[:k, k], R[k, k] = step.inside, step.length
        return _Factors(np.column_stack([self.Q, step.direction]), R, [*self.support, step.column])


def _best_step(
    atoms: Array, factors: _Factors, z: Vector, residual: Vector, level: float
) -> _Step | None:
    """Return the candidate of largest admissible z, None where none is positive."""
    scores = atoms.T @ residual
    order = [int(i) for i in (-scores).argsort() if scores[i] > level]
    weights, best = factors.solve(z), None
    for index in order:
        if index in factors.support:
            continue
        inside = factors.Q.T @ atoms[:, index]
        outside = atoms[:, index] - factors.Q @ inside
        length = float(np.linalg.norm(outside))
        if length <= PRODUCT_ROUNDING:
            continue
        wanted = scores[index] / length
        if best is not None and wanted <= best.z:
            break
        change = factors.solve(inside) / length
        falling = change > 0
        most = float((weights[falling] / change[falling]).min(initial=inf))
        taken = min(wanted, most)
        if taken > (best.z if best else 0.0):
            best = _Step(index, inside, outside / length, length, float(taken))
        if wanted <= most:
            break
    return best
