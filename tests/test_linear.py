"""The four functions of a matrix, and what is asked of arrays."""

import array_api_strict as xp
import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from conepursuit import linear
from conepursuit.arrays import as_float_array, inner, norm, zeros

rng = np.random.default_rng(0)
M = rng.standard_normal((150, 130))
FORMS = {
    "C": M,
    "F": np.asfortranarray(M),
    "float32": M.astype(np.float32),
    "float32 F": np.asfortranarray(M.astype(np.float32)),
    "float32 strided": np.repeat(M.astype(np.float32), 2, axis=1)[:, ::2],
    "csc": sparse.csc_array(M),
    "csr": sparse.csr_array(M),
    "csr_matrix": sparse.csr_matrix(M),
    "operator": aslinearoperator(M),
}


@pytest.mark.parametrize("name", FORMS)
def test_products(name):
    form = FORMS[name]
    reference = M.astype(np.float32).astype(float) if "float32" in name else M
    x, y = rng.standard_normal(130), rng.standard_normal(150)
    np.testing.assert_allclose(linear.matvec(form, x), reference @ x, atol=1e-12)
    np.testing.assert_allclose(linear.rmatvec(form, y), reference.T @ y, atol=1e-12)
    np.testing.assert_allclose(linear.gram(form), reference.T @ reference, atol=1e-10)
    column = linear.column(form, 7)
    dense = column.toarray()[0] if sparse.issparse(column) else column
    np.testing.assert_array_equal(dense, reference[:, 7])
    for product in (linear.matvec(form, x), linear.rmatvec(form, y), dense):
        assert product.dtype == np.float64


def test_other_kinds_are_named():
    for call in (lambda: linear.matvec("D", M), lambda: linear.gram(None)):
        with pytest.raises(ValueError, match="expected a matrix; got"):
            call()


def test_arrays_of_another_library():
    a, b = xp.asarray([[1.0, 2.0], [3.0, 4.0]]), xp.asarray([[1.0, 0.0], [0.0, 2.0]])
    assert inner(a, b) == 9.0
    assert norm(a) == pytest.approx(30**0.5)
    assert type(zeros((2,), like=a)) is type(a)
    taken = as_float_array(xp.asarray([1, 2]), "y")
    assert (type(taken), taken.dtype) == (np.ndarray, np.float64)
    with pytest.raises(ValueError, match="y must be finite"):
        as_float_array(xp.asarray([1.0, float("nan")]), "y")


def test_matrices_of_any_order_have_one_inner_product():
    a, b = rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
    assert inner(np.asfortranarray(a), b) == pytest.approx(float((a * b).sum()))
