"""Least squares of a factorisation whose data lie in the blocks of a Dask array.

A sweep is one pass: each block gets its part of the first factor, by HALS, and returns the sums
from which the second factor is updated. With the sums of a factor its value and the weights of its
components are known without a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector
from conepursuit.atoms.power import Bounds
from conepursuit.factorization import lazy_rows
from conepursuit.factorization.lazy_oracle import Residual, residual_pairs
from conepursuit.factorization.lazy_rows import RowBlocks, RowFactor, Sums, tile_of, tiles
from conepursuit.factorization.lazy_weights import best_rows
from conepursuit.factorization.losses import FactorLoss, Factors, Found, Penalty
from conepursuit.factorization.squared import COARSE, INNER, NARROW
from conepursuit.kernels import factorization as kernels
from conepursuit.kernels.constants import LARGEST_SQUARE

LEVEL = 1e-305
"""The least curvature along an entry that counts, as in ``cpp/factorization/greedy.hpp``."""


@dataclass(frozen=True)
class Survey:
    """What the first pass over the data finds, in units in which squares are safe.

    Attributes
    ----------
    unit : float
        What the data are divided by.
    square : float
        ||X||^2 without missing entries.
    largest : float
        The largest entry.
    missing : bool
        Whether an entry is NaN.
    single : bool
        Whether the blocks hold float32 or less.
    """

    unit: float
    square: float
    largest: float
    missing: bool
    single: bool


class LazySquaredLoss(FactorLoss):
    """1/2 sum (X - Z)^2 over the entries of X that are not NaN, with the rows of X in blocks.

    Parameters
    ----------
    rows : RowBlocks
        The data.
    survey : Survey
        What is known of them.
    penalties : tuple of Penalty
        Of both factors.

    Notes
    -----
    The steps are those of `SquaredLoss`, or `WeightedSquaredLoss` where entries are missing, but
    for the extrapolation, which only the second factor gets: then one copy of the first is enough,
    beside the one to return to. Four made data sets needed 17, 21, 61 and 61 sweeps, where with
    both factors extrapolated they needed 17, 24, 71 and 59. Blocks of float32 are multiplied in
    float32 until the sweeps settle, and tile by tile in float64 from then on; the first factor is
    stored as float32 all the time. Its rounding is no error of the sums, which are computed with
    what is stored.
    """

    def __init__(self, rows: RowBlocks, survey: Survey, penalties: tuple[Penalty, ...]) -> None:
        self.shape, self.penalties = rows.shape, penalties
        self.rows, self.survey, self.square = rows, survey, survey.square
        self.coarse = survey.single and NARROW < survey.largest < 1.0 / NARROW
        self.stored = np.float32 if self.coarse else np.float64
        self._sweep: tuple[Any, ...] = ()

    @property
    def kind(self) -> Any:
        """The dtype of products with the data."""
        return np.float32 if self.coarse else np.float64

    def zeros(self, count: int) -> Factors:
        first: Any = lazy_rows.zeros(self.rows, count, self.stored)
        return first, np.zeros((count, self.shape[1]))

    def stacked(self, *parts: Factors) -> Factors:
        firsts: Any = [first for first, _ in parts]
        first: Any = lazy_rows.stacked(firsts)
        return first, np.vstack([second for _, second in parts])

    def sums(self, factor: Any) -> Sums:
        """Return the sums of a factor of the rows, by a pass if they are not known.

        Returns
        -------
        gram : array of shape (k, k)
            ``F F'``.
        cross : array of shape (k, n)
            ``F X``, without missing entries.
        total : array of shape (k,)
            The sum of each component.
        grams : array of shape (k (k + 1) / 2, n)
            Where entries are missing, ``F diag(m) F'`` for each column m of ones and zeros, of
            which the lower triangle is left out.
        """
        if factor.sums.get("kind") is not self.kind:
            work = partial(_measured, missing=self.survey.missing, kind=self.kind, unit=self.unit)
            factor.sums = {**self.rows.sums(work, factor), "kind": self.kind}
        known, s = factor.sums, factor.scale
        found = {
            "gram": s[:, None] * known["gram"] * s,
            "cross": s[:, None] * known["cross"],
            "total": s * known["total"],
        }
        if self.survey.missing:
            one, two = np.triu_indices(len(s))
            found["grams"] = (s[one] * s[two])[:, None] * known["grams"]
        return found

    @property
    def unit(self) -> float:
        """What the data are divided by."""
        return self.survey.unit

    def fit(self, factors: Factors) -> float:
        sums, G = self.sums(factors[0]), factors[1]
        cross, model = float(np.vdot(sums["cross"], G)), modelled(sums, G)
        return max(0.5 * self.square - cross + 0.5 * float(np.vdot(model, G)), 0.0)

    def cost(self, factors: Factors) -> float:
        if not self.penalised:
            return 0.0
        (linear, squared), second = self.penalties
        total, squares = self.sizes(factors[0])
        own = linear * float(total.sum()) + 0.5 * squared * float(squares.sum())
        return own + second(factors[1])

    def sizes(self, factor: Any) -> tuple[Vector, Vector]:
        if isinstance(factor, RowFactor):
            sums = self.sums(factor)
            return sums["total"], np.diag(sums["gram"])
        return super().sizes(factor)

    def grams(self, factors: Factors) -> Array:
        gram: Array = self.sums(factors[0])["gram"] * (factors[1] @ factors[1].T)
        return gram

    def scores(self, factors: Factors, weights: Vector, descent: Any) -> Vector:
        sums, G = self.sums(factors[0]), factors[1]
        excess = modelled(sums, weights[:, None] * G) - sums["cross"]
        found: Vector = np.einsum("kj,kj->k", excess, G)
        return found

    def smoothness(self, factors: Factors, old: int, descent: Any) -> float:
        return 1.0

    def descent(self, factors: Factors) -> Residual:
        first: Any = factors[0]
        return Residual(self.rows, first, factors[1], self.kind, self.unit, self.survey.missing)

    def atoms(self, descent: Any, more: int, rounds: int, extra: Any) -> tuple[list[Found], Bounds]:
        return residual_pairs(descent, more, extra, self.stored)

    def _swept(
        self, ahead: Factors, last: Factors, momentum: float
    ) -> tuple[Factors, Factors, float]:
        first, G = ahead
        for factor in self._sweep:
            if factor is not first:
                # The last sweep led from one factor to the other, and this one begins at `first`:
                # no sweep returns to the other, though callers may still have a name for it.
                factor.release()
        new: Any = self.fitted_rows(first, G)
        self._sweep = first, new
        moved = new, G.copy()
        value = self.update(moved, 1)
        return moved, moved, value

    def noted(self, factors: Factors) -> Any:
        """Return the second factor alone: the first one may be `released`, and is made anew."""
        return factors[1]

    def restored(self, noted: Any) -> Factors:
        return best_rows(self.rows, noted, self.penalty(0), False, self.unit), noted

    def fitted_rows(self, factor: Any, G: Array) -> RowFactor:
        """Return the factor of the rows after its sweeps for a given G, with its sums: one pass."""
        work = partial(
            _swept_block, scale=factor.scale, G=G, penalty=self.penalty(0),
            missing=self.survey.missing, kind=self.kind, stored=self.stored, unit=self.unit,
        )  # fmt: skip
        parts, sums = self.rows.visit(work, factor)
        return RowFactor.of(parts, len(G), self.shape[0], {**sums, "kind": self.kind})

    def update(self, factors: Factors, axis: int) -> float:
        """Improve the second factor in place, from the sums of the first, and return the value."""
        assert axis == 1  # the first is updated by `fitted_rows`
        sums, G = self.sums(factors[0]), factors[1]
        if self.survey.missing:
            _sweep_columns(sums, G, self.penalty(1))
        else:
            penalty, k = self.penalty(1), len(G)
            gram = sums["gram"] + penalty.squared * np.eye(k)
            kernels.hals(gram, sums["cross"] - penalty.linear, G, INNER)
        value = self.value(factors)
        if value < COARSE * self.square:
            self.refine()
        return value

    def audit(self, factors: Factors) -> float:
        first: Any = factors[0]
        work = partial(_remainder, scale=first.scale, G=factors[1], unit=self.unit)
        return max(0.5 * float(self.rows.sums(work, first)["square"]), 0.0)


def modelled(sums: Sums, G: Array) -> Array:
    """Return F Z, for Z = F'G at the entries that are not missing, from the sums of F."""
    if "grams" not in sums:
        return np.asarray(sums["gram"] @ G)
    out = np.zeros_like(G)
    for own, r, s in zip(sums["grams"], *np.triu_indices(len(G)), strict=True):
        out[r] += own * G[s]
        if r != s:
            out[s] += own * G[r]
    return out


