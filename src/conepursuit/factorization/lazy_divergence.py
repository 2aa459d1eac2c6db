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
    The sweeps are those of `DivergenceLoss`, with one difference: an entry of the second factor
    that is next to zero moves by multiplicative steps alone. There are no penalties, and no oracle:
    sweeps begin with factors that are positive.
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
        parts, sums = self._visit(_stepped_block, first, step=step, **options)
        if not step:
            return float(sums["value"]), first
        stepped: Any = RowFactor.of(parts, len(first), self.shape[0], sums)
        return float(sums["value"]), stepped

    def update(self, factors: Factors, axis: int) -> None:
        """Step the second factor, from the sums that came with the step of the first."""
        first: Any = factors[0]
        G, pull, price = factors[1], first.sums["pull"], first.sums["price"]
        steps = np.divide(pull, price, out=np.ones_like(pull), where=price > 0)
        grown = G * steps
        G[:] = np.where(grown >= NEGLIGIBLE, grown, 0.0)

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
    block: Any,
    F: Sequence[Array],
    *,
    scale: Vector,
    G: Array,
    missing: bool,
    step: bool,
    unit: float,
) -> Any:
    """Return the part of the first factor for one block after its step, with the sums.

    "value" is the divergence before the step. "pull" and "price" are the parts of minus the
    derivative by G after it: G steps by their quotient.
    """
    k, n = G.shape
    new = np.empty((k, block.shape[0])) if step else None
    sums: Sums = {"value": 0.0}
    if step:
        sums |= {"pull": np.zeros((k, n)), "price": np.zeros((k, n) if missing else (k, 1))}
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
            sums["pull"] += _pulls(x, own, G)
            sums["price"] += own @ M if M.size else own.sum(axis=1)[:, None]
    return new, sums


def _pulls(x: Any, F: Array, G: Array) -> Array:
    """Return F (X / Z) for a tile, with 0 for quotients that are not finite."""
    if sparse.issparse(x):
        model = product_at(x, F, G)
        shares = _quotients(x.data, model)
        found = sparse.csr_array((shares, x.indices, x.indptr), x.shape).T @ F.T
        return np.asarray(found.T)
    return np.asarray(F @ _quotients(x, F.T @ G))


def _quotients(x: Array, model: Array) -> Array:
    """Return x / model, or 0 where that is infinite."""
    return np.divide(x, model, out=np.zeros_like(model), where=model > NEGLIGIBLE * x)
