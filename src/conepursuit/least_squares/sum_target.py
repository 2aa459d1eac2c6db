"""Non-negative least squares of one target with a given sum of weights.

A dense dictionary goes to the kernel for many targets, an equality-constrained active set. What
that gives back, and all else, is found by ordinary non-negative least squares, see `_pursue`.
"""

from __future__ import annotations

from math import frexp, fsum, sqrt
from typing import Any

import numpy as np

from conepursuit.arrays import EPS, Array, Vector, norm
from conepursuit.kernels import least_squares as kernels
from conepursuit.least_squares.audit import lost_to_weights
from conepursuit.least_squares.many import GRAM_ATOMS
from conepursuit.least_squares.one_target import fit_one
from conepursuit.least_squares.sum_hull import shortest_in_hull, tilted_sum_gap
from conepursuit.least_squares.sum_kernels import SumFits, SumKernels, WeightSum
from conepursuit.least_squares.survey import survey
from conepursuit.linear import check_finite, is_operator, is_sparse, matvec, rmatvec
from conepursuit.matrix_fits.arguments import check_entries
from conepursuit.matrix_fits.results import STATUSES, NNLSResult
from conepursuit.matrix_fits.safe_units import SafeUnits, largest_entries, times_powers
from conepursuit.rounding import FLOOR, product_rounding, resolution
from conepursuit.status import Status

MOST_FITS = 60
"""The most ordinary fits on the way to a given sum; most targets need four."""

CLOSE_TO_SUM = 8 * EPS
"""The sum of an ordinary fit is s if it differs by no more than this share of the target's size."""

LOOSE = 1e-9
"""A larger gap than this share of ||b||^2 and ||r||^2 is worth an ordinary fit in other units."""

FARTHEST = 400
"""Data are measured in units in which b is at most 2 to this power times the size of s A.

Then the squares of targets that are far away do not overflow, nor do their weights underflow.
"""

SMALLEST_SUM = float(np.finfo(np.float64).tiny)
"""The least sum of weights in these units; a smaller one would lose digits."""


def fit_one_sum(
    matrix: Any, b: Vector, total: WeightSum, inexact: float, max_steps: int, name: str = "b"
) -> NNLSResult:
    """Fit one target with the sum of weights `total`; other arguments are those of `fit_one`.

    Notes
    -----
    The data are first brought to units in which nothing overflows. All columns have one unit, since
    the sum ties their weights.
    """
    check_finite(matrix, "A")
    check_entries(b, name)
    units = _units(matrix, b, total.s)
    power = int(units.columns[0])
    own = WeightSum(float(times_powers(total.s, power - units.target)), total.at_most)
    if not own.s >= SMALLEST_SUM:
        raise ValueError(
            f"{name} is more than 2^1400 times as large as the atoms times the sum of weights, "
            f"{total.s:.3g}; scale A or b."
        )
    scaled, unit = units.matrix(matrix), units.vector(b)
    fit = _fit_in_units(scaled, unit, own, inexact, max_steps)
    x, exact = units.weights_back(fit.x)
    if not exact:  # weights underflow: certify the nearest floats, which are returned
        fit = SumProof(scaled, unit, units.weights(x), own).result(Status.STALLED, fit.n_iter)
    return NNLSResult(
        x, units.length_back(fit.rnorm), units.slopes_back(fit.dual), units.gap_back(fit.gap),
        fit.proven and not lost_to_weights(inexact, units), fit.status, fit.n_iter,
        float(times_powers(fit.sum_multiplier, power + units.target)),
    )  # fmt: skip


def _units(matrix: Any, b: Vector, s: float) -> SafeUnits:
    """Return units in which A and s are near one, or b is near 2^FARTHEST where it is larger."""
    n = matrix.shape[1]
    if is_operator(matrix):
        largest = float(largest_entries(matrix).max())
    else:
        entries = matrix.data if is_sparse(matrix) else matrix
        largest = max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0)))
    target, size = frexp(float(np.abs(b).max()))[1], frexp(s)[1]
    power = frexp(largest)[1] if largest > 0 else target - size
    return SafeUnits(np.full(n, power), max(power + size, target - FARTHEST))


def _fit_in_units(
    matrix: Any, b: Vector, total: WeightSum, inexact: float, max_steps: int
) -> NNLSResult:
    """Fit one target whose units are safe."""
    fit = _by_kernel(matrix, b, total, max_steps)
    if fit is None:
        fit = _by_ordinary_fits(matrix, b, total, inexact, max_steps)
    if not isinstance(matrix, np.ndarray) or fit.gap <= LOOSE * max(norm(b), fit.rnorm) ** 2:
        return fit
    # Atoms of very different norms: their own units, and a bound in which each counts in its own.
    with np.errstate(all="ignore"):
        x = shortest_in_hull(matrix, b, total, atom_norms(matrix, b), max_steps)
        proofs = [SumProof(matrix, b, weights, total) for weights in (fit.x, x)]
        for proof in proofs:
            proof.tilt(matrix)
    better = min(proofs, key=lambda proof: proof.gap)
    if not better.gap < fit.gap:
        return fit
    return better.result(fit.status, fit.n_iter)


