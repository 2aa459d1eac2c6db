"""What the estimators of greedy factorisations have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from conepursuit.arrays import Array, Vector, is_integer
from conepursuit.caller import warn_caller
from conepursuit.factorization.data import FactorData
from conepursuit.factorization.greedy import Factorization, Progress, factorize
from conepursuit.factorization.held_out import choose_rank
from conepursuit.factorization.losses import NO_PENALTIES, FactorLoss, Factors, Penalty
from conepursuit.factorization.sources import count_sources
from conepursuit.losses import OLD_NAMES, loss_named, named_losses
from conepursuit.matrix_fits.arguments import tolerance
from conepursuit.tensors import marginals

THREADED = 4_000_000
"""Data of at least this many entries are fitted with all threads of the BLAS, others with one."""

FEW = 4
"""Ranks up to this are reached under a divergence by dividing components, one at a time.

Higher ones start from a short fit by least squares.
"""

SHORT, RAISED = 5, 0.01
"""Sweeps by least squares at the last rank before those of a divergence, and what zeros become.

That is a share of the mean of their component; see `FactorLoss.raised`.
"""

BLAS = ThreadpoolController()
"""The threads of the libraries for linear algebra, which are searched for once, not in a fit."""


RULES: dict[str, tuple[Callable[..., tuple[int, Vector]], str]] = {
    "auto": (choose_rank, "held_out_path_"),
    "sources": (count_sources, "stability_path_"),
}
"""What chooses a rank, by the value of `n_components`, and the attribute that has its path."""


class Run(NamedTuple):
    """What a caller adds to a fit: factors to start from, and who is shown how it goes on.

    Factors are in the order of the axes of X.
    """

    start: Factors | None = None
    progress: Progress | None = None


class GreedyFactorization(BaseEstimator, ABC):
    """A non-negative factorisation that is built up one rank-one atom at a time.

    `GreedyNMF` and `GreedyCP` say what their parameters and attributes are.
    """

    choices: ClassVar[dict[str, tuple[str | None, ...]]]
    """The values that `algorithm` and `correction` may have."""

    growth: ClassVar[float]
    """How many atoms join at a time without `path`, as a share of those that are there."""

    rank_path_: Vector
    oracle_accuracy_: Vector
    n_components_: int

    def at_rank(self, rank: int) -> Self:
        """Return a fitted estimator with the factors of a lower rank, for a fit with `path`.

        Parameters
        ----------
        rank : int
            From 1 to `n_components_`.

        Notes
        -----
        The factors are those on the way up. Their sweeps ended when one gained less than 1e-4 of
        the objective, or after `rank_sweeps`, so that a fit of that rank alone, which sweeps until
        `tol`, may be a little better. `n_iter_` is that of the whole fit.
        """
        check_is_fitted(self, "rank_path_")
        if not self._ranks:
            raise ValueError(
                "at_rank needs a fit that passes through all ranks and keeps their factors. Fit "
                f"{type(self).__name__}(..., path=True), without fixed factors."
            )
        if not (is_integer(rank) and 1 <= rank <= self.n_components_):
            raise ValueError(
                f"rank must be an integer from 1 to {self.n_components_}, the ranks of this fit; "
                f"got {rank!r}."
            )
        model = copy(self)
        model.__dict__.update(self._ranks[rank - 1])
        model.rank_path_, model.oracle_accuracy_ = (
            self.rank_path_[:rank],
            self.oracle_accuracy_[:rank],
        )
        model.n_components_, model._ranks = int(rank), self._ranks[:rank]
        return model

    def _fit_data(self, data: Any, fixed: Mapping[int, Array], run: Run | None = None) -> None:
        """Choose the rank if that is asked for, factorise, and set the attributes.

        `data` are a `FactorData`, or what has its methods. `fixed` has the factors of axes that are
        held fixed, with one component per row.
        """
        entries = int(np.prod(data.shape, dtype=float))
        rank: Any = self.n_components
        if rank not in RULES and int(rank) > entries:
            raise ValueError(
                f"n_components must be at most {entries}, the number of entries of X: no sum of "
                f"more components does what {entries} cannot; got {rank}."
            )
        for _, name in RULES.values():
            self.__dict__.pop(name, None)
        with BLAS.limit(limits=1 if entries < THREADED else None, user_api="blas"):
            self._fit_rank(data, rank, fixed, run or Run())

    def _fit_rank(self, data: Any, rank: Any, fixed: Mapping[int, Array], run: Run) -> None:
        seed: Any = self.random_state
        rng = None if seed is None else check_random_state(seed)
        if rank in RULES:
            draw, (choose, name) = np.random.RandomState(0) if rng is None else rng, RULES[rank]
            penalties = self._penalties(data.shape)
            rank, path = choose(data, penalties, draw, algorithm=self.algorithm)
            setattr(self, name, self._in_units(data, path) if choose is choose_rank else path)
        fit = self._factorize(data, int(rank), rng, fixed, run)
        self.rank_path_, self.oracle_accuracy_ = self._in_units(data, fit.path), fit.accuracy
        self.n_components_, self.n_iter_ = len(fit.path), len(fit.values) - 1
        self.__dict__.update(self._outcome(fit.factors, fit.fit, data, fixed))
        if not fit.converged:
            warn_caller(
                f"{type(self).__name__} made max_iter = {self.max_iter} sweeps and still gained "
                f"more than tol = {self.tol:g} of the objective with each. Raise max_iter or tol.",
                ConvergenceWarning,
            )

    @staticmethod
    def _scale(data: Any) -> float:
        """Return the factor that takes the objective to the units of X; it may overflow to inf."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.float64(data.unit) ** (1 if data.divergence else 2))

    def _in_units(self, data: Any, path: Vector) -> Vector:
        """Return objectives in the units of X; where these overflow, 0 stays 0."""
        with np.errstate(invalid="ignore"):
            return np.where(path > 0, self._scale(data) * path, 0.0)

    def _factorize(
        self, data: Any, rank: int, rng: Any, fixed: Mapping[int, Array], run: Run
    ) -> Factorization:
        """Factorise with the axes in the order that is fastest; return factors in that of X."""
        order, corrected = self._order(data), self.correction is not None
        penalties, whole = self._penalties(data.shape), data
        if order != sorted(order):
            data, penalties = data.transposed(order), penalties[::-1]
        loss = data.loss(penalties, correction=self.correction)
        options: dict[str, Any] = self._random(data.shape, rng)
        if fixed:
            loss.fixed = frozenset(order.index(axis) for axis in fixed)
            options["start"] = started(data, {order.index(a): F for a, F in fixed.items()}, rng)
        if run.start is not None:
            options["start"] = tuple(run.start[axis] for axis in order)

        def ordered(factors: Factors) -> Factors:
            return tuple(factors[order.index(axis)] for axis in sorted(order))

        def keep(factors: Factors, value: float) -> bool:
            factors = tuple(loss.cleaned(factor) for factor in factors)
            fit = value - loss.cost(factors)
            self._ranks.append(self._outcome(ordered(factors), fit, whole, fixed))
            return False

        def progress(at: int, sweep: int, factors: Factors, value: float) -> bool:
            assert run.progress is not None
            return run.progress(at, sweep, ordered(factors), value)

        if run.progress is not None:
            options["progress"] = progress
        self._ranks: list[dict[str, Any]] = []
        ways = {
            "algorithm": self.algorithm,
            "growth": self._growth(data),
            "rank_sweeps": self._rank_sweeps() if corrected else 0,
        }
        short = data.divergence and len(order) == 2 and not (loss.penalised or "start" in options)
        if short and corrected and not self.path and (rank > FEW or not loss.splits):
            return self._from_squares(data, loss, rank, ways, options, ordered)
        fit = factorize(
            loss,
            rank,
            **ways,
            max_iter=self.max_iter if corrected else 0,
            tol=self.tol,
            rounds=self.oracle_rounds,
            watch=keep if self.path else None,
            **options,
        )
        return replace(fit, factors=ordered(fit.factors))

    def _from_squares(
        self,
        data: Any,
        loss: FactorLoss,
        rank: int,
        ways: dict[str, Any],
        options: dict[str, Any],
        ordered: Callable[[Factors], Factors],
    ) -> Factorization:
        """Minimise a divergence from a short fit by least squares, with its zeros raised.

        The ranks below have the divergence of rank one, which is known in closed form, and atoms
        the accuracy that the oracle had for least squares.
        """
        squared = replace(data, divergence=False).loss()
        progress = options.pop("progress", None)
        first = factorize(squared, rank, max_iter=SHORT, tol=0.0, **ways, **options)
        start = loss.raised(first.factors, RAISED)
        fit = factorize(
            loss, rank, start=start, max_iter=self.max_iter, tol=self.tol, progress=progress
        )
        one = loss.first()
        assert one is not None
        path = np.full(rank, max(loss.value(one), fit.path[-1]))
        path[-1] = fit.path[-1]
        return replace(fit, factors=ordered(fit.factors), path=path, accuracy=first.accuracy)

    def _growth(self, data: Any) -> float:
        """Return how many atoms join at a time, as a share of those that are there."""
        return 0.0 if self.path else self.growth

    def _rank_sweeps(self) -> Any:
        """Return the most sweeps at each rank below the last."""
        return self.rank_sweeps

    @abstractmethod
    def _outcome(
        self, factors: Factors, fit: float, data: Any, fixed: Mapping[int, Array]
    ) -> dict[str, Any]:
        """Return the attributes that hold some factors and their loss, by name."""

    @abstractmethod
    def _order(self, data: Any) -> list[int]:
        """Return the axes in the order in which they are treated."""

    @abstractmethod
    def _random(self, shape: tuple[int, ...], rng: Any) -> dict[str, Any]:
        """Return the arguments of `factorize` that depend on a seed; rng is None without one."""

    def _penalties(self, shape: tuple[int, ...]) -> tuple[Penalty, ...]:
        """Return the penalty of each factor, or none."""
        return NO_PENALTIES

    def _check(self) -> None:
        """Raise a ValueError that says which parameter is wrong."""
        rank: Any = self.n_components
        rule = isinstance(rank, str) and rank in RULES
        if not (rule or (is_integer(rank) and rank >= 1)):
            raise ValueError(
                f'n_components must be a positive integer, "auto" or "sources"; got {rank!r}.'
            )
        for name, choices in self.choices.items():
            given = getattr(self, name)
            if not (given is None or isinstance(given, str)) or given not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, choices))}; got {given!r}."
                )
        squared = self._loss_name(warn=True) == "squared_error"
        wrong = ("mu",) if squared else ("hals", "gcd", "bpp")
        if self.correction in wrong:
            raise ValueError(
                f'correction={self.correction!r} is not for loss={self.loss!r}. Use "auto".'
            )
        if not isinstance(self.path, (bool, np.bool_)):
            raise ValueError(f"path must be True or False; got {self.path!r}.")
        for name, least in (("max_iter", 1), ("rank_sweeps", 0), ("oracle_rounds", 0)):
            given = self._rank_sweeps() if name == "rank_sweeps" else getattr(self, name)
            if not (is_integer(given) and given >= least):
                raise ValueError(f"{name} must be an integer, {least} or more; got {given!r}.")
        tolerance(self.tol)

    def _loss_name(self, warn: bool = False) -> str:
        """Return the name of the loss; with `warn`, a deprecated one gives a DeprecationWarning."""
        if not warn and isinstance(self.loss, str):
            return OLD_NAMES.get(self.loss, self.loss)
        names = named_losses(factorizes=True)
        return loss_named(self.loss, names, old=("frobenius", "kullback-leibler")).name


def started(data: FactorData, fixed: Mapping[int, Array], rng: Any) -> Factors:
    """Return factors to start from: those that are fixed, and the sums of X in other axes.

    The sums of all components differ at random; otherwise they might stay the same.
    """
    draw, count = np.random.RandomState(0) if rng is None else rng, len(next(iter(fixed.values())))
    sums = marginals(data.X)
    free = [row * draw.uniform(0.5, 1.5, (count, row.shape[1])) for row in sums]
    return tuple(fixed.get(axis, factor) for axis, factor in enumerate(free))


def refuse_negative(entries: Any, name: str) -> None:
    """Raise a ValueError if an entry is negative; NaN is missing."""
    least = np.nanmin(entries) if np.size(entries) and not np.isnan(entries).all() else 0.0
    if least < 0:
        raise ValueError(
            f"Negative values in data passed to {name}: X must not be negative; the least "
            f"entry is {least:g}. Shift or clip X."
        )
