"""Smooth convex functions to minimise."""

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
