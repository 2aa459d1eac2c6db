"""Correction of atoms: after a step on the weights, the atoms themselves are improved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from conepursuit.arrays import is_integer
from conepursuit.atoms.rank_one import NonnegativeRankOne, RankOnes
from conepursuit.factorization.divergence import DivergenceLoss
from conepursuit.factorization.losses import FactorLoss
from conepursuit.factorization.squared import SquaredLoss, WeightedSquaredLoss
from conepursuit.objectives import KullbackLeibler, LeastSquares
from conepursuit.objectives.base import Objective
from conepursuit.objectives.factored import FactoredKullbackLeibler, FactoredLeastSquares
from conepursuit.pursuit.algorithms import Algorithm, Update
from conepursuit.pursuit.domains import Cone, Domain, describe
from conepursuit.pursuit.full_correction import Move
from conepursuit.pursuit.iterate import Direction, Iterate, Local


@dataclass(frozen=True)
class Corrected:
    """An algorithm whose atoms are corrected after every step, line 8 of Algorithm 1 of [1].

    For the cone of `NonnegativeRankOne`: all weights and atoms are taken as two factors, and sweeps
    over both never raise f and add no atom.

    Parameters
    ----------
    algorithm : Algorithm
        What chooses atoms and weights, such as ``FCMP()``.
    sweeps : int
        Sweeps over both factors after every step.
    greedy : bool
        For least squares: by greedy coordinate descent, as in the paper, not by hierarchical
        least squares.

    References
    ----------
    [1] F. Locatello, M. Tschannen, G. Rätsch, M. Jaggi. Greedy Algorithms for Cone Constrained
    Optimization with Convergence Guarantees. NIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import FCMP, Cone, Corrected, LeastSquares, NonnegativeRankOne, minimize
    >>> X = np.array([[1.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 1.0]])
    >>> cone = Cone(NonnegativeRankOne(X.shape))
    >>> minimize(LeastSquares(X), cone, FCMP(), max_atoms=2).value > 0.1
    True
    >>> minimize(LeastSquares(X), cone, Corrected(FCMP(), sweeps=50), max_atoms=2).value < 1e-3
    True
    """

    algorithm: Algorithm
    sweeps: int = 5
    greedy: bool = False
    monotone: ClassVar[bool] = True

    def check(self, objective: Objective, domain: Domain) -> None:
        """Raise ValueError if the parts do not fit."""
        if not hasattr(self.algorithm, "direction"):
            raise ValueError(
                f"Corrected needs an algorithm; got {self.algorithm!r}. Use Corrected(FCMP()), say."
            )
        self.algorithm.check(objective, domain)
        if not (is_integer(self.sweeps) and self.sweeps >= 1):
            raise ValueError(f"sweeps must be a positive integer; got {self.sweeps!r}.")
        rank_one = isinstance(domain.atoms, NonnegativeRankOne) and isinstance(domain, Cone)
        if not rank_one or domain.penalty:
            raise ValueError(
                "Corrected moves the atoms of Cone(NonnegativeRankOne(shape)) without a penalty; "
                f"got {describe(domain)} with penalty {domain.penalty:g}."
            )
        factor_loss(objective)

    def direction(self, local: Local) -> Direction:
        """Return the direction of the algorithm."""
        return self.algorithm.direction(local)

    def start(self, objective: Objective) -> Update:
        """Return the update of one run."""
        update, loss = self.algorithm.start(objective), factor_loss(objective, self.greedy)

        def step(iterate: Iterate, local: Local, d: Direction) -> Move:
            moved, size, good = update(iterate, local, d)
            if not len(moved.weights) or moved.same_weights(iterate):
                return moved, size, good
            return self._improved(moved, loss), size, good

        return step

    def _improved(self, iterate: Iterate, loss: FactorLoss) -> Iterate:
        """Return the iterate with atoms and weights after the sweeps."""
        atoms = iterate.atoms
        assert isinstance(atoms, RankOnes)
        left = iterate.weights[:, None] * atoms.left
        left, right, _, _ = loss.corrected(left, atoms.right, self.sweeps, 0.0)
        lengths = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
        weights = lengths[0] * lengths[1]
        kept = np.flatnonzero(weights > 0)
        units = [
            factor[kept] / length[kept, None]
            for factor, length in zip((left, right), lengths, strict=True)
        ]
        return Iterate(iterate.x, type(atoms).of(*units), weights[kept]).recomputed()


def factor_loss(objective: Objective, greedy: bool = False) -> FactorLoss:
    """Return the loss of two factors whose value is that of an objective at their product."""
    if isinstance(objective, FactoredLeastSquares):
        return SquaredLoss(objective.X, greedy=greedy)
    if isinstance(objective, FactoredKullbackLeibler):
        return DivergenceLoss(objective.X)
    shifted: Any = getattr(objective, "shift", 0.0)
    if type(objective) is LeastSquares:
        if objective.weights is None:
            return SquaredLoss(objective.y, greedy=greedy)
        return WeightedSquaredLoss(objective.y, objective.weights)
    if type(objective) is KullbackLeibler and not shifted:
        return DivergenceLoss(objective.y, objective.weights)
    raise ValueError(
        f"atoms can be corrected for LeastSquares and KullbackLeibler without a shift; got "
        f"{objective!r}."
    )
