"""The paper's synthetic experiment (errata D1, plain protocol)."""

import numpy as np
import pytest
from scipy.optimize import nnls

from conepursuit import AMP, FCMP, NNMP, PWMP, Cone, Dictionary, LeastSquares, minimize
from conepursuit.datasets import iter_synthetic, make_synthetic
from conepursuit.experiments import synthetic


@pytest.fixture(scope="module")
def errors():
    """Suboptimality of 20 runs against an optimum that KKT certifies."""
    rng = np.random.default_rng(0)
    out = {"NNMP": [], "AMP": [], "PWMP": [], "FCMP0": [], "FCMP1": []}
    for _ in range(20):
        D, y = make_synthetic(rng)
        w, residual = nnls(D, y)
        gradient = D.T @ (D @ w - y)
        assert gradient.min() >= -1e-10 * np.linalg.norm(y)
        assert abs(gradient @ w) <= 1e-10 * (y @ y)
        for name, algorithm in zip(
            out, (NNMP(), AMP(), PWMP(), FCMP(variant=0), FCMP(variant=1)), strict=True
        ):
            run = minimize(LeastSquares(y), Cone(Dictionary(D)), algorithm, max_iter=50, tol=0)
            error = run.trace["value"] - 0.5 * residual**2
            out[name].append(np.append(error, np.full(51 - len(error), error[-1])))
    return {name: np.array(rows) for name, rows in out.items()}


def test_errors_at_50_iterations(errors):
    last = {name: rows.mean(axis=0)[50] for name, rows in errors.items()}
    assert last["FCMP0"] <= 1e-9
    assert last["FCMP1"] <= 1e-9
    assert last["PWMP"] < 1e-2
    assert last["AMP"] < 10
    assert last["NNMP"] < 100


def test_the_origin_is_where_the_issue_says(errors):
    assert errors["NNMP"][:, 0].mean() == pytest.approx(1.3e4, rel=0.05)


@pytest.mark.parametrize("t", [10, 20, 50])
def test_order_of_the_algorithms(errors, t):
    mean = {name: rows.mean(axis=0)[t] for name, rows in errors.items()}
    for fcmp in ("FCMP0", "FCMP1"):
        assert mean[fcmp] < mean["PWMP"] < mean["AMP"] < mean["NNMP"]


def test_values_fall_and_stay_above_the_optimum(errors):
    for rows in errors.values():
        scale = rows[:, :1]
        assert (np.diff(rows, axis=1) <= 1e-14 * scale).all()
        assert (rows >= -1e-14 * scale).all()


def test_the_demo_prints_a_table_and_writes_a_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    whole = synthetic.run
    monkeypatch.setattr(synthetic, "run", lambda _: whole(iter_synthetic(2, 0)))
    synthetic.main(["--out", str(tmp_path)])
    printed = capsys.readouterr().out
    for name in ("FCMP variant 1", "PWMP affine inv.", "Frank-Wolfe", "t = 50"):
        assert name in printed
    assert max(map(len, printed.splitlines()[:-1])) <= 80
    assert (tmp_path / "synthetic.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "synthetic.svg").read_text()
