"""Non-negative least squares, for one target or many, with a proof.

``min ||A x - b||^2 over x >= 0`` is `FCMP(variant=1)` on a `Dictionary` with `LeastSquares`. Here
it is made fast: the shape of the data decides which kernel does the work, and all of them are held
to the generic loop by tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, lstsq, solve_triangular

from conepursuit.arrays import Array, Vector, as_real_array, norm
from conepursuit.batches import fit_many
from conepursuit.certificates import Certificate
from conepursuit.fits import NNLSResult, gap_times_power, inverted, scaled_back, times_powers
from conepursuit.linear import as_matrix, check_finite, dense, matvec, rmatvec
from conepursuit.path import fit_greedily
from conepursuit.proofs import Proof, dense_column, gram_gap
from conepursuit.results import Status
from conepursuit.rounding import WEIGHTED, resolution
from conepursuit.targets import (
    as_vector,
    check_entries,
    count,
    matrix_and_target,
    rescaled,
    threads,
    tolerance,
    weighted_matrix,
    weighted_problem,
    weights_of,
)
from conepursuit.whole import fit_whole, is_small
from conepursuit.working_set import fit_large, surveyed

SMALLEST_POWER = -960
"""Below this power of two a product may have lost digits that count beside those of its column."""

FEW = 512
"""Audits make a functional of up to so many atoms."""


def nnls(
    A: Any,
    b: Any,
    *,
    weights: Any = None,
    max_atoms: int | None = None,
    max_iter: int | None = None,
    tol: float = 0.0,
    start: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> NNLSResult:
    """Minimise ||A x - b|| over x >= 0.

    Parameters
    ----------
    A : array_like, scipy.sparse matrix or LinearOperator, shape (m, n)
        One atom per column. Arrays may be float32, float64 or integers, in C or F order, or
        memory-mapped.
    b : array_like of shape (m,) or (m, n_targets)
        The target, or one target per column.
    weights : array_like of shape (m,) or of the shape of b, optional
        Minimise ``sum_i weights_i (A x - b)_i^2`` instead. Where a weight is zero, the entry of
        b does not matter and may be NaN.
    max_atoms : int, optional
        The most weights that may be positive: non-negative orthogonal matching pursuit, which
        makes the steepest atom positive, one at a time, and refits all. (`nnls_path` goes on
        beyond, and may come back to so many atoms with a closer fit.)
    max_iter : int, optional
        The most linear systems to solve, for each target; 10 n + 10 by default.
    tol : float
        Where passes over a large dictionary are what costs, stop when the gap is proved to be at
        most tol times the decrease since x = 0. With the default, 0, and on small dictionaries,
        the fit goes to the limit of the arithmetic.
    start : array_like of the shape of x, or NNLSResult, optional
        Weights to start from, such as those of a similar problem. Dense dictionaries of up to
        2048 atoms need none for many targets, and ignore it.
    n_jobs : int, optional
        Threads for many targets; -1 for all cores, 1 by default. It does not change the result.
    progress : bool
        Whether to show a progress bar over many targets (needs rich).

    Returns
    -------
    NNLSResult
        The tuple ``(x, rnorm)`` with attributes dual, gap, proven, status, n_iter and support.

    Notes
    -----
    Lack of convergence is never an exception: see ``status``. Where the atoms lie in an open half
    space, or where the solution is not degenerate, the gap is a proof. Where atoms fit a target
    exactly in many ways, any of them may be the answer.

    Apart from that, code for `scipy.optimize.nnls` needs two changes: ``maxiter`` is called
    max_iter, and a b of shape (m, 1) is one of many targets, with x of shape (n, 1).

    Examples
    --------
    >>> from conepursuit import nnls
    >>> x, rnorm = nnls([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [2.0, 1.0, -1.0])
    >>> x, rnorm
    (array([1.5, 0. ]), 1.224744871391589)
    >>> nnls([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [2.0, 1.0, -1.0]).proven
    True
    """
    matrix, target = matrix_and_target(A, b)
    n, shape = matrix.shape[1], (matrix.shape[1], *target.shape[1:])
    limit = n if max_atoms is None else count(max_atoms, "max_atoms")
    max_steps = 10 * n + 10 if max_iter is None else count(max_iter, "max_iter")
    first = None if start is None else _start(start, shape, limit)
    tol, workers = tolerance(tol), threads(n_jobs)
    given = target
    matrix, target, rows = weighted_problem(matrix, target, weights)
    inexact = 0.0 if weights is None else WEIGHTED
    if inexact and target.size and _weighted_away(given, weights, target):
        raise ValueError(
            "the weights make a target so small that its digits are lost; multiply b or the "
            "weights by a constant."
        )
    if target.ndim == 1:
        return _fit(matrix, target, first, inexact, limit, max_steps, tol)

    def alone(i: int) -> NNLSResult:
        own = matrix if rows is None else weighted_matrix(matrix, rows[:, i])
        begin = None if first is None else first[:, i]
        target_i = as_vector(target[:, i])
        return _fit(own, target_i, begin, inexact, limit, max_steps, tol, f"b[:, {i}]")

    together = rows is None and (first is None or limit >= n)
    return fit_many(
        matrix, target, alone, limit, max_steps,
        n_jobs=workers, progress=progress, together=together,
    )  # fmt: skip


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
        of the atoms is not known, ``rnorm`` is what is left of the part inside.

    Notes
    -----
    The digits that were lost when A'A was formed are lost: give A and b to `nnls` where you can.
    """
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
    return _certified_on(dense(gram), products.astype(np.float64, copy=False), fit)


def _certified_on(G: Array, c: Array, fit: NNLSResult) -> NNLSResult:
    """Return the fit of some A and b with a proof for G and c, of which those are roots, rounded.

    Where G and c prove nothing, the gap is that of A and b, and an estimate.
    """
    targets, weights = c.reshape(len(c), -1), fit.x.reshape(len(c), -1)
    with np.errstate(all="ignore"):
        gaps = [gram_gap(G, targets[:, i], weights[:, i]) for i in range(targets.shape[1])]
    found = np.array(gaps).reshape(c.shape[1:])
    gap: Any = np.where(np.isfinite(found), found, fit.gap)
    proven: Any = np.isfinite(found)
    if c.ndim == 1:
        gap, proven = float(gap), bool(proven)
    return NNLSResult(fit.x, fit.rnorm, fit.dual, gap, proven, fit.status, fit.n_iter)


def certify_nnls(A: Any, b: Any, x: Any, *, weights: Any = None) -> Certificate:
    """Audit anybody's non-negative least-squares fit from the data alone.

    Parameters
    ----------
    A, b
        The problem, as in `nnls`.
    x : array_like of shape (n,) or (n, n_targets), or NNLSResult
        The weights to audit; none may be negative.
    weights : array_like, optional
        Weights of the rows, as in `nnls`.

    Returns
    -------
    Certificate
        With r = b - A x: ``violation``, the largest <a, r> / ||a|| of an atom, or 0;
        ``complementarity``, -<r, A x>; both are zero exactly at a solution. ``gap`` bounds
        1/2 ||r||^2 minus its least value if ``proven``, and estimates it otherwise. With many
        targets all of them are arrays.

    Examples
    --------
    >>> from conepursuit import certify_nnls
    >>> round(certify_nnls([[1.0, 0.0], [1.0, 1.0]], [1.0, 2.0], [1.0, 0.5]).gap, 12)
    0.125
    """
    matrix, target = matrix_and_target(A, b)
    check_finite(matrix, "A")
    point = weights_of(x, (matrix.shape[1], *target.shape[1:]), "x")
    matrix, target, rows = weighted_problem(matrix, target, weights)
    inexact = 0.0 if weights is None else WEIGHTED
    if target.ndim == 1:
        return _certificate(matrix, target, point, inexact, "b")
    parts = [
        _certificate(
            matrix if rows is None else weighted_matrix(matrix, rows[:, i]),
            as_vector(target[:, i]), point[:, i], inexact, f"b[:, {i}]",
        )
        for i in range(target.shape[1])
    ]  # fmt: skip
    numbers = [
        np.array([getattr(part, name) for part in parts], dtype=np.float64)
        for name in ("violation", "complementarity", "gap")
    ]
    arrays: Any = [*numbers, np.array([part.method for part in parts], dtype=np.str_)]
    return Certificate(*arrays)


def _certificate(matrix: Any, b: Vector, x: Vector, inexact: float, name: str) -> Certificate:
    """Audit one target; the entries of the data are right up to a share of `inexact`."""
    known = surveyed(matrix, b)
    if known is None:
        check_entries(b, name)
        scaled, unit, powers, power = rescaled(matrix, b)
        found = _certificate(scaled, unit, times_powers(x, powers - power), inexact, name)
        with np.errstate(over="ignore", under="ignore"):
            return Certificate(
                float(np.ldexp(found.violation, power)),
                float(np.ldexp(found.complementarity, 2 * power)),
                gap_times_power(found.gap, 2 * power),
                "estimate" if _lost_to_weights(inexact, powers, power) else found.method,
            )
    r = b - matvec(matrix, x)
    g = rmatvec(matrix, r)
    violation = max(0.0, float((g * known.inverse_norms).max()))
    proof = Proof(matrix, b, x, r, g, known, inexact)
    if not proof.fine and len(proof.used) <= FEW:
        atoms = np.empty((len(proof.used), len(b)))
        for i, j in enumerate(proof.used):
            atoms[i] = dense_column(matrix, int(j))
        # Less than the rounding of a unit is no reason to take atoms for dependent: t is checked.
        for least in (None, 0.0) if len(atoms) else ():
            lengths = known.norms[proof.used]
            proof.along(lstsq(atoms, lengths, cond=least, lapack_driver="gelsy")[0])
            if proof.fine:
                break
        if not proof.fine:
            proof.sharpen(atoms)
        if not proof.fine and len(atoms):
            proof.level(atoms)
        if not proof.fine:
            proof.along_level()
    gap, proven = proof.settled()
    return Certificate(violation, -float(g @ x), gap, "dual" if proven else "estimate")


def _start(start: Any, shape: tuple[int, ...], limit: int) -> Array:
    """Return weights to start from."""
    first = weights_of(start, shape, "start")
    most = int(np.count_nonzero(first, axis=0).max(initial=0))
    if most > limit:
        raise ValueError(f"start has {most} positive weights, but max_atoms is {limit}.")
    return first


def _fit(
    matrix: Any,
    b: Vector,
    start: Vector | None,
    inexact: float,
    limit: int,
    max_steps: int,
    tol: float,
    name: str = "b",
) -> NNLSResult:
    """Fit one target with the kernel for the size of the dictionary.

    The entries of the data are right up to a share of `inexact`.
    """
    n = matrix.shape[1]
    if is_small(matrix, limit):
        fit = fit_whole(matrix, b, start, inexact, limit, max_steps)
    elif limit < n:
        fit = fit_greedily(matrix, b, start, inexact, limit, max_steps)
    else:
        fit = fit_large(matrix, b, start, inexact, max_steps, tol)
    if fit is not None:
        return _audited(fit, matrix, b, inexact, name)
    check_finite(matrix, "A")
    check_entries(b, name)
    scaled, unit, powers, power = rescaled(matrix, b)
    first = None if start is None else np.ldexp(start, powers - power)
    fit = _fit(scaled, unit, first, inexact, limit, max_steps, tol)
    x, exact = scaled_back(fit.x, power - powers)
    rnorm, gap, proven, dual, status = fit.rnorm, fit.gap, fit.proven, fit.dual, fit.status
    if not exact:  # the solution is no array of floats: say how far from it what is returned is
        kept = times_powers(x, powers - power)
        residual = matvec(scaled, kept) - unit
        audit = _certificate(scaled, unit, kept, inexact, name)
        rnorm, dual, status = norm(residual), rmatvec(scaled, residual), Status.STALLED
        gap, proven = audit.gap, audit.proven
    proven = proven and not _lost_to_weights(inexact, powers, power)
    return NNLSResult(
        x, float(times_powers(rnorm, power)), times_powers(dual, power + powers),
        gap_times_power(gap, 2 * power), proven, status, fit.n_iter,
    )  # fmt: skip


def _lost_to_weights(inexact: float, powers: Array, power: int) -> bool:
    """Return whether weights multiplied entries so small that their products lost digits.

    `powers` and `power` are the exponents of two of the columns and of the target.
    """
    return inexact > 0.0 and min(int(powers.min()), power) < SMALLEST_POWER


def _weighted_away(before: Array, weights: Any, after: Array) -> bool:
    """Return whether weights have made a target that is not zero too small to keep its digits."""
    # Two extremes, since |after| would be one more array of the size of the targets.
    small = np.maximum(after.max(axis=0), -after.min(axis=0)) < 2.0**SMALLEST_POWER
    if not small.any():
        return False
    given = np.asarray(weights)
    counted = (given > 0) if given.ndim == before.ndim else (given > 0)[:, None]
    nonzero = (np.where(counted, before, 0.0) != 0).any(axis=0)
    return bool((small & nonzero).any())


def _audited(fit: NNLSResult, matrix: Any, b: Vector, inexact: float, name: str) -> NNLSResult:
    """Return a fit whose gap is as small as what an audit of its x proves, if it is not fine."""
    enough = 0.5 * resolution(len(b))
    # ||b|| is no less than ||r||, which is at hand.
    if fit.proven and (fit.gap <= enough * fit.rnorm**2 or fit.gap <= enough * float(b @ b)):
        return fit
    audit = _certificate(matrix, b, fit.x, inexact, name)
    if not audit.proven or (fit.proven and fit.gap <= audit.gap):
        return fit
    return NNLSResult(fit.x, fit.rnorm, fit.dual, audit.gap, True, fit.status, fit.n_iter)


def _square_root(G: Any, c: Array) -> tuple[Array, Array]:
    """Return A and b with A'A = G and A'b = c, or say why there are none."""
    gram = dense(G)
    noise = 16 * float(np.finfo(G.dtype if G.dtype.kind == "f" else np.float64).eps) * len(gram)
    if abs(gram - gram.T).max() > noise * abs(gram).max():
        raise ValueError("G must be symmetric. Use (G + G.T) / 2, which is the same form.")
    lengths = np.sqrt(np.maximum(gram.diagonal(), 0.0))
    inverse = inverted(lengths)
    unit, right = gram * inverse * inverse[:, None], (inverse * c.T).T
    try:
        R = cholesky(unit)
        if R.diagonal().min() ** 2 > 1e-8:
            return R * lengths, solve_triangular(R, right, trans="T")
    except LinAlgError:
        pass
    values, vectors = eigh(unit)
    if values[0] < -noise * max(values[-1], 1.0) or gram.diagonal().min() < 0:
        raise ValueError(
            "G must be positive semidefinite; scaled to a unit diagonal it has the eigenvalue "
            f"{values[0]:.3g}, and its least diagonal entry is {gram.diagonal().min():.3g}. "
            "Compute A.T @ A in float64, or give A and b to nnls."
        )
    kept = values > noise * values[-1]
    kept[-1] = True  # at least one row, if only of zeros
    roots, basis = np.sqrt(np.maximum(values[kept], 0.0)), vectors[:, kept].T
    inside = basis @ right
    outside = np.abs(right - basis.T @ inside).max()
    if outside > 1e-6 * np.abs(right).max() or c[lengths == 0].any():
        raise ValueError(
            "c must be A'b for some b, or the form may have no minimum; it is not in the range of "
            "G. Give A and b to nnls."
        )
    return roots[:, None] * basis * lengths, (inside.T * inverted(roots)).T