def _by_ordinary_fits(
    matrix: Any, b: Vector, total: WeightSum, inexact: float, max_steps: int
) -> NNLSResult:
    """Fit one target by ordinary non-negative least squares."""
    steps = 0
    if total.at_most:
        fit = fit_one(matrix, b, None, inexact, matrix.shape[1], max_steps, 0.0)
        if float(fit.x.max()) <= total.s and fsum(fit.x) <= total.s:
            return _with_room(fit, SumProof(matrix, b, fit.x, total))
        steps = fit.n_iter
    return _pursue(matrix, b, total, max_steps, steps)


def _with_room(fit: NNLSResult, proof: SumProof) -> NNLSResult:
    """Return an ordinary fit whose sum is below the limit; a proof without that holds with it."""
    gap = min(fit.gap, proof.gap) if fit.proven else proof.gap
    return NNLSResult(fit.x, fit.rnorm, fit.dual, gap, True, fit.status, fit.n_iter, 0.0)


def _by_kernel(matrix: Any, b: Vector, total: WeightSum, max_steps: int) -> NNLSResult | None:
    """Fit a target by the kernel; None where that does not suffice."""
    if not isinstance(matrix, np.ndarray) or matrix.shape[1] > GRAM_ATOMS:
        return None
    known = SumKernels.of(matrix, total, max_steps)
    if known is None:
        return None
    fits = SumFits(1, matrix.shape[1])
    known.one_by_one()(b[None], *fits.rows(slice(1)))
    if fits.code[0] < 0:
        return None
    return NNLSResult(
        fits.x[0], float(fits.measure[0]), fits.dual[0], float(fits.gap[0]), bool(fits.proven[0]),
        STATUSES[fits.code[0]], int(fits.n_iter[0]), float(fits.multipliers[0]),
    )  # fmt: skip


class SumProof:
    """A bound on f(x) - f* over x >= 0 with a given sum of weights, for a matrix of any kind.

    Parameters
    ----------
    matrix, b, x
        The problem, and weights that are not negative.
    total : WeightSum
        What weights sum to. That those of x do so up to rounding only is counted in the gap.

    Notes
    -----
    With r = b - A x and slopes h = A'r, f(x) - f* is at most s max_j h_j - <h, x>, where for
    ``sum_at_most`` the first term is 0 if it is negative. `sum_gap` of the kernels is that with the
    rounding of r and h. As f* >= 0, f(x) is another bound.
    """

    def __init__(self, matrix: Any, b: Vector, x: Vector, total: WeightSum) -> None:
        self.x, self.total, noise = np.ascontiguousarray(x), total, product_rounding(len(b))
        norms = atom_norms(matrix, b)
        r = b - matvec(matrix, self.x)
        self.rnorm, self.slopes = norm(r), rmatvec(matrix, r)
        reach = norm(b) + float(norms @ self.x)
        length = (1.0 + noise) * self.rnorm + FLOOR * reach
        distance = product_rounding(int(np.count_nonzero(x))) * reach
        gap = kernels.sum_gap(
            self.slopes, noise * length * norms, 0.0, self.x, total.s, total.at_most, distance
        )
        self.gap = min(gap, (0.5 + 4.0 * EPS) * (length + distance) ** 2)
        self._length, self._distance, self._norms, self._r = length, distance, norms, r
        scale = reach * (norm(b) + total.s * float(norms.max()))
        self._enough = 0.5 * resolution(len(b)) * scale

    def tilt(self, matrix: Array) -> None:
        """Try a bound that holds where the norms of the atoms differ by many powers of ten."""
        gap = tilted_sum_gap(
            matrix, self.x, self._r, self.slopes, self._norms, self.total, self._length,
            self._distance,
        )  # fmt: skip
        self.gap = min(self.gap, gap)

    @property
    def fine(self) -> bool:
        """Whether the gap is at most the `resolution` of the data.

        It is a share of (||b|| + sum_j x_j ||a_j||) (||b|| + s max_j ||a_j||), the size of the
        residual times that of the set, in place of ||b||^2.
        """
        return self.gap <= self._enough

    def result(self, status: Status, n_iter: int) -> NNLSResult:
        """Return the fit that is proved."""
        mu = float(self.slopes @ self.x) / self.total.s
        if self.total.at_most:
            mu = max(mu, 0.0)
        return NNLSResult(self.x, self.rnorm, mu - self.slopes, self.gap, True, status, n_iter, mu)


