"""What the README claims is run."""

import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

import conepursuit
from conepursuit.testing import check_algorithm

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def as_claimed(result, block):
    """Assert that a result shows what the comment behind it says."""
    (claimed,) = re.findall(r"# ((?:NNLS)?Result\(.*\))", block)
    rounding = r"gap=\S+"  # the last digits of the gap are rounding
    assert re.sub(rounding, "gap", repr(result)) == re.sub(rounding, "gap", claimed)


def test_the_first_examples_give_what_they_say():
    scope = {}
    exec(BLOCKS[0], scope)
    as_claimed(scope["result"], BLOCKS[0])
    assert scope["result"].gap < 1e-12
    assert scope["many"].proven.all()
    exec(BLOCKS[3], scope)
    exec(BLOCKS[1], scope)
    as_claimed(scope["result"], BLOCKS[1])
    assert scope["result"].certificate.gap < 1e-12
    assert (scope["result"].weights > 0).all()
    exec(BLOCKS[2], scope)
    assert scope["model"].coef_.shape == (3, 100)
    assert scope["model"].gap_.shape == (3,)
    exec(BLOCKS[4], scope)
    assert scope["fit"].proven.all()
    exec(BLOCKS[5], scope)
    assert scope["nmf"].components_.shape == (6, 40)
    assert scope["GreedyNMF"]("auto", random_state=0).fit(scope["X"]).n_components_ == 4
    pyplot.close("all")


def test_the_logistic_example_converges():
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((200, 10)), rng.choice([-1.0, 1.0], 200)
    scope = {"X": X, "labels": labels, "np": np, **vars(conepursuit)}
    exec(BLOCKS[6], scope)
    assert scope["result"].status.success


def check_lines(block, scope):
    """Run a block; where a line is an expression with a number behind it, compare the two."""
    exec(block, scope)
    checked = 0
    for line, number in re.findall(r"^(.*?)  # (-?\d+\.\d+)", block, flags=re.MULTILINE):
        expression = line.split(" = ")[-1]
        digits = len(number.split(".")[1])
        assert eval(expression, scope) == pytest.approx(float(number), abs=0.6 * 10.0**-digits)
        checked += 1
    return checked


def test_the_page_on_the_theory_says_what_is_true():
    page = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    scope = {}
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert sum(check_lines(block, scope) for block in blocks) == 6
    assert scope["generating_faces"]([[1.0, 0.75, 0.3], [0.25, 0.7, 0.95]]) == [
        (),
        (0,),
        (2,),
        (0, 1, 2),
    ]
    pyplot.close("all")
    for figure in re.findall(r"\]\((figures/.*?)\)", page):
        assert (ROOT / "docs" / figure).exists()
    assert check_lines(BLOCKS[8], {**vars(conepursuit), "np": np}) == 1


def test_the_algorithm_of_the_example_keeps_its_contract():
    scope = dict(vars(conepursuit))
    exec(BLOCKS[-1], scope)
    check_algorithm(scope["Steepest"]())


def test_every_name_in_the_tables_exists():
    for name in re.findall(r"`([A-Z][A-Za-z]+)", README):
        others = ("LinearOperator", "True", "ConvergenceWarning", "Lasso", "SparseCoder", "NMF")
        assert hasattr(conepursuit, name) or name in others, name


def test_ci_runs_the_commands_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text()
    assert "make test" in script
    assert "make lint" in script
    assert "make test" in README


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(path, monkeypatch):
    matplotlib.use("Agg")
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(True))
    monkeypatch.setattr("sys.argv", [str(path)])
    with matplotlib.rc_context():
        exec(compile(path.read_text(), path, "exec"), {"__name__": "__main__"})
    pyplot.close("all")
    assert shown
