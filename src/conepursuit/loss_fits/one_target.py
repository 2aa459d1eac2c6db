"""Minimise any smooth loss over the weights of the columns of a matrix, all of them at once.

The loop of `FCMP(variant=1)` takes in one atom after the other, and solves each refit. Here all
atoms that descend come in together. Steps are quasi-Newton steps at first (limited-memory BFGS on
the free weights, projected), which cost two products with the matrix each. As soon as they converge
too slowly, Newton steps take over: each minimises the quadratic model of the loss, with its
Hessian, over weights that are not negative.
"""

from __future__ import annotations

from math import inf, isfinite, log

import numpy as np

from conepursuit.arrays import EPS, Array, Vector
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.linear import is_blocks
from conepursuit.loss_fits.columns import Point, Problem
from conepursuit.loss_fits.last_step import above_infimum, closed
from conepursuit.objectives.base import Objective
from conepursuit.pursuit.certify import own_rounding
from conepursuit.pursuit.iterate import Line
from conepursuit.pursuit.steps import damped
from conepursuit.pursuit.weight_programs import Cholesky, nonnegative
from conepursuit.status import Status

MEMORY = 10
"""How many of the last steps quasi-Newton steps learn their curvature from."""

PATIENCE = 6
"""Steps over which the rate of convergence is judged; before, quasi-Newton steps go on.

A last step that has failed is tried again after this many steps at the latest.
"""

HESSIAN_COST = 0.4
"""Newton steps on k atoms take about as long, in all, as this times k quasi-Newton steps.

If more quasi-Newton steps than that seem to be left, Newton steps are made; otherwise not.
"""

FRESH = 3
"""After one of this many quasi-Newton steps the scores of all columns are computed.

After the others, only those of the chosen columns are.
"""

STEEP = 0.1
"""Columns are chosen anew if one outside has more than this share of the steepest slope.

Then those that are less steep come in as well.
"""

NEAR, CLOSE = 300.0, 1e-5
"""When steps are small enough for the last step to be tried.

That is when a step promises a decrease of at most NEAR times the gap asked for, and of at most
CLOSE times the decrease so far.
"""

LEAST_ROOM = 32
"""The most atoms that come in at once: this, a quarter of the rows, or as many as have weight.

The largest of the three counts, up to the `most_room` of the problem.
"""

OFFERED = 0.1
"""A quasi-Newton step must promise this share of what the steepest atom alone offers.

If it promises less, a Newton step is made instead.
"""

WHOLE = 0.6
"""If more than this share of the columns is wanted, all are chosen; otherwise those wanted."""

RETRY = 0.1
"""A last step that failed is tried again when a step promises this share of what one did before."""

RIDGE = 1e-11
"""The diagonal of a Hessian is raised by this share, which is more than its rounding.

So weights that the data do not determine stay bounded.
"""

STATIONARY_SHARE = 1e-13
"""Where no step makes progress, a gap of up to this share of |f| + |f(0)| is rounding.

Then the status is STATIONARY, with a larger gap STALLED.
"""


