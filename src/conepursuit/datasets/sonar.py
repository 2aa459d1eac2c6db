"""The sonar data of the paper's garrote experiment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.datasets.files import stored
from conepursuit.datasets.records import DataSet
from conepursuit.datasets.registry import FILES


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sonar(DataSet):
    """Echoes of 111 mines and 97 rocks: the energy in 60 bands of frequency.

    Attributes
    ----------
    X : array of shape (208, 60)
        The samples, all numbers in [0, 1].
    y : array of shape (208,)
        1 for a mine, -1 for a rock.
    """

    X: Array
    y: Vector


@overload
def load_sonar(
    *,
    all_rows: bool = ...,
    unit_norm: bool = ...,
    return_X_y: Literal[False] = ...,
    folder: str | os.PathLike[str] | None = ...,
) -> Sonar: ...


@overload
def load_sonar(
    *,
    all_rows: bool = ...,
    unit_norm: bool = ...,
    return_X_y: Literal[True],
    folder: str | os.PathLike[str] | None = ...,
) -> tuple[Array, Vector]: ...


def load_sonar(
    *,
    all_rows: bool = True,
    unit_norm: bool = False,
    return_X_y: bool = False,
    folder: str | os.PathLike[str] | None = None,
) -> Sonar | tuple[Array, Vector]:
    """Load the sonar data, mines against rocks.

    Parameters
    ----------
    all_rows : bool
        False leaves out the first row: the numbers that the paper prints belong to the other 207.
    unit_norm : bool
        Whether to divide every sample by its Euclidean norm, as the paper does.
    return_X_y : bool
        Whether to return ``(X, y)`` alone.
    folder : path, optional
        Where to look first, see `find`.

    Returns
    -------
    Sonar, or tuple of arrays
        With attributes X and y.
    """
    z = stored("sonar", folder)
    first = 0 if all_rows else 1
    X = z["X"][first:]
    if unit_norm:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(z["label"][first:] == "M", 1.0, -1.0)
    return (X, y) if return_X_y else Sonar(source=FILES["sonar"], X=X, y=y)
