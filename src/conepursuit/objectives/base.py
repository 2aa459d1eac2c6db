"""The contract of an objective, and an objective made from a user's function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import EPS, Array, as_float_array, inner, zeros
from conepursuit.atoms.base import Atoms
from conepursuit.atoms.vectors import as_shape
from conepursuit.linear import dense

LARGEST_SCALE = 2.0
"""Dual points are multiples of the gradient, or of the gradient and a tilt, by up to this factor.

A larger one would multiply the rounding of entries that are nearly zero.
"""


class Objective(ABC):
    """A smooth convex function on arrays of one shape.

    A subclass needs `shape` and `value_and_gradient`; whatever else it knows makes more step
    rules, faster refits and proven gaps available. Outside its domain a function returns inf.

    Attributes
    ----------
    shape : tuple of int
        Shape of the argument.
    smoothness : float or None
        L, a true upper bound on the curvature; None where there is none.
    strong_convexity : float
        mu, a lower bound on the curvature.
    quadratic : bool
        Whether the Hessian is constant.
    minimizer_bound : float or None
        A bound on ||x*|| over every cone.
    row_labels, column_labels : pandas.Index, list or None
        The names of the rows and columns of the data, where these are a table.
    """

    shape: tuple[int, ...]
    smoothness: float | None = None
    strong_convexity: float = 0.0
    quadratic: bool = False
    minimizer_bound: float | None = None
    row_labels: Any = None
    column_labels: Any = None

    @abstractmethod
    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Return f(x) and its gradient."""

    def origin(self) -> Array:
        """Return x = 0."""
        return zeros(self.shape)

    def value(self, x: Array) -> float:
        """Return f(x)."""
        return self.value_and_gradient(x)[0]

    def hessian(self, x: Array) -> Callable[[Array], Array] | None:
        """Return the function d -> H(x) d, or None where it is not available.

        With a matrix H that is ``lambda d: H @ d``.
        """
        return None

    def rounding(self, x: Array) -> float:
        """Return the rounding of f(x) by terms larger than it that cancel; 0 if none do."""
        return 0.0

    def gap_rounding(
        self, x: Array, value: float, size: Array | float, drift: Array | float
    ) -> float:
        """Return how far f(x) + f*(u) - <u, x> may be below its exact value.

        Parameters
        ----------
        x, value : array, float
            A point, and f there.
        size : array or float
            A bound on the entries of the gradient and of u; a number bounds their norms.
        drift : array or float
            How far each entry of x may be from the exact point; a number bounds the norm instead.

        Notes
        -----
        The default trusts the value and the conjugate up to a few units in the last place of f(x)
        and to `rounding`.
        """
        return 16 * EPS * abs(value) + 2 * self.rounding(x)

    def recedes(self, d: Array) -> bool:
        """Return whether f falls without end along d, so that it has no minimiser there."""
        return False

    def covering_atom(self) -> Atoms | None:
        """Return an atom on whose multiples f is finite, None where none is known beforehand.

        For an f that is infinite at the origin: a run begins at the best multiple of it.
        """
        return None

    @property
    def counted(self) -> Array | bool:
        """Which entries of x matter, an array of bool; True for all of them."""
        return True

    def admissible(self, u: Array, level: float) -> Array:
        """Return a point of the domain of f* close to u, as far as it is known.

        Entries that are smaller than `level` may become zero.
        """
        return u

    def imbalance(self, u: Array) -> float:
        """Return how far, in norm, `duality_gap` may move u into the domain of f*.

        If <u, a> is at least this times ||a||, then the inner product of a with the moved point is
        not negative.
        """
        return 0.0

    def curvature(self, x: Array, d: Array) -> float | None:
        """Return <d, H(x) d>, or None where it is not available."""
        hessian = hessian_at(self, x)
        return None if hessian is None else inner(d, hessian(d))

    def model(self, x: Array, atoms: Atoms, others: Atoms) -> Array | None:
        """Return (<a_i, H(x) b_j>)_ij, where b are the `others`; None if H is not available."""
        hessian = hessian_at(self, x)
        if hessian is None:
            return None
        block = [atoms.inner(hessian(others[[j]].combine(np.ones(1)))) for j in range(len(others))]
        return np.stack(block, axis=1)

    def curvatures_along(self, x: Array, matrix: Any) -> Array | None:
        """Return <a_j, H(x) a_j> for every column of a matrix; None if H is not available."""
        hessian = hessian_at(self, x)
        if hessian is None:
            return None
        columns = (dense(matrix[:, [j]])[:, 0] for j in range(matrix.shape[1]))
        return np.array([inner(a, hessian(a)) for a in columns])

    def conjugate(self, u: Array) -> float | None:
        """Return f*(u) = sup_x <u, x> - f(x), inf outside its domain, None where unknown."""
        return None

    def excess(self, value: float) -> float:
        """Return f(x) minus the infimum of f over all x, from f(x); inf where that is not known.

        It is a bound on f(x) - f* over every domain, a good one where x fits the data exactly.
        """
        at_zero = self.conjugate(0.0 * self.origin())
        return inf if at_zero is None else value + at_zero

    def duality_gap(
        self, x: Array, value: float, gradient: Array, tilt: Array | None, largest: float
    ) -> float | None:
        """Return the least f(x) + f*(s q) over 0 <= s <= largest, q = gradient + tilt.

        No s above `LARGEST_SCALE` is tried.

        Any s gives a bound; the default tries s = 1, the best one at a minimiser, and s = 0.
        """
        q = gradient if tilt is None else gradient + tilt
        bounds = [self.conjugate(min(1.0, largest) * q), self.conjugate(0.0 * q)]
        known = [b for b in bounds if b is not None]
        return value + min(known) if known else None


