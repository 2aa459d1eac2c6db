"""Numbers that kernels and their callers share; this module loads neither numba nor numpy."""

from __future__ import annotations

EPS = 2.0**-52

OPTIMAL, STALLED, MAX_STEPS, MAX_ATOMS, CONVERGED = range(5)
"""Why a fit ended."""

IRREGULAR = REDO = -1
"""The data need scaling; the target asks for another kernel."""

SMALLEST_SQUARE, LARGEST_SQUARE = 1e-260, 1e260
"""Between these, squares of norms and their products with each other are safe."""

DESCENT_ROUNDINGS, LEVEL_ROUNDINGS = 4.0, 64.0
"""How many times the expected rounding an atom may descend, and a passive one be off level."""

ILL_CONDITIONED = 1e-9
"""Squared sine of an angle below which a Gram matrix is not trusted with an atom."""

SQUARED, LOGISTIC, KULLBACK_LEIBLER, HUBER, BETA, ONE_SIDED = range(6)
"""Losses of one entry; what they are is said in `losses`."""

INFEASIBLE = -3
"""No combination of the atoms has a finite loss, or none was found."""
