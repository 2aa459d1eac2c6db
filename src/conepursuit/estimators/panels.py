"""Panels of the plots of factorisations: grids of them, images, and bars with names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from conepursuit.arrays import Array, Vector, is_integer
from conepursuit.estimators.displays import axes, names_of
from conepursuit.plotting import COLOURS

LONGEST = 24
"""Names of features with more characters than this are cut to it, an ellipsis included."""


def panels(
    figure: Any,
    n_panels: int,
    n_columns: int,
    size: tuple[float, float],
    margin: float = 0.0,
    **options: Any,
) -> tuple[Any, Array]:
    """Return a figure, a new one if none is given, and `n_panels` axes on a grid in it.

    A panel has `size`, and titles of the figure have height `margin`, in inches; `options` go to
    `subplots`.
    """
    n_columns = min(n_columns, n_panels)
    n_rows = -(-n_panels // n_columns)
    if figure is None:
        figure = axes(None).figure
        figure.clear()
        figure.set_size_inches(max(n_columns * size[0], 3.2), n_rows * size[1] + margin)
    grid = figure.subplots(n_rows, n_columns, squeeze=False, **options).ravel()
    for ax in grid[n_panels:]:
        ax.remove()
    return figure, grid[:n_panels]


def components_of(estimator: Any) -> Array:
    """Return H, the components of a fitted estimator."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "components_"):
        raise ValueError(f"{type(estimator).__name__} has no components_ to draw.")
    components = np.asarray(estimator.components_)
    if components.min(initial=0.0) < 0:
        raise ValueError(
            f"components_ must not be negative; the least of {type(estimator).__name__} is "
            f"{components.min():.3g}. Use GreedyNMF or another non-negative factorisation."
        )
    return components


def weights_for(estimator: Any, X: Any, entry_weight: Any) -> Array:
    """Return W, the weights of the components in the rows of X."""
    options = {} if entry_weight is None else {"entry_weight": entry_weight}
    return np.asarray(estimator.transform(X, **options))


def feature_labels(estimator: Any, feature_names: Sequence[Any] | None) -> list[str]:
    """Return the names of the features: those given, those of the estimator, or their numbers."""
    if feature_names is None:
        return names_of(estimator)
    if len(feature_names) != estimator.n_features_in_:
        raise ValueError(
            f"feature_names must name each of the {estimator.n_features_in_} features; got "
            f"{len(feature_names)} names."
        )
    return [str(name) for name in feature_names]


def check_image(image_shape: Any, order: Any, n_features: int) -> None:
    """Raise a ValueError if the features are not the pixels of an image of this shape."""
    if order not in ("C", "F"):
        raise ValueError(f'order must be "C", by rows, or "F", by columns; got {order!r}.')
    pair = isinstance(image_shape, Sequence) and len(image_shape) == 2
    if not pair or not all(is_integer(side) and side > 0 for side in image_shape):
        raise ValueError(
            "image_shape must be (height, width) in pixels, or None where features are not "
            f"pixels; got {image_shape!r}."
        )
    if image_shape[0] * image_shape[1] != n_features:
        raise ValueError(
            f"image_shape must have height * width = {n_features}, the number of features; got "
            f"{image_shape!r}, which makes {image_shape[0] * image_shape[1]}."
        )


def draw_image(ax: Any, values: Vector | None, image_shape: Any, order: Any, cmap: Any) -> Any:
    """Draw a value for each pixel, NaN left blank; None is an empty panel."""
    ax.set(xticks=[], yticks=[], box_aspect=image_shape[0] / image_shape[1])
    if values is None:
        return None
    return ax.imshow(values.reshape(image_shape, order=order), cmap=cmap, vmin=0.0)


def largest(values: Vector, n_top: int) -> Array:
    """Return the places of the `n_top` largest values that are positive, from the largest down."""
    order = np.argsort(-values, kind="stable")[:n_top]
    return order[values[order] > 0]


def draw_largest(ax: Any, values: Vector, names: list[str], n_top: int) -> None:
    """Draw the `n_top` largest values as bars, with names; zeros are left out."""
    shown = largest(values, n_top)
    places = np.arange(len(shown))
    ax.barh(places, values[shown], height=0.75, color=COLOURS[0])
    labels = [cut(names[j]) for j in shown]
    ax.set_yticks(places, labels, fontsize="small", parse_math=False)
    ax.set_ylim(min(n_top, len(values)) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize="small")
    ax.locator_params(axis="x", nbins=3)
    ax.spines[["top", "right"]].set_visible(False)


def bars_height(n_top: int, n_features: int) -> float:
    """Return how high a panel must be for the names beside its bars, in inches."""
    return 0.19 * min(n_top, n_features)


def cut(name: str) -> str:
    """Return a name, cut if it has more than `LONGEST` characters."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
