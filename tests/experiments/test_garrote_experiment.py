"""The paper's table of the non-negative garrote on sonar (errata D3)."""

import os

import numpy as np
import pytest
from scipy.special import expit

from conepursuit import FCMP, NNMP, Cone, ExactStep, UnitVectors, minimize
from conepursuit.datasets import load_sonar
from conepursuit.experiments import garrote
from conepursuit.experiments import garrote_protocol as protocol
from conepursuit.testing import check_objective

FOLDER = os.environ.get("CONEPURSUIT_DATA")
needs_data = pytest.mark.skipif(FOLDER is None, reason="CONEPURSUIT_DATA names no data folder")


@pytest.fixture(scope="module")
def sonar():
    return load_sonar(all_rows=False, unit_norm=True, return_X_y=True)


@pytest.fixture(scope="module")
def outcomes(sonar):
    """All 100 splits, about 13 seconds."""
    return protocol.published_protocol(*sonar)


def random_split(seed=0, n=40, d=6):
    """Return a split of made samples."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    train, test = next(protocol.splits(n))
    return protocol.Split.fitted(X, y, train, test)


def test_splits_are_those_of_the_default_stream_of_matlab():
    stream = np.random.RandomState(5489)
    # rand(1, 3) in a fresh MATLAB session
    np.testing.assert_allclose(stream.random_sample(3), [0.8147, 0.9058, 0.1270], atol=5e-5)
    both = list(protocol.splits(207, 2))
    for train, test in both:
        assert (len(train), len(test)) == (145, 62)
        assert sorted([*train, *test]) == list(range(207))
    assert both[0][0][:5].tolist() == [122, 98, 173, 31, 39]
    assert both[1][0][:5].tolist() == [125, 188, 86, 36, 73]
    assert [len(part) for part in next(protocol.splits(208))] == [146, 62]


def test_the_ridge_penalises_its_intercept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.where(rng.random(30) < 0.7, 1.0, -1.0)
    b, beta = protocol.ridge(X, y, penalty=0.5)
    pull = y * expit(-y * (b + X @ beta))
    assert 0.5 * b == pytest.approx(pull.sum(), abs=1e-8)
    np.testing.assert_allclose(0.5 * beta, X.T @ pull, atol=1e-8)


def test_the_objective_keeps_its_contract():
    split = random_split()
    check_objective(split.loss(split.train))


def test_coordinate_descent_finds_the_certified_minimum_of_made_data():
    split = random_split()
    objective = split.loss(split.train)
    c, b, _ = split.descended(intercept=False)
    assert b == split.offset
    assert objective.value(c) == pytest.approx(
        protocol.certified_minimum(objective).value, rel=1e-7
    )
    refitted, b, _ = split.descended(intercept=True)
    assert split.loss(split.train, b).value(refitted) < objective.value(c)


def test_the_penalty_of_the_objective_is_that_of_a_cone_on_the_axes():
    split = random_split()
    objective = split.loss(split.train)
    bare = protocol.GarroteLoss(objective.Z, objective.loss.y, split.offset, penalty=0.0)
    cone = Cone(UnitVectors(objective.shape), penalty=protocol.GARROTE)
    penalised = minimize(bare, cone, FCMP(variant=1), tol=1e-7)
    expected = protocol.certified_minimum(objective)
    assert penalised.value == pytest.approx(expected.value, rel=1e-7)
    np.testing.assert_allclose(penalised.x, expected.x, atol=1e-3)


@needs_data
def test_samples(sonar):
    X, y = sonar
    assert X.shape == (207, 60)
    assert (y == 1).sum() == 111
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    X_all, y_all = load_sonar(unit_norm=True, return_X_y=True)
    np.testing.assert_array_equal(X_all[1:], X)
    assert (y_all == 1).sum() == 111


@needs_data
@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("ridge", [127, 123, 122, 127], [48, 49, 48, 46]),
        ("NNMP", [119, 113, 123, 118], [46, 47, 47, 45]),
        ("PWMP", [119, 114, 121, 118], [46, 47, 46, 45]),
        ("PWMP (E1)", [119, 114, 121, 118], [46, 47, 46, 45]),
        ("FCMP", [120, 117, 120, 121], [48, 48, 46, 46]),
        ("converged", [120, 114, 125, 123], [46, 50, 49, 45]),
        ("NNG", [122, 120, 123, 125], [47, 52, 49, 46]),
    ],
)
def test_first_splits(outcomes, name, train, test):
    outcome = outcomes[name]
    np.testing.assert_allclose(145 * outcome.train[:4], train)
    np.testing.assert_allclose(62 * outcome.test[:4], test)


@needs_data
@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("ridge", (0.8828, 0.0228), (0.7742, 0.0431)),
        ("NNMP", (0.8345, 0.0242), (0.7419, 0.0389)),
        ("PWMP", (0.8379, 0.0241), (0.7419, 0.0392)),
        ("PWMP (E1)", (0.8379, 0.0240), (0.7419, 0.0392)),
        ("FCMP", (0.8345, 0.0237), (0.7419, 0.0401)),
        ("converged", (0.8483, 0.0245), (0.7419, 0.0418)),
        ("NNG", (0.8483, 0.0244), (0.7419, 0.0452)),
    ],
)
def test_medians_and_deviations(outcomes, name, train, test):
    outcome = outcomes[name]
    for shares, (median, deviation) in ((outcome.train, train), (outcome.test, test)):
        assert np.median(shares) == pytest.approx(median, abs=5e-5)
        assert shares.std(ddof=1) == pytest.approx(deviation, abs=2e-4)


@needs_data
def test_the_greedy_rows_are_the_published_ones(outcomes):
    rows = {"NNMP": "NNMP", "PWMP": "PWMP (E1)"}
    for printed, ours in rows.items():
        for shares, (median, deviation) in zip(
            (outcomes[ours].train, outcomes[ours].test), garrote.PAPER[printed], strict=True
        ):
            assert round(float(np.median(shares)), 4) == median
            assert round(float(shares.std(ddof=1)), 4) == deviation


@needs_data
def test_100_iterations_are_far_from_the_minimum(outcomes):
    optimal = outcomes["converged"].value
    assert np.median(optimal) == pytest.approx(68.07, abs=5e-3)
    for name, median in (("NNMP", 74.79), ("PWMP", 74.79), ("FCMP", 74.25)):
        assert np.median(outcomes[name].value) == pytest.approx(median, abs=5e-3)
        assert (outcomes[name].value > optimal).all()
    assert (outcomes["NNG"].value < optimal).all()  # its intercept is free


@needs_data
def test_methods_agree_where_they_converge(sonar):
    runs = protocol.converged(*sonar, n_splits=2)
    for name in ("FCMP variant 1", "FCMP variant 1, sphere", "PWMP", "AMP", "NNG"):
        np.testing.assert_allclose(runs[name].excess, 0.0, atol=1e-8)
    assert (runs["NNMP"].excess > 1e-6).all()  # sublinear
    assert (runs["NNMP"].excess < 1e-3).all()


@needs_data
def test_with_patience_nnmp_agrees_too(sonar):
    split = protocol.Split.fitted(*sonar, *next(protocol.splits(207)))
    objective = split.loss(split.train)
    best = protocol.certified_minimum(objective).value
    cone = Cone(UnitVectors(objective.shape))
    near = minimize(objective, cone, NNMP(ExactStep()), max_iter=20_000, tol=1e-6)
    assert near.value == pytest.approx(best, rel=1e-6)


@needs_data
def test_what_is_found(outcomes, sonar):
    """The greedy rows are the paper's, the row of coordinate descent is not."""
    kept = {name: {k: v.tolist() for k, v in vars(o).items()} for name, o in outcomes.items()}
    near = protocol.converged(*sonar, n_splits=1)
    ends = {name: {k: v.tolist() for k, v in vars(o).items()} for name, o in near.items()}
    found = garrote.present({"published": kept, "all-rows": kept, "converged": ends})
    agrees = {one.what.split(":")[0]: one.agrees for one in found.comparisons}
    assert agrees == {"NNMP": True, "PWMP": True, "FCMP": True, "NNG": False}
    assert "integers" in found.comparisons[-1].remark
    assert "0.0241, with the step of the released code 0.0240 (errata E1), published 0.0240" in (
        found.comparisons[1].remark
    )
    cells = [cell for table in found.tables for row in table.rows for cell in row]
    for piece in ("PWMP (E1)", ".8345±.0242", "FCMP variant 1"):
        assert piece in cells
