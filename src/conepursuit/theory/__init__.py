"""Widths, gauges and curvature constants of given atoms, and the rates of the theorems.

Atoms are the columns of a matrix, or a finite atom set; the origin is implied, given or not. See
docs/theory.md for what the theorems say and which corrections they need.

- ``sets``: finite sets as points, and their gauge; ``faces``: the faces of their hulls and cones.
- ``widths``: exact widths of small sets; ``brackets``: bounds for large ones.
- ``constants``: curvature and strong convexity; ``rates``: the bounds of the theorems.
- ``case``: a run with its constants; ``margins``: bounds compared with runs.

>>> import numpy as np
>>> from conepursuit.theory import cone_width, pyramidal_width
>>> A = np.array([[1.0, 0.95, 0.0, -1.0, 0.0], [0.0, 0.055, 1.0, 0.0, -0.9]])
>>> round(cone_width(A), 6), round(pyramidal_width(A), 6)
(0.668965, 0.003536)
"""

from conepursuit.theory.brackets import Bracket, cone_width_bounds, pyramidal_width_bounds
from conepursuit.theory.case import good_steps
from conepursuit.theory.constants import curvature_constant, strong_convexity_constant
from conepursuit.theory.faces import TooLargeError, generating_faces
from conepursuit.theory.margins import Margins, check_rates, rate_bounds
from conepursuit.theory.rates import (
    affine_linear_bound,
    affine_linear_rate,
    affine_sublinear_bound,
    good_steps_bound,
    linear_bound,
    linear_rate,
    sublinear_bound,
)
from conepursuit.theory.sets import AtomicNorm, atomic_norm, diameter, radius
from conepursuit.theory.widths import (
    Width,
    cone_width,
    directional_width,
    minimal_directional_width,
    pyramidal_directional_width,
    pyramidal_width,
)

__all__ = [
    "AtomicNorm",
    "Bracket",
    "Margins",
    "TooLargeError",
    "Width",
    "affine_linear_bound",
    "affine_linear_rate",
    "affine_sublinear_bound",
    "atomic_norm",
    "check_rates",
    "cone_width",
    "cone_width_bounds",
    "curvature_constant",
    "diameter",
    "directional_width",
    "generating_faces",
    "good_steps",
    "good_steps_bound",
    "linear_bound",
    "linear_rate",
    "minimal_directional_width",
    "pyramidal_directional_width",
    "pyramidal_width",
    "pyramidal_width_bounds",
    "radius",
    "rate_bounds",
    "strong_convexity_constant",
    "sublinear_bound",
]
