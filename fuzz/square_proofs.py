"""False proofs of least squares, by exact arithmetic and without any tolerance."""

from __future__ import annotations

import warnings
from fractions import Fraction

import mpmath
import numpy as np

import conepursuit
from answers import GROSS, TIGHT, Failure
from exact import Problem, exceeds, square_sum
from gram import gram_excesses
from sums import SumProblem, excesses_at_most


def count_tight(case, i, answer, counts):
    """Count small gaps, as shares of f(0)."""
    counts["sized"] += 1
    b = np.abs(case.B[:, i])
    unit = b.max() or 1.0
    with np.errstate(all="ignore"):
        share = answer.gap / unit / unit / (0.5 * np.sum((b / unit) ** 2) or 1.0)
    counts["tight"] += bool(answer.proven and share < TIGHT)


def weights_of(case, i):
    return case.data["W"][:, i] if "W" in case.data else case.data.get("w")


def false_squares(case, sound, counts):
    """Return the false proofs of least squares, by exact arithmetic and without any tolerance."""
    flat = [(i, a) for i, a in sound if a.proven and np.isfinite(a.x).all()]
    failures = []
    for group in _groups(case, flat):
        excesses = _excesses(case, group)
        counts["unchecked"] += len(group) - len(excesses)
        counts["checked"] += len(excesses)
        for place, excess in excesses.items():
            i, answer = group[place]
            if excess is None or exceeds(excess, answer.gap):
                failures.append(_false(case, i, answer, excess, counts))
    return failures


def _groups(case, pairs):
    """Return pairs of targets and answers in groups that have weights and a penalty in common."""
    if "W" in case.data:
        return [[pair] for pair in pairs]
    return [[p for p in pairs if p[1].penalty == v] for v in {a.penalty for _, a in pairs}]


def _excesses(case, group):
    """Return {place: (p, q)} with f(x) - f* = p / q, or None where f falls without end."""
    targets, X = [i for i, _ in group], np.stack([a.x for _, a in group], axis=1)
    A, B, weights = case.A, case.B[:, targets], weights_of(case, targets[0])
    if case.kind.gram:
        return gram_excesses(A, B, X)
    if "sum_to=" in case.kind.text:
        return SumProblem(A, B, weights, case.data["s"]).excesses(X)
    limit = case.data["s"] if "sum_at_most=" in case.kind.text else None
    limit = case.data["radius"] if "Hull(" in case.kind.text else limit
    if limit is not None:
        return excesses_at_most(A, B, weights, limit, X)
    return Problem(A, B, weights, group[0][1].penalty).excesses(X)


def _false(case, i, answer, excess, counts):
    """Return the failure of a false proof, and count it."""
    counts["false"] += 1
    if excess is None:
        counts["gross"] += 1
        return Failure("false proof", i, f"gap={answer.gap!r}, f is unbounded below", np.inf)
    excess, whole = Fraction(*excess), square_sum(case.B[:, i], weights_of(case, i))
    missing = excess - Fraction(answer.gap)
    size = _float(missing / whole) if whole else np.inf
    counts["gross"] += size > GROSS
    detail = f"gap={answer.gap!r}, f(x) - f* = {_text(excess)}, missing {size:.2g} of f(0)"
    return Failure("false proof", i, detail, size)


def _float(fraction):
    try:
        return float(fraction)
    except OverflowError:
        return np.inf


def _text(fraction):
    """Return a fraction to 17 digits, also where it is too small for a float."""
    return mpmath.nstr(mpmath.mpf(fraction.numerator) / fraction.denominator, 17)


def compare(case, sound, counts):
    """Count where certify_nnls proves less than half of the gap of the same weights."""
    for i, answer in sound[:1]:
        try:
            with warnings.catch_warnings(action="ignore"):
                said = conepursuit.certify_nnls(
                    case.A, case.B[:, i], answer.x, weights=weights_of(case, i)
                )
        except ValueError:
            continue
        counts["compared"] += 1
        counts["loose"] += bool(said.proven and answer.gap > 2 * said.gap)
