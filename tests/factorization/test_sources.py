"""The number of sources, by components that two halves of the data agree on."""

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from conepursuit.factorization.data import FactorData
from conepursuit.factorization.sources import STABLE, agreement, chosen_rank, count_sources
from conepursuit.tensors import SparseTensor


def sources(X, *, M=None, divergence=False):
    data = FactorData.of(X, M, divergence, scale=True)
    with threadpool_limits(1, user_api="blas"):
        return count_sources(data, (), np.random.RandomState(0))


def made(k, noise, shape=(90, 60)):
    rng = np.random.default_rng(k)
    X = rng.gamma(0.5, size=(shape[0], k)) @ rng.gamma(0.5, size=(k, shape[1]))
    return np.abs(X * (1 + noise * rng.standard_normal(X.shape)))


@pytest.mark.parametrize(("k", "noise"), [(3, 0.3), (9, 0.05)])
def test_the_number_of_made_sources_is_found(k, noise):
    rank, stability = sources(made(k, noise))
    assert rank == k
    assert stability[k - 1] > 0.9
    assert (stability[k:] < STABLE).all()
    assert ((stability >= 0) & (stability <= 1)).all()


@pytest.mark.parametrize(
    ("stability", "rank"),
    [
        ([0.9], 1),
        ([0.9, 0.5, 0.55], 1),  # no other is stable
        ([1.0, 0.8, 0.3], 1),  # two are much worse than one
        ([1.0, 0.2, 0.95, 0.9, 0.7], 4),  # nearly as good as three
        ([0.7, 0.2, 0.65, 0.5, 0.59], 3),
        ([0.2, 0.1, 0.95, 0.3, 0.95], 5),
    ],
)
def test_the_largest_of_the_ranks_that_are_nearly_best_is_chosen(stability, rank):
    assert chosen_rank(np.array(stability)) == rank


def test_one_source_is_one():
    assert sources(made(1, 0.05))[0] == 1


def test_missing_entries_and_divergences():
    X = made(4, 0.05, (12, 60))
    M = 1.0 * (np.random.default_rng(0).random(X.shape) > 0.1)
    assert sources(X, M=M)[0] == 4
    assert sources(X.T, divergence=True)[0] == 4


def test_sparse_topics_are_counted():
    rng = np.random.default_rng(0)
    topics, shares = rng.dirichlet(np.full(400, 0.05), 4), rng.dirichlet(np.full(4, 0.1), 200)
    counts = [rng.multinomial(80, p / p.sum()) for p in shares @ topics]
    assert sources(sparse.csr_array(np.array(counts, dtype=float)))[0] == 4


def test_sparse_tensors_are_divided_as_arrays_are():
    rng = np.random.default_rng(0)
    X = np.einsum("ir,jr,kr->ijk", *(rng.gamma(0.3, size=(n, 2)) for n in (5, 12, 4)))
    X = np.where(X > 0.01, X, 0.0)
    tensor = SparseTensor.of(sparse.coo_array(X))
    for axis, chosen in ((0, [1, 4]), (1, [0, 3, 9])):
        part = FactorData(tensor, None, False).part(axis, np.array(chosen)).X
        dense = np.zeros(part.shape)
        dense[tuple(part.places.indices)] = part.data
        np.testing.assert_array_equal(dense, np.take(X, chosen, axis))
    assert sources(tensor)[0] == 2


def test_data_too_small_to_divide_have_one_source():
    assert sources(np.ones((1, 1)))[0] == 1
    assert sources(np.zeros((6, 4)))[0] == 1


def test_agreement_is_that_of_the_two_components_that_agree_least():
    one = np.array([[1.0, 0.0, 0.0, 2.0], [0.0, 3.0, 0.0, 0.0]])
    two = np.array([[0.0, 6.0, 0.0, 0.0], [1.0, 0.0, 1.0, 2.0]])
    expected = np.corrcoef(one[0], two[1])[0, 1]
    np.testing.assert_allclose(agreement((one,), (two,)), expected)
    np.testing.assert_allclose(agreement((one, one), (two, two)), expected**2)
    assert agreement((one,), (1.0 * np.ones((2, 4)),)) == 0.0
