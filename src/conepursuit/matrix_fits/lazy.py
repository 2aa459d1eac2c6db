"""Fits of Dask arrays, block by block: the fields of the answer are Dask arrays themselves.

Nothing is computed before a field is asked for its numbers. Each block is fitted by one task, once,
however many fields are computed together. Dask is imported when its first array arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pickle import loads
from typing import Any

import numpy as np

from conepursuit.arrays import Array, as_real_array, inside, is_labelled
from conepursuit.caller import warn_caller
from conepursuit.linear.blas import ONE_BLAS_THREAD
from conepursuit.linear.blocks import check_blocks

STRIP = 128
"""Targets that are copied at a time where a block is brought to C order, to use the caches."""

Fields = Mapping[str, tuple[int | None, Any]]
"""For each field of an answer, its length along the axis of entries, and its dtype.

The length is None where a field has one number for each target.
"""


def whole_targets(data: Any, axis: int, name: str) -> Any:
    """Return a Dask array with one chunk along the axis of entries, or raise a ValueError.

    Parameters
    ----------
    data : dask.array.Array
        The targets. Unknown chunk sizes and numbers that are not real raise a ValueError.
    axis : int
        The axis of the entries of a target. If it has several chunks they are put together, with a
        warning if that makes blocks of more than Dask's setting ``array.chunk-size``.
    name : str
        The name of the data in messages.
    """
    check_blocks(data, name)
    if data.numblocks[axis] == 1:
        return data
    from dask import config
    from dask.utils import format_bytes, parse_bytes

    whole = data.rechunk({axis: -1})
    size = whole.dtype.itemsize * int(np.prod([max(sizes) for sizes in whole.chunks]))
    if size > parse_bytes(config.get("array.chunk-size")):
        cut = tuple(-1 if i == axis % data.ndim else "auto" for i in range(data.ndim))
        warn_caller(
            f"{name} has {data.numblocks[axis]} chunks along axis {axis % data.ndim}, which are "
            f"put together to blocks of up to {format_bytes(size)}. Use {name}.rechunk({cut}) for "
            "smaller ones.",
        )
    return whole


def beside(data: Any, **others: Any) -> dict[str, Any]:
    """Return arrays as Dask arrays with the chunks of data along the targets, axis 1.

    Those that are None are left out.
    """
    from dask import array

    found = {}
    for name, other in others.items():
        if other is not None:
            other = array.asarray(inside(other))
            if other.shape[1:] != data.shape[1:]:
                raise ValueError(
                    f"{name} must have a column for each of the {data.shape[1]} targets; got shape "
                    f"{other.shape}."
                )
            found[name] = other.rechunk((-1, data.chunks[1]))
    return found


class Sent:
    """A function that can be sent to other processes, with all arrays in it aligned in memory.

    Dask leaves the arrays of a message where they arrive, which may be at any byte. NumPy does not
    give such arrays to the BLAS, and its own products have other last bits. So the function is
    sent as one string of bytes, from which arrays are copied.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        from cloudpickle import dumps

        return _received, (dumps(self.function, protocol=4),)


def _received(text: bytes) -> Sent:
    return Sent(loads(text))


def fit_blocks(
    fit: Callable[..., Any], data: Any, axis: int, fields: Fields, **others: Any
) -> dict[str, Any]:
    """Return the fields of a fit of all blocks of data, as Dask arrays.

    Parameters
    ----------
    fit : callable
        ``fit(block, **blocks of the others)`` fits the targets of one block and returns an object
        with the fields as attributes. It is sent once to every process that works.
    data : dask.array.Array
        From `whole_targets`.
    axis : int
        The axis of the entries of a target: 0, with targets as columns, or -1.
    fields : mapping
        See `Fields`.
    **others : dask.array.Array
        From `beside`: they are cut as the data are, and given to `fit` by name.
    """
    from dask import array
    from dask.delayed import delayed

    axes, entries = tuple(range(data.ndim)), axis % data.ndim
    marks = [(1,) if i == entries else sizes for i, sizes in enumerate(data.chunks)]
    fits = array.map_blocks(
        _fit_block, data, *others.values(), dtype=object, chunks=marks,
        meta=np.empty((0,) * data.ndim, dtype=object),
        # As a task of its own it is not sent with every block.
        fit=delayed(Sent(fit), pure=False, traverse=False), axis=axis, names=tuple(others),
        fields=fields,
    )  # fmt: skip

    def field(name: str, length: int | None, dtype: Any) -> Any:
        kept = axes if length is not None else tuple(i for i in axes if i != entries)
        return array.blockwise(
            _field, kept, fits, axes, name, None, concatenate=False, dtype=dtype,
            adjust_chunks={} if length is None else {entries: length},
            meta=np.empty((0,) * len(kept), dtype=dtype),
        )  # fmt: skip

    return {name: field(name, *kind) for name, kind in fields.items()}


