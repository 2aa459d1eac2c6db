"""Unmixer: answers of the kind of the scene, masks, bands, losses, bad input."""

import os
import pickle
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from conepursuit import Huber, nnfit, nnls
from conepursuit.datasets import load_jasper_ridge, load_samson
from conepursuit.unmixing import Unmixer, spa

FOLDER = os.environ.get("CONEPURSUIT_DATA")
RNG = np.random.default_rng(0)
SPECTRA = RNG.random((3, 12)) + 0.1
SHARES = RNG.dirichlet(np.ones(3), 30)
SHARES[:3] = np.eye(3)
PIXELS = SHARES @ SPECTRA
NOISY = PIXELS + 0.01 * np.random.default_rng(1).random(PIXELS.shape)


def image(values):
    return values.reshape(5, 6, -1)


def test_a_pure_scene_is_unmixed():
    model = Unmixer(3).fit(image(PIXELS))
    assert model.abundances_.shape == (5, 6, 3)
    assert model.residual_.shape == model.gap_.shape == model.proven_.shape == (5, 6)
    assert sorted(model.indices_.tolist()) == [0, 1, 2]
    np.testing.assert_array_equal(model.endmembers_, PIXELS[model.indices_])
    order = np.argsort(model.indices_)
    np.testing.assert_allclose(model.abundances_.reshape(-1, 3)[:, order], SHARES, atol=1e-10)
    assert model.proven_.all()
    assert (model.residual_ < 1e-10).all()


@pytest.mark.parametrize("extractor", ["spa", "snpa", "xray", "vca", "h2nmf"])
def test_every_extractor(extractor):
    model = Unmixer(3, extractor=extractor).fit(NOISY)
    fit = nnls(model.endmembers_.T, NOISY.T)
    np.testing.assert_array_equal(model.abundances_, fit.x.T)
    np.testing.assert_array_equal(model.residual_, fit.rnorm)
    np.testing.assert_array_equal(model.gap_, fit.gap)
    np.testing.assert_array_equal(model.transform(NOISY), model.abundances_)


def test_images_and_rows_of_pixels_have_the_same_answers():
    rows, cube = Unmixer(3).fit(NOISY), Unmixer(3).fit(image(NOISY))
    np.testing.assert_array_equal(cube.abundances_, image(rows.abundances_))
    np.testing.assert_array_equal(cube.residual_, rows.residual_.reshape(5, 6))
    floats = Unmixer(endmembers=rows.endmembers_.astype(np.float32)).fit(image(NOISY))
    np.testing.assert_allclose(floats.abundances_, cube.abundances_, atol=1e-5)


def test_labelled_arrays_keep_labels():
    xarray = pytest.importorskip("xarray")
    scene = xarray.DataArray(
        image(NOISY),
        dims=("y", "x", "band"),
        coords={"y": np.arange(5) * 30.0, "x": np.arange(6), "band": np.arange(12), "crs": 32618},
        attrs={"sensor": "made"},
    )
    want = Unmixer(3).fit(image(NOISY))
    for given in (scene, scene.transpose("band", "y", "x")):
        model = Unmixer(3).fit(given)
        assert model.abundances_.dims == ("y", "x", "endmember")
        assert model.residual_.dims == ("y", "x")
        assert model.gap_.name == "gap"
        assert model.abundances_.attrs == {"sensor": "made"}
        assert set(model.abundances_.coords) == {"y", "x", "crs"}
        np.testing.assert_array_equal(model.abundances_.y, scene.y)
        np.testing.assert_array_equal(model.abundances_.values, want.abundances_)
    table = scene.stack(pixel=("y", "x")).transpose("pixel", "band")
    assert Unmixer(3).fit(table).abundances_.dims == ("pixel", "endmember")


