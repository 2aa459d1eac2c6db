"""Passes over a `BlockMatrix` whose blocks are whole rows, as those of a tall matrix are.

A function is given a block and the entries of some vectors that belong to its rows. Its answers are
added up, or put together in the order of the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.linear.blas import ONE_BLAS_THREAD
from conepursuit.linear.blocks import BlockMatrix, said_if_lost
from conepursuit.linear.tasks import Place, as_block

ADDED = 8
"""How many answers one task adds up; so few of them are in one place at a time."""


def summed(
    matrix: BlockMatrix, function: Callable[..., tuple[Any, ...]], *vectors: Vector | None
) -> tuple[Any, ...]:
    """Return the sums of the answers of all blocks, in one pass.

    Parameters
    ----------
    matrix : BlockMatrix
        With one block of columns.
    function : callable
        ``function(block, *parts)`` returns a tuple of arrays or numbers. The block is a float array
        or sparse, and the parts are the entries of the vectors for its rows.
    *vectors : arrays of shape (m,), or None
        None is given to the function as it is.
    """
    from dask.delayed import delayed

    answers, add = _answers(matrix, function, vectors), delayed(_added, pure=False)
    while len(answers) > 1:
        answers = [add(answers[i : i + ADDED]) for i in range(0, len(answers), ADDED)]
    (total,) = _computed(matrix, answers, vectors)
    return tuple(total)


def stacked(matrix: BlockMatrix, function: Callable[..., Array], *vectors: Vector | None) -> Array:
    """Return the answers of all blocks, arrays with an entry for each row, put together."""
    return np.concatenate(_computed(matrix, _answers(matrix, function, vectors), vectors))


def _answers(
    matrix: BlockMatrix, function: Callable[..., Any], vectors: tuple[Vector | None, ...]
) -> list[Any]:
    """Return one task for each block of rows."""
    from dask.delayed import delayed

    assert matrix.column_blocks == 1
    matrix.passes += 1.0
    given = delayed(function, traverse=False, pure=False)  # sent once to each process
    answer = delayed(_answered, pure=False)
    places = [Place(rows, slice(0, matrix.shape[1]), matrix.name) for rows in matrix._rows]
    return [
        answer(given, block, place, [None if v is None else v[place.rows] for v in vectors])
        for block, place in zip(matrix._blocks[:, 0], places, strict=True)
    ]


def _computed(
    matrix: BlockMatrix, tasks: list[Any], vectors: tuple[Vector | None, ...]
) -> tuple[Any, ...]:
    """Compute tasks; the vectors that they hold are no reason to warn of a large graph."""
    from dask.base import compute

    if "distributed" not in sys.modules:  # its settings would be lost if it were loaded within
        return tuple(compute(*tasks))
    from dask import config
    from dask.utils import parse_bytes

    setting = "distributed.admin.large-graph-warning-threshold"
    sent = sum(vector.nbytes for vector in vectors if vector is not None)
    with (
        config.set({setting: parse_bytes(config.get(setting)) + 2 * sent}),
        said_if_lost(matrix.passes, matrix.name, "Fit it again, with another cluster."),
    ):
        return tuple(compute(*tasks))


def _answered(function: Callable[..., Any], block: Any, place: Place, parts: list[Any]) -> Any:
    try:
        with ONE_BLAS_THREAD:
            return function(as_block(block, place.name, place), *parts)
    except ValueError as error:
        where = f"{place.rows.start}:{place.rows.stop}"
        raise ValueError(f"in the block of rows {where} of {place.name}: {error}") from error


def _added(answers: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(sum(parts[1:], start=parts[0]) for parts in zip(*answers, strict=True))
