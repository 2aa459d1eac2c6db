"""Regressors, classifiers and garrotes on design matrices in Dask arrays."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Lasso, LinearRegression, Ridge

from conepursuit import (
    ConicClassifier,
    ConicCoder,
    ConicRegressor,
    ConicRegressorCV,
    LeastSquares,
    NonnegativeGarroteClassifier,
    NonnegativeGarroteRegressor,
    nnfit,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
M, N = 500, 8
X = RNG.random((M, N)) + np.arange(N)  # columns far from zero
X[:, 3] = 2.5  # and one that is constant
W = np.maximum(RNG.standard_normal(N), 0.0)
Y = (X - X.mean(axis=0)) @ W + RNG.standard_normal(M)
COUNTS = RNG.poisson(np.abs(Y))
NAMES = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.5])]
OWN = RNG.random(M)
THIN = sparse.random_array((M, N), density=0.5, rng=np.random.default_rng(1), format="csr")


def blocks_of(matrix, size=130):
    """Return a matrix as a Dask array with blocks of rows that have the type of the matrix."""
    if not sparse.issparse(matrix):
        return da.from_array(matrix, chunks=(size, -1))
    blocks = [matrix[i : i + size] for i in range(0, matrix.shape[0], size)]
    lazy = [dask.delayed(block) for block in blocks]
    parts = zip(lazy, blocks, strict=True)
    meta = matrix[:0]
    return da.concatenate([da.from_delayed(d, b.shape, b.dtype, meta=meta) for d, b in parts])


CASES = {
    "squares": (ConicRegressor(), Y, None),
    "squares, penalty": (ConicRegressor(alpha=0.01), Y, OWN),
    "squares, no intercept": (ConicRegressor(fit_intercept=False), Y, None),
    "two targets": (ConicRegressor(), np.stack([Y, 2.0 * Y + X[:, 0]], axis=1), OWN),
    "poisson": (ConicRegressor("poisson"), COUNTS, None),
    "poisson, penalty": (ConicRegressor("poisson", alpha=0.01), COUNTS, OWN),
    "huber": (ConicRegressor("huber"), Y, None),
    "kullback_leibler": (ConicRegressor("kullback_leibler"), COUNTS, None),
    "three classes": (ConicClassifier(), NAMES, None),
    "balanced classes": (ConicClassifier(class_weight="balanced"), NAMES == "high", OWN),
    "garrote": (NonnegativeGarroteRegressor(), Y, None),
    "garrote, ridge": (NonnegativeGarroteRegressor(initial="ridge"), Y, OWN),
    "garrote, no intercept": (NonnegativeGarroteRegressor(fit_intercept=False), Y, None),
    "garrote of classes": (NonnegativeGarroteClassifier(1e-3), NAMES == "high", OWN),
    "garrote of three": (
        NonnegativeGarroteClassifier(1e-3, initial="ordinary", fit_intercept=False),
        NAMES,
        None,
    ),
}


def assert_same(model, known):
    scale = np.abs(known.coef_).max() or 1.0
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-6 * scale)
    np.testing.assert_allclose(model.intercept_, known.intercept_, atol=1e-5 * scale)
    np.testing.assert_array_equal(model.proven_, known.proven_)
    assert (np.asarray(model.gap_) <= 2 * np.asarray(known.gap_) + 1e-10).all()
    assert model.n_features_in_ == N


def assert_close(found, known):
    """Hold predictions to others; sums over blocks may have other last bits."""
    if known.dtype.kind == "f":
        np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, known)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("matrix", [X, THIN], ids=["dense", "thin"])
@pytest.mark.filterwarnings("ignore:ConicClassifier predicts:UserWarning")
def test_fits_and_predictions_are_those_in_memory(case, matrix, monkeypatch):
    estimator, y, weights = CASES[case]
    known = clone(estimator).fit(matrix, y, weights)

    def whole(*_, **__):
        raise AssertionError("the matrix was read into memory")

    lazy = blocks_of(matrix)
    with dask.config.set(scheduler="synchronous"):
        monkeypatch.setattr(da.Array, "__array__", whole)
        model = clone(estimator).fit(lazy, y, weights)
        assert_same(model, known)
        found = {"predict": model.predict(lazy)}
        if hasattr(model, "classes_"):
            names = ("decision_function", "predict_proba", "predict_log_proba")
            found |= {name: getattr(model, name)(lazy) for name in names}
        for name, answer in found.items():
            assert isinstance(answer, da.Array)
            assert answer.chunks[0] == lazy.chunks[0]
            in_memory = getattr(model, name)(matrix)
            assert (answer.shape, answer.dtype) == (in_memory.shape, in_memory.dtype)
            assert_close(answer.compute(), in_memory)


@pytest.mark.parametrize("case", ["squares", "three classes", "garrote"])
def test_schedulers(case, cluster):
    estimator, y, weights = CASES[case]
    known = clone(estimator).fit(X, y, weights)
    with dask.config.set(scheduler="threads"):
        assert_same(clone(estimator).fit(blocks_of(X), y, weights), known)
    with cluster.as_current():
        model = clone(estimator).fit(blocks_of(X), y, weights)
        predicted = model.predict(blocks_of(X)).compute()
    assert_same(model, known)
    assert_close(predicted, model.predict(X))


def test_what_belongs_to_rows_may_be_a_dask_array_too():
    lazy, y, weights = blocks_of(X), da.from_array(Y, chunks=77), da.from_array(OWN, chunks=500)
    known = ConicRegressor(alpha=0.01).fit(X, Y, OWN)
    with dask.config.set(scheduler="synchronous"):
        assert_same(ConicRegressor(alpha=0.01).fit(lazy, y, weights), known)
        assert_same(ConicRegressor(alpha=0.01).fit(lazy.rechunk((100, 3)), y, weights), known)
        named = ConicClassifier().fit(lazy, da.from_array(NAMES, chunks=77))
        known_names = ConicClassifier().fit(X, NAMES)
    assert_same(named, known_names)
    assert named.classes_.tolist() == ["high", "low", "middle"]


def test_labelled_arrays_are_matched_by_their_rows():
    xarray = pytest.importorskip("xarray")
    names = np.arange(M)
    lazy = xarray.DataArray(blocks_of(X), dims=("row", "feature"), coords={"row": names})
    y = xarray.DataArray(Y[::-1], dims="row", coords={"row": names[::-1]})
    with dask.config.set(scheduler="synchronous"):
        model = ConicRegressor(alpha=0.01).fit(lazy, y)
        assert_same(model, ConicRegressor(alpha=0.01).fit(X, Y))
        assert_close(model.predict(lazy).compute(), model.predict(X))
        fit = nnfit(LeastSquares(y), lazy[:, :5])
    np.testing.assert_allclose(fit.x, nnfit(LeastSquares(Y), X[:, :5]).x, atol=1e-6)


def test_other_numbers_and_empty_blocks():
    brief = X.astype(np.float32)
    with dask.config.set(scheduler="synchronous"):
        model = ConicRegressor("huber").fit(blocks_of(brief), Y)
    assert_same(model, ConicRegressor("huber").fit(brief, Y))
    whole = np.round(9 * X).astype(int)
    with dask.config.set(scheduler="synchronous"):
        lazy = da.from_array(whole, chunks=((200, 0, M - 200), -1))
        model = ConicRegressor().fit(lazy, Y)
        assert_same(model, ConicRegressor().fit(whole, Y))
        np.testing.assert_allclose(model.predict(lazy).compute(), model.predict(whole), rtol=1e-12)


def test_codes_of_samples_in_blocks():
    atoms = RNG.random((5, N))
    known = ConicCoder(atoms, alpha=0.1).fit(X).transform(X)
    with dask.config.set(scheduler="synchronous"):
        codes = ConicCoder(atoms, alpha=0.1).fit(blocks_of(X)).transform(blocks_of(X))
        assert isinstance(codes, da.Array)
        np.testing.assert_allclose(codes.compute(), known, atol=1e-9)


def test_a_lazy_score_is_that_in_memory():
    with dask.config.set(scheduler="synchronous"):
        model = ConicRegressor().fit(blocks_of(X), Y)
        assert model.score(blocks_of(X), Y) == pytest.approx(model.score(X, Y))


def test_the_peers_agree():
    with dask.config.set(scheduler="synchronous"):
        model = ConicRegressor(alpha=0.1).fit(blocks_of(X), Y)
        garrote = NonnegativeGarroteRegressor().fit(blocks_of(X), Y)
    lasso = Lasso(0.1, positive=True, tol=1e-12).fit(X, Y)
    np.testing.assert_allclose(model.coef_, lasso.coef_, atol=1e-6)
    for initial_alpha in (0.1, 1e3):
        ridge = Ridge(initial_alpha).fit(X, Y, OWN)
        with dask.config.set(scheduler="synchronous"):
            shrunk = NonnegativeGarroteRegressor(initial="ridge", initial_alpha=initial_alpha)
            shrunk.fit(blocks_of(X), Y, OWN)
        np.testing.assert_allclose(shrunk.initial_.coef_, ridge.coef_, atol=1e-10)
    plain = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(garrote.initial_.coef_, plain.coef_, atol=1e-10)
    assert garrote.initial_.predict(X) == pytest.approx(plain.predict(X))


def test_initial_fits_that_are_exact_or_have_no_end():
    with dask.config.set(scheduler="synchronous"):
        exact = NonnegativeGarroteRegressor().fit(blocks_of(X), X @ W + 1.0)
        np.testing.assert_allclose(exact.initial_.predict(X), X @ W + 1.0, rtol=1e-12)
        separable = NonnegativeGarroteClassifier(initial="ordinary", fit_intercept=False)
        with pytest.warns(ConvergenceWarning, match="the initial fit did not converge"):
            separable.fit(blocks_of(X[:, :1] - 0.5), X[:, 0] > 0.5)


def test_bad_input_is_refused_with_its_place():
    wrong = X.copy()
    wrong[300, 2] = np.inf
    with dask.config.set(scheduler="synchronous"):
        for fit_intercept in (True, False):
            model = ConicRegressor(fit_intercept=fit_intercept)
            with pytest.raises(ValueError, match="260:390"):
                model.fit(blocks_of(wrong), Y)
        model = ConicRegressor().fit(blocks_of(X), Y)
        with pytest.raises(ValueError, match=r"in the rows 260:390 of X: .*contains infinity"):
            model.predict(blocks_of(wrong)).compute()
        with pytest.raises(ValueError, match="X has 5 features"):
            model.predict(blocks_of(X[:, :5]))
        with pytest.raises(NotFittedError):
            ConicRegressor().predict(blocks_of(X))
        with pytest.raises(ValueError, match="blocks of unknown size"):
            model.fit(blocks_of(X)[da.from_array(OWN, chunks=130) > 0.5], Y)
        with pytest.raises(ValueError, match="must hold real numbers"):
            model.fit(blocks_of(X.astype(object)), Y)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(blocks_of(X), Y[:-1])
        with pytest.raises(ValueError, match="must have two axes"):
            model.fit(da.from_array(Y), Y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ConicRegressor(max_atoms=3), "fitted by all its columns"),
        (ConicRegressor(algorithm="pwmp"), "fitted by all its columns"),
        (ConicRegressorCV(), "takes no Dask array here. Fit ConicRegressor"),
        (NonnegativeGarroteRegressor(algorithm="nng"), 'Use algorithm="fcmp"'),
        (NonnegativeGarroteRegressor(initial=Lasso()), "for an X in a Dask array; got Lasso"),
    ],
)
def test_what_is_not_done_by_blocks_is_refused(estimator, message):
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ValueError, match=message.replace(".", r"\.")),
    ):
        estimator.fit(blocks_of(X), Y)


def test_a_sparse_block_of_one_row():
    rng = np.random.default_rng(0)
    X = rng.random((21, 4))
    y = X @ [1.0, 2.0, 0.0, 1.0] + 0.1 * rng.standard_normal(21)
    D = da.from_array(X, chunks=(10, 4)).map_blocks(sparse.csr_array, meta=np.empty((0, 0)))
    with dask.config.set(scheduler="synchronous"):
        model = NonnegativeGarroteRegressor().fit(D, y)
    known = NonnegativeGarroteRegressor().fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-6)