def test_pixels_without_data():
    scene = image(NOISY).copy()
    scene[0, 1], scene[2, 2, 3], scene[4, 4] = -1.0, np.nan, 0.0
    model = Unmixer(3, no_data=-1.0).fit(scene)
    gone = np.zeros((5, 6), dtype=bool)
    gone[0, 1] = gone[2, 2] = True
    assert (np.isnan(model.abundances_).all(axis=2) == gone).all()
    assert (np.isnan(model.residual_) == gone).all()
    assert not model.proven_[gone].any()
    assert model.proven_[~gone].all()
    assert not model.abundances_[4, 4].any()  # a dark pixel has data
    assert not np.isin(model.indices_, np.flatnonzero(gone)).any()
    counts = np.rint(1000 * image(NOISY)).astype(np.uint16)
    counts[1, 1] = 65535
    integers = Unmixer(3, no_data=65535).fit(counts)
    assert np.isnan(integers.abundances_[1, 1]).all()
    assert np.isnan(integers.abundances_).sum() == 3
    masked = np.ma.masked_equal(counts, 65535)
    np.testing.assert_array_equal(Unmixer(3).fit(masked).abundances_, integers.abundances_)


def test_bands_that_do_not_count():
    spoiled = NOISY.copy()
    spoiled[:, [2, 5]] = 1e3 * np.random.default_rng(2).random((30, 2))
    spoiled[7, 2] = np.nan
    kept = np.setdiff1d(np.arange(12), [2, 5])
    want = Unmixer(3).fit(NOISY[:, kept])
    mask = np.isin(np.arange(12), [2, 5])
    weights = np.where(mask, 0.0, 1.0)
    for options in ({"bad_bands": [2, 5]}, {"bad_bands": mask}, {"band_weights": weights}):
        model = Unmixer(3, **options).fit(spoiled)
        np.testing.assert_array_equal(model.indices_, want.indices_)
        np.testing.assert_allclose(model.abundances_, want.abundances_, atol=1e-12)
        assert model.endmembers_.shape == (3, 12)


def test_weights_of_bands():
    weights = np.linspace(0.1, 2.0, 12)
    model = Unmixer(3, band_weights=weights).fit(NOISY)
    fit = nnls(model.endmembers_.T, NOISY.T, weights=weights)
    np.testing.assert_allclose(model.abundances_, fit.x.T)
    np.testing.assert_allclose(model.residual_, fit.rnorm)
    scaled = spa(NOISY * np.sqrt(weights), 3)
    np.testing.assert_array_equal(model.indices_, scaled)


def test_few_endmembers_in_a_pixel_and_other_losses():
    library = np.random.default_rng(3).random((40, 12))
    model = Unmixer(endmembers=library, max_endmembers=2).fit(NOISY)
    assert ((model.abundances_ > 0).sum(axis=1) <= 2).all()
    np.testing.assert_array_equal(model.abundances_, nnls(library.T, NOISY.T, max_atoms=2).x.T)
    huber = Unmixer(endmembers=SPECTRA, loss="huber").fit(NOISY)
    np.testing.assert_allclose(huber.abundances_, nnfit(Huber(NOISY.T), SPECTRA.T).x.T, atol=1e-9)
    rest = NOISY - huber.abundances_ @ SPECTRA
    np.testing.assert_allclose(huber.residual_, np.linalg.norm(rest, axis=1), atol=1e-12)
    weights = np.linspace(0.1, 2.0, 12)
    for loss in ("poisson", "kullback_leibler"):
        model = Unmixer(endmembers=SPECTRA, loss=loss, band_weights=weights).fit(NOISY)
        assert model.proven_.all()


def test_it_behaves_as_an_estimator():
    model = Unmixer(3, extractor="vca", random_state=4)
    with pytest.raises(NotFittedError):
        model.unmix(NOISY)
    copy = clone(model).fit(NOISY)
    np.testing.assert_array_equal(model.fit(NOISY).abundances_, copy.abundances_)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.transform(NOISY), model.abundances_)
    one = model.unmix(NOISY[:1])
    np.testing.assert_array_equal(one.abundances, model.abundances_[:1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "n_endmembers, or the endmembers themselves, must be given"),
        ({"n_endmembers": 13}, "n must be at most the number of bands"),
        ({"n_endmembers": 31}, "n must be at most"),
        ({"n_endmembers": 0}, "positive integer"),
        ({"n_endmembers": 3, "extractor": "magic"}, "extractor must be one of 'spa'"),
        ({"endmembers": np.ones((2, 5))}, r"spectrum of 12 bands in each row; got shape \(2, 5\)"),
        ({"n_endmembers": 3, "loss": "huber", "sum_to_one": True}, "are for loss"),
        ({"n_endmembers": 3, "max_endmembers": 2, "sum_to_one": True}, "do not go together"),
        ({"n_endmembers": 3, "bad_bands": [12]}, "from 0 to 11; got 12"),
        ({"n_endmembers": 3, "bad_bands": [True]}, r"must have the shape \(12,\)"),
        ({"n_endmembers": 3, "bad_bands": [0.5]}, "indices or a mask"),
        ({"n_endmembers": 3, "bad_bands": range(12)}, "no band counts"),
        ({"n_endmembers": 3, "band_weights": -np.ones(12)}, "a number >= 0 for each of 12 bands"),
        ({"endmembers": SPECTRA, "max_endmembers": 0}, "max_endmembers"),
        ({"n_endmembers": 3, "loss": "magic"}, "loss"),
    ],
)
def test_parameters_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Unmixer(**options).fit(NOISY)


