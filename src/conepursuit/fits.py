"""What a non-negative fit returns."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.results import Status

LARGEST = float(np.finfo(np.float64).max)
"""The largest number that a float can hold."""


class NNLSResult(tuple[Any, Any]):
    """Weights and residual norms, as `scipy.optimize.nnls` returns them, with the proof.

    It is the tuple ``(x, rnorm)`` with more attributes. With many targets every attribute has a
    last axis, or is an array, over the targets.

    Attributes
    ----------
    x : array of shape (n,) or (n, n_targets)
        The weights, none negative.
    rnorm : float or array
        ||A x - b||, computed from the data.
    dual : array, as x
        A'(A x - b), the multipliers of x >= 0: at the solution none is negative, and those of
        the support are zero.
    gap : float or array
        A bound on 1/2 ||A x - b||^2 minus the least possible value, or an estimate of one.
    proven : bool or array
        Whether the gap is a proof.
    status : Status or array
        Why the fit ended.
    n_iter : int or array
        How many linear systems were solved, or sweeps made where a fit is exact.
    support : array
        The indices of the positive weights; with many targets a boolean array of the shape of x.

    Notes
    -----
    With ``weights=`` all of them belong to the weighted problem.
    """

    x: Array
    rnorm: Any
    dual: Array
    gap: Any
    proven: Any
    status: Any
    n_iter: Any

    def __new__(
        cls, x: Array, rnorm: Any, dual: Array, gap: Any, proven: Any, status: Any, n_iter: Any
    ) -> NNLSResult:
        self = tuple.__new__(cls, (x, rnorm))
        # Squares that overflow prove nothing. To ask numpy of one number takes two microseconds.
        if not (isfinite(gap) if type(gap) is float else np.isfinite(gap).all()):
            proven = proven & np.isfinite(gap)
        self.__dict__ = {
            "x": x, "rnorm": rnorm, "dual": dual, "gap": gap,
            "proven": proven, "status": status, "n_iter": n_iter,
        }  # fmt: skip
        return self

    def __getnewargs__(self) -> Any:  # so that it can be pickled and copied
        return tuple(vars(self).values())

    @property
    def support(self) -> Array:
        """Where the weights are positive."""
        return support_of(self.x)

    def __repr__(self) -> str:
        return described(self, "rnorm")


@dataclass(frozen=True, eq=False)
class FitResult:
    """Weights that minimise a loss, with the proof.

    With many targets every attribute has a last axis, or is an array, over the targets.

    Attributes
    ----------
    x : array of shape (n,) or (n, n_targets)
        The weights, none negative.
    value : float or array
        f(A x), with the penalty, computed from the data.
    dual : array, as x
        The slope of every atom, with the penalty: at the solution none is negative, and those of
        the support are zero.
    gap : float or array
        A bound on `value` minus the least possible value, or an estimate of one.
    proven : bool or array
        Whether the gap is a proof.
    status : Status or array
        Why the fit ended.
    n_iter : int or array
        How many steps were made.
    """

    x: Array
    value: Any
    dual: Array
    gap: Any
    proven: Any
    status: Any
    n_iter: Any

    def __post_init__(self) -> None:
        known = np.isfinite(self.gap)
        if not known.all():  # numbers overflowed on the way to it
            object.__setattr__(self, "gap", np.where(known, self.gap, np.inf)[()])
            object.__setattr__(self, "proven", self.proven & known)

    @property
    def support(self) -> Array:
        """Where the weights are positive: indices, or for many targets an array of bool."""
        return support_of(self.x)

    def __repr__(self) -> str:
        return described(self, "value")


def support_of(x: Array) -> Array:
    """Return the indices of positive weights; of many targets an array of bool."""
    return np.flatnonzero(x) if x.ndim == 1 else x > 0


def described(fit: Any, measure: str) -> str:
    """Return a fit in words, with one of its attributes; of many targets a summary."""
    name = type(fit).__name__
    if fit.x.ndim == 1:
        proof = "proven" if fit.proven else "estimate"
        reached = f"{measure}={getattr(fit, measure):.6g}"
        return (
            f"{name}({fit.status.name}, n_iter={fit.n_iter}, {reached}, "
            f"gap={fit.gap:.2g} ({proof}), n_atoms={len(fit.support)})"
        )
    names = sorted({status.name for status in fit.status})
    return (
        f"{name}({fit.x.shape[1]} targets, {', '.join(names)}, "
        f"largest gap={fit.gap.max(initial=0.0):.2g}, {int(np.sum(fit.proven))} proven)"
    )


STATUSES = (
    Status.STATIONARY,
    Status.STALLED,
    Status.MAX_ITER,
    Status.MAX_ATOMS,
    Status.CONVERGED,
)
"""In the order of the codes of the kernels."""


def inverted(norms: Vector) -> Vector:
    """Return 1 / norms, 0 for 0."""
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)


def times_powers(array: Any, powers: Any) -> Any:
    """Return an array times powers of two, within what a float can hold."""
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(np.ldexp(array, powers), -LARGEST, LARGEST)


def gap_times_power(gap: float, power: int) -> float:
    """Return a bound times a power of two, rounded up.

    What underflow took from data that were divided by powers of two is below 2^-1000 of f(0) and
    is added as that.
    """
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(np.ldexp(gap + 2.0**-1000, power), np.inf))


def scaled_back(x: Array, powers: Array) -> tuple[Array, bool]:
    """Return weights times powers of two, and whether no digit of them was lost.

    Digits are lost where a weight is larger than any float, or less than a normal one.
    """
    back: Array = times_powers(x, powers)
    return back, bool((times_powers(back, -powers) == x).all())
