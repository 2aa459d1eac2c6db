"""Baselines of the factorisation experiments, from their publications.

All take non-negative data X and a number of components k and return W, of shape (rows, k), H, of
shape (k, cols), and the objective after each iteration: 1/2 ||X - W H||^2 or the divergence

    sum_ij x_ij log(x_ij / (W H)_ij) - x_ij + (W H)_ij.

References
----------
[1] D. D. Lee, H. S. Seung. Algorithms for Non-negative Matrix Factorization. Advances in Neural
Information Processing Systems 13, 2001.
[2] M. W. Berry, M. Browne, A. N. Langville, V. P. Pauca, R. J. Plemmons. Algorithms and
applications for approximate nonnegative matrix factorization. Computational Statistics & Data
Analysis 52(1), 2007.
[3] C.-J. Hsieh, I. S. Dhillon. Fast coordinate descent methods with variable selection for
non-negative matrix factorization. International Conference on Knowledge Discovery and Data Mining,
2011.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse
from scipy.special import rel_entr

from conepursuit.arrays import EPS, Array, Vector
from conepursuit.kernels import factorization as kernels

Data: TypeAlias = Any
"""Non-negative data: an array or, where that is said, a sparse one."""

Factors: TypeAlias = tuple[Array, Array, Vector]
"""W, H and the objective after each iteration."""

RATIO = 1e-3
"""Share of the largest decrease at which greedy coordinate descent leaves a factor, as in [3]."""


def multiplicative(
    X: Data,
    n_components: int,
    *,
    max_iter: int = 100,
    random_state: int | None = None,
    loss: Literal["squared_error", "kullback_leibler"] = "squared_error",
) -> Factors:
    """Multiply each entry by the ratio of the two parts of its slope [1]; X may be sparse."""
    X, W, H = prepared(X, n_components, random_state)
    ratio, objective = {
        "squared_error": (_squared_ratio, squared_error),
        "kullback_leibler": (_kl_ratio, divergence),
    }[loss]
    transposed, values = by_rows(X.T), np.empty(max_iter)
    for i in range(max_iter):
        W *= ratio(X, W, H)
        H *= ratio(transposed, H.T, W.T).T
        values[i] = objective(X, W, H)
    return W, H, values


def alternating_least_squares(
    X: Data, n_components: int, *, max_iter: int = 100, random_state: int | None = None
) -> Factors:
    """Solve for a factor without its bounds, then clip it at zero [2]; X may be sparse.

    After clipping the objective may rise, and rounding decides where it goes.
    """
    X, W, H = prepared(X, n_components, random_state)
    values = np.empty(max_iter)
    for i in range(max_iter):
        H = np.maximum(np.linalg.pinv(W.T @ W, hermitian=True) @ (X.T @ W).T, 0.0)
        W = np.maximum((X @ H.T) @ np.linalg.pinv(H @ H.T, hermitian=True), 0.0)
        values[i] = squared_error(X, W, H)
    return W, H, values


def greedy_coordinate_descent(
    X: Data, n_components: int, *, max_iter: int = 100, random_state: int | None = None
) -> Factors:
    """Update the entry of each row that lowers the objective most, time and again [3].

    X may be sparse. Beyond [3], no row is updated more than k^2 times in an iteration.
    """
    X, W, H = prepared(X, n_components, random_state)
    F, G, most = np.ascontiguousarray(W.T), H, n_components**2
    values = np.empty(max_iter)
    for i in range(max_iter):
        kernels.greedy_sweep(G @ G.T, np.ascontiguousarray((X @ G.T).T), F, 0.0, 0.0, RATIO, most)
        kernels.greedy_sweep(F @ F.T, np.ascontiguousarray((X.T @ F.T).T), G, 0.0, 0.0, RATIO, most)
        values[i] = squared_error(X, F.T, G)
    return np.ascontiguousarray(F.T), G, values


def cyclic_kl(
    X: Array, n_components: int, *, max_iter: int = 100, random_state: int | None = None
) -> Factors:
    """Make a Newton step on the divergence along each entry in turn [3]; X is dense.

    Where a step would go so far beyond the minimum of its entry that the divergence might rise, a
    multiplicative step is made instead; [3] makes more Newton steps.
    """
    X, W, H = prepared(X, n_components, random_state)
    F, G, transposed = np.ascontiguousarray(W.T), H, by_rows(X.T)
    floor, values = EPS * float(X.mean()), np.empty(max_iter)
    for i in range(max_iter):
        kernels.cyclic_kl_sweep(X, F, G, floor)
        kernels.cyclic_kl_sweep(transposed, G, F, floor)
        values[i] = divergence(X, F.T, G)
    return np.ascontiguousarray(F.T), G, values


def prepared(X: Data, n_components: int, random_state: int | None) -> tuple[Data, Array, Array]:
    """Return the data in float64, by rows, and a uniform start whose product has their mean."""
    X = by_rows(X)
    if entries(X).min(initial=0.0) < 0.0:
        raise ValueError("X must be non-negative")
    rng, size = np.random.default_rng(random_state), 2.0 * np.sqrt(X.mean() / n_components)
    W = size * rng.random((X.shape[0], n_components))
    return X, W, size * rng.random((n_components, X.shape[1]))


def by_rows(X: Data) -> Data:
    """Return the data in float64, contiguous or stored by rows."""
    if sparse.issparse(X):
        return sparse.csr_array(X, dtype=np.float64)
    return np.ascontiguousarray(X, dtype=np.float64)


def entries(X: Data) -> Array:
    """Return all entries of an array, or those that are stored."""
    return X.data if sparse.issparse(X) else np.asarray(X)


def fitted(X: Data, W: Array, H: Array) -> Array:
    """Return W H, for sparse X by rows where that has entries."""
    if not sparse.issparse(X):
        return np.asarray(W @ H)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.asarray(np.einsum("ij,ij->i", W[rows], H.T[X.indices]))


def squared_error(X: Data, W: Array, H: Array) -> float:
    """Return 1/2 ||X - W H||^2; for sparse X from its expansion, which forms nothing dense."""
    if sparse.issparse(X):
        products = np.vdot(W.T @ W, H @ H.T) - 2.0 * np.vdot(X @ H.T, W)
        return 0.5 * float(np.vdot(X.data, X.data) + products)
    return 0.5 * float(np.square(X - W @ H).sum())


def divergence(X: Data, W: Array, H: Array) -> float:
    """Return the divergence of W H from X."""
    mass = float(W.sum(axis=0) @ H.sum(axis=1))
    return float(rel_entr(entries(X), fitted(X, W, H)).sum() - X.sum()) + mass


def _squared_ratio(X: Data, W: Array, H: Array) -> Array:
    return _ratio(X @ H.T, W @ (H @ H.T))


def _kl_ratio(X: Data, W: Array, H: Array) -> Array:
    quotients = _ratio(entries(X), fitted(X, W, H))
    if sparse.issparse(X):
        quotients = sparse.csr_array((quotients, X.indices, X.indptr), X.shape)
    return _ratio(quotients @ H.T, np.broadcast_to(H.sum(axis=1), W.shape))


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Return the quotients; where there is nothing to divide by, zero."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0.0)
