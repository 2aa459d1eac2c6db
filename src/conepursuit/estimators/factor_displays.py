"""Plots of fitted factorisations: their components and their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from conepursuit.arrays import Array, Vector, count
from conepursuit.estimators.panels import (
    bars_height,
    check_image,
    components_of,
    cut,
    draw_image,
    draw_largest,
    feature_labels,
    largest,
    panels,
    weights_for,
)
from conepursuit.plotting import COLOURS


@dataclass(eq=False)
class ComponentsDisplay:
    """The components of a factorisation, as images or by their largest features.

    Parameters
    ----------
    components : array of shape (n_components, n_features)
        The components.
    names : list of str
        Names of the features.
    shares : array of shape (n_components,), optional
        The share of each component in the sum of all entries of W H.

    Attributes
    ----------
    figure_ : matplotlib Figure
        What was drawn on.
    axes_ : array of matplotlib Axes, shape (n_components,)
        One panel for each component.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from conepursuit.estimators.factor_displays import ComponentsDisplay
    >>> from conepursuit.estimators.factorization import GreedyNMF
    >>> X = load_digits().data
    >>> model = GreedyNMF(4, oracle_rounds=0).fit(X)
    >>> display = ComponentsDisplay.from_estimator(model, X, image_shape=(8, 8))
    >>> len(display.axes_)
    4
    """

    components: Array
    names: list[str]
    shares: Vector | None = None
    figure_: Any = field(default=None, init=False, repr=False)
    axes_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        entry_weight: Any = None,
        feature_names: Sequence[Any] | None = None,
        figure: Any = None,
        image_shape: tuple[int, int] | None = None,
        order: str = "C",
        n_top: int = 10,
        n_columns: int = 5,
        cmap: Any = "viridis",
    ) -> ComponentsDisplay:
        """Draw the components of a fitted estimator.

        Parameters
        ----------
        estimator : GreedyNMF
            Fitted; or another with non-negative `components_`.
        X, entry_weight : optional
            Data, as in `transform`. With X, panels give the share of each component in the sum of
            W H.
        feature_names : sequence of str, optional
            Names of the features, in place of `feature_names_in_`.
        figure, image_shape, order, n_top, n_columns, cmap
            As in `plot`.
        """
        components, names = components_of(estimator), feature_labels(estimator, feature_names)
        shares = None
        if X is not None:
            sums = weights_for(estimator, X, entry_weight).sum(axis=0) * components.sum(axis=1)
            shares = sums / (sums.sum() or 1.0)
        return cls(components, names, shares).plot(
            figure=figure, image_shape=image_shape, order=order, n_top=n_top,
            n_columns=n_columns, cmap=cmap,
        )  # fmt: skip

    def plot(
        self,
        *,
        figure: Any = None,
        image_shape: tuple[int, int] | None = None,
        order: str = "C",
        n_top: int = 10,
        n_columns: int = 5,
        cmap: Any = "viridis",
    ) -> ComponentsDisplay:
        """Draw, each component on its own scale, since that of H is arbitrary.

        Parameters
        ----------
        figure : matplotlib Figure, optional
            What to draw on; it should be empty.
        image_shape : (int, int), optional
            Height and width, where features are pixels. None draws bars.
        order : {"C", "F"}
            Whether pixels run by rows or by columns.
        n_top : int
            Features for each component, where bars are drawn: the largest.
        n_columns : int
            Panels side by side.
        cmap : str or matplotlib Colormap
            Colours of images.
        """
        count(n_top, "n_top")
        count(n_columns, "n_columns")
        n_components, n_features = self.components.shape
        if image_shape is not None:
            check_image(image_shape, order, n_features)
            ratio = min(max(image_shape[0] / image_shape[1], 0.25), 4.0)
            size, margin = (1.4, 0.27 + 1.32 * ratio), 0.0
        else:
            shown = {cut(self.names[j]) for row in self.components for j in largest(row, n_top)}
            width = 1.8 + 0.075 * max(map(len, shown), default=0)
            size, margin = (width, 0.55 + bars_height(n_top, n_features)), 0.25
        margin += 0.0 if self.shares is None else 0.25
        self.figure_, self.axes_ = panels(figure, n_components, n_columns, size, margin)
        for k, (ax, component) in enumerate(zip(self.axes_, self.components, strict=True)):
            ax.set_title(self._title(k), fontsize="small")
            if image_shape is not None:
                draw_image(ax, component if component.any() else None, image_shape, order, cmap)
            elif component.any():
                draw_largest(ax, component / component.sum(), self.names, n_top)
            else:
                ax.set(xticks=[], yticks=[])
        if image_shape is None:
            self.figure_.supxlabel("share of the component", fontsize="medium")
        if self.shares is not None:
            self.figure_.suptitle("components: shares of the sum of W H", fontsize="medium")
        return self

    def _title(self, k: int) -> str:
        """Return the number of a component, and its share if it is known."""
        if not self.components[k].any():
            return f"{k}: zero"
        return f"{k}" if self.shares is None else f"{k}: {self.shares[k]:.1%}"


@dataclass(eq=False)
class RankPathDisplay:
    """The objective at every rank on the way up, and how good the oracle was there.

    Parameters
    ----------
    objective : array of shape (n_components,)
        The objective at ranks 1, 2, ...
    accuracy : array of shape (n_components,)
        The accuracy of the oracle, NaN where it was not asked.
    held_out : array, optional
        The mean loss of the entries held out at ranks 1, 2, ...

    Attributes
    ----------
    figure_ : matplotlib Figure
        What was drawn on.
    axes_ : array of matplotlib Axes
        The panels: objective, held-out loss and accuracy, where there are any.
    """

    objective: Vector
    accuracy: Vector
    held_out: Vector | None = None
    figure_: Any = field(default=None, init=False, repr=False)
    axes_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, figure: Any = None) -> RankPathDisplay:
        """Draw the path of a fitted `GreedyNMF` or `GreedyCP`."""
        check_is_fitted(estimator)
        if not hasattr(estimator, "rank_path_"):
            raise ValueError(
                f"RankPathDisplay needs a GreedyNMF or GreedyCP; got {type(estimator).__name__}."
            )
        held_out = getattr(estimator, "held_out_path_", None)
        return cls(estimator.rank_path_, estimator.oracle_accuracy_, held_out).plot(figure=figure)

    def plot(self, *, figure: Any = None) -> RankPathDisplay:
        """Draw; the rank that was chosen is marked."""
        asked = not np.isnan(self.accuracy).all()
        heights = [3.0, *([] if self.held_out is None else [2.0]), *([1.2] if asked else [])]
        size = (6.4, (1.0 + sum(heights)) / len(heights))
        self.figure_, self.axes_ = panels(
            figure, len(heights), 1, size, sharex=True, height_ratios=heights
        )
        objective, lowest = self.axes_[0], self.axes_[-1]
        draw_ranks(objective, self.objective, "objective", COLOURS[0])
        log_scale(objective, self.objective)
        if self.held_out is not None:
            draw_ranks(self.axes_[1], self.held_out, "held-out loss", COLOURS[1])
            mark_rank(self.axes_[1], self.held_out, len(self.objective))
        if asked:
            draw_ranks(lowest, self.accuracy, "oracle\naccuracy", COLOURS[2])
            lowest.set(ylim=(0.0, 1.08), yticks=[0.0, 0.5, 1.0])
        last = max(len(path) for path in (self.objective, self.held_out) if path is not None)
        lowest.set(xlabel="rank", xlim=(0.5, last + 0.5))
        lowest.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        self.figure_.align_ylabels(self.axes_)
        return self


def draw_ranks(ax: Any, values: Vector, name: str, colour: str) -> None:
    """Draw a value for each of the ranks 1, 2, ..."""
    marker = "o" if len(values) <= 50 else None
    ax.plot(np.arange(1, len(values) + 1), values, marker=marker, markersize=4, color=colour)
    ax.set_ylabel(name)
    ax.grid(True, color="0.9")


def log_scale(ax: Any, values: Vector) -> None:
    """Give y a log scale if a value is positive; within a decade, ticks are round numbers."""
    from matplotlib import ticker

    positive = values[values > 0]
    if not len(positive):
        return
    ax.set_yscale("log", nonpositive="mask")
    if positive.max() < 10 * positive.min():
        ax.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10]))
        ax.yaxis.set_major_formatter(ticker.ScalarFormatter())
        ax.yaxis.set_minor_locator(ticker.NullLocator())


def mark_rank(ax: Any, values: Vector, rank: int) -> None:
    """Mark the rank that was chosen."""
    ax.plot(
        rank, values[rank - 1], linestyle="none", marker="o", markersize=9, color="0.3",
        markerfacecolor="none", label=f"chosen: rank {rank}",
    )  # fmt: skip
    ax.legend(frameon=False)
