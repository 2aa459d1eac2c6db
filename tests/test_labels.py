"""Tables: rows are matched by their labels, results keep names, and other libraries are taken."""

import pickle
from functools import partial

import array_api_strict as xp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from conepursuit import (
    FCMP,
    Cone,
    ConicClassifier,
    ConicCoder,
    ConicRegressor,
    ConicRegressorCV,
    Dictionary,
    FreeIntercept,
    Huber,
    LeastSquares,
    Logistic,
    NonnegativeGarroteRegressor,
    Poisson,
    certify_nnls,
    minimize,
    nnfit,
    nnls,
    nnls_gram,
    nnls_path,
)

rng = np.random.default_rng(0)
M, Y, W = rng.random((8, 3)), rng.random((8, 2)) + 0.5, rng.random(8)
ROWS, ATOMS, TARGETS = list("stuvwxyz"), ["ash", "iron", "water"], ["first", "second"]
A = pd.DataFrame(M, index=ROWS, columns=ATOMS)
B = pd.DataFrame(Y, index=ROWS, columns=TARGETS)
WEIGHTS = pd.Series(W, index=ROWS)
REVERSED = slice(None, None, -1)

same = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-8)


def as_xarray(table):
    names = {"sample": table.index, "column": table.columns}
    return xr.DataArray(table.to_numpy(), dims=tuple(names), coords=names)


@pytest.mark.parametrize("kind", [lambda table: table, as_xarray], ids=["pandas", "xarray"])
def test_rows_are_matched_by_their_labels(kind):
    matrix, targets, turned = kind(A), kind(B)[REVERSED], WEIGHTS[REVERSED]
    expected = nnls(M, Y, weights=W)
    same(nnls(matrix, targets, weights=turned).x, expected.x)
    same(nnls(M, kind(B), weights=turned).x, expected.x)
    audit = certify_nnls(matrix, targets, expected, weights=turned)
    same(audit.gap, certify_nnls(M, Y, expected, weights=W).gap)
    path = nnls_path(matrix, targets, 3, weights=turned)[1]
    same(path.rnorm, nnls_path(M, Y, 3, weights=W)[1].rnorm)


@pytest.mark.parametrize("loss", [LeastSquares, Poisson, Huber])
def test_rows_of_losses_are_matched(loss):
    mask = pd.Series(np.arange(8) == 2, index=ROWS)
    plain = nnfit(loss(Y[:, 0], weights=W, mask=mask.to_numpy()), M)
    data = loss(B["first"], weights=WEIGHTS[REVERSED], mask=mask[REVERSED])
    same(nnfit(data, A[REVERSED]).x, plain.x)
    same(nnfit(FreeIntercept(data), A[REVERSED]).x,
                               nnfit(FreeIntercept(data), M).x)  # fmt: skip
    with pytest.raises(ValueError, match=r"in another order.*Use Dictionary\(D.loc\[y.index\]\)"):
        minimize(data, Cone(Dictionary(A[REVERSED])), FCMP())
    with pytest.raises(ValueError, match="in another order"):
        nnfit(data, Dictionary(A[REVERSED]))
    with pytest.raises(ValueError, match="row labels of the dictionary and the data differ"):
        minimize(data, Cone(Dictionary(A.set_axis(range(8)))), FCMP())


@settings(max_examples=20)
@given(st.permutations(range(8)), st.permutations(range(8)))
def test_any_order_gives_the_same_weights(first, second):
    shuffled = nnls(A.iloc[first], B["first"].iloc[second])
    same(shuffled.x, nnls(M, Y[:, 0]).x)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ["s", "t", "u", "v", "w", "x", "y", "Z"],
            "b has 'Z', which A has not; A has 'z', which b",
        ),
        (range(8), r"b has 0, 1, 2 and 5 more, which A has not.*np.asarray\(b\)"),
    ],
)
def test_labels_that_differ_are_refused(labels, message):
    other = B["first"].set_axis(labels)
    with pytest.raises(ValueError, match=f"row labels of b and A differ: {message}"):
        nnls(A, other)
    for call in (nnls_path, certify_nnls):
        with pytest.raises(ValueError, match="differ"):
            call(A, other, 3)
    with pytest.raises(ValueError, match="of A and the data differ"):
        nnfit(LeastSquares(other), A)
    with pytest.raises(ValueError, match="of weights and y differ"):
        LeastSquares(B["first"], weights=other)
    with pytest.raises(ValueError, match="of y and X differ"):
        ConicRegressor().fit(A, other)


