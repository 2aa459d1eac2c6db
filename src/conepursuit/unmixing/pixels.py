"""What an extractor may take for granted of a scene, and which of near equals it chooses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import Array, Vector, as_real_array, count

FLAT = 1e-12
"""What is left of a pixel counts as rounding below this share of the longest pixel."""

TIE = 1e-6
"""Scores that differ by less than this share are a tie, which rounding must not decide."""

SAFE = 1e100
"""Largest entries from 1 / SAFE to SAFE have squares, and sums of them, that are floats."""


class Pixels(NamedTuple):
    """The pixels of a scene that are not all zero.

    Attributes
    ----------
    spectra : array of shape (pixels, bands)
        Finite float64 numbers, multiplied by a power of two if their squares would overflow.
    where : array of int of shape (pixels,)
        The rows of X that they are.
    """

    spectra: Array
    where: Array


def read_pixels(X: Any, n: Any = 1, *, least: int = 1) -> tuple[Pixels, int]:
    """Return the pixels of a scene that are not all zero, and n, or raise a ValueError.

    Parameters
    ----------
    X : array_like of shape (pixels, bands)
        The scene.
    n : int
        How many endmembers are wanted: from `least` to the number of bands, and no more than there
        are pixels that are not all zero.
    least : int
        The least n that the caller can find.
    """
    given = as_real_array(X, "X")
    if given.ndim != 2 or 0 in given.shape:
        raise ValueError(
            f"X must have shape (pixels, bands); got {given.shape}. Use X.reshape(-1, bands) for "
            "an image and X[None, :] for one pixel."
        )
    wrong = np.flatnonzero(~np.isfinite(given).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"X must be finite; got NaN or infinity in {len(wrong)} of {len(given)} pixels, the "
            f"first in row {wrong[0]}. Leave those pixels out, or the bands they are missing in."
        )
    where = np.flatnonzero(given.any(axis=1))
    if not len(where):
        raise ValueError(
            f"X must have a pixel that is not all zero; got zeros of shape {given.shape}."
        )
    wanted = count(n, "n")
    _check_number(wanted, least, len(where), given.shape)
    lit = given if len(where) == len(given) else given[where]
    return Pixels(_in_safe_units(lit.astype(np.float64, copy=False)), where), wanted


def _check_number(n: int, least: int, lit: int, shape: tuple[int, ...]) -> None:
    """Raise a ValueError if so many endmembers cannot be found."""
    if n < least:
        raise ValueError(f"n must be at least {least} for this method; got {n}. Use spa for one.")
    if n > min(lit, shape[1]):
        raise ValueError(
            f"n must be at most the number of bands and of pixels that are not all zero; got "
            f"n = {n}, {shape[1]} bands and {lit} such pixels. Use an n of up to "
            f"{min(lit, shape[1])}."
        )


def _in_safe_units(spectra: Array) -> Array:
    """Return the spectra, multiplied by a power of two if their squares overflow or vanish."""
    largest = float(np.abs(spectra).max())
    if 1.0 / SAFE <= largest <= SAFE:
        return spectra
    scaled: Array = np.ldexp(spectra, -int(np.frexp(largest)[1]))
    return scaled


def squares(rows: Array) -> Vector:
    """Return the squared length of every row."""
    sums: Vector = np.einsum("ij,ij->i", rows, rows)
    return sums


def best_pixel(scores: Vector, lengths: Vector) -> int:
    """Return the pixel with the largest score; of a tie the longest, and of these the first."""
    tied = np.flatnonzero(scores >= (1.0 - TIE) * scores.max())
    own = lengths[tied]
    return int(tied[np.argmax(own >= (1.0 - TIE) * own.max())])


def check_left(left: float, longest: float, found: int, n: int) -> None:
    """Raise a ValueError if nothing but rounding is left of any pixel; both lengths are squared."""
    if left <= FLAT**2 * longest:
        raise ValueError(
            f"n = {n} endmembers were asked for, but {found} of the pixels explain all others up "
            f"to rounding. Use an n of up to {found}."
        )
