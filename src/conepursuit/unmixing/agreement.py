"""How well endmembers and abundances agree with a truth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from conepursuit.arrays import Array, Vector, as_float_array


class Matching(NamedTuple):
    """Which endmember stands for which true one.

    Attributes
    ----------
    order : array of int of shape (k,)
        ``found[order[i]]`` stands for ``truth[i]``.
    angles : array of shape (k,)
        The spectral angles between the two, in radians.
    """

    order: Array
    angles: Vector


def spectral_angles(first: Any, second: Any) -> Array:
    """Return the angle between every spectrum of one set and every one of another.

    Parameters
    ----------
    first : array_like of shape (k, bands)
        One spectrum per row, none all zero.
    second : array_like of shape (l, bands)
        The same.

    Returns
    -------
    array of shape (k, l)
        ``arccos(<a, b> / (||a|| ||b||))`` in radians, from 0 to pi.

    Notes
    -----
    With unit vectors it is computed as ``2 arctan2(||a - b||, ||a + b||)``, which is accurate for
    small angles too.

    Examples
    --------
    >>> from conepursuit.unmixing.agreement import spectral_angles
    >>> spectral_angles([[1.0, 0.0], [2.0, 2.0]], [[3.0, 0.0]]).round(4).tolist()
    [[0.0], [0.7854]]
    """
    a, b = _units(first, "first"), _units(second, "second")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"Both sets of spectra must have the same bands; got {a.shape[1]} and {b.shape[1]}."
        )
    apart = np.linalg.norm(a[:, None] - b, axis=2)
    along = np.linalg.norm(a[:, None] + b, axis=2)
    angles: Array = 2.0 * np.arctan2(apart, along)
    return angles


def match_endmembers(found: Any, truth: Any) -> Matching:
    """Match endmembers to true ones, so that the sum of the spectral angles is the least.

    Parameters
    ----------
    found : array_like of shape (n, bands)
        The endmembers that were found, one per row.
    truth : array_like of shape (k, bands), k <= n
        The true ones.

    Returns
    -------
    Matching
        The tuple ``(order, angles)``: ``found[order]`` are in the order of the truth.

    Examples
    --------
    >>> from conepursuit.unmixing.agreement import match_endmembers
    >>> found, truth = [[0.0, 2.0], [3.0, 0.0]], [[1.0, 0.0], [1.0, 1.0]]
    >>> order, angles = match_endmembers(found, truth)
    >>> order.tolist(), angles.round(4).tolist()
    ([1, 0], [0.0, 0.7854])
    """
    angles = spectral_angles(truth, found)
    if len(angles) > angles.shape[1]:
        raise ValueError(
            f"Every true endmember needs one that was found; got {angles.shape[1]} for "
            f"{len(angles)}. Leave out some of the truth, or find more."
        )
    rows, order = linear_sum_assignment(angles)
    return Matching(order, angles[rows, order])


def abundance_rmse(found: Any, truth: Any, order: Any) -> float:
    """Return the root mean square error of abundances.

    Parameters
    ----------
    found : array_like of shape (pixels, n)
        The abundances of the endmembers that were found.
    truth : array_like of shape (pixels, k)
        The true ones.
    order : array_like of int of shape (k,)
        Which column of `found` belongs to each of `truth`, from `match_endmembers`.

    Returns
    -------
    float
        ``sqrt(mean((found[:, order] - truth)^2))``, over all pixels and endmembers.

    Examples
    --------
    >>> from conepursuit.unmixing.agreement import abundance_rmse
    >>> abundance_rmse([[0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]], [1, 0])
    0.3535533905932738
    """
    own, true = _table(found, "found"), _table(truth, "truth")
    columns = np.asarray(order)
    if len(own) != len(true) or columns.shape != true.shape[1:]:
        raise ValueError(
            "found and truth must have the same pixels, and order one column of found for each of "
            f"truth; got shapes {own.shape}, {true.shape} and {columns.shape}."
        )
    return float(np.sqrt(np.mean((own[:, columns] - true) ** 2)))


def _table(given: Any, name: str) -> Array:
    """Return finite numbers with two axes, or raise a ValueError."""
    table = as_float_array(given, name)
    if table.ndim != 2 or not table.size:
        raise ValueError(
            f"{name} must have two axes, neither of them empty; got shape {table.shape}. Use "
            f"{name}[None, :] for one spectrum."
        )
    return table


def _units(given: Any, name: str) -> Array:
    """Return spectra of length 1, whose squares neither overflow nor vanish on the way."""
    spectra = _table(given, name)
    largest = np.abs(spectra).max(axis=1, keepdims=True)
    if not largest.all():
        raise ValueError(
            f"{name} must have no spectrum that is all zero, which makes no angle; row "
            f"{int(largest.argmin())} is. Leave it out."
        )
    scaled = spectra / largest
    units: Array = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return units
