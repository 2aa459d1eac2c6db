"""Smooth convex functions to minimise: f.

- ``base``: `Objective`, what a function must know and may know, and `FunctionObjective`.
- ``entrywise``: `EntrywiseLoss`, sums over entries with weights and a mask. A loss is four facts of
  one entry; value, gradient, Hessian, conjugate and proofs follow.
- ``quadratic``, ``glm``, ``divergence``: the losses; `conepursuit.losses` is their table.
- ``composite``: f(B x), and a loss with a free intercept.
- ``factored``: losses of matrices that are kept as factors; ``lazy``: of targets in a Dask array.
"""

from conepursuit.objectives.base import FunctionObjective, Objective
from conepursuit.objectives.composite import Composed, FreeIntercept
from conepursuit.objectives.divergence import BetaDivergence, KullbackLeibler, Poisson
from conepursuit.objectives.entrywise import EntrywiseLoss
from conepursuit.objectives.factored import FactoredKullbackLeibler, FactoredLeastSquares
from conepursuit.objectives.glm import Huber, Logistic
from conepursuit.objectives.quadratic import LeastSquares, Quadratic

__all__ = [
    "BetaDivergence",
    "Composed",
    "EntrywiseLoss",
    "FactoredKullbackLeibler",
    "FactoredLeastSquares",
    "FreeIntercept",
    "FunctionObjective",
    "Huber",
    "KullbackLeibler",
    "LeastSquares",
    "Logistic",
    "Objective",
    "Poisson",
    "Quadratic",
]
