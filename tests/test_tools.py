"""Progress bar, plot, and the public checkers, which must notice what is wrong."""

import io

import numpy as np
import pytest

import conepursuit
from conepursuit import (
    AMP,
    FCMP,
    NNMP,
    PWMP,
    AtomSet,
    Cone,
    Dictionary,
    FunctionObjective,
    LeastSquares,
    ProgressBar,
    minimize,
    plot_convergence,
)
from conepursuit.testing import check_algorithm, check_atom_set, check_objective
from problems import random_problem

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

D, Y = random_problem(np.random.default_rng(0))
F, CONE = LeastSquares(Y), Cone(Dictionary(D))


def test_the_progress_bar_shows_and_closes():
    from rich.console import Console

    out = io.StringIO()
    bar = ProgressBar(tol=1e-6, console=Console(file=out, width=120, force_terminal=True))
    for _ in range(2):  # a bar may serve several runs
        result = minimize(F, CONE, FCMP(), tol=1e-6, callback=bar)
        assert result.status.success
        assert bar._task is None
    text = out.getvalue()
    assert f"iteration {result.n_iter}" in text
    assert "gap ≤" in text
    assert bar._share == 1.0


def test_the_progress_bar_is_closed_by_an_error_too():
    from rich.console import Console

    bar = ProgressBar(console=Console(file=io.StringIO()))

    def breaks(x):
        if x.any():
            raise ZeroDivisionError
        return F.value_and_gradient(x)

    with pytest.raises(ZeroDivisionError):
        minimize(FunctionObjective(breaks, 20, smoothness=1.0), CONE, NNMP(), callback=bar)
    assert bar._task is None


def test_plot_convergence():
    runs = {"AMP": minimize(F, CONE, AMP(), max_iter=40), "PWMP": minimize(F, CONE, PWMP())}
    optimum = min(r.value for r in runs.values())
    ax = plot_convergence(runs, optimum=optimum, bounds={"1/t": lambda t: 100 / (t + 1),
                                                         "flat": np.ones(10)})  # fmt: skip
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["AMP", "PWMP", "1/t", "flat"]
    assert ax.get_yscale() == "log"
    assert "f*" in ax.get_ylabel()
    (one,) = plot_convergence(runs["AMP"]).get_lines()
    np.testing.assert_allclose(one.get_ydata(), runs["AMP"].trace["gap"])
    assert len(plot_convergence(list(runs.values()), ax=ax).get_lines()) == 6
    matplotlib.pyplot.close("all")


def test_check_objective_notices():
    def f(x):
        return 0.5 * float(x @ x), x

    check_objective(FunctionObjective(f, 4, smoothness=1.0, strong_convexity=1.0,
                                      conjugate=lambda u: 0.5 * float(u @ u)))  # fmt: skip
    wrong = {
        "difference of values": FunctionObjective(lambda x: (f(x)[0], 1.1 * x), 4),
        "convexity": FunctionObjective(lambda x: (-f(x)[0], -x), 4),
        "L =": FunctionObjective(f, 4, smoothness=0.9),
        "mu": FunctionObjective(f, 4, strong_convexity=1.2),
        r"f\*": FunctionObjective(f, 4, conjugate=lambda u: float(u @ u)),
    }
    for message, objective in wrong.items():
        with pytest.raises(AssertionError, match=message):
            check_objective(objective)

    class WrongCurvature(LeastSquares):
        def curvature(self, x, d):
            return 2.0 * float(d @ d)

    with pytest.raises(AssertionError, match="difference of gradients"):
        check_objective(WrongCurvature(np.ones(4)))


def test_check_atom_set_notices():
    class Broken(Dictionary):
        def lmo(self, gradient):
            return self.answer(0, self.scores(gradient))

    class Stale(Dictionary):
        def lmo(self, gradient):
            answer = super().lmo(gradient)
            return answer.answering(lambda keys: answer.lookup(keys) + 1.0)

    class TooLong(Dictionary):
        radius = 0.5

    for kind, message in ((Broken, "the oracle scores"), (Stale, "rescore"), (TooLong, "radius")):
        with pytest.raises(AssertionError, match=message):
            check_atom_set(kind(D - 0.5), (D - 0.5).T)
    half = Dictionary(D)
    half.positive_functional = lambda: np.full(20, 1e-3)
    with pytest.raises(AssertionError, match=r"<g \+ c t, atom>"):
        check_atom_set(half)


def test_check_algorithm_notices():
    class Climbs(PWMP):
        def start(self, objective):
            update = super().start(objective)

            def wrong(iterate, local, d):
                moved, step, good = update(iterate, local, d)
                weights = 3.0 * moved.weights
                return type(moved)(3.0 * moved.x, moved.atoms, weights), step, good

            return wrong

    class Drifts(PWMP):
        def start(self, objective):
            update = super().start(objective)

            def wrong(iterate, local, d):
                moved, step, good = update(iterate, local, d)
                return type(moved)(1.001 * moved.x, moved.atoms, moved.weights), step, good

            return wrong

    class Idle(PWMP):
        def start(self, objective):
            def stay(iterate, local, d):
                return iterate, 0.0, True

            return stay

    class Flat(PWMP):
        def direction(self, local):
            d = super().direction(local)
            return d._replace(slope=0.5 * d.slope)

    class Homeless(PWMP):
        domains = ()

    with pytest.raises(AssertionError, match="f rose"):
        check_algorithm(Climbs())
    with pytest.raises(AssertionError, match="weighted atoms"):
        check_algorithm(Drifts())
    with pytest.raises(AssertionError, match="is possible"):
        check_algorithm(Idle())
    with pytest.raises(AssertionError, match="slope and"):
        check_algorithm(Flat())
    with pytest.raises(AssertionError, match="neither a Cone"):
        check_algorithm(Homeless())


def test_a_new_atom_set_is_two_methods():
    """The design's promise: `lmo` and `empty` are all it takes."""
    from conepursuit import Vectors

    class Corners(AtomSet):
        shape = (3,)

        def lmo(self, gradient):
            row = np.where(gradient < 0, 1.0, 0.0)
            return Vectors.single(self.shape, tuple(row), row)

        def empty(self):
            return Vectors.empty(self.shape)

    check_atom_set(Corners())
    result = minimize(LeastSquares([1.0, 2.0, -1.0]), Cone(Corners()), PWMP())
    np.testing.assert_allclose(result.x, [1, 2, 0], atol=1e-6)


def test_the_public_names_are_there():
    for name in conepursuit.__all__:
        assert getattr(conepursuit, name) is not None
    assert conepursuit.__version__
