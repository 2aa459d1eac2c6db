"""Endmembers, and how many there are, from the leading eigenvectors of a scene."""

from __future__ import annotations

from typing import Any

import numpy as np

from conepursuit.arrays import EPS, Array
from conepursuit.unmixing.pixels import FLAT, best_pixel, check_left, read_pixels, squares

NOISY = 15.0
"""In dB: below NOISY + 10 log10(n) the noise is too strong for the projective projection [1]."""


def vca(X: Any, n: int, *, random_state: int | np.random.Generator = 0) -> Array:
    """Choose endmembers by vertex component analysis.

    Pixels are projected to n dimensions, where mixtures lie in a simplex. Each step draws a random
    direction f orthogonal to the vertices that are chosen, and chooses ``argmax_i |<f, y_i>|``.

    Parameters
    ----------
    X : array_like of shape (pixels, bands)
        The scene.
    n : int
        How many endmembers, at least 2.
    random_state : int or numpy.random.Generator
        Where the directions come from.

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
    The ratio of signal to noise is estimated by the power in and off the leading subspace. Where
    it is at least 15 + 10 log10(n) dB, pixels are projected on the n leading eigenvectors of X'X,
    and divided by their product with the mean, which removes differences in brightness. Otherwise
    they are projected on the n - 1 leading ones of the covariance, with less noise, and get one
    more, constant, entry. Pixels whose product with the mean is not positive are not chosen in the
    first case.

    References
    ----------
    .. [1] J. M. P. Nascimento, J. M. Bioucas Dias. Vertex component analysis: a fast algorithm to
       unmix hyperspectral data. IEEE Transactions on Geoscience and Remote Sensing 43, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit.unmixing.subspace import vca
    >>> vertices = np.array([[4.0, 0.0, 1.0], [0.0, 3.0, 1.0], [1.0, 1.0, 5.0]])
    >>> weights = np.random.default_rng(0).dirichlet(np.ones(3), 20)
    >>> sorted(vca(np.vstack([weights @ vertices, vertices]), 3).tolist())
    [20, 21, 22]
    """
    (spectra, where), n = read_pixels(X, n, least=2)
    rng = np.random.default_rng(random_state)
    mean = spectra.mean(axis=0)
    correlation = spectra.T @ spectra / len(spectra)
    centred = spectra - mean
    axes = leading(centred.T @ centred / len(spectra), n)
    if _decibels(spectra, centred @ axes, mean) >= NOISY + 10.0 * np.log10(n):
        points = _projective(spectra @ leading(correlation, n))
    else:
        flat = centred @ axes[:, : n - 1]
        points = np.column_stack([flat, np.full(len(flat), np.sqrt(squares(flat).max()))])
    return where[_vertices(points, rng)]


def leading(matrix: Array, count: int) -> Array:
    """Return leading eigenvectors of a symmetric matrix as columns, the largest entry positive.

    LAPACK leaves the signs open, and the choice of pixels by random directions depends on them.
    """
    vectors: Array = np.linalg.eigh(matrix)[1][:, ::-1][:, :count]
    top = np.abs(vectors).argmax(axis=0)
    signed: Array = vectors * np.sign(vectors[top, np.arange(vectors.shape[1])])
    return signed


def _decibels(spectra: Array, centred: Array, mean: Array) -> float:
    """Return the estimated ratio of signal to noise of pixels, given those in the subspace.

    Notes
    -----
    Noise is spread evenly over the bands, so that n / bands of it is in the subspace. With the
    power P of the pixels and P_n of their projections: (P_n - n / bands P) / (P - P_n).
    """
    n_bands, n = spectra.shape[1], centred.shape[1]
    power = squares(spectra).mean()
    inside = squares(centred).mean() + mean @ mean
    off = power - inside
    if off <= n_bands * EPS * power:
        return np.inf
    signal = inside - n / n_bands * power
    return 10.0 * float(np.log10(signal / off)) if signal > 0.0 else -np.inf


def _projective(points: Array) -> Array:
    """Return points divided by their product with the mean; 0 where that is not positive."""
    mean = points.mean(axis=0)
    along = points @ mean
    least = FLAT * np.sqrt(squares(points) * (mean @ mean))
    inverse = np.divide(1.0, along, out=np.zeros(len(along)), where=along > least)
    projected: Array = points * inverse[:, None]
    return projected


def _vertices(points: Array, rng: np.random.Generator) -> list[int]:
    """Return n points in n dimensions that are extreme in random directions, each off the others.

    The first direction is orthogonal to the last axis, along which the points hardly differ.
    """
    n = points.shape[1]
    lengths = squares(points)
    chosen: list[int] = []
    found = np.eye(n)[:, -1:]
    for k in range(n):
        basis = np.linalg.qr(found)[0]
        w = rng.standard_normal(n)
        f = w - basis @ (basis.T @ w)
        f -= basis @ (basis.T @ f)
        f /= np.linalg.norm(f)
        scores = (points @ f) ** 2
        best = best_pixel(scores, lengths)
        check_left(scores[best], lengths.max(), k, n)
        chosen.append(best)
        found = points[chosen].T
    return chosen


def hysime(X: Any) -> int:
    """Estimate the number of endmembers, by the power of signal and noise in each direction.

    Parameters
    ----------
    X : array_like of shape (pixels, bands)
        The scene. More pixels than bands must not be all zero.

    Returns
    -------
    int
        The dimension of the subspace that holds the signal; 0 if there is nothing but noise.

    Raises
    ------
    ValueError
        If there are no more pixels than bands.

    Notes
    -----
    Signal is what the other bands of the same pixel predict, noise is the rest. With
    ``G = X'X / pixels``, ``Q = G^-1`` and ``D = diag(Q)``, the regression of every band on all
    others leaves the residuals ``X Q D^-1``, of power ``1 / Q_ii`` in band i. The noise of
    different bands is taken as uncorrelated: ``N = D^-1``. The eigenvectors e of the correlation
    of the predictions, ``(I - Q D^-1)' G (I - Q D^-1)``, are candidates. Keeping one lets in noise
    of power e'Ne; dropping it loses signal of power e'Ge - e'Ne. So e counts if
    ``e'Ge > 2 e'Ne`` [1]_. Eigenvalues of G that are rounding are raised to what rounding may be.

    References
    ----------
    .. [1] J. M. Bioucas-Dias, J. M. P. Nascimento. Hyperspectral subspace identification. IEEE
       Transactions on Geoscience and Remote Sensing 46, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit.unmixing.subspace import hysime
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.dirichlet(np.ones(4), 1000) @ rng.random((4, 30))
    >>> hysime(clean + 0.001 * rng.standard_normal(clean.shape))
    4
    """
    (spectra, _), _ = read_pixels(X)
    pixels, bands = spectra.shape
    if pixels <= bands:
        raise ValueError(
            f"hysime needs more pixels that are not all zero than bands; got {pixels} and {bands}. "
            "Use more of the scene, or fewer bands."
        )
    values, vectors = np.linalg.eigh(spectra.T @ spectra / pixels)
    values = np.maximum(values, bands * EPS * values[-1])
    G, Q = (vectors * values) @ vectors.T, (vectors / values) @ vectors.T
    noise = 1.0 / Q.diagonal()
    predicted = np.eye(bands) - Q * noise
    candidates = np.linalg.eigh(predicted.T @ G @ predicted)[1]
    power = np.einsum("ij,ij->j", candidates, G @ candidates)
    return int(np.sum(power > 2.0 * (noise @ candidates**2)))
