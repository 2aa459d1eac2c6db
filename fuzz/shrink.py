"""Failing cases made small."""

from __future__ import annotations

from collections import Counter

from checks import judge

LARGE, TRIES = 500, 300
"""Cases with more entries stay as they are; others are shrunk in about so many trials."""


def shrunk(case, failure):
    """Return a case with fewer rows, columns and targets that fails in the same way.

    A false proof must stay as gross as it was, up to a factor of a hundred.
    """
    again, tries = case.A.size <= LARGE and "no end" not in failure.detail, 0
    while again and tries < TRIES:
        again = False
        for smaller in _smaller(case, failure):
            tries += 1
            found = _same(smaller, failure)
            if found is not None:
                case, failure, again = smaller, found, True
                break
    return case, failure


def _smaller(case, failure):
    m, n, t = *case.A.shape, case.B.shape[1]
    if t > 1:
        yield case.part(targets=[failure.target])
        for left_out in range(t):
            yield case.part(targets=[i for i in range(t) if i != left_out])
    for left_out in range(n if n > 1 else 0):
        yield case.part(columns=[j for j in range(n) if j != left_out])
    for left_out in range(m if m > 1 else 0):
        yield case.part(rows=[j for j in range(m) if j != left_out])


def _same(case, failure):
    """Return the failure of a case that is like another, None if there is none."""
    try:
        found = judge(case, Counter())
    except Exception:  # such as a limit that no longer fits the columns
        return None
    like = [
        other for other in found
        if other.what == failure.what and other.size >= failure.size / 100
    ]  # fmt: skip
    return max(like, key=lambda other: other.size, default=None)
