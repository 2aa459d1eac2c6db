"""``conepursuit factorize``."""

from __future__ import annotations

import warnings
from math import prod
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from sklearn.exceptions import ConvergenceWarning

from conepursuit.arrays import Array
from conepursuit.cli import DONE, NOT_CONVERGED, complain, printable
from conepursuit.cli.display import MOST_ROWS, Waiting, facts, show_files, table
from conepursuit.cli.layouts import Layout
from conepursuit.cli.reading import Data, read_matrix
from conepursuit.cli.tables import DETECT
from conepursuit.cli.writing import write_csv, write_json, write_npy
from conepursuit.estimators.factorization import GreedyNMF
from conepursuit.estimators.greedy import RULES
from conepursuit.estimators.tensor import GreedyCP

WIDTH = 20
"""Characters of the longest bar of a curve."""


def factorize(
    X: str,
    layout: Layout = DETECT,
    *,
    components: str,
    loss: str,
    tol: float,
    out: Path | None,
    format_: str | None,
) -> int:
    """Factorise a matrix or a tensor, print and write the factors, and return the exit code."""
    if format_ is not None and out is None:
        raise ValueError(f"--format {format_} needs a folder to write to. Add --out DIR.")
    asked = rank(components)
    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder; {out} is a file.")
    data = read_matrix(X, layout, missing=True, tensors=True)
    shape = data.values.shape
    most = prod(shape) // max(shape)
    if isinstance(asked, int) and asked > most:
        kind = "matrix" if len(shape) == 2 else "tensor"
        raise ValueError(
            f"--components must be at most {most} for a {kind} of {data.size}, which so many "
            f"reproduce exactly; got {asked}."
        )
    model: Any = GreedyNMF(asked, loss=loss, tol=tol, path=True, oracle_rounds=4)
    if len(shape) > 2:
        model = GreedyCP(asked, loss=loss, tol=tol, path=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ConvergenceWarning)
        with Waiting(Console(stderr=True), f"factorising {data.size}"):
            try:
                factors = fitted(model, data.values)
            except (ValueError, MemoryError) as error:  # of what the file holds
                raise ValueError(f"{X}: {error}") from None
    console = Console(highlight=False)
    show_files(console, data)
    show(console, data, model)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write(out, data, model, factors, format_ or "npy", converged=not caught)
        console.print(f" The factors are in {printable(str(out))}.", markup=False, soft_wrap=True)
    if not caught:
        return DONE
    return complain(f"not converged: {caught[0].message}", NOT_CONVERGED)


def fitted(model: Any, X: Any) -> dict[str, Array]:
    """Fit, and return the factors by the names of their files, with components as columns or rows.

    A matrix has W, with a column for each component, and H, with a row. A tensor has a factor for
    each mode, with a column for each component, and their weights.
    """
    if X.ndim == 2:
        W = model.fit_transform(X)
        return {"W": W, "H": model.components_}
    model.fit(X)
    modes = {f"factor_{mode}": factor for mode, factor in enumerate(model.factors_)}
    return {**modes, "weights": model.weights_[:, None]}


def rank(components: str) -> int | str:
    """Return a rank from what was typed."""
    if components in RULES:
        return components
    try:
        found = int(components)
    except ValueError:
        found = 0
    if found < 1:
        raise ValueError(
            f"--components must be a positive integer, auto or sources; got {components!r}."
        )
    return found


def show(console: Console, data: Data, model: Any) -> None:
    """Print the objective of the last ranks."""
    path, accuracy = model.rank_path_, model.oracle_accuracy_
    first = max(0, len(path) - MOST_ROWS)
    rows = [(str(i + 1), f"{path[i]:.6g}", f"{accuracy[i]:.4f}") for i in range(first, len(path))]
    note = f"ranks 1 to {first} are not shown; --out writes all" if first else ""
    title = f"Non-negative factorisation, {data.size}, {model.loss} loss"
    headings = ("rank", "objective", "oracle accuracy")
    tensor, squared = hasattr(model, "factors_"), model.loss == "squared_error"
    what = "||X - W H||" if squared else "root of twice the divergence"
    if tensor:
        what = "||X - Z|| / ||X||" if squared else "root of twice the divergence over the sum of X"
    used = int((model.weights_ > 0 if tensor else model.components_.any(axis=1)).sum())
    lines = [
        (
            "components",
            f"{model.n_components_}"
            + (f", {used} of them not zero" * (used < model.n_components_)),
        ),
        ("error", f"{model.reconstruction_err_:.6g}  ({what})"),
        ("sweeps", f"{model.n_iter_} at the last rank"),
    ]
    console.print(Group(*choice(model), table(title, headings, rows, note), facts(lines)))


def choice(model: Any) -> list[Group]:
    """Return the curve by which the rank was chosen as a table with bars, or nothing."""
    if model.n_components not in RULES:
        return []
    what = "held-out loss" if model.n_components == "auto" else "agreement"
    curve, chosen = getattr(model, RULES[model.n_components][1]), model.n_components_
    largest, shown = float(curve.max()) or 1.0, range(min(len(curve), MOST_ROWS))
    bars = [round(WIDTH * value / largest) * "#" for value in curve]
    bars[chosen - 1] += " chosen"
    longest = max(map(len, bars))
    rows = [(str(i + 1), f"{curve[i]:.4g}", f"{bars[i]:<{longest}}") for i in shown]
    left = len(curve) - len(shown)
    note = f"and {left} ranks more; --out writes all" if left else ""
    of = "" if model.n_components == "auto" else " of two halves"
    title = f"The rank by {what}{of}"
    return [table(title, ("rank", what, ""), rows, note)]


def write(
    out: Path,
    data: Data,
    model: Any,
    factors: dict[str, Array],
    format_: str,
    *,
    converged: bool,
) -> None:
    """Write the factors, the path of ranks and, as the last, a summary."""
    path = model.rank_path_
    names = [f"component {k}" for k in range(model.n_components_)]
    for name, factor in factors.items():
        if format_ == "npy":
            write_npy(out / f"{name}.npy", factor[:, 0] if name == "weights" else factor)
        elif name == "H":
            columns = data.columns or [f"column {j}" for j in range(factor.shape[1])]
            _write_factor(out / "H.csv", factor, columns, names)
        elif name == "weights":
            _write_factor(out / "weights.csv", factor, ["weight"], names)
        else:
            _write_factor(out / f"{name}.csv", factor, names, data.rows)
    ranks = zip(
        range(1, len(path) + 1), path.tolist(), model.oracle_accuracy_.tolist(), strict=True
    )
    write_csv(out / "rank_path.csv", ["rank", "objective", "oracle_accuracy"], ranks)
    held_out, stability = (getattr(model, name, None) for _, name in RULES.values())
    write_json(
        out / "summary.json",
        {
            "X": data.file,
            "shape": list(data.values.shape),
            "loss": model.loss,
            "n_components": int(model.n_components_),
            "asked_for": model.n_components,
            "reconstruction_err": model.reconstruction_err_,
            "objective": float(path[-1]),
            "n_iter": int(model.n_iter_),
            "converged": converged,
            "held_out_path": None if held_out is None else held_out.tolist(),
            "stability_path": None if stability is None else stability.tolist(),
        },
    )


def _write_factor(path: Path, values: Array, columns: list[str], rows: list[str] | None) -> None:
    """Write a factor as a table, with the names of its rows where there are some."""
    if rows is None:
        write_csv(path, columns, values.tolist())
    else:
        named = ([name, *row.tolist()] for name, row in zip(rows, values, strict=True))
        write_csv(path, ["", *columns], named)
