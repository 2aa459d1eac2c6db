"""Plots of fitted factorisations."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, PCA
from sklearn.preprocessing import StandardScaler

from conepursuit import (
    ComponentsDisplay,
    ConicRegressor,
    GreedyCP,
    GreedyNMF,
    RankPathDisplay,
    ResidualsDisplay,
    TensorComponentsDisplay,
)
from conepursuit.estimators import panels, residuals_display

matplotlib.use("Agg")
DIGITS = load_digits().data[:300]
WORDS = [
    "oil",
    "crude",
    "opec",
    "$ rate",
    "bank",
    "money",
    "a word that is much too long for a label",
]
TOPICS = np.array([[4.0, 2, 1, 0, 0, 0, 0], [0, 0, 0, 5, 3, 2, 1]])
TEXTS = sparse.csr_array(np.vstack([np.outer([1, 2, 3], TOPICS[0]), np.outer([1, 2], TOPICS[1])]))


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def digits():
    return GreedyNMF(4, path=True, oracle_rounds=1).fit(DIGITS)


@pytest.fixture(scope="module")
def texts():
    return GreedyNMF(2).fit(TEXTS)


def zeroed(model, k):
    """Return a copy of a model with a component that is zero."""
    other = clone(model)
    other.__dict__.update(model.__dict__)
    other.components_ = model.components_.copy()
    other.components_[k] = 0
    return other


def labels(ax):
    return [tick.get_text() for tick in ax.get_yticklabels()]


@pytest.mark.parametrize("order", ["C", "F"])
def test_components_as_images(digits, order):
    display = ComponentsDisplay.from_estimator(digits, DIGITS, image_shape=(8, 8), order=order)
    assert display.axes_.shape == (4,)
    shares = np.array(
        [digits.transform(DIGITS)[:, [k]] @ digits.components_[[k]] for k in range(4)]
    )
    shares = shares.sum(axis=(1, 2)) / shares.sum()
    np.testing.assert_allclose(display.shares, shares)
    for k, ax in enumerate(display.axes_):
        (image,) = ax.get_images()
        drawn = digits.components_[k].reshape((8, 8), order=order)
        np.testing.assert_array_equal(image.get_array(), drawn)
        assert ax.get_title() == f"{k}: {shares[k]:.1%}"
        assert not len(ax.get_xticks())
    display.figure_.canvas.draw()


def test_components_without_data_on_a_given_figure(digits):
    figure = pyplot.figure()
    display = ComponentsDisplay.from_estimator(
        digits, image_shape=(4, 16), n_columns=3, figure=figure
    )
    assert display.figure_ is figure
    assert display.shares is None
    assert [ax.get_title() for ax in display.axes_] == list("0123")
    assert len(figure.axes) == 4
    assert display.plot(image_shape=(8, 8)).figure_ is not figure


def test_components_by_their_largest_features(texts):
    display = ComponentsDisplay.from_estimator(texts, TEXTS, feature_names=WORDS, n_top=4)
    k = int(texts.components_[:, 0].argmax())
    assert labels(display.axes_[k])[:3] == ["oil", "crude", "opec"]
    assert labels(display.axes_[1 - k])[:3] == ["$ rate", "bank", "money"]
    longest = labels(display.axes_[1 - k])[3]
    assert longest.startswith("a word that")
    assert len(longest) == panels.LONGEST
    widths = [bar.get_width() for bar in display.axes_[k].patches]
    np.testing.assert_allclose(widths, np.array([4, 2, 1, 0]) / 7, atol=1e-3)
    exact = ComponentsDisplay(TOPICS, WORDS).plot(n_top=4)
    assert labels(exact.axes_[0]) == ["oil", "crude", "opec"]  # zeros are left out
    display.figure_.canvas.draw()


def test_names_of_features():
    frame = pd.DataFrame(TEXTS.toarray(), columns=WORDS)
    model = GreedyNMF(2).fit(frame).set_output(transform="pandas")
    assert ComponentsDisplay.from_estimator(model, frame).names == WORDS
    assert ResidualsDisplay.from_estimator(model, frame).names == WORDS
    numbered = ComponentsDisplay.from_estimator(GreedyNMF(1).fit(TEXTS))
    assert numbered.names == list("0123456")


@pytest.mark.parametrize("image_shape", [None, (8, 8)])
def test_a_component_that_is_zero(digits, image_shape):
    display = ComponentsDisplay.from_estimator(
        zeroed(digits, 2), DIGITS, image_shape=image_shape, n_top=100
    )
    empty = display.axes_[2]
    assert empty.get_title() == "2: zero"
    assert not empty.get_images()
    assert not empty.patches
    assert display.shares[2] == 0
    np.testing.assert_allclose(display.shares.sum(), 1.0)
    display.figure_.canvas.draw()


def test_nothing_but_zero():
    nothing = np.zeros((3, 4))
    model = GreedyNMF(2).fit(nothing)
    display = ComponentsDisplay.from_estimator(model, nothing, image_shape=(2, 2))
    assert [ax.get_title() for ax in display.axes_] == ["0: zero", "1: zero"]
    assert RankPathDisplay.from_estimator(model).axes_[0].get_yscale() == "linear"
    for image_shape in (None, (2, 2)):
        left = ResidualsDisplay.from_estimator(model, nothing, image_shape=image_shape)
        assert left.axes_[0].get_title() == "0 samples, 3 zero or empty left out"
        left.figure_.canvas.draw()


def test_the_path_of_ranks(digits):
    display = RankPathDisplay.from_estimator(digits)
    objective, accuracy = display.axes_
    assert objective.get_yscale() == "log"
    np.testing.assert_array_equal(objective.get_lines()[0].get_ydata(), digits.rank_path_)
    np.testing.assert_array_equal(accuracy.get_lines()[0].get_ydata(), digits.oracle_accuracy_)
    np.testing.assert_array_equal(accuracy.get_lines()[0].get_xdata(), [1, 2, 3, 4])
    display.figure_.canvas.draw()


def test_the_path_of_ranks_with_entries_held_out(digits):
    model = zeroed(digits, 0)
    model.held_out_path_ = np.array([5.0, 3.0, 2.0, 2.5, 2.7, 2.9])
    display = RankPathDisplay.from_estimator(model)
    _, held_out, accuracy = display.axes_
    np.testing.assert_array_equal(held_out.get_lines()[0].get_ydata(), model.held_out_path_)
    np.testing.assert_array_equal(held_out.get_lines()[1].get_xdata(), [4])
    assert held_out.get_legend().get_texts()[0].get_text() == "chosen: rank 4"
    assert accuracy.get_xlim() == (0.5, 6.5)
    display.figure_.canvas.draw()


def test_a_path_that_reaches_zero():
    display = RankPathDisplay(np.array([10.0, 1e-9, 0.0]), np.ones(3)).plot()
    assert display.axes_[0].get_yscale() == "log"
    display.figure_.canvas.draw()


def expected_residuals(model, X, weight):
    """Return relative residuals of rows and root mean squares of columns, one by one."""
    fit = model.inverse_transform(model.transform(X, entry_weight=weight))
    M = np.where(np.isnan(X), 0.0, 1.0 if weight is None else weight)
    rows = [
        np.sqrt((m * (x - z) ** 2)[m > 0].sum() / (m * x**2)[m > 0].sum())
        for x, z, m in zip(X, fit, M, strict=True)
    ]
    columns = [
        np.sqrt(np.average((x - z)[m > 0] ** 2, weights=m[m > 0]))
        for x, z, m in zip(X.T, fit.T, M.T, strict=True)
    ]
    return np.array(rows), np.array(columns)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_residuals(digits, monkeypatch, missing, weighted):
    monkeypatch.setattr(residuals_display, "BLOCK", 7 * 64)
    rng = np.random.default_rng(0)
    X, weight = DIGITS[:50].copy(), rng.integers(0, 3, (50, 64)) * 1.0 if weighted else None
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    display = ResidualsDisplay.from_estimator(digits, X, entry_weight=weight, image_shape=(8, 8))
    samples, features = expected_residuals(digits, X, weight)
    np.testing.assert_allclose(display.samples, samples)
    np.testing.assert_allclose(display.features, features)
    heights = [bar.get_height() for bar in display.axes_[0].patches]
    assert sum(heights) == 50
    np.testing.assert_allclose(display.axes_[1].get_images()[0].get_array(), features.reshape(8, 8))
    display.figure_.canvas.draw()


def test_residuals_of_sparse_data(digits, monkeypatch):
    class Blockwise(sparse.csr_array):
        def toarray(self, *args, **kwargs):
            assert self.shape[0] <= 10
            return super().toarray(*args, **kwargs)

    monkeypatch.setattr(residuals_display, "BLOCK", 10 * 64)
    monkeypatch.setattr(residuals_display, "as_rows", lambda X: None if X is None else Blockwise(X))
    sparsely = ResidualsDisplay.from_estimator(digits, sparse.csr_array(DIGITS))
    monkeypatch.undo()
    densely = ResidualsDisplay.from_estimator(digits, DIGITS)
    np.testing.assert_allclose(sparsely.samples, densely.samples, atol=1e-6)
    np.testing.assert_allclose(sparsely.features, densely.features, atol=1e-6)


def test_residuals_of_the_entries_that_a_sparse_weight_stores(digits):
    rng = np.random.default_rng(0)
    weight = np.where(rng.random(DIGITS.shape) < 0.3, 1.0, 0.0)
    sparsely = ResidualsDisplay.from_estimator(
        digits, sparse.csr_array(DIGITS), entry_weight=sparse.csr_array(weight)
    )
    hidden = np.where(weight > 0, DIGITS, np.nan)
    densely = ResidualsDisplay.from_estimator(digits, hidden)
    np.testing.assert_allclose(sparsely.samples, densely.samples, atol=1e-5)
    np.testing.assert_allclose(sparsely.features, densely.features, atol=1e-5)


def test_the_worst_features_and_samples_left_out(digits):
    X = DIGITS.copy()
    X[0], X[1], X[:, 5] = 0.0, np.nan, np.nan
    display = ResidualsDisplay.from_estimator(digits, X, n_top=3)
    assert np.flatnonzero(np.isnan(display.samples)).tolist() == [0, 1]
    assert np.flatnonzero(np.isnan(display.features)).tolist() == [5]
    samples, features = display.axes_
    assert samples.get_title() == "298 samples, 2 zero or empty left out"
    assert features.get_title() == "64 features, the 3 worst shown"
    worst = np.argsort(-np.nan_to_num(display.features))[:3]
    assert labels(features) == [str(j) for j in worst]
    display.plot(image_shape=(8, 8)).figure_.canvas.draw()


def test_other_factorisations():
    model = NMF(3, init="nndsvda", max_iter=500).fit(DIGITS)
    ComponentsDisplay.from_estimator(model, DIGITS, image_shape=(8, 8))
    display = ResidualsDisplay.from_estimator(model, DIGITS)
    error = np.linalg.norm(DIGITS - model.inverse_transform(model.transform(DIGITS)), axis=1)
    np.testing.assert_allclose(display.samples, error / np.linalg.norm(DIGITS, axis=1))
    with pytest.raises(ValueError, match="needs a GreedyNMF or GreedyCP; got NMF"):
        RankPathDisplay.from_estimator(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_shape": (8, 9)}, r"height \* width = 64.*got \(8, 9\), which makes 72"),
        ({"image_shape": 8}, r"must be \(height, width\) in pixels.*got 8"),
        ({"image_shape": (-8, -8)}, r"must be \(height, width\) in pixels.*got \(-8, -8\)"),
        ({"image_shape": (8, 8), "order": "A"}, "order must be .* got 'A'"),
        ({"n_top": 0}, "n_top must be a positive integer; got 0"),
        ({"n_top": 2.5}, "n_top must be a positive integer; got 2.5"),
        ({"feature_names": WORDS}, "each of the 64 features; got 7 names"),
    ],
)
def test_options_that_cannot_be_drawn(digits, options, message):
    for display in (ComponentsDisplay, ResidualsDisplay):
        with pytest.raises(ValueError, match=message):
            display.from_estimator(digits, DIGITS, **options)
    assert not pyplot.get_fignums()


def test_estimators_that_cannot_be_drawn(digits):
    with pytest.raises(ValueError, match="n_columns must be a positive integer; got 0"):
        ComponentsDisplay.from_estimator(digits, n_columns=0)
    for draw in (
        ComponentsDisplay.from_estimator,
        RankPathDisplay.from_estimator,
        lambda model: ResidualsDisplay.from_estimator(model, DIGITS),
    ):
        with pytest.raises(ValueError, match="not fitted"):
            draw(GreedyNMF(2))
    with pytest.raises(ValueError, match="StandardScaler has no components_ to draw"):
        ComponentsDisplay.from_estimator(StandardScaler().fit(DIGITS))
    with pytest.raises(ValueError, match="components_ must not be negative; the least of PCA is -"):
        ComponentsDisplay.from_estimator(PCA(2).fit(DIGITS))
    with pytest.raises(ValueError, match="got ConicRegressor"):
        RankPathDisplay.from_estimator(ConicRegressor().fit(DIGITS[:, :3], DIGITS[:, 3]))


class TestTensors:
    X = np.einsum("ir,jr,kr->ijk", *(np.random.default_rng(0).random((n, 3)) for n in (40, 5, 4)))

    def test_a_panel_for_each_mode_of_each_component(self):
        model = GreedyCP(3).fit(self.X)
        display = TensorComponentsDisplay.from_estimator(model, mode_names=["a", "b", "c"])
        assert display.axes_.shape == (3, 3)
        assert [ax.get_title() for ax in display.axes_[0]] == ["a", "b", "c"]
        for k, row in enumerate(display.axes_):
            assert row[0].get_ylabel() == f"{k}:\n{model.weights_[k]:.3g}"
            heights = [bar.get_height() for bar in row[1].patches]
            np.testing.assert_allclose(heights, model.factors_[1][:, k])
            assert not row[0].patches  # many places are an area
        few = TensorComponentsDisplay.from_estimator(model, n_top=2)
        assert few.axes_.shape == (2, 3)
        assert few.mode_names[0] == "mode 0, length 40"

    def test_fixed_modes_and_zeros_are_drawn(self):
        model = GreedyCP(2).fit(self.X, fixed={1: 3 * np.ones((5, 2))})
        order = np.argsort(-model.weights_)
        display = TensorComponentsDisplay.from_estimator(model)
        assert display.axes_[0, 0].get_ylabel().startswith(f"{order[0]}:")
        TensorComponentsDisplay.from_estimator(GreedyCP(2).fit(0 * self.X)).figure_.canvas.draw()

    def test_ranks_without_an_oracle_have_no_panel_for_it(self):
        assert len(RankPathDisplay.from_estimator(GreedyCP(3).fit(self.X)).axes_) == 1
        careful = GreedyCP(3, path=True).fit(self.X)
        assert len(RankPathDisplay.from_estimator(careful).axes_) == 2

    def test_what_is_refused(self):
        model = GreedyCP(2).fit(self.X)
        with pytest.raises(ValueError, match="name each of the 3 modes; got 2"):
            TensorComponentsDisplay.from_estimator(model, mode_names=["a", "b"])
        with pytest.raises(ValueError, match="needs a GreedyCP; got GreedyNMF"):
            TensorComponentsDisplay.from_estimator(GreedyNMF(2).fit(self.X[0]))
