"""An integer that no float holds is refused as any other wrong number, wherever it is given."""

from fractions import Fraction

import numpy as np
import pytest

import conepursuit as cp

HUGE = 10**400
A, B = np.array([[1.0, 0.5], [0.0, 1.0], [2.0, 1.0]]), np.array([1.0, 2.0, 3.0])
CLASSES, LISTS = [0, 1, 1], [[1.0, 0.5], [0.0, 1.0], [2.0, HUGE]]
CONE = cp.Cone(cp.Dictionary(A))

NUMBERS = {
    "nnls tol": lambda n: cp.nnls(A, B, tol=n),
    "nnls sum_to": lambda n: cp.nnls(A, B, sum_to=n),
    "nnls sum_at_most": lambda n: cp.nnls(A, B, sum_at_most=n),
    "nnfit penalty": lambda n: cp.nnfit(cp.LeastSquares(B), A, penalty=n),
    "nnfit tol": lambda n: cp.nnfit(cp.LeastSquares(B), A, tol=n),
    "minimize tol": lambda n: cp.minimize(cp.LeastSquares(B), CONE, cp.PWMP(), tol=n),
    "Cone penalty": lambda n: cp.Cone(CONE.atoms, penalty=n),
    "Hull radius": lambda n: cp.Hull(CONE.atoms, n),
    "Huber delta": lambda n: cp.Huber(B, n),
    "KullbackLeibler shift": lambda n: cp.KullbackLeibler(B, shift=n),
    "ConicRegressor alpha": lambda n: cp.ConicRegressor(alpha=n).fit(A, B),
    "ConicRegressor tol": lambda n: cp.ConicRegressor(tol=n).fit(A, B),
    "ConicClassifier alpha": lambda n: cp.ConicClassifier(alpha=n).fit(A, CLASSES),
    "garrote initial_alpha": lambda n: cp.NonnegativeGarroteClassifier(initial_alpha=n).fit(
        A, CLASSES
    ),
    "GreedyNMF alpha_W": lambda n: cp.GreedyNMF(1, alpha_W=n).fit(A),
    "GreedyNMF tol": lambda n: cp.GreedyNMF(1, tol=n).fit(A),
    "GreedyCP tol": lambda n: cp.GreedyCP(1, tol=n).fit(np.ones((2, 2, 2))),
    "ConicCoder alpha": lambda n: cp.ConicCoder(A.T, alpha=n).fit_transform(A.T),
}

LISTED = {
    "nnls A": lambda: cp.nnls(LISTS, B),
    "ConicRegressor X": lambda: cp.ConicRegressor().fit(LISTS, B),
    "ConicRegressor y": lambda: cp.ConicRegressor().fit(A, [1, 2, HUGE]),
    "ConicRegressor sample_weight": lambda: cp.ConicRegressor().fit(
        A, B, sample_weight=[1, 2, HUGE]
    ),
    "ConicRegressor predict": lambda: cp.ConicRegressor().fit(A, B).predict(LISTS),
    "ConicRegressor score": lambda: cp.ConicRegressor().fit(A, B).score(A, [1, 2, HUGE]),
    "ConicClassifier class_weight": lambda: cp.ConicClassifier(class_weight={0: HUGE, 1: 1}).fit(
        A, CLASSES
    ),
    "GreedyNMF X": lambda: cp.GreedyNMF(1).fit(LISTS),
    "GreedyNMF entry_weight": lambda: cp.GreedyNMF(1).fit(A, entry_weight=LISTS),
    "GreedyCP X": lambda: cp.GreedyCP(1).fit([LISTS, LISTS]),
    "ConicCoder dictionary": lambda: cp.ConicCoder(LISTS).fit(A),
}


@pytest.mark.parametrize("number", [HUGE, -HUGE, Fraction(HUGE, 3)], ids=["+", "-", "fraction"])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_no_float_holds_is_refused(name, number):
    with pytest.raises(ValueError, match=r"must|positive|negative"):
        NUMBERS[name](number)


@pytest.mark.parametrize("name", LISTED)
def test_data_that_no_float_holds_are_refused(name):
    with pytest.raises(ValueError, match="must hold"):
        LISTED[name]()
