"""What a non-negative fit returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from conepursuit.arrays import Array
from conepursuit.status import Status


class Labels(NamedTuple):
    """The names of the atoms and of the targets of a fit, None where the input has none."""

    atoms: Any = None
    targets: Any = None


class NNLSResult(tuple[Any, Any]):
    """Weights and residual norms, as `scipy.optimize.nnls` returns them, with the proof.

    It is the tuple ``(x, rnorm)`` with more attributes. With many targets every attribute has a
    last axis, or is an array, over the targets; with targets in a Dask array it is one too.

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
    sum_multiplier : float, array or None
        With ``sum_to=`` or ``sum_at_most=``, mu, the multiplier of the sum of weights: f falls by
        mu for each unit that the sum may grow. A'(A x - b) is -mu on the support, and ``dual`` is
        A'(A x - b) + mu. Without a condition on the sum it is None.
    n_passes : float or None
        For a dictionary in a Dask array, how often its blocks were read; None in memory.
    labels : Labels
        The names of the columns of A and of b, where they are tables; `to_frame` uses them.

    Notes
    -----
    With ``weights=`` all of them belong to the weighted problem.
    """

    measure = "rnorm"

    x: Array
    rnorm: Any
    dual: Array
    gap: Any
    proven: Any
    status: Any
    n_iter: Any
    sum_multiplier: Any
    n_passes: float | None = None
    labels: Labels = Labels()

    def __new__(
        cls,
        x: Array,
        rnorm: Any,
        dual: Array,
        gap: Any,
        proven: Any,
        status: Any,
        n_iter: Any,
        sum_multiplier: Any = None,
    ) -> NNLSResult:
        self = tuple.__new__(cls, (x, rnorm))
        # A gap that overflows proves nothing. `isfinite` of math saves two microseconds.
        if not (isfinite(gap) if type(gap) is float else _all_finite(gap)):
            known = np.isfinite(gap)
            gap, proven = np.where(known, gap, np.inf)[()], proven & known
        self.__dict__ = {
            "x": x, "rnorm": rnorm, "dual": dual, "gap": gap,
            "proven": proven, "status": status, "n_iter": n_iter, "sum_multiplier": sum_multiplier,
        }  # fmt: skip
        return self

    def __getnewargs__(self) -> Any:  # so that it can be pickled and copied
        return tuple(vars(self).values())[:8]

    @property
    def support(self) -> Array:
        """Where the weights are positive."""
        return support_of(self.x)

    def named(self, labels: Labels) -> NNLSResult:
        """Return this result with the names of its atoms and targets."""
        self.labels = labels
        return self

    def to_frame(self) -> Any:
        """Return the weights as a pandas DataFrame, with a row for each atom.

        For one target its columns are "weight" and "dual"; for many it has the weights, with a
        column for each target. Rows and columns have the names of the columns of A and b.

        >>> import pandas as pd
        >>> from conepursuit import nnls
        >>> A = pd.DataFrame({"iron": [1.0, 0.0], "water": [0.0, 2.0]})
        >>> nnls(A, [3.0, 4.0]).to_frame()["weight"].to_dict()
        {'iron': 3.0, 'water': 2.0}
        """
        return frame_of(self)

    def __repr__(self) -> str:
        return described(self)


@dataclass(frozen=True, eq=False)
class FitResult:
    """Weights that minimise a loss, with the proof.

    With many targets every attribute has a last axis, or is an array, over the targets; with
    targets in a Dask array it is one too.

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
    n_passes : float or None
        For a matrix in a Dask array, how often its blocks were read; None in memory.
    labels : Labels
        The names of the columns of A and of the data, where they are tables; `to_frame` uses them.
    """

    measure: ClassVar[str] = "value"

    x: Array
    value: Any
    dual: Array
    gap: Any
    proven: Any
    status: Any
    n_iter: Any
    n_passes: float | None = None
    labels: Labels = field(default_factory=Labels, repr=False)

    def __post_init__(self) -> None:
        if not _all_finite(self.gap):  # numbers overflowed on the way to it
            known = np.isfinite(self.gap)
            object.__setattr__(self, "gap", np.where(known, self.gap, np.inf)[()])
            object.__setattr__(self, "proven", self.proven & known)

    @property
    def support(self) -> Array:
        """Where the weights are positive: indices, or for many targets an array of bool."""
        return support_of(self.x)

    def to_frame(self) -> Any:
        """Return the weights as a pandas DataFrame, as `NNLSResult.to_frame` does."""
        return frame_of(self)

    def __repr__(self) -> str:
        return described(self)


def _all_finite(gap: Any) -> bool:
    """Return whether gaps are finite; those of a lazy result have been looked at in each block."""
    return not isinstance(gap, float | np.ndarray) or bool(np.isfinite(gap).all())


def support_of(x: Array) -> Array:
    """Return the indices of positive weights; for many targets an array of bool."""
    return np.flatnonzero(x) if x.ndim == 1 else x > 0


def frame_of(fit: NNLSResult | FitResult) -> Any:
    """Return the weights of a fit, and of one target the duals, as a pandas DataFrame."""
    from pandas import DataFrame

    if fit.x.ndim == 1:
        return DataFrame({"weight": fit.x, "dual": fit.dual}, index=fit.labels.atoms)
    return DataFrame(fit.x, index=fit.labels.atoms, columns=fit.labels.targets)


def described(fit: NNLSResult | FitResult) -> str:
    """Return the text that represents a fit; for many targets a summary."""
    name = type(fit).__name__
    if fit.x.ndim == 1:
        proof = "proven" if fit.proven else "estimate"
        reached = f"{fit.measure}={getattr(fit, fit.measure):.6g}"
        return (
            f"{name}({fit.status.name}, n_iter={fit.n_iter}, {reached}, "
            f"gap={fit.gap:.2g} ({proof}), n_atoms={len(fit.support)})"
        )
    if not isinstance(fit.x, np.ndarray):
        return f"{name}({fit.x.shape[1]} targets, not computed yet)"
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
    Status.STOPPED,
)
"""The status for each code of the kernels, in the order of `kernels.constants`, and `STOPPED`."""

STOPPED = 5
"""The code of a fit that its callback has ended, which no kernel returns."""


def lazy_fields(kind: type[NNLSResult | FitResult], n: int) -> dict[str, tuple[int | None, Any]]:
    """Return the fields of the results of many targets on n atoms, for `lazy.fit_blocks`."""
    numbers = ((None, float), (n, float), (None, float), (None, bool), (None, object), (None, int))
    names = (kind.measure, "dual", "gap", "proven", "status", "n_iter")
    return {"x": (n, float), **dict(zip(names, numbers, strict=True))}


F = TypeVar("F", NNLSResult, FitResult)


class Fits(Generic[F]):
    """The results of many targets, a row for each, written as they are found.

    Parameters
    ----------
    kind : NNLSResult or FitResult
        What the results are.
    n_targets, n : int
        How many targets and atoms there are.
    """

    def __init__(self, kind: type[F], n_targets: int, n: int) -> None:
        self.kind: Any = kind
        self.x, self.dual = np.empty((n_targets, n)), np.empty((n_targets, n))
        self.measure, self.gap = np.empty(n_targets), np.empty(n_targets)
        self.proven = np.empty(n_targets, dtype=bool)
        self.code = np.zeros(n_targets, dtype=np.int64)
        self.n_iter = np.empty(n_targets, dtype=np.int64)
        self._known: dict[int, Status] = {}

    def rows(self, part: slice) -> tuple[Array, ...]:
        """Return the rows of some targets, as views that a kernel writes to."""
        columns = (
            self.x, self.dual, self.measure, self.gap, self.proven, self.code, self.n_iter,
        )  # fmt: skip
        return tuple(column[part] for column in columns)

    def put(self, i: int, fit: F) -> None:
        """Write the result of one target."""
        self.x[i], self.dual[i], self.gap[i] = fit.x, fit.dual, fit.gap
        self.measure[i] = getattr(fit, fit.measure)
        self.proven[i], self.n_iter[i], self._known[i] = fit.proven, fit.n_iter, fit.status

    def end(self, i: int, status: Status) -> None:
        """Set the status of one target, in place of that of the kernel's code."""
        self._known[i] = status

    def result(self) -> F:
        """Return the results of all targets as one result."""
        status = np.full(len(self.code), STATUSES[0], dtype=object)
        for i in np.flatnonzero(self.code > 0):
            status[i] = STATUSES[self.code[i]]
        for place, known in self._known.items():
            status[place] = known
        result: F = self.kind(
            self.x.T, self.measure, self.dual.T, self.gap, self.proven, status, self.n_iter
        )
        return result
