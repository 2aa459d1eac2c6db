"""A plot of what a fitted factorisation does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector, count
from conepursuit.estimators.checking import checked_array
from conepursuit.estimators.panels import (
    bars_height,
    check_image,
    components_of,
    draw_image,
    draw_largest,
    feature_labels,
    panels,
    weights_for,
)
from conepursuit.linear import dense
from conepursuit.plotting import COLOURS

BLOCK = 2**21
"""The most entries of the data that are made dense at a time, unless one row has more."""


@dataclass(eq=False)
class ResidualsDisplay:
    """What a factorisation leaves: the residuals of the samples, and those of the features.

    Parameters
    ----------
    samples : array of shape (n_samples,)
        ``||x - w H|| / ||x||`` for each sample; NaN where x is zero or has no entry.
    features : array of shape (n_features,)
        The root mean square of the residuals of each feature; NaN where it has no entry.
    names : list of str
        Names of the features.

    Attributes
    ----------
    figure_ : matplotlib Figure
        What was drawn on.
    axes_ : array of two matplotlib Axes
        The panels: samples and features.
    """

    samples: Vector
    features: Vector
    names: list[str]
    figure_: Any = field(default=None, init=False, repr=False)
    axes_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        entry_weight: Any = None,
        feature_names: Sequence[Any] | None = None,
        figure: Any = None,
        image_shape: tuple[int, int] | None = None,
        order: str = "C",
        n_top: int = 15,
        cmap: Any = "viridis",
    ) -> ResidualsDisplay:
        """Draw the residuals of data that a fitted estimator transforms.

        Parameters
        ----------
        estimator : GreedyNMF
            Fitted; or another with `transform` and `components_`.
        X, entry_weight
            Data, as in `transform`. Missing entries are left out, and weights count in norms and
            means.
        feature_names : sequence of str, optional
            Names of the features, in place of `feature_names_in_`.
        figure, image_shape, order, n_top, cmap
            As in `plot`.
        """
        components, names = components_of(estimator), feature_labels(estimator, feature_names)
        weights = weights_for(estimator, X, entry_weight)
        samples, features = residuals(as_rows(X), weights, components, as_rows(entry_weight))
        return cls(samples, features, names).plot(
            figure=figure, image_shape=image_shape, order=order, n_top=n_top, cmap=cmap
        )

    def plot(
        self,
        *,
        figure: Any = None,
        image_shape: tuple[int, int] | None = None,
        order: str = "C",
        n_top: int = 15,
        cmap: Any = "viridis",
    ) -> ResidualsDisplay:
        """Draw a histogram of the samples, and the features as an image or as bars.

        Parameters
        ----------
        figure : matplotlib Figure, optional
            What to draw on; it should be empty.
        image_shape : (int, int), optional
            Height and width, where features are pixels. None draws bars.
        order : {"C", "F"}
            Whether pixels run by rows or by columns.
        n_top : int
            How many features are drawn as bars: those that are fitted worst.
        cmap : str or matplotlib Colormap
            Colours of the image.
        """
        count(n_top, "n_top")
        if image_shape is not None:
            check_image(image_shape, order, len(self.features))
        height = 0.0 if image_shape is not None else 0.8 + bars_height(n_top, len(self.features))
        self.figure_, self.axes_ = panels(figure, 2, 2, (4.6, max(height, 3.8)))
        self._draw_samples(self.axes_[0])
        name, ax = "root-mean-square residual", self.axes_[1]
        if image_shape is not None:
            image = draw_image(ax, self.features, image_shape, order, cmap)
            self.figure_.colorbar(image, ax=ax, label=name)
            ax.set_title("features", fontsize="medium")
            return self
        draw_largest(ax, np.nan_to_num(self.features), self.names, n_top)
        n_features = len(self.features)
        which = "" if n_top >= n_features else f", the {n_top} worst shown"
        ax.set_xlabel(name)
        ax.set_title(f"{n_features} features{which}", fontsize="medium")
        return self

    def _draw_samples(self, ax: Any) -> None:
        """Draw a histogram of the samples, and their median."""
        shown = self.samples[np.isfinite(self.samples)]
        left = len(self.samples) - len(shown)
        if len(shown):
            middle = float(np.median(shown))
            ax.hist(shown, bins=30, range=(0.0, shown.max() or 1.0), color=COLOURS[0])
            ax.axvline(middle, color="0.3", linestyle="--", label=f"median: {middle:.3g}")
            ax.legend(frameon=False)
        more = f", {left} zero or empty left out" if left else ""
        ax.set(xlabel="relative residual", ylabel="number of samples")
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.set_title(f"{len(shown)} samples{more}", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)


def as_rows(X: Any) -> Any:
    """Return data as an array or a csr matrix, of which rows can be taken; None stays None."""
    if X is None:
        return None
    return checked_array(
        X, "X", accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan"
    )


def residuals(X: Any, W: Array, H: Array, weight: Any) -> tuple[Vector, Vector]:
    """Return the relative residuals of the rows of X, and the root mean squares of the columns.

    NaN stands for rows that are zero, and for rows and columns without an entry that counts. Only
    a block of rows is dense at a time.
    """
    (n_samples, n_features), step = X.shape, max(1, BLOCK // X.shape[1])
    error, norm = np.zeros(n_samples), np.zeros(n_samples)
    of_column, counted = np.zeros(n_features), np.zeros(n_features)
    for start in range(0, n_samples, step):
        rows = slice(start, start + step)
        x = dense(X[rows])
        m = 1.0 * ~np.isnan(x)
        if weight is not None:
            m *= dense(weight[rows])
        x = np.where(m > 0, x, 0.0)
        squares = m * (x - W[rows] @ H) ** 2
        error[rows], norm[rows] = squares.sum(axis=1), (m * x**2).sum(axis=1)
        of_column += squares.sum(axis=0)
        counted += m.sum(axis=0)
    return root_ratio(error, norm), root_ratio(of_column, counted)


def root_ratio(a: Vector, b: Vector) -> Vector:
    """Return the roots of a / b, NaN where b is zero."""
    return np.sqrt(np.divide(a, b, out=np.full_like(a, np.nan), where=b > 0))
