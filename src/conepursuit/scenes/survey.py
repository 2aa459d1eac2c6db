"""What finished maps hold: numbers over all pixels, and copies that are small enough to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.scenes.scene import MapFile

LONGEST_SIDE = 512
"""The most rows or columns of a map that is drawn."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Survey:
    """What the maps of a scene hold.

    Attributes
    ----------
    abundances : array of shape (rows, columns, n)
        Every `step`-th row and column of the abundances.
    residual, gap : array of shape (rows, columns)
        The same of the residuals and the gaps.
    step : int
        1 where the whole of the maps is here.
    mean : array of shape (n,)
        The mean abundance of each endmember, over all pixels with data.
    largest : array of shape (n,)
        The largest abundance of each endmember.
    residual_rms, residual_largest, gap_largest : float
        The root of the mean of the squared residuals, and the largest residual and gap.
    """

    abundances: Array
    residual: Array
    gap: Array
    step: int
    mean: Vector
    largest: Vector
    residual_rms: float
    residual_largest: float
    gap_largest: float


def survey(maps: Mapping[str, MapFile], tiles: Sequence[slice], shape: Sequence[int]) -> Survey:
    """Read the maps of a scene, tile by tile.

    Parameters
    ----------
    maps : mapping of str to MapFile
        "abundance", "residual" and "gap", at least one pixel of which has data.
    tiles : sequence of slice
        The rows that are read together.
    shape : sequence of int
        The rows and columns of the scene, and whatever else.
    """
    step = ceil(max(shape[:2]) / LONGEST_SIDE)
    small: dict[str, list[Array]] = {name: [] for name in maps}
    sums, largest = np.zeros(len(maps["abundance"].layers)), np.zeros(0)
    squares, known, residual_largest, gap_largest = 0.0, 0, 0.0, 0.0
    for rows in tiles:
        parts = {name: file.read(rows) for name, file in maps.items()}
        for name, part in parts.items():
            small[name].append(part[-rows.start % step :: step, ::step].copy())
        has_data = ~np.isnan(parts["residual"][:, :, 0])
        if not has_data.any():
            continue
        abundances = parts["abundance"][has_data].astype(np.float64)
        residual = parts["residual"][has_data].astype(np.float64)
        sums += abundances.sum(axis=0)
        tops = abundances.max(axis=0)
        largest = np.maximum(largest, tops) if largest.size else tops
        squares += float((residual * residual).sum())
        known += int(has_data.sum())
        residual_largest = max(residual_largest, float(residual.max()))
        gap_largest = max(gap_largest, float(parts["gap"][has_data].max()))
    drawn = {name: np.concatenate(parts) for name, parts in small.items()}
    return Survey(
        abundances=drawn["abundance"],
        residual=drawn["residual"][:, :, 0],
        gap=drawn["gap"][:, :, 0],
        step=step,
        mean=sums / known,
        largest=largest,
        residual_rms=sqrt(squares / known),
        residual_largest=residual_largest,
        gap_largest=gap_largest,
    )
