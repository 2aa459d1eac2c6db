"""Options: shell completion, and what fits on a narrow terminal."""

import os
import subprocess
import sys

import numpy as np
import pytest

from conepursuit.cli import main

COMPLETED = {
    "conepursuit so": ["solve"],
    "conepursuit solve A B --loss ku": ["kullback_leibler"],
    "conepursuit solve A B --transpose b": ["b", "both"],
    "conepursuit unmix X --extractor s": ["spa", "snpa"],
    "conepursuit reproduce th": ["theory"],
    "conepursuit solve A B --de": ["--delta"],
}

COMPLETING = """
import os, sys
from conepursuit.cli import main
for words in sys.argv[1:]:
    os.environ |= {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    try:
        main([])
    except SystemExit as end:
        print(f"\\nexit code {end.code}")
assert not {"numpy", "scipy", "sklearn", "matplotlib"} & set(sys.modules)
"""

HELPING = """
import sys
from conepursuit.cli import main
for command in sys.argv[1:]:
    assert main([command, "--help"]) == 0
"""


def run(program, arguments, **environment):
    """Run a program in a process of its own, as a shell does; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_shells_complete_without_numpy():
    out = run(COMPLETING, COMPLETED, _CONEPURSUIT_COMPLETE="complete_bash")
    answers = [answer.split() for answer in out.split("exit code 0")]
    assert answers == [*COMPLETED.values(), []]


def test_a_shell_is_told_how_to_complete():
    out = run(COMPLETING, ["conepursuit"], _CONEPURSUIT_COMPLETE="source_bash")
    assert "complete -o default -F _conepursuit_completion conepursuit" in out


@pytest.mark.parametrize("columns", [60, 80])
def test_help_cuts_no_name(columns):
    commands = ["solve", "factorize", "unmix", "demo", "reproduce"]
    out = run(HELPING, commands, COLUMNS=str(columns))
    assert all(f"conepursuit {command}" in out for command in commands)
    assert "…" not in out
    assert "a|b|both" in out  # as the message about a wrong one says
    assert max(map(len, out.splitlines())) <= columns


@pytest.fixture
def _long_names(tmp_path, monkeypatch):
    """Save tables of numbers of all sizes, with names that are wider than the terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.integers(-99, 99, 9)
    names = ",".join(f"{'x' * 70}{j}" for j in range(9))
    np.savetxt("A.csv", rng.random((12, 9)), delimiter=",", header=names, comments="")
    np.savetxt("B.csv", rng.random((12, 9)) * sizes, delimiter=",", header=names, comments="")
    np.savetxt("b.csv", rng.random(12))


@pytest.mark.usefixtures("_long_names")
@pytest.mark.parametrize(
    "command",
    [
        "solve A.csv b.csv --loss kullback_leibler --penalty 0.0123456 --max-atoms 3",
        "solve A.csv B.csv --out x.csv",
        "solve A.csv B.csv --certify x.csv",
        "factorize A.csv --components 3 --loss kullback_leibler",
    ],
)
def test_tables_fit_60_columns(command, capsys):
    if "--certify" in command:
        main(["solve", "A.csv", "B.csv", "--out", "x.csv"])
        capsys.readouterr()
    assert main(command.split()) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 60
