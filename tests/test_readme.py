"""What the README claims is run."""

import gzip
import re
import tomllib
from inspect import signature
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

import conepursuit
from conepursuit.cli import main

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
    assert checked == 5
    assert scope["fit"].proven.all()
    assert scope["nmf"].components_.shape == (6, 40)
    for rule in ("auto", "sources"):
        assert scope["GreedyNMF"](rule, random_state=0).fit(scope["X"]).n_components_ == 4
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


def write_files_of_the_command_line():
    """Write the files that docs/command_line.md names, with made numbers, in the same formats."""
    rng = np.random.default_rng(0)
    bases = "ACGT"
    names = [(f"{b}>{c}", a + b + d) for b in "CT" for c in bases if c != b
             for a in bases for d in bases]  # fmt: skip
    channels = [f"{context[0]}[{change}]{context[2]}" for change, context in names]
    A, B = rng.dirichlet(np.ones(96), 8).T, rng.poisson(50, (96, 3))
    order = rng.permutation(96)

    def lines(separator, head, rows, values):
        cells = ([*row, *map(str, v)] for row, v in zip(rows, values.tolist(), strict=True))
        return "\n".join(separator.join(line) for line in [head, *cells]) + "\n"

    signatures = ["Type", *(f"SBS{j}" for j in range(8))]
    tumours = [f"Liver-HCC::SP{j}" for j in range(3)]
    catalogue = lines(
        ",", ["Mutation type", "Trinucleotide", *tumours], [names[i] for i in order], B[order]
    )
    by_name = [[channel] for channel in channels]
    texts = {
        "COSMIC_v3.4_SBS_GRCh37.txt": lines("\t", signatures, by_name, A),
        "panel.tsv": lines("\t", ["Type", *tumours], by_name[:40], B[:40]),
        "spectrum.txt": "".join(f"{value}\n" for value in A @ rng.random(8)),
        "samples_by_row.csv": lines(",", ["id", *channels], [[t] for t in tumours], B.T),
    }
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8")
    with gzip.open("WGS_PCAWG.96.csv.gz", "wt") as file:
        file.write(catalogue)
    with gzip.open("library.tsv.gz", "wt") as file:
        file.write(lines("\t", signatures[1:], [[]] * 96, A))
    np.savez("arrays.npz", A=A, b=B[:, 0])


def test_the_commands_of_the_docs_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_files_of_the_command_line()
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    commands = "".join(re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL)).splitlines()
    assert len(commands) == 9
    for command in commands:
        program, *arguments = command.split()
        assert program == "conepursuit"
        assert main(arguments) == 0, (command, capsys.readouterr().err)
    assert "dropped are 56 of COSMIC_v3.4_SBS_GRCh37.txt and 0 of panel" in capsys.readouterr().out


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
            assert page.name != "README.md", f"{target} is no absolute address: it fails on PyPI"
            assert (page.parent / target).exists(), (page.name, target)
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    own = re.findall(rf"\]\({address}/(?:blob|raw)/main/([^)#]+)[^)]*\)", README)
    assert len(own) == len(re.findall(rf"\]\({address}", README)) > 10
    assert all((ROOT / target).exists() for target in own)


def test_every_name_in_the_tables_exists():
    parts = (ROOT / "docs" / "parts.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([A-Z][A-Za-z]+)", README + parts):
        others = ("LinearOperator", "True", "False", "ConvergenceWarning", "Lasso", "SparseCoder",
                  "NMF")  # fmt: skip
        assert hasattr(conepursuit, name) or name in others, name


def calls_in_tables(page):
    """Return the pieces of code in tables of a page that are calls."""
    text = (ROOT / page).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [code for row in rows for code in re.findall(r"`([\w.]+\(.*?\))`", row)]


def table_scope():
    """Return values for the names that calls in the tables of the docs use."""
    rng = np.random.default_rng(0)
    A = rng.random((30, 8))
    b = rng.poisson(A @ (10 * rng.random(8))).astype(float) + 1
    scope = {name: getattr(conepursuit, name) for name in conepursuit.__all__}
    scope |= {"A": A, "D": A, "B": A, "X": csr_array(A), "Q": A.T @ A, "c": A.T @ b, "b": b}
    scope |= {"y": np.ones(30), "k": 3, "n": 4, "s": 5.0, "delta": 2.0, "beta": 1.5, "e": 0.1}
    scope |= {"radius": 1.0, "your_oracle": lambda g: -g, "your_function": lambda x: (x @ x, 2 * x)}
    scope["loss"] = scope["f"] = scope["objective"] = conepursuit.LeastSquares(b)
    scope["atoms"] = conepursuit.Dictionary(A)
    scope["domain"] = conepursuit.Cone(scope["atoms"])
    scope["algorithm"] = conepursuit.FCMP()
    return scope


@pytest.mark.parametrize("page", ["README.md", "docs/choosing.md", "docs/parts.md"])
def test_every_call_in_a_table_runs(page):
    scope = table_scope()
    for code in calls_in_tables(page):
        name = code.split("(")[0]
        kind = getattr(conepursuit, name, None)
        if name in ("Lasso", "from_estimator"):  # not a name of this library, or a method
            continue
        if isinstance(kind, type) and issubclass(kind, BaseEstimator):  # the names of parameters
            for given in re.findall(r"[\w]+(?==)|[\w]+(?=[,)])", code.replace("...", "")):
                assert given in signature(kind).parameters or f'"{given}"' in code, (code, given)
        else:
            eval(code, scope | {"shape": (4, 5, 6) if "Tensor" in name else (4, 5)})


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