def test_labels_of_other_lengths_are_named():
    b, more = B["first"], B["first"].reindex([*ROWS, "new"], fill_value=1.0)
    for call in (nnls, lambda A, b: nnls_path(A, b, 3), lambda A, b: nnfit(LeastSquares(b), A),
                 lambda A, b: ConicRegressor().fit(A, b)):  # fmt: skip
        with pytest.raises(ValueError, match=r"differ: .* has 'z', which .* has not"):
            call(A, b[:7])
        with pytest.raises(ValueError, match=r"differ: .* has 'new', which .* has not"):
            call(A, more)
    with pytest.raises(ValueError, match=r"weights and A differ: A has 's', which weights has not"):
        nnls(A, b, weights=WEIGHTS[1:])
    with pytest.raises(ValueError, match=r"not as many.*since 'u' occurs more than once"):
        nnls(A, b.iloc[[*range(8), 2]])
    with pytest.raises(ValueError, match=r"A of shape \(8, 3\) and b of shape \(7,\)"):
        nnls(A.reset_index(drop=True), b[:7].reset_index(drop=True))


def test_labels_that_occur_twice_match_by_position_or_not_at_all():
    twice = list("ssuvwxyz")
    expected = nnls(M, Y[:, 0]).x
    same(nnls(A.set_axis(twice), B["first"].set_axis(twice)).x, expected)
    with pytest.raises(ValueError, match=r"different orders.*since 's' occurs more than once"):
        nnls(A.set_axis(twice), B["first"].set_axis(twice)[REVERSED])


def test_data_without_labels_correspond_by_position():
    expected = nnls(M, Y[:, 0]).x
    for matrix, target in (
        (A, Y[:, 0]), (M, B["first"]), (A.reset_index(drop=True), pd.Series(Y[:, 0])),
        (as_xarray(A).drop_vars("sample"), as_xarray(B)[:, 0]),
    ):  # fmt: skip
        same(nnls(matrix, target).x, expected)
    with pytest.raises(ValueError, match=r"one entry per row of A"):
        nnls(A, Y[:7, 0])
    across = as_xarray(B).transpose()
    with pytest.raises(ValueError, match=r"'sample', which comes later in b.*b.transpose"):
        nnls(as_xarray(A), across)


def test_results_keep_names():
    one, many = nnls(A, B["first"]), nnfit(LeastSquares(B), A)
    assert one.to_frame().index.tolist() == ATOMS
    same(one.to_frame()["weight"], one.x)
    same(one.to_frame()["dual"], one.dual)
    for fit in (many, nnls(A, B), nnls(A, B, sum_to=1.0), pickle.loads(pickle.dumps(nnls(A, B)))):
        frame = fit.to_frame()
        assert frame.index.tolist() == ATOMS
        assert frame.columns.tolist() == TARGETS
        same(frame, fit.x)
    assert nnls(as_xarray(A), as_xarray(B)).to_frame().columns.tolist() == TARGETS
    assert nnls(M, Y).to_frame().shape == (3, 2)
    gram = nnls_gram(A.T @ A, (A.T @ B)[REVERSED]).to_frame()
    assert (gram.index.tolist(), gram.columns.tolist()) == (ATOMS, TARGETS)
    same(gram, many.x)
    path = nnls_path(A, B["first"], 3)
    assert path.to_frame().index.tolist() == ATOMS
    same(path.to_frame()[2], path.at_most(2).x)


@pytest.mark.parametrize(
    "model",
    [ConicRegressor(), ConicRegressorCV(alphas=3, cv=2), NonnegativeGarroteRegressor(0.1)],
    ids=lambda model: type(model).__name__,
)
def test_estimators_match_rows(model):
    expected = model.fit(M, Y[:, 0], sample_weight=W).coef_
    fitted = model.fit(A, B["first"][REVERSED], sample_weight=WEIGHTS[REVERSED])
    same(fitted.coef_, expected)
    score = fitted.score(A, Y[:, 0], sample_weight=W)
    assert fitted.score(A, B["first"][REVERSED], WEIGHTS[REVERSED]) == pytest.approx(score)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(A.rename(columns={"ash": "dust"}))


def test_classifiers_match_rows():
    classes = pd.Series(["no", "yes"] * 4, index=ROWS)
    expected = ConicClassifier(alpha=0.01).fit(M, classes.to_numpy(), sample_weight=W).coef_
    fitted = ConicClassifier(alpha=0.01).fit(A, classes[REVERSED], WEIGHTS[REVERSED])
    same(fitted.coef_, expected)
    known = pd.Series(fitted.predict(A), index=ROWS)
    known["t"] = "no" if known["t"] == "yes" else "yes"
    score = fitted.score(A, known.to_numpy(), W)
    assert fitted.score(A, known[REVERSED], WEIGHTS[REVERSED]) == pytest.approx(score)


