"""Audits of non-negative least-squares fits, of `nnls` or of others, from the data alone."""

from __future__ import annotations

from functools import partial
from math import inf, isfinite
from typing import Any

import numpy as np

from conepursuit.arrays import EPS, Array, Vector
from conepursuit.least_squares.proofs import Proof, dense_column
from conepursuit.least_squares.survey import Survey, survey, surveyed
from conepursuit.least_squares.working_set import WorkingSet
from conepursuit.linear import check_finite, is_blocks, matvec, rmatvec
from conepursuit.matrix_fits.arguments import (
    as_vector,
    atoms_matched,
    check_entries,
    matrix_and_target,
    rows_matched,
    weighted_matrix,
    weighted_problem,
    weights_in,
    weights_of,
)
from conepursuit.matrix_fits.lazy import beside, fit_blocks, labelled_fields
from conepursuit.matrix_fits.results import NNLSResult
from conepursuit.matrix_fits.safe_units import SafeUnits, safe_squares, times_powers
from conepursuit.rounding import WEIGHTED, resolution
from conepursuit.status import Certificate

SMALLEST_POWER = -960
"""Weighted data whose largest entry is below 2 to this power may have lost digits to underflow.

Then a gap is an estimate, and `check_weighted` refuses such a target unless it is zero.
"""

METHODS = np.dtype("U8")
"""The dtype of the methods of many certificates: the longest is "estimate"."""

