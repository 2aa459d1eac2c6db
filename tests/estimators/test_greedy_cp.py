"""GreedyCP: recovery, agreement with GreedyNMF, sparse and missing entries, bad input."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.special import kl_div
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from conepursuit import GreedyCP, GreedyNMF, nnls
from conepursuit.tensors import row_products

sparse = pytest.importorskip("sparse")
LOSSES = ("squared_error", "kullback_leibler")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def random_tensor(shape, k, seed, share=1.0):
    rng = np.random.default_rng(seed)
    factors = [rng.random((n, k)) * (rng.random((n, k)) < share) for n in shape]
    return total(factors), factors


def total(factors, weights=1.0):
    first, *others = (factor.T for factor in factors)
    flat = (np.asarray(weights)[..., None] * first).T @ row_products(others)
    return flat.reshape([factor.shape[0] for factor in factors])


def matched(found, truth):
    """The least cosine of the true columns with the found ones that are closest."""
    cosines = np.abs(found.T @ (truth / np.linalg.norm(truth, axis=0)))
    return cosines.max(axis=0).min()


@pytest.mark.parametrize("path", [False, True])
@pytest.mark.parametrize("shape", [(20, 30, 40), (10, 12, 8, 9)], ids=str)
def test_random_tensors_are_recovered_from_the_data_alone(shape, path):
    errors = []
    for seed in range(10):
        X, factors = random_tensor(shape, 5, seed)
        model = GreedyCP(5, path=path).fit(X)
        errors.append(np.linalg.norm(model.reconstruct() - X) / np.linalg.norm(X))
        np.testing.assert_allclose(model.reconstruction_err_, errors[-1], rtol=1e-3, atol=1e-12)
        if errors[-1] < 1e-6:
            for found, truth in zip(model.factors_, factors, strict=True):
                assert matched(found, truth) > 1 - 1e-6
    assert np.sum(np.array(errors) < 1e-6) >= 9


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("path", [True, False])
@pytest.mark.parametrize("correction", ["auto", "bpp", None])
def test_fits_are_monotone_with_unit_factors(loss, path, correction):
    if correction == "bpp" and loss != "squared_error":
        pytest.skip("block pivoting is for least squares")
    X = random_tensor((9, 8, 7), 4, 0, 0.6)[0] + 0.05 * np.random.default_rng(1).random((9, 8, 7))
    for algorithm in ("fcmp", "pwmp"):
        model = GreedyCP(6, loss=loss, path=path, correction=correction, algorithm=algorithm).fit(X)
        assert (np.diff(model.rank_path_) <= 1e-12 * model.rank_path_[0]).all()
        assert model.rank_path_.shape == model.oracle_accuracy_.shape == (6,)
        assert (np.diff(model.weights_) <= 0).all()
        for factor, n in zip(model.factors_, X.shape, strict=True):
            assert factor.shape == (n, 6)
            assert (factor >= 0).all()
            lengths = np.linalg.norm(factor, axis=0)
            np.testing.assert_allclose(lengths[model.weights_ > 0], 1.0)
        np.testing.assert_allclose(model.reconstruct(), total(model.factors_, model.weights_))
        if loss == "squared_error":
            value = 0.5 * np.sum((X - model.reconstruct()) ** 2)
            np.testing.assert_allclose(model.rank_path_[-1], value, rtol=1e-8)
        if path or loss != "squared_error":
            assert ((model.oracle_accuracy_ > 0) & (model.oracle_accuracy_ <= 1)).all()
        else:
            assert np.isnan(model.oracle_accuracy_).all()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_mode_of_length_one_agrees_with_a_matrix(axis):
    rng = np.random.default_rng(0)
    M = rng.random((12, 3)) @ rng.random((3, 10)) + 0.05 * rng.random((12, 10))
    X = np.expand_dims(M, axis)
    matrix = GreedyNMF(3, max_iter=2000, tol=1e-9).fit(M)
    tensor = GreedyCP(3, path=True, max_iter=2000, tol=1e-9).fit(X)
    assert tensor.reconstruct().shape == X.shape
    np.testing.assert_allclose(
        tensor.reconstruction_err_ * np.linalg.norm(M), matrix.reconstruction_err_, rtol=1e-4
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_missing_entries_are_predicted(loss):
    X, _ = random_tensor((12, 10, 9), 3, 1)
    gone = np.random.default_rng(2).random(X.shape) < 0.4
    model = GreedyCP(3, loss=loss, max_iter=3000).fit(np.where(gone, np.nan, X))
    np.testing.assert_allclose(model.reconstruct()[gone], X[gone], rtol=2e-2)
    weighted = GreedyCP(3, loss=loss, max_iter=3000).fit(
        np.where(gone, 77.0, X), entry_weight=np.where(gone, 0.0, 1.0)
    )
    np.testing.assert_array_equal(weighted.reconstruct(), model.reconstruct())
    masked = GreedyCP(3, loss=loss, max_iter=3000).fit(np.ma.array(X, mask=gone))
    np.testing.assert_array_equal(masked.reconstruct(), model.reconstruct())


@pytest.mark.parametrize("loss", LOSSES)
def test_a_path_keeps_the_factors_of_every_rank(loss):
    X = np.abs(np.random.default_rng(0).standard_normal((6, 7, 5)))
    model = GreedyCP(4, loss=loss, path=True).fit(X)
    for rank in range(1, 5):
        lower = model.at_rank(rank)
        assert [factor.shape for factor in lower.factors_] == [(n, rank) for n in X.shape]
        Z = lower.reconstruct()
        value = np.sum(kl_div(X, Z) if loss == "kullback_leibler" else 0.5 * (X - Z) ** 2)
        np.testing.assert_allclose(value, model.rank_path_[rank - 1], rtol=1e-8)
    with pytest.raises(ValueError, match="at_rank needs a fit"):
        GreedyCP(3, loss=loss, path=True).fit(X, fixed={0: np.ones((6, 3))}).at_rank(2)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("path", [True, False])
def test_sparse_tensors_are_fitted_as_arrays_are(loss, path):
    X, _ = random_tensor((12, 9, 7), 3, 2, 0.5)
    S = sparse.COO.from_numpy(X)
    array = GreedyCP(3, loss=loss, path=path).fit(X)
    model = GreedyCP(3, loss=loss, path=path).fit(S)
    assert abs(model.reconstruction_err_ - array.reconstruction_err_) < 1e-5
    np.testing.assert_allclose(model.reconstruct(), array.reconstruct(), atol=1e-4)
    np.testing.assert_allclose(model.transform(S), model.transform(X), atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_new_slices_of_the_first_mode(loss):
    X, _ = random_tensor((15, 9, 8), 3, 3)
    model = GreedyCP(3, loss=loss, max_iter=3000).fit(X[:10])
    W = model.transform(X[10:])
    assert W.shape == (5, 3)
    G = row_products([factor.T for factor in model.factors_[1:]])
    np.testing.assert_allclose(W @ G, X[10:].reshape(5, -1), rtol=1e-2, atol=1e-3)
    if loss == "squared_error":
        np.testing.assert_allclose(W, nnls(G.T, X[10:].reshape(5, -1).T).x.T, atol=1e-12)
    np.testing.assert_allclose(
        model.transform(X[:10]), model.factors_[0] * model.weights_, atol=1e-2
    )
    hole = X[10:].copy()
    hole[:, 0] = np.nan
    np.testing.assert_allclose(model.transform(hole), W, rtol=2e-2, atol=2e-2)
    assert list(model.get_feature_names_out()) == ["greedycp0", "greedycp1", "greedycp2"]
    with pytest.raises(ValueError, match=r"slices of shape \(9, 8\), as in fit; got \(8, 9\)"):
        model.transform(X.transpose(0, 2, 1))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_mode_may_be_held_fixed(loss):
    X, factors = random_tensor((15, 9, 8), 3, 4)
    for modes in ([0], [2], [0, 1]):
        fixed = {mode: factors[mode] for mode in modes}
        model = GreedyCP(3, loss=loss, max_iter=3000).fit(X, fixed=fixed)
        for mode in modes:
            np.testing.assert_array_equal(model.factors_[mode], factors[mode])
        assert model.reconstruction_err_ < 1e-3
        for found, truth in zip(model.factors_, factors, strict=True):  # the order is kept
            unit = truth / np.linalg.norm(truth, axis=0)
            cosines = np.sum(found / np.linalg.norm(found, axis=0) * unit, axis=0)
            assert (cosines > 0.999).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_auto_finds_the_rank(loss):
    X = np.random.default_rng(0).poisson(100 * random_tensor((16, 14, 12), 3, 5, 0.6)[0])
    model = GreedyCP("auto", loss=loss).fit(X.astype(float))
    assert model.n_components_ == 3
    assert np.argmin(model.held_out_path_) in (2, 3)
    assert not hasattr(model.set_params(n_components=2).fit(X), "held_out_path_")
    X = np.random.default_rng(0).poisson(100 * random_tensor((30, 25, 20), 3, 5, 0.5)[0])
    assert GreedyCP("auto", loss=loss).fit(sparse.COO.from_numpy(X)).n_components_ == 3


@pytest.mark.parametrize("scale", [1e-200, 1e-50, 1e50, 1e200])
@pytest.mark.parametrize("loss", LOSSES)
def test_units_do_not_matter(loss, scale):
    X, _ = random_tensor((9, 8, 7), 2, 6)
    one, two = (GreedyCP(2, loss=loss, max_iter=50).fit(Y) for Y in (X, scale * X))
    np.testing.assert_allclose(two.weights_ / scale, one.weights_, rtol=1e-3)
    assert abs(one.reconstruction_err_ - two.reconstruction_err_) < 1e-3


def test_layouts_types_and_seeds():
    X, _ = random_tensor((9, 8, 7), 3, 7)
    want = GreedyCP(3).fit(X).reconstruct()
    for Y in (np.asfortranarray(X), X.transpose(2, 0, 1).copy().transpose(1, 2, 0), X.tolist()):
        np.testing.assert_array_equal(GreedyCP(3).fit(Y).reconstruct(), want)
    turned = GreedyCP(3).fit(X.transpose(2, 0, 1))
    np.testing.assert_allclose(turned.reconstruct().transpose(1, 2, 0), want, atol=1e-5)
    counts = GreedyCP(3).fit(np.arange(24).reshape(2, 3, 4))
    assert counts.reconstruction_err_ < 0.05
    one, two = (GreedyCP(3, random_state=5).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.weights_, two.weights_)
    before = X.copy()
    GreedyCP(3).fit(X, fixed={0: np.ones((9, 3))})
    np.testing.assert_array_equal(X, before)


def test_it_behaves_as_an_estimator():
    model = GreedyCP(2, tol=1e-4)
    with pytest.raises(NotFittedError):
        model.reconstruct()
    with pytest.raises(NotFittedError):
        model.transform(np.ones((2, 2, 2)))
    X, _ = random_tensor((9, 8, 7), 2, 8)
    assert model.fit(X) is model
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "factors_")
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.reconstruct(), model.reconstruct())
    assert copy.set_params(n_components=3).fit(X).n_components_ == 3
    np.testing.assert_allclose(model.fit_transform(X), model.transform(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning, match="GreedyCP made max_iter = 1 sweeps"):
            GreedyCP(2, max_iter=1).fit(X)


def test_the_round_trip_through_tensorly():
    tensorly = pytest.importorskip("tensorly")
    X, _ = random_tensor((9, 8, 7), 2, 9)
    model = GreedyCP(2).fit(X)
    there = model.to_tensorly()
    np.testing.assert_allclose(tensorly.cp_to_tensor(there), model.reconstruct(), atol=1e-12)
    weights, factors = there
    np.testing.assert_array_equal(total(factors, weights), model.reconstruct())


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(5), r"three axes or more; got shape \(5,\)\.$"),
        (np.ones((5, 4)), "Use GreedyNMF for a matrix"),
        (-np.ones((2, 2, 2)), "Negative values in data passed to GreedyCP.*least entry is -1"),
        (np.full((2, 2, 2), np.nan), "no entry of X counts"),
        (np.full((2, 2, 2), np.inf), "infinity"),
        (np.array([[["a"]]], dtype=object), "could not convert|not.*number"),
        (np.ones((0, 2, 2)), "0 sample"),
        (np.ones((2, 2, 2), dtype=complex), "[Cc]omplex"),
    ],
)
def test_data_that_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        GreedyCP(1).fit(X)


def test_parameters_that_are_refused():
    X = np.ones((2, 3, 4))
    for options, message in (
        ({"n_components": 0}, "positive integer"),
        ({"n_components": 25}, "at most 24, the number of entries"),
        ({"correction": "gcd"}, "correction must be one of"),
        ({"correction": "bpp", "loss": "kullback_leibler"}, "is not for loss"),
        ({"path": 1.0}, "path must be True or False; got 1.0"),
        ({"loss": "huber"}, "loss"),
    ):
        with pytest.raises(ValueError, match=message):
            GreedyCP(**{"n_components": 1, **options}).fit(X)
    for fixed, message in (
        ({3: np.ones((2, 1))}, "modes from 0 to 2; got 3"),
        ({0: np.ones((3, 1))}, r"\(2, 1\); got \(3, 1\)"),
        ({0: -np.ones((2, 1))}, "must not be negative"),
        ({m: np.ones((n, 1)) for m, n in enumerate(X.shape)}, "all modes"),
    ):
        with pytest.raises(ValueError, match=message):
            GreedyCP(1).fit(X, fixed=fixed)
    with pytest.raises(ValueError, match="entry_weight is for a dense X"):
        GreedyCP(1).fit(sparse.COO.from_numpy(X), entry_weight=X)
    with pytest.raises(ValueError, match="bpp"):
        GreedyCP(1, correction="bpp").fit(X, entry_weight=X)


@pytest.mark.parametrize("loss", LOSSES)
def test_all_zero_and_rank_beyond_need(loss):
    model = GreedyCP(2, loss=loss).fit(np.zeros((3, 4, 5)))
    assert not model.reconstruct().any()
    assert model.reconstruction_err_ == 0.0
    nothing = sparse.COO(np.zeros((3, 0), dtype=int), np.zeros(0), (3, 4, 5))
    for path in (True, False):
        assert not GreedyCP(2, loss=loss, path=path).fit(nothing).weights_.any()
    assert GreedyCP("auto", loss=loss).fit(nothing).n_components_ == 1
    X, _ = random_tensor((3, 4, 5), 1, 10)
    assert GreedyCP(6, loss=loss).fit(X).reconstruction_err_ < 1e-3
    assert GreedyCP(1, loss=loss).fit(np.full((1, 1, 1), 3.0)).reconstruct()[0, 0, 0] == (
        pytest.approx(3.0)
    )


MEMORY = """
import resource, sys
import numpy as np, scipy.sparse
from conepursuit import GreedyCP
rng = np.random.default_rng(0)
if sys.argv[1] == "dense":
    X = rng.random((200, 220, 150))
    size = X.nbytes
    GreedyCP(3, max_iter=5).fit(X[:20, :20, :20])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    GreedyCP(6, max_iter=8, tol=0.0).fit(X)
else:
    import sparse
    shape, size = (2000, 2000, 500), 400_000
    coords = np.array([rng.integers(0, n, size) for n in shape])
    X = sparse.COO(coords, rng.random(size), shape)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    GreedyCP(4, max_iter=5, tol=0.0).fit(X)
    size = 8 * size
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before) / size)
"""


@pytest.mark.parametrize(("kind", "most"), [("dense", 2.0), ("sparse", 60.0)])
def test_memory(kind, most):
    """Beyond the tensor itself: two of its sizes; for a sparse one, some numbers per non-zero."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEMORY, kind], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) <= most
