"""Which entries of the data of a factorisation count, and with which weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.estimators.checking import checked_array


def observed_entries(X: Any, entry_weight: Any) -> tuple[Any, Any]:
    """Return the data, with 0 for missing entries, and their weights, None if all are one."""
    if sparse.issparse(X):
        if np.isnan(X.data).any():
            raise ValueError(
                "X is sparse and holds NaN. Give entry_weight, a sparse matrix that stores a "
                "weight for each entry that was observed."
            )
        X = sparse.csr_array(X)
        return (X, None) if entry_weight is None else _stored_entries(X, entry_weight)
    missing = np.isnan(X)
    if entry_weight is None and not missing.any():
        return X, None
    M = np.ones(X.shape)
    if entry_weight is not None:
        M = _checked_weights(entry_weight, X.shape)
        M = M.toarray() if sparse.issparse(M) else M
    M = np.where(missing, 0.0, M)
    if not M.any():
        raise ValueError("no entry of X counts: all are NaN or have weight 0.")
    return np.where(M > 0, X, 0.0), M


def _stored_entries(X: Any, entry_weight: Any) -> tuple[Any, Any]:
    """Return sparse data and weights, both stored where the weight is positive."""
    if not sparse.issparse(entry_weight):
        raise ValueError(
            "X is sparse, and entry_weight is not. Give a sparse entry_weight, which stores a "
            "weight for each entry that was observed, or X.toarray()."
        )
    M = sparse.csr_array(_checked_weights(entry_weight, X.shape), copy=True)
    M.eliminate_zeros()
    if not M.nnz:
        raise ValueError("no entry of X counts: entry_weight stores none that is positive.")
    M.sum_duplicates()
    held = np.asarray(X[M.nonzero()])  # zeros of X too, which so are stored
    return sparse.csr_array((held, M.indices, M.indptr), M.shape), M


def _checked_weights(given: Any, shape: tuple[int, ...]) -> Any:
    """Return weights of all entries, non-negative and of the shape of X."""
    if np.shape(given) != shape:
        raise ValueError(f"entry_weight must have the shape of X, {shape}; got {np.shape(given)}.")
    M = checked_array(given, "entry_weight", accept_sparse="csr", dtype=np.float64, allow_nd=True)
    least = M.data.min(initial=0.0) if sparse.issparse(M) else M.min()
    if least < 0:
        raise ValueError(f"entry_weight must not be negative; the least is {least:g}.")
    return M
