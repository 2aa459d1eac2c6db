"""Objectives of matrices that are kept as factors, so that sparse data stay sparse."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import kl_div

from conepursuit.arrays import EPS, Array, inner, norm
from conepursuit.atoms.base import Atoms
from conepursuit.atoms.rank_one import FactoredRankOnes
from conepursuit.linear import as_matrix
from conepursuit.low_rank import FactoredMatrix, product_at
from conepursuit.objectives.base import Objective
from conepursuit.objectives.quadratic import least_gap


class _FactoredObjective(Objective):
    """What objectives of a FactoredMatrix have in common."""

    def __init__(self, X: Any) -> None:
        given = as_matrix(X, "X")
        self.X = sparse.csr_array(given) if sparse.issparse(given) else given
        self.shape = tuple(self.X.shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape})"

    def origin(self) -> Any:
        return FactoredMatrix(np.zeros((0, self.shape[0])), np.zeros((0, self.shape[1])))


class FactoredLeastSquares(_FactoredObjective):
    """f(x) = 1/2 ||x - X||^2 for an x that is kept as factors; neither x nor x - X is formed.

    Parameters
    ----------
    X : array_like or scipy.sparse matrix of shape (m, n)
        The data.

    Notes
    -----
    f is computed as ``1/2 ||X||^2 - <X, x> + 1/2 ||x||^2``, so that its error is of the size of the
    rounding of ||X||^2. The atoms must be factored as well,
    ``NonnegativeRankOne(shape, factored=True)``.
    """

    quadratic = True
    smoothness = 1.0
    strong_convexity = 1.0

    def __init__(self, X: Any) -> None:
        super().__init__(X)
        data = self.X.data if sparse.issparse(self.X) else self.X
        self.square = float(np.vdot(data, data))
        self.minimizer_bound = float(np.sqrt(self.square))

    def value_and_gradient(self, x: Any) -> tuple[float, Any]:
        cross = float(np.vdot(x.left @ self.X, x.right)) if len(x.left) else 0.0
        value = 0.5 * self.square - cross + 0.5 * inner(x, x)
        return max(value, 0.0), FactoredMatrix(x.left, x.right, self.X, -1.0)

    def rounding(self, x: Any) -> float:
        return 8 * EPS * self.square

    def hessian(self, x: Any) -> Callable[[Any], Any]:
        return lambda d: d

    def curvature(self, x: Any, d: Any) -> float:
        return inner(d, d)

    def model(self, x: Any, atoms: Atoms, others: Atoms) -> Array:
        return atoms.gram(others)

    def conjugate(self, u: Any) -> float:
        return 0.5 * inner(u, u) + float(u.inner(self.X))

    def duality_gap(self, x: Any, value: float, gradient: Any, tilt: Any, largest: float) -> float:
        gx, gg = inner(gradient, x), 2.0 * value
        if tilt is None:
            return least_gap(gx, gg, 0.0, 0.0, 0.0, largest)
        tx, gt, tt = inner(tilt, x), inner(gradient, tilt), inner(tilt, tilt)
        return least_gap(gx, gg, tx, gt, tt, largest)


class FactoredKullbackLeibler(_FactoredObjective):
    """f(x) = sum_ij [X_ij log(X_ij / x_ij) - X_ij + x_ij] for a factored x and sparse X >= 0.

    Parameters
    ----------
    X : scipy.sparse matrix of shape (m, n)
        The data; entries that are not stored are zeros.

    Notes
    -----
    Only the entries of x where X is stored are looked at; the others count by their sum. The
    gradient, 1 - X / x, is a matrix of ones minus a sparse one.
    """

    def __init__(self, X: Any) -> None:
        if not sparse.issparse(X):
            raise ValueError(
                f"FactoredKullbackLeibler needs a scipy.sparse matrix; got {type(X).__name__}. "
                "Use KullbackLeibler(X) for an array."
            )
        super().__init__(X)
        if (self.X.data < 0).any():
            raise ValueError(f"X must not be negative; got {self.X.data.min()}.")

    def value_and_gradient(self, x: Any) -> tuple[float, Any]:
        model, total = (
            product_at(self.X, *x.factors),
            float(x.left.sum(axis=1) @ x.right.sum(axis=1)),
        )
        value = float(kl_div(self.X.data, model).sum()) + total - float(model.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.X.data > 0, self.X.data / model, 0.0)
        base = sparse.csr_array((ratio, self.X.indices, self.X.indptr), self.shape)
        ones = np.ones((1, self.shape[0])), np.ones((1, self.shape[1]))
        if not np.isfinite(ratio).all():
            return inf, FactoredMatrix(ones[0] * inf, ones[1])
        return value, FactoredMatrix(*ones, base, -1.0)

    def covering_atom(self) -> Atoms:
        """Return the product of the sums of rows and columns, positive where X is."""
        sums = np.asarray(self.X.sum(axis=1)), np.asarray(self.X.sum(axis=0))
        return FactoredRankOnes.of(*(each[None, :] / norm(each) for each in sums))

    def rounding(self, x: Any) -> float:
        return 8 * EPS * float(self.X.data.sum() + x.left.sum(axis=1) @ x.right.sum(axis=1))

    def curvature(self, x: Any, d: Any) -> float:
        share = product_at(self.X, *d.factors) / product_at(self.X, *x.factors)
        return float((self.X.data * share * share).sum())
