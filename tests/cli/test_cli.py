"""The command line: what it prints, writes and returns."""

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

from conepursuit import (
    ConicRegressor,
    GreedyCP,
    GreedyNMF,
    Huber,
    KullbackLeibler,
    LeastSquares,
    Logistic,
    Poisson,
    nnfit,
    nnls,
)
from conepursuit.cli import fits, main
from conepursuit.cli.problems import read_problem
from conepursuit.losses import LOSSES

COMMANDS = ("solve", "factorize", "unmix", "demo", "reproduce", "datasets")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def data():
    """Save A, b and B, and return them."""
    rng = np.random.default_rng(0)
    A, b, B = rng.random((30, 40)), rng.random(30), rng.random((30, 7))
    for name, array in {"A": A, "b": b, "B": B}.items():
        np.save(f"{name}.npy", array)
    return SimpleNamespace(A=A, b=b, B=B)


def run(capsys, *arguments):
    """Run a command; return its exit code and what it printed on stdout and on stderr."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def answer(path="x.json"):
    """Return what was written."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def weights(content):
    """Return the weights of all atoms and targets in what was written."""
    x = np.zeros((content["shape"][1], len(content["targets"])))
    for i, target in enumerate(content["targets"]):
        x[target["support"], i] = target["weights"]
    return x


def test_version_and_help_come_from_the_package(capsys):
    code, out, _ = run(capsys, "--version")
    assert code == 0
    assert re.fullmatch(r"conepursuit \d+\.\d+\S*\n", out)
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name, capsys):
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert f"Example: conepursuit {name}" in out


def test_without_a_command_the_help_is_printed(capsys):
    assert run(capsys) == run(capsys, "--help")


