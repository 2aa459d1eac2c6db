"""Leading pairs of a matrix: of vectors of either sign, and of non-negative ones.

The best non-negative pair, ``max u'Mv`` over unit u, v >= 0, is hard to find in general. The pairs
found here give a lower bound on that maximum, and come with upper ones (`Bounds`).

References
----------
[1] X.-T. Yuan, T. Zhang. Truncated power method for sparse eigenvalue problems. JMLR 2013.
[2] G. H. Golub, W. Kahan. Calculating the singular values and pseudo-inverse of a matrix.
SIAM J. Numer. Anal. 1965.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky

from conepursuit.arrays import Array
from conepursuit.low_rank import FactoredMatrix

STEPS, SETTLED = 12, 0.02
"""Most steps of a short Lanczos run, and the relative residual that ends it."""

ROUNDS, GAIN = 10, 1e-2
"""Most rounds of the power method, and the relative gain that ends it."""

PATIENT = 300
"""Most rounds of the power method where it ends at a gain below GAIN; otherwise ROUNDS."""

STARTS, SYMMETRIC_STEPS, SYMMETRIC_ROUNDS = 60, 100, 4
"""For symmetric matrices: starts of each kind, power steps, rounds of the bound."""

RAISED = 1e-3
"""Share of its largest entry by which `perron_bound` raises a leading vector, to be positive."""

SCREEN = 1
"""Rounds that all starts get before the best one goes on alone."""

OVERSHOOT = 1.5
"""Length of a step of `spectral_bound`, where 1 is a projection onto {sigma_1(Y) <= level}.

Above 1, alternating projections arrive sooner.
"""

WIDTH = 24
"""Singular vectors that `spectral_bound` starts with; more are added if all are above the level."""

PROVED = 800
"""The smaller side of a matrix up to which `spectral_bound` proves its bound by a factorisation.

