"""Atom sets: oracles, batches, and every kind of matrix a Dictionary takes."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from conepursuit import (
    AMP,
    FCMP,
    NNMP,
    PWMP,
    ApproximateOracle,
    Cone,
    Dictionary,
    FunctionAtoms,
    LeastSquares,
    NonnegativeSphere,
    Symmetric,
    Union,
    UnitVectors,
    Vectors,
    minimize,
)
from conepursuit.testing import check_atom_set
from problems import random_problem

rng = np.random.default_rng(0)
D, S = rng.random((6, 9)), rng.standard_normal((6, 9))

SETS = [
    Dictionary(D),
    Dictionary(S),
    Dictionary(sparse.random_array((6, 9), density=0.5, rng=rng)),
    Dictionary(aslinearoperator(S)),
    UnitVectors(5),
    UnitVectors((2, 3)),
    NonnegativeSphere(6),
    NonnegativeSphere((2, 3)),
    Symmetric(Dictionary(S)),
    Symmetric(UnitVectors(4)),
    Symmetric(NonnegativeSphere(4)),
    Union(UnitVectors(6), Dictionary(D)),
    Union(Dictionary(D), Symmetric(Dictionary(S))),
    FunctionAtoms(lambda g: -g / np.linalg.norm(g), 6, radius=1.0),
    ApproximateOracle(Dictionary(S), 0.5),
]


@pytest.mark.parametrize("atoms", SETS, ids=repr)
def test_contract(atoms):
    check_atom_set(atoms)


def variants(matrix):
    """Return the same dictionary in every form it may come in."""
    read_only = matrix.copy()
    read_only.flags.writeable = False
    wide = np.empty((matrix.shape[0], 2 * matrix.shape[1]))
    wide[:, ::2] = matrix
    return {
        "C order": np.ascontiguousarray(matrix),
        "F order": np.asfortranarray(matrix),
        "read-only": read_only,
        "strided": wide[:, ::2],
        "CSC": sparse.csc_array(matrix),
        "CSR": sparse.csr_array(matrix),
        "COO": sparse.coo_array(matrix),
        "csr_matrix": sparse.csr_matrix(matrix),
        "LinearOperator": aslinearoperator(matrix),
        "nested lists": matrix.tolist(),
    }


@pytest.mark.parametrize(
    "algorithm", [NNMP(), AMP(), PWMP(), FCMP(variant=0), FCMP(variant=1)], ids=str
)
def test_the_same_run_on_every_kind_of_matrix(algorithm):
    matrix, y = random_problem(np.random.default_rng(1), 30, 50)
    matrix *= np.random.default_rng(2).random(matrix.shape) < 0.5
    reference = None
    for name, form in variants(matrix).items():
        atoms = Dictionary(form)
        result = minimize(LeastSquares(y), Cone(atoms), algorithm, max_iter=40)
        weights = result.coef
        reference = weights if reference is None else reference
        np.testing.assert_allclose(weights, reference, rtol=0, atol=1e-10, err_msg=name)


def test_a_memory_mapped_dictionary_is_not_copied(tmp_path):
    matrix, y = random_problem(np.random.default_rng(3))
    np.save(tmp_path / "D.npy", matrix)
    mapped = np.load(tmp_path / "D.npy", mmap_mode="r")
    atoms = Dictionary(mapped)
    assert np.shares_memory(atoms.matrix, mapped)
    result = minimize(LeastSquares(y), Cone(atoms), FCMP())
    plain = minimize(LeastSquares(y), Cone(Dictionary(matrix)), FCMP())
    np.testing.assert_array_equal(result.weights, plain.weights)


@pytest.mark.parametrize("order", ["C", "F"])
def test_float32_is_kept_and_summed_in_float64(order):
    matrix, y = random_problem(np.random.default_rng(4), 200, 90)
    narrow = np.asarray(matrix, dtype=np.float32, order=order)
    atoms, wide = Dictionary(narrow), Dictionary(narrow.astype(np.float64))
    assert atoms.matrix is narrow
    np.testing.assert_allclose(atoms.scores(y), wide.scores(y), rtol=1e-12)
    np.testing.assert_allclose(atoms.scores(y), narrow.astype(np.float64).T @ y, rtol=1e-12)
    one = minimize(LeastSquares(y.astype(np.float32)), Cone(atoms), FCMP(variant=1))
    two = minimize(LeastSquares(y.astype(np.float32)), Cone(wide), FCMP(variant=1))
    assert one.weights.dtype == np.float64
    assert one.atoms.keys == two.atoms.keys
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-10)


def test_integers_are_converted():
    matrix = np.array([[1, 0, 2], [0, 3, 1]], dtype=np.int8)
    result = minimize(LeastSquares([3, 4]), Cone(Dictionary(matrix)), FCMP(variant=1))
    floats = minimize(LeastSquares([3.0, 4.0]), Cone(Dictionary(matrix.astype(float))),
                      FCMP(variant=1))  # fmt: skip
    np.testing.assert_array_equal(result.weights, floats.weights)


def test_an_operator_is_asked_for_products_only():
    matrix, y = random_problem(np.random.default_rng(5), 20, 30)
    counts = {"matvec": 0, "rmatvec": 0}

    def counted(name, product):
        def call(v):
            counts[name] += 1
            return product @ v

        return call

    operator = LinearOperator(matrix.shape, matvec=counted("matvec", matrix),
                              rmatvec=counted("rmatvec", matrix.T), dtype=float)  # fmt: skip
    atoms = Dictionary(operator)
    counts.update(matvec=0, rmatvec=0)
    result = minimize(LeastSquares(y), Cone(atoms), FCMP(variant=1), tol=1e-10)
    assert counts["rmatvec"] <= result.n_iter + 4  # functional, first and last certificate
    assert counts["matvec"] <= result.n_iter + 3  # one column for every answer of the oracle


def test_zero_columns_are_never_selected():
    matrix, y = random_problem(np.random.default_rng(6), noise=1.0)
    matrix[:, ::3] = 0
    for algorithm in (NNMP(), AMP(), PWMP(), FCMP()):
        result = minimize(LeastSquares(y), Cone(Dictionary(matrix)), algorithm)
        assert all(key % 3 for key in result.atoms.keys)
    nothing = minimize(LeastSquares(y), Cone(Dictionary(np.zeros((20, 4)))), PWMP())
    assert nothing.n_iter == 0
    assert nothing.status.success


def test_one_pass_over_the_dictionary_per_iteration(monkeypatch):
    """Scores of active atoms are looked up in the pass of the oracle."""

    class Counting(Dictionary):
        passes = 0

        def scores(self, gradient):
            self.passes += 1
            return super().scores(gradient)

    products, inner = [], Vectors.inner

    def counted(self, gradient):
        products.append(len(self))
        return inner(self, gradient)

    monkeypatch.setattr(Vectors, "inner", counted)
    matrix, y = random_problem(np.random.default_rng(7), noise=1.0)
    for algorithm in (NNMP(), AMP(), PWMP(), FCMP(variant=0), FCMP(variant=1)):
        atoms = Counting(matrix)
        atoms.positive_functional()
        atoms.passes = 0
        products.clear()
        result = minimize(LeastSquares(y), Cone(atoms), algorithm, max_iter=20, tol=0)
        assert atoms.passes <= result.n_iter + 3
        joined = 30 if isinstance(algorithm, FCMP) else 0  # the Gram column of a new atom
        assert len(products) <= joined


def test_batches_of_one_run_do_not_disturb_each_other():
    """Iterates are kept by callbacks; later joins and drops must not change them."""
    matrix, y = random_problem(np.random.default_rng(8), 10, 60, noise=1.5)
    kept = []
    minimize(LeastSquares(y), Cone(Dictionary(matrix)), PWMP(), max_iter=400, tol=0,
             callback=lambda s: kept.append((s.iterate, s.iterate.x.copy())) or None)  # fmt: skip
    for iterate, x in kept:
        np.testing.assert_array_equal(iterate.x, x)
        np.testing.assert_allclose(matrix[:, list(iterate.atoms.keys)] @ iterate.weights, x,
                                   atol=1e-12)  # fmt: skip


def test_many_dropped_atoms_do_not_fill_the_table():
    batch, matrix = Dictionary(S).empty(), np.random.default_rng(9).random((6, 500))
    atoms = Dictionary(matrix)
    for j in range(500):
        batch = batch.join(atoms.answer(j, np.zeros(500)))[[-1]]
    assert batch.table.count < 50
    np.testing.assert_array_equal(batch.combine(np.ones(1)), matrix[:, 499])


def test_results_can_be_pickled():
    matrix, y = random_problem(np.random.default_rng(10))
    for atoms in (Dictionary(matrix), Dictionary(sparse.csc_array(matrix)), NonnegativeSphere(20)):
        result = minimize(LeastSquares(y), Cone(atoms), PWMP(), max_iter=20)
        copy = pickle.loads(pickle.dumps(result))
        np.testing.assert_array_equal(copy.weights, result.weights)
        np.testing.assert_array_equal(copy.x, result.x)
        assert copy.status is result.status
        assert copy.atoms.keys == result.atoms.keys


def test_functional_of_a_union_is_confirmed_by_all_members():
    positive = Union(UnitVectors(6), Dictionary(D))
    assert positive.positive_functional() is not None
    assert Union(UnitVectors(6), Dictionary(S)).positive_functional() is None


def test_user_atoms_may_reuse_their_buffer():
    buffer = np.empty(4)

    def oracle(g):
        buffer[:] = np.eye(4)[int(np.argmin(g))]
        return buffer

    result = minimize(LeastSquares([1.0, 2.0, 3.0, -1.0]), Cone(FunctionAtoms(oracle, 4)), PWMP())
    np.testing.assert_allclose(result.x, [1, 2, 3, 0], atol=1e-6)
