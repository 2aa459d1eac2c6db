"""Smooth convex functions to minimise."""

from conepursuit.objectives.base import FunctionObjective, Objective
from conepursuit.objectives.composite import Composed
from conepursuit.objectives.quadratic import LeastSquares, Quadratic

__all__ = ["Composed", "FunctionObjective", "LeastSquares", "Objective", "Quadratic"]
