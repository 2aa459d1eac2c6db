"""GreedyNMF: scikit-learn's contract, the numbers on real data, missing entries, bad input."""

import os
import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.optimize import nnls as scipy_nnls
from scipy.special import kl_div
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from conepursuit import GreedyNMF, certify_nnls
from conepursuit.datasets import load_cbcl_faces, load_reuters
from conepursuit.estimators.entries import observed_entries

FOLDER = os.environ.get("CONEPURSUIT_DATA")
needs_data = pytest.mark.skipif(FOLDER is None, reason="CONEPURSUIT_DATA names no data folder")
rng = np.random.default_rng(0)
LOSSES = ("squared_error", "kullback_leibler")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def faces():
    return load_cbcl_faces().V


@pytest.fixture(scope="module")
def reuters():
    return load_reuters().X


def mixture(m=40, n=25, k=4, noise=0.05):
    generator = np.random.default_rng(1)
    W, H = generator.random((m, k)) * (generator.random((m, k)) < 0.6), generator.random((k, n))
    return np.maximum(W @ H + noise * generator.standard_normal((m, n)), 0.0)


def objective(X, model, W):
    return 0.5 * float(np.sum((X - W @ model.components_) ** 2))


@parametrize_with_checks([GreedyNMF(2), GreedyNMF(2, loss="kullback_leibler")])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("algorithm", ["fcmp", "pwmp"])
@pytest.mark.parametrize("correction", ["auto", "gcd", None])
def test_every_fit_is_monotone_and_nonnegative(loss, algorithm, correction):
    if correction == "gcd" and loss != "squared_error":
        pytest.skip("greedy coordinate descent is for least squares")
    X = mixture()
    model = GreedyNMF(6, loss=loss, algorithm=algorithm, correction=correction)
    W = model.fit_transform(X)
    assert W.shape == (40, 6)
    assert model.components_.shape == (6, 25)
    assert (W >= 0).all()
    assert (model.components_ >= 0).all()
    assert model.rank_path_.shape == model.oracle_accuracy_.shape == (6,)
    assert (np.diff(model.rank_path_) <= 0).all()
    assert ((model.oracle_accuracy_ > 0) & (model.oracle_accuracy_ <= 1)).all()
    np.testing.assert_allclose(0.5 * model.reconstruction_err_**2, model.rank_path_[-1], rtol=1e-6)


