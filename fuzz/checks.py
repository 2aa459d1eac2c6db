"""What is wrong with the answers to a case: false proofs, exceptions, numbers that are none."""

from __future__ import annotations

import signal
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np

import conepursuit
from cases import Case
from exact import Problem, exceeds, square_sum
from hulls import hull_excess
from loss_proofs import looked_at

HOME = Path(conepursuit.__file__).parent
LARGEST, SMALLEST = Fraction(1e290), np.finfo(np.float64).tiny

GROSS = 1e-10
"""A proof that is false by more than this share of f(0) is more than rounding."""

LIMIT = 60.0
"""Seconds of the CPU that a call may take."""

TIGHT = 1e-10
"""A proven gap below this share of f(0) counts as tight."""


class EndlessCall(BaseException):
    """A call has gone on for so long that it may never end."""


@contextmanager
def limited(seconds):
    """Raise EndlessCall in the calling code after so many seconds of the CPU."""

    def end(number, frame):
        raise EndlessCall(f"no end after {seconds} seconds")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


@dataclass(frozen=True)
class Failure:
    """Something wrong with the answer for one target.

    Attributes
    ----------
    what : str
        "false proof", "wrong value", "not finite" (of a gap), "invalid" (of another number),
        "exception" or "warning".
    target : int
        Which column of B.
    detail : str
        What was seen.
    size : float
        By how much a proof is false or a value wrong, as a share of f(0) or of the terms of f.
    """

    what: str
    target: int
    detail: str
    size: float = 0.0


@dataclass(frozen=True)
class Answer:
    """What a call said of one target: weights, gap, proof, and other numbers that it returned.

    The value of f is None where the call returns none, or where it leaves out a constant.
    """

    x: np.ndarray
    gap: float
    proven: bool
    others: tuple
    penalty: float = 0.0
    success: bool = False
    value: float | None = None


def run(case: Case, counts: Counter):
    """Make the calls of a case; return its answers, by target, and the failures seen so far."""
    answers, failures = {}, []
    code = compile(case.kind.text, case.kind.name, "eval")
    t = case.B.shape[1]
    for i in range(t) if case.kind.single else [None]:
        try:
            with warnings.catch_warnings(record=True) as caught, limited(LIMIT):
                warnings.simplefilter("default")
                result = eval(code, case.scope(i))
            ours = [str(w.message) for w in caught if _careless(w)]
            if ours:
                counts["warning"] += 1
                failures.append(Failure("warning", i or 0, "; ".join(ours)))
        except (Exception, EndlessCall) as error:
            targets = 1 if case.kind.single else t
            if deliberate(error):
                counts["refused"] += targets
            else:
                counts["exception"] += targets
                detail = f"{type(error).__name__}: {error}"
                failures.append(Failure("exception", i or 0, detail))
            continue
        if i is None:
            answers.update({j: [read(case, result, j)] for j in range(t)})
        elif isinstance(result, conepursuit.PenaltyPath):
            pairs = zip(result.results, result.penalties, strict=True)
            answers[i] = [read(case, one, i, alone=True, penalty=p) for one, p in pairs]
        else:
            answers[i] = [read(case, result, i, alone=True)]
    return answers, failures


