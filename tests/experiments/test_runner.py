"""The experiments by one command: all of them on a small budget, and what the runner keeps."""

import json
import os
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from signal import SIGINT, raise_signal

import numpy as np
import pytest
from rich.console import Console
from scipy.optimize import nnls

from conepursuit import PWMP, Cone, LeastSquares, Status, UnitVectors, minimize
from conepursuit.datasets import FILES, DatasetNotFoundError, iter_synthetic
from conepursuit.experiments import runner, synthetic
from conepursuit.experiments.findings import Comparison, Experiment, Findings, Table
from conepursuit.experiments.pursuits import fnnomp, nnomp

FOLDER = os.environ.get("CONEPURSUIT_DATA")
needs_data = pytest.mark.skipif(FOLDER is None, reason="CONEPURSUIT_DATA names no data folder")


def console():
    return Console(file=StringIO(), width=100)


@needs_data
def test_all_experiments_on_a_small_budget(tmp_path):
    shown = console()
    assert runner.reproduce([], tmp_path, True, shown)
    tmp_path = tmp_path / "quick"
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in runner.NAMES:
        found = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        assert found["experiment"] == name
        assert found["comparisons"]
        assert {"what", "paper", "ours", "agrees", "remark"} <= set(found["comparisons"][0])
        assert (tmp_path / f"{name}.md").read_text(encoding="utf-8").startswith("# ")
        assert runner.experiment(name).title in report
    assert "<svg" in (tmp_path / "synthetic-1.svg").read_text(encoding="utf-8")
    printed = shown.file.getvalue()
    assert "207 samples, as published" in printed
    assert "…" not in printed


def tiny(log, fail=()):
    """Return an experiment of two parts that count how often they are run."""

    def part(name):
        def compute():
            if name in fail:
                raise KeyboardInterrupt
            log.append(name)
            return {"value": float(len(log))}

        return compute

    def present(results):
        rows = [(name, f"{kept['value']:g}") for name, kept in results.items()]
        return Findings(
            [Comparison("a < b", "1 & 2", str(len(rows)), np.bool_(True))],
            [Table("Parts", ("part", "value"), rows, "A note.")],
            {"A line": lambda ax: ax.plot([0, 1], [1, 2])},
        )

    return Experiment(
        "tiny", "A tiny one", "Nowhere", lambda _: {n: part(n) for n in "ab"}, present
    )


def test_finished_parts_are_kept(tmp_path, monkeypatch):
    log = []
    monkeypatch.setattr(runner, "experiment", lambda name: tiny(log, fail="b"))
    with pytest.raises(KeyboardInterrupt):
        runner.reproduce(["tiny"], tmp_path, False, console())
    assert log == ["a"]
    monkeypatch.setattr(runner, "experiment", lambda name: tiny(log))
    assert runner.reproduce(["tiny"], tmp_path, False, console())
    assert log == ["a", "b"]
    runner.reproduce(["tiny"], tmp_path, False, console())
    assert log == ["a", "b"]
    runner.reproduce(["tiny"], tmp_path, True, console())  # another budget
    assert log == ["a", "b", "a", "b"]
    (tmp_path / "parts" / "tiny" / "a.json").write_text('{"result": 1, "sec')  # damaged
    runner.reproduce(["tiny"], tmp_path, False, console())
    assert log[4:] == ["a"]
    monkeypatch.setattr(runner, "fingerprint", lambda: "other code")
    runner.reproduce(["tiny"], tmp_path, False, console())
    assert log[5:] == ["a", "b"]
    assert not list(tmp_path.rglob("*.part"))


def test_ctrl_c_inside_a_run_ends_the_experiment(tmp_path, monkeypatch):
    """`minimize` returns what it has; an experiment must not take that for its answer."""
    interrupted = []

    def interrupt(*_, **__):
        interrupted.append(True)
        raise KeyboardInterrupt

    def compute():
        f, cone = LeastSquares(np.ones(5)), Cone(UnitVectors(5))
        result = minimize(f, cone, PWMP(), callback=interrupt)
        assert result.status is Status.INTERRUPTED
        return result.unless_interrupted().value

    stopped = Experiment("stopped", "", "", lambda _: {"a": compute}, lambda _: Findings([], []))
    monkeypatch.setattr(runner, "experiment", lambda name: stopped)
    with pytest.raises(KeyboardInterrupt):
        runner.reproduce(["stopped"], tmp_path, False, console())
    assert interrupted
    assert not list(tmp_path.rglob("*.json"))


def test_ctrl_c_that_is_swallowed_ends_the_experiment_too():
    def swallow():
        with suppress(KeyboardInterrupt):
            raise_signal(SIGINT)

    with pytest.raises(KeyboardInterrupt), runner.heeding_interrupts():
        swallow()
    with runner.heeding_interrupts():
        pass


