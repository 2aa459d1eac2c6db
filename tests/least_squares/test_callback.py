"""The callback of nnls is called whatever the data are, and with the weights of the data."""

import numpy as np
import pytest
from scipy import sparse

from conepursuit import Checkpoint, Status, nnls

RNG = np.random.default_rng(0)
WIDE, TARGET = RNG.random((40, 3000)), RNG.random(40)
SIGNED = RNG.standard_normal((20, 2100))
PLANE = np.linspace(0.0, np.pi / 2, 2100)
PROBLEMS = {
    "small": (WIDE[:, :8], TARGET, {}),
    "no atom": (-WIDE[:, :8], TARGET, {}),
    "weights of rows": (WIDE[:, :8], TARGET, {"weights": TARGET}),
    "large": (WIDE, TARGET, {}),
    "sparse": (sparse.random(40, 9000, density=0.2, random_state=0, format="csc"), TARGET, {}),
    "few atoms": (WIDE, TARGET, {"max_atoms": 3}),
    "fitted exactly": (SIGNED, RNG.standard_normal(20), {}),
    "neighbours": (np.array([np.cos(PLANE), np.sin(PLANE)]), np.array([1.0, 2.0]), {}),
    "small in other units": (1e200 * WIDE[:, :8], 1e200 * TARGET, {}),
    "large in other units": (1e-200 * WIDE, 1e-200 * TARGET, {"max_atoms": 3}),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_last_round_is_the_fit(name, tmp_path):
    A, b, options = PROBLEMS[name]
    rounds, path = [], tmp_path / "fit.npz"
    known = nnls(A, b, **options)
    fit = nnls(A, b, **options, callback=rounds.append)
    np.testing.assert_array_equal(fit.x, known.x)
    assert rounds
    last = rounds[-1]
    order = np.argsort(last.keys)
    np.testing.assert_array_equal(last.keys[order], fit.support)
    np.testing.assert_array_equal(last.weights[order], fit.x[fit.support])
    np.testing.assert_allclose(last.rnorm, fit.rnorm, rtol=1e-6, atol=1e-12 * np.abs(b).max())
    assert last.n_columns == A.shape[1]
    assert last.iteration <= fit.n_iter
    nnls(A, b, **options, callback=Checkpoint(path))
    np.testing.assert_array_equal(np.sort(Checkpoint.load(path).keys), fit.support)


@pytest.mark.parametrize("name", ["large", "sparse", "few atoms", "large in other units"])
def test_true_ends_a_fit_of_several_rounds(name):
    A, b, options = PROBLEMS[name]
    rounds = []
    fit = nnls(A, b, **options, callback=lambda seen: rounds.append(seen) or True)
    assert len(rounds) == 1
    assert fit.status is Status.STOPPED
    np.testing.assert_array_equal(np.sort(rounds[0].keys), fit.support)


@pytest.mark.parametrize("name", ["small", "fitted exactly", "neighbours"])
def test_a_fit_at_once_is_one_round_after_which_it_is_complete(name):
    A, b, options = PROBLEMS[name]
    rounds = []
    fit = nnls(A, b, **options, callback=lambda seen: rounds.append(seen) or True)
    assert len(rounds) == 1
    assert fit.status is nnls(A, b, **options).status
