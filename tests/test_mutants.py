"""The tool behind `make mutants` changes what it says, and knows files and tests that exist."""

import ast
import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOL = ROOT / "tools" / "mutants.py"


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("mutants", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_and_tests_exist(tool):
    for path, tests in tool.TESTS.items():
        assert (ROOT / path).exists()
        assert all((ROOT / test.split("::")[0]).exists() for test in tests)
    rows = tomllib.loads(tool.KNOWN.read_text(encoding="utf-8"))["known"]
    assert all(
        row["reason"] and {"file", "code", "change"} >= row.keys() - {"reason"} for row in rows
    )


def test_every_kind_of_change_is_made(tool):
    source = '''"""Text."""
if a < b and c is None:
    x = -y
    x += max(x, 2.0)
else:
    raise ValueError(a + b)
'''
    made = {ast.unparse(new).splitlines()[0] for _, new in tool.replacements(ast.parse(source))}
    assert made == {
        "pass", "a < b or c is None", "a <= b", "a > b", "c is not None", "y", "x -= max(x, 2.0)",
        "min", "4.0", "0",
    }  # fmt: skip


def test_a_mutant_is_the_file_with_one_change(tool):
    path = "src/conepursuit/rounding.py"
    source = (ROOT / path).read_text(encoding="utf-8")
    mutants = list(tool.python_mutants(path))
    assert len(mutants) > 30
    for mutant in mutants:
        ast.parse(mutant.text)
        assert mutant.text != source
        assert mutant.code in source
    known = [{"file": "*/rounding.py", "code": "^UNIT", "change": "-> 0$"}]
    assert 0 < sum(tool.is_known(mutant, known) for mutant in mutants) < 5


def test_lines_of_code_of_cpp_are_changed(tool):
    path = "cpp/loss_fits/allowance.hpp"
    for mutant in tool.cpp_mutants(path):
        assert not mutant.code.startswith(("//", "#"))
        assert mutant.text.count("\n") == (ROOT / path).read_text(encoding="utf-8").count("\n")