def test_transform_is_exact():
    X = mixture()
    model = GreedyNMF(4).fit(X)
    W = model.transform(X)
    audit = certify_nnls(model.components_.T, X.T, W.T)
    assert audit.gap.max() <= 1e-12 * np.sum(X**2)
    np.testing.assert_allclose(model.fit_transform(X), W)
    np.testing.assert_allclose(model.inverse_transform(W), W @ model.components_)
    np.testing.assert_allclose(model.transform(sparse.csr_array(X)), W, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_data_give_the_fit_of_dense_ones(loss):
    X = mixture() * (rng.random((40, 25)) < 0.5)
    one = GreedyNMF(3, loss=loss).fit(X)
    two = GreedyNMF(3, loss=loss).fit(sparse.csr_matrix(X))
    np.testing.assert_allclose(two.reconstruction_err_, one.reconstruction_err_, rtol=1e-3)
    np.testing.assert_allclose(
        two.transform(X), two.transform(sparse.csc_array(X)), rtol=1e-6, atol=1e-5
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_seed_gives_the_same_fit(loss):
    X = mixture()
    for seed in (None, 0, 7):
        one, two = (GreedyNMF(4, loss=loss, random_state=seed).fit(X) for _ in range(2))
        np.testing.assert_array_equal(one.components_, two.components_)
        np.testing.assert_array_equal(one.oracle_accuracy_, two.oracle_accuracy_)


@pytest.mark.parametrize("loss", LOSSES)
def test_missing_entries_by_nan_and_by_weight(loss):
    X = mixture()
    missing = rng.random(X.shape) < 0.3
    holed = np.where(missing, np.nan, X)
    by_nan = GreedyNMF(3, loss=loss).fit(holed)
    wild = np.where(missing, 1e3, X)
    by_weight = GreedyNMF(3, loss=loss).fit(wild, entry_weight=(~missing).astype(float))
    np.testing.assert_allclose(by_nan.components_, by_weight.components_)
    W = by_nan.transform(holed)
    np.testing.assert_allclose(W, by_weight.transform(wild, entry_weight=~missing), atol=1e-9)
    filled = np.where(missing, np.nanmean(holed), X)
    naive = NMF(3, max_iter=1000).fit(filled)
    errors = [
        np.sum((fit - X)[missing] ** 2)
        for fit in (W @ by_nan.components_, naive.transform(filled) @ naive.components_)
    ]
    assert errors[0] < errors[1]


def test_weights_are_replication():
    X = mixture(10, 8, 2)
    twice = GreedyNMF(2, tol=0, max_iter=2000).fit(np.vstack([X, X[:3]]))
    weight = np.ones_like(X)
    weight[:3] = 2.0
    once = GreedyNMF(2, tol=0, max_iter=2000).fit(X, entry_weight=weight)
    np.testing.assert_allclose(once.reconstruction_err_, twice.reconstruction_err_, rtol=1e-4)


def test_a_sparse_weight_leaves_out_what_it_does_not_store():
    X = mixture()
    seen = rng.random(X.shape) < 0.6
    X[0, 0], seen[0, 0] = 0.0, True  # an observed zero
    dense = GreedyNMF(3).fit(X, entry_weight=seen.astype(float))
    weight = sparse.csr_array(seen.astype(float))
    other = GreedyNMF(3).fit(sparse.csr_array(X), entry_weight=weight)
    np.testing.assert_allclose(other.reconstruction_err_, dense.reconstruction_err_, rtol=1e-3)
    W = other.transform(sparse.csr_array(X), entry_weight=weight)
    np.testing.assert_allclose(
        W, other.transform(X, entry_weight=seen.astype(float)), atol=1e-6 * W.max()
    )


def test_sparse_entries_that_count_keep_every_digit():
    rng = np.random.default_rng(0)
    X = sparse.random_array((30, 20), density=0.3, rng=rng, format="csr")
    weight = sparse.random_array((30, 20), density=0.5, rng=rng, format="csc")
    X.data *= 1e-18 * 10.0 ** rng.integers(-9, 9, X.nnz)
    found, M = observed_entries(X, weight)
    assert (found.toarray() == np.where(weight.toarray() > 0, X.toarray(), 0.0)).all()
    assert (M.toarray() == weight.toarray()).all()
    assert found.nnz == weight.nnz  # zeros are stored where they count
    assert GreedyNMF(2).fit(X, entry_weight=weight).components_.any()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["array", "sparse"])
def test_the_rank_is_found(kind):
    X = mixture(120, 80, 4, noise=0.02)
    model = GreedyNMF("auto", random_state=0).fit(kind(X))
    assert model.n_components_ == len(model.components_) == len(model.rank_path_)
    assert 4 <= model.n_components_ <= 6
    assert len(model.held_out_path_) > model.n_components_


def test_penalties_are_those_of_scikit_learn():
    X = mixture()
    for ratio in (0.0, 0.5, 1.0):
        options = {"alpha_W": 0.01, "alpha_H": 0.02, "l1_ratio": ratio}
        ours = GreedyNMF(3, **options, path=True, tol=1e-9, max_iter=5000)
        theirs = NMF(3, **options, tol=1e-9, max_iter=5000, init="nndsvda")
        values = []
        for model in (ours, theirs):
            W = model.fit_transform(X)
            H, value = model.components_, objective(X, model, W)
            for factor, alpha, count in ((W, 0.01, 25), (H, 0.02, 40)):
                value += alpha * count * ratio * factor.sum()
                value += 0.5 * alpha * count * (1 - ratio) * np.sum(factor**2)
            values.append(value)
        assert values[0] <= values[1] * (1 + 1e-4)
        np.testing.assert_allclose(ours.rank_path_[-1], values[0], rtol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
class TestUnusualData:
    def fit(self, loss, X, k=2, **options):
        model = GreedyNMF(k, loss=loss, **options)
        W = model.fit_transform(X)
        assert np.isfinite(W).all()
        assert np.isfinite(model.components_).all()
        assert np.isfinite(model.reconstruction_err_)
        return model, W

    def test_zeros(self, loss):
        model, W = self.fit(loss, np.zeros((5, 4)))
        assert not W.any()
        assert not model.components_.any()
        assert model.reconstruction_err_ == 0.0

    def test_a_zero_row_and_column(self, loss):
        X = mixture()
        X[3], X[:, 5] = 0.0, 0.0
        model, W = self.fit(loss, X)
        np.testing.assert_allclose(W[3], 0.0, atol=1e-12)
        np.testing.assert_allclose(model.components_[:, 5], 0.0, atol=1e-12)

    def test_more_components_than_the_smaller_side(self, loss):
        X = mixture(12, 3)
        model, W = self.fit(loss, X, 7, max_iter=3000, tol=1e-9)
        np.testing.assert_allclose(W @ model.components_, X, atol=1e-2 * X.max())

    @pytest.mark.parametrize("shape", [(1, 6), (6, 1), (1, 1)])
    def test_a_single_row_or_column(self, loss, shape):
        X = rng.random(shape) + 0.1
        model, W = self.fit(loss, X, 1)
        np.testing.assert_allclose(W @ model.components_, X, rtol=1e-6)

    def test_integers_and_float32(self, loss):
        X = rng.poisson(3.0, (20, 10))
        want = self.fit(loss, X.astype(float))[0].components_
        np.testing.assert_array_equal(self.fit(loss, X)[0].components_, want)
        narrow = self.fit(loss, X.astype(np.float32))[0].components_
        np.testing.assert_allclose(narrow, want, rtol=1e-5)

    @pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e20, 1e200])
    def test_the_scale_does_not_matter(self, loss, scale):
        X = mixture()
        want = self.fit(loss, X)[0].reconstruction_err_
        got = self.fit(loss, scale * X)[0].reconstruction_err_
        factor = scale if loss == "squared_error" else np.sqrt(scale)
        np.testing.assert_allclose(got / factor, want, rtol=1e-3)

    @pytest.mark.parametrize("scale", [1e-50, 1e-20, 1e20, 1e50])
    def test_nor_does_it_where_float32_is_used(self, loss, scale):
        X = mixture(400, 300)
        want = self.fit(loss, X, max_iter=20)[0].reconstruction_err_
        for penalty in (0.0, 1e-300):  # with a penalty, data keep their units
            options = {"alpha_W": penalty, "alpha_H": penalty, "max_iter": 20}
            got = self.fit(loss, scale * X, **options)[0].reconstruction_err_
            factor = scale if loss == "squared_error" else np.sqrt(scale)
            np.testing.assert_allclose(got / factor, want, rtol=0.02)

    def test_a_row_without_any_entry(self, loss):
        X = mixture()
        X[2] = np.nan
        _, W = self.fit(loss, X)
        assert W.shape == (40, 2)

    def test_new_samples_with_unseen_features(self, loss):
        X = mixture()
        X[:, 0] = 0.0
        model, _ = self.fit(loss, X)
        new = mixture()
        new[:, 0] = 1.0
        np.testing.assert_allclose(model.transform(new), model.transform(new * (np.arange(25) > 0)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"n_components": 0},
            'n_components must be a positive integer, "auto" or "sources"; got 0',
        ),
        (
            {"n_components": 2.5},
            'n_components must be a positive integer, "auto" or "sources"; got 2.5',
        ),
        ({"n_components": "all"}, "n_components must be a positive integer"),
        ({"loss": "kl"}, "loss must be one of 'squared_error', 'kullback_leibler'; got 'kl'"),
        ({"algorithm": "omp"}, "algorithm must be one of"),
        ({"correction": "mu"}, "correction='mu' is not for loss='squared_error'"),
        ({"alpha_W": -1.0}, "alpha_W must be finite and not negative; got -1.0"),
        ({"l1_ratio": 2.0}, "l1_ratio must be between 0 and 1; got 2.0"),
        ({"max_iter": 0}, "max_iter must be an integer, 1 or more; got 0"),
        ({"path": "all"}, "path must be True or False; got 'all'"),
        ({"rank_sweeps": -1}, "rank_sweeps must be an integer, 0 or more; got -1"),
        ({"oracle_rounds": None}, "oracle_rounds must be an integer"),
        ({"tol": -1.0}, "tol must be a number that is not negative; got -1.0"),
    ],
)
def test_wrong_parameters(options, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        GreedyNMF(**{"n_components": 2, **options}).fit(mixture())


def test_wrong_data():
    X = mixture()
    model = GreedyNMF(2)
    with pytest.raises(ValueError, match="the least entry is -1"):
        model.fit(X - 1.0 * (X.min() == X))
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.where(X.max() == X, np.inf, X))
    with pytest.raises(ValueError, match="no entry of X counts"):
        model.fit(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="must have the shape of X"):
        model.fit(X, entry_weight=np.ones((2, 2)))
    with pytest.raises(ValueError, match="entry_weight must not be negative; the least is -1"):
        model.fit(X, entry_weight=-np.ones_like(X))
    with pytest.raises(ValueError, match="X is sparse, and entry_weight is not"):
        model.fit(sparse.csr_array(X), entry_weight=np.ones_like(X))
    with pytest.raises(ValueError, match="X is sparse and holds NaN"):
        model.fit(sparse.csr_array(np.where(X > 1, np.nan, X)))
    with pytest.raises(NotFittedError):
        model.transform(X)
    model.fit(X)
    with pytest.raises(ValueError, match="a column for each of the 2 components"):
        model.inverse_transform(np.ones((3, 5)))


