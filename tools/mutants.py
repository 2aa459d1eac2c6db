"""Change the code of the proofs in one place at a time, and list the changes that no test notices.

    python tools/mutants.py
    python tools/mutants.py --python 300 --cpp 10 --seed 7 --only certify

Each changed file, a mutant, lies in a copy of the tree, never in the tree itself. It is killed if
one of the tests in `TESTS` fails or takes far too long. ``known_mutants.toml`` beside this file
lists mutants that are left out, each with the reason why no test needs to notice it.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
KNOWN = Path(__file__).with_name("known_mutants.toml")
NOT_COPIED = (".*", "build", "out", "__pycache__")


def fuzz(*groups: str) -> tuple[str, ...]:
    """Return the tests that are a short fuzz of some groups of calls."""
    return tuple(f"tests/test_fuzz.py::test_a_short_fuzz_finds_nothing[{name}]" for name in groups)


GRAM = (
    "tests/least_squares/test_gram_gaps.py", "tests/least_squares/test_gram_proofs.py",
    "tests/least_squares/test_nnls.py", *fuzz("gram"),
)  # fmt: skip
SUMS = (
    "tests/least_squares/test_tiny_sums.py", "tests/least_squares/test_sums.py", *fuzz("sums"),
)  # fmt: skip
SQUARES = (
    "tests/least_squares/test_sharp_proofs.py", "tests/least_squares/test_nnls.py",
    "tests/least_squares/test_nnls_many.py", "tests/least_squares/test_rounding.py", *fuzz("nnls"),
)  # fmt: skip
FITS = (
    "tests/loss_fits/test_stationary.py", "tests/loss_fits/test_hard_losses.py",
    "tests/loss_fits/test_nnfit.py", *fuzz("nnfit"),
)  # fmt: skip
AUDITS = (
    "tests/pursuit/test_hard_cases.py", "tests/pursuit/test_certificates.py", "tests/objectives",
    *fuzz("audits", "own", "minimize"), *FITS,
)  # fmt: skip
KERNELS = ("tests/loss_fits/test_many_targets_kernel.py", "tests/objectives", *FITS)
PYTHON, CPP = "src/conepursuit/", "cpp/"
TESTS = {
    f"{PYTHON}pursuit/certify.py": AUDITS,
    f"{PYTHON}loss_fits/last_step.py": FITS,
    f"{PYTHON}least_squares/proofs.py": SQUARES,
    f"{PYTHON}least_squares/gram.py": GRAM,
    f"{PYTHON}least_squares/gram_proofs.py": GRAM,
    f"{PYTHON}least_squares/sum_target.py": SUMS,
    f"{PYTHON}least_squares/audit.py": (*SQUARES, *SUMS),
    f"{PYTHON}objectives/entrywise.py": AUDITS,
    f"{PYTHON}objectives/glm.py": AUDITS,
    f"{PYTHON}objectives/divergence.py": AUDITS,
    f"{PYTHON}objectives/composite.py": AUDITS,
    f"{PYTHON}objectives/quadratic.py": AUDITS,
    f"{PYTHON}rounding.py": ("tests/test_rounding_constants.py", *SQUARES, *SUMS),
    f"{CPP}least_squares/certificate.hpp": SQUARES,
    f"{CPP}least_squares/few_atoms.hpp": SQUARES,
    f"{CPP}loss_fits/certificate.hpp": KERNELS,
    f"{CPP}loss_fits/divergences.hpp": KERNELS,
    f"{CPP}loss_fits/allowance.hpp": KERNELS,
}
"""The files that are changed, and the tests of each, in the order in which they run."""

SWAPPED: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,),
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
    ast.And: (ast.Or,), ast.Or: (ast.And,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
PATTERNS = (
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "), (r" \+= ", " -= "),
    (r" < ", " <= "), (r" < ", " > "), (r" > ", " >= "), (r" > ", " < "), (r" <= ", " < "),
    (r" >= ", " > "), (r"\bmax\(", "min("), (r"\bmin\(", "max("), (r" && ", " || "),
    (r" \|\| ", " && "), (r"\b\d+\.\d*\b", "0.0"), (r"\b\d+\.\d*\b", r"2.0 * \g<0>"),
)  # fmt: skip


class Mutant(NamedTuple):
    """A file with one change: the line where it is, what it replaces, and by what."""

    path: str
    line: int
    code: str
    change: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}\n    {self.code}"


def python_mutants(path: str) -> Iterator[Mutant]:
    """Yield the mutants of a file of Python."""
    source = (ROOT / path).read_text(encoding="utf-8")
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    whole = source.encode()
    for node, new in replacements(ast.parse(source)):
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        old, fresh = whole[first:last].decode(), ast.unparse(new)
        text = (whole[:first] + fresh.encode() + whole[last:]).decode()
        code = lines[node.lineno - 1].decode().strip()
        yield Mutant(path, node.lineno, code, f"{short(old)} -> {short(fresh)}", text)


def short(code: str) -> str:
    """Return code on one line, cut to 100 characters."""
    line = " ".join(code.split())
    return line if len(line) <= 100 else f"{line[:97]}..."


def replacements(node: ast.AST) -> Iterator[tuple[Any, ast.AST]]:
    """Yield the parts of a tree that can be replaced, each with what replaces it."""
    if isinstance(node, ast.Raise | ast.JoinedStr) or getattr(node, "name", "") == "__repr__":
        return
    yield from ((node, new) for new in changed(node))
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from replacements(child)


def changed(node: Any) -> Iterator[ast.AST]:
    """Yield what may stand in place of a node of a tree."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        for kind in SWAPPED.get(type(node.op), ()):
            yield with_field(node, "op", kind())
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for kind in SWAPPED.get(type(node.ops[0]), ()):
            yield with_field(node, "ops", [kind()])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    if isinstance(node, ast.Name) and node.id in NAMES:
        yield ast.Name(NAMES[node.id])
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield with_field(node, "attr", NAMES[node.attr])
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield from map(ast.Constant, (2 * node.value, 0) if node.value else (1,))
    statement = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
    if statement or isinstance(node, ast.Assign | ast.AugAssign | ast.If):
        yield ast.Pass()


