"""A short run of the fuzz, and its exact references held to brute force."""

import json
import pickle
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import checks
from answers import Answer
from cases import SCOPE, Case
from conepursuit import Certificate, FitResult, NNLSResult
from conepursuit.status import Status
from digits import LossProblem
from exact import Problem, adjugate_of, exceeds, integers, square_sum
from families import FAMILIES
from gram import GramProblem, gram_excesses, semidefinite
from hulls import hull_excess, hull_minimum, solve
from kinds import KINDS
from loss_proofs import looked_at
from losses import ALL_LOSSES
from run import SHARES, as_json, chunk, shares
from shrink import shrunk
from sums import SumProblem, excesses_at_most

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


def test_kinds_have_names_of_their_own_by_which_they_travel_between_processes():
    assert all(pickle.loads(pickle.dumps(kind)) is kind for kind in KINDS)
    assert {kind.group for kind in KINDS} == set(SHARES)


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


@pytest.mark.parametrize("name", FAMILIES)
def test_the_exact_minimum_with_a_sum_is_that_of_all_supports(name):
    rng = np.random.default_rng(list(name.encode()))
    for m, n in ((3, 4), (4, 2), (1, 3)):
        A, B = FAMILIES[name](rng, m, n, 2)
        X = rng.random((n, 2)) * (rng.random((n, 2)) < 0.7)
        total = float(10.0 ** rng.uniform(-3, 3))
        full = SumProblem(A, B, None, total).excesses(X)
        less = excesses_at_most(A, B, None, total, X)
        for i in range(2):
            for found, always_full in ((full, True), (less, False)):
                excess = hull_excess(A, B[:, i], total, X[:, i], always_full=always_full)
                assert Fraction(*found[i]) == excess


def test_the_exact_minimum_with_a_sum_has_weights_of_rows_and_is_found_atom_by_atom():
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, b = rng.integers(-2, 3, (3, 4)).astype(float), rng.integers(-3, 4, (3, 1)).astype(float)
        weights = np.array([4.0, 1.0, 0.0])
        root = np.sqrt(weights)[:, None]
        X = rng.random((4, 1))
        problem = SumProblem(A, b, weights, 0.75)
        assert Fraction(*problem.excesses(X)[0]) == hull_excess(
            root * A, (root * b)[:, 0], 0.75, X[:, 0], always_full=True
        )
        _, N, d, g = problem.solve(problem._atom_by_atom(problem.c), problem.c)
        assert d > 0
        assert (N >= 0).all()
        assert (g >= 0).all()


def test_exact_forms_made_by_hand():
    G, c = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0], [-1.0]])
    assert semidefinite(GramProblem(G, c).whole)
    assert Fraction(*gram_excesses(G, c, np.zeros((2, 1)))[0]) == Fraction(1, 4)
    X = np.array([[0.25], [3.0]])
    by_hand = [[Fraction(a) for a in row] for row in G.tolist()]
    least = hull_minimum(by_hand, [Fraction(1), Fraction(-1)], Fraction(100))
    value = Fraction(float((0.5 * X.T @ G @ X - c.T @ X).item()))  # exact: all are binary
    assert Fraction(*gram_excesses(G, c, X)[0]) == value - least
    # one unit in the last place makes the form fall without end
    G = np.array([[1.0, -1.0], [-1.0, 1 - 2.0**-52]])
    assert not semidefinite(GramProblem(G, c).whole)
    assert gram_excesses(G, c, np.zeros((2, 1))) == {0: None}
    # a convex form that falls along a direction in which it is linear
    G = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert gram_excesses(G, np.array([[1.0], [-1.0]]), np.zeros((2, 1)))[0] is not None
    assert gram_excesses(G, np.array([[1.0], [-0.5]]), np.zeros((2, 1))) == {0: None}
    # not convex, and with a lower value on a support than where all seems level
    G = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert Fraction(*gram_excesses(G, np.ones((2, 1)), np.zeros((2, 1)))[0]) == Fraction(1, 2)


WAYS = {
    "nnfit": {}, "penalty": {"penalty": 0.03}, "weights": {"w": np.array([1.0, 2, 0.5, 0, 1])},
    "hull": {"radius": 0.5},
}  # fmt: skip


COMBINED = [
    (name, way)
    for name in ALL_LOSSES
    for way in [*WAYS, "intercept"]
    if (way == "intercept") or name != "LeastSquares"
    if (way != "intercept") or "function" not in name
]


@pytest.mark.parametrize(("name", "way"), COMBINED)
def test_a_gap_that_is_too_small_is_noticed_for_every_loss_and_way(name, way):
    rng = np.random.default_rng(1)
    A = rng.random((5, 3)) + 0.1
    b = ALL_LOSSES[name].data(A @ [1.0, 0.0, 2.0] + 0.3 * rng.standard_normal(5) - 1.0)
    b[0] = 0.0 if ALL_LOSSES[name].positive else b[0]
    if name == "Logistic":  # equal rows, so that no weights tell the classes apart
        A, b = A[[0, 0, 0, 1, 1]], np.array([1.0, -1, 1, -1, 1])
    data = WAYS.get(way, {})
    kind = next(k for k in KINDS if k.loss == name and k.intercept == (way == "intercept"))
    case = Case(kind, "nonnegative", A, b[:, None], data)
    penalty = data.get("penalty", 0.0)
    floor = None if way != "intercept" else 0.0 if ALL_LOSSES[name].positive else -np.inf
    problem = LossProblem(
        name, A, b, data.get("w"), penalty, floor, data.get("radius", np.inf)
    )  # fmt: skip
    for start in (np.full(3, 0.15), None):
        x = np.array([0.1, 0.2, 0.1])
        at = problem.batch.with_intercepts(x[:, None])[:, 0]
        best = problem.batch.lowest(at[:, None])[0][:, 0]
        if start is None:  # close to the minimiser, as where runs end
            x = 0.97 * best[:3] + 0.03 * x
            at = problem.batch.with_intercepts(x[:, None])[:, 0]
        missed = float(problem.best_value(at) - problem.value(best))
        assert missed > 1e-9
        for share, false in ((0.99, True), (1.01, False)):
            answer = Answer(x, share * missed, True, (), penalty)
            (found,) = looked_at(case, [(0, answer)])
            assert (found.missing > 0) == false