def test_a_warning_where_sweeps_run_out():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GreedyNMF(2, max_iter=5000).fit(mixture())
        with pytest.raises(ConvergenceWarning, match="made max_iter = 2 sweeps"):
            GreedyNMF(3, max_iter=2, tol=1e-9).fit(mixture())


def test_names_clones_and_pickles():
    X = pd.DataFrame(mixture(10, 4), columns=list("abcd"))
    model = GreedyNMF(2).fit(X)
    assert list(model.feature_names_in_) == list("abcd")
    assert list(model.get_feature_names_out()) == ["greedynmf0", "greedynmf1"]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(clone(model).fit(X).components_, model.components_)


@pytest.mark.parametrize("options", [{}, {"alpha_W": 1e-6, "alpha_H": 1e-6}], ids=["", "penalty"])
def test_weights_for_missing_entries_are_exact(options):
    X = load_wine().data
    seen = np.random.default_rng(0).random(X.shape) > 0.2
    holed, S, M = (
        np.where(seen, X, np.nan),
        sparse.csr_array(X * seen),
        sparse.csr_array(1.0 * seen),
    )
    model = GreedyNMF(8, **options).fit(holed)
    H, ridge = model.components_, 13 * options.get("alpha_W", 0.0)
    least = 0.0
    for x, row in zip(X, seen, strict=True):
        A = np.vstack([H[:, row].T, np.sqrt(ridge) * np.eye(8)])
        least += 0.5 * scipy_nnls(A, np.append(x[row], np.zeros(8)), maxiter=1000)[1] ** 2
    for W in (model.transform(holed), model.transform(S, entry_weight=M)):
        value = 0.5 * np.sum((seen * (X - W @ H)) ** 2) + 0.5 * ridge * np.sum(W**2)
        np.testing.assert_allclose(value, least, rtol=1e-6)


