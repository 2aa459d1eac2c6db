"""Endmembers as representatives of clusters of pixels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from conepursuit.arrays import EPS, Array, Vector
from conepursuit.least_squares.api import nnls
from conepursuit.unmixing.extraction import spa
from conepursuit.unmixing.pixels import FLAT, read_pixels, squares

ROUNDS, GAIN = 100, 1e-5
"""Most rounds of a rank-two factorisation, and the share of the error that a round must gain."""

WINDOW = 0.01
"""Half the width of the window in which the density of shares is measured."""


class Clusters(NamedTuple):
    """Clusters of the pixels of a scene.

    Attributes
    ----------
    indices : array of int of shape (n,)
        The pixel that represents each cluster.
    labels : array of int of shape (pixels,)
        The cluster of every pixel, from 0 to n - 1; -1 for pixels that are all zero.
    """

    indices: Array
    labels: Array


class Leaf(NamedTuple):
    """A cluster, and what splitting it would bring.

    Attributes
    ----------
    rows : array of int
        Its pixels.
    powers : array of shape (bands,)
        The squared singular values of its pixels, ascending.
    axes : array of shape (bands, bands)
        The singular vectors, as columns.
    parts : tuple of Leaf, optional
        The two clusters it would be split into, or none if it cannot be split; None as long as
        nobody has tried.
    """

    rows: Array
    powers: Vector
    axes: Array
    parts: tuple[Leaf, ...] | None = None

    @property
    def gain(self) -> float:
        """What a split takes from the squared error of one spectrum per cluster."""
        if not self.parts:
            return -np.inf
        return float(sum(part.powers[-1] for part in self.parts) - self.powers[-1])


def h2nmf(X: Any, n: int) -> Clusters:
    """Cluster the pixels by hierarchical rank-two factorisation; choose an endmember of each.

    All pixels are one cluster at first. Then, again and again, one cluster is split in two: the
    one whose split lowers most the error of the best single spectrum for each cluster.

    Parameters
    ----------
    X : array_like of shape (pixels, bands)
        The scene, without negative entries.
    n : int
        How many clusters.

    Returns
    -------
    Clusters
        The tuple ``(indices, labels)``: a representative pixel of each cluster, and the cluster
        of every pixel.

    Raises
    ------
    ValueError
        If X has negative entries, not that many bands or pixels, or falls into fewer clusters,
        each of pixels that are multiples of one another.

    Notes
    -----
    A cluster of pixels K is factorised, ``X[K] ~ H W`` with two rows of unit length in W and
    nothing negative, by alternating least squares that start from the two pixels that `spa` finds
    in the leading singular subspace. The share ``s_i = H_i1 / (H_i1 + H_i2)`` places each pixel
    between two materials. The cluster is cut at the d that minimises
    ``-log(F(d) (1 - F(d))) + exp(G(d))``, with F the share of pixels below d and G the density of
    pixels about d: so that neither part is small and few pixels are near the cut. The gain
    of a split is ``sigma(K1)^2 + sigma(K2)^2 - sigma(K)^2``, with the largest singular values.
    A cluster is represented by the pixel whose spectrum, less its mean, makes the least angle with
    the leading singular vector, less its mean [1]_.

    References
    ----------
    .. [1] N. Gillis, D. Kuang, H. Park. Hierarchical clustering of hyperspectral images using
       rank-two nonnegative matrix factorization. IEEE Transactions on Geoscience and Remote
       Sensing 53, 2015.

    Examples
    --------
    >>> from conepursuit.unmixing.clustering import h2nmf
    >>> h2nmf([[4.0, 1.0, 0.0], [5.0, 1.0, 0.0], [0.0, 1.0, 3.0], [0.0, 1.0, 4.0]], 2).labels
    array([0, 0, 1, 1])
    """
    (spectra, where), n = read_pixels(X, n)
    if spectra.min() < 0.0:
        raise ValueError(
            f"X must not be negative for h2nmf; the least entry is {np.min(np.asarray(X)):.3g}. "
            "Use np.maximum(X, 0) if that is noise."
        )
    leaves = [_leaf(spectra, np.arange(len(spectra)))]
    while len(leaves) < n:
        leaves = [_split(leaf, spectra) if leaf.parts is None else leaf for leaf in leaves]
        best = int(np.argmax([leaf.gain for leaf in leaves]))
        parts = leaves[best].parts
        if not parts:
            raise ValueError(
                f"n = {n} clusters were asked for, but the pixels of X fall into {len(leaves)} "
                f"clusters of multiples of one spectrum. Use an n of up to {len(leaves)}."
            )
        leaves[best : best + 1] = parts
    labels = np.full(len(np.asarray(X)), -1)
    for label, leaf in enumerate(leaves):
        labels[where[leaf.rows]] = label
    return Clusters(where[[_representative(leaf, spectra) for leaf in leaves]], labels)


def _leaf(spectra: Array, rows: Array) -> Leaf:
    """Return the cluster of some pixels."""
    part = spectra[rows]
    return Leaf(rows, *np.linalg.eigh(part.T @ part))


def _split(leaf: Leaf, spectra: Array) -> Leaf:
    """Return the cluster with the parts it would be split into."""
    if leaf.powers[-2] <= len(leaf.powers) * EPS * leaf.powers[-1]:
        return leaf._replace(parts=())
    part = spectra[leaf.rows]
    below = _below_cut(_shares(part, _two_spectra(part, leaf.axes[:, -2:])))
    if not 0 < np.count_nonzero(below) < len(below):
        return leaf._replace(parts=())
    halves = (leaf.rows[~below], leaf.rows[below])
    return leaf._replace(parts=tuple(_leaf(spectra, rows) for rows in halves))


def _two_spectra(part: Array, axes: Array) -> Array:
    """Return the spectra of the two extreme pixels in a plane, as far as they are positive."""
    coordinates = part @ axes
    extreme: Array = coordinates[spa(coordinates, 2)] @ axes.T
    return np.maximum(extreme, 0.0)


def _shares(part: Array, W: Array) -> Vector:
    """Return where each pixel lies between two spectra: from 0, at the second, to 1."""
    before = np.inf
    for _ in range(ROUNDS):
        H, distances = nnls(W.T, part.T)
        error = float(distances @ distances)
        if before - error <= GAIN * error:
            break
        before, W = error, nnls(H.T, part).x
    scaled = H * np.sqrt(squares(W))[:, None]
    total = scaled.sum(axis=0)
    # A pixel that has no band in common with either spectrum is between them.
    shares: Vector = np.full(len(part), 0.5)
    np.divide(scaled[0], total, out=shares, where=total > 0.0)
    return shares


def _below_cut(shares: Vector) -> Array:
    """Return which shares lie below the best cut; none does if all are equal.

    Cuts are tried in the middle between neighbouring shares.
    """
    ordered = np.sort(shares)
    n, low = len(ordered), np.flatnonzero(np.diff(ordered) > FLAT)
    if not len(low):
        return np.zeros(n, dtype=bool)
    cuts = (ordered[low] + ordered[low + 1]) / 2.0
    F = (low + 1.0) / n
    left, right = np.maximum(cuts - WINDOW, 0.0), np.minimum(cuts + WINDOW, 1.0)
    near = np.searchsorted(ordered, right, side="right") - np.searchsorted(ordered, left)
    G = near / (n * (right - left))
    below: Array = shares < cuts[np.argmin(np.exp(G) - np.log(F * (1.0 - F)))]
    return below


def _representative(leaf: Leaf, spectra: Array) -> int:
    """Return the pixel of a cluster whose shape is nearest to that of the leading direction."""
    part, direction = spectra[leaf.rows], leaf.axes[:, -1]
    if direction.sum() < 0.0:  # LAPACK leaves the sign open
        direction = -direction
    shapes = part - part.mean(axis=1, keepdims=True)
    sizes = np.sqrt(squares(shapes))
    along = shapes @ (direction - direction.mean())
    cosines = np.divide(along, sizes, out=np.zeros(len(part)), where=sizes > 0.0)
    nearest = np.flatnonzero(cosines >= cosines.max() - FLAT)
    return int(leaf.rows[nearest[np.argmax(squares(part[nearest]))]])