def test_a_value_that_is_wrong_is_noticed():
    kind = next(k for k in KINDS if k.loss == "KullbackLeibler" and k.intercept)
    case = Case(kind, "", np.array([[1.0], [3.0]]), np.array([[2.0], [1.0]]))
    x = np.array([0.5])
    for wrong in (72.0, 0.0):
        (found,) = looked_at(case, [(0, Answer(x, 9.0, False, (), value=wrong))])
        assert abs(found.wrong - 2 * np.log(2) - 1 - np.log(1 / 3) + 1) < 10
    (again,) = looked_at(case, [(0, Answer(x, 9.0, False, (), value=found.wrong))])
    assert again.wrong is None


def kind_of(text):
    """Return a kind of call whose text starts so."""
    return next(kind for kind in KINDS if kind.text.startswith(text))


FALSE = {
    "logistic, stopped": (
        kind_of("nnfit(Logistic(B), A, max_iter"), [[2.0], [-1.0]], [[1.0], [1.0]], {"steps": 1},
        "nnfit",
        FitResult(
            np.array([[0.35]]), np.logaddexp(0, [-0.7]) + np.logaddexp(0, [0.35]),
            np.zeros((1, 1)), np.array([4.1e-13]),
            np.array([True]), np.array([Status.CONVERGED]), np.array([1]),
        ),
    ),
    "zeros in the data": (
        kind_of("certify(BetaDivergence(b, 2.0), Cone"), [[1.0, 0], [1, 3], [0, 1]],
        [[1.0], [0.0], [0.0]], {"X": np.ones((2, 1))}, "certify",
        Certificate(0.0, 0.0, 8.145, "dual"),
    ),
    "a form that is not convex": (
        kind_of("nnls_gram(A, b)"), [[1.0, -1.0], [-1.0, 1 - 2.0**-52]], [[1.0], [-1.0 - 1e-7]],
        {}, "nnls_gram",
        NNLSResult(np.array([1.0, 0.0]), 0.0, np.zeros(2), 5e-8, True, Status.STATIONARY, 1),
    ),
    "an infinite gap": (
        kind_of("certify(LogCosh(b), Cone"), [[1.0]], [[2.0]], {"X": np.ones((1, 1))}, "certify",
        Certificate(0.0, 0.0, np.inf, "dual"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_what_an_adversarial_round_found_would_be_noticed(name, monkeypatch):
    kind, A, B, data, function, answer = FALSE[name]
    monkeypatch.setitem(SCOPE, function, lambda *args, **options: answer)
    case = Case(kind, "", np.array(A), np.array(B), data)
    failures = checks.judge(case, Counter())
    expected = "not finite" if name == "an infinite gap" else "false proof"
    assert [failure.what for failure in failures] == [expected]
    assert function in case.code()


def test_counts_are_told_by_loss_and_way():
    findings = chunk(3, 0, 30, ["nnfit", "audits"], 1.0)
    (line,) = shares(findings)
    assert "% audit" in line
    assert "% stopped" in line
    told = json.loads(as_json(findings, 3))
    assert set(told) == {"seed", "family", "kind", "loss"}
    assert sum(counts.get("answers", 0) for counts in told["loss"].values()) > 100


def test_false_proofs_wrong_exceptions_and_wrong_numbers_are_noticed(monkeypatch):
    case = Case(ONE_TARGET, "signed", np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([[1.0], [2.0]]))
    assert not checks.judge(case, Counter(), thorough=False)

    def answering(x, gap):
        def nnls(A, b):
            n = A.shape[1]
            return NNLSResult(np.full(n, x), 0.0, np.zeros(n), gap, True, None, 0)

        return nnls

    def failing(error):
        def nnls(A, b):
            raise error

        return nnls

    for nnls, what in (
        (answering(0.0, 0.1), "false proof"),
        (answering(np.nan, 0.1), "invalid"),
        (answering(-1.0, 9.0), "invalid"),
        (answering(0.0, np.inf), "invalid"),
        (answering(0.0, np.nan), "invalid"),
        (answering(0.0, -1e-300), "not finite"),
        (failing(ValueError("array must not contain infs or NaNs")), "exception"),
        (failing(ZeroDivisionError()), "exception"),
    ):
        monkeypatch.setitem(SCOPE, "nnls", nnls)
        failures = checks.judge(case, Counter(), thorough=False)
        assert [failure.what for failure in failures] == [what]
        smallest, _ = shrunk(case, failures[0])
        assert smallest.A.shape == (1, 1)


SHORT = {
    "nnls": 12, "sums": 4, "gram": 5, "nnfit": 8, "minimize": 4, "audits": 4, "estimators": 1,
    "own": 1,
}  # fmt: skip
"""How many cases of each family a short run has."""


@pytest.mark.parametrize("group", SHORT)
def test_a_short_fuzz_finds_nothing(group):
    findings = chunk(0, 0, SHORT[group] * len(FAMILIES), [group])
    assert {name for (name,) in findings.families} == set(FAMILIES)
    report = [
        f"# {failure.what}, {case.family}, {case.kind.name}: {failure.detail}\n"
        + case.code(failure.target)
        for case, failure in findings.failures.values()
    ]
    assert not report, "\n\n".join(report)
