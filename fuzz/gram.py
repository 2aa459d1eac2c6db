"""The form 1/2 <x, G x> - <c, x> over x >= 0 for a G in floats, in exact integer arithmetic.

G as it is rounded need not be positive semidefinite. Where it is not, the form may fall without
end, or have a value somewhere that is lower than at the point where all seems level.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

from exact import Problem, UnboundedError, adjugate_of, dot, integers

MOST = 6
"""For so many weights every support of a form that is not convex is looked at."""


class GramProblem(Problem):
    """The form of one G, of which the symmetric part counts, and many c.

    In the units of `Problem`, y = x 2^(p - s) with one p for all weights, and f has the unit
    2^(2 s + v).
    """

    def __init__(self, G, C):
        self.n, self.t = C.shape
        K, e = integers(G)
        power = int(np.max(e)) - 1
        self.whole, self.v = K + K.T, -power
        self.P = self.whole
        self.p = np.full(self.n, power)
        self.c, self.s = integers(C, axis=0)
        self.s = np.array(self.s)
        self.penalty, self._inverses, self._gram = 0.0, {}, {}

    def low_points(self, i):
        """Yield points y >= 0 as N and d, for a form that is not convex: stationary on supports.

        Raises an UnboundedError where the form falls without end.
        """
        for k in range(1, min(self.n, MOST) + 1):
            for support in combinations(range(self.n), k):
                part = self.whole[np.ix_(support, support)]
                self._check_bounded(part)
                kept, adjugate, det = adjugate_of(part)
                rows = [support[j] for j in kept]
                N = np.zeros(self.n, dtype=object)
                if rows and det:
                    sign = 1 if det > 0 else -1
                    N[rows] = sign * dot(adjugate, self.c[rows, i : i + 1])[:, 0]
                    if (N >= 0).all():
                        yield N, sign * det

    def _check_bounded(self, part):
        """Raise an UnboundedError if a direction >= 0 of negative curvature is found in floats."""
        most = max(1, *(abs(int(a)) for a in part.flat))
        values, vectors = np.linalg.eigh((part / most).astype(np.float64))
        for value, d in zip(values, vectors.T, strict=True):
            if value > 1e-6:
                continue
            d = np.maximum(d if d.sum() > 0 else -d, 0.0)
            whole, _ = integers(d)
            if whole @ part @ whole < 0:
                raise UnboundedError

    def value(self, N, d, i):
        """Return the form at y = N / d, in the units of y."""
        square, level = N @ self.whole @ N, (N * self.c[:, i]).sum()
        return Fraction(int(square), 2 * d * d) - Fraction(int(level), d)

    def highest_excess(self, i, x):
        """Return f(x) minus the lowest value found, as (p, q), None where f has no minimum."""
        K, e = integers(x)
        power = int(np.max(e)) + int(self.p[0]) - int(self.s[i])
        whole, d = (K << power, 1) if power >= 0 else (K, 1 << -power)
        here, unit = self.value(whole, d, i), Fraction(2) ** (2 * int(self.s[i]) + self.v)
        try:
            low = [self.value(N, d, i) for N, d in self.low_points(i)]
        except UnboundedError:
            return None
        return ((here - min([*low, Fraction(0)])) * unit).as_integer_ratio()


def semidefinite(G):
    """Return whether a symmetric matrix of integers is positive semidefinite."""
    G, before = G.copy(), 1
    while len(G):
        pivot, row = G[0, 0], G[0, 1:]
        if pivot < 0 or (pivot == 0 and (row != 0).any()):
            return False
        rest = G[1:, 1:]
        if pivot > 0:
            rest = (pivot * rest - np.multiply.outer(row, row)) // before
            before = pivot
        G = rest
    return True


def gram_excesses(G, C, X):
    """Return {i: (p, q)} with f(x) - f* = p / q for the columns x of X.

    Instead of (p, q) it is None where f is unbounded below. Targets whose minimiser was not found
    are left out.
    """
    problem = GramProblem(G, C)
    if not semidefinite(problem.whole):
        if problem.n > MOST:
            return {}
        return {i: problem.highest_excess(i, X[:, i]) for i in range(problem.t)}
    try:
        return problem.excesses(X)
    except UnboundedError:
        if problem.t == 1:
            return {0: None}
        parts = [gram_excesses(G, C[:, [i]], X[:, [i]]) for i in range(problem.t)]
        return {i: part[0] for i, part in enumerate(parts) if 0 in part}
