"""The fits behind ``conepursuit solve``, and what is written of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.cli.layouts import Layout
from conepursuit.cli.opening import kind_of, opened
from conepursuit.cli.problems import Problem, target_names
from conepursuit.cli.reading import Data, check_entries, read_targets
from conepursuit.cli.tables import DETECT
from conepursuit.cli.writing import write_csv, write_json
from conepursuit.files import reading
from conepursuit.least_squares.api import nnls
from conepursuit.loss_fits.api import nnfit
from conepursuit.losses import LOSSES
from conepursuit.status import Status

PARTS = 50
"""Into so many parts many targets are divided, between which a progress bar moves."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The fits of all targets.

    Attributes
    ----------
    x : array of shape (n, n_targets)
        Their weights.
    measure : array of shape (n_targets,)
        The norms of the residuals, or the values of the objective.
    relative_gap : array of shape (n_targets,)
        The gaps over the decreases of the objective since `Problem.start`; NaN where there is none.
    gap, proven, status, n_iter : arrays of shape (n_targets,)
        As in `FitResult`.
    """

    x: Array
    measure: Array
    relative_gap: Array
    gap: Array
    proven: Array
    status: Array
    n_iter: Array

    @property
    def failures(self) -> list[int]:
        """The targets whose fits have not converged; to stop at `max_atoms` was asked for."""
        fine = [status.success or status is Status.MAX_ATOMS for status in self.status]
        return [i for i, good in enumerate(fine) if not good]


def fit_all(problem: Problem, advance: Callable[[int], None]) -> Fit:
    """Fit every target; `advance` is told how many more are done."""
    b = problem.b.values
    problem.loss_of(b)  # says what is wrong with any target before the first is fitted
    if not problem.many:
        return _fit(problem, b)
    step = -(-b.shape[1] // PARTS)
    fits = []
    for start in range(0, b.shape[1], step):
        part = b[:, start : start + step]
        fits.append(_fit(problem, part))
        advance(part.shape[1])
    names = Fit.__dataclass_fields__
    return Fit(*(np.concatenate([getattr(fit, name) for fit in fits], -1) for name in names))


def _fit(problem: Problem, b: Array) -> Fit:
    """Fit a target or several by the fastest function that can."""
    A, penalty = problem.A.values, problem.penalty
    found: Any
    if problem.plain:
        found = nnls(A, b, max_atoms=problem.max_atoms, tol=problem.tol or 0.0)
        measure, value = found.rnorm, 0.5 * found.rnorm**2
    elif problem.max_atoms is None:
        found = nnfit(problem.loss_of(b), A, penalty=penalty, tol=problem.tolerance)
        measure = value = found.value
    else:
        return _fit_greedily(problem, b)
    proven = np.logical_and(found.proven, np.isfinite(found.gap))
    relative = relative_gaps(problem, b, np.atleast_1d(found.gap), np.atleast_1d(value))
    return Fit(
        found.x.reshape(A.shape[1], -1),
        *map(np.atleast_1d, (measure, relative, found.gap, proven, found.status, found.n_iter)),
    )


def _fit_greedily(problem: Problem, b: Array) -> Fit:
    """Fit with a limit on atoms and a loss or a penalty, as the estimators do."""
    from conepursuit.estimators.linear import Settings, fit_linear

    m = len(b)  # the estimators minimise means
    settings = Settings(problem.penalty / m, problem.max_atoms, tol=problem.tolerance)
    fits = fit_linear(problem.A.values, problem.loss_of(b), settings)
    if any(fit.status is Status.INTERRUPTED for fit in fits):
        raise KeyboardInterrupt
    status = np.empty(len(fits), dtype=object)
    status[:] = [fit.status for fit in fits]
    value = np.array([m * fit.path.values[-1] for fit in fits])
    gap = np.array([m * fit.gap for fit in fits])
    return Fit(
        np.stack([fit.coef for fit in fits], axis=1),
        value,
        relative_gaps(problem, b, gap, value),
        gap,
        np.array([fit.proven and np.isfinite(fit.gap) for fit in fits]),
        status,
        np.array([fit.n_iter for fit in fits]),
    )


def relative_gaps(problem: Problem, b: Array, gap: Array, value: Array) -> Array:
    """Return gaps over the decreases of the objective since `Problem.start`.

    They are NaN where the objective is not lower than there. Losses of counts are infinite at
    x = 0. Among equal weights x = (t, ..., t) the best for them is t = sum(b) / (sum(A) + penalty
    n), with n atoms.
    """
    A, n = problem.A.values, problem.A.values.shape[1]
    columns = b.reshape(len(b), -1)
    start, t = np.zeros(columns.shape), np.zeros(columns.shape[1])
    with np.errstate(all="ignore"):
        if LOSSES[problem.loss].counts:
            t = columns.sum(axis=0) / (A.sum() + problem.penalty * n)
            start = np.outer(A.sum(axis=1), t)
        there = problem.loss_of(columns).losses(start).sum(axis=0) + problem.penalty * n * t
        return np.where(there > value, gap / (there - value), np.nan)


def write_fit(path: Path, problem: Problem, fit: Fit) -> None:
    """Write weights as CSV, with a row for each atom; or all that is known as JSON."""
    names, targets = problem.A.columns, target_names(problem)
    if path.suffix.lower() == ".csv":
        atoms: Sequence[Any] = range(len(fit.x)) if names is None else names
        rows = ([atom, *row.tolist()] for atom, row in zip(atoms, fit.x, strict=True))
        write_csv(path, ["atom", *(targets if problem.many else ["weight"])], rows)
        return
    write_json(
        path,
        {
            "A": problem.A.file,
            "b": problem.b.file,
            "shape": list(problem.A.values.shape),
            "matching": problem.matching or None,
            "loss": problem.loss,
            "delta": problem.delta,
            "objective": problem.objective,
            "penalty": problem.penalty,
            "max_atoms": problem.max_atoms,
            "tol": problem.tol,
            "gaps_relative_to": f"the decrease since {problem.start}",
            "atoms": names,
            "targets": [
                _as_json(problem, fit, i) | {"name": name} for i, name in enumerate(targets)
            ],
        },
    )


def _as_json(problem: Problem, fit: Fit, i: int) -> dict[str, Any]:
    """Return what is known of one target."""
    support = np.flatnonzero(fit.x[:, i])
    return {
        "support": support.tolist(),
        "weights": fit.x[support, i].tolist(),
        problem.measure: float(fit.measure[i]),
        "gap": float(fit.gap[i]),
        "relative_gap": float(fit.relative_gap[i]),
        "proven": bool(fit.proven[i]),
        "status": fit.status[i].name,
        "n_iter": int(fit.n_iter[i]),
    }


def read_weights(given: str, problem: Problem, layout: Layout = DETECT) -> Data:
    """Return the weights in a file of any kind, or in one that `write_fit` wrote."""
    data = _read_weights(given, problem, layout)
    least = data.values.min(initial=0.0)
    if least < 0:
        raise ValueError(
            f"{given}: the weights must not be negative; the least is {least:.3g}. Write 0 in its "
            "place if that is rounding."
        )
    return data


def _read_weights(given: str, problem: Problem, layout: Layout) -> Data:
    """Return the weights in a file, of any sign."""
    shape = (problem.A.values.shape[1], *problem.b.values.shape[1:])
    if kind_of(Path(given)) == ".json":
        return Data(_weights_from_json(given, shape), given)
    data = read_targets(given, DETECT if _is_ours(given) else layout)
    names, counted = problem.A.columns, [str(j) for j in range(shape[0])]
    if data.rows and names and data.rows not in (names, counted):
        if sorted(data.rows) != sorted(names) or len(set(names)) < len(names):
            raise ValueError(f"the names of atoms in {given} must be those of {problem.A.file}.")
        data = data.taken([data.rows.index(name) for name in names])
    values: Array = data.values
    own, targets = data.columns or [], problem.b.columns or []
    same_names = sorted(own) == sorted(targets) and len({*own}) == len(own) > 0
    if same_names and values.shape == shape and len(shape) == 2:
        values = values[:, [own.index(name) for name in targets]]
    if values.size == np.prod(shape) and len(shape) == 1:
        values = values.reshape(-1)
    if values.shape != shape:
        raise ValueError(
            f"{given} must hold a weight for each column of {problem.A.file} and each target, "
            f"shape {shape}; got {values.shape}."
        )
    return replace(data, values=values)


def _is_ours(given: str) -> bool:
    """Return whether a file is a table that `write_fit` wrote, whatever the others are like."""
    path = Path(given)
    if kind_of(path) != ".csv" or not path.is_file():
        return False
    with opened(path) as file:
        return file.read(5) == b"atom,"


def _weights_from_json(given: str, shape: tuple[int, ...]) -> Array:
    """Return the weights in a file that `write_fit` wrote."""
    import json

    with reading(Path(given), "what conepursuit solve --out wrote for such A and b"):
        with opened(Path(given)) as file:
            content = json.load(file)
        x = np.zeros((shape[0], prod(shape[1:])))
        if [content["shape"][1], len(content["targets"])] != list(x.shape):
            raise ValueError("it has weights of other atoms or targets")
        for i, target in enumerate(content["targets"]):
            x[target["support"], i] = target["weights"]
        check_entries(Data(x, given), missing=False)
        return x.reshape(shape)
