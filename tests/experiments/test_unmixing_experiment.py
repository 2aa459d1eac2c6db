"""The figures of unmixing: batch pursuits are the generic ones, and what is made of them."""

import os

import numpy as np
import pytest
from matplotlib.figure import Figure

from conepursuit import AMP, FCMP, NNMP, PWMP, Cone, Dictionary, LeastSquares, minimize, nnls
from conepursuit.experiments import unmixing
from conepursuit.experiments.pixel_pursuits import ALGORITHMS, EXACT, run

FOLDER = os.environ.get("CONEPURSUIT_DATA")
needs_data = pytest.mark.skipif(FOLDER is None, reason="CONEPURSUIT_DATA names no data folder")


def problem(m=12, n=5, count=40, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.random((m, n)) + 0.2
    return A, A @ np.maximum(rng.standard_normal((n, count)), 0.0) + 0.1 * rng.random((m, count))


@pytest.mark.parametrize("algorithm", [NNMP(), AMP(), PWMP(), FCMP()], ids=repr)
def test_batches_make_the_steps_of_the_generic_loop(algorithm):
    A, B = problem()
    name, cone = type(algorithm).__name__, Cone(Dictionary(A / np.linalg.norm(A, axis=0)))
    runs = run(A, B, name, 15)
    for p, b in enumerate(B.T):
        single = minimize(LeastSquares(b), cone, algorithm, max_iter=15, tol=0.0)
        above = single.trace["value"] - 0.5 * nnls(A, b).rnorm ** 2
        steps = min(len(above), 16)
        want = runs.suboptimality[:steps, p]
        np.testing.assert_allclose(above[:steps], want, atol=1e-11 * above[0])


def test_all_descend_and_stop_at_the_optimum():
    A, B = problem(seed=1)
    for name in ALGORITHMS:
        runs = run(A, B, name, 400 if name != "NNMP" else 50)
        assert (np.diff(runs.suboptimality, axis=0) <= 1e-13 * runs.suboptimality[0]).all()
        assert (runs.bad <= runs.steps).all()
        if name in ("FCMP", "HALS", "PWMP"):
            assert (runs.suboptimality[-1] <= EXACT * runs.suboptimality[0]).all()
    assert run(A, B, "FCMP", 20).steps.max() <= 8


def kept():
    A, B = problem(n=6)
    runs = {}
    for name in ALGORITHMS:
        found = run(A, B, name, 10)
        done = found.suboptimality <= EXACT * found.suboptimality[0]
        runs[name] = {
            "mean": found.suboptimality.mean(axis=1).tolist(), "bad": 0.01, "last": 7,
            "early": float(done[6].mean()), "done": float(done[-1].mean()),
        }  # fmt: skip
    runs["maps"] = np.random.default_rng(0).random((6, 4, 5)).tolist()
    return runs


def test_what_is_found():
    results = {name: kept() for name in unmixing.EXTRACTORS}
    results["Samson"] = {"true spectra": [0.0, 0.1, 0.2], "spa": [12.3, 0.3, 0.4]}
    found = unmixing.present(results)
    assert [table.title[:6] for table in found.tables] == ["20 pix", "Samson"]
    assert found.tables[1].rows[1] == ("SPA", "12.30°", "0.300", "0.400")
    assert found.comparisons[1].agrees
    assert found.comparisons[0].remark == (
        "Iterations until it is done on every pixel: 7: an atom may lose its weight and come back."
    )
    results["spa"]["FCMP"]["last"] = 11
    told = unmixing.present(results)
    assert "every pixel: more than 10: an atom" in told.comparisons[0].remark
    assert told.tables[0].rows[0][-2] == "more than 10"
    assert len(found.figures) == 6
    for draw in found.figures.values():
        ax = Figure().subplots()
        draw(ax)
        assert ax.lines or ax.images
    assert not unmixing.present({}).tables


@needs_data
def test_quick_parts():
    parts = unmixing.parts(quick=True)
    assert list(parts) == [*unmixing.EXTRACTORS, "Samson", "Jasper Ridge"]
    found = parts["spa"]()
    assert found["FCMP"]["done"] == 1.0
    assert found["FCMP"]["last"] <= 8
    assert np.shape(found["maps"]) == (6, 20, 20)
