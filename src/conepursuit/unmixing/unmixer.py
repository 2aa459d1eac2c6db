"""From a scene to the abundances of its materials, with a proof for every pixel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from conepursuit.arrays import Array, Vector, as_float_array, count, is_number
from conepursuit.least_squares.api import nnls
from conepursuit.loss_fits.api import nnfit
from conepursuit.losses import loss_named, named_losses
from conepursuit.matrix_fits.lazy import fit_blocks
from conepursuit.unmixing.clustering import h2nmf
from conepursuit.unmixing.extraction import snpa, spa, xray
from conepursuit.unmixing.kinds import as_lazy_scene, as_pixels, check_size
from conepursuit.unmixing.subspace import vca

EXTRACTORS: dict[str, Callable[..., Any]] = {
    "spa": spa,
    "snpa": snpa,
    "xray": xray,
    "vca": vca,
    "h2nmf": lambda X, n: h2nmf(X, n).indices,
}
"""The methods that choose pixels as endmembers, by name."""


class Unmixed(NamedTuple):
    """Abundances, and how good they are.

    Attributes
    ----------
    abundances : array of the shape of the scene, with endmembers in place of bands
        The weights of the endmembers; NaN where a pixel has no data.
    residual : array of the shape of the scene without bands
        ``||x - a @ endmembers||`` over the bands that count, with their weights.
    gap : array, as residual
        A bound on how far the loss of a pixel, half the squared residual for "squared_error", is
        above the least possible one.
    proven : array of bool, as residual
        Whether the gap is a proof; False without data.
    """

    abundances: Any
    residual: Any
    gap: Any
    proven: Any


class Unmixer(TransformerMixin, BaseEstimator):
    """Unmix a scene: find the spectra of its materials, and their abundances in each pixel.

    A pixel x is approximated by ``a @ endmembers`` with a >= 0: by least squares, or another loss.

    Parameters
    ----------
    n_endmembers : int, optional
        How many spectra to find in the scene. Not needed where `endmembers` are given.
    endmembers : array_like of shape (n, bands), optional
        Spectra that are known, one per row: of the materials, or a library.
    extractor : {"spa", "snpa", "xray", "vca", "h2nmf"}
        How pixels of the scene are chosen as endmembers.
    sum_to_one : bool
        Whether the abundances of each pixel add up to 1; for "squared_error".
    max_endmembers : int, optional
        The most endmembers in a pixel, by non-negative orthogonal matching pursuit; for
        "squared_error". For a large library, say.
    loss : str
        The loss of a pixel: "squared_error", "huber", "poisson" or "kullback_leibler".
    band_weights : array_like of shape (bands,), optional
        Weights >= 0 of the bands in the loss.
    bad_bands : array_like of int or bool, optional
        Bands that are left out, as indices or as a mask, True for bad.
    no_data : float, optional
        A pixel of which all bands hold this value has no data. One with NaN in a band that counts
        has none either.
    random_state : int
        Seed of "vca".
    n_jobs : int, optional
        Threads, as in `nnls`.

    Attributes
    ----------
    endmembers_ : array of shape (n, bands)
        The spectra, one per row, bad bands included.
    indices_ : array of shape (n,)
        Which pixels they are, counted row by row; only where they were found in the scene.
    abundances_, residual_, gap_, proven_
        What `unmix` returns for the scene of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit.unmixing import Unmixer
    >>> spectra = np.array([[1.0, 0.2, 0.1], [0.1, 0.9, 0.8]])
    >>> shares = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.2, 0.8]]])
    >>> model = Unmixer(2).fit(shares @ spectra)
    >>> model.abundances_.shape, bool(model.proven_.all())
    ((2, 2, 2), True)
    """

    def __init__(
        self,
        n_endmembers: int | None = None,
        *,
        endmembers: Any = None,
        extractor: str = "spa",
        sum_to_one: bool = False,
        max_endmembers: int | None = None,
        loss: str = "squared_error",
        band_weights: Any = None,
        bad_bands: Any = None,
        no_data: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_endmembers = n_endmembers
        self.endmembers = endmembers
        self.extractor = extractor
        self.sum_to_one = sum_to_one
        self.max_endmembers = max_endmembers
        self.loss = loss
        self.band_weights = band_weights
        self.bad_bands = bad_bands
        self.no_data = no_data
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Unmixer:
        """Find the endmembers, unless they are given, and the abundances.

        Parameters
        ----------
        X : array_like of shape (pixels, bands) or (rows, columns, bands), or xarray.DataArray
            The scene.
        y : ignored
        """
        self.find_endmembers(X)
        found = self.unmix(X)
        self.abundances_, self.residual_, self.gap_, self.proven_ = found
        return self

    def find_endmembers(self, X: Any) -> Unmixer:
        """Find the endmembers, unless they are given, without abundances.

        X may be a part of a scene that is too large for memory. Of a Dask array all pixels are
        read, and more than 1 GiB of float64 is refused.
        """
        self._check()
        lazy = as_lazy_scene(X)
        if lazy is not None and self.endmembers is None:
            check_size(lazy[0].shape)
            lazy = None  # all pixels are needed
        pixels, _ = lazy or as_pixels(X)
        self.n_features_in_ = pixels.shape[-1]
        weights = self._weights()
        if self.endmembers is not None:
            spectra = as_float_array(self.endmembers, "endmembers")
            if spectra.ndim != 2 or spectra.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"endmembers must have a spectrum of {self.n_features_in_} bands in each row; "
                    f"got shape {spectra.shape}."
                )
            self.endmembers_ = spectra.astype(np.float64)
            return self
        where = np.flatnonzero(self._has_data(pixels, weights))
        if not len(where):
            raise ValueError(
                f"none of the {len(pixels)} pixels has data: all have NaN or infinity in a band "
                f"that counts, or the value no_data={self.no_data} in all of them."
            )
        spectra = counted(pixels[where], weights > 0).astype(np.float64)
        if self.band_weights is not None:
            spectra *= np.sqrt(weights[weights > 0])
        extract = EXTRACTORS[self.extractor]
        seed = {"random_state": self.random_state} if self.extractor == "vca" else {}
        self.indices_ = where[np.asarray(extract(spectra, self.n_endmembers, **seed))]
        self.endmembers_ = pixels[self.indices_].astype(np.float64)
        return self

    def transform(self, X: Any) -> Any:
        """Return the abundances of a scene, as `unmix` does."""
        return self.unmix(X).abundances

    def unmix(self, X: Any) -> Unmixed:
        """Return the abundances of a scene, their residuals, gaps and proofs.

        Parameters
        ----------
        X : array_like or xarray.DataArray
            As in `fit`, with the same bands; a Dask array may be chunked along its pixels.

        Returns
        -------
        Unmixed
            Arrays of the kind of X: of a Dask array, nothing is computed yet.
        """
        check_is_fitted(self, "endmembers_")
        lazy = as_lazy_scene(X)
        pixels, kind = lazy or as_pixels(X)
        if pixels.shape[-1] != self.n_features_in_:
            raise ValueError(
                f"the scene must have {self.n_features_in_} bands, as the endmembers; got "
                f"{pixels.shape[-1]}."
            )
        found = self._unmixed(pixels) if lazy is None else self._unmixed_lazily(pixels)
        return Unmixed(
            kind.per_endmember(found.abundances),
            kind.per_pixel(found.residual, "residual"),
            kind.per_pixel(found.gap, "gap"),
            kind.per_pixel(found.proven, "proven"),
        )

    def _unmixed_lazily(self, scene: Any) -> Unmixed:
        """Unmix a Dask array block by block, each in C order, with the endmembers alone."""
        model = clone(self).set_params(n_jobs=None)
        model.endmembers_, model.n_features_in_ = self.endmembers_, self.n_features_in_
        each = dict.fromkeys(Unmixed._fields[1:3], (None, float))
        fields = {"abundances": (len(self.endmembers_), float), **each, "proven": (None, bool)}
        return Unmixed(**fit_blocks(model._unmixed_block, scene, -1, fields))

    def _unmixed_block(self, block: Array) -> Unmixed:
        return self.unmix(block.astype(block.dtype, order="C", copy=False))

    def _unmixed(self, pixels: Array) -> Unmixed:
        """Unmix an array (pixels, bands)."""
        weights = self._weights()
        known = self._has_data(pixels, weights)
        abundances = np.full((len(pixels), len(self.endmembers_)), np.nan)
        residual, gap = np.full(len(pixels), np.nan), np.full(len(pixels), np.nan)
        proven = np.zeros(len(pixels), dtype=bool)
        if known.any():
            fit = self._solved(pixels if known.all() else pixels[known], weights)
            abundances[known], residual[known], gap[known], proven[known] = fit
        return Unmixed(abundances, residual, gap, proven)

    def _solved(self, pixels: Array, weights: Vector) -> tuple[Array, Vector, Vector, Vector]:
        """Return abundances, residuals, gaps and proofs of pixels that all have data."""
        used = weights > 0
        targets, atoms = counted(pixels, used).T, np.ascontiguousarray(self.endmembers_[:, used].T)
        own = None if self.band_weights is None else weights[used]
        if self.loss == "squared_error":
            options: dict[str, Any] = {"n_jobs": self.n_jobs}
            if own is not None:
                options["weights"] = own
            if self.max_endmembers is not None:
                options["max_atoms"] = count(self.max_endmembers, "max_endmembers")
            if self.sum_to_one:
                options["sum_to"] = 1.0
            fit: Any = nnls(atoms, targets, **options)
            return fit.x.T, fit.rnorm, fit.gap, fit.proven
        rows = None if own is None else np.broadcast_to(own[:, None], targets.shape)
        objective = loss_named(self.loss, named_losses()).of(targets, weights=rows)
        fit = nnfit(objective, atoms, n_jobs=self.n_jobs)
        rest = targets.copy(order="K")
        for spectrum, shares in zip(atoms.T, fit.x, strict=True):
            # A product of matrices may round a pixel differently if it is one of more or fewer.
            rest -= spectrum[:, None] * shares
        squares = rest * rest if own is None else own[:, None] * rest * rest
        return fit.x.T, np.sqrt(squares.sum(axis=0)), fit.gap, fit.proven

    def _weights(self) -> Vector:
        """Return the weight of each band, 0 for bad ones."""
        bands = self.n_features_in_
        weights = np.ones(bands)
        if self.band_weights is not None:
            weights = as_float_array(self.band_weights, "band_weights").astype(np.float64)
            if weights.shape != (bands,) or (weights < 0).any():
                raise ValueError(
                    f"band_weights must have a number >= 0 for each of {bands} bands; got shape "
                    f"{weights.shape}, the least {weights.min(initial=0.0):g}."
                )
        if self.bad_bands is not None:
            bad = np.asarray(self.bad_bands)
            if bad.dtype == bool and bad.shape != (bands,):
                raise ValueError(
                    f"bad_bands, a mask, must have the shape ({bands},); got {bad.shape}."
                )
            if bad.dtype != bool and (bad.dtype.kind not in "iu" and bad.size):
                raise ValueError(f"bad_bands must be indices or a mask; got dtype {bad.dtype}.")
            if bad.dtype != bool and bad.size and not 0 <= bad.min() <= bad.max() < bands:
                raise ValueError(
                    f"bad_bands must be from 0 to {bands - 1}; got {bad.min()} to {bad.max()}."
                )
            weights = weights.copy()
            weights[bad if bad.dtype == bool else bad.astype(np.intp)] = 0.0
        if not weights.any():
            raise ValueError("no band counts: all are bad, or have weight 0.")
        return weights

    def _has_data(self, pixels: Array, weights: Vector) -> Array:
        """Return which pixels have data in all bands that count."""
        values = counted(pixels, weights > 0)
        known = np.ones(len(values), dtype=bool)
        if values.dtype.kind == "f":
            known &= np.isfinite(values).all(axis=1)
        if self.no_data is not None and not np.isnan(self.no_data):
            known &= np.logical_not((values == self.no_data).all(axis=1))
        return known

    def _check(self) -> None:
        """Raise a ValueError that says which parameter is wrong."""
        if self.n_endmembers is None and self.endmembers is None:
            raise ValueError(
                "n_endmembers, or the endmembers themselves, must be given. "
                "conepursuit.unmixing.hysime estimates a number, often too large a one."
            )
        if not isinstance(self.extractor, str) or self.extractor not in EXTRACTORS:
            raise ValueError(
                f"extractor must be one of {', '.join(map(repr, EXTRACTORS))}; got "
                f"{self.extractor!r}."
            )
        if self.no_data is not None and not is_number(self.no_data):
            raise ValueError(f"no_data must be a number; got {self.no_data!r}.")
        special = self.sum_to_one or self.max_endmembers is not None
        if special and self.loss != "squared_error":
            raise ValueError(
                'sum_to_one and max_endmembers are for loss="squared_error"; got '
                f"loss={self.loss!r}."
            )
        if self.sum_to_one and self.max_endmembers is not None:
            raise ValueError("sum_to_one and max_endmembers do not go together. Leave one out.")


def counted(pixels: Array, used: Array) -> Array:
    """Return the bands of all pixels that count, contiguous; without a copy if all do."""
    return pixels if used.all() else np.ascontiguousarray(pixels[:, used])
