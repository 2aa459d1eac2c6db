"""Problems with known minimisers, and the lists of parts that the tests combine."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from conepursuit import (
    AFW,
    AMP,
    FCMP,
    FW,
    MP,
    NNMP,
    OMP,
    PFW,
    PWMP,
    AdaptiveStep,
    Composed,
    Cone,
    Dictionary,
    Domain,
    ExactStep,
    Hull,
    LeastSquares,
    NonnegativeSphere,
    Objective,
    Quadratic,
    ShortStep,
    Span,
    Symmetric,
    Union,
    UnitVectors,
)

CONIC = [NNMP, AMP, PWMP, FCMP]
STEPS = [ShortStep(), ExactStep(), AdaptiveStep()]
ALGORITHMS = [
    *(kind(step) for kind in (NNMP, AMP, PWMP, MP, FW, AFW, PFW) for step in STEPS),
    FCMP(variant=0),
    FCMP(variant=1),
    OMP(variant=0),
    NNMP(norm="gauge"),
    NNMP(norm="euclidean"),
]


@dataclass(frozen=True)
class Problem:
    name: str
    objective: Objective
    domain: Domain
    optimum: float
    x: np.ndarray

    def __repr__(self):
        return self.name


def brute_force_nnls(D, y):
    """Return the least 1/2 ||D w - y||^2 over w >= 0 and D w, by trying every support."""
    best, point = 0.5 * float(y @ y), np.zeros(len(y))
    n = D.shape[1]
    for k in range(1, min(D.shape) + 1):
        for support in combinations(range(n), k):
            part = D[:, support]
            w, _, rank, _ = np.linalg.lstsq(part, y, rcond=None)
            if rank == k and (w >= 0).all():
                value = 0.5 * float(np.sum((part @ w - y) ** 2))
                if value < best:
                    best, point = value, part @ w
    return best, point


def _least_squares(name, D, y, **cone):
    y = np.asarray(y, dtype=float)
    optimum, x = brute_force_nnls(np.asarray(D, dtype=float), y)
    return Problem(name, LeastSquares(y), Cone(Dictionary(D), **cone), optimum, x)


def _known(name, objective, domain, x):
    x = np.asarray(x, dtype=float)
    return Problem(name, objective, domain, objective.value(x), x)


def _problems():
    rng = np.random.default_rng(0)
    D, S = rng.random((4, 6)), rng.standard_normal((5, 7))
    y = D @ rng.random(6) + 0.5 * rng.standard_normal(4)
    ray = np.array([[1.0], [2.0]])
    free = rng.standard_normal((5, 3))
    target = rng.standard_normal(5)
    fitted = free @ np.linalg.lstsq(free, target, rcond=None)[0]
    B = rng.random((6, 4))
    b = rng.standard_normal(6) + 1.0
    weights = np.array([1.0, 0.0, 2.0, 0.0, 0.5, 0.0])
    e3 = UnitVectors(3)
    composed = Composed(LeastSquares(b), B)
    best, image = brute_force_nnls(B, b)
    both = np.hstack([np.eye(4), S[:4]])
    joint, joint_x = brute_force_nnls(both, y)
    return [
        _known("orthant", LeastSquares([2.0, -1.0, 3.0]), Cone(e3), [2, 0, 3]),
        _known("orthant of matrices", LeastSquares([[2.0, -1.0], [-3.0, 4.0]]),
               Cone(UnitVectors((2, 2))), [[2, 0], [0, 4]]),
        _known("zero target", LeastSquares(np.zeros(3)), Cone(e3), np.zeros(3)),
        _known("polar target", LeastSquares(-np.ones(3)), Cone(e3), np.zeros(3)),
        _known("target in the cone", LeastSquares(D @ weights), Cone(Dictionary(D)), D @ weights),
        _least_squares("ray, collinear atoms", np.hstack([ray, 2 * ray, 3 * ray]), [1.0, 1.0]),
        _least_squares("duplicated atoms", np.hstack([D[:, :3], D[:, :3]]), y),
        _least_squares("zero atom", np.hstack([np.zeros((4, 1)), D[:, :4]]), y),
        _least_squares("non-negative atoms", D, y),
        _least_squares("signed atoms", S, target),
        _least_squares("small integers", [[0, 0, 0], [2, -1, 0], [0, -1, 2]], [-2, -2, -2]),
        _least_squares("known radius", D, y, radius=100.0),
        _known("quadratic", Quadratic(np.diag([1.0, 2.0, 4.0]), [1.0, -1.0, 2.0]), Cone(e3),
               [1, 0, 0.5]),
        Problem("linear map", composed, Cone(UnitVectors(4)), best,
                np.linalg.lstsq(B, image, rcond=None)[0]),
        _known("sphere", LeastSquares([2.0, -1.0, 3.0]), Cone(NonnegativeSphere(3)), [2, 0, 3]),
        Problem("union", LeastSquares(y), Cone(Union(UnitVectors(4), Dictionary(S[:4]))), joint,
                joint_x),
        _known("soft threshold", LeastSquares([2.0, 0.3, -1.0]), Cone(e3, penalty=0.5),
               [1.5, 0, 0]),
        _known("lasso", LeastSquares([2.0, 0.3, -1.0]), Cone(Symmetric(e3), penalty=0.5),
               [1.5, 0, -0.5]),
        _known("hull, active radius", LeastSquares([2.0, 1.0, -1.0]), Hull(e3, radius=1.0),
               [1, 0, 0]),
        _known("hull, face", LeastSquares([2.0, 1.5, -1.0]), Hull(e3, radius=1.0),
               [0.75, 0.25, 0]),
        _known("hull, idle radius", LeastSquares([2.0, 1.0, -1.0]), Hull(e3, radius=50.0),
               [2, 1, 0]),
        _known("hull, penalty", LeastSquares([2.0, 1.0, -1.0]), Hull(e3, radius=2.0, penalty=0.5),
               [1.5, 0.5, 0]),
        _known("span", LeastSquares(target), Span(Dictionary(free)), fitted),
    ]  # fmt: skip


def _penalised(problem):
    """Add what the penalty costs at the known minimiser."""
    share = problem.domain.penalty * float(np.abs(problem.x).sum())  # unit atoms
    return Problem(problem.name, problem.objective, problem.domain, problem.optimum + share,
                   problem.x)  # fmt: skip


PROBLEMS = [_penalised(p) if p.domain.penalty else p for p in _problems()]


def random_problem(rng, d=20, n=30, noise=0.3):
    """Return non-negative atoms and a target near their cone."""
    D = rng.random((d, n))
    weights = rng.random(n) * (rng.random(n) < 0.4)
    return D, D @ weights + noise * rng.standard_normal(d)
