"""The table of tensor factorisations: its baselines, its parts, and what is made of them."""

import os

import numpy as np
import pytest
from matplotlib.figure import Figure

from conepursuit.experiments import tensor
from conepursuit.tensors import outer_sum

pytest.importorskip("tensorly")
FOLDER = os.environ.get("CONEPURSUIT_DATA")


def made(shape=(9, 8, 7), k=3):
    rng = np.random.default_rng(0)
    return outer_sum([rng.random((k, n)) for n in shape])


def error(X, factors):
    return np.linalg.norm(X - outer_sum(factors)) / np.linalg.norm(X)


def test_the_paper_is_quoted():
    assert list(tensor.PAPER.values()) == [0.2991, 0.2927, 0.2912, 0.2914, 0.2913, 0.2909]


@pytest.mark.parametrize("method", tensor.BASELINES)
def test_baselines_descend(method):
    X = made()
    errors = [error(X, tensor.BASELINES[method](X, 3, sweeps, 1)) for sweeps in (1, 5, 60)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < (0.1 if method == "mult" else 0.02)
    assert all((factor >= 0).all() for factor in tensor.BASELINES[method](X, 3, 5, 1))


def test_both_ways_to_solve_for_a_factor_agree():
    X = made()
    one, two = (tensor.BASELINES[f"ANLS {kind}"](X, 3, 4, 0) for kind in ("AS", "BPP"))
    for first, second in zip(one, two, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-9)


def results():
    X = made()
    found = {m: tensor.baseline_runs(X, 2, m, (1, 5), (0, 1)) for m in tensor.BASELINES}
    return found | {m: tensor.greedy_runs(X, 2, m, (1, 9), (0, 1)) for m in ("PWMP", "FCMP")}


def test_what_is_found():
    kept = results()
    assert np.shape(kept["FCMP"]["ranks"]) == np.shape(kept["HALS"]["errors"]) == (2, 2)
    found = tensor.present(kept)
    assert [row[0] for row in found.tables[0].rows] == list(tensor.PAPER)
    best = min(tensor.at_time(kept[m], 0.0) for m in tensor.BASELINES)
    for error, agrees in ((0.9 * best, True), (1.1 * best, False)):
        fcmp = {"sweeps": [1], "errors": [[error]], "seconds": [[0.0]], "ranks": [[error]]}
        one = tensor.present(kept | {"FCMP": fcmp}).comparisons[0]
        assert one.agrees is agrees
        assert one.ours == f"{error / best:.4f}"
    assert len(found.figures) == 2
    for draw in found.figures.values():
        ax = Figure().subplots()
        draw(ax)
        assert ax.lines
    part = tensor.present({"HALS": kept["HALS"]})  # of an interrupted run
    assert not part.comparisons
    assert len(part.figures) == 1


def test_a_baseline_has_at_least_the_time_it_is_compared_at():
    runs = {"errors": [[3.0, 2.0, 1.0]], "seconds": [[1.0, 2.0, 4.0]]}
    assert [tensor.at_time(runs, t) for t in (0.5, 1.5, 2.0, 3.0, 9.0)] == [3.0, 2.0, 2.0, 1.0, 1.0]


@pytest.mark.skipif(FOLDER is None, reason="CONEPURSUIT_DATA names no data folder")
def test_quick_parts_of_the_head():
    parts = tensor.parts(quick=True)
    assert list(parts) == list(tensor.PAPER)
    assert tensor.load_head().shape == (197, 233, 24)
    errors = {name: parts[name]()["errors"][0][-1] for name in ("HALS", "FCMP")}
    assert errors["FCMP"] <= errors["HALS"]