def _sweep_columns(sums: Sums, G: Array, penalty: Penalty) -> None:
    """Sweep over the components of G, in place, each column with a Gram matrix of its own.

    As in ``cpp/factorization/weighted.hpp``: an entry without curvature becomes 0 if its penalty
    exceeds the pull of the data, and stays otherwise.
    """
    pulls, k = sums["cross"] - modelled(sums, G), len(G)
    one, two = np.triu_indices(k)
    places = np.zeros((k, k), dtype=int)
    places[one, two] = places[two, one] = np.arange(len(one))
    grams = sums["grams"]
    for _ in range(INNER):
        for r in range(k):
            bend = grams[places[r, r]]
            total = bend + penalty.squared
            level = total < LEVEL
            best = (bend * G[r] + pulls[r] - penalty.linear) / np.where(level, 1.0, total)
            flat = np.where(pulls[r] < penalty.linear + penalty.squared * G[r], 0.0, G[r])
            best = np.where(level, flat, np.clip(best, 0.0, LARGEST_SQUARE))
            pulls -= grams[places[r]] * (best - G[r])
            G[r] = best


def _no_sums(k: int, n: int, missing: bool) -> Sums:
    sums = {"gram": np.zeros((k, k)), "cross": np.zeros((k, n)), "total": np.zeros(k)}
    if missing:
        sums["grams"] = np.zeros((k * (k + 1) // 2, n))
    return sums


def _add_tile(sums: Sums, x: Any, exact: Array) -> None:
    """Add what a tile of the data and its part of the factor have to the sums."""
    sums["gram"] += exact @ exact.T
    sums["total"] += exact.sum(axis=1)
    if sparse.issparse(x):
        sums["cross"] += (x.T @ exact.T).T
        return
    if "grams" in sums:
        there = ~np.isnan(x)
        x = np.where(there, x, 0.0)
        one, two = np.triu_indices(len(exact))
        sums["grams"] += (exact[one] * exact[two]) @ there
    sums["cross"] += exact.astype(x.dtype, copy=False) @ x


def _measured(block: Any, F: Sequence[Array], *, missing: bool, kind: Any, unit: float) -> Any:
    """Return the sums of a factor for one block."""
    sums = _no_sums(sum(map(len, F)), block.shape[1], missing)
    for rows, x in tiles(block, kind, unit):
        _add_tile(sums, x, tile_of(F, rows))
    return None, sums


def _swept_block(
    block: Any, F: Sequence[Array], *, scale: Vector, G: Array, penalty: Penalty, missing: bool,
    kind: Any, stored: Any, unit: float,
) -> Any:  # fmt: skip
    """Return the part of the first factor for one block after its sweeps, and its sums."""
    new = np.empty((len(G), block.shape[0]), dtype=stored)
    gram = G @ G.T + penalty.squared * np.eye(len(G))
    columns = np.ascontiguousarray(G.T.astype(kind))
    sums = _no_sums(len(G), block.shape[1], missing)
    for rows, x in tiles(block, kind, unit):
        own = tile_of(F, rows, scale)
        if missing and not sparse.issparse(x):
            there = ~np.isnan(x)
            exact = np.where(there, x, 0.0).astype(np.float64)
            kernels.sweep_weighted(exact, there.astype(np.float64), own, G, *penalty, INNER)
        else:
            target = (x @ columns).T.astype(np.float64, order="C")
            if penalty.linear:
                target -= penalty.linear
            kernels.hals(gram, target, own, INNER)
        new[:, rows] = rounded = own.astype(stored, copy=False)
        _add_tile(sums, x, rounded.astype(np.float64, copy=False))  # what is stored counts
    return new, sums


def _remainder(block: Any, F: Sequence[Array], *, scale: Vector, G: Array, unit: float) -> Any:
    """Return ||X - F'G||^2 for one block, without missing entries."""
    total, gram = 0.0, G @ G.T
    for rows, x in tiles(block, np.float64, unit):
        own = tile_of(F, rows, scale)
        if sparse.issparse(x):
            model = float(np.vdot(gram @ own, own))
            total += float(np.vdot(x.data, x.data)) + model - 2.0 * float(np.vdot((x @ G.T).T, own))
        else:
            rest = np.nan_to_num(x - own.T @ G, copy=False)  # NaN is missing
            total += float(np.vdot(rest, rest))
    return None, {"square": total}