def test_weights_of_least_divergence_with_missing_entries_and_a_ridge():
    X = mixture()
    holed = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    model = GreedyNMF(3, loss="kullback_leibler", alpha_W=1e-3, alpha_H=1e-3).fit(holed)
    for x, w in zip(holed[:5], model.transform(holed), strict=False):
        seen, ridge = ~np.isnan(x), 1e-3 * X.shape[1]
        G = model.components_[:, seen]

        def value(v, x=x[seen], G=G, ridge=ridge):
            return kl_div(x, G.T @ v).sum() + 0.5 * ridge * v @ v

        inside = [(1e-9, None)] * 3
        answer = minimize(value, w + 0.1 * w.mean(), bounds=inside, method="L-BFGS-B")
        assert value(w) <= answer.fun * (1 + 1e-9)


def test_components_that_are_zero_get_no_weight():
    X = np.random.default_rng(1).random((25, 18))
    for data in (X, sparse.csr_array(X)):
        model = GreedyNMF(4, alpha_W=0.02, alpha_H=0.02, l1_ratio=1.0).fit(data)
        dead = ~model.components_.any(axis=1)
        assert dead.any()
        assert not model.transform(data)[:, dead].any()


def test_penalised_factors_have_the_scales_that_cost_least():
    X = load_wine().data
    model = GreedyNMF(6, alpha_W=1e-6, alpha_H=1e-6)
    W = model.fit_transform(X)
    prices = 1e-6 * np.array(
        [13 * np.sum(W**2, axis=0), 178 * np.sum(model.components_**2, axis=1)]
    )
    np.testing.assert_allclose(prices[0], prices[1], rtol=0.05)
    assert model.rank_path_[-1] < 150


