"""What is wrong with the answers to a case: false proofs, exceptions, numbers that are none."""

from __future__ import annotations

import signal
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np

import conepursuit
from answers import Answer, Failure
from cases import Case
from exact import Problem, square_sum
from loss_proofs import false_losses
from square_proofs import compare, count_tight, false_squares, weights_of

HOME = Path(conepursuit.__file__).parent
LARGEST, SMALLEST = Fraction(1e290), np.finfo(np.float64).tiny

LIMIT = 20.0
"""Seconds of the CPU that a call may take."""


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
    if hasattr(result, "coef_"):  # an estimator, whose units are those of the mean loss
        rows, x = len(case.A), np.ravel(result.coef_)
        price = rows * case.data.get("alpha", 0.0)
        gap, numbers = float(np.ravel(result.gap_)[0]), tuple(np.ravel(result.intercept_))
        proven = bool(np.ravel(result.proven_)[0])
        status = np.ravel(np.array(result.status_, dtype=object))[0]
        return Answer(x, rows * gap, proven, numbers, price, status.success)
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
            failure = (
                unlimited(case, i, answer) or invalid(case, i, answer) or wrong_sum(case, i, answer)
            )
            if failure is not None:
                failures.append(failure)
                counts[failure.what] += 1
            else:
                counts["answers"] += 1
                counts["proven"] += answer.proven
                sound.append((i, answer))
    if case.kind.squares:
        for i, answer in sound:
            count_tight(case, i, answer, counts)
        failures += false_squares(case, sound, counts)
        if "certify_nnls" not in case.kind.text and case.kind.group == "nnls" and thorough:
            compare(case, sound, counts)
    elif thorough and sound:
        failures += false_losses(case, sound, counts)
    return failures


def unlimited(case, i, answer):
    """Return a failure if a gap is no number that is not negative, or no bound but proven.

    The gap of a run that ended with success is finite, unless f is beyond floats.
    """
    known = np.isfinite(answer.gap) or not (answer.proven or answer.success)
    if answer.gap >= 0 and known:
        return None
    most = np.nan_to_num(answer.x).max(initial=0.0)
    if answer.gap == np.inf and not answer.proven and _beyond_floats(case, i, most):
        return None
    said = "proven" if answer.proven else "an estimate"
    success = ", of a run that ended with success" if answer.success else ""
    return Failure("not finite", i, f"gap={answer.gap}, {said}{success}")


def invalid(case, i, answer):
    """Return a failure if weights are negative, or numbers NaN or infinite without need.

    There is need where x* or f cannot be written in floats.
    """
    # An estimate of a gap may be infinite: `unlimited` tells where that is wrong.
    gap = [answer.gap] if case.kind.squares else []
    numbers = np.array([*answer.x, *gap, *answer.others])
    if not np.isnan(numbers).any() and (answer.x >= 0).all():
        if np.isfinite(numbers).all():
            return None
        # A run that found no point where f is finite says so, and has no success.
        failed = np.isfinite(answer.x).all() and not (answer.proven or answer.success)
        if failed and not case.kind.squares:
            return None
        if _beyond_floats(case, i, answer.x.max(initial=0.0)):
            return None
    return Failure("invalid", i, f"x={answer.x}, gap={answer.gap}, others={answer.others}")


def _beyond_floats(case, i, answer_size):
    """Return whether f(0), a slope at 0 or a penalty is close to overflow, or x* beyond floats."""
    weights = weights_of(case, i)
    b, A = case.B[:, i], case.A
    limit = case.data.get("s", case.data.get("radius", 0.0))
    if (Fraction(float(np.abs(A).max())) * Fraction(min(limit, 1e308))) ** 2 * len(b) > LARGEST:
        return True
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


def wrong_sum(case, i, answer):
    """Return a failure if the weights miss the sum asked for by more than a share of 2^-52."""
    if "s" not in case.data or not np.isfinite(answer.x).all():
        return None
    limit = Fraction(case.data["s"])
    beyond = sum(map(Fraction, answer.x.tolist()), -limit)
    if "sum_to=" in case.kind.text:
        beyond = abs(beyond)
    if beyond <= limit / 2**52:
        return None
    return Failure("invalid", i, f"sum(x) - s = {float(beyond)!r}")
