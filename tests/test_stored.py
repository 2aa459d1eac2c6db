"""Sparse matrices with wrong indices are refused wherever they enter, before anything walks them.

Were they not refused, SciPy and the kernels would read and write memory that is not theirs.
"""

import numpy as np
import pytest
from scipy import sparse

import conepursuit as cp
from conepursuit.arrays import check_stored

FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]
FAR = 10**6


def good(kind="csr", n=60):
    """Return a sparse matrix of a format, and its target."""
    rng = np.random.default_rng(0)
    A = sparse.random_array((n, n), density=0.0 if kind == "dia" else 0.3, rng=rng)
    return sparse.coo_array(A + sparse.eye_array(n)).asformat(kind), rng.random(n)


def bad(kind="csr", place=FAR, n=60):
    """Return a sparse matrix with an index that is wrong."""
    A, b = good(kind, n)
    if kind == "coo":
        A.coords[0][3] = place
    elif kind == "lil":
        A.rows[3][0] = place
    else:
        A.indices[3] = place
    return A, b


@pytest.mark.parametrize("matrix", [False, True])
@pytest.mark.parametrize("kind", FORMATS)
def test_good_matrices_of_all_formats_pass(kind, matrix):
    A = good(kind)[0]
    if matrix:
        A = getattr(sparse, f"{kind}_matrix")(A)
    before = A.toarray()
    check_stored(A, "A")
    assert (A.toarray() == before).all()
    assert cp.nnls(A, good()[1]).proven


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 3)])
@pytest.mark.parametrize("kind", FORMATS)
def test_matrices_without_entries_pass(kind, shape):
    check_stored(sparse.coo_array(shape).asformat(kind), "A")


@pytest.mark.parametrize("place", [FAR, -1, 60])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil"])
def test_wrong_indices_are_named(kind, place):
    with pytest.raises(ValueError, match=f"^X is a damaged sparse matrix: .*got {place}"):
        check_stored(bad(kind, place)[0], "X")


def ends(A):
    A.indptr[7] = FAR


def last(A):
    A.indptr[-1] = -1


def first(A):
    A.indptr[0] = 4


def short(A):
    A.indptr = A.indptr[:-1]


def fewer(A):
    A.data = A.data[:-5]


def real(A):
    A.indices = A.indices + 0.5


@pytest.mark.parametrize("damage", [ends, last, first, short, fewer, real])
@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_other_damage_is_refused(kind, damage):
    A = good(kind)[0]
    damage(A)
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        check_stored(A, "X")


def test_what_lies_behind_the_entries_does_not_count():
    A, b = good("csr")
    A.indices, A.data = np.append(A.indices, FAR), np.append(A.data, 1.0)
    check_stored(A, "A")
    assert cp.nnls(A, b).proven


def test_indices_in_any_order_of_bytes():
    A = good("csr")[0]
    A.indices = A.indices.astype(">i4")
    check_stored(A, "A")
    A.indices[3] = -1
    with pytest.raises(ValueError, match="got -1"):
        check_stored(A, "A")


def test_rows_of_lists_that_do_not_agree_are_refused():
    A = good("lil")[0]
    A.rows[2] = A.rows[2] + [1, 2]
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        check_stored(A, "X")


def tensor(place):
    T = sparse.coo_array((np.ones(2), ([0, 1], [0, 1], [0, 1])), shape=(2, 2, 2))
    T.coords[1][0] = place
    return T


def with_classes(b):
    return (b > np.median(b)).astype(int)


CALLS = {
    "nnls": lambda A, b: cp.nnls(A, b),
    "nnls_gram": lambda A, b: cp.nnls_gram(A, b),
    "nnls_path": lambda A, b: cp.nnls_path(A, b, max_atoms=2),
    "certify_nnls": lambda A, b: cp.certify_nnls(A, b, np.zeros(60)),
    "nnfit": lambda A, b: cp.nnfit(cp.LeastSquares(b), A),
    "nnfit_path": lambda A, b: cp.nnfit_path(cp.KullbackLeibler(b), A, max_atoms=2),
    "Dictionary": lambda A, b: cp.Dictionary(A),
    "Quadratic": lambda A, b: cp.Quadratic(A, b),
    "Composed": lambda A, b: cp.Composed(cp.LeastSquares(b), A),
    "FactoredLeastSquares": lambda A, b: cp.FactoredLeastSquares(A),
    "FactoredKullbackLeibler": lambda A, b: cp.FactoredKullbackLeibler(A),
    "ConicRegressor": lambda A, b: cp.ConicRegressor().fit(A, b),
    "ConicRegressorCV": lambda A, b: cp.ConicRegressorCV().fit(A, b),
    "ConicClassifier": lambda A, b: cp.ConicClassifier().fit(A, with_classes(b)),
    "garrote": lambda A, b: cp.NonnegativeGarroteRegressor().fit(A, b),
    "garrote, classes": lambda A, b: cp.NonnegativeGarroteClassifier().fit(A, with_classes(b)),
    "predict": lambda A, b: cp.ConicRegressor().fit(np.eye(60), b).predict(A),
    "GreedyNMF": lambda A, b: cp.GreedyNMF(2).fit(A),
    "transform": lambda A, b: cp.GreedyNMF(2).fit(np.eye(60)).transform(A),
    "inverse_transform": lambda A, b: cp.GreedyNMF(60).fit(np.eye(60)).inverse_transform(A),
    "entry_weight": lambda A, b: cp.GreedyNMF(2).fit(good()[0], entry_weight=A),
    "dense entry_weight": lambda A, b: cp.GreedyNMF(2).fit(np.ones((60, 60)), entry_weight=A),
    "lazy nnls": lambda A, b: cp.nnls(in_blocks(A), b),
    "lazy weights": lambda A, b: cp.nnls(in_blocks(A), b, weights=b),
    "lazy GreedyNMF": lambda A, b: cp.GreedyNMF(2).fit(in_blocks(A)),
    "lazy predict": lambda A, b: (
        cp.ConicRegressor().fit(np.eye(60), b).predict(in_blocks(A)).compute()
    ),
}


def in_blocks(A):
    from dask import array, delayed

    return array.from_delayed(delayed(A), A.shape, A.dtype, meta=sparse.csr_array((0, 0)))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("call", CALLS)
def test_every_way_in_refuses_wrong_indices(call, kind):
    A, b = bad(kind, 60)  # just outside: it might pass unseen, and does not crash the tests
    # Dask looks at the indices of coo itself
    with pytest.raises(ValueError, match=r"damaged sparse matrix|index 60 exceeds"):
        CALLS[call](A, b)


@pytest.mark.parametrize("place", [2, -1])
def test_tensors_with_wrong_indices_are_refused(place):
    for call in (cp.GreedyCP(1).fit, cp.FactoredLeastSquares):
        with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
            call(tensor(place))