def deliberate(error):
    """Return whether an exception is one of the library's own, with a message."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    ours = HOME in Path(last).parents
    return ours and isinstance(error, ValueError | TypeError) and bool(str(error))


def _careless(warning):
    """Return whether a warning is one of NumPy's about the library's own arithmetic."""
    return issubclass(warning.category, RuntimeWarning) and HOME in Path(warning.filename).parents


def read(case, result, i, alone=False, penalty=None):
    """Return what a result of any class says of target i."""
    penalty = case.data.get("penalty", 0.0) if penalty is None else float(penalty)
    of = (lambda value: value) if alone else (lambda value: np.asarray(value)[..., i])
    if isinstance(result, conepursuit.Certificate):
        others = of(result.violation), of(result.complementarity)
        proven = of(np.asarray(result.method)[()]) != "estimate"
        return Answer(case.data["X"][:, i], float(of(result.gap)), bool(proven), others, penalty)
    if isinstance(result, conepursuit.Result):
        x, said = np.zeros(case.A.shape[1]), result.certificate
        x[list(result.atoms.keys)] = result.weights
        success, value = result.status.success, float(result.value)
        return Answer(x, said.gap, said.proven, (value,), penalty, success, value)
    success = bool(getattr(of(result.status), "success", False))
    if isinstance(result, conepursuit.NNLSResult):
        measure, value = of(result.rnorm), None
    else:
        measure = value = float(of(result.value))
    others = measure, *of(result.dual)
    proven, gap = bool(of(result.proven)), float(of(result.gap))
    return Answer(of(result.x), gap, proven, others, penalty, success, value)


def judge(case: Case, counts: Counter, thorough=True):
    """Make the calls of a case, count what they say, and return the failures.

    Answers for losses without an exact reference are compared with others where `thorough`.
    """
    answers, failures = run(case, counts)
    counts["problems"] += case.B.shape[1]
    sound = []
    for i, given in answers.items():
        for answer in given:
            failure = unlimited(i, answer) or invalid(case, i, answer)
            if failure is not None:
                failures.append(failure)
                counts[failure.what] += 1
            else:
                counts["answers"] += 1
                counts["proven"] += answer.proven
                sound.append((i, answer))
    if case.kind.squares:
        for i, answer in sound:
            _count_tight(case, i, answer, counts)
        failures += _false_squares(case, sound, counts)
        if "certify_nnls" not in case.kind.text and case.kind.group == "nnls" and thorough:
            _compare(case, sound, counts)
    elif thorough and sound:
        failures += _false_losses(case, sound, counts)
    return failures


def unlimited(i, answer):
    """Return a failure if a gap is not a number that is not negative, or no bound but proven."""
    if answer.gap >= 0 and (np.isfinite(answer.gap) or not (answer.proven or answer.success)):
        return None
    said = "proven" if answer.proven else "an estimate"
    success = ", of a run that ended with success" if answer.success else ""
    return Failure("not finite", i, f"gap={answer.gap}, {said}{success}")


def _count_tight(case, i, answer, counts):
    """Count small gaps, as shares of f(0)."""
    counts["sized"] += 1
    b = np.abs(case.B[:, i])
    unit = b.max() or 1.0
    with np.errstate(all="ignore"):
        share = answer.gap / unit / unit / (0.5 * np.sum((b / unit) ** 2) or 1.0)
    counts["tight"] += bool(answer.proven and share < TIGHT)


def invalid(case, i, answer):
    """Return a failure if weights are negative, or numbers NaN or infinite without need.

    There is need where x* or f cannot be written in floats.
    """
    numbers = np.array([*answer.x, answer.gap, *answer.others])
    if np.isfinite(numbers).all() and (answer.x >= 0).all():
        return None
    if (
        not np.isnan(numbers).any()
        and (answer.x >= 0).all()
        and _beyond_floats(case, i, answer.x.max(initial=0.0))
    ):
        return None
    return Failure("invalid", i, f"x={answer.x}, gap={answer.gap}, others={answer.others}")


def _beyond_floats(case, i, answer_size):
    """Return whether f(0), a slope at 0 or a penalty is close to overflow, or x* beyond floats."""
    weights = _weights(case, i)
    b, A = case.B[:, i], case.A
    if square_sum(b, weights) > LARGEST:
        return True
    if Fraction(float(case.data.get("penalty", 0.0))) * Fraction(float(answer_size)) > LARGEST:
        return True
    most = Fraction(float(np.abs(A).max())) * Fraction(float(np.abs(b).max())) * len(b)
    if most * (1 if weights is None else Fraction(float(weights.max()))) > LARGEST:
        return True
    problem = Problem(A, b[:, None], weights)
    found = problem.minimiser(0, ())
    if found is None:
        return False
    x, positive = problem.solution(0, found), found[0] > 0
    return not np.isfinite(x).all() or bool((x[positive] < SMALLEST).any())


def _weights(case, i):
    return case.data["W"][:, i] if "W" in case.data else case.data.get("w")


def _false_squares(case, sound, counts):
    """Return the false proofs of least squares, by exact arithmetic and without any tolerance."""
    flat = [(i, a) for i, a in sound if a.proven and np.isfinite(a.x).all()]
    if case.kind.text.count("Hull("):
        return _false_hulls(case, flat, counts)
    failures = []
    if "W" in case.data:
        groups = [[pair] for pair in flat]
    else:
        groups = [[p for p in flat if p[1].penalty == v] for v in {a.penalty for _, a in flat}]
    for group in groups:
        targets = [i for i, _ in group]
        problem = Problem(
            case.A, case.B[:, targets], _weights(case, targets[0]), group[0][1].penalty
        )
        excesses = problem.excesses(np.stack([a.x for _, a in group], axis=1))
        counts["unchecked"] += len(group) - len(excesses)
        counts["checked"] += len(excesses)
        for place, excess in excesses.items():
            i, answer = group[place]
            if exceeds(excess, answer.gap):
                failures.append(_false(case, i, answer, Fraction(*excess), counts))
    return failures


def _false_hulls(case, pairs, counts):
    failures = []
    for i, answer in pairs:
        excess = hull_excess(case.A, case.B[:, i], case.data["radius"], answer.x)
        counts["checked"] += 1
        if excess > Fraction(answer.gap):
            failures.append(_false(case, i, answer, excess, counts))
    return failures


def _false(case, i, answer, excess, counts):
    """Return the failure of a false proof, and count it."""
    whole = square_sum(case.B[:, i], _weights(case, i))
    missing = excess - Fraction(answer.gap)
    size = _float(missing / whole) if whole else np.inf
    counts["false"] += 1
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


def _false_losses(case, sound, counts):
    """Return false proofs of another loss, as far as lower values were found, and wrong values."""
    failures = []
    pairs = [(i, a) for i, a in sound if np.isfinite(a.x).all()]
    for (i, answer), found in zip(pairs, looked_at(case, pairs) if pairs else [], strict=True):
        counts["sized"] += 1
        counts["tight"] += bool(answer.proven and answer.gap < TIGHT * found.size)
        counts["checked"] += answer.proven
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


def _compare(case, sound, counts):
    """Count where certify_nnls proves less than half of the gap of the same weights."""
    for i, answer in sound[:1]:
        try:
            with warnings.catch_warnings(action="ignore"):
                said = conepursuit.certify_nnls(
                    case.A, case.B[:, i], answer.x, weights=_weights(case, i)
                )
        except ValueError:
            continue
        counts["compared"] += 1
        counts["loose"] += bool(said.proven and answer.gap > 2 * said.gap)
