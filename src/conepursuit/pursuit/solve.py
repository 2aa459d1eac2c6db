"""The loop. Numerics are in `iterates`; stopping and records in `minimize`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from math import inf, isfinite, isnan, nan
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias, cast

from conepursuit.arrays import is_finite, is_number, quiet
from conepursuit.atoms.base import AtomSet
from conepursuit.callbacks import close
from conepursuit.checkpoints import Saved
from conepursuit.objectives.base import Objective
from conepursuit.pursuit.algorithms import Algorithm
from conepursuit.pursuit.certify import audited, certifier, own_rounding
from conepursuit.pursuit.domains import Domain
from conepursuit.pursuit.iterate import Iterate, Local
from conepursuit.pursuit.results import Result, State, Trace
from conepursuit.pursuit.starts import check_fit, first_point
from conepursuit.status import Status

Callback: TypeAlias = Callable[[State], bool | None]
"""Called with every state; True stops the run. A method `close` is called when the run ends."""


RISE = 1e-9
"""A rise of f by up to this share of |f| + |decrease| is rounding.

More, under a rule that promises descent, ends a run with the status RISING.
"""


def iterates(
    objective: Objective, domain: Domain, algorithm: Algorithm, *, start: Any = None
) -> Generator[State, Iterate | None, Status]:
    """Yield the states of an algorithm until it can go no further; there is no other limit.

    Parameters
    ----------
    objective : Objective
        What to minimise.
    domain : Cone, Span or Hull
        What to minimise over.
    algorithm : Algorithm
        How to minimise.
    start : Result, Iterate, checkpoint or array_like, optional
        Where to start: a result, its iterate, ``Checkpoint.load(path)``, or the weights of all
        atoms of a finite set, such as the columns of a Dictionary. By default, or if f or its
        gradient is infinite there, a run starts at the origin; if they are infinite at the origin
        too, at the best multiple of an atom, or of the sum of a few.

    Returns
    -------
    generator of State
        It returns the Status that ended it.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import NNMP, Cone, Dictionary, LeastSquares, iterates
    >>> for state in iterates(LeastSquares([3.0, 4.0]), Cone(Dictionary(np.eye(2))), NNMP()):
    ...     print(state.iteration, state.value, round(state.certificate.gap, 9))
    0 12.5 12.5
    1 4.5 4.5
    2 0.0 0.0
    """
    return _begun(objective, domain, algorithm, start)[0]


def _begun(
    objective: Objective, domain: Domain, algorithm: Algorithm, start: Any
) -> tuple[Generator[State, Iterate | None, Status], bool, float]:
    """Return the states of a run, whether it begins at the start given, and the passes before it.

    Those are passes over the blocks of a dictionary beyond memory, which may have served others.
    """
    check_fit(objective, domain)
    passes = domain.atoms.passes or 0.0
    if isinstance(algorithm, type) or not hasattr(algorithm, "direction"):
        name = getattr(algorithm, "__name__", type(algorithm).__name__)
        raise ValueError(f"the algorithm must be an instance; got {name}. Use PWMP(), say.")
    algorithm.check(objective, domain)
    first, value, given = first_point(objective, domain, start)
    iteration = start.iteration if isinstance(start, Saved) else 0
    return _states(objective, domain, algorithm, first, value, iteration), given, passes


def _states(
    objective: Objective,
    domain: Domain,
    algorithm: Algorithm,
    iterate: Iterate,
    reference: float,
    iteration: int,
) -> Generator[State, Iterate | None, Status]:
    """Run the loop; an iterate that is sent replaces the current one.

    The decrease of a state is measured from the value `reference`.
    """
    update, certify = algorithm.start(objective), certifier(objective, domain)
    step, good = nan, True
    while True:
        value, gradient = objective.value_and_gradient(iterate.x)
        if not (isfinite(value) and is_finite(gradient)):
            return Status.DIVERGED
        local = Local(domain, iterate, gradient)
        direction = algorithm.direction(local)
        full = value + local.cost
        rounding = own_rounding(objective, iterate.x, value)
        state = State(
            iteration, full, reference - full, certify(local, value), direction, iterate, step,
            good, rounding,
        )  # fmt: skip
        sent = yield state
        if sent is not None:
            iterate = sent
            continue
        if not direction.slope < 0:
            return _nowhere_to_go(state, domain)
        moved, step, good = update(iterate, local, direction)
        if step == inf:
            return Status.UNBOUNDED
        if moved.same_weights(iterate):
            return Status.STALLED
        iterate, iteration = moved, iteration + 1


def _nowhere_to_go(state: State, domain: Domain) -> Status:
    """Return the status of a run that ends because no direction descends.

    It is STATIONARY if the gap is small. Otherwise, or if nothing is known of the accuracy of the
    oracle, it is STALLED: an approximate oracle may have missed an atom that descends. A slope of
    NaN is DIVERGED.
    """
    if not state.direction.slope >= 0:
        return Status.DIVERGED
    if isnan(state.certificate.accuracy):
        return Status.STALLED
    rounding = 1e-12 * (abs(state.value) + abs(state.decrease))
    level = state.within(1e-8) or state.certificate.gap <= rounding
    return Status.STATIONARY if level else Status.STALLED


@quiet
def minimize(
    objective: Objective,
    domain: Domain,
    algorithm: Algorithm,
    *,
    max_iter: int = 1000,
    tol: float = 1e-8,
    max_time: float | None = None,
    max_atoms: int | None = None,
    callback: Callback | None = None,
    start: Any = None,
) -> Result:
    """Minimise an objective over a domain by an algorithm.

    Parameters
    ----------
    objective : Objective
        f, such as ``LeastSquares(y)``.
    domain : Cone, Span or Hull
        Such as ``Cone(Dictionary(D))``.
    algorithm : Algorithm
        Such as ``PWMP()``.
    max_iter : int
        Most iterations.
    tol : float
        Stop when ``gap <= tol * (f(0) - f(x))``: relative to the decrease since the origin, so
        that neither units nor an additive constant of f matter. Where f(0) is infinite, the
        decrease since the first point inside the domain of f counts.
    max_time : float, optional
        Most seconds.
    max_atoms : int, optional
        Stop when so many atoms have weight. With `FCMP` this is orthogonal matching pursuit: atoms
        are taken by their slopes, none is exchanged, and the weights are the best ones of these
        atoms. For the columns of a matrix and losses with curvature, `nnfit` with ``max_atoms=``
        finds better atoms.
    callback : callable, optional
        Called with every State; True stops the run. ``Checkpoint(path)`` keeps a file from which
        a run that was killed goes on.
    start : Result, Iterate, checkpoint or array_like, optional
        Where to start; see `iterates`.

    Returns
    -------
    Result
        Lack of convergence is a status, never an exception. Ctrl-C returns the best iterate.

    Examples
    --------
    >>> import numpy as np
    >>> from conepursuit import PWMP, Cone, Dictionary, LeastSquares, minimize
    >>> D = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> result = minimize(LeastSquares([2.0, 1.0]), Cone(Dictionary(D)), PWMP())
    >>> result.status.name, result.certificate.proven
    ('CONVERGED', True)
    """
    if not (max_iter >= 0 and is_number(tol) and tol >= 0 and (max_time is None or max_time > 0)):
        raise ValueError(
            "max_iter and tol must not be negative and max_time must be positive; "
            f"got max_iter={max_iter}, tol={tol}, max_time={max_time}."
        )
    if max_atoms is not None and not max_atoms >= 1:
        raise ValueError(f"max_atoms must be a positive integer; got {max_atoms!r}.")
    run, given, passes = _begun(objective, domain, algorithm, start)
    limits = Limits(max_iter, tol, max_time, max_atoms)
    watch = _Watch(limits, callback, algorithm.monotone, given, domain.atoms, passes)
    try:
        status = watch.follow(run)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    finally:
        close(callback)
    state = watch.last if status.success else watch.best
    if state is None:  # the run ended before its first state
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        raise ValueError(
            f"{objective!r}, or its gradient, is infinite or NaN where the run starts, though it "
            "was not a moment before. It must be a function of x alone."
        )
    iterate = state.iterate.recomputed()
    if not domain.penalty and domain.room(iterate.weights) == inf and objective.recedes(iterate.x):
        status = Status.UNBOUNDED
    value, certificate = audited(objective, domain, iterate)
    return Result(
        iterate, value, certificate, status, watch.n_iter, watch.trace, domain.atoms.n_atoms
    )


class Limits(NamedTuple):
    """The arguments of `minimize` that end a run."""

    max_iter: int
    tol: float
    max_time: float | None
    max_atoms: int | None


class _Watch:
    """Follows a run: records it, and decides when it ends."""

    def __init__(
        self,
        limits: Limits,
        callback: Callback | None,
        monotone: bool,
        given: bool,
        atoms: AtomSet,
        passes: float,
    ) -> None:
        self.limits, self.atoms, self.passes = limits, atoms, passes
        self.callback, self.monotone = callback, monotone
        self.began, self.trace = perf_counter(), Trace("given" if given else "origin")
        self.best: State | None = None
        self.last: State | None = None

    @property
    def n_iter(self) -> int:
        """Steps made."""
        return self.trace.n_states - 1

    def follow(self, run: Generator[State, Iterate | None, Status]) -> Status:
        """Take the states of a run until it ends by itself or `stop` ends it."""
        status = None
        while status is None:
            try:
                state = next(run)
                # Rounding moves x away from the sum of its atoms: test again with x made afresh.
                if state.within(self.limits.tol):
                    state = run.send(state.iterate.recomputed())
            except StopIteration as end:
                return cast(Status, end.value)
            status = self.stop(state)
        return status

    def stop(self, state: State) -> Status | None:
        """Record a state; return the status if the run is to end there, otherwise None."""
        elapsed = perf_counter() - self.began
        if self.last is None and self.trace.start == "origin" and len(state.iterate.weights):
            keys = state.iterate.atoms.keys
            if len(keys) > (self.limits.max_atoms or inf):
                raise ValueError(
                    f"f is finite from {len(keys)} atoms on, as far as can be seen, but max_atoms "
                    f"is {self.limits.max_atoms}. Raise it, or start where f is finite."
                )
            which = f"atom {keys[0]!r}" if len(keys) == 1 else f"the sum of {len(keys)} atoms"
            self.trace.start = f"multiple of {which}"
        self.last = state
        passes = self.atoms.passes
        self.trace.record(state, nan if passes is None else passes - self.passes, elapsed)
        if self.best is None or state.value <= self.best.value:
            self.best = state
        asked = self.callback is not None and self.callback(state)
        limits = self.limits
        if state.within(limits.tol):
            return Status.CONVERGED
        if self.monotone and state.value - self.best.value > RISE * (
            abs(self.best.decrease) + abs(self.best.value)
        ):
            return Status.RISING
        if asked:
            return Status.STOPPED
        if self.n_iter >= limits.max_iter:
            return Status.MAX_ITER
        if limits.max_time is not None and elapsed >= limits.max_time:
            return Status.MAX_TIME
        if limits.max_atoms is not None and len(state.iterate.weights) >= limits.max_atoms:
            return Status.MAX_ATOMS
        return None