def atom_norms(matrix: Any, b: Vector) -> Vector:
    """Return upper bounds on the norms of the atoms; those of a LinearOperator are estimated."""
    if is_operator(matrix):
        return survey(matrix, b).norms
    squares = matrix.multiply(matrix).sum(axis=0) if is_sparse(matrix) else (matrix**2).sum(axis=0)
    # Squares that underflow are less than this.
    lost = matrix.shape[0] * SMALLEST_SUM
    norms: Vector = np.sqrt(np.asarray(squares, dtype=np.float64).ravel() + lost)
    return norms


def _pursue(matrix: Any, b: Vector, total: WeightSum, max_steps: int, steps: int) -> NNLSResult:
    """Fit a target with the sum s by ordinary non-negative least squares.

    The best atom alone is another candidate: targets that are far away leave no digit for others.
    `steps` of the `max_steps` are spent already.
    """
    s, norms = total.s, atom_norms(matrix, b)
    search = SumSearch(matrix, b, s, norms, max_steps - steps)
    search.run()
    alone = np.zeros(len(norms))
    alone[np.argmax(rmatvec(matrix, b) - 0.5 * s * norms**2)] = s
    proofs = [SumProof(matrix, b, x, total) for x in (search.closed(), alone)]
    proof = min(proofs, key=lambda proof: proof.gap)
    ended = Status.MAX_ITER if search.room <= 0 else Status.STALLED
    return proof.result(Status.STATIONARY if proof.fine else ended, max_steps - search.room)


class SumSearch:
    """Ordinary fits whose weights come to sum to s.

    Parameters
    ----------
    matrix, b, s
        The problem.
    norms : array of shape (n,)
        The norms of the atoms.
    room : int
        How many linear systems may be solved.

    Notes
    -----
    With one more row of tau in A and of beta in b, the solution is that of the sum which it happens
    to have, whatever beta is. Where beta grows, that sum does not fall: it is piecewise linear,
    with slopes between tau / (tau^2 + max_j ||a_j||^2) and 1 / tau where it is not zero. So its
    crossing of s is found by false position. tau is the root mean square of the norms, so that all
    slopes are of one size.
    """

    def __init__(self, matrix: Any, b: Vector, s: float, norms: Vector, room: int) -> None:
        self.s, self.room, self._b = s, room, b
        self._tau = sqrt(float(norms @ norms) / len(norms))
        self._raised = with_row(matrix, self._tau)
        self._x = self._best = np.zeros(len(norms))
        self._excess = -s

    def run(self) -> None:
        """Fit with one beta after the other, until the sum is s up to rounding."""
        beta, last, pace = self._tau * self.s, 0, self._tau
        close = CLOSE_TO_SUM * (self.s + norm(self._b) / self._tau)
        ends: dict[int, tuple[float, float]] = {}
        for _ in range(MOST_FITS):
            found = self._fit(beta)
            if abs(found) <= close or self.room <= 0:
                break
            side = 1 if found > 0 else -1
            if side == last and -side in ends:  # the end that stays counts less (Illinois)
                ends[-side] = ends[-side][0], ends[-side][1] / 2
            ends[side], last = (beta, found), side
            if len(ends) == 1:
                following, pace = beta - pace * found, 4 * pace
            else:
                (low, below), (high, above) = ends[-1], ends[1]
                following = low - below * (high - low) / (above - below)
            if following == beta:
                break
            beta = following

    def _fit(self, beta: float) -> float:
        """Fit with one beta; return how much the sum exceeds s."""
        target, n = np.append(self._b, beta), len(self._x)
        fit = fit_one(self._raised, target, self._x, 0.0, n, self.room, 0.0)
        self._x, self.room = fit.x, self.room - fit.n_iter
        excess = fsum(fit.x) - self.s
        if abs(excess) < abs(self._excess):
            self._best, self._excess = fit.x, excess
        return excess

    def closed(self) -> Vector:
        """Return the weights whose sum came closest to s, scaled so that it is s."""
        whole = fsum(self._best)
        x: Vector = self._best * (self.s / whole if whole > 0 else 0.0)
        kernels.close_sum(x, self.s)
        return x


def with_row(matrix: Any, entry: float) -> Any:
    """Return a matrix of any kind with one more row, all of whose entries are the same."""
    m, n = matrix.shape
    if isinstance(matrix, np.ndarray):
        return np.asfortranarray(np.vstack([matrix, np.full((1, n), entry)]))
    from scipy import sparse
    from scipy.sparse.linalg import LinearOperator

    if is_sparse(matrix):
        return sparse.csc_array(sparse.vstack([matrix, sparse.csc_array(np.full((1, n), entry))]))
    return LinearOperator(
        (m + 1, n),
        matvec=lambda x: np.append(matvec(matrix, x), entry * np.sum(x)),
        rmatvec=lambda y: rmatvec(matrix, y[:-1]) + entry * y[-1],
        dtype=np.float64,
    )
