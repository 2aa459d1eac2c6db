"""A short run of the fuzz, and its exact references held to brute force."""

import pickle
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import checks
from cases import SCOPE, Case
from exact import Problem, adjugate_of, exceeds, integers, square_sum
from families import FAMILIES
from hulls import hull_excess, solve
from kinds import KINDS
from losses import LOSSES, LossProblem
from run import chunk
from shrink import shrunk

ONE_TARGET = next(kind for kind in KINDS if kind.name == "one target")


def fractions_of(array):
    return [[Fraction(float(a)) for a in row] for row in np.atleast_2d(array)]


def brute_force(A, b, weights=None, penalty=0.0):
    """Return the least 1/2 sum w (A x - b)^2 + penalty sum(x), x >= 0, over all supports."""
    rows, target = fractions_of(A), fractions_of(b)[0]
    w = [Fraction(1)] * len(target) if weights is None else fractions_of(weights)[0]
    n = len(rows[0])

    def value(x):
        fit = [sum(a * c for a, c in zip(row, x, strict=True)) for row in rows]
        terms = (v * (f - t) ** 2 for v, f, t in zip(w, fit, target, strict=True))
        return sum(terms) / 2 + Fraction(penalty) * sum(x)

    best = value([Fraction(0)] * n)
    for k in range(1, n + 1):
        for support in combinations(range(n), k):
            G = [[sum(v * r[i] * r[j] for v, r in zip(w, rows, strict=True)) for j in support]
                 for i in support]  # fmt: skip
            c = [sum(v * r[i] * t for v, r, t in zip(w, rows, target, strict=True))
                 - Fraction(penalty) for i in support]  # fmt: skip
            level = solve(G, c)
            if level is not None and min(level) >= 0:
                x = [Fraction(0)] * n
                for j, a in zip(support, level, strict=True):
                    x[j] = a
                best = min(best, value(x))
    return best, value


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("variant", ["plain", "weights", "penalty"])
def test_the_exact_reference_finds_the_minimum_that_brute_force_finds(name, variant):
    rng = np.random.default_rng(list(name.encode()))
    for m, n in ((3, 4), (4, 2), (1, 3)):
        A, B = FAMILIES[name](rng, m, n, 2)
        weights = rng.integers(0, 3, m) + 0.1 if variant == "weights" else None
        penalty = 0.01 * float(np.abs(B).max()) if variant == "penalty" else 0.0
        X = rng.random((n, 2)) * (rng.random((n, 2)) < 0.7)
        found = Problem(A, B, weights, penalty).excesses(X)
        for i in range(2):
            least, value = brute_force(A, B[:, i], weights, penalty)
            assert Fraction(*found[i]) == value([Fraction(float(a)) for a in X[:, i]]) - least


def test_lawson_and_hanson_alone_find_the_minimum():
    rng = np.random.default_rng(0)
    for _ in range(40):
        A, b = rng.integers(-2, 3, (3, 5)).astype(float), rng.integers(-3, 4, (3, 1)).astype(float)
        for penalty in (0.0, 0.5):
            problem = Problem(A, b, penalty=penalty)
            support = problem._atom_by_atom(problem.c)
            _, N, d, g = problem.solve(support, problem.c)
            assert d > 0
            assert (N >= 0).all()
            assert (g >= 0).all()


def test_exact_answers_to_cases_made_by_hand():
    # atoms that are all but opposite reach (0, 1) with weights of 1e15
    problem = Problem(np.array([[1.0, -1.0], [0.0, 1e-15]]), np.array([[0.0], [1.0]]))
    assert Fraction(*problem.excesses(np.zeros((2, 1)))[0]) == Fraction(1, 2)
    assert np.allclose(problem.solution(0, problem.minimiser(0, ())), 1e15)
    # a target in the polar cone: the origin is the minimiser
    problem = Problem(np.eye(2), -np.ones((2, 1)))
    assert problem.excesses(np.zeros((2, 1)))[0][0] == 0
    assert Fraction(*problem.excesses(np.ones((2, 1)))[0]) == 3
    # numbers whose squares are no floats
    problem = Problem(np.array([[1e300]]), np.array([[1e-300]]))
    assert Fraction(*problem.excesses(np.zeros((1, 1)))[0]) == Fraction(1e-300) ** 2 / 2


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.group} {kind.name}")
def test_kinds_travel_between_processes(kind):
    assert pickle.loads(pickle.dumps(kind)) is kind