@pytest.mark.parametrize("alpha", [0.3, 1e6])
def test_where_penalties_exceed_all_atoms_the_answer_is_zero(alpha):
    X = np.random.default_rng(0).random((12, 8))
    model = GreedyNMF(2, alpha_W=alpha, alpha_H=alpha, l1_ratio=1.0).fit(X)
    assert not model.components_.any()
    np.testing.assert_allclose(model.rank_path_, 0.5 * np.sum(X**2))


def test_divergences_of_blocks_are_as_low_as_those_of_random_starts():
    X = np.kron(np.eye(6), np.ones((10, 10)))
    for rank in (3, 4):
        ours = GreedyNMF(rank, loss="kullback_leibler").fit(X).reconstruction_err_
        options = {"solver": "mu", "beta_loss": "kullback-leibler", "init": "random"}
        fits = [NMF(rank, random_state=seed, **options).fit(X) for seed in range(5)]
        assert ours <= 1.01 * min(fit.reconstruction_err_ for fit in fits)


def test_what_is_refused_rather_than_ignored():
    X, M = mixture(), np.ones((40, 25))
    M[0, 0] = 0.0
    with pytest.raises(ValueError, match="the entry_weight of a sparse X is not supported"):
        GreedyNMF(2, loss="kullback_leibler").fit(
            sparse.csr_array(X), entry_weight=sparse.csr_array(M)
        )
    with pytest.raises(ValueError, match='correction="gcd" needs all entries'):
        GreedyNMF(2, correction="gcd").fit(X, entry_weight=M)


def test_masked_arrays_have_missing_entries():
    X = mixture()
    mask = rng.random(X.shape) < 0.2
    masked, holed = np.ma.masked_array(X, mask), np.where(mask, np.nan, X)
    one, two = GreedyNMF(2).fit(masked), GreedyNMF(2).fit(holed)
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.transform(masked), two.transform(holed))


@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_path_keeps_the_factors_of_every_rank(loss, alpha):
    X = mixture()
    for data in (X, X.T.copy(), 1e-70 * X):
        penalty = alpha if data is X else 0.0
        model = GreedyNMF(5, loss=loss, path=True, alpha_W=penalty, alpha_H=penalty).fit(data)
        for rank in range(1, 6):
            lower = model.at_rank(rank)
            assert lower.n_components_ == rank
            assert lower.components_.shape == (rank, data.shape[1])
            np.testing.assert_array_equal(lower.rank_path_, model.rank_path_[:rank])
            assert len(lower.oracle_accuracy_) == rank
            Z = lower.inverse_transform(lower.transform(data))
            losses = kl_div(data, Z) if loss == "kullback_leibler" else 0.5 * (data - Z) ** 2
            error = float(np.sqrt(2.0 * losses.sum()))
            if not penalty:  # with one, the W of the fit trades loss for penalty
                assert error <= lower.reconstruction_err_ * (1 + 1e-9)
            assert error >= 0.97 * lower.reconstruction_err_
        np.testing.assert_array_equal(model.at_rank(5).components_, model.components_)