class FunctionObjective(Objective):
    """An objective given by a function that returns its value and gradient.

    Parameters
    ----------
    function : callable
        ``function(x)`` returns ``(value, gradient)``. Outside the domain the value is inf.
    shape : int or tuple of int
        Shape of x.
    smoothness : float, optional
        L. Without it use ``AdaptiveStep``, which needs none.
    strong_convexity : float
        mu.
    conjugate : callable, optional
        ``conjugate(u)`` returns f*(u); it makes proven gaps possible.
    """

    def __init__(
        self,
        function: Callable[[Array], tuple[float, Any]],
        shape: int | tuple[int, ...],
        *,
        smoothness: float | None = None,
        strong_convexity: float = 0.0,
        conjugate: Callable[[Array], float] | None = None,
    ) -> None:
        if smoothness is not None and not 0 < smoothness < inf:
            raise ValueError(
                f"smoothness is L, positive and finite; got {smoothness}. "
                "Leave it out and use AdaptiveStep where there is none."
            )
        if not callable(function):
            raise ValueError(
                "FunctionObjective needs a function of x that returns value and gradient; "
                f"got {type(function).__name__}."
            )
        self.function = function
        self.shape = as_shape(shape)
        self.smoothness, self.strong_convexity = smoothness, strong_convexity
        self._conjugate = conjugate

    def __repr__(self) -> str:
        return f"FunctionObjective({getattr(self.function, '__name__', self.function)})"

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        try:
            value, gradient = self.function(x)
        except (TypeError, ValueError) as reason:
            if "unpack" not in str(reason):
                raise
            raise ValueError(
                "the function of a FunctionObjective must return (value, gradient); "
                "it returned something else."
            ) from reason
        check_real(value, gradient)
        gradient = np.asarray(gradient, dtype=np.float64)
        if gradient.shape != self.shape:
            raise ValueError(
                f"the function must return a gradient of shape {self.shape}; got {gradient.shape}."
            )
        return float(value), gradient

    def conjugate(self, u: Array) -> float | None:
        return None if self._conjugate is None else float(self._conjugate(u))


def hessian_at(objective: Objective, x: Array) -> Callable[[Array], Array] | None:
    """Return `objective.hessian(x)`, or raise a TypeError if that is no function."""
    hessian = objective.hessian(x)
    if hessian is None or callable(hessian):
        return hessian
    raise TypeError(
        f"hessian(x) of {type(objective).__name__} must return a function d -> H(x) d, or None; "
        f"it returned {type(hessian).__name__} of shape {np.shape(hessian)}. With a matrix H "
        "return lambda d: H @ d, with a vector h of curvatures lambda d: h * d."
    )


def check_real(value: Any, gradient: Any) -> None:
    """Raise a ValueError if a value or a gradient is complex, whose imaginary part is lost."""
    for name, given in (("value", value), ("gradient", gradient)):
        dtype = np.asarray(given).dtype if isinstance(given, list | tuple | complex) else None
        dtype = getattr(given, "dtype", dtype)
        if getattr(dtype, "kind", "") == "c" or getattr(dtype, "is_complex", False):
            raise ValueError(
                f"the {name} of an objective must be real; got complex numbers. Return its real "
                "part, such as 2 * (A.conj().T @ r).real for the gradient of ||A x - b||^2."
            )


def as_target(y: Any, name: str = "y") -> Array:
    """Return the data of an objective: finite, float64, at least one entry."""
    target = as_float_array(y, name)
    if target.ndim == 0 or 0 in target.shape:
        raise ValueError(f"{name} needs at least one entry and one axis; got shape {target.shape}.")
    return target