def _fit_block(
    block: Array,
    *others: Array,
    fit: Sent,
    axis: int,
    names: tuple[str, ...],
    fields: Fields,
    block_info: Any,
) -> dict[str, Array]:
    """Return the fields of the fit of one block, which may have no target."""
    if not block.size:
        return _no_targets(block.shape, axis, fields)
    place, parts, used = block_info[0], [block, *others], slice(None)  # all of the last axis
    try:
        if axis == 0:
            used = slice(block.shape[1])  # an answer may have another target behind those asked for
            parts = [in_c_order(part) for part in (as_real_array(block, "b"), *others)]
            if block.shape[1] == 1 < place["shape"][1]:
                # Sums of a single column may have other last bits than those of a matrix.
                parts = [np.repeat(part, 2, axis=1) for part in parts]
        with ONE_BLAS_THREAD:
            found = fit.function(parts[0], **dict(zip(names, parts[1:], strict=True)))
    except ValueError as error:
        raise ValueError(_located(error, block, axis, place["array-location"])) from error
    return {name: getattr(found, name)[..., used] for name in fields}


def _no_targets(shape: tuple[int, ...], axis: int, fields: Fields) -> dict[str, Array]:
    """Return the fields of a block of this shape, which has no target."""
    found = {}
    for name, (length, dtype) in fields.items():
        own = list(shape)
        own[axis : axis + 1 or None] = [] if length is None else [length]
        found[name] = np.empty(own, dtype=dtype)
    return found


def _located(error: ValueError, block: Array, axis: int, place: Sequence[tuple[int, int]]) -> str:
    """Return the message of an error with the place of the block, and of the first NaN in it."""
    text = f"in the block [{', '.join(f'{first}:{stop}' for first, stop in place)}]: {error}"
    if not isinstance(block, np.ndarray) or block.dtype.kind != "f":
        return text
    wrong = np.argwhere(~np.isfinite(block).all(axis=axis))
    if not len(wrong):
        return text
    starts = np.delete([first for first, _ in place], axis)
    index = ", ".join(str(i) for i in wrong[0] + starts)
    return f"{text} The first target of the block with NaN or infinity is {index} of all targets."


def in_c_order(block: Array) -> Array:
    """Return a matrix with the entries of a row side by side in memory, or all in one place."""
    if block.strides[1] in (0, block.itemsize) or block.flags.c_contiguous:
        return block
    out = np.empty(block.shape, dtype=block.dtype)
    for i in range(0, block.shape[1], STRIP):
        out[:, i : i + STRIP] = block[:, i : i + STRIP]
    return out


def labelled(values: Any, like: Any, gone: Any, dims: tuple[Any, ...], name: str) -> Any:
    """Return a DataArray with the attributes, and the coordinates that do not run over `gone`.

    Parameters
    ----------
    values : array
        What it holds.
    like : xarray.DataArray
        Where the attributes and coordinates come from.
    gone : hashable
        A dimension of it that the values do not have.
    dims : tuple
        The dimensions of the values.
    name : str
        The name of the values.
    """
    kept = {key: c for key, c in like.coords.items() if gone not in c.dims}
    return type(like)(values, dims=dims, coords=kept, attrs=like.attrs, name=name)


def labelled_fields(found: Mapping[str, Any], like: Any) -> dict[str, Any]:
    """Return fields of a fit as DataArrays, if the targets were a DataArray (entries, targets)."""
    if not is_labelled(like):
        return dict(found)
    entries, targets = like.dims
    return {
        name: labelled(
            field, like, entries, (targets,) if field.ndim == 1 else ("atom", targets), name
        )
        for name, field in found.items()
    }


def _field(fit: Any, name: str) -> Array:
    """Return one field of the fit of a block; a list has the blocks of an axis that is dropped."""
    found: Array = (fit[0] if isinstance(fit, list) else fit)[name]
    return found
