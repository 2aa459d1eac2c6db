"""Non-negative least squares where A'A and A'b are all that is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dtrtrs

from conepursuit.arrays import Array, as_real_array
from conepursuit.labels import aligned, column_labels, row_labels
from conepursuit.least_squares.api import nnls
from conepursuit.least_squares.gram_proofs import proven_gaps
from conepursuit.linear import as_matrix, dense
from conepursuit.matrix_fits.arguments import check_entries
from conepursuit.matrix_fits.results import Labels, NNLSResult
from conepursuit.matrix_fits.safe_units import inverted


def nnls_gram(
    G: Any,
    c: Any,
    *,
    max_atoms: int | None = None,
    max_iter: int | None = None,
    start: Any = None,
    n_jobs: int | None = None,
) -> NNLSResult:
    """Minimise 1/2 <x, G x> - <c, x> over x >= 0, where G = A'A and c = A'b are all that is known.

    Parameters
    ----------
    G : array_like of shape (n, n)
        Symmetric and positive semidefinite.
    c : array_like of shape (n,) or (n, n_targets)
        One target per column.
    max_atoms, max_iter, start, n_jobs
        As in `nnls`.

    Returns
    -------
    NNLSResult
        As from `nnls` on some A and b with this G and c. Since the part of b outside the span
        of the atoms is not known, ``rnorm`` is the residual of the part inside.

    Notes
    -----
    Forming A'A loses digits that cannot be recovered: give A and b to `nnls` where you can.
    """
    c = aligned(c, row_labels(G), "c", "G")
    gram = as_matrix(G, "G")
    products = as_real_array(c, "c")
    n = gram.shape[0]
    if gram.shape != (n, n) or products.shape[:1] != (n,) or products.ndim > 2:
        raise ValueError(
            "G must be square and c have as many rows; got G of shape "
            f"{gram.shape} and c of shape {products.shape}."
        )
    check_entries(products, "c")
    A, b = _square_root(gram, products)
    fit = nnls(A, b, max_atoms=max_atoms, max_iter=max_iter, start=start, n_jobs=n_jobs)
    fit = _certified_on(dense(gram), products.astype(np.float64, copy=False), fit, A)
    return fit.named(Labels(column_labels(G), column_labels(c)))


def _certified_on(G: Array, c: Array, fit: NNLSResult, A: Array) -> NNLSResult:
    """Return a fit of the A and b of `_square_root` with the gap that G and c themselves prove.

    A'A is G and A'b is c only up to rounding, so that a proof for A and b is none for G and c.
    Where G and c prove nothing, the gap is that of A and b, as an estimate.
    """
    n = len(c)
    with np.errstate(all="ignore"):
        found = proven_gaps(G, c.reshape(n, -1), fit.x.reshape(n, -1), A).reshape(c.shape[1:])
    gap: Any = np.where(np.isfinite(found), found, fit.gap)
    proven: Any = np.isfinite(found)
    if c.ndim == 1:
        gap, proven = float(gap), bool(proven)
    return NNLSResult(fit.x, fit.rnorm, fit.dual, gap, proven, fit.status, fit.n_iter)


def _square_root(G: Any, c: Array) -> tuple[Array, Array]:
    """Return A and b with A'A = G and A'b = c; raise a ValueError if there are none.

    A is the Cholesky factor of G where G is well conditioned, otherwise it is made of eigenvectors.
    """
    gram = dense(G)
    noise = 16 * float(np.finfo(G.dtype if G.dtype.kind == "f" else np.float64).eps) * len(gram)
    if abs(gram - gram.T).max() > noise * abs(gram).max():
        raise ValueError("G must be symmetric. Use (G + G.T) / 2, which is the same form.")
    lengths = np.sqrt(np.maximum(gram.diagonal(), 0.0))
    inverse = inverted(lengths)
    unit, right = gram * inverse * inverse[:, None], (inverse * c.T).T
    R, failed = dpotrf(unit)
    if not failed and R.diagonal().min() ** 2 > 1e-8:
        return R * lengths, dtrtrs(R, right, trans=1)[0].reshape(c.shape)
    values, vectors = eigh(unit)
    if values[0] < -noise * max(values[-1], 1.0) or gram.diagonal().min() < 0:
        raise ValueError(
            "G must be positive semidefinite; scaled to a unit diagonal it has the eigenvalue "
            f"{values[0]:.3g}, and its least diagonal entry is {gram.diagonal().min():.3g}. "
            "Compute A.T @ A in float64, or give A and b to nnls."
        )
    kept = values > noise * values[-1]
    kept[-1] = True  # A has at least one row, even if G is zero
    roots, basis = np.sqrt(np.maximum(values[kept], 0.0)), vectors[:, kept].T
    inside = basis @ right
    outside = np.abs(right - basis.T @ inside).max()
    if outside > 1e-6 * np.abs(right).max() or c[lengths == 0].any():
        raise ValueError(
            "c must be A'b for some b, or the form may have no minimum; it is not in the range of "
            "G. Give A and b to nnls."
        )
    return roots[:, None] * basis * lengths, (inside.T * inverted(roots)).T
