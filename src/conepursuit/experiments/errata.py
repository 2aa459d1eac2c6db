"""The points of docs/errata.md that experiments name, so that a report can be read alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

NAMED = re.compile(r"\berrata ([A-E]\d+)")
"""How a text names a point, as "errata D3"."""


class Point(NamedTuple):
    """A point where the paper is silent or wrong, and what the library does."""

    point: str
    done: str


def named_points(texts: Iterable[str]) -> dict[str, Point]:
    """Return the points that texts name, in the order of `POINTS`."""
    named = {name for text in texts for name in NAMED.findall(text)}
    return {name: point for name, point in POINTS.items() if name in named}


POINTS = {
    "B1": Point(
        "AMP's rate has the factor 1/4, not 1/2: the 1/2 of its direction is squared.",
        "`linear_rate(away=True)`; the counterexample is a test, and so are 10,000 runs with 1/4.",
    ),
    "B9": Point(
        "AMP's k(t) >= t/2 needs A4; PWMP's bound says nothing.",
        "Tested.",
    ),
    "D1": Point(
        "The paper does not say how the synthetic data are made, and measures against the best "
        "value reached.",
        "Atoms uniform and normalised, y = A a with a uniform on [0, 5], then ten coordinates of "
        "y negated; f* is certified.",
    ),
    "D2": Point(
        "The tightness figure shows one step, a wrong diameter and a mean that does not exist.",
        "`conepursuit reproduce tightness`: minimum, median and maximum, with diameter and radius.",
    ),
    "D3": Point(
        "The garrote table belongs to 207 of the 208 samples, and to 100 iterations far from "
        "convergence; its row NNG does not replicate.",
        "`conepursuit reproduce garrote` gives the table, the one for all samples, and the "
        "converged answers.",
    ),
    "D4": Point(
        "In the factorisation table the column KNIX repeats CBCL, and ALS gets worse with the "
        "rank. The cone of rank-one atoms is the non-negative orthant, atoms need unit norm, and "
        "the oracle is hard: a power method promises nothing.",
        "The head of MNI152 stands for KNIX; `NonnegativeRankOne` has unit atoms, several starts,"
        " and a proved bound on what it may have missed.",
    ),
    "D5": Point(
        "The KL experiment is said to be FCMP variant 1 and 0, with L = 0.1 that is 10, and "
        "corrected by coordinate descent that is 240 multiplicative updates.",
        '`GreedyNMF(loss="kullback_leibler")` makes a step of variant 0 with an L that is raised '
        "until f falls, then sweeps that never raise it.",
    ),
    "D6": Point(
        "The 1.5 % of bad steps of PWMP are of hyperspectral data.",
        "`conepursuit reproduce complexity` counts them on synthetic data, `conepursuit reproduce"
        " unmixing` on a scene.",
    ),
    "E1": Point(
        "The released pairwise step divides by ‖d‖ instead of its square.",
        "`PWMP` divides by the square; the experiment shows both.",
    ),
}
"""The points, word for word as in docs/errata.md."""
