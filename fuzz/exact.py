"""Non-negative least squares in exact integer arithmetic.

Floats are integers times powers of two, and so are the columns of A, a target, weights of rows and
a penalty. In units in which all of them are integers the problem is

    minimise 1/2 <y, G y> - <c, y> over y >= 0,

with an integer G = A'WA and c = A'Wb - penalty. Its minimiser on a support S is
adj(G_S) c_S / det(G_S); whether it is the minimiser of the whole is asked of its signs and slopes,
without any rounding.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import ldexp

import numpy as np

ROUNDS = 12
"""How often a support is corrected by all wrong signs at once, before it is found atom by atom."""

FEW = 12
"""Up to so many rows or atoms a support is found atom by atom if corrections fail; that ends."""


class UnboundedError(Exception):
    """The objective falls without end."""


def integers(values, axis=None):
    """Return integers k and exponents e with values = k * 2^e, and e the same along an axis."""
    mantissas, exponents = np.frexp(np.asarray(values, dtype=np.float64))
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    lowest = np.maximum(lowest, 0)
    exponents = np.where(whole == 0, 5000, exponents.astype(np.int64) - 53 + lowest)
    least = exponents.min(axis=axis, keepdims=True, initial=5000)
    shifts = np.where(whole == 0, 0, exponents - least)
    whole = (whole >> lowest).astype(object) << shifts.astype(object)
    least = np.where(least == 5000, 0, least)
    return whole, least if axis is None else np.squeeze(least, axis)


def shifted(number, power):
    """Return number * 2^power, which must be an integer."""
    return number << power if power >= 0 else number >> -power


class Problem:
    """Least squares over x >= 0 with one matrix and many targets, whose minimisers are exact.

    Parameters
    ----------
    A : array of shape (m, n)
        One atom per column, finite floats.
    B : array of shape (m, t)
        One target per column.
    weights : array of shape (m,), optional
        Weights of the rows.
    penalty : float
        What a unit of weight costs.
    """

    def __init__(self, A, B, weights=None, penalty=0.0):
        self.n, self.t = A.shape[1], B.shape[1]
        used = np.abs(A).max(axis=1, initial=0.0) > 0
        if weights is not None:
            used &= weights > 0
        P, self.p = integers(A[used], axis=0)
        Q, self.s = integers(B[used], axis=0)
        row, v = (None, 0) if weights is None else integers(weights[used])
        self.v = int(np.max(v))
        self.P, WP = P, P if row is None else row[:, None] * P
        self._WP = WP
        self.c = dot(WP.T, Q)
        self.penalty = penalty
        if penalty:
            self._charge(penalty)
        self._inverses, self._gram = {}, {}

    def _charge(self, penalty):
        """Subtract the penalty from c, in units that are fine enough."""
        k, e = integers(np.array([penalty]))
        finest = int(e.min()) - self.v - int(self.p.max())
        for i in range(self.t):
            fine = max(0, int(self.s[i]) - finest)
            self.s[i] -= fine
            unit = int(e.min()) - self.v - int(self.s[i])
            for j in range(self.n):
                share = shifted(int(k[0]), unit - int(self.p[j]))
                self.c[j, i] = (self.c[j, i] << fine) - share

    @cached_property
    def whole(self):
        """G as a whole."""
        return dot(self._WP.T, self.P)

    def gram(self, support):
        """Return the columns of G of a support, as an array of shape (n, k)."""
        if self.n <= 64:
            return self.whole[:, list(support)]
        for j in support:
            if j not in self._gram:
                self._gram[j] = dot(self._WP.T, self.P[:, [j]])[:, 0]
        columns = [self._gram[j] for j in support]
        return np.stack(columns, axis=1) if columns else np.empty((self.n, 0), dtype=object)

    def inverse(self, support):
        """Return independent atoms of a support, the adjugate of their G, and its determinant."""
        if support not in self._inverses:
            kept, adjugate, det = adjugate_of(self.gram(support)[list(support)])
            self._inverses[support] = tuple(support[i] for i in kept), adjugate, det
        return self._inverses[support]

    def solve(self, support, c):
        """Return independent atoms of a support, and N, d, g for columns c.

        Where these atoms are level, the others being zero, y = N / d, and the slopes are g / d.
        """
        support, adjugate, d = self.inverse(support)
        rows = list(support)
        N = np.zeros(c.shape, dtype=object)
        g = -d * c
        if rows:
            solved = dot(adjugate, c[rows])
            N[rows] = solved
            g = g + dot(self.gram(support), solved)
        return support, N, d, g

    def minimiser(self, i, guess):
        """Return N, d, g of a minimiser of target i, None if it was not found.

        The support is corrected by all wrong signs at once; if that goes on, and there are few
        rows or atoms, it is found by the method of Lawson and Hanson, which ends.
        """
        c, support = self.c[:, [i]], tuple(guess)
        for _ in range(ROUNDS):
            support, N, d, g = self.solve(support, c)
            wrong = {j for j in support if N[j, 0] < 0}
            steep = {j for j in range(self.n) if g[j, 0] < 0} - set(support)
            if not wrong and not steep:
                return N[:, 0], d, g[:, 0]
            if len(steep) > len(self.P):
                steep = set(sorted(steep, key=lambda j: g[j, 0])[:2])
            support = tuple(sorted(set(support) - wrong | steep))
        if min(self.P.shape) > FEW:
            return None
        _, N, d, g = self.solve(self._atom_by_atom(c), c)
        return N[:, 0], d, g[:, 0]

    def _atom_by_atom(self, c):
        """Return the support of a minimiser by Lawson's and Hanson's method."""
        support, y = self._first(c)
        while True:
            _, N, d, g = self.solve(support, c)
            steepest = min(range(self.n), key=lambda j: g[j, 0])
            if g[steepest, 0] >= 0:
                return support
            support = self._with(support, steepest, y)
            while True:
                _, N, d, _ = self.solve(support, c)
                z = [Fraction(int(N[j, 0]), int(d)) for j in range(self.n)]
                low = [j for j in support if z[j] <= 0]
                if not low:
                    y = z
                    break
                step = min(y[j] / (y[j] - z[j]) if y[j] != z[j] else Fraction(0) for j in low)
                y = [a + step * (b - a) for a, b in zip(y, z, strict=True)]
                support = tuple(j for j in support if y[j] > 0 or (z[j] > 0))

    def _first(self, c):
        """Return the support with which Lawson's and Hanson's method begins, and the weights."""
        return (), [Fraction(0)] * self.n

    def _with(self, support, joining, y):
        """Return a support with one more atom, which trades places if it depends on the others.

        That happens with a penalty alone: the way along which x stays and the penalty falls ends
        where another weight is zero. The weights y are moved there.
        """
        wider = tuple(sorted((*support, joining)))
        if len(self.inverse(wider)[0]) == len(wider):
            return wider
        _, N, d, _ = self.solve(support, self.gram((joining,)))
        way = {j: Fraction(-int(N[j, 0]), int(d)) for j in support}
        leaves = [(y[j] / -way[j], j) for j in support if way[j] < 0]
        if not leaves:
            raise UnboundedError
        step, leaving = min(leaves)
        for j in support:
            y[j] += step * way[j]
        y[leaving], y[joining] = Fraction(0), y[joining] + step
        return tuple(j for j in wider if j != leaving)

    def minimisers(self, X):
        """Yield targets, N, d and g of their minimisers, guessed from the supports of some X.

        Targets whose minimiser was not found are left out.
        """
        groups = {}
        for i in range(self.t):
            groups.setdefault((X[:, i] > 0).tobytes(), []).append(i)
        for members in groups.values():
            guess = tuple(np.flatnonzero(X[:, members[0]] > 0).tolist())
            _, N, d, g = self.solve(guess, self.c[:, members])
            right = (N >= 0).all(axis=0) & (g >= 0).all(axis=0)
            if right.any():
                yield np.array(members)[right].tolist(), N[:, right], d, g[:, right]
            for i in np.array(members)[~right].tolist():
                found = self.minimiser(i, guess)
                if found is not None:
                    yield [i], found[0][:, None], found[1], found[2][:, None]

    def gradients(self, members, N, d, g):
        """Return the slopes of f at N / d, times d, for targets whose g are known."""
        return g

    def excesses(self, X, kept=None):
        """Return {i: (p, q)} with f(x) - f* = p / q exactly, for the columns x of X.

        A function `kept` of targets, N and d says whose minimisers count, of all by default.
        """
        found = {}
        for members, N, d, g in self.minimisers(X):
            if kept is not None:
                chosen = kept(members, N, d)
                members = np.array(members)[chosen].tolist()
                N, g = N[:, chosen], g[:, chosen]
                if not members:
                    continue
            g = self.gradients(members, N, d, g)
            K, e = integers(X[:, members], axis=0)
            powers = e - self.s[members] + self.p[:, None]
            h = np.maximum(0, -powers.min(axis=0))
            Y = K << (powers + h).astype(object)
            unit = np.array([1 << int(a) for a in h], dtype=object)
            E = d * Y - N * unit
            rows = np.flatnonzero((E != 0).any(axis=1)).tolist()
            E = E[rows]
            square = (E * dot(self.gram(tuple(rows))[rows], E)).sum(axis=0)
            tops = square + 2 * unit * (g[rows] * E).sum(axis=0)
            for i, top, one in zip(members, tops, unit, strict=True):
                power, low = 2 * int(self.s[i]) + self.v, 2 * d * d * one * one
                found[i] = (int(top) << power, low) if power >= 0 else (int(top), low << -power)
        return found

    def units(self, members):
        """Return what a unit of each entry of y is in x, for some targets."""
        return [[Fraction(2) ** (int(self.s[i]) - int(p)) for p in self.p] for i in members]

    def solution(self, i, found):
        """Return x* of target i as floats."""
        (units,) = self.units([i])
        return np.array(
            [
                _float(Fraction(int(a), int(found[1])) * u)
                for a, u in zip(found[0], units, strict=True)
            ]
        )


def exceeds(excess, gap):
    """Return whether p / q > gap, exactly."""
    top, low = float(gap).as_integer_ratio()
    return excess[0] * low > top * excess[1]


def _float(fraction):
    try:
        return float(fraction)
    except OverflowError:
        return ldexp(1.0, 1023) * 2


def dot(left, right):
    """Return a matrix product of Python's integers, of any size."""
    if 0 in left.shape or 0 in right.shape:
        return np.full((left.shape[0], right.shape[1]), 0, dtype=object)
    return left @ right


def adjugate_of(G):
    """Return which rows of a positive semidefinite matrix are independent, adj and det of those.

    Fraction-free elimination after Bareiss, in which every division is exact. A row whose pivot is
    zero depends on those before it and is left out.
    """
    k = len(G)
    M = np.full((k, 2 * k), 0, dtype=object)
    M[:, :k] = G
    M[np.arange(k), k + np.arange(k)] = 1
    before, kept = 1, []
    for i in range(k):
        pivot = M[i, i]
        if pivot == 0:
            continue
        row = M[i].copy()
        M = (pivot * M - np.multiply.outer(M[:, i], row)) // before
        M[i], before = row, pivot
        kept.append(i)
    return kept, M[np.ix_(kept, [k + i for i in kept])], before


def square_sum(b, weights=None):
    """Return 1/2 sum_i w_i b_i^2, which is f(0), as a fraction."""
    total = Fraction(0)
    for i, entry in enumerate(b):
        total += Fraction(float(entry)) ** 2 * (1 if weights is None else Fraction(weights[i]))
    return total / 2
