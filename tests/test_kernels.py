"""The compiled modules, their stubs, and the numbers that they share with Python."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conepursuit import kernels
from conepursuit.kernels import constants

PURPOSES = ["shared", "least_squares", "loss_fits", "factorization"]


def stubs(nodes):
    """Return the number of arguments by the name of a function, None for other names.

    The functions of a submodule are the methods of a class with its name, capitalised.
    """
    found = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = len(node.args.posonlyargs) + len(node.args.args)
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = None
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            found[node.name.lower()] = stubs(node.body)
    return found


def compiled(module):
    """Return what `stubs` does, of a compiled module."""
    found = {}
    for name, value in vars(module).items():
        if name.startswith("__"):
            continue
        if hasattr(value, "__nb_signature__"):
            found[name] = arguments(value)
        else:
            found[name] = compiled(value) if hasattr(value, "__loader__") else None
    return found


def arguments(function):
    """Return the number of arguments, the same for all types of arrays."""
    (count,) = {signature.count(": ") for signature, *_ in function.__nb_signature__}
    return count


@pytest.mark.parametrize("purpose", PURPOSES)
def test_stubs_have_the_functions_of_the_compiled_modules(purpose):
    text = (Path(kernels.__file__).parent / f"{purpose}.pyi").read_text()
    assert stubs(ast.parse(text).body) == compiled(getattr(kernels, purpose))


def test_numbers_in_python_are_those_in_the_kernels():
    own = {name: value for name, value in vars(constants).items() if name.isupper()}
    assert kernels.shared.numbers == own


ANSWERS = """
import json, numpy as np
from conepursuit import GreedyNMF, Poisson, nnfit, nnls
rng = np.random.default_rng(0)
answers = []
for m, n in ((20, 5), (40, 30), (30, 60)):
    A, B = rng.random((m, n)), rng.random((m, 40))
    many, counts = nnls(A, B), nnfit(Poisson(np.round(9 * B[:, :5])), A)
    assert many.proven.all() and counts.proven.all()
    answers += [many.x, nnls(A, B[:, 0]).x, counts.value]
answers.append(GreedyNMF(3, random_state=0).fit_transform(rng.random((20, 15))))
print(json.dumps([answer.tolist() for answer in answers]))
"""


def answers_at(level):
    environment = {**os.environ, "CONEPURSUIT_LEVEL": str(level)}
    command = [sys.executable, "-c", ANSWERS]
    return json.loads(subprocess.check_output(command, env=environment, text=True))


@pytest.mark.skipif(kernels.level() < 3, reason="the processor has one level")
def test_levels_of_the_processor_differ_by_rounding():
    for low, high in zip(answers_at(2), answers_at(3), strict=True):
        np.testing.assert_allclose(low, high, rtol=1e-8, atol=1e-10)