def test_ranks_that_were_not_kept_are_refused():
    X = mixture()
    with pytest.raises(ValueError, match=r"at_rank needs a fit .* Fit GreedyNMF\(..., path=True\)"):
        GreedyNMF(3).fit(X).at_rank(2)
    model = GreedyNMF(3, path=True).fit(X)
    for rank in (0, 4, 1.0):
        with pytest.raises(ValueError, match="rank must be an integer from 1 to 3"):
            model.at_rank(rank)
    with pytest.raises(NotFittedError):
        GreedyNMF(3, path=True).at_rank(1)
    with pytest.raises(ValueError, match="at_rank needs a fit"):
        model.set_params(path=False).fit(X).at_rank(2)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_fast_way_is_no_worse_than_scikit_learns_defaults(loss):
    generator = np.random.default_rng(0)
    made = generator.gamma(0.5, size=(120, 7)) @ generator.gamma(0.5, size=(7, 80))
    for X in (made * generator.uniform(0.8, 1.2, made.shape), np.kron(np.eye(6), np.ones((9, 8)))):
        theirs = NMF(6) if loss == "squared_error" else NMF(6, solver="mu", beta_loss=1)
        theirs = theirs.fit(X).reconstruction_err_
        assert GreedyNMF(6, loss=loss).fit(X).reconstruction_err_ <= 1.002 * theirs + 1e-3


@pytest.mark.parametrize(
    ("rule", "attribute"), [("auto", "held_out_path_"), ("sources", "stability_path_")]
)
def test_a_refit_forgets_how_the_rank_was_chosen(rule, attribute):
    model = GreedyNMF(rule).fit(mixture())
    assert model.n_components_ == len(model.components_) == 4
    assert len(getattr(model, attribute)) >= 4
    assert not hasattr(model.set_params(n_components=2).fit(mixture()), attribute)


def test_no_warning_without_sweeps():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert GreedyNMF(3, correction=None).fit(mixture()).n_iter_ == 0


@needs_data
class TestRealData:
    def test_faces_of_rank_10(self, faces):
        options = {"path": True, "oracle_rounds": 4}
        fits = [GreedyNMF(10, random_state=seed, **options).fit(faces) for seed in range(5)]
        values = [0.5 * fit.reconstruction_err_**2 for fit in fits]
        assert np.mean(values) <= 2225
        accuracy = fits[0].oracle_accuracy_
        assert ((accuracy > 0) & (accuracy <= 1)).all()
        assert np.median(accuracy) > 0.9

    def test_faces_of_rank_50(self, faces):
        fast = GreedyNMF(50).fit(faces)
        path = GreedyNMF(50, path=True, random_state=0).fit(faces)
        assert max(fast.rank_path_[-1], path.rank_path_[-1]) <= 782
        assert (np.diff(path.rank_path_) < 0).all()

    def test_the_rank_path_is_no_worse_than_separate_fits(self, faces):
        path = GreedyNMF(26, path=True).fit(faces).rank_path_
        for rank in (2, 5, 10, 15, 25):
            separate = GreedyNMF(rank).fit(faces).rank_path_[-1]
            theirs = 0.5 * NMF(rank).fit(faces).reconstruction_err_ ** 2
            assert path[rank - 1] <= 1.01 * min(separate, theirs)

    def test_faces_with_missing_entries(self, faces):
        missing = np.random.default_rng(0).random(faces.shape) < 0.3
        holed = np.where(missing, np.nan, faces)
        model = GreedyNMF(10)
        ours = model.fit_transform(holed) @ model.components_
        filled = np.where(missing, np.nanmean(holed, axis=1, keepdims=True), faces)
        theirs = NMF(10)
        fit = theirs.fit_transform(filled) @ theirs.components_
        errors = [np.sqrt(np.mean((each - faces)[missing] ** 2)) for each in (ours, fit)]
        assert errors[0] < 0.9 * errors[1]

    def test_reuters_stays_sparse(self, reuters):
        tracemalloc.start()
        model = GreedyNMF(10).fit(reuters)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 0.5 * model.reconstruction_err_**2 <= 591_500
        assert peak < 2e8
