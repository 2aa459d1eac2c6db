"""The Kullback-Leibler divergence of a factorisation whose data lie in blocks of a Dask array.

A sweep is one pass: each block steps its part of the first factor, and returns the sums from which
the second factor is stepped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector
from conepursuit.factorization import lazy_rows
from conepursuit.factorization.divergence import LIMIT, NONE, DivergenceLoss
from conepursuit.factorization.lazy_rows import RowBlocks, RowFactor, Sums, tile_of, tiles
from conepursuit.factorization.lazy_squared import Survey
from conepursuit.factorization.losses import NO_PENALTIES, Factors
from conepursuit.kernels import factorization as kernels
from conepursuit.low_rank import product_at

NEGLIGIBLE = 1e-290
"""Where Z / X is not above this, X / Z counts as 0, as in ``cpp/factorization/divergence.hpp``."""

TRAPPED, SLACK = 1e-9, 1e-7
"""When an entry of the second factor is next to zero and should grow, as in that file.

Its share of the sum of its column of X is at most TRAPPED, and its pull exceeds its price by more
than the share SLACK.
"""

SMALL = 1e-6
"""Share of the largest entry of its component below which an entry may be next to zero."""


class LazyDivergenceLoss(DivergenceLoss):
    """The divergence of X from Z over the entries of X that are not NaN, with rows in blocks.

    Parameters
    ----------
    rows : RowBlocks
        The data.
    survey : Survey
        What is known of them.

    Notes
    -----
    The sweeps are those of `DivergenceLoss`, with one difference: entries of the second factor that
    are next to zero and should grow take their steps of Newton's method together, so that no pass
    is needed for each; see `update`. There are no penalties, and no oracle: sweeps begin with
    factors that are positive.
    """

    splits = False

    def __init__(self, rows: RowBlocks, survey: Survey) -> None:
        self.shape, self.penalties = rows.shape, NO_PENALTIES
        self.rows, self.survey = rows, survey

    def zeros(self, count: int) -> Factors:
        first: Any = lazy_rows.zeros(self.rows, count, np.float64)
        return first, np.zeros((count, self.shape[1]))

    def raised(self, factors: Factors, share: float) -> Factors:
        """Return what `DivergenceLoss` does, for factors that are those of `LazySquaredLoss`."""
        first: Any = factors[0]
        scale, least = first.scale, share * first.scale * first.sums["total"] / self.shape[0]

        def work(length: int, F: Sequence[Array]) -> Array:
            raised: Array = np.maximum(tile_of(F, slice(None), scale), least[:, None])
            return raised

        raised: Any = RowFactor.of(self.rows.keep(work, first), len(first), self.shape[0])
        return (raised, *super().raised(factors[1:], share))

    def first(self) -> Factors:
        parts, sums = self._visit(_row_sums)
        total = sums["columns"].sum() or 1.0
        first: Any = RowFactor.of(parts, 1, self.shape[0])
        return first, sums["columns"][None] / total

    def fit(self, factors: Factors) -> float:
        return self._first_step(factors, step=False)[0]

    def _visit(self, work: Any, *factors: Any, **options: Any) -> tuple[list[Any], Sums]:
        found: tuple[list[Any], Sums] = self.rows.visit(
            partial(work, unit=self.survey.unit, **options), *factors
        )
        return found

    def _first_step(self, factors: Factors, step: bool) -> tuple[float, Array]:
        first: Any = factors[0]
        options = {"scale": first.scale, "G": factors[1], "missing": self.survey.missing}
        largest = factors[1].max(axis=1, keepdims=True)
        options["bends"] = bool((factors[1] <= SMALL * largest).any())
        parts, sums = self._visit(_stepped_block, first, step=step, **options)
        if not step:
            return float(sums["value"]), first
        stepped: Any = RowFactor.of(parts, len(first), self.shape[0], sums)
        return float(sums["value"]), stepped

    def update(self, factors: Factors, axis: int) -> None:
        """Step the second factor, from the sums that came with the step of the first.

        Notes
        -----
        The divergence is convex in a column of G. It does not rise by the multiplicative step, nor
        by a step of Newton's method from zero for a single entry. So it does not rise at the mean
        of these points either: of the first, and of the mean of the others, where there are any.
        """
        first: Any = factors[0]
        G, pull, price = factors[1], first.sums["pull"], first.sums["price"]
        steps = np.divide(pull, price, out=np.ones_like(pull), where=price > 0)
        grown = G * steps
        grown = np.where(grown >= NEGLIGIBLE, grown, 0.0)
        if "bend" in first.sums:
            bend, mass = first.sums["bend"], (G * pull).sum(axis=0)
            trapped = (G * price <= TRAPPED * mass) & (pull > (1.0 + SLACK) * price) & (bend > 0)
            newton = np.divide(pull - price, bend, out=np.zeros_like(bend), where=trapped)
            count = trapped.sum(axis=0)
            raised = G + newton / np.maximum(count, 1)
            grown = np.where(count > 0, 0.5 * (grown + raised), grown)
        G[:] = grown

    # A factor in blocks goes where the base class has an array.
    def _beyond(self, new: Any, old: Any, share: float) -> Any:  # type: ignore[override]
        if share == 0 or not isinstance(new, RowFactor):
            return super()._beyond(new, old, share)
        scales = new.scale, old.scale

        def work(length: int, *parts: Sequence[Array]) -> Array:
            one, two = map(tile_of, parts, 2 * [slice(None)], scales)
            out = np.empty(one.shape)
            kernels.extrapolate(one, two, share, LIMIT, out)
            return out

        return RowFactor.of(self.rows.keep(work, new, old), len(new), self.shape[0])

    def cleaned(self, F: Any) -> Any:
        """Return a factor with 0 for entries that are `VANISHING`; that of the rows stays."""
        return F if isinstance(F, RowFactor) else super().cleaned(F)


def _row_sums(block: Any, *, unit: float) -> Any:
    """Return the sums of the rows of one block, and what they add to those of the columns."""
    sums, columns = np.zeros((1, block.shape[0])), np.zeros(block.shape[1])
    for rows, x in tiles(block, np.float64, unit):
        there = x if sparse.issparse(x) else np.nan_to_num(x)
        sums[0, rows] = np.asarray(there.sum(axis=1)).ravel()
        columns += np.asarray(there.sum(axis=0)).ravel()
    return sums, {"columns": columns}


def _stepped_block(
    block: Any, F: Sequence[Array], *, scale: Vector, G: Array, missing: bool, step: bool,
    bends: bool, unit: float,
) -> Any:  # fmt: skip
    """Return the part of the first factor for one block after its step, with the sums.

    "value" is the divergence before the step. "pull" and "price" are the parts of minus the
    derivative by G after it: G steps by their quotient. "bend" has the second derivatives by each
    entry of G, if asked.
    """
    k, n = G.shape
    new = np.empty((k, block.shape[0])) if step else None
    sums: Sums = {"value": 0.0}
    if step:
        sums |= {"pull": np.zeros((k, n)), "price": np.zeros((k, n) if missing else (k, 1))}
        sums |= {"bend": np.zeros((k, n))} if bends else {}
    for rows, x in tiles(block, np.float64, unit):
        own, M = tile_of(F, rows, scale), NONE
        if sparse.issparse(x):
            stored = x.data, x.indices, x.indptr
            value = kernels.update_sparse(*stored, own, G, G.sum(axis=1), 0.0, 0.0, step, True)
        else:
            if missing:
                M = (~np.isnan(x)).astype(np.float64)
                x = np.nan_to_num(x)
            value = kernels.update_dense(x, M, own, G, 0.0, 0.0, step, True)
        sums["value"] += value
        if new is not None:
            new[:, rows] = own
            sums["price"] += own @ M if M.size else own.sum(axis=1)[:, None]
            _add_pulls(sums, x, own, G)
    return new, sums


def _add_pulls(sums: Sums, x: Any, F: Array, G: Array) -> None:
    """Add F (X / Z) and, if asked, F^2 (X / Z^2) of a tile, with 0 for infinite quotients."""
    places = x if sparse.issparse(x) else None
    model = F.T @ G if places is None else product_at(x, F, G)
    shares = _quotients(x if places is None else x.data, model)
    sums["pull"] += _collected(F, shares, places)
    if "bend" in sums:
        sums["bend"] += _collected(F * F, _quotients(shares, model), places)


def _collected(F: Array, entries: Array, places: Any) -> Array:
    """Return F times a matrix, given as an array or by its entries at the places of another."""
    if places is None:
        return np.asarray(F @ entries)
    matrix = sparse.csr_array((entries, places.indices, places.indptr), places.shape)
    return np.asarray((matrix.T @ F.T).T)


def _quotients(x: Array, model: Array) -> Array:
    """Return x / model, or 0 where that is infinite."""
    return np.divide(x, model, out=np.zeros_like(model), where=model > NEGLIGIBLE * x)