def test_experiments_finished_before_stay_in_the_report(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "experiment", lambda name: replace(tiny([]), name=name, title=name))
    monkeypatch.setattr(runner, "NAMES", ("first", "second"))
    runner.reproduce(["first"], tmp_path, False, console())
    runner.reproduce(["second"], tmp_path, False, console())
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert report.index('id="experiment-first"') < report.index('id="experiment-second"')
    runner.reproduce(["second"], tmp_path, True, console())
    quick = (tmp_path / "quick" / "report.html").read_text(encoding="utf-8")
    assert 'id="experiment-first"' not in quick


def test_what_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "experiment", lambda name: tiny([]))
    runner.reproduce(["tiny"], tmp_path, False, console())
    text = (tmp_path / "tiny.md").read_text(encoding="utf-8")
    assert "| a < b | 1 & 2 | 2 | agrees |" in text
    assert "| a | 1 |" in text
    found = json.loads((tmp_path / "tiny.json").read_text(encoding="utf-8"))
    assert found["comparisons"][0]["agrees"] is True
    assert found["tables"][0]["rows"] == [["a", "1"], ["b", "2"]]
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "a &lt; b" in report
    assert "numpy" in report


def lacking():
    raise DatasetNotFoundError("samson.npz is missing.", FILES["samson"])


def test_an_experiment_without_its_data_is_left_out(tmp_path, monkeypatch):
    absent = Experiment("absent", "Gone", "", lambda _: {"a": lacking}, lambda _: Findings([], []))
    monkeypatch.setattr(runner, "experiment", lambda name: absent if name == "absent" else tiny([]))
    shown = console()
    assert not runner.reproduce(["absent", "tiny"], tmp_path, False, shown)
    printed = " ".join(shown.file.getvalue().split())
    assert "Left out: Gone (absent): data that are not here: samson. Get the originals" in printed
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<code>conepursuit datasets add samson Samson.mat</code>" in report
    assert not runner.reproduce(["absent"], tmp_path / "none", False, shown)
    assert not (tmp_path / "none" / "report.html").exists()
    assert (tmp_path / "tiny.json").exists()


def test_parts_without_their_data_are_left_out_and_the_others_shown(tmp_path, monkeypatch):
    whole = tiny([])
    parts = {**whole.parts(False), "c": lacking, "d": lacking}
    monkeypatch.setattr(runner, "experiment", lambda name: replace(whole, parts=lambda _: parts))
    assert not runner.reproduce(["tiny"], tmp_path, True, console())
    folder = tmp_path / "quick"
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert "A tiny one (tiny), of it c, d: data that are not here: samson." in report
    assert "| b | 2 |" in (folder / "tiny.md").read_text(encoding="utf-8")
    assert (folder / "tiny.md").read_text(encoding="utf-8").startswith("# A tiny one (quick)\n")


def test_fnnomp_is_stuck_in_one_problem_of_the_script():
    """Errata D1: 41.4 above the optimum with cut steps, whose weights are never negative."""
    stuck = {}
    for i, (atoms, y) in enumerate(iter_synthetic(20, stream="script")):
        optimum = 0.5 * nnls(atoms, y)[1] ** 2
        values, weights = fnnomp(atoms, y, 50)
        assert (weights >= 0).all()
        residual = y - atoms @ weights
        assert 0.5 * residual @ residual == pytest.approx(values[-1], rel=1e-9)
        if values[-1] > optimum * (1 + 1e-6):
            stuck[i] = values[-1] - optimum
    assert list(stuck) == [17]
    assert stuck[17] == pytest.approx(41.4, abs=0.05)


def test_nnomp_is_fcmp():
    atoms, y = next(iter_synthetic(1, 3))
    outcomes = synthetic.run([(atoms, y)], n_iter=12)
    np.testing.assert_allclose(
        outcomes["NNOMP"].mean, outcomes["FCMP variant 1"].mean, atol=1e-9 * (y @ y)
    )
    assert nnomp(atoms, y, 50).weights.min() >= 0


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_tables_cut_no_number_on_a_narrow_terminal(columns):
    table = Table(
        "title", ("method", *(f"t = {t}" for t in (10, 20, 50)), "bad steps", "atoms", "µs/step"),
        [("method with a name", "1.5e-01", "2.5e-02", "3.5e-03", "0.0 %", "19.1", "26257")] * 2,
    )  # fmt: skip
    console = Console(width=columns, file=StringIO())
    console.print(runner.rich_table(table, columns))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= columns
    assert all(text.count(cell) == 2 for cell in ("with", "name", *table.rows[0][1:]))
    assert "…" not in text
    assert ("bad steps" in text) == (columns > 80)