For larger matrices the bound is measured by a Lanczos run, which is not a proof.
"""

ATTEMPTS = 5
"""How many bounds `proved_norm` tries, each above the last, before it computes the spectrum."""

Kept = tuple[int | None, int | None]


class Pair(NamedTuple):
    """A leading singular pair, and how far the value may be from a singular value."""

    value: float
    residual: float
    left: Array
    right: Array


class Bounds(NamedTuple):
    """Upper bounds on u'Mv over unit u, v >= 0.

    Attributes
    ----------
    proved : float
        By a Cholesky factorisation, or by a positive vector on [M]_+; certain up to rounding.
    measured : float
        By Lanczos runs, where nothing tighter is proved; certain but for the chance that a run
        has missed the largest singular value.
    """

    proved: float
    measured: float


def nonnegative_pairs(
    M: Any,
    count: int = 1,
    *,
    n_nonzero: Kept = (None, None),
    rounds: int = 0,
    extra: Array | None = None,
    gain: float = GAIN,
) -> tuple[list[Pair], Bounds]:
    """Return pairs of unit vectors u, v >= 0 of large u'Mv, and bounds on it over all of them.

    Each pair but the first is found for M minus the pairs before it. As nothing negative is
    subtracted, its value is at most its u'Mv.

    Parameters
    ----------
    M : array or FactoredMatrix
        The matrix.
    count : int
        How many pairs.
    n_nonzero : tuple of (int or None)
        The most non-zero entries of u and v.
    rounds : int
        Projections in `spectral_bound`, for arrays; without any, it is not called.
    extra : array, optional
        One more start for v.
    gain : float
        The relative gain of a round of the power method that ends it.
    """
    if isinstance(M, FactoredMatrix) and isinstance(M.base, np.ndarray):
        M = M.toarray()  # no larger than the data
    dense = isinstance(M, np.ndarray)
    P = np.maximum(M, 0.0) if dense else M.positive_part()
    top = leading_pair(M, np.random.default_rng(0).standard_normal(M.shape[1]))
    measured, proved = top.value + top.residual, np.inf
    starts = [np.maximum(top.right, 0.0), np.maximum(-top.right, 0.0)]
    if P is not None:
        sums = np.ones(P.shape[1], dtype=P.dtype)
        perron = leading_pair(P, sums)
        measured, proved = min(measured, perron.value + perron.residual), perron_bound(P, perron)
        heavy = int((P @ sums).argmax())
        row = P[heavy] if dense else P[[heavy]].toarray()[0]
        starts += [np.abs(perron.right), row]
    starts = starts if extra is None else [*starts, extra]
    found = [alternate(M, starts, n_nonzero, gain)]
    if dense and rounds and proved > found[0].value > 0:
        tight, certain = spectral_bound(M, found[0].value, rounds)
        measured = tight if certain else min(measured, tight)
        proved = min(proved, tight) if certain else proved
    while len(found) < count and found[-1].value > 0:
        scaled, right = -found[-1].value * found[-1].left, found[-1].right
        if dense:
            M = M + scaled[:, None] * right
        else:
            M = M + FactoredMatrix(scaled[None, :], right[None, :])
        found.append(alternate(M, starts, n_nonzero, gain))
    least = max(found[0].value, 0.0)
    return found, Bounds(max(proved, least), max(min(measured, proved), least))


def perron_bound(P: Any, perron: Pair) -> float:
    """Return a proved upper bound on the largest singular value of a non-negative matrix.

    Notes
    -----
    Schur's test: for p, q > 0, ``sigma_1(P)^2 <= max_i (P q)_i / p_i * max_j (P'p)_j / q_j``. With
    p = P q the first factor is 1. q is a leading vector, raised a little where it is small.
    """
    q = np.abs(perron.right).astype(P.dtype)
    q += RAISED * q.max()
    p = P @ q
    reached = p > 0
    if not reached.any():
        return 0.0
    back = p @ P
    return float(np.sqrt((back / q).max())) * (1.0 + 100 * float(np.finfo(q.dtype).eps))


def symmetric_pair(M: Array) -> tuple[Pair, Bounds]:
    """Return a unit vector u >= 0 of large u'Mu, as a pair, and bounds; M symmetric.

    Notes
    -----
    With c at least minus the least eigenvalue, u'(M + c I)u is convex in u, so that
    ``u = [(M + c I) u]_+ / ||.||`` never lowers it. It is started from both signs of the leading
    eigenvectors, from the rows of [M]_+, and from the unit vectors.
    """
    n = len(M)
    _, bounds = nonnegative_pairs(M, rounds=SYMMETRIC_ROUNDS)
    values, vectors = np.linalg.eigh(M)
    leading = vectors[:, -STARTS:].T
    rows = np.maximum(M[np.argsort(np.maximum(M, 0.0).sum(axis=1))[-STARTS:]], 0.0)
    units = np.eye(n)[np.argsort(np.diag(M))[-STARTS:]]
    starts = np.vstack([leading, -leading, rows, units])
    U, _ = nonnegative_units(starts, None)
    shift = max(-float(values[0]), 0.0)
    for _ in range(SYMMETRIC_STEPS):
        U, _ = nonnegative_units(U @ M + shift * U, None)
    scores = np.einsum("ki,ki->k", U @ M, U)
    u, value = U[int(scores.argmax())], float(scores.max())
    single = int(np.diag(M).argmax())
    if M[single, single] > value:
        u, value = np.eye(n)[single], float(M[single, single])
    least = max(value, 0.0)
    return Pair(value, 0.0, u, u), Bounds(max(bounds.proved, least), max(bounds.measured, least))


def leading_pair(M: Any, start: Array, steps: int = STEPS, tolerance: float = SETTLED) -> Pair:
    """Return the leading singular pair of a matrix by a short Lanczos run [2].

    The value is at most the largest singular value, and some singular value is within `residual` of
    it. That this is the largest one is likely, not certain: a run may settle on the second.
    """
    steps, kind = min(steps, *M.shape), getattr(M, "dtype", np.dtype(np.float64))
    right, left = np.empty((steps, M.shape[1]), kind), np.empty((steps, M.shape[0]), kind)
    bidiagonal, tiny = np.zeros((steps, steps)), 10 * float(np.finfo(kind).eps)
    v, beta = unit(start).astype(kind), 0.0
    for i in range(steps):
        right[i] = v
        u = M @ v
        u -= left[:i].T @ (left[:i] @ u)
        alpha = _length(u)
        bidiagonal[i, i] = alpha
        left[i] = u / alpha if alpha > 0 else 0.0
        v = left[i] @ M - alpha * right[i]
        v -= right[: i + 1].T @ (right[: i + 1] @ v)
        beta = _length(v)
        U, values, V = np.linalg.svd(bidiagonal[: i + 1, : i + 1])
        residual = beta * abs(float(U[-1, 0]))
        if residual <= tolerance * values[0] or beta <= tiny * values[0] or i == steps - 1:
            break
        bidiagonal[i, i + 1] = beta
        v = v / beta
    return Pair(float(values[0]), residual, U[:, 0] @ left[: i + 1], V[0] @ right[: i + 1])


def alternate(M: Any, starts: list[Array], n_nonzero: Kept, gain: float = GAIN) -> Pair:
    """Return the best of the non-negative pairs that the power method finds from several starts.

    Notes
    -----
    ``u = [M v]_+ / ||.||, v = [M'u]_+ / ||.||``, each the exact maximiser for the other, so that
    u'Mv never falls. With `n_nonzero` all but the largest entries are dropped at each step [1].
    """
    rights = np.stack([unit(start) for start in starts])
    rights = rights.astype(getattr(M, "dtype", rights.dtype))
    values = np.zeros(len(starts))
    rounds = ROUNDS if gain >= GAIN else PATIENT
    for sweep in range(SCREEN + rounds):
        if sweep == SCREEN:  # all starts were tried; the best one goes on alone
            best = int(values.argmax())
            rights, values = rights[[best]], values[[best]]
        before = values
        lefts, _ = nonnegative_units(rights @ M.T, n_nonzero[0])
        rights, values = nonnegative_units(lefts @ M, n_nonzero[1])
        if len(values) == 1 and values[0] - before[0] <= gain * values[0]:
            break
    return Pair(float(values[0]), 0.0, lefts[0], rights[0])


def nonnegative_units(rows: Array, n_nonzero: int | None) -> tuple[Array, Array]:
    """Return the normalised positive parts of rows, and their norms.

    A row without a positive entry becomes the unit vector of its largest entry, which is returned
    as its norm.
    """
    kept, n = np.maximum(rows, 0.0), rows.shape[1]
    if n_nonzero is not None and n_nonzero < n:
        dropped = np.argpartition(kept, n - n_nonzero, axis=1)[:, : n - n_nonzero]
        np.put_along_axis(kept, dropped, 0.0, axis=1)
    largest = kept.max(axis=1)
    scale = np.where(largest > 0, largest, 1.0)
    kept /= scale[:, None]
    norms = np.sqrt(np.einsum("ij,ij->i", kept, kept))
    for i in np.flatnonzero(norms == 0):
        top = int(rows[i].argmax())
        kept[i, top], norms[i], scale[i] = 1.0, 1.0, rows[i, top]
    kept /= norms[:, None]
    return kept, norms * scale


def spectral_bound(M: Array, level: float, rounds: int) -> tuple[float, bool]:
    """Return an upper bound on u'Mv over unit u, v >= 0, for an array M, and whether it is proved.

    Notes
    -----
    For every Y >= M and u, v >= 0 one has ``u'Mv <= u'Yv <= sigma_1(Y)``: Y = M and Y = [M]_+
    are two choices. The least sigma_1(Y) is a convex problem. `rounds` projections in turn onto
    {sigma_1(Y) <= level} and {Y >= M} come close to it, for the level that a pair has reached.
    The singular vectors above the level need not be accurate for that; the value of the last Y
    is proved by a Cholesky factorisation.
    """
    M = M if M.shape[0] <= M.shape[1] else np.ascontiguousarray(M.T)
    rng = np.random.default_rng(0)
    width = min(WIDTH, len(M))
    right = rng.standard_normal((M.shape[1], width)).astype(M.dtype)
    Y = M
    for _ in range(rounds):
        for _ in range(2):
            left = np.linalg.qr(Y @ right)[0]
            right = (left.T @ Y).T
        squares, turn = np.linalg.eigh(right.T @ right)
        sigma = np.sqrt(np.maximum(squares, 0.0))
        above = sigma > level
        if not above.any():
            break
        turn = turn[:, above] * np.sqrt(OVERSHOOT * (1.0 - level / sigma[above]))
        Y = np.maximum(Y - (left @ turn) @ (right @ turn).T, M)
        if above.all() and right.shape[1] < len(M):  # there are more above the level
            more = min(right.shape[1], len(M) - right.shape[1])
            fresh = rng.standard_normal((len(right), more)).astype(M.dtype)
            right = np.concatenate([right, fresh], axis=1)
    if len(Y) > PROVED:
        pair = leading_pair(Y, rng.standard_normal((Y.shape[1],)), 4 * STEPS, 0.0)
        return pair.value + pair.residual, False
    return proved_norm(Y.astype(np.float64)), True


def proved_norm(Y: Array) -> float:
    """Return an upper bound on the largest singular value of an array, wider than tall.

    c is such a bound if c^2 I - Y Y' has a Cholesky factor. The first c is a little above a Ritz
    value; if it fails, larger ones are tried (`ATTEMPTS`), and then the whole spectrum is computed.
    """
    scale = float(np.abs(Y).max())
    if not 0 < scale < np.inf:
        return scale
    Y = Y / scale
    gram = Y @ Y.T
    pair = leading_pair(gram, np.ones(len(gram)) + 1e-3 * np.arange(len(gram)), 2 * STEPS, 0.0)
    square = pair.value * (1.0 + 1e-4)
    for _ in range(ATTEMPTS):
        shifted = -gram
        shifted[np.diag_indices(len(gram))] += square
        try:
            cholesky(shifted, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            square *= 1.01
        else:
            return scale * float(np.sqrt(square))
    return scale * float(np.sqrt(np.linalg.eigvalsh(gram)[-1])) * (1.0 + 1e-6)


def unit(vector: Array) -> Array:
    """Return a vector scaled to norm 1; the zero vector becomes a constant one."""
    largest = float(np.abs(vector).max())
    if not largest > 0:
        return np.full(len(vector), 1.0 / np.sqrt(len(vector)))
    scaled = vector / largest
    return scaled / np.sqrt(scaled @ scaled)


def _length(vector: Array) -> float:
    """Return the norm of a vector whose squares may overflow or underflow."""
    largest = float(np.abs(vector).max())
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0 else 0.0