def test_a_coder_and_its_dictionary_name_the_same_features():
    atoms = pd.DataFrame(np.eye(3), columns=ATOMS)
    same(ConicCoder(atoms).fit(A).transform(A), M)
    same(ConicCoder(atoms).fit(M).transform(M), M)
    with pytest.raises(ValueError, match=r"got water, iron, ash and ash, iron, water. Use diction"):
        ConicCoder(atoms[ATOMS[REVERSED]]).fit(A)


def test_nullable_dtypes_of_pandas():
    mixed = A.assign(ash=[1, 2, 3, 4, 5, 6, 7, 8]).convert_dtypes()
    plain = mixed.astype(np.float64)
    same(nnls(mixed, B.convert_dtypes()).x, nnls(plain, B).x)
    assert Dictionary(mixed).matrix.dtype == np.float64
    for y in (mixed["ash"], mixed[["ash"]]):
        assert LeastSquares(y).y.dtype == np.float64
    counts = mixed["ash"].where(mixed["ash"] != 3)
    with pytest.raises(ValueError, match="b must be finite; got NaN"):
        nnls(A, counts)
    with pytest.raises(ValueError, match="A must be finite; got NaN"):
        nnls(mixed.assign(ash=counts), B)
    for words in (pd.DataFrame({"a": ["1"] * 8}), pd.DataFrame({"a": ["1"] * 8}, dtype=object)):
        with pytest.raises(ValueError, match="A must hold real numbers"):
            nnls(words, Y)


def test_polars():
    pl = pytest.importorskip("polars")
    matrix, targets = pl.DataFrame(M, schema=ATOMS), pl.DataFrame(Y, schema=TARGETS)
    fit = nnls(matrix, targets)
    same(fit.x, nnls(M, Y).x)
    assert fit.to_frame().index.tolist() == ATOMS
    same(nnfit(LeastSquares(targets["first"]), matrix).x,
                                  nnfit(LeastSquares(Y[:, 0]), M).x)  # fmt: skip
    model = ConicRegressor().fit(matrix, targets["first"])
    assert model.feature_names_in_.tolist() == ATOMS
    with pytest.raises(ValueError, match="A must be finite"):
        nnls(matrix.with_columns(ash=pl.lit(None, dtype=pl.Float64)), targets)


def torch_tensor(array):
    return pytest.importorskip("torch").tensor(array)


@pytest.mark.parametrize("array", [xp.asarray, torch_tensor], ids=["array_api_strict", "torch"])
def test_arrays_of_other_libraries(array):
    expected = nnls(M, Y[:, 0]).x
    same(nnls(array(M), array(Y[:, 0])).x, expected)
    for matrix, y in ((array(M), array(Y[:, 0])), (M, array(Y[:, 0])), (array(M), Y[:, 0])):
        result = minimize(
            LeastSquares(y, weights=array(np.ones(8))), Cone(Dictionary(matrix)), FCMP()
        )
        same(result.coef, expected)
        same(nnfit(Logistic(array(Y[:, 0] > 1)), matrix, penalty=0.1).x,
                                   nnfit(Logistic(Y[:, 0] > 1), M, penalty=0.1).x)  # fmt: skip


def test_arrays_that_numpy_cannot_read_are_named():
    remote = xp.asarray(M, device=xp.Device("device1"))
    for call in (lambda: Dictionary(remote), lambda: nnls(remote, Y), lambda: LeastSquares(remote)):
        with pytest.raises(ValueError, match=r"is a array_api_strict.*that NumPy cannot read"):
            call()


def test_weights_are_matched_by_the_names_of_atoms():
    rng = np.random.default_rng(0)
    A = pd.DataFrame(rng.random((8, 3)), columns=["iron", "ash", "water"])
    b = A @ [1.0, 0.0, 2.0] + 0.1
    fit = nnls(A, b)
    shuffled = fit.to_frame()["weight"].sample(frac=1.0, random_state=1)
    assert list(shuffled.index) != list(A.columns)
    assert certify_nnls(A, b, shuffled).gap == certify_nnls(A, b, fit).gap
    assert nnls(A, b, start=shuffled).n_iter <= fit.n_iter
    by_place = certify_nnls(A, b, pd.Series(fit.x))  # other labels, so that places count
    assert by_place.gap == certify_nnls(A, b, fit).gap


def test_a_fit_on_a_path_can_be_audited_and_started_from():
    rng = np.random.default_rng(0)
    A, b = rng.random((20, 6)), rng.random(20)
    best = nnls_path(A, b, 4).by_bic()
    assert certify_nnls(A, b, best).gap == certify_nnls(A, b, best.x).gap
    assert nnls(A, b, start=best).proven
