"""Least squares over weights with a given sum, in exact integer arithmetic.

In the units of `exact` the condition is <d, y> = s with integers d and s. On a support, y minimises
1/2 <y, G y> - <c, y> if G y = c + mu d there. So it does with H = G + d d' in place of G, which
changes the objective by a constant: y = inv(H) (c + mu d), with mu such that the sum is s. H is
invertible on a support exactly if none of its atoms is an affine combination of the others.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np

from exact import Problem, adjugate_of, dot, integers, shifted


class SumProblem(Problem):
    """Least squares over x >= 0 with sum(x) = total, for many targets.

    Parameters
    ----------
    A, B, weights
        As in `Problem`.
    total : float
        The sum of x, positive.
    """

    def __init__(self, A, B, weights, total):
        super().__init__(A, B, weights)
        most = int(self.p.max())
        self.d = np.array([1 << (most - int(p)) for p in self.p], dtype=object)
        k, e = integers(np.array([total]))
        power, sums = int(e.min()) + most, []
        for i in range(self.t):
            fine = max(0, int(self.s[i]) - power)
            self.s[i] -= fine
            self.c[:, i] <<= fine
            sums.append(shifted(int(k[0]), power - int(self.s[i])))
        self.c = np.vstack([self.c, np.array(sums, dtype=object)])

    @cached_property
    def _sums(self):
        """H as a whole."""
        return self.whole + np.multiply.outer(self.d, self.d)

    def _shifted_gram(self, support):
        """Return the columns of H of a support."""
        if self.n <= 64:
            return self._sums[:, list(support)]
        return self.gram(support) + np.multiply.outer(self.d, self.d[list(support)])

    def inverse(self, support):
        """Return independent atoms of a support, the adjugate of their H, and its determinant."""
        if support not in self._inverses:
            H = self._shifted_gram(support)[list(support)]
            kept, adjugate, det = adjugate_of(H)
            self._inverses[support] = tuple(support[i] for i in kept), adjugate, det
        return self._inverses[support]

    def solve(self, support, c):
        """Return independent atoms of a support, and N, d, g for columns c.

        The last row of c are sums. Where the slopes of these atoms are equal, the others being
        zero, y = N / d, and g / d is by how much the slopes of all atoms are higher.
        """
        support, adjugate, det = self.inverse(support or (0,))
        rows, c, sums = list(support), c[:-1], c[-1]
        q = dot(adjugate, self.d[rows])
        along = dot(self.d[rows], q)
        solved = dot(adjugate, c[rows])
        multiplier = det * sums - dot(self.d[rows], solved)
        solved = along * solved + np.multiply.outer(q, multiplier)
        N = np.zeros(c.shape, dtype=object)
        N[rows] = solved
        g = dot(self._shifted_gram(support), solved) - det * along * c
        return support, N, det * along, g - np.multiply.outer(self.d, det * multiplier)

    def gradients(self, members, N, d, g):
        """Return the slopes of f at N / d, times d, which are not zero on a support here."""
        rows = np.flatnonzero((N != 0).any(axis=1)).tolist()
        return dot(self.gram(tuple(rows)), N[rows]) - d * self.c[:-1, members]

    def _first(self, c):
        """Return a support of one atom, with which the method begins, and the weights there."""
        y = [Fraction(0)] * self.n
        y[0] = Fraction(int(c[-1, 0]), int(self.d[0]))
        return (0,), y


def excesses_at_most(A, B, weights, total, X):
    """Return {i: (p, q)} as `Problem.excesses`, for x >= 0 with sum(x) <= total.

    A minimiser without the condition is one with it if it keeps it; otherwise the sum of some
    minimiser is the total, as f is convex along the way from one to the other.
    """
    plain, limit = Problem(A, B, weights), Fraction(float(total))

    def inside(members, N, d):
        units = plain.units(members)
        sums = [sum(int(n) * u for n, u in zip(N[:, k], units[k], strict=True)) for k in
                range(len(members))]  # fmt: skip
        return np.array([value <= limit * int(d) for value in sums])

    found = plain.excesses(X, inside)
    rest = [i for i in range(X.shape[1]) if i not in found]
    if rest:
        beyond = SumProblem(A, B[:, rest], weights, total).excesses(X[:, rest])
        found |= {rest[place]: excess for place, excess in beyond.items()}
    return found
