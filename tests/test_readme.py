"""What the README claims is run."""

import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

import conepursuit

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def as_claimed(result, block):
    """Assert that a result shows what the comment behind it says."""
    (claimed,) = re.findall(r"# ((?:NNLS)?Result\(.*\))", block)
    rounding = r"gap=\S+"  # the last digits of the gap are rounding
    assert re.sub(rounding, "gap", repr(result)) == re.sub(rounding, "gap", claimed)


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


def blocks_of(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def test_the_examples_of_the_readme_give_what_they_say():
    scope, blocks = {}, blocks_of("README.md")
    checked = sum(check_lines(block, scope) for block in blocks[:1])
    as_claimed(scope["result"], blocks[0])
    assert scope["result"].gap < 1e-12
    assert scope["many"].proven.all()
    checked += sum(check_lines(block, scope) for block in blocks[1:])
    assert checked == 1
    assert scope["fit"].proven.all()
    assert scope["nmf"].components_.shape == (6, 40)
    assert scope["GreedyNMF"]("auto", random_state=0).fit(scope["X"]).n_components_ == 4
    assert scope["result"].status.success
    assert (np.diff(scope["result"].x) >= 0).all()
    assert all(len(block.strip().splitlines()) <= 18 for block in blocks)
    pyplot.close("all")


@pytest.mark.parametrize(
    "page", ["extending", "choosing", "certificates", "parts", "unmixing", "scale"]
)
def test_the_examples_of_the_docs_run(page):
    scope = {}
    for block in blocks_of(f"docs/{page}.md"):
        exec(block, scope)
    pyplot.close("all")
    if page == "extending":
        assert scope["result"].status.success
        parts = [block for block in blocks_of("docs/extending.md") if "class " in block]
        for part in parts:  # complete, and short
            lines = part[part.index("class ") :].strip().splitlines()
            assert len([line for line in lines if line.strip()]) <= 15


def test_the_page_on_the_theory_says_what_is_true():
    page = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    scope = {}
    assert sum(check_lines(block, scope) for block in blocks_of("docs/theory.md")) == 6
    assert scope["generating_faces"]([[1.0, 0.75, 0.3], [0.25, 0.7, 0.95]]) == [
        (),
        (0,),
        (2,),
        (0, 1, 2),
    ]
    pyplot.close("all")
    for figure in re.findall(r"\]\((figures/.*?)\)", page):
        assert (ROOT / "docs" / figure).exists()


def test_links_lead_somewhere():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)


def test_every_name_in_the_tables_exists():
    parts = (ROOT / "docs" / "parts.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([A-Z][A-Za-z]+)", README + parts):
        others = ("LinearOperator", "True", "False", "ConvergenceWarning", "Lasso", "SparseCoder",
                  "NMF")  # fmt: skip
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
