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
from losses import LossProblem

HOME = Path(conepursuit.__file__).parent
LARGEST, SMALLEST = Fraction(1e290), np.finfo(np.float64).tiny

GROSS = 1e-10
"""A proof that is false by more than this share of f(0) is more than rounding."""

LIMIT = 180.0
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
        "false proof", "exception" or "invalid".
    target : int
        Which column of B.
    detail : str
        What was seen.
    size : float
        By how much a proof is false, as a share of f(0).
    """

    what: str
    target: int
    detail: str
    size: float = 0.0


@dataclass(frozen=True)
class Answer:
    """What a call said of one target: weights, gap, proof, and other numbers that it returned."""

    x: np.ndarray
    gap: float
    proven: bool
    others: tuple
    penalty: float = 0.0


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
            counts["warned"] += bool(caught)
        except (Exception, EndlessCall) as error:
            targets = 1 if case.kind.single else t
            if deliberate(error):
                counts["refused"] += targets
            else:
                counts["exceptions"] += targets
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


def read(case, result, i, alone=False, penalty=None):
    """Return what a result of any class says of target i."""
    penalty = case.data.get("penalty", 0.0) if penalty is None else float(penalty)
    if isinstance(result, conepursuit.Certificate):
        of = (lambda value: value) if alone else (lambda value: value[i])
        others = of(result.violation), of(result.complementarity)
        proven = of(np.asarray(result.method)[()]) != "estimate"
        return Answer(case.data["X"][:, i], float(of(result.gap)), proven, others, penalty)
    if isinstance(result, conepursuit.Result):
        x, said = np.zeros(case.A.shape[1]), result.certificate
        x[list(result.atoms.keys)] = result.weights
        return Answer(x, said.gap, said.proven, (result.value,), penalty)
    measure = result.rnorm if isinstance(result, conepursuit.NNLSResult) else result.value
    if alone:
        others = measure, *result.dual
        return Answer(result.x, float(result.gap), bool(result.proven), others, penalty)
    others = measure[i], *result.dual[:, i]
    return Answer(result.x[:, i], float(result.gap[i]), bool(result.proven[i]), others, penalty)


def judge(case: Case, counts: Counter, thorough=True):
    """Make the calls of a case, count what they say, and return the failures.

    Losses other than least squares are looked at closely where `thorough`.
    """
    answers, failures = run(case, counts)
    counts["problems"] += case.B.shape[1]
    sound = {}
    for i, given in answers.items():
        for answer in given:
            failure = invalid(case, i, answer)
            if failure is not None:
                failures.append(failure)
                counts["invalid"] += 1
            else:
                _count_proof(case, i, answer, counts)
                sound.setdefault(i, []).append(answer)
    if case.kind.loss != "LeastSquares":
        failures += _false_losses(case, sound, counts) if thorough else []
    else:
        failures += _false_squares(case, sound, counts)
        if "certify_nnls" not in case.kind.text and case.kind.group == "nnls" and thorough:
            _compare(case, sound, counts)
    return failures


def _count_proof(case, i, answer, counts):
    """Count proofs, and those with small gaps."""
    counts["answers"] += 1
    if not answer.proven:
        return
    counts["proven"] += 1
    b = np.abs(case.B[:, i])
    unit = b.max() or 1.0
    with np.errstate(all="ignore"):
        share = answer.gap / unit / unit / (0.5 * np.sum((b / unit) ** 2) or 1.0)
    counts["tight"] += bool(share < TIGHT)


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


def _false_squares(case, answers, counts):
    """Return the false proofs of least squares, by exact arithmetic and without any tolerance."""
    if case.kind.text.count("Hull("):
        return _false_hulls(case, answers, counts)
    failures = []
    flat = [
        (i, a) for i, given in answers.items() for a in given if a.proven and np.isfinite(a.gap)
    ]
    flat = [(i, a) for i, a in flat if np.isfinite(a.x).all()]
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


def _false_hulls(case, answers, counts):
    failures = []
    for i, given in answers.items():
        for answer in given:
            if answer.proven and np.isfinite(answer.gap):
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


def _false_losses(case, answers, counts):
    """Return the false proofs of another loss, as far as a lower value was found."""
    failures = []
    for i, given in answers.items():
        for answer in given:
            if not (answer.proven and np.isfinite(answer.gap)):
                continue
            problem = LossProblem(
                case.kind.loss, case.A, case.B[:, i], _weights(case, i), answer.penalty
            )
            counts["checked"] += 1
            missing = problem.false(answer.x, answer.gap)
            if missing:
                size = missing / (abs(answer.others[0]) or 1.0)
                counts["false"] += 1
                counts["gross"] += size > GROSS
                detail = f"gap={answer.gap!r}, missing {missing:.3g}, {size:.2g} of f(x)"
                failures.append(Failure("false proof", i, detail, size))
    return failures


def _compare(case, answers, counts):
    """Count where certify_nnls proves less than half of the gap of the same weights."""
    for i, (answer,) in list(answers.items())[:1]:
        try:
            with warnings.catch_warnings(action="ignore"):
                said = conepursuit.certify_nnls(
                    case.A, case.B[:, i], answer.x, weights=_weights(case, i)
                )
        except ValueError:
            continue
        counts["compared"] += 1
        counts["loose"] += bool(said.proven and answer.gap > 2 * said.gap)