def test_scenes_that_are_refused():
    model = Unmixer(3).fit(NOISY)
    for scene, message in (
        (np.ones(12), r"\(pixels, bands\) or \(rows, columns, bands\)"),
        (np.ones((2, 2, 2, 2)), "got"),
        (np.ones((4, 11)), "must have 12 bands, as the endmembers; got 11"),
        (np.array([["a"]]), "real numbers|convert"),
    ):
        with pytest.raises(ValueError, match=message):
            model.unmix(scene)
    with pytest.raises(ValueError, match="pixel that is not all zero"):
        Unmixer(1).fit(np.zeros((4, 5)))
    assert np.isnan(model.unmix(np.full((2, 12), np.nan)).abundances).all()


def best_by_enumeration(E, X, total=None):
    """The exact abundances of all pixels: the best of all supports whose weights are feasible."""
    n, least = len(E), np.full(len(X), np.inf)
    best = np.zeros((len(X), n))
    if total is None:
        least = 0.5 * np.sum(X**2, axis=1)
    for size in range(1, n + 1):
        for support in map(list, combinations(range(n), size)):
            G, c = E[support] @ E[support].T, X @ E[support].T
            weights = np.linalg.solve(G, c.T).T
            if total is not None:
                ones = np.linalg.solve(G, np.ones(size))
                mu = (weights.sum(axis=1) - total) / ones.sum()
                weights = weights - mu[:, None] * ones
            loss = 0.5 * np.sum((X - weights @ E[support]) ** 2, axis=1)
            better = (weights >= 0).all(axis=1) & (loss < least)
            least[better] = loss[better]
            best[better] = 0.0
            best[np.ix_(better, support)] = weights[better]
    return best


@pytest.mark.skipif(FOLDER is None, reason="CONEPURSUIT_DATA names no data folder")
@pytest.mark.parametrize("load", [load_samson, load_jasper_ridge])
def test_abundances_of_real_scenes_are_exact(load):
    scene = load()
    E, X = scene.endmembers.T, np.ascontiguousarray(scene.Y.T)
    free = Unmixer(endmembers=E).fit(X)
    np.testing.assert_allclose(free.abundances_, best_by_enumeration(E, X), atol=1e-8)
    one = Unmixer(endmembers=E, sum_to_one=True).fit(X)
    np.testing.assert_allclose(one.abundances_, best_by_enumeration(E, X, 1.0), atol=1e-8)
    np.testing.assert_allclose(one.abundances_.sum(axis=1), 1.0, atol=1e-14)
    for model in (free, one):
        assert (model.abundances_ >= 0).all()
        assert model.proven_.all()
        assert (model.gap_ <= 1e-10 * np.sum(X**2, axis=1)).all()


def test_abundances_that_sum_to_one():
    model = Unmixer(3, sum_to_one=True).fit(image(NOISY))
    flat = model.abundances_.reshape(-1, 3)
    np.testing.assert_allclose(flat, best_by_enumeration(model.endmembers_, NOISY, 1.0), atol=1e-10)
    assert model.proven_.all()
    weights = np.linspace(0.5, 2.0, 12)
    weighed = Unmixer(endmembers=SPECTRA, sum_to_one=True, band_weights=weights).fit(NOISY)
    root = np.sqrt(weights)
    want = best_by_enumeration(SPECTRA * root, NOISY * root, 1.0)
    np.testing.assert_allclose(weighed.abundances_, want, atol=1e-10)