class Newton:
    """Quasi-Newton and Newton steps for one problem.

    Attributes
    ----------
    direct : bool
        Whether steps are Newton steps, on the Hessian.
    moves, turns : arrays
        The changes of the weights and of the slopes in the last steps, for atoms of length one.
    promises : list of float
        The decrease that each step promised: minus the slope along it.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.direct = problem, problem.newton_only
        self.moves = self.turns = np.empty((0, len(problem.norms)))
        self.promises: list[float] = []

    def step(self, point: Point, wanted: float) -> tuple[Point, float]:
        """Return the next point, and the decrease that the step promised, 0 if there is no step.

        `wanted` is the promise at which steps are small enough.
        """
        moved, promise = self._step(point, wanted)
        if promise == 0 and not point.fresh:  # atoms that are not chosen may descend
            return self._step(self.problem.at(point.weights), wanted)
        return moved, promise

    def _step(self, point: Point, wanted: float) -> tuple[Point, float]:
        """Return the next point and its promise, from what is known at this one."""
        self.direct = self.direct or self._too_slow(wanted)
        self._choose(point)
        problem = self.problem
        if not len(problem.chosen):
            return point, 0.0
        scores, weights = point.scores[problem.chosen], point.weights[problem.chosen]
        change = np.zeros_like(weights)
        if not self.direct:
            change = self._by_memory(point.x, scores, weights)
        if not scores @ change < 0:
            change = self._by_hessian(point.x, scores, weights)
        slope = float(scores @ change)
        if not slope < 0:
            return point, 0.0
        falling = change < 0
        most = float((weights[falling] / -change[falling]).min(initial=inf))
        line = Line(slope, max(most, 1.0), problem.penalty * float(change.sum()))
        vector = problem.combine(change)
        step, value, gradient = damped(problem.objective, point.x, point.value, vector, line)
        if step == 0:
            return point, 0.0
        moved = self._moved(point, step * change, point.x + step * vector, value, gradient)
        self.promises.append(-slope)
        return moved, -slope

    def _moved(
        self, point: Point, change: Vector, x: Array, value: float, gradient: Array
    ) -> Point:
        """Return the point after a change of the chosen weights, and remember its curvature."""
        problem, chosen = self.problem, self.problem.chosen
        weights = point.weights.copy()
        before = weights[chosen]
        after = before + change
        after[after <= 8 * EPS * before] = 0.0  # what rounding left of weights that are zero
        weights[chosen] = after
        whole = len(chosen) == len(weights) and not problem.brief
        fresh = self.direct or (len(self.promises) + 1) % FRESH == 0 or whole
        if fresh:
            scores = problem.scores(gradient, x)
        else:
            scores = point.scores.copy()
            scores[chosen] = problem.slopes(gradient) + problem.penalty
        if not self.direct:
            move, turn = np.zeros_like(weights), np.zeros_like(weights)
            move[chosen] = (weights - point.weights)[chosen] * problem.norms[chosen]
            turn[chosen] = (scores - point.scores)[chosen] * problem.scale[chosen]
            self.moves = np.vstack([self.moves[1 - MEMORY :], move])
            self.turns = np.vstack([self.turns[1 - MEMORY :], turn])
        return Point(weights, x, value, gradient, scores, float(weights.sum()), fresh)

    def _choose(self, point: Point) -> None:
        """Choose the columns of the next step.

        Those of the last one are kept unless a column with weight or a steep one is missing, or
        many are not needed.
        """
        if not point.fresh:
            return
        chosen, slopes = self.problem.chosen, point.scores * self.problem.scale
        used, least = point.weights > 0, min(0.0, float(slopes.min()))
        # Of many more atoms than rows few will have weight.
        most = max(LEAST_ROOM, len(point.x) // 4, int(np.count_nonzero(used)))
        room = min(most, self.problem.most_room)
        bar = 0.0 if room >= len(slopes) else min(0.0, float(np.partition(slopes, room)[room]))
        wanted = used | (slopes < min(STEEP * least, bar))
        count, held = np.count_nonzero(wanted), np.count_nonzero(wanted[chosen])
        if held < count or len(chosen) > 1.5 * count + 8:
            wanted = used | (slopes < bar)
            if not self.direct and np.count_nonzero(wanted) > WHOLE * len(wanted):
                wanted[:] = True
            if np.count_nonzero(wanted) != len(chosen) or not wanted[chosen].all():
                self.problem.choose(wanted)

    def _too_slow(self, wanted: float) -> bool:
        """Return whether Newton steps would be cheaper than the quasi-Newton steps still needed."""
        if len(self.promises) < PATIENCE:
            return False
        now, before = self.promises[-1], self.promises[-PATIENCE]
        if now >= before or wanted <= 0:
            return True
        rate = log(before / now) / (PATIENCE - 1)
        return log(max(now / wanted, 1.0)) / rate > HESSIAN_COST * len(self.problem.chosen)

    def _by_hessian(self, x: Array, scores: Vector, weights: Vector) -> Vector:
        """Return the change of weights that minimises the quadratic model."""
        hessian = self.problem.hessian(x)
        # With more atoms than rows the data do not determine all weights; they must stay bounded.
        hessian[np.diag_indices_from(hessian)] *= 1.0 + RIDGE
        return nonnegative(hessian, scores, weights, Cholesky()) - weights

    def _by_memory(self, x: Array, scores: Vector, weights: Vector) -> Vector:
        """Return a change of weights along the projected quasi-Newton direction.

        In units in which all atoms have length one it is -B g on the free weights, with B an
        approximate inverse Hessian; weights that would become negative become zero. A change of
        zero means that a Newton step is needed.
        """
        problem, chosen = self.problem, self.problem.chosen
        scale, w = problem.scale[chosen], weights * problem.norms[chosen]
        g = scores * scale
        free = np.flatnonzero((w > 0) | (g < 0))
        d = np.zeros_like(g)
        d[free] = -inverse_product(
            self.moves[:, chosen[free]], self.turns[:, chosen[free]], g[free]
        )
        if not len(self.moves):
            curvature = problem.objective.curvature(x, problem.combine(d * scale))
            d *= float(d @ d) / curvature if curvature and isfinite(curvature) else 0.0
        change = np.maximum(w + d, 0.0) - w
        if len(self.moves) and len(free):
            # The projection may have left less descent than the steepest atom alone offers.
            move, turn = self.moves[-1], self.turns[-1]
            lowest = min(0.0, float(g[free].min()))
            offer = float(move @ turn) * (lowest * lowest)  # a power would raise on overflow
            if -float(g @ change) * float(turn @ turn) < OFFERED * offer:
                change[:] = 0.0
        return change * scale


def inverse_product(moves: Array, turns: Array, d: Vector) -> Vector:
    """Return B d, B the inverse Hessian estimated from changes of weights and of slopes.

    Notes
    -----
    The two-loop recursion of limited-memory BFGS [1]. The rows of S = `moves` are changes of the
    weights, those of Y = `turns` the changes of the slopes, the oldest first. With R the upper
    triangle of S Y', each loop is the solution of a system in R.

    References
    ----------
    [1] J. Nocedal. Updating Quasi-Newton Matrices with Limited Storage. Math. Comp. 1980.
    """
    products = moves @ turns.T
    safe = np.diag(products) > EPS * np.vecdot(turns, turns)
    if not safe.any():
        return d
    moves, turns, products = moves[safe], turns[safe], products[np.ix_(safe, safe)]
    upper, diagonal = np.triu(products), np.diag(products)
    shares = np.linalg.solve(upper, moves @ d)
    d = (d - shares @ turns) * (diagonal[-1] / (turns[-1] @ turns[-1]))
    out: Vector = d + np.linalg.solve(upper.T, diagonal * shares - turns @ d) @ moves
    return out


def fit_newton(
    objective: Objective,
    atoms: Dictionary,
    penalty: float,
    start: Vector | None,
    tol: float,
    max_iter: int,
) -> tuple[Point, float, bool, Status, int]:
    """Minimise f(A w) + penalty * sum(w) over w >= 0.

    Returns
    -------
    Point, gap, proven, status, n_iter
    """
    problem = problem_on(objective, atoms, penalty)
    newton, first = Newton(problem), problem.start()
    point = first if start is None else problem.at(np.where(problem.norms > 0, start, 0.0))
    if not isfinite(point.value):
        point = first
    if not isfinite(point.value):
        point, gap, proven = above_infimum(problem, point)
        return point, gap, proven, Status.STALLED, 0
    reference, once, trials, tried = first.total(penalty), inf, 0, 0
    promise = float(objective.excess(point.value)) + penalty * point.size
    status, iteration = Status.MAX_ITER, 0
    for iteration in range(max_iter + 1):
        decrease = reference - point.total(penalty)
        little = problem.little * (abs(point.value) + abs(decrease))
        own = own_rounding(objective, point.x, point.value)
        rounding = max(2 * own, min(problem.rounding(point), little))
        level = max(tol * decrease, rounding)
        near = max(min(NEAR * level, CLOSE * decrease), rounding)
        due = promise <= max(once, rounding) or iteration >= tried + PATIENCE
        if (promise <= near and due) or point.scores.min() >= 0:
            point, gap, proven = closed(problem, point, level, newton.direct)
            if gap <= level and (proven or trials >= problem.trials):
                return point, gap, proven, Status.CONVERGED, iteration
            once, trials, tried = RETRY * promise, trials + 1, iteration
            if promise <= rounding and trials > 2 * problem.trials:
                status = Status.STALLED
                break
        if iteration == max_iter:
            break
        point, promise = newton.step(point, near)
        if promise == 0:
            status = Status.STALLED
            break
    point = inside(problem, point, first)
    point, gap, proven = closed(problem, point, level, newton.direct)
    if gap <= level:
        status = Status.CONVERGED
    elif status is Status.STALLED:
        scale = abs(point.value) + abs(reference)
        status = Status.STATIONARY if gap <= STATIONARY_SHARE * scale < inf else status
    return point, gap, proven, status, iteration


def problem_on(objective: Objective, atoms: Dictionary, penalty: float) -> Problem:
    """Return the problem for the kind of matrix that the atoms are columns of."""
    if not is_blocks(atoms.matrix):
        return Problem(objective, atoms, penalty)
    from conepursuit.loss_fits.rows import RowProblem

    return RowProblem(objective, atoms, penalty)


def inside(problem: Problem, point: Point, first: Point) -> Point:
    """Return a point computed afresh from its weights, inside the domain of f.

    Where x has drifted, the weights may lie outside by rounding. Then they are moved towards those
    of `first`, by a share that grows until f is finite.
    """
    afresh, share = problem.at(point.weights), EPS
    while not isfinite(afresh.value) and share < 1.0:
        afresh = problem.at((1.0 - share) * point.weights + share * first.weights)
        share *= 10.0
    return afresh if isfinite(afresh.value) else first
