"""What a fresh process imports: no more than a call needs."""

import subprocess
import sys

import pytest

DATA = """
import sys
import numpy as np
before = set(sys.modules)
A = np.sin(np.arange(5000.0) ** 2).reshape(50, 100)
b = np.abs(A).sum(axis=1) + A[:, 0]
"""


def run(program):
    done = subprocess.run([sys.executable, "-c", DATA + program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "call",
    [
        "nnls(A, b)",
        "nnls(A.tolist(), b.tolist(), weights=b.tolist())",
        "nnls(A, b, max_atoms=5)",
        "nnls(A, np.abs(A))",
        "nnls(np.tile(A, (1, 30)), b)",
        "nnls_path(A, b, 10, forced=[1], forbidden=[2])",
        "certify_nnls(A, b, np.ones(100))",
    ],
)
def test_least_squares_on_arrays_needs_numpy_alone(call):
    run(f"""
from conepursuit import {call.split("(")[0]}
{call}
new = {{name for name in sys.modules if name not in before}}
assert not {{"scipy", "sklearn", "importlib.metadata", "numpy.ma", "numpy.random"}} & new, new
assert not {{"dask", "xarray", "threadpoolctl"}} & new, new
""")


@pytest.mark.parametrize(
    "names",
    [
        "minimize, iterates, certify, penalty_path, FCMP, Cone, Dictionary, LeastSquares",
        "nnfit, Logistic, Poisson",
        "nnls_gram, FactoredMatrix, Status",
        "datasets, theory",
    ],
)
def test_only_estimators_need_scikit_learn(names):
    run(f"""
from conepursuit import {names}
assert "sklearn" not in sys.modules
""")


def test_matrices_of_scipy_are_known_when_it_is_imported_last():
    run("""
from conepursuit import nnls
x = np.repeat([1.0, 0.0], [5, 95])
P, b = np.abs(A), np.abs(A) @ x
np.testing.assert_allclose(nnls(P, b).x, x, atol=1e-9)
assert "scipy" not in sys.modules
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
for matrix in (sparse.csr_array(P), sparse.coo_matrix(P), aslinearoperator(P)):
    np.testing.assert_allclose(nnls(matrix, b).x, x, atol=1e-9)
wide = np.hstack([P, np.zeros((50, 20000))])  # too large to be made dense
for matrix in (sparse.csr_array(wide), aslinearoperator(wide)):
    np.testing.assert_allclose(nnls(matrix, b).x[:100], x, atol=1e-9)
""")
