"""The data of a factorisation in a Dask array: what is known of them, and the best W for an H."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array
from conepursuit.factorization.data import safe_unit
from conepursuit.factorization.lazy_divergence import LazyDivergenceLoss
from conepursuit.factorization.lazy_rows import Largest, RowBlocks, tiles, visited
from conepursuit.factorization.lazy_squared import LazySquaredLoss, Survey
from conepursuit.factorization.lazy_weights import best_rows, weighed
from conepursuit.factorization.losses import NO_PENALTIES, FactorLoss, Penalty
from conepursuit.matrix_fits.lazy import Sent


@dataclass(frozen=True)
class LazyFactorData:
    """Data X >= 0 in a Dask array, in the place of `FactorData`.

    Attributes
    ----------
    rows : RowBlocks
        The blocks of X.
    survey : Survey
        What the first pass has found.
    divergence : bool
        Whether the loss is the Kullback-Leibler divergence, not least squares.
    """

    rows: RowBlocks
    survey: Survey
    divergence: bool

    @classmethod
    def of(cls, X: Any, divergence: bool, *, scale: bool) -> LazyFactorData:
        """Return the data after a pass that checks them, in units in which squares are safe.

        Parameters
        ----------
        X : dask.array.Array of shape (m, n)
            The data, with one chunk along the columns; NaN is missing.
        divergence : bool
            Whether the loss is the divergence.
        scale : bool
            Whether the data may be scaled.
        """
        rows = RowBlocks(X)
        found = rows.sums(partial(_surveyed, unit=1.0))
        if found["missing"] == X.size:
            raise ValueError("no entry of X counts: all are NaN.")
        unit = safe_unit(found["largest"].size) if scale else 1.0
        if unit != 1.0:  # the squares have overflowed, or are zero
            found = rows.sums(partial(_surveyed, unit=unit))
        single = X.dtype.kind == "f" and X.dtype.itemsize <= 4
        missing = bool(found["missing"])
        survey = Survey(unit, found["square"], found["largest"].size, missing, single)
        return cls(rows, survey, divergence)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return self.rows.shape

    @property
    def unit(self) -> float:
        """What the data are divided by."""
        return self.survey.unit

    def loss(
        self, penalties: tuple[Penalty, ...] = NO_PENALTIES, *, correction: str | None = None
    ) -> FactorLoss:
        """Return the loss that updates factors of these data; `correction` is by HALS or none."""
        if self.divergence:
            return LazyDivergenceLoss(self.rows, self.survey)
        return LazySquaredLoss(self.rows, self.survey, penalties)

    def weights(self, G: Array, penalty: Penalty) -> Any:
        """Return the F >= 0 that is best for a given G, of shape (k, m), as a `RowFactor`."""
        return best_rows(self.rows, G, penalty, self.divergence, self.unit)


def lazy_weights(X: Any, H: Array, penalty: Penalty, divergence: bool, *, scale: bool) -> Any:
    """Return the W >= 0 that is best for a given H, of shape (m, k), as a Dask array.

    The parameters are those of `LazyFactorData.of` and `FactorData.weights`.
    """
    from dask import array
    from dask.delayed import delayed

    work = partial(_encoded, H=H, penalty=penalty, divergence=divergence, scale=scale)
    return array.map_blocks(
        _encoded_block, X, dtype=np.float64, chunks=(X.chunks[0], (len(H),)),
        meta=np.empty((0, 0)), work=delayed(Sent(work), pure=False, traverse=False),
    )  # fmt: skip


def _encoded_block(block: Any, *, work: Sent, block_info: Any) -> Any:
    return visited(work, (), block, block_info[0]["array-location"][0])


def _encoded(block: Any, *, H: Array, penalty: Penalty, divergence: bool, scale: bool) -> Array:
    """Return the rows of W for one block."""
    _, found = _surveyed(block, unit=1.0)
    unit = safe_unit(found["largest"].size) if scale else 1.0
    F, _ = weighed(block, G=H, penalty=penalty, divergence=divergence, unit=unit)
    return np.ascontiguousarray(F.T) * unit


def _surveyed(block: Any, *, unit: float) -> Any:
    """Return the largest entry, the sum of squares and the number of NaN of one block, checked."""
    largest, square, missing = 0.0, 0.0, 0
    for _, x in tiles(block, np.float64, unit):
        entries = x.data if sparse.issparse(x) else x.ravel()
        gaps = np.isnan(entries)
        if gaps.any():
            if sparse.issparse(x):
                raise ValueError(
                    "X is sparse and holds NaN. Give dense blocks, in which NaN is missing."
                )
            entries = entries[~gaps]
        if entries.min(initial=0.0) < 0:
            raise ValueError(
                f"X must not be negative; the least entry is {entries.min():g}. Shift or clip X."
            )
        most = float(entries.max(initial=0.0))
        if most == np.inf:
            raise ValueError("X must not be infinite. Use NaN for what is missing.")
        with np.errstate(over="ignore", under="ignore"):
            square += float(np.vdot(entries, entries))
        largest, missing = max(largest, most), missing + int(gaps.sum())
    return None, {"largest": Largest(largest), "square": square, "missing": missing}
