"""Reading the arguments of fits under any loss: the objective, the matrix and the penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from conepursuit.arrays import Array, inside, is_number
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.labels import aligned
from conepursuit.linear import is_blocks, is_dask
from conepursuit.matrix_fits.lazy import whole_targets
from conepursuit.matrix_fits.safe_units import SafeUnits, column_powers, times_powers
from conepursuit.objectives import EntrywiseLoss, Objective
from conepursuit.objectives.lazy import LazyLoss
from conepursuit.pursuit.domains import Cone
from conepursuit.pursuit.starts import check_rows

SAFE, SAFE_DATA = 400, 500
"""The largest exponents of two, in size, that are safe for columns of A and for data.

Up to SAFE, products of squares of columns neither overflow nor underflow; beyond, columns are
divided by powers of two. Up to SAFE_DATA, squares of data do not; beyond, data are refused.
"""


def problem_of(objective: Any, A: Any, penalty: Any) -> tuple[Any, Cone]:
    """Return the objective, and the cone of the columns of A with the penalty, checked."""
    if not isinstance(objective, Objective | LazyLoss):
        raise ValueError(
            f"the objective must be an Objective of A x; got {type(objective).__name__}. "
            "Use Poisson(counts), say."
        )
    if type(A) is np.ndarray and not A.flags.forc:
        A = np.ascontiguousarray(A)  # in another process it would be, with other last bits
    if not isinstance(A, Dictionary):
        A = aligned(A, objective.row_labels, "A", "the data")
        blocks = inside(A)
        if is_dask(blocks) and blocks.ndim == 2 and min(blocks.numblocks) > 1:
            A = whole_targets(blocks, 1, "A")
        A = Dictionary(A)
    atoms: Dictionary = A
    cone = Cone(atoms, penalty=float(penalty) if is_number(penalty) else penalty)
    rows = tuple(objective.shape)
    many = isinstance(objective, EntrywiseLoss | LazyLoss) and len(rows) == 2
    if rows[:1] != atoms.shape or not (many or len(rows) == 1):
        raise ValueError(
            f"{objective!r} must have one entry, or one row of targets, for each row of A; "
            f"got A of shape {tuple(atoms.matrix.shape)}."
        )
    if isinstance(objective, LazyLoss) and is_blocks(atoms.matrix):
        raise ValueError(
            "A and the data of the loss are both Dask arrays, and one of them must be in memory. "
            "Use A.compute(), or y.compute() for a few targets."
        )
    if isinstance(objective, Objective):
        check_rows(objective, atoms)
        check_size(objective)
    return objective, cone


def check_in_memory(atoms: Dictionary, what: str) -> None:
    """Raise a ValueError if the atoms are columns of a Dask array, which `what` does not take."""
    if is_blocks(atoms.matrix):
        raise ValueError(
            f"{what} copies the columns that it tries, which a Dask array is too large for. Use "
            "nnfit without a limit on the atoms, nnls_path for least squares, or minimize with "
            "FCMP() and max_atoms=, which takes one atom after the other."
        )


def check_size(objective: Objective) -> None:
    """Raise a ValueError if the squares of the data of a loss overflow or underflow.

    A loss whose slopes have a bound needs no squares and takes data of any size.
    """
    if isinstance(objective, EntrywiseLoss) and not objective.bounded_slopes:
        largest = float(np.abs(objective.y).max())
        if largest and abs(np.frexp(largest)[1]) > SAFE_DATA:
            raise ValueError(
                f"the data of {objective!r} are so large or small that their squares overflow or "
                f"underflow; the largest is {largest:.3g}. Multiply them by a constant, and x "
                "with them."
            )


def unsafe_powers(atoms: Dictionary, penalty: float) -> Array | None:
    """Return the powers of two to divide the atoms by; None if their squares are safe.

    With a penalty it is the same power for all, since the penalty on a unit of weight is divided by
    it as well and must stay the same for all atoms.
    """
    if isinstance(atoms.matrix, LinearOperator):
        return None
    if is_blocks(atoms.matrix):
        _check_blocks(atoms)
        return None
    powers = column_powers(atoms.matrix)
    if (np.abs(powers) <= SAFE).all():
        return None
    return np.full_like(powers, powers.max()) if penalty else powers


def _check_blocks(atoms: Dictionary) -> None:
    """Raise a ValueError if squares of columns in a Dask array overflow or underflow."""
    norms = atoms.norms
    assert norms is not None
    used = norms[~atoms.matrix.facts().zero]
    if len(used) and not (2.0**-SAFE < used.min() <= used.max() < 2.0**SAFE):
        raise ValueError(
            "columns of A are so large or small that their squares overflow or underflow; their "
            f"lengths are between {used.min():.3g} and {used.max():.3g}. Scale the Dask array, "
            "such as A / A.max()."
        )


def in_safe_units(cone: Cone) -> tuple[Cone, SafeUnits | None]:
    """Return the cone with atoms whose squares are safe, and how to come back; None if they are."""
    atoms = cone.atoms
    assert isinstance(atoms, Dictionary)
    powers = unsafe_powers(atoms, cone.penalty)
    if powers is None:
        return cone, None
    units, functional = SafeUnits(powers), atoms.positive_functional()
    scaled = Dictionary(units.matrix(atoms.matrix), functional=functional)
    price = float(times_powers(cone.penalty, -int(powers[0]))) if cone.penalty else 0.0
    return Cone(scaled, penalty=price), units