MOST_WITH_WEIGHT = 512
"""Up to this many atoms with weight an audit tries all proofs, with more only plain products.

The functional of the atoms with weight is a dense least-squares problem with a column for each row
of A; with more atoms than this it would take longer than a fit.
"""


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
        targets all of them are arrays; with targets in a Dask array, Dask arrays.

    Examples
    --------
    >>> from conepursuit import certify_nnls
    >>> round(certify_nnls([[1.0, 0.0], [1.0, 1.0]], [1.0, 2.0], [1.0, 0.5]).gap, 12)
    0.125
    """
    b, weights, labels = rows_matched(A, b, weights)
    x = atoms_matched(x, labels)
    matrix, target = matrix_and_target(A, b)
    check_finite(matrix, "A")
    if isinstance(target, np.ndarray):
        return _audit(matrix, target, x, weights)
    each = len(np.shape(weights)) == 2  # each target has weights of its own
    others = beside(target, x=weights_in(x), weights=weights if each else None)
    audit = partial(_audit, matrix) if each else partial(_audit, matrix, weights=weights)
    numbers = dict.fromkeys(("violation", "complementarity", "gap"), (None, float))
    found = fit_blocks(audit, target, 0, {**numbers, "method": (None, METHODS)}, **others)
    return Certificate(**labelled_fields(found, b))


def _audit(matrix: Any, b: Array, x: Any, weights: Any = None) -> Certificate:
    """Audit one target or many, with the matrix and the targets checked already."""
    point = weights_of(x, (matrix.shape[1], *b.shape[1:]), "x")
    matrix, target, rows = weighted_problem(matrix, b, weights)
    inexact = 0.0 if weights is None else WEIGHTED
    if target.ndim == 1:
        return certificate_of(matrix, target, point, inexact, "b")
    parts = [
        certificate_of(
            matrix if rows is None else weighted_matrix(matrix, rows[:, i]),
            as_vector(target[:, i]), as_vector(point[:, i]), inexact, f"b[:, {i}]",
        )
        for i in range(target.shape[1])
    ]  # fmt: skip
    numbers = [
        np.array([getattr(part, name) for part in parts], dtype=np.float64)
        for name in ("violation", "complementarity", "gap")
    ]
    arrays: Any = [*numbers, np.array([part.method for part in parts], dtype=METHODS)]
    return Certificate(*arrays)


def certificate_of(matrix: Any, b: Vector, x: Vector, inexact: float, name: str) -> Certificate:
    """Audit one target; `inexact` bounds the relative error of the entries of the data.

    `name` is the name of b in error messages. Data, or an A x, whose squares overflow or underflow
    are audited in other units.
    """
    known = surveyed(matrix, b)
    with np.errstate(all="ignore"):
        if known is not None:
            square = np.square(np.linalg.norm(b) + known.norms @ x)
            if safe_squares(square) or not (b.any() or x.any()):
                return _certificate(matrix, b, x, known, inexact)
    check_entries(b, name)
    if known is None:
        units = SafeUnits.of(matrix, b)
        matrix = units.matrix(matrix)
    else:  # the columns are as they should be
        units = SafeUnits(np.zeros(matrix.shape[1], dtype=np.int64))
    units = units.reaching(b, x, survey(matrix, np.zeros(len(b))).norms)
    b, x = units.vector(b), units.weights(x)
    found = _certificate(matrix, b, x, survey(matrix, b), inexact)
    return finite(
        units.length_back(found.violation),
        float(times_powers(found.complementarity, 2 * units.target)),
        units.gap_back(found.gap),
        found.proven and not lost_to_weights(inexact, units),
    )


def _certificate(matrix: Any, b: Vector, x: Vector, known: Survey, inexact: float) -> Certificate:
    """Audit one target whose norms, and those of A x, have squares that are floats."""
    if known.beyond is None or np.count_nonzero(x) > MOST_WITH_WEIGHT:
        r = b - matvec(matrix, x)
        g = rmatvec(matrix, r)
        proof = Proof(matrix, b, x, r, g, known, inexact)
    else:
        work = WorkingSet(matrix, b, known, inexact)
        g = work.scores_at(x)
        proof = work.proof(g)
    violation = max(0.0, float((g * known.inverse_norms).max()))
    if not proof.fine and len(proof.used) <= MOST_WITH_WEIGHT:
        _look_closer(proof)
    gap, proven = proof.settled()
    return finite(violation, -float(g @ x), gap, proven)


def finite(violation: float, complementarity: float, gap: float, proven: bool) -> Certificate:
    """Return a certificate; a gap that is not finite is infinite, and not proved."""
    if not isfinite(gap):
        gap, proven = inf, False
    return Certificate(violation, complementarity, gap, "dual" if proven else "estimate")


def _look_closer(proof: Proof) -> None:
    """Try, one after the other, the proofs that cost more than plain products."""
    atoms = np.empty((len(proof.used), len(proof.b)))
    for i, j in enumerate(proof.used):
        atoms[i] = dense_column(proof.matrix, int(j))
    # First atoms that depend on others up to rounding are left out, then none: t is checked.
    for least in (EPS, 0.0) if len(atoms) else ():
        lengths = proof.known.norms[proof.used]
        proof.along(np.linalg.lstsq(atoms, lengths, rcond=least)[0])
        if proof.fine:
            break
    if not proof.fine:
        proof.sharpen(atoms)
    if not proof.fine and len(atoms):
        proof.level(atoms)
    if not proof.fine:
        proof.along_level()


def with_best_gap(fit: NNLSResult, matrix: Any, b: Vector, inexact: float, name: str) -> NNLSResult:
    """Return a fit, with the gap that an audit of its x proves if that is smaller.

    A proven gap of at most the `resolution` is kept without an audit.
    """
    enough = 0.5 * resolution(len(b))
    # ||r|| is at most ||b|| and known already, so that it is tried first.
    if fit.proven and (fit.gap <= enough * fit.rnorm**2 or fit.gap <= enough * float(b @ b)):
        return fit
    audit = certificate_of(matrix, b, fit.x, inexact, name)
    if not audit.proven or (fit.proven and fit.gap <= audit.gap):
        return fit
    better = NNLSResult(fit.x, fit.rnorm, fit.dual, audit.gap, True, fit.status, fit.n_iter)
    better.n_passes = matrix.passes if is_blocks(matrix) else None
    return better


def lost_to_weights(inexact: float, units: SafeUnits) -> bool:
    """Return whether row weights may have made entries so small that digits are lost."""
    return inexact > 0.0 and min(int(units.columns.min()), units.target) < SMALLEST_POWER


def check_weighted(before: Array, weights: Any, after: Array) -> None:
    """Raise a ValueError if row weights make a target so small that its digits are lost.

    `before` are the targets as given, `after` the targets times the roots of the weights. A target
    that is zero before is allowed.
    """
    # The largest |entry| from two extremes: np.abs would make another array of this size.
    small = np.maximum(after.max(axis=0), -after.min(axis=0)) < 2.0**SMALLEST_POWER
    if not small.any():
        return
    given = np.asarray(weights)
    counted = (given > 0) if given.ndim == before.ndim else (given > 0)[:, None]
    nonzero = (np.where(counted, before, 0.0) != 0).any(axis=0)
    if (small & nonzero).any():
        raise ValueError(
            "the weights make a target so small that its digits are lost; multiply b or the "
            "weights by a constant."
        )
