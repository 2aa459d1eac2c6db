"""False proofs and wrong values of losses, found by a screen of many answers at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from answers import GROSS, TIGHT, Failure
from digits import ALLOWED, LossProblem
from losses import ALL_LOSSES
from screen import Batch

NEAR, GROSS_GAP = 0.01, 1e-9
"""When a point below is looked for a second time, from another start.

For a gap of more than the second share of the size of f that is, by the screen, larger than the
truth by less than the first share of itself.
"""

WRONG = 1e-9
"""A value is wrong if it differs by more than this share of the size of its terms."""


@dataclass(frozen=True)
class Looked:
    """What the screen and 50 digits say of one answer.

    Attributes
    ----------
    known : bool
        Whether f(x) and the size of its terms are finite, so that anything can be said.
    suspicious : bool
        Whether it was decided in 50 digits.
    missing : float
        By how much the proof is false; 0 if it is not.
    size : float
        The size of what is added up in f.
    wrong : float or None
        The value at x where the answer says another one.
    """

    known: bool
    suspicious: bool
    missing: float
    size: float
    wrong: float | None


def floors(case, targets):
    """Return the least intercepts of some targets; None if the loss has no intercept."""
    if not case.kind.intercept:
        return None
    if not ALL_LOSSES[case.kind.loss].positive:
        return np.full(len(targets), -np.inf)
    zero = (case.B[:, targets] == 0) & (entry_weights(case, targets) > 0)
    return np.where(zero.any(axis=0), 0.0, -np.inf)


def entry_weights(case, targets):
    """Return the weights of the entries of some targets."""
    if "W" in case.data:
        return case.data["W"][:, targets]
    w = case.data.get("w", np.ones(len(case.A)))
    return np.repeat(w[:, None], len(targets), axis=1)


@np.errstate(all="ignore")
def looked_at(case, pairs):
    """Return what is known of some answers, given as pairs of a target and an answer."""
    targets = [i for i, _ in pairs]
    radius = case.data.get("radius", np.inf)
    penalties = np.array([answer.penalty for _, answer in pairs])
    gaps = np.array([answer.gap if answer.proven else np.inf for _, answer in pairs])
    lows = floors(case, targets)
    weights = entry_weights(case, targets)
    batch = Batch(
        ALL_LOSSES[case.kind.loss], case.A, case.B[:, targets], weights, penalties, lows,
        None if radius == np.inf else np.full(len(pairs), radius),
    )  # fmt: skip
    X = batch.with_intercepts(np.stack([answer.x for _, answer in pairs], axis=1))
    here, sizes = batch.values(X), batch.sizes(X)
    Y, there = batch.lowest(X)
    again = np.flatnonzero((gaps > GROSS_GAP * sizes) & (here - there > (1 - NEAR) * gaps))
    if len(again):
        some = batch.part(again)
        better, lower = some.lowest(some.middle())
        better, again = better[:, lower < there[again]], again[lower < there[again]]
        Y[:, again], there[again] = better, batch.part(again).values(better)
    found = []
    for place, (i, answer) in enumerate(pairs):
        size, gap, excess = sizes[place], gaps[place], here[place] - there[place]
        x, missing, wrong = X[:, place], 0.0, None
        known = np.isfinite(here[place]) and np.isfinite(size)
        suspicious = known and excess - gap > 0.5 * ALLOWED * size
        off = answer.value is not None and known and abs(answer.value - here[place]) > WRONG * size
        if suspicious or off:
            problem = LossProblem(
                case.kind.loss, case.A, case.B[:, i], weights[:, place], answer.penalty,
                None if lows is None else lows[place], radius,
            )  # fmt: skip
        if suspicious:
            missing = problem.false(x, gap, Y[:, place])
        if off:
            value = float(problem.best_value(x))
            wrong = value if abs(answer.value - value) > WRONG * size else None
        found.append(Looked(bool(known), bool(suspicious), missing, size, wrong))
    return found


def false_losses(case, sound, counts):
    """Return false proofs of another loss, as far as lower values were found, and wrong values."""
    failures = []
    pairs = [(i, a) for i, a in sound if np.isfinite(a.x).all()]
    for (i, answer), found in zip(pairs, looked_at(case, pairs) if pairs else [], strict=True):
        counts["sized"] += 1
        counts["tight"] += bool(answer.proven and answer.gap < TIGHT * found.size)
        counts["checked" if found.known else "unchecked"] += answer.proven
        counts["suspicious"] += found.suspicious
        if found.missing:
            share = found.missing / found.size
            counts["false"] += 1
            counts["gross"] += share > GROSS
            detail = f"gap={answer.gap!r}, missing {found.missing:.3g}, {share:.2g} of f"
            failures.append(Failure("false proof", i, detail, share))
        if found.wrong is not None:
            counts["wrong value"] += 1
            detail = f"value={answer.value!r}, f(x)={found.wrong!r}"
            share = min(abs(answer.value - found.wrong) / found.size, 1e300)
            failures.append(Failure("wrong value", i, detail, share))
    return failures
