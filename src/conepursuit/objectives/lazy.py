"""Losses of many targets in a Dask array, for `nnfit`: each block gets a loss of its own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from conepursuit.arrays import Array, inside


class LazyLoss:
    """A loss over the entries of many targets in a Dask array, which `nnfit` takes.

    It is what ``Poisson(counts)``, say, returns where the counts are a Dask array.

    Parameters
    ----------
    kind : type
        The subclass of `EntrywiseLoss`. Its other parameters are tried at once, on one number.
    y : dask.array.Array or xarray.DataArray with one inside, shape (m, n_targets)
        The data.
    weights, mask
        As in `EntrywiseLoss`; they may be Dask arrays.

    Attributes
    ----------
    given : Dask array or DataArray
        The data as they were given; y is the Dask array.
    make : callable
        ``make(y, weights=None, mask=None)`` returns the loss of one block.
    """

    row_labels = column_labels = None

    def __init__(
        self,
        kind: type,
        y: Any,
        *parameters: Any,
        weights: Any = None,
        mask: Any = None,
        **options: Any,
    ) -> None:
        kind(np.ones((1, 1)), *parameters, **options)
        if y.ndim != 2:
            raise ValueError(
                f"{kind.__name__} takes a Dask array of shape (m, n_targets), with one target per "
                f"column; got shape {y.shape}. Use y.compute() for a single target."
            )
        self.given, self.y, self.shape = y, inside(y), tuple(y.shape)
        self.weights = _broadcast(weights, self.shape, "weights")
        self.mask = _broadcast(mask, self.shape, "mask")
        if mask is not None and self.mask.dtype != np.bool_:
            raise ValueError(
                f"mask must hold booleans, True for what is left out; got dtype {self.mask.dtype}."
            )
        self.make = partial(_loss_of_block, kind, parameters, options)
        self._name = kind.__name__

    def __repr__(self) -> str:
        return f"{self._name}(shape={self.shape}, not computed yet)"


def _broadcast(given: Any, shape: tuple[int, ...], name: str) -> Any:
    """Return an array of numbers for all entries, as a Dask array; None if none is given."""
    if given is None:
        return None
    from dask import array

    entries = array.asarray(inside(given))
    try:
        return array.broadcast_to(entries, shape)
    except ValueError:
        raise ValueError(
            f"{name} must have the shape of y, {shape}, or one that broadcasts to it; got "
            f"{entries.shape}."
        ) from None


def _loss_of_block(
    kind: type,
    parameters: tuple[Any, ...],
    options: dict[str, Any],
    y: Array,
    weights: Array | None = None,
    mask: Array | None = None,
) -> Any:
    """Return the loss of a block.

    A loss needs an entry that counts, which in memory may belong to another target. So if no entry
    of the block counts, a target of ones follows those of the block.
    """
    if weights is None and mask is None:
        return kind(y, *parameters, **options)
    counts = np.ones(y.shape) if weights is None else weights
    counts = counts if mask is None else np.where(mask, 0.0, counts)
    if not (counts > 0).any():
        one = np.ones((len(y), 1))
        y, counts = np.hstack([y, one]), np.hstack([counts, one])
    return kind(y, *parameters, weights=counts, **options)