def test_integers_and_powers_are_the_floats():
    values = np.array([[1.0, -0.1, 5e-324], [0.0, 1e300, -3.0]])
    for axis in (None, 0, 1):
        k, e = integers(values, axis)
        e = np.broadcast_to(e if axis is None else np.expand_dims(e, axis), values.shape)
        for value, whole, power in zip(values.flat, k.flat, e.flat, strict=True):
            assert Fraction(float(value)) == int(whole) * Fraction(2) ** int(power)


def test_the_adjugate_of_independent_rows():
    A = np.array([[1, 2, 3, 0], [0, 1, 1, 0], [1, 1, 2, 1]], dtype=object)  # a + b = c
    kept, adjugate, det = adjugate_of(A.T @ A)
    assert kept == [0, 1, 3]
    G = (A.T @ A)[np.ix_(kept, kept)]
    assert (adjugate @ G == det * np.eye(3, dtype=int)).all()


def test_the_comparison_with_a_gap_has_no_tolerance():
    assert exceeds((1, 10), np.nextafter(0.1, 0))
    assert not exceeds((1, 10), 0.1)  # the float is a little above 1/10
    assert square_sum([3.0, 4.0], [1.0, 0.5]) == Fraction(17, 2)


def test_hulls_made_by_hand():
    assert hull_excess(np.eye(2), np.array([2.0, 1.5]), 1.0, np.zeros(2)) == Fraction(25, 16)
    assert hull_excess(np.eye(2), np.array([0.25, -1.0]), 1.0, np.array([0.25, 0.0])) == 0


@pytest.mark.parametrize("name", LOSSES)
def test_a_gap_that_is_too_small_is_noticed_for_every_loss(name):
    rng = np.random.default_rng(1)
    A = rng.random((5, 3)) + 0.1
    b = LOSSES[name].data(A @ [1.0, 0.0, 2.0] + 0.3 * rng.standard_normal(5) - 1.0)
    problem = LossProblem(name, A, b, penalty=0.01)
    best = min(problem.candidates(np.ones(3)), key=lambda y: float(problem.value(y)))
    missed = float(problem.value(np.ones(3)) - problem.value(best))
    assert missed > 1e-3
    assert problem.false(np.ones(3), 0.99 * missed) > 0
    assert problem.false(np.ones(3), 1.01 * missed) == 0


def test_false_proofs_wrong_exceptions_and_wrong_numbers_are_noticed(monkeypatch):
    case = Case(ONE_TARGET, "signed", np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([[1.0], [2.0]]))
    assert not checks.judge(case, Counter(), thorough=False)

    def answering(x, gap):
        def nnls(A, b):
            n = A.shape[1]
            result = checks.conepursuit.NNLSResult
            return result(np.full(n, x), 0.0, np.zeros(n), gap, True, None, 0)

        return nnls

    def failing(error):
        def nnls(A, b):
            raise error

        return nnls

    for nnls, what in (
        (answering(0.0, 0.1), "false proof"),
        (answering(np.nan, 0.1), "invalid"),
        (answering(-1.0, 9.0), "invalid"),
        (failing(ValueError("array must not contain infs or NaNs")), "exception"),
        (failing(ZeroDivisionError()), "exception"),
    ):
        monkeypatch.setitem(SCOPE, "nnls", nnls)
        failures = checks.judge(case, Counter(), thorough=False)
        assert [failure.what for failure in failures] == [what]
        smallest, _ = shrunk(case, failures[0])
        assert smallest.A.shape == (1, 1)


@pytest.mark.parametrize("group", ["nnls", "nnfit", "minimize"])
def test_a_short_fuzz_finds_nothing(group):
    cases = {"nnls": 25, "nnfit": 6, "minimize": 6}[group] * len(FAMILIES)
    findings = chunk(0, 0, cases, [group])
    assert set(findings.families) == set(FAMILIES)
    report = [
        f"# {failure.what}, {case.family}, {case.kind.name}: {failure.detail}\n"
        + case.code(failure.target)
        for case, failure in findings.failures.values()
    ]
    assert not report, "\n\n".join(report)
