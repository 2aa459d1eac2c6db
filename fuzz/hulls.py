"""Least squares over a hull in rational arithmetic, by trying every support."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

MOST = 6
"""So many atoms are tried; 2^n systems are solved."""


def hull_excess(A, b, radius, x, *, always_full=False):
    """Return f(x) - f* for 1/2 ||A x - b||^2 over x >= 0 with sum(x) <= radius, as a fraction.

    With `always_full` the sum is equal to the radius. x are floats or fractions.
    """
    G, c = _gram(A, b)
    least = hull_minimum(G, c, Fraction(float(radius)), always_full=always_full)
    point = [a if isinstance(a, Fraction) else Fraction(float(a)) for a in x]
    return _form(G, c, point) - least


def hull_minimum(G, c, radius, *, always_full=False):
    """Return the least 1/2 <x, G x> - <c, x> over x >= 0 with sum(x) <= radius.

    Some minimiser has atoms that are independent, as they are or with a one below each of them.
    It is the minimiser on these atoms, with the sum free or, with `always_full` in any case, equal
    to the radius.
    """
    if len(c) > MOST:
        raise ValueError(f"at most {MOST} atoms; got {len(c)}")
    values = [] if always_full else [Fraction(0)]
    for k in range(1, len(c) + 1):
        for support in combinations(range(len(c)), k):
            for full in (True,) if always_full else (False, True):
                y = _level(G, c, support, radius if full else None)
                if y is not None and min(y) >= 0 and sum(y) <= radius:
                    values.append(_form(G, c, y))
    return min(values)


def _level(G, c, support, total):
    """Return where the atoms of a support are level, with a given sum if there is one."""
    rows = [
        [G[i][j] for j in support] + ([Fraction(1)] if total is not None else []) for i in support
    ]
    right = [c[i] for i in support]
    if total is not None:
        rows.append([Fraction(1)] * len(support) + [Fraction(0)])
        right.append(total)
    solved = solve(rows, right)
    if solved is None:
        return None
    y = [Fraction(0)] * len(c)
    for place, j in enumerate(support):
        y[j] = solved[place]
    return y


def solve(rows, right):
    """Return the solution of a square system of fractions, None if it is singular."""
    M = [[*row, value] for row, value in zip(rows, right, strict=True)]
    k = len(M)
    for i in range(k):
        pivot = next((r for r in range(i, k) if M[r][i] != 0), None)
        if pivot is None:
            return None
        M[i], M[pivot] = M[pivot], M[i]
        M[i] = [a / M[i][i] for a in M[i]]
        for r in range(k):
            if r != i and M[r][i] != 0:
                factor = M[r][i]
                M[r] = [a - factor * p for a, p in zip(M[r], M[i], strict=True)]
    return [row[-1] for row in M]


def _gram(A, b):
    columns = [[Fraction(float(a)) for a in column] for column in np.asarray(A).T]
    target = [Fraction(float(a)) for a in b]
    G = [[_inner(p, q) for q in columns] for p in columns]
    return G, [_inner(p, target) for p in columns]


def _inner(p, q):
    return sum((a * b for a, b in zip(p, q, strict=True)), Fraction(0))


def _form(G, c, x):
    return sum((x[i] * (_inner(G[i], x) / 2 - c[i]) for i in range(len(c)) if x[i]), Fraction(0))