def with_field(node: ast.AST, name: str, value: Any) -> ast.AST:
    """Return a copy of a node with another value of one field."""
    new = copy.copy(node)
    setattr(new, name, value)
    return new


def cpp_mutants(path: str) -> Iterator[Mutant]:
    """Yield the mutants of a file of C++: each pattern at each place of the lines of code."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines(keepends=True)
    for i, line in enumerate(lines):
        code = line.split("//")[0].rstrip()
        if code.lstrip().startswith(("#", "*", "/*", "template", "for (", "using", "static_")):
            continue
        for pattern, new in PATTERNS:
            for found in re.finditer(pattern, code):
                fresh = found.expand(new)
                other = line[: found.start()] + fresh + line[found.end() :]
                text = "".join([*lines[:i], other, *lines[i + 1 :]])
                change = f"{found[0].strip()} -> {fresh.strip()}"
                yield Mutant(path, i + 1, code.strip(), change, text)


def is_known(mutant: Mutant, known: list[dict[str, str]]) -> bool:
    """Return whether a row of the list of known mutants describes this one."""
    return any(
        fnmatch(mutant.path, row.get("file", "*"))
        and re.search(row.get("code", ""), mutant.code)
        and re.search(row.get("change", ""), mutant.change)
        for row in known
    )


class Tree:
    """A copy of the tree with the compiled kernels, in which mutants are tried.

    Parameters
    ----------
    place : path
        The folder for it.
    """

    def __init__(self, place: Path) -> None:
        from conepursuit import kernels

        self.place, self.clock = place, 0
        shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
        for compiled in Path(kernels.FILE).parent.glob(f"*{Path(kernels.FILE).suffix}"):
            shutil.copy(compiled, place / "src" / "conepursuit" / "kernels")
        self.level = kernels.level()

    def write(self, path: str, text: str) -> None:
        """Write a file, with a time of its own, by which Python knows what it has compiled."""
        self.clock += 10
        (self.place / path).write_text(text, encoding="utf-8")
        if path.startswith(PYTHON):
            os.utime(self.place / path, (self.clock, self.clock))

    def try_(self, mutant: Mutant, limits: dict[str, float]) -> str:
        """Return how a mutant ends: "killed", "survived" or "not compiled"."""
        original = (ROOT / mutant.path).read_text(encoding="utf-8")
        self.write(mutant.path, mutant.text)
        try:
            if mutant.path.startswith(CPP) and not self.compiles():
                return "not compiled"
            passed = self.passes(TESTS[mutant.path], limits[mutant.path])
            return "survived" if passed else "killed"
        finally:
            self.write(mutant.path, original)

    def passes(self, tests: tuple[str, ...], limit: float | None) -> bool:
        """Return whether tests pass within a limit in seconds."""
        # Without -S, the editable installation would be found first.
        program = [sys.executable, "-S", "-m", "pytest", "-x", "-q", "--no-header"]
        command = [*program, "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
        paths = [str(self.place / "src"), sysconfig.get_path("purelib")]
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        environment = {**os.environ, **one, "PYTHONPATH": os.pathsep.join(paths)}
        try:
            done = subprocess.run(
                command, cwd=self.place, env=environment, timeout=limit, check=False,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def compiles(self) -> bool:
        """Build the kernels for this processor from the sources of the copy; return whether."""
        build = self.place / "build"
        scripts = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
        configure = [
            "cmake", "-G", "Ninja", "-S", str(self.place), "-B", str(build),
            f"-DPython_EXECUTABLE={sys.executable}", f"-DLEVELS={self.level}",
            f"-DCMAKE_INSTALL_PREFIX={self.place / 'src'}",
        ]  # fmt: skip
        compile_ = ["cmake", "--build", str(build), "--target", "install"]
        return all(
            subprocess.run(
                command, env={**os.environ, "PATH": scripts}, check=False, capture_output=True
            ).returncode
            == 0
            for command in (configure, compile_)
        )


def limits_of(tree: Tree, paths: set[str]) -> dict[str, float]:
    """Return the limit in seconds of each file: five times what its tests take unchanged."""
    if any(path.startswith(CPP) for path in paths) and not tree.compiles():
        sys.exit("without any change the kernels do not compile")
    taken: dict[str, float] = {}
    for test in sorted({test for path in paths for test in TESTS[path]}):
        began = monotonic()
        if not tree.passes((test,), None):
            sys.exit(f"without any change {test} fails")
        taken[test] = monotonic() - began
    return {path: 30 + 5 * sum(taken[test] for test in TESTS[path]) for path in paths}


def main() -> int:
    """Try a sample of mutants; return 0 if none survives but those that are known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=int, default=40, help="mutants of Python files")
    parser.add_argument("--cpp", type=int, default=2, help="mutants of C++, each compiled")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--only", default="", help="a part of the paths of the files")
    asked = parser.parse_args()
    known = tomllib.loads(KNOWN.read_text(encoding="utf-8"))["known"]
    draw, sample = random.Random(asked.seed), []
    for start, made, count in (
        (PYTHON, python_mutants, asked.python), (CPP, cpp_mutants, asked.cpp)
    ):  # fmt: skip
        paths = [path for path in TESTS if path.startswith(start) and asked.only in path]
        found = [mutant for path in paths for mutant in made(path) if not is_known(mutant, known)]
        sample += draw.sample(found, min(count, len(found)))
    with tempfile.TemporaryDirectory() as folder:
        trees: SimpleQueue[Tree] = SimpleQueue()
        for job in range(asked.jobs):
            trees.put(Tree(Path(folder) / str(job)))
        limits = limits_of(tree := trees.get(), {mutant.path for mutant in sample})
        trees.put(tree)

        def judged(mutant: Mutant) -> str:
            tree = trees.get()
            try:
                ended = tree.try_(mutant, limits)
            finally:
                trees.put(tree)
            print(f"{ended}: {mutant}" if ended == "survived" else ended, flush=True)
            return ended

        with ThreadPoolExecutor(asked.jobs) as pool:
            endings = list(pool.map(judged, sample))
    print({ending: endings.count(ending) for ending in sorted(set(endings))})
    return int("survived" in endings)


if __name__ == "__main__":
    sys.exit(main())
