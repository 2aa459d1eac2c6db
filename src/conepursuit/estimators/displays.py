"""Plots of fitted estimators, as scikit-learn's displays: made once, drawn as often as asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from conepursuit.arrays import Array, Vector
from conepursuit.estimators.linear import ConicPath


def axes(ax: Any) -> Any:
    """Return the axes to draw on, new ones if none are given."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as reason:
        raise ImportError("displays need matplotlib. Install conepursuit[plots].") from reason
    return pyplot.subplots(layout="constrained")[1]


def names_of(estimator: Any) -> list[str]:
    """Return the names of the features, or their numbers."""
    names = getattr(estimator, "feature_names_in_", None)
    return [str(name) for name in (range(estimator.n_features_in_) if names is None else names)]


def of_target(estimator: Any, name: str, target: int) -> Any:
    """Return an attribute of an estimator, for one of its targets or classes if it has many."""
    check_is_fitted(estimator)
    if not hasattr(estimator, name):
        raise ValueError(f"{type(estimator).__name__} has no {name} to draw.")
    many = np.ndim(estimator.coef_) == 2
    if many and not 0 <= target < len(estimator.coef_):
        raise ValueError(f"target must lie between 0 and {len(estimator.coef_) - 1}; got {target}.")
    return getattr(estimator, name)[target] if many else getattr(estimator, name)


@dataclass(eq=False)
class CoefficientPathDisplay:
    """The coefficients along a path: over the penalties, or over the fits of a greedy run.

    Parameters
    ----------
    path : ConicPath
        The path.
    names : list of str
        Names of the features.

    Attributes
    ----------
    ax_ : matplotlib Axes
        What was drawn on.
    """

    path: ConicPath
    names: list[str]
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, target: int = 0, ax: Any = None, n_labels: int = 8
    ) -> CoefficientPathDisplay:
        """Draw the path of a fitted estimator, of one of its targets or classes if it has many."""
        path = of_target(estimator, "path_", target)
        return cls(path, names_of(estimator)).plot(ax=ax, n_labels=n_labels)

    def plot(self, *, ax: Any = None, n_labels: int = 8) -> CoefficientPathDisplay:
        """Draw; the `n_labels` largest coefficients at the end are named."""
        self.ax_ = ax = axes(ax)
        coefs = np.asarray(self.path.coefs.todense())
        used = np.flatnonzero(np.abs(coefs).max(axis=0) > 0)
        order = used[np.argsort(-np.abs(coefs[-1, used]), kind="stable")]
        alphas, counts = self.path.alphas, self.path.n_atoms
        steps, along = (np.arange(len(coefs)), "step") if alphas is None else (alphas, "alpha")
        if alphas is None and (np.diff(counts) > 0).all():
            steps, along = counts, "number of atoms"
        for place, j in enumerate(order):
            named = place < n_labels
            ax.plot(
                steps, coefs[:, j], label=self.names[j] if named else None,
                color=None if named else "0.8", linewidth=1.5 if named else 0.8,
                zorder=2 if named else 1, marker="o" if len(coefs) < 3 else None, markersize=4,
            )  # fmt: skip
        if alphas is not None:
            ax.set_xscale("log" if alphas[-1] > 0 else "linear")
            ax.invert_xaxis()
        else:
            ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel=along, ylabel="coefficient")
        ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
        if len(order):
            ax.legend(
                title="feature", frameon=False, fontsize="small", loc="center left",
                bbox_to_anchor=(1.0, 0.5),
            )  # fmt: skip
        return self


@dataclass(eq=False)
class ActiveAtomsDisplay:
    """The coefficients that differ from zero, from the largest down.

    Parameters
    ----------
    coef : array of shape (n_features,)
        The coefficients.
    names : list of str
        Names of the features.

    Attributes
    ----------
    ax_ : matplotlib Axes
        What was drawn on.
    """

    coef: Vector
    names: list[str]
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, target: int = 0, ax: Any = None, n_atoms: int = 30
    ) -> ActiveAtomsDisplay:
        """Draw the active atoms of a fitted estimator, of one target or class if it has many."""
        coef = of_target(estimator, "coef_", target)
        return cls(coef, names_of(estimator)).plot(ax=ax, n_atoms=n_atoms)

    def plot(self, *, ax: Any = None, n_atoms: int = 30) -> ActiveAtomsDisplay:
        """Draw the `n_atoms` largest coefficients."""
        self.ax_ = ax = axes(ax)
        active = np.flatnonzero(self.coef)
        shown = active[np.argsort(-np.abs(self.coef[active]), kind="stable")][:n_atoms]
        ax.barh([self.names[j] for j in shown], self.coef[shown], height=0.7)
        ax.invert_yaxis()
        left = len(active) - len(shown)
        more = f", the {len(shown)} largest shown" if left else ""
        ax.set(
            xlabel="coefficient", ylabel="feature",
            title=f"{len(active)} of {len(self.coef)} atoms active{more}",
        )  # fmt: skip
        return self


@dataclass(eq=False)
class PathChoiceDisplay:
    """How a penalty or a number of atoms was chosen: the loss of the folds along the path.

    Parameters
    ----------
    grid : array of shape (n_points,)
        The penalties, or the numbers of atoms, to choose from.
    fold_losses : array of shape (n_points, n_folds)
        The mean loss of each fold.
    chosen : float
        The point of the grid that is chosen.
    name : str
        What the grid holds, "alpha" or "number of atoms".

    Attributes
    ----------
    ax_ : matplotlib Axes
        What was drawn on.
    """

    grid: Vector
    fold_losses: Array
    chosen: float
    name: str
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> PathChoiceDisplay:
        """Draw the choice of a fitted `ConicRegressorCV`."""
        check_is_fitted(estimator)
        if not hasattr(estimator, "fold_losses_"):
            raise ValueError(
                f"PathChoiceDisplay needs a ConicRegressorCV; got {type(estimator).__name__}."
            )
        best = estimator.fold_losses_.mean(axis=1).argmin()
        name = "alpha" if estimator.choose == "alpha" else "number of atoms"
        choice = float(estimator.grid_[best])
        return cls(estimator.grid_, estimator.fold_losses_, choice, name).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> PathChoiceDisplay:
        """Draw every fold, their mean with its standard error, and the choice."""
        self.ax_ = ax = axes(ax)
        n_folds = self.fold_losses.shape[1]
        mean = self.fold_losses.mean(axis=1)
        error = self.fold_losses.std(axis=1, ddof=1) / n_folds**0.5 if n_folds > 1 else 0 * mean
        ax.plot(self.grid, self.fold_losses, color="0.8", linewidth=0.8)
        ax.fill_between(self.grid, mean - error, mean + error, alpha=0.3, linewidth=0)
        ax.plot(self.grid, mean, label=f"mean of {n_folds} folds, with its standard error")
        ax.axvline(self.chosen, color="0.3", linestyle="--", label=f"chosen: {self.chosen:.3g}")
        if self.name == "alpha":
            ax.set_xscale("log" if self.grid[-1] > 0 else "linear")
            ax.invert_xaxis()
        else:
            ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel=self.name, ylabel="held-out loss")
        ax.legend(frameon=False)
        return self
