"""Plots of fitted estimators."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from conepursuit import (
    ActiveAtomsDisplay,
    CoefficientPathDisplay,
    ConicClassifier,
    ConicRegressor,
    ConicRegressorCV,
    NonnegativeGarroteRegressor,
    PathChoiceDisplay,
)

matplotlib.use("Agg")
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.random((50, 5)), columns=list("abcde"))
Y = 2 * X["b"] + X["d"] + 0.1 * rng.standard_normal(50)


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    pyplot.close("all")


def test_the_path_over_penalties():
    model = ConicRegressorCV(alphas=20).fit(X, Y)
    display = CoefficientPathDisplay.from_estimator(model)
    ax = display.ax_
    assert ax.get_xlabel() == "alpha"
    assert ax.get_xscale() == "log"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[:2] == ["b", "d"]
    line = ax.get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), model.path_.coefs[:, [1]].toarray()[:, 0])
    np.testing.assert_allclose(line.get_xdata(), model.grid_)


def test_the_path_over_atoms_on_given_axes():
    model = ConicRegressor(max_atoms=3).fit(X, Y)
    _, ax = pyplot.subplots()
    display = CoefficientPathDisplay.from_estimator(model, ax=ax, n_labels=1)
    assert display.ax_ is ax
    assert ax.get_xlabel() == "number of atoms"
    assert len(ax.get_legend().get_texts()) == 1


def test_active_atoms_of_one_target():
    model = ConicRegressor().fit(X, np.stack([Y, -Y], axis=1))
    display = ActiveAtomsDisplay.from_estimator(model, target=0, n_atoms=2)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["b", "d"]
    assert "of 5 atoms active" in display.ax_.get_title()
    nothing = ActiveAtomsDisplay.from_estimator(model, target=1)
    assert nothing.ax_.get_title().startswith(f"{model.support_[1].sum()} of 5")
    classes = ConicClassifier().fit(X.to_numpy(), Y > 1.5)
    assert ActiveAtomsDisplay.from_estimator(classes).names == list("01234")
    garrote = NonnegativeGarroteRegressor().fit(X, -Y)
    drawn = ActiveAtomsDisplay.from_estimator(garrote)
    widths = sorted(bar.get_width() for bar in drawn.ax_.patches)
    np.testing.assert_allclose(widths, sorted(garrote.coef_[garrote.support_]))


@pytest.mark.parametrize("choose", ["alpha", "max_atoms"])
def test_the_choice(choose):
    model = ConicRegressorCV(choose=choose, alphas=10, cv=3).fit(X, Y)
    display = PathChoiceDisplay.from_estimator(model)
    best = model.fold_losses_.mean(axis=1).argmin()
    assert display.chosen == model.grid_[best]
    assert display.ax_.get_ylabel() == "held-out loss"
    first = display.ax_
    assert display.plot().ax_ is not first


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="needs a ConicRegressorCV; got ConicRegressor"):
        PathChoiceDisplay.from_estimator(ConicRegressor().fit(X, Y))
    with pytest.raises(ValueError, match="not fitted"):
        CoefficientPathDisplay.from_estimator(ConicRegressor())
