"""A Hessian that is no function is said to be none, wherever it is first needed."""

import numpy as np
import pytest

from conepursuit import (
    FCMP,
    PWMP,
    Composed,
    Cone,
    Dictionary,
    ExactStep,
    LeastSquares,
    Objective,
    minimize,
    nnfit,
)
from conepursuit.testing import check_objective

D = np.random.default_rng(0).random((5, 8))


class Squares(Objective):
    """sum_i (x_i - y_i)^2 / 2, with a Hessian that a test chooses."""

    def __init__(self, hessian, quadratic=False):
        self.y, self.shape, self.smoothness = D[:, 0] - 0.1, (5,), 1.0
        self.returned, self.quadratic = hessian, quadratic

    def value_and_gradient(self, x):
        r = x - self.y
        return 0.5 * float(r @ r), r

    def hessian(self, x):
        return self.returned


MESSAGE = r"hessian\(x\) of Squares must return a function d -> H\(x\) d, or None; it returned "
WRONG = {
    r"ndarray of shape \(5, 5\)": np.eye(5),
    r"ndarray of shape \(5,\)": np.ones(5),
    r"list of shape \(2,\)": [1.0, 2.0],
}


@pytest.mark.parametrize("received", WRONG)
def test_a_hessian_that_is_an_array_is_named(received):
    wrong = Squares(WRONG[received])
    with pytest.raises(AssertionError, match=MESSAGE + received):
        check_objective(wrong)
    for call in (
        lambda: minimize(wrong, Cone(Dictionary(D)), FCMP(variant=1)),
        lambda: minimize(
            Squares(WRONG[received], quadratic=True), Cone(Dictionary(D)), PWMP(ExactStep())
        ),
        lambda: minimize(Composed(wrong, D), Cone(Dictionary(np.eye(8))), FCMP(variant=1)),
        lambda: nnfit(wrong, D),
        lambda: nnfit(wrong, D, max_atoms=2),
    ):
        with pytest.raises(TypeError, match=MESSAGE + received):
            call()


def test_a_hessian_of_another_shape_is_named():
    for wrong, shape in ((lambda d: d[:, None], r"\(5, 1\)"), (lambda d: 1.0, r"\(\)")):
        with pytest.raises(AssertionError, match=rf"shape of x, \(5,\); it has {shape}"):
            check_objective(Squares(wrong))


def test_a_hessian_that_is_a_function_serves():
    known = nnfit(LeastSquares(Squares(None).y), D)
    for right in (lambda d: d, None):
        check_objective(Squares(right))
        np.testing.assert_allclose(nnfit(Squares(right), D).x, known.x, atol=1e-6)
