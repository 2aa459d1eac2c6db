"""What a non-negative least-squares fit returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.results import Status


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
        return np.flatnonzero(self.x) if self.x.ndim == 1 else self.x > 0

    def __repr__(self) -> str:
        if self.x.ndim == 1:
            proof = "proven" if self.proven else "estimate"
            return (
                f"NNLSResult({self.status.name}, n_iter={self.n_iter}, rnorm={self.rnorm:.6g}, "
                f"gap={self.gap:.2g} ({proof}), n_atoms={len(self.support)})"
            )
        names = sorted({status.name for status in self.status})
        return (
            f"NNLSResult({self.x.shape[1]} targets, {', '.join(names)}, "
            f"largest gap={self.gap.max(initial=0.0):.2g}, {int(np.sum(self.proven))} proven)"
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
