"""Objectives of matrices and tensors that are kept as factors, so that sparse data stay sparse."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import kl_div

from conepursuit.arrays import EPS, Array, Vector, inner, norm
from conepursuit.atoms.base import Atoms
from conepursuit.atoms.rank_one import FactoredRankOnes
from conepursuit.linear import as_matrix
from conepursuit.low_rank import kept_as_factors, product_at
from conepursuit.objectives.base import Objective
from conepursuit.objectives.quadratic import least_gap
from conepursuit.tensors import (
    SparseTensor,
    as_tensor,
    component_products,
    is_sparse_tensor,
    marginals,
)


class _FactoredObjective(Objective):
    """What objectives of matrices and tensors kept as factors have in common."""

    def __init__(self, X: Any) -> None:
        if len(np.shape(X)) > 2:
            self.X = as_tensor(X, "X")
        else:
            given = as_matrix(X, "X")
            self.X = sparse.csr_array(given) if sparse.issparse(given) else given
        self.shape = tuple(self.X.shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape})"

    def origin(self) -> Any:
        return kept_as_factors([np.zeros((0, n)) for n in self.shape])


class FactoredLeastSquares(_FactoredObjective):
    """f(x) = 1/2 ||x - X||^2 for an x that is kept as factors; neither x nor x - X is formed.

    Parameters
    ----------
    X : array_like, scipy.sparse matrix, or sparse array of more axes in COO form
        The data; tensors are of SciPy or of pydata's `sparse`.

    Notes
    -----
    f is computed as ``1/2 ||X||^2 - <X, x> + 1/2 ||x||^2``, so that its error is of the size of the
    rounding of ||X||^2. The atoms must be factored as well,
    ``NonnegativeRankOne(shape, factored=True)`` or `NonnegativeRankOneTensor`.
    """

    quadratic = True
    smoothness = 1.0
    strong_convexity = 1.0

    def __init__(self, X: Any) -> None:
        super().__init__(X)
        data = self.X if isinstance(self.X, np.ndarray) else self.X.data
        self.square = float(np.vdot(data, data))
        self.minimizer_bound = float(np.sqrt(self.square))

    def value_and_gradient(self, x: Any) -> tuple[float, Any]:
        cross = float(component_products(self.X, x.factors).sum()) if len(x.factors[0]) else 0.0
        value = 0.5 * self.square - cross + 0.5 * inner(x, x)
        return max(value, 0.0), kept_as_factors(x.factors, self.X, -1.0)

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
    """f(x) = sum_i [X_i log(X_i / x_i) - X_i + x_i] for a factored x and sparse X >= 0.

    Parameters
    ----------
    X : scipy.sparse matrix, or sparse array of more axes in COO form
        The data; entries that are not stored are zeros.

    Notes
    -----
    Only the entries of x where X is stored are looked at; the others count by their sum. The
    gradient, 1 - X / x, is a matrix of ones minus a sparse one.
    """

    def __init__(self, X: Any) -> None:
        if not (sparse.issparse(X) or is_sparse_tensor(X)):
            raise ValueError(
                f"FactoredKullbackLeibler needs a sparse matrix or tensor; got {type(X).__name__}. "
                "Use KullbackLeibler(X) for an array."
            )
        super().__init__(X)
        if (self.X.data < 0).any():
            raise ValueError(f"X must not be negative; got {self.X.data.min()}.")

    def value_and_gradient(self, x: Any) -> tuple[float, Any]:
        model = self._at(x)
        value = float(kl_div(self.X.data, model).sum()) + total_of(x) - float(model.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.X.data > 0, self.X.data / model, 0.0)
        first, *others = (np.ones((1, n)) for n in self.shape)
        if not np.isfinite(ratio).all():
            return inf, kept_as_factors([first * inf, *others])
        if isinstance(self.X, SparseTensor):
            base: Any = SparseTensor(self.X.places, ratio)
        else:
            base = sparse.csr_array((ratio, self.X.indices, self.X.indptr), self.shape)
        return value, kept_as_factors([first, *others], base, -1.0)

    def _at(self, x: Any) -> Vector:
        """Return the entries of x where X is stored."""
        if isinstance(self.X, SparseTensor):
            return self.X.at(x.factors)
        return product_at(self.X, *x.factors)

    def covering_atom(self) -> Atoms:
        """Return the product of the sums over all axes but one, positive where X is."""
        return FactoredRankOnes.of(*(sums / norm(sums) for sums in marginals(self.X)))

    def rounding(self, x: Any) -> float:
        return 8 * EPS * (float(self.X.data.sum()) + total_of(x))

    def curvature(self, x: Any, d: Any) -> float:
        share = self._at(d) / self._at(x)
        return float((self.X.data * share * share).sum())


def total_of(x: Any) -> float:
    """Return the sum of all entries of a tensor that is kept as factors, without `base`."""
    sums = [factor.sum(axis=1) for factor in x.factors]
    return float(np.prod(sums, axis=0).sum())
