"""What is done with one block of a matrix in a Dask array, in the place where the block is.

`BlockMatrix` makes tasks of these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import Array, Vector, as_real_array, check_stored
from conepursuit.linear import (
    as_matrix_unchecked,
    check_finite,
    column,
    is_sparse,
    matvec,
    measures,
    rmatvec,
    scaled_rows,
)
from conepursuit.linear.blas import ONE_BLAS_THREAD


class Facts(NamedTuple):
    """What the first pass finds out about the columns of a block, and what stays where it is.

    Attributes
    ----------
    squares, sums : arrays
        The squared norms of the columns, and the sums of their entries.
    zero : array of bool
        Which columns are zero; the square of a column that is not may still underflow to zero.
    """

    squares: Vector
    sums: Vector
    zero: Array


class Question(NamedTuple):
    """What a pass asks of the blocks; the fields are the arguments of `BlockMatrix.ask`."""

    function: Callable[..., Any]
    vectors: Array
    together: Callable[[list[Any]], Any]
    with_columns: Callable[..., Any] | None
    options: dict[str, Any]


class Place(NamedTuple):
    """Which rows and columns of the matrix a block has, and the name of the matrix in messages."""

    rows: slice
    columns: slice
    name: str

    def __str__(self) -> str:
        rows, columns = self.rows, self.columns
        where = f"{rows.start}:{rows.stop}, {columns.start}:{columns.stop}"
        return f"the block [{where}] of {self.name}"


def as_block(block: Any, name: str, place: Place | None = None, *, seen: bool = False) -> Any:
    """Return a block as a float array, or as a csr_array or csc_array of float64.

    A ValueError says so if the block has not the shape of its `place`, or is sparse and has wrong
    indices; with `seen`, indices were looked at in an earlier pass.
    """
    if hasattr(block, "to_scipy_sparse"):  # an array of the library sparse
        block = block.to_scipy_sparse()
    if not seen:
        check_stored(block, name)
    if not is_sparse(block):
        block = as_real_array(block, name)
    elif block.format not in ("csr", "csc") or block.dtype != np.float64:
        from scipy.sparse import csr_array

        block = csr_array(block, dtype=np.float64)
    if place is not None:
        shape = tuple(part.stop - part.start for part in (place.rows, place.columns))
        if block.shape != shape:
            raise ValueError(
                f"{place} has the shape {block.shape}, and the Dask array says {shape}. Give "
                "map_blocks or from_delayed the chunks that the blocks have."
            )
    return block


def measured(
    block: Any, place: Place, first_time: bool, given: Question
) -> tuple[Array, Facts | None]:
    """Return the products of a block with the vectors of a question, and its facts if wanted."""
    with ONE_BLAS_THREAD:
        block = as_block(block, place.name, place, seen=not first_time)
        vectors = given.vectors[:, place.rows]
        if not first_time:
            return _products(block, vectors), None
        return _first_measures(block, place, vectors)


def _products(block: Any, vectors: Array) -> Array:
    """Return the products of vectors, as rows, with the columns of a block."""
    if not len(vectors):
        return np.empty((0, block.shape[1]))
    return np.stack([rmatvec(block, vector) for vector in vectors])


def _first_measures(block: Any, place: Place, vectors: Array) -> tuple[Array, Facts]:
    """Return the products of a block with vectors, and its facts; refuse NaN and infinity."""
    if is_sparse(block):
        block = as_matrix_unchecked(block, place.name)  # entries that are stored twice are added
    elif not block.flags.forc:
        block = np.ascontiguousarray(block)
    with np.errstate(all="ignore"):
        first = vectors[0] if len(vectors) else np.zeros(block.shape[0])
        products, squares, sums = measures(block, np.ascontiguousarray(first))
    if not (np.isfinite(squares).all() and np.isfinite(sums).all()):
        check_finite(block, str(place))
    zero = squares == 0
    for j in np.flatnonzero(zero) if block.shape[0] else ():  # a block may have no rows
        zero[j] = not abs(column(block, int(j))).max()
    others = _products(block, vectors[1:])
    return np.vstack([products[None], others])[: len(vectors)], Facts(squares, sums, zero)


def answered(block: Any, place: Place, facts: Facts | None, given: Question) -> Any:
    """Return the answer of a block that has whole columns, in the first pass with the facts."""
    products, found = measured(block, place, facts is None, given)
    known = found if facts is None else facts
    answer = given.function(products, known, place.columns.start, **given.options)
    answer = _with_columns(answer, [block], [place], given)
    return answer if found is None else (answer, found)


def all_answered(
    blocks: list[Any], places: list[Place], facts: list[Facts], given: Question
) -> Any:
    """Return the answers of several blocks that have whole columns, as one."""
    answers, plain = [], given._replace(with_columns=None)
    with ONE_BLAS_THREAD:  # set once for all of them
        for block, place, known in zip(blocks, places, facts, strict=True):
            answers.append(answered(block, place, known, plain))
        return _with_columns(given.together(answers), blocks, places, given)


def _with_columns(answer: Any, blocks: list[Any], places: list[Place], given: Question) -> Any:
    """Return an answer with the columns that it names, if it is to have them."""
    if given.with_columns is None:
        return answer
    starts = [place.columns.start for place in places]
    order = np.argsort(starts)

    def take(indices: Array) -> list[Any]:
        owners = order[np.searchsorted(np.take(starts, order), indices, "right") - 1]
        found: list[Any] = [None] * len(indices)
        for owner in np.unique(owners):
            mine = np.flatnonzero(owners == owner)
            own = taken(blocks[owner], indices[mine] - starts[owner], places[owner].name)
            for i, each in zip(mine, own, strict=True):
                found[i] = each
        return found

    return given.with_columns(answer, take)


def combined(
    parts: list[tuple[Array, Facts | None]], place: Place, facts: Facts | None, given: Question
) -> Any:
    """Return the answer for columns whose entries are in several blocks, as `answered` does."""
    products = np.sum([part[0] for part in parts], axis=0)
    known = facts
    if facts is None:
        squares, sums, zero = zip(*(part[1] or () for part in parts), strict=True)
        known = Facts(np.sum(squares, axis=0), np.sum(sums, axis=0), np.all(zero, axis=0))
    answer = given.function(products, known, place.columns.start, **given.options)
    return answer if facts is not None else (answer, known)


def taken(block: Any, places: Array, name: str) -> list[Any]:
    """Return columns of a block."""
    block = as_block(block, name)
    if is_sparse(block) and len(places):
        block = block.tocsc()
    return [column(block, int(j)) for j in places]


def row_of_products(block: Any, along: Array) -> Array:
    """Return the products of the columns of a block with a vector, as a row."""
    with ONE_BLAS_THREAD:
        return rmatvec(as_block(block, "A"), along[:, 0])[None]


def with_scaled_rows(block: Any, rows: Array) -> Any:
    """Return a block with each row multiplied by a number, an entry of the one column of `rows`."""
    return scaled_rows(as_block(block, "A"), rows[:, 0])


def part_of_sum(block: Any, places: Array, weights: Vector) -> Vector:
    """Return the sum of some columns of a block, each times its weight."""
    with ONE_BLAS_THREAD:
        return matvec(as_block(block, "A")[:, places], weights)
