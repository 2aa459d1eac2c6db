"""Numbers that kernels and their callers share; ``cpp/shared/constants.hpp`` has them too."""

from __future__ import annotations

EPS = 2.0**-52
"""The distance from 1 to the next float64."""

OPTIMAL, STALLED, MAX_STEPS, MAX_ATOMS, CONVERGED = range(5)
"""Why a fit ended.

OPTIMAL: no atom descends by more than rounding. STALLED: an atom descends, but no step that the
arithmetic allows lowers f. MAX_STEPS, MAX_ATOMS: the limit on steps, or on atoms with weight, is
reached. CONVERGED: the gap is within the tolerance.
"""

IRREGULAR = REDO = -1
"""Codes of targets that a kernel hands back to its caller.

IRREGULAR: squares of the data overflow or underflow, and the data must be scaled first. REDO: the
kernel does not trust its answer, and another kernel must fit the target.
"""

SMALLEST_SQUARE, LARGEST_SQUARE = 1e-260, 1e260
"""Between these, the square of a norm is safe, and so is the product of two such norms.

Outside, a square may overflow or lose digits to underflow, and the data must be scaled first.
"""

DESCENT_ROUNDINGS, LEVEL_ROUNDINGS = 4.0, 64.0
"""How many times the expected rounding the slope of a unit atom may be and still count as zero.

An atom without weight descends if its slope is above DESCENT_ROUNDINGS times that rounding. An atom
with weight has an exact slope of zero at a minimiser; a fit is not accepted as optimal if the size
of that slope is above LEVEL_ROUNDINGS times the rounding.
"""

ILL_CONDITIONED = 1e-9
"""Squared sine of the angle between an atom and the span of the passive atoms.

Above this, the atom enters the factor of their Gram matrix. Otherwise too few digits are left to
tell it from a combination of the passive atoms, and it does not enter.
"""

DEPENDENT_SQUARE = 32.0 * EPS
"""In small quadratic programmes: the same where the atoms are given by their products alone.

It is for each atom in the factor, and one more. Up to it, weight is moved between the atom and the
others, without a change of their combination.
"""

WIDTH = 8
"""Numbers in a line of the cache: rows of arrays are padded to a multiple of it with zeros."""

FEW_ATOMS, BOUNDS = 8, 5
"""Atoms up to which all supports are tabulated, and numbers that bound the proof of each."""

SQUARED, LOGISTIC, KULLBACK_LEIBLER, HUBER, BETA, ONE_SIDED = range(6)
"""Codes of the losses of one entry; `kernels.loss_fits.losses` has their formulas."""

INFEASIBLE = -3
"""The code of a target for which no combination of the atoms with a finite loss was found."""