def test_help_imports_nothing_that_computes():
    program = """
import sys, conepursuit
before = set(sys.modules)
from conepursuit.cli import main
assert main(["solve", "--help"]) == 0
heavy = ("numpy", "scipy", "sklearn", "pandas", "matplotlib", "conepursuit")
new = {name for name in set(sys.modules) - before if name.split(".")[0] in heavy}
light = {"conepursuit.cli" + part for part in ("", ".app", ".data", ".options")}
assert new == light, new
assert not {"sklearn", "matplotlib"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_the_module_runs():
    command = [sys.executable, "-m", "conepursuit.cli", "solve", "no.npy", "b.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "conepursuit: no.npy: there is no such file.\n"


def test_solve_prints_support_residual_and_proof(data, capsys):
    code, out, err = run(capsys, "solve", "A.npy", "b.npy")
    fit = nnls(data.A, data.b)
    assert (code, err) == (0, "")
    assert "30 x 40" in out
    assert f"{len(fit.support)} of 40 atoms" in out
    assert f"residual  {fit.rnorm:.6g}" in out
    assert f"gap       {fit.gap:.2g} of 1/2 ||A x - b||^2, proven" in out
    assert "without a limit" not in out
    for j in fit.support:
        assert re.search(rf"^ +{j} +{re.escape(f'{fit.x[j]:.6g}')} *$", out, re.MULTILINE)


def test_solve_writes_every_digit(data, capsys):
    fit = nnls(data.A, data.b)
    assert run(capsys, "solve", "A.npy", "b.npy", "--out", "x.json")[0] == 0
    found = answer()
    (target,) = found["targets"]
    assert (weights(found)[:, 0] == fit.x).all()
    assert (target["residual"], target["gap"], target["proven"]) == (fit.rnorm, fit.gap, True)
    assert (target["status"], target["n_iter"]) == (fit.status.name, fit.n_iter)
    assert run(capsys, "solve", "A.npy", "b.npy", "--out", "x.csv")[0] == 0
    written = np.loadtxt("x.csv", delimiter=",", skiprows=1)
    assert (written == np.stack([np.arange(40), fit.x], axis=1)).all()


def test_names_of_a_header_are_those_of_atoms(data, capsys):
    names = [f"[red]sig {j}[/red]" for j in range(40)]
    np.savetxt("A.csv", data.A, delimiter=",", header=",".join(names), comments="")
    code, out, _ = run(capsys, "solve", "A.csv", "b.npy", "--max-atoms", 3, "--out", "x.csv")
    assert code == 0
    support = nnls(data.A, data.b, max_atoms=3).support
    assert all(names[j] in out for j in support)
    with open("x.csv", encoding="utf-8") as file:
        assert [line.split(",")[0] for line in file] == ["atom", *names]


def test_a_long_support_is_cut(capsys):
    np.save("A.npy", np.eye(50))
    np.save("b.npy", np.arange(1.0, 51.0))
    _, out, _ = run(capsys, "solve", "A.npy", "b.npy")
    assert "and 30 more" in out
    assert re.findall(r"^ +(\d+) +\d+ *$", out, re.MULTILINE) == [str(j) for j in range(49, 29, -1)]


def test_at_most_so_many_atoms(data, capsys):
    code, out, _ = run(capsys, "solve", "A.npy", "b.npy", "--max-atoms", 4, "--out", "x.json")
    assert code == 0
    assert "at most 4 atoms" in out
    assert "to the best fit without a limit on atoms" in out
    assert "at most 1 atom\n" in run(capsys, "solve", "A.npy", "b.npy", "--max-atoms", 1)[1]
    out = run(capsys, "solve", "A.npy", "B.npy", "--max-atoms", 2)[1]
    assert "of 1/2 ||A x - b||^2" in out
    assert "to the best fit without a limit on atoms" in out
    assert (weights(answer())[:, 0] == nnls(data.A, data.b, max_atoms=4).x).all()


@pytest.mark.parametrize("penalty", [0.0, 0.7])
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("squared_error", LeastSquares),
        ("huber", Huber),
        ("poisson", Poisson),
        ("kullback_leibler", KullbackLeibler),
        ("logistic", Logistic),
    ],
)
def test_losses_and_penalties_are_those_of_nnfit(name, loss, penalty, data, capsys):
    b = np.rint(data.b)
    np.save("b.npy", b)
    options = ("--loss", name, "--penalty", penalty, "--out", "x.json")
    assert run(capsys, "solve", "A.npy", "b.npy", *options)[0] == 0
    (target,) = answer()["targets"]
    if name == "squared_error" and not penalty:
        assert target["residual"] == nnls(data.A, b).rnorm
        return
    fit = nnfit(loss(b), data.A, penalty=penalty)
    assert (weights(answer())[:, 0] == fit.x).all()
    assert (target["value"], target["gap"]) == (fit.value, fit.gap)


@pytest.mark.parametrize("penalty", [0.0, 1.5])
def test_a_limit_on_atoms_goes_with_losses_and_penalties(penalty, data, capsys):
    options = ("--loss", "poisson", "--penalty", penalty, "--max-atoms", 3, "--out", "x.json")
    assert run(capsys, "solve", "A.npy", "B.npy", *options)[0] == 0
    x, found = weights(answer()), answer()["targets"]
    model = ConicRegressor(
        "poisson", alpha=penalty / 30, max_atoms=3, tol=1e-8, fit_intercept=False
    )
    np.testing.assert_allclose(x.T, model.fit(data.A, data.B).coef_, rtol=1e-10)
    for i, target in enumerate(found):
        value = Poisson(data.B[:, i]).value(data.A @ x[:, i]) + penalty * x[:, i].sum()
        assert target["value"] == pytest.approx(value)
        assert target["gap"] == pytest.approx(30 * model.gap_[i])


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_many_targets(loss, data, capsys, monkeypatch):
    monkeypatch.setattr(fits, "PARTS", 3)
    header = ",".join("abcdefg")
    np.savetxt("B.csv", data.B, delimiter=",", header=header, comments="")
    options = ("--loss", loss, "--out")
    code, out, err = run(capsys, "solve", "A.npy", "B.csv", *options, "x.json")
    assert (code, err) == (0, "")
    assert "7 targets" in out
    assert "7 of 7" in out
    expected = nnls(data.A, data.B) if loss == "squared_error" else nnfit(Huber(data.B), data.A)
    assert (weights(answer()) == expected.x).all()
    assert [target["name"] for target in answer()["targets"]] == list("abcdefg")
    assert run(capsys, "solve", "A.npy", "B.csv", *options, "x.csv")[0] == 0
    assert (np.loadtxt("x.csv", delimiter=",", skiprows=1)[:, 1:] == expected.x).all()
    with open("x.csv", encoding="utf-8") as file:
        assert file.readline() == f"atom,{header}\n"


def test_progress_is_told_part_by_part(data):
    steps = []
    problem = read_problem("A.npy", "B.npy")
    assert fits.fit_all(problem, steps.append).x.shape == (40, 7)
    assert steps == [1] * 7
    np.save("B.npy", np.ones((30, 120)))
    steps.clear()
    fits.fit_all(read_problem("A.npy", "B.npy"), steps.append)
    assert steps == [3] * 40


def test_what_is_wrong_with_the_last_target_is_said_before_the_first_is_fitted(
    data, capsys, monkeypatch
):
    monkeypatch.setattr(fits, "nnfit", lambda *args, **options: pytest.fail("fitted"))
    data.B[3, 6] = -1.0
    np.save("B.npy", data.B)
    assert run(capsys, "solve", "A.npy", "B.npy", "--loss", "poisson")[0] == 2


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "1/2 ||A x - b||^2"),
        (("--penalty", 2), "1/2 ||A x - b||^2 + 2 sum(x)"),
        (("--loss", "poisson"), "poisson loss"),
        (("--loss", "poisson", "--penalty", 0.5), "poisson loss + 0.5 sum(x)"),
    ],
)
def test_what_the_gap_is_of_is_said(options, expected, data, capsys):
    _, out, _ = run(capsys, "solve", "A.npy", "b.npy", *options, "--out", "x.json")
    assert re.search(rf"gap +\S+ of {re.escape(expected)}, proven", out)
    assert answer()["objective"] == expected


@pytest.mark.parametrize("options", [(), ("--loss", "poisson", "--max-atoms", 2)])
def test_a_gap_that_is_not_finite_is_never_proven(options, data, capsys, monkeypatch):
    from conepursuit.estimators import linear

    def without_gap(fit):
        return SimpleNamespace(**vars(fit) | {"gap": np.inf, "proven": True})

    def fitted(*arguments):
        return [without_gap(fit) for fit in fit_linear(*arguments)]

    fit_linear = linear.fit_linear
    found = SimpleNamespace(x=np.zeros(40), rnorm=1.0, gap=np.inf, proven=True,
                            status=nnls(data.A, data.b).status, n_iter=1)  # fmt: skip
    monkeypatch.setattr(fits, "nnls", lambda *args, **options: found)
    monkeypatch.setattr(linear, "fit_linear", fitted)
    _, out, _ = run(capsys, "solve", "A.npy", "b.npy", *options, "--out", "x.json")
    assert "proven" not in out
    assert re.search("gap +not known", out)
    assert answer()["targets"][0]["proven"] is False


def test_an_audit_without_a_gap_is_not_proven(data, capsys, monkeypatch):
    from conepursuit.cli import auditing

    nothing = SimpleNamespace(gap=np.inf, violation=0.0, method="bound")
    monkeypatch.setattr(auditing, "certify_nnls", lambda *args: nothing)
    np.save("x.npy", np.zeros(40))
    code, out, _ = run(capsys, "solve", "A.npy", "b.npy", "--certify", "x.npy")
    assert code == 1
    assert "proven" not in out
    nothing.gap, nothing.violation = np.array([0.0] * 3 + [np.inf] * 4), np.zeros(7)
    np.save("x.npy", np.zeros((40, 7)))
    code, out, _ = run(capsys, "solve", "A.npy", "B.npy", "--certify", "x.npy")
    assert code == 1
    assert "3 of 7" in out


@pytest.mark.parametrize("limit", [(), ("--max-atoms", 30)])
def test_the_parameter_of_a_loss_and_a_tolerance_are_passed_on(limit, data, capsys):
    options = ("--loss", "huber", "--delta", 0.05, "--out", "x.json", *limit)
    _, out, _ = run(capsys, "solve", "A.npy", "b.npy", *options)
    assert "delta 0.05" in out
    fine = answer()
    best = nnfit(Huber(data.b, 0.05), data.A).value
    assert fine["targets"][0]["value"] == pytest.approx(best)
    run(capsys, "solve", "A.npy", "b.npy", *options, "--tol", 0.1)
    coarse = answer()
    assert (fine["delta"], fine["tol"], coarse["tol"]) == (0.05, None, 0.1)
    assert 1e-3 < coarse["targets"][0]["relative_gap"] <= 0.1
    assert fine["targets"][0]["relative_gap"] <= 1e-8


def test_a_tolerance_reaches_nnls_the_audit_and_the_sweeps(data, capsys, monkeypatch):
    seen = {}

    def nnls_with(A, b, *, tol, max_atoms):
        seen["tol"] = tol
        return nnls(A, b)

    monkeypatch.setattr(fits, "nnls", nnls_with)
    assert run(capsys, "solve", "A.npy", "b.npy", "--tol", 0.25)[0] == 0
    assert seen["tol"] == 0.25
    assert run(capsys, "solve", "A.npy", "b.npy")[0] == 0
    assert seen["tol"] == 0.0
    np.save("x.npy", 0.99 * nnls(data.A, data.b).x)
    audit = ("solve", "A.npy", "b.npy", "--certify", "x.npy")
    code, _, err = run(capsys, *audit, "--tol", 1e-5)
    assert (code, "more than 1e-05 of the decrease" in err) == (1, True)
    assert run(capsys, *audit, "--tol", 0.1)[0] == 0
    sweeps = [
        int(re.findall(r"sweeps +(\d+)", run(capsys, "factorize", "A.npy", *options)[1])[0])
        for options in (("--components", 3), ("--components", 3, "--tol", 0.1))
    ]
    assert sweeps[1] < sweeps[0]


@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "kullback_leibler"])
@pytest.mark.parametrize(("penalty", "limit"), [(0.0, ()), (0.7, ()), (0.7, ("--max-atoms", 2))])
def test_relative_gaps_are_over_the_decrease(loss, penalty, limit, data, capsys):
    options = ("--loss", loss, "--penalty", penalty, *limit, "--out", "x.json")
    _, out, _ = run(capsys, "solve", "A.npy", "B.npy", *options)
    counts = loss in ("poisson", "kullback_leibler")
    start = "the best equal weights" if counts else "x = 0"
    assert re.search(r"^ +gap / decrease +\S+ +\S+ +\S+ *$", out, re.MULTILINE)
    assert f"decrease  of that since {start}" in out
    x = weights(answer())
    for i, target in enumerate(answer()["targets"]):
        f = LOSSES[loss].of(data.B[:, i])

        def value(weights, f=f):
            return f.value(data.A @ weights) + penalty * weights.sum()

        first = value(np.zeros(40))
        if counts:
            first = minimize_scalar(lambda t, f=value: f(np.full(40, t)), bounds=(1e-3, 1)).fun
        expected = target["gap"] / (first - value(x[:, i]))
        assert target["relative_gap"] == pytest.approx(expected, rel=1e-3)


def test_a_fit_that_gains_nothing_has_no_relative_gap(capsys):
    np.save("A.npy", np.eye(2))
    np.save("b.npy", [-1.0, -2.0])
    _, out, _ = run(capsys, "solve", "A.npy", "b.npy", "--out", "x.json")
    assert "no decrease since x = 0" in out
    assert answer()["targets"][0]["relative_gap"] is None
    np.save("b.npy", [[-1.0, -1.0], [-2.0, -2.0]])
    out = run(capsys, "solve", "A.npy", "b.npy")[1]
    assert re.search("gap / decrease +- +- +- *\n", out)
    assert "decrease  of that since x = 0; none for 2 of 2 targets" in out


def test_a_row_is_to_be_transposed(data, capsys):
    np.save("row.npy", data.b[None])
    assert run(capsys, "solve", "A.npy", "row.npy")[2].endswith("for 30 x 40. Use --transpose b.\n")
    assert "ranspose" not in run(capsys, "solve", "A.npy", "A.npy", "--certify", "b.npy")[2]


def test_what_cannot_be_encoded_is_replaced():
    Path("A.csv").write_text("é,b\n1,0\n0,1\n", encoding="utf-8")
    np.save("b.npy", np.ones(2))
    command = [sys.executable, "-m", "conepursuit.cli", "solve", "A.csv", "b.npy"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert re.search(rb"^[ |]+\?[ |]+1[ |]*$", done.stdout, re.MULTILINE)


def test_sparse_files_give_what_dense_ones_do(data, capsys):
    A = np.where(data.A > 0.7, data.A, 0.0)
    np.save("A.npy", A)
    sparse.save_npz("S.npz", sparse.csr_array(A))
    for name in ("A.npy", "S.npz"):
        assert run(capsys, "solve", name, "b.npy", "--out", f"{name}.json")[0] == 0
    assert answer("A.npy.json")["targets"] == answer("S.npz.json")["targets"]


@pytest.mark.parametrize("name", ["x.npy", "x.json", "x.csv"])
def test_an_audit_passes_a_solution(name, data, capsys):
    np.save("x.npy", nnls(data.A, data.b).x)
    if name != "x.npy":
        run(capsys, "solve", "A.npy", "b.npy", "--out", name)
    code, out, err = run(capsys, "solve", "A.npy", "b.npy", "--certify", name)
    assert (code, err) == (0, "")
    assert re.search(r"gap +\S+ of 1/2 \|\|A x - b\|\|\^2, proven", out)
    assert "violation" in out


def test_an_audit_fails_what_is_none(data, capsys):
    x = nnls(data.A, data.b).x
    x[x.argmax()] *= 0.99
    np.save("x.npy", x)
    code, out, err = run(capsys, "solve", "A.npy", "b.npy", "--certify", "x.npy")
    assert code == 1
    assert "proven" in out
    assert err.startswith("conepursuit: x.npy is not a solution: the gap is more than")
    np.save("x.npy", -x)
    code, _, err = run(capsys, "solve", "A.npy", "b.npy", "--certify", "x.npy")
    assert code == 2
    assert "x.npy: the weights must not be negative; the least is -" in err
    assert "np." not in err


def test_an_audit_passes_what_is_close_enough(data, capsys):
    np.save("x.npy", nnls(data.A, data.b).x * (1 + 1e-10))
    assert run(capsys, "solve", "A.npy", "b.npy", "--certify", "x.npy")[0] == 0


def test_an_audit_of_many_targets_names_the_first_that_fails(data, capsys):
    run(capsys, "solve", "A.npy", "B.npy", "--out", "x.csv")
    code, out, _ = run(capsys, "solve", "A.npy", "B.npy", "--certify", "x.csv")
    assert code == 0
    assert "7 of 7" in out
    x = nnls(data.A, data.B).x
    x[:, 4:6] = 0.0
    np.save("x.npy", x)
    code, _, err = run(capsys, "solve", "A.npy", "B.npy", "--certify", "x.npy")
    assert code == 1
    assert "for 2 of 7 targets, the first of them '4'" in err


def test_zero_is_a_solution_where_it_is_one(capsys):
    np.save("A.npy", np.random.default_rng(0).random((9, 3)))
    np.save("b.npy", -np.ones(9))
    np.save("x.npy", np.zeros(3))
    assert run(capsys, "solve", "A.npy", "b.npy", "--certify", "x.npy")[0] == 0
    code, out, _ = run(capsys, "solve", "A.npy", "b.npy")
    assert code == 0
    assert "0 of 3 atoms" in out


def test_rounding_does_not_fail_a_solution_that_gains_next_to_nothing(capsys):
    A = np.array([[0.3], [0.7], [0.2]])
    b = np.array([-7.0, 3.0, 0.0]) + 1e-9
    np.save("A.npy", A)
    np.save("b.npy", b)
    np.save("x.npy", nnls(A, b).x * (1 + 1e-4))
    assert run(capsys, "solve", "A.npy", "b.npy", "--certify", "x.npy")[0] == 0


def test_what_has_not_converged_is_exit_code_1(data, capsys, monkeypatch):
    monkeypatch.setattr(fits, "nnls", partial(nnls, max_iter=1))
    code, out, err = run(capsys, "solve", "A.npy", "b.npy", "--out", "x.json")
    assert code == 1
    assert "MAX_ITER" in out
    assert err.startswith("conepursuit: not converged: max_iter iterations were made")
    assert answer()["targets"][0]["status"] == "MAX_ITER"
    code, _, err = run(capsys, "solve", "A.npy", "B.npy")
    assert code == 1
    assert "not converged for 7 of 7 targets" in err


def test_classes_that_can_be_separated_have_no_minimiser(capsys):
    np.save("A.npy", np.eye(3))
    np.save("b.npy", np.array([1, 1, 0]))
    code, out, _ = run(capsys, "solve", "A.npy", "b.npy", "--loss", "logistic")
    assert code == 1
    assert "UNBOUNDED" in out


def test_an_interrupt_is_one_line_and_leaves_no_file(data):
    program = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
from conepursuit.cli import fits, main
from conepursuit.cli.problems import read_problem
from conepursuit.losses import LOSSES
def nnls(*args, **options):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
fits.nnls = nnls
sys.exit(main(["solve", "A.npy", "b.npy", "--out", "x.json"]))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "conepursuit: interrupted.\n")
    assert {path.name for path in Path().iterdir()} == {"A.npy", "b.npy", "B.npy"}


def test_a_run_of_the_loop_that_is_interrupted_is_no_answer(data, capsys, monkeypatch):
    calls, value_and_gradient = [], Huber.value_and_gradient

    def later(self, x):
        calls.append(x)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return value_and_gradient(self, x)

    monkeypatch.setattr(Huber, "value_and_gradient", later)
    options = ("--loss", "huber", "--max-atoms", 5)
    code, out, err = run(capsys, "solve", "A.npy", "b.npy", *options)
    assert (code, out, err) == (130, "", "conepursuit: interrupted.\n")


WRONG = {
    "solve no.npy b.npy": "no.npy: there is no such file",
    "solve A.npy B2.npy": "B2.npy must have a row for each of the 30 rows of A.npy",
    "solve b.npy b.npy": "b.npy must hold a matrix",
    "solve A.npy cube.npy": "cube.npy must hold a vector, or a matrix",
    "solve A.npy b.npy --loss foo": "loss must be one of 'squared_error'",
    "solve A.npy b.npy --loss logistic": "Logistic needs labels of two classes",
    "solve A.npy minus.npy --loss poisson": "Poisson needs data that are not negative",
    "solve A.npy b.npy --penalty -1": "--penalty",
    "solve A.npy b.npy --penalty inf": "penalty must be non-negative and finite; got inf",
    "solve A.npy b.npy --max-atoms 0": "--max-atoms",
    "solve A.npy b.npy --certify b.npy --loss huber": "--certify audits a fit by least squares",
    "solve A.npy b.npy --delta 2": "--delta is the parameter of --loss huber; got squared_error",
    "solve A.npy b.npy --loss huber --delta 0": "delta",
    "solve A.npy b.npy --tol -1": "--tol",
    "solve A.npy b.npy --match": "--match needs names of rows in both files; A.npy has none",
    "solve A.npy b.npy --transpose C": "'C' is not one of 'a', 'b', 'both'",
    "solve A.npy b.npy --transpose A": "b.npy must have a row for each of the 40 rows of A.npy",
    "solve A.npy b.npy --certify b.npy --delta 2": "--certify audits a fit by least squares",
    "solve A.npy b.npy --certify b.npy --out x.csv": "--certify audits a fit by least squares",
    "solve A.npy b.npy --certify b.npy": "b.npy must hold a weight for each column of A.npy",
    "solve A.npy b.npy --certify no.json": "no.json: no such file or directory",
    "solve A.npy b.npy --out x.txt": "--out must end in .json or .csv; got 'x.txt'",
    "solve A.npy b.npy --out no/x.csv": "there is no folder no",
    "solve A.npy b.npy --out folder.csv": "folder.csv is a folder",
    "solve A.npy same.csv --out ./same.csv": "--out would replace same.csv, which is read",
    "solve A.npy": "Missing argument",
    "solve A.npy b.npy --certain": "No such option",
    "sovle A.npy b.npy": "No such command 'sovle'",
    "factorize A.npy --components 0": "must be a positive integer, auto or sources; got '0'",
    "factorize A.npy --components many": "got 'many'",
    "factorize A.npy --components 500": "--components must be at most",
    "factorize A.npy --loss huber": "one of 'squared_error', 'kullback_leibler'; got 'huber'",
    "factorize minus.npy": "minus.npy must hold a matrix",
    "factorize signed.npy": "Negative values in data",
    "factorize A.npy --format csv": "--format csv needs a folder to write to. Add --out DIR.",
    "solve /dev/null b.npy": "/dev/null: only named files are read",
    "solve - b.npy": "-: only named files are read",
    "factorize A.npy --out b.npy": "--out must be a folder; b.npy is a file",
    "reproduce synthetic everything": "there is no experiment 'everything'. Use synthetic,",
}


@pytest.mark.parametrize("command", WRONG)
def test_bad_input_is_one_line_and_exit_code_2(command, data, capsys, tmp_path):
    np.save("B2.npy", data.B[:29])
    np.save("cube.npy", np.ones((30, 2, 2)))
    np.save("minus.npy", -data.b)
    np.save("signed.npy", data.A - 0.5)
    np.savetxt("same.csv", data.b)
    (tmp_path / "folder.csv").mkdir()
    code, out, err = run(capsys, *command.split())
    assert (code, out) == (2, "")
    assert re.fullmatch(r"conepursuit: [^\n]*\n", err)
    assert WRONG[command] in err


def test_too_little_memory_and_missing_packages_are_one_line(data, capsys, monkeypatch):
    for error, text in (
        (MemoryError("Unable to allocate 9 TiB"), "there is not enough memory. Unable to allo"),
        (ModuleNotFoundError("none", name="matplotlib"), "matplotlib is not installed. Use pip"),
    ):
        monkeypatch.setattr(fits, "nnls", lambda *args, error=error, **options: _raise(error))
        code, _, err = run(capsys, "solve", "A.npy", "b.npy")
        assert code == 2
        assert err.startswith(f"conepursuit: {text}")


def _raise(error):
    raise error


def test_a_bug_is_not_called_bad_input(data, monkeypatch):
    monkeypatch.setattr(fits, "nnls", lambda *args, **options: _raise(TypeError("a bug")))
    with pytest.raises(TypeError, match="a bug"):
        main(["solve", "A.npy", "b.npy"])


@pytest.fixture(name="X")
def matrix():
    rng = np.random.default_rng(0)
    return rng.random((20, 3)) @ rng.random((3, 15)) + 0.1 * rng.random((20, 15))


@pytest.mark.parametrize("loss", ["squared_error", "kullback_leibler"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_factorize_writes_what_the_estimator_finds(kind, loss, X, capsys):
    X = X if kind == "dense" else sparse.csc_array(np.where(X > 0.6, X, 0.0))
    name = "X.npy" if kind == "dense" else "X.npz"
    (np.save if kind == "dense" else sparse.save_npz)(name, X)
    options = ("--components", 3, "--loss", loss, "--out", "new/fit")
    code, out, err = run(capsys, "factorize", name, *options)
    model = GreedyNMF(3, loss=loss, path=True, oracle_rounds=4)
    W = model.fit_transform(X)
    assert (code, err) == (0, "")
    assert "20 x 15" in out
    assert f"{model.rank_path_[2]:.6g}" in out
    assert (np.load("new/fit/W.npy") == W).all()
    assert (np.load("new/fit/H.npy") == model.components_).all()
    path = np.loadtxt("new/fit/rank_path.csv", delimiter=",", skiprows=1)
    expected = np.stack([[1, 2, 3], model.rank_path_, model.oracle_accuracy_], axis=1)
    assert (path == expected).all()
    summary = answer("new/fit/summary.json")
    assert summary["reconstruction_err"] == model.reconstruction_err_
    assert summary["converged"] is True


@pytest.mark.parametrize("loss", ["squared_error", "kullback_leibler"])
def test_factorize_takes_a_tensor_as_it_takes_a_matrix(loss, capsys):
    rng = np.random.default_rng(0)
    X = np.einsum("ir,jr,kr->ijk", *(rng.random((n, 2)) for n in (6, 5, 4)))
    X += 0.1 * rng.random(X.shape)
    X[0, 1, 2] = np.nan
    np.save("X.npy", X)
    for format_ in ("npy", "csv"):
        options = ("--components", 2, "--loss", loss, "--out", "fit", "--format", format_)
        code, out, err = run(capsys, "factorize", "X.npy", *options)
        assert (code, err) == (0, "")
        assert "6 x 5 x 4" in out
    model = GreedyCP(2, loss=loss, path=True).fit(X)
    assert f"{model.reconstruction_err_:.6g}" in out
    for mode, factor in enumerate(model.factors_):
        assert (np.load(f"fit/factor_{mode}.npy") == factor).all()
        table = np.loadtxt(f"fit/factor_{mode}.csv", delimiter=",", skiprows=1)
        assert (table == factor).all()
    assert (np.load("fit/weights.npy") == model.weights_).all()
    with open("fit/weights.csv", encoding="utf-8") as file:
        assert file.read().splitlines()[1] == f"component 0,{float(model.weights_[0])!r}"
    summary = answer("fit/summary.json")
    assert summary["shape"] == [6, 5, 4]
    assert summary["reconstruction_err"] == model.reconstruction_err_
    X[3, 2, 1] = np.inf
    np.save("X.npy", X)
    assert "got inf at [3, 2, 1], counted from 0" in run(capsys, "factorize", "X.npy")[2]
    np.save("X.npy", np.ones((2, 3, 4)))
    code, _, err = run(capsys, "factorize", "X.npy", "--components", 7)
    assert code == 2
    assert "at most 6 for a tensor of 2 x 3 x 4" in err


def test_factorize_chooses_the_rank_with_entries_missing(X, capsys):
    X[3, 4] = np.nan
    lines = [",".join(["gene", *(f"s{j}" for j in range(15))])]
    lines += [",".join([f"g{i}", *("" if x != x else repr(x) for x in row.tolist())])
              for i, row in enumerate(X)]  # fmt: skip
    with open("X.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    options = ("--out", "fit", "--format", "csv")
    code, out, _ = run(capsys, "factorize", "X.csv", *options)
    assert code == 0
    assert "held-out loss" in out
    assert "chosen" in out
    assert max(map(len, out.splitlines())) <= 80
    model = GreedyNMF(path=True, oracle_rounds=4).fit(X)
    summary = answer("fit/summary.json")
    assert (summary["asked_for"], summary["n_components"]) == ("auto", model.n_components_)
    assert summary["held_out_path"] == model.held_out_path_.tolist()
    with open("fit/H.csv", encoding="utf-8") as file:
        rows = [line.strip().split(",") for line in file]
    assert rows[0] == ["", *(f"s{j}" for j in range(15))]
    assert (np.array(rows[1])[1:].astype(float) == model.components_[0]).all()
    with open("fit/W.csv", encoding="utf-8") as file:
        rows = [line.strip().split(",") for line in file]
    assert [row[0] for row in rows[1:]] == [f"g{i}" for i in range(20)]
    W = np.array([row[1:] for row in rows[1:]]).astype(float)
    assert (model.transform(X) == W).all()


def test_factorize_shows_how_the_number_of_sources_was_found(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    rng = np.random.default_rng(0)
    made = rng.gamma(0.5, size=(30, 3)) @ rng.gamma(0.5, size=(3, 40))
    np.save("X.npy", made * rng.uniform(0.8, 1.2, made.shape))
    code, out, _ = run(capsys, "factorize", "X.npy", "--components", "sources", "--out", "fit")
    assert code == 0
    summary = answer("fit/summary.json")
    assert (summary["asked_for"], summary["n_components"]) == ("sources", 3)
    row = next(line.split() for line in out.splitlines() if "chosen" in line)
    assert row[:2] == ["3", f"{summary['stability_path'][2]:.4g}"]
    assert row[2].strip("#") == ""
    curve = out[out.index("The rank by agreement") : out.index("Non-negative")]
    assert max(map(len, curve.splitlines())) <= 60


def test_a_factorisation_that_has_not_converged_is_written(X, capsys, monkeypatch):
    from conepursuit.cli import factoring

    np.save("X.npy", X)
    slow = partial(GreedyNMF, max_iter=1, rank_sweeps=1, tol=0.0)
    monkeypatch.setattr(factoring, "GreedyNMF", slow)
    code, _, err = run(capsys, "factorize", "X.npy", "--components", 3, "--out", "fit")
    assert code == 1
    assert err.startswith("conepursuit: not converged: GreedyNMF made max_iter = 1 sweeps")
    assert err.count("\n") == 1
    assert answer("fit/summary.json")["converged"] is False


def test_a_long_path_of_ranks_is_cut(capsys):
    np.save("X.npy", np.random.default_rng(0).random((30, 30)))
    _, out, _ = run(capsys, "factorize", "X.npy", "--components", 23)
    assert "ranks 1 to 3 are not shown" in out
    assert len(re.findall(r"^ +\d+ +\S+ +[01]\.\d{4} *$", out, re.MULTILINE)) == 20


def test_demo_is_the_synthetic_experiment(monkeypatch, capsys):
    from conepursuit.experiments import synthetic

    called = []
    monkeypatch.setattr(synthetic, "main", called.append)
    assert run(capsys, "demo", "--out", "there")[0] == 0
    assert called == [["--out", "there"]]


@pytest.mark.parametrize(("complete", "expected"), [(True, 0), (False, 1)])
def test_reproduce_passes_on_what_to_run(complete, expected, monkeypatch, capsys):
    from conepursuit.experiments import runner

    called = []

    def reproduce(names, out, quick, console):
        called.append((names, str(out), quick))
        return complete

    monkeypatch.setattr(runner, "reproduce", reproduce)
    first = runner.NAMES[0]
    assert run(capsys, "reproduce", first, "--out", "there", "--quick")[0] == expected
    assert run(capsys, "reproduce")[0] == expected
    assert called == [([first], "there", True), ([], "out", False)]


def test_the_help_of_reproduce_says_what_and_how_long(capsys):
    from conepursuit.cli.app import EXPERIMENTS
    from conepursuit.experiments import runner

    assert EXPERIMENTS == runner.NAMES
    _, out, _ = run(capsys, "reproduce", "--help")
    words = " ".join(out.split())
    assert ", ".join(runner.NAMES) in words
    assert "about half an hour, and about a minute with --quick" in words
    assert "not part of the package is needed for kl, unmixing and most of nmf" in words


def test_where_missing_data_belongs_is_said(capsys, monkeypatch, tmp_path):
    from conepursuit.datasets import FILES, cache_folder

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CONEPURSUIT_DATA", raising=False)
    out = run(capsys, "datasets")[1]
    assert out.splitlines()[-1].endswith(f"they are added to {cache_folder()}.")
    for file in FILES.values():
        told = f"{file.name} is not here. {file.advice}\n  from {file.source}" in out
        assert told != file.packaged
    monkeypatch.setenv("CONEPURSUIT_DATA", str(tmp_path / "mine"))
    last = run(capsys, "datasets")[1].splitlines()[-1]
    assert last.startswith(f"Files are looked for in {tmp_path / 'mine'} (CONEPURSUIT_DATA), ")
    assert last.endswith(f"they are added to {tmp_path / 'mine'}.")


def test_datasets_are_listed(capsys, monkeypatch, tmp_path):
    from conepursuit.datasets import FILES

    monkeypatch.setenv("CONEPURSUIT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    altered = tmp_path / FILES["samson"].path
    altered.parent.mkdir()
    altered.write_bytes(b"")
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = run(capsys, "datasets")
    assert code == 0
    assert all(name in out for name in FILES)
    assert re.search(r"samson +│ altered", out)
    assert f"samson is altered, remove {altered}" in out
    assert re.search(r"sonar +│ yes ", out)
    assert re.search(r"urban +│ no ", out)
    assert "CC BY 4.0" in out
