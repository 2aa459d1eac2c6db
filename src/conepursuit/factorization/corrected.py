"""Correction of atoms: after a step on the weights, the atoms themselves are improved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from conepursuit.arrays import is_integer
from conepursuit.atoms.rank_one import NonnegativeRankOne, RankOnes
from conepursuit.atoms.rank_one_tensor import NonnegativeRankOneTensor
from conepursuit.factorization.divergence import DivergenceLoss
from conepursuit.factorization.losses import FactorLoss, weighted
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

    For the cones of `NonnegativeRankOne` and `NonnegativeRankOneTensor`: all weights and atoms are
    taken as one factor for each axis, and sweeps over all of them never raise f and add no atom.

    Parameters
    ----------
    algorithm : Algorithm
        What chooses atoms and weights, such as ``FCMP()``.
    sweeps : int
        Sweeps over all factors after every step.
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
        kinds = NonnegativeRankOne, NonnegativeRankOneTensor
        rank_one = isinstance(domain.atoms, kinds) and isinstance(domain, Cone)
        if not rank_one or domain.penalty:
            raise ValueError(
                "Corrected moves the atoms of Cone(NonnegativeRankOne(shape)) or "
                "Cone(NonnegativeRankOneTensor(shape)) without a penalty; "
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
        factors, _, _ = loss.corrected(
            weighted(iterate.weights, tuple(atoms.factors)), self.sweeps, 0.0
        )
        lengths = [np.linalg.norm(factor, axis=1) for factor in factors]
        weights = np.prod(lengths, axis=0)
        kept = np.flatnonzero(weights > 0)
        units = [
            factor[kept] / length[kept, None]
            for factor, length in zip(factors, lengths, strict=True)
        ]
        return Iterate(iterate.x, type(atoms).of(*units), weights[kept]).recomputed()


def factor_loss(objective: Objective, greedy: bool = False) -> FactorLoss:
    """Return the loss of factors whose value is that of an objective at their product."""
    if isinstance(objective, FactoredLeastSquares):
        return SquaredLoss(objective.X, correction="gcd" if greedy else "hals")
    if isinstance(objective, FactoredKullbackLeibler):
        return DivergenceLoss(objective.X)
    shifted: Any = getattr(objective, "shift", 0.0)
    if type(objective) is LeastSquares:
        if objective.weights is None:
            return SquaredLoss(objective.y, correction="gcd" if greedy else "hals")
        return WeightedSquaredLoss(objective.y, objective.weights)
    if type(objective) is KullbackLeibler and not shifted:
        return DivergenceLoss(objective.y, objective.weights)
    raise ValueError(
        f"atoms can be corrected for LeastSquares and KullbackLeibler without a shift; got "
        f"{objective!r}."
    )
