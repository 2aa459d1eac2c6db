"""The best factor of the rows for a given factor of the columns, block by block."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array
from conepursuit.factorization.data import FactorData
from conepursuit.factorization.lazy_rows import RowBlocks, RowFactor, tiles
from conepursuit.factorization.losses import Penalty

WEIGHED = 1 << 21
"""Entries of a dense block that are fitted at a time."""


def best_rows(rows: RowBlocks, G: Array, penalty: Penalty, divergence: bool, unit: float) -> Any:
    """Return the F >= 0 that is best for a given G, as a `RowFactor`, by one pass.

    The parameters are those of `FactorData` and its `weights`.
    """
    work = partial(weighed, G=G, penalty=penalty, divergence=divergence, unit=unit)
    return RowFactor.of(rows.visit(work)[0], len(G), rows.shape[0])


def weighed(block: Any, *, G: Array, penalty: Penalty, divergence: bool, unit: float) -> Any:
    """Return the part of the best F for one block."""
    F = np.empty((len(G), block.shape[0]))
    for rows, x in tiles(block, np.float64, unit, WEIGHED):
        M = None
        if not sparse.issparse(x) and (gaps := np.isnan(x)).any():
            x, M = np.where(gaps, 0.0, x), np.where(gaps, 0.0, 1.0)
        F[:, rows] = FactorData(x, M, divergence).weights(G, penalty)
    return F, {}
