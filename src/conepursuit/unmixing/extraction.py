"""Endmembers as pixels of the scene that are chosen one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import EPS, Array, Vector
from conepursuit.least_squares.api import nnls
from conepursuit.unmixing.pixels import TIE, best_pixel, check_left, read_pixels, squares

BLOCK = 4096
"""Pixels whose residuals are in memory at a time."""


def spa(X: Any, n: int) -> Array:
    """Choose endmembers by the successive projection algorithm.

    The longest pixel is chosen; then, again and again, the one that is farthest from the linear
    span of those chosen: ``argmax_i ||(I - P) x_i||``, with P the projector on that span.

    Parameters
    ----------
    X : array_like of shape (pixels, bands)
        The scene. Entries may be negative.
    n : int
        How many endmembers.

    Returns
    -------
    array of int of shape (n,)
        Rows of X, in the order in which they were chosen.

    Raises
    ------
    ValueError
        If X has a lower rank than n, or not that many bands or pixels.

    Notes
    -----
    If every endmember occurs as a pixel, all pixels are mixtures of them with weights of sum at
    most 1, and the endmembers are linearly independent, exactly these are found [1]_. Squared
    distances that agree to a millionth are a tie: the longest pixel is taken, then the first.

    Squared distances are updated by subtraction. Where that leaves open which pixel is farthest,
    they are computed again from the data.

    References
    ----------
    .. [1] M. C. U. Araujo, T. C. B. Saldanha, R. K. H. Galvao, T. Yoneyama, H. C. Chame,
       V. Visani. The successive projections algorithm for variable selection in spectroscopic
       multicomponent analysis. Chemometrics and Intelligent Laboratory Systems 57, 2001.

    Examples
    --------
    >>> from conepursuit.unmixing.extraction import spa
    >>> spa([[1.0, 1.0], [2.0, 0.0], [1.0, 2.0]], 2).tolist()
    [2, 1]
    """
    (spectra, where), n = read_pixels(X, n)
    lengths = squares(spectra)
    left, basis, chosen = lengths.copy(), np.empty((0, spectra.shape[1])), []
    for k in range(n):
        _refresh(left, lengths, spectra, basis)
        best = best_pixel(left, lengths)
        check_left(left[best], lengths.max(), k, n)
        chosen.append(best)
        rest = _off(spectra[best], basis)
        basis = np.vstack([basis, rest / np.linalg.norm(rest)])
        left -= (spectra @ basis[-1]) ** 2
    return where[chosen]


def _off(rows: Array, basis: Array) -> Array:
    """Return what is left of rows off the span of orthonormal ones; done twice, for rounding."""
    rest: Array = rows - (rows @ basis.T) @ basis
    rest -= (rest @ basis.T) @ basis
    return rest


def _refresh(left: Vector, lengths: Vector, spectra: Array, basis: Array) -> None:
    """Compute squared distances again, in place, where rounding may decide which is the largest."""
    if not len(basis):
        return
    error = 4.0 * (len(basis) + 1) * spectra.shape[1] * EPS * lengths
    unsure = np.flatnonzero(left + error >= (1.0 - TIE) * (left - error).max())
    for part in _blocks(len(unsure)):
        left[unsure[part]] = squares(_off(spectra[unsure[part]], basis))


def snpa(X: Any, n: int) -> Array:
    """Choose endmembers by the successive non-negative projection algorithm.

    The longest pixel is chosen; then, again and again, the one that is farthest from the hull of
    those chosen and the origin: ``argmax_i min_h ||x_i - h @ X[chosen]||`` over h >= 0 with
    sum(h) <= 1.

    Parameters
    ----------
    X : array_like of shape (pixels, bands)
        The scene.
    n : int
        How many endmembers.

    Returns
    -------
    array of int of shape (n,)
        Rows of X, in the order in which they were chosen.

    Raises
    ------
    ValueError
        If fewer pixels explain all others, or X has not that many bands or pixels.

    Notes
    -----
    It withstands more noise than `spa`, and the endmembers may be linearly dependent as long as
    none is in the hull of the others and the origin [1]_. Ties are settled as in `spa`.

    References
    ----------
    .. [1] N. Gillis. Successive nonnegative projection algorithm for robust nonnegative blind
       source separation. SIAM Journal on Imaging Sciences 7, 2014.

    Examples
    --------
    >>> from conepursuit.unmixing.extraction import snpa
    >>> snpa([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0], [2.0, 2.0, 0.0], [1.0, 1.0, 1.0]], 3).tolist()
    [2, 0, 1]
    """
    (spectra, where), n = read_pixels(X, n)
    lengths = squares(spectra)
    chosen = [best_pixel(lengths, lengths)]
    while len(chosen) < n:
        atoms = spectra[chosen]
        weights = nnls(atoms.T, spectra.T, sum_at_most=1.0).x.T
        left = _squared_residuals(spectra, atoms, weights)
        best = best_pixel(left, lengths)
        check_left(left[best], lengths.max(), len(chosen), n)
        chosen.append(best)
    return where[chosen]


def _squared_residuals(spectra: Array, atoms: Array, weights: Array) -> Vector:
    """Return ||x_i - w_i @ atoms||^2 for every pixel."""
    left = np.empty(len(spectra))
    for part in _blocks(len(spectra)):
        left[part] = squares(spectra[part] - weights[part] @ atoms)
    return left


def _blocks(size: int) -> list[slice]:
    """Return slices that cover so many pixels, of up to BLOCK each."""
    return [slice(first, min(first + BLOCK, size)) for first in range(0, size, BLOCK)]


def xray(X: Any, n: int) -> Array:
    """Choose endmembers as extreme rays of the cone of the pixels.

    Each step takes the pixel i that is farthest from the cone of those chosen, with the residual
    ``r = x_i - h @ X[chosen]``, h >= 0, and chooses ``argmax_j <r, x_j> / sum(x_j)``.

    Parameters
    ----------
    X : array_like of shape (pixels, bands)
        The scene. The sum of every pixel that is not all zero must be positive.
    n : int
        How many endmembers.

    Returns
    -------
    array of int of shape (n,)
        Rows of X, in the order in which they were chosen.

    Raises
    ------
    ValueError
        If the sum of a pixel is negative, fewer pixels explain all others, or X has not that many
        bands or pixels.

    Notes
    -----
    This is the rule called max in [1]_, with the vector of ones as p. Pixels may be mixtures with
    weights of any sum. All pixels are projected on the cone at once, by `nnls`. Ties are settled
    as in `spa`, so that of pixels that are multiples of each other the longest is chosen.

    References
    ----------
    .. [1] A. Kumar, V. Sindhwani, P. Kambadur. Fast conical hull algorithms for near-separable
       non-negative matrix factorization. ICML 2013.

    Examples
    --------
    >>> from conepursuit.unmixing.extraction import xray
    >>> xray([[3.0, 3.0], [1.0, 0.0], [2.0, 8.0], [1.0, 4.0]], 2).tolist()
    [2, 1]
    """
    (spectra, where), n = read_pixels(X, n)
    sums = spectra.sum(axis=1)
    if sums.min() <= 0.0:
        wrong = int(where[sums.argmin()])
        raise ValueError(
            f"The sum of every pixel that is not all zero must be positive for xray; that of row "
            f"{wrong} is {np.sum(np.asarray(X)[wrong]):.3g}. Leave such pixels out, use "
            "np.maximum(X, 0), or use spa."
        )
    lengths = squares(spectra)
    rest: Vector = spectra[best_pixel(lengths, lengths)]
    chosen: list[int] = []
    for k in range(n):
        if k > 0:
            rest = _largest_residual(spectra, lengths, chosen, n)
        scores = (spectra @ rest) / sums
        scores[chosen] = -np.inf  # they are 0 or less, but for rounding
        chosen.append(best_pixel(scores, lengths))
    return where[chosen]


def _largest_residual(spectra: Array, lengths: Vector, chosen: list[int], n: int) -> Vector:
    """Return what is left of the pixel that is farthest from the cone of those chosen."""
    weights, distances = nnls(spectra[chosen].T, spectra.T)
    left = distances**2
    worst = best_pixel(left, lengths)
    check_left(left[worst], lengths.max(), len(chosen), n)
    atoms = spectra[chosen]
    rest: Vector = spectra[worst] - weights[:, worst] @ atoms
    # A short residual is hardly orthogonal to the atoms with weight, which would spoil the scores.
    used = atoms[weights[:, worst] > 0.0]
    rest -= np.linalg.lstsq(used.T, rest)[0] @ used
    return rest
