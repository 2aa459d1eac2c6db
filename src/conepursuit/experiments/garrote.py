"""The non-negative garrote for logistic regression on the sonar data, a table of the paper.

The published protocol is that of errata D3: 207 samples, 100 iterations and L = 1000. It stops far
from the minimum, so converged answers stand beside it; see `garrote_protocol`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.datasets import load_sonar
from conepursuit.experiments.findings import Comparison, Experiment, Findings, Part, Table
from conepursuit.experiments.garrote_protocol import (
    N_SPLITS,
    Converged,
    Outcome,
    converged,
    published_protocol,
)
from conepursuit.plotting import COLOURS

PAPER = {
    "NNMP": ((0.8345, 0.0242), (0.7419, 0.0389)),
    "PWMP": ((0.8379, 0.0240), (0.7419, 0.0392)),
    "FCMP": ((0.8345, 0.0238), (0.7419, 0.0403)),
    "NNG": ((0.8069, 0.0518), (0.7258, 0.0602)),
}
"""Median and standard deviation of the accuracy in training and in test, as printed."""


def parts(quick: bool) -> dict[str, Part]:
    """Return the published protocol, the same with all samples, and the converged answers."""
    n = 5 if quick else N_SPLITS

    def protocol(all_rows: bool) -> dict[str, Any]:
        outcomes = published_protocol(*_samples(all_rows), n)
        return {name: {k: v.tolist() for k, v in vars(o).items()} for name, o in outcomes.items()}

    def convergence() -> dict[str, Any]:
        outcomes = converged(*_samples(all_rows=False), 2 if quick else 10)
        return {name: {k: v.tolist() for k, v in vars(o).items()} for name, o in outcomes.items()}

    return {
        "published": partial(protocol, all_rows=False),
        "all-rows": partial(protocol, all_rows=True),
        "converged": convergence,
    }


def _samples(all_rows: bool) -> tuple[Array, Vector]:
    """Return the samples, each of unit norm; without the first row as published (errata D3)."""
    return load_sonar(all_rows=all_rows, unit_norm=True, return_X_y=True)


def present(results: Mapping[str, Any]) -> Findings:
    """Return the accuracies beside the table of the paper."""
    published, every = (
        {name: Outcome(**_arrays(o)) for name, o in results[part].items()}
        for part in ("published", "all-rows")
    )
    to_the_end = {name: Converged(**_arrays(o)) for name, o in results["converged"].items()}
    tables = [
        _accuracies(published, "207 samples, as published"),
        _accuracies(every, "All 208 samples"),
        _distances_table(to_the_end),
    ]
    n = len(published["NNMP"].test)
    caption = f"Accuracy in the test over {n} splits: median, quartiles and whole range"
    return Findings(
        [_comparison(name, published) for name in PAPER],
        tables,
        {caption: partial(plot, published)},
    )


def _arrays(kept: Mapping[str, Any]) -> dict[str, Vector]:
    return {name: np.array(values) for name, values in kept.items()}


def _comparison(name: str, outcomes: Mapping[str, Outcome]) -> Comparison:
    """Return the medians of one method beside the published ones."""
    outcome = outcomes[name]
    ours = [float(np.median(share)) for share in (outcome.train, outcome.test)]
    theirs = [median for median, _ in PAPER[name]]
    remarks, n_splits = [], len(outcome.train)
    agrees = bool(np.allclose(ours, theirs, atol=5e-5)) if n_splits == N_SPLITS else None
    if agrees is None:
        remarks.append(f"The published medians are of {N_SPLITS} splits, these of {n_splits}.")
    if not agrees and name == "NNG":
        remarks.append(
            "The released baseline does not give the published medians, unless its abs() is the "
            "one for integers (errata D3)."
        )
    if name == "PWMP":
        released = outcomes["PWMP (E1)"]
        remarks.append(
            f"Standard deviation of the accuracy in training: {_deviation(outcome)}, with the step "
            f"of the released code {_deviation(released)} (errata E1), published "
            f"{PAPER[name][0][1]:.4f}."
        )
    remark = " ".join(remarks)
    paper, here = (f"{train:.4f} / {test:.4f}" for train, test in (theirs, ours))
    return Comparison(f"{name}: median accuracy, train / test", paper, here, agrees, remark)


def _deviation(outcome: Outcome) -> str:
    return f"{outcome.train.std(ddof=1):.4f}"


def _accuracies(outcomes: Mapping[str, Outcome], title: str) -> Table:
    rows = []
    for name, outcome in outcomes.items():
        ours = (
            _spread(np.median(share), share.std(ddof=1)) for share in (outcome.train, outcome.test)
        )
        printed = (_spread(*pair) for pair in PAPER[name]) if name in PAPER else ("", "")
        rows.append((name, *ours, *printed, f"{np.median(outcome.value):.2f}"))
    n_splits = len(outcomes["NNMP"].train)
    return Table(
        f"{title}; {n_splits} splits",
        ("method", "train", "test", "paper, train", "paper, test", "f"),
        rows,
        "Median ± standard deviation of the accuracy; median of f.",
    )


def _spread(median: Any, deviation: float) -> str:
    return f"{median:.4f}±{deviation:.4f}".replace("0.", ".")


def _distances_table(outcomes: Mapping[str, Converged]) -> Table:
    rows = [
        (
            name,
            f"{np.median(outcome.value):.6f}",
            f"{np.abs(outcome.excess).max():.0e}",
            f"{np.median(outcome.n_iter):.0f}",
        )
        for name, outcome in outcomes.items()
    ]
    n_splits = len(next(iter(outcomes.values())).value)
    columns = ("method", "median f", "largest f / f* − 1", "median iterations")
    return Table(f"The garrote run to convergence, {n_splits} splits", columns, rows)


def plot(outcomes: Mapping[str, Outcome], ax: Any) -> None:
    """Draw the accuracies in the test as boxes."""
    ax.boxplot(
        [outcome.test for outcome in outcomes.values()],
        tick_labels=list(outcomes),
        whis=(0, 100),
        widths=0.5,
        medianprops={"color": COLOURS[1]},
    )
    ax.set(ylabel="accuracy in the test")
    ax.tick_params("x", rotation=20)
    ax.grid(True, axis="y", color="0.9")


EXPERIMENT = Experiment(
    "garrote",
    "Logistic regression with the non-negative garrote",
    "Table 3, Section 6",
    parts,
    present,
)
