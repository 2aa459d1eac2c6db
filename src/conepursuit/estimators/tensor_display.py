"""Plots of fitted tensor factorisations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from conepursuit.arrays import Array, Vector, count
from conepursuit.estimators.panels import panels
from conepursuit.plotting import COLOURS

FEW_PLACES = 32
"""Places of a mode up to which its vectors are drawn as bars."""


@dataclass(eq=False)
class TensorComponentsDisplay:
    """The components of a tensor, the heaviest first: a row for each, with a panel for each mode.

    Parameters
    ----------
    factors : list of arrays of shape (length of a mode, n_components)
        The vectors of each mode, as columns.
    weights : array of shape (n_components,)
        The weights of the components.
    mode_names : list of str
        Names of the modes.

    Attributes
    ----------
    figure_ : matplotlib Figure
        What was drawn on.
    axes_ : array of matplotlib Axes, shape (number of components drawn, number of modes)
        The panels.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import GreedyCP
    >>> from conepursuit.estimators import TensorComponentsDisplay
    >>> X = np.random.default_rng(0).random((6, 5, 4))
    >>> display = TensorComponentsDisplay.from_estimator(GreedyCP(2).fit(X))
    >>> display.axes_.shape
    (2, 3)
    """

    factors: list[Array]
    weights: Vector
    mode_names: list[str]
    figure_: Any = field(default=None, init=False, repr=False)
    axes_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        mode_names: Sequence[Any] | None = None,
        figure: Any = None,
        n_top: int = 10,
    ) -> TensorComponentsDisplay:
        """Draw the components of a fitted `GreedyCP`.

        Parameters
        ----------
        estimator : GreedyCP
            Fitted.
        mode_names : sequence of str, optional
            Names of the modes; their numbers and lengths by default.
        figure, n_top
            As in `plot`.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "factors_"):
            raise ValueError(
                f"TensorComponentsDisplay needs a GreedyCP; got {type(estimator).__name__}."
            )
        factors = list(estimator.factors_)
        names = [f"mode {i}, length {len(factor)}" for i, factor in enumerate(factors)]
        if mode_names is not None:
            if len(mode_names) != len(factors):
                raise ValueError(
                    f"mode_names must name each of the {len(factors)} modes; got {len(mode_names)}."
                )
            names = [str(name) for name in mode_names]
        return cls(factors, estimator.weights_, names).plot(figure=figure, n_top=n_top)

    def plot(self, *, figure: Any = None, n_top: int = 10) -> TensorComponentsDisplay:
        """Draw each vector over the places of its mode; modes of few places get bars.

        The number and the weight of a component stand at the left of its row.

        Parameters
        ----------
        figure : matplotlib Figure, optional
            What to draw on; it should be empty.
        n_top : int
            Components to draw: the heaviest.
        """
        count(n_top, "n_top")
        lengths = [np.linalg.norm(factor, axis=0) for factor in self.factors]
        sizes = self.weights * np.prod(lengths, axis=0)
        shown = np.argsort(-sizes, kind="stable")[:n_top]
        n_modes = len(self.factors)
        self.figure_, axes = panels(figure, len(shown) * n_modes, n_modes, (2.4, 0.95), 0.5)
        self.axes_ = np.reshape(axes, (len(shown), n_modes))
        for row, k in zip(self.axes_, shown, strict=True):
            label = f"{k}:\n{sizes[k]:.3g}"
            row[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize="small")
            for ax, factor, colour in zip(row, self.factors, COLOURS, strict=False):
                places, values = np.arange(len(factor)), factor[:, k]
                if len(factor) <= FEW_PLACES:
                    ax.bar(places, values, color=colour)
                else:
                    ax.fill_between(places, values, color=colour, linewidth=0)
                ax.set(yticks=[], ylim=(0.0, 1.08 * float(values.max(initial=0.0)) or 1.0))
                ax.set_xlim(-0.5, len(factor) - 0.5)
                ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
                ax.tick_params(labelsize="small", labelbottom=bool(k == shown[-1]))
        for ax, name in zip(self.axes_[0], self.mode_names, strict=True):
            ax.set_title(name, fontsize="medium")
        return self
