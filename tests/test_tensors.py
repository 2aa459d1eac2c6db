"""Sums of outer products and sparse tensors, against dense arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse as scipy_sparse

from conepursuit import tensors
from conepursuit.low_rank import FactoredMatrix, FactoredTensor, kept_as_factors
from conepursuit.tensors import (
    SparseTensor,
    Unfoldings,
    as_tensor,
    component_grams,
    component_products,
    contracted,
    is_sparse_tensor,
    marginals,
    outer_sum,
    row_products,
)

sparse = pytest.importorskip("sparse")
LETTERS = "abcdef"


def dense(factors):
    d = len(factors)
    return np.einsum(",".join("z" + LETTERS[i] for i in range(d)) + "->" + LETTERS[:d], *factors)


def mttkrp(T, factors, axis):
    """The definition of `contracted`, by einsum."""
    d, terms, arrays = T.ndim, [LETTERS[: T.ndim]], [T]
    for b in range(d):
        if b != axis:
            terms.append("z" + LETTERS[b])
            arrays.append(factors[b])
    return np.einsum(",".join(terms) + "->z" + LETTERS[axis], *arrays)


def some(shape, k, rng, share=0.3):
    factors = [rng.standard_normal((k, n)) for n in shape]
    T = rng.random(shape) * (rng.random(shape) < share)
    return T, factors


shapes = st.lists(st.integers(1, 5), min_size=3, max_size=5).map(tuple)


@given(shapes, st.integers(0, 3), st.integers(0, 1000))
def test_products_with_all_factors_but_one(shape, k, seed):
    T, factors = some(shape, k, np.random.default_rng(seed))
    S = SparseTensor.of(sparse.COO.from_numpy(T))
    np.testing.assert_array_equal(S.toarray(), T)
    for axis in range(len(shape)):
        want = mttkrp(T, factors, axis)
        for kind in (T, S, kept_as_factors([f[:0] for f in factors], T)):
            np.testing.assert_allclose(contracted(kind, factors, axis), want, atol=1e-12)
        assert contracted(T.astype(np.float32), factors, axis).dtype == np.float64
    whole = dense(factors)
    np.testing.assert_allclose(outer_sum(factors), whole, atol=1e-12)
    for kind in (T, S):
        np.testing.assert_allclose(
            component_products(kind, factors).sum(), np.vdot(T, whole), atol=1e-10
        )
    np.testing.assert_allclose(component_grams(factors).sum(), np.vdot(whole, whole), atol=1e-9)
    np.testing.assert_allclose(S.at(factors), whole[np.nonzero(T)], atol=1e-12)


@given(shapes, st.integers(0, 1000), st.floats(-2, 2))
def test_a_tensor_kept_as_factors_is_its_array(shape, seed, scale):
    rng = np.random.default_rng(seed)
    T, factors = some(shape, 2, rng)
    S = SparseTensor.of(sparse.COO.from_numpy(T))
    one = FactoredTensor(*factors, base=S, scale=scale)
    two = FactoredTensor(*(rng.standard_normal((1, n)) for n in shape))
    a, b = one.toarray(), np.asarray(two)
    np.testing.assert_allclose((one - 2.0 * two).toarray(), a - 2 * b, atol=1e-12)
    np.testing.assert_allclose((one + -one).toarray(), 0 * a, atol=1e-12)
    np.testing.assert_allclose(one.inner(two), np.vdot(a, b), atol=1e-10)
    np.testing.assert_allclose(one.inner(one), np.vdot(a, a), atol=1e-9)
    np.testing.assert_allclose(one.inner(T), np.vdot(a, T), atol=1e-10)
    negative = FactoredTensor(-np.abs(factors[0]), *map(np.abs, factors[1:]), base=S, scale=1.5)
    np.testing.assert_allclose(
        negative.positive_part().toarray(), np.maximum(negative.toarray(), 0.0), atol=1e-12
    )
    assert FactoredTensor(*factors, base=T).positive_part() is None


def test_two_axes_make_a_matrix():
    F, G = np.ones((1, 3)), np.ones((1, 4))
    assert isinstance(kept_as_factors([F, G]), FactoredMatrix)
    assert repr(kept_as_factors([F, G, F])) == "FactoredTensor(rank 1, shape (3, 4, 3))"


@pytest.mark.parametrize("block", [1, 7, 10**6])
def test_blocks_do_not_matter(block, monkeypatch):
    rng = np.random.default_rng(0)
    T, factors = some((6, 5, 4), 3, rng)
    S = SparseTensor.of(sparse.COO.from_numpy(T))
    monkeypatch.setattr(tensors, "BLOCK", block)
    for axis in range(3):
        np.testing.assert_allclose(S.contracted(factors, axis), mttkrp(T, factors, axis))
        parts = list(S.places.blocks(axis))
        assert [part[0].stop for part in parts[:-1]] == [part[0].start for part in parts[1:]]
        assert (parts[0][0].start, parts[-1][0].stop) == (0, T.shape[axis])
    np.testing.assert_allclose(S.at(factors), outer_sum(factors)[np.nonzero(T)])


def test_sparse_arrays_of_every_kind():
    T, _ = some((3, 4, 5), 1, np.random.default_rng(1))
    COO = sparse.COO.from_numpy(T)
    for S in (COO, sparse.GCXS.from_numpy(T)):
        assert is_sparse_tensor(S)
        np.testing.assert_array_equal(SparseTensor.of(S).toarray(), T)
    if tuple(map(int, __import__("scipy").__version__.split(".")[:2])) >= (1, 15):
        order = np.random.default_rng(2).permutation(COO.nnz)
        coords, data = COO.coords[:, order], COO.data[order]
        twice = np.concatenate([coords, coords], axis=1), np.concatenate([data, data])
        S = scipy_sparse.coo_array((twice[1], tuple(twice[0])), T.shape)
        np.testing.assert_allclose(SparseTensor.of(S).toarray(), 2 * T)
    np.testing.assert_array_equal(
        SparseTensor.of(COO).transposed([2, 0, 1]).toarray(), T.transpose(2, 0, 1)
    )
    unfolded = SparseTensor.of(COO).unfolded(1)
    full = np.moveaxis(T, 1, 0).reshape(4, -1)
    np.testing.assert_array_equal(unfolded.toarray(), full[:, full.any(axis=0)])
    np.testing.assert_array_equal(SparseTensor.of(COO).rows().toarray(), T.reshape(3, -1))
    assert not is_sparse_tensor(T)
    assert not is_sparse_tensor(scipy_sparse.csr_array(T[0]))


def test_what_is_refused():
    with pytest.raises(ValueError, match="zero where nothing is stored; got fill_value"):
        as_tensor(sparse.COO.from_numpy(np.ones((2, 2, 2)), fill_value=1.0), "X")
    with pytest.raises(ValueError, match="at least three axes"):
        as_tensor(np.ones((2, 2)), "X")
    with pytest.raises(ValueError, match="finite"):
        as_tensor(np.full((2, 2, 2), np.nan), "X")
    with pytest.raises(ValueError, match="real numbers"):
        as_tensor(sparse.COO.from_numpy(np.ones((2, 2, 2), dtype=complex)), "X")


def test_unfoldings_and_sums():
    T = np.random.default_rng(0).random((3, 4, 5))
    sides = Unfoldings(T, np.empty((0, 0)))
    for axis in range(3):
        X, M = sides[axis]
        np.testing.assert_array_equal(X, np.moveaxis(T, axis, 0).reshape(T.shape[axis], -1))
        assert X.flags.c_contiguous
        assert M.size == 0
    for kind in (T, SparseTensor.of(sparse.COO.from_numpy(T)), T[0], scipy_sparse.csr_array(T[0])):
        factors = marginals(kind)
        full = T if len(factors) == 3 else T[0]
        for axis, factor in enumerate(factors):
            others = tuple(b for b in range(full.ndim) if b != axis)
            sums = full.sum(axis=others)
            np.testing.assert_allclose(factor[0] / factor.sum(), sums / sums.sum())
        np.testing.assert_allclose(row_products(factors).sum(), full.sum())
