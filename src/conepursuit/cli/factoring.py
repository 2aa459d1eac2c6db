"""``conepursuit factorize``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from sklearn.exceptions import ConvergenceWarning

from conepursuit.arrays import Array
from conepursuit.cli import DONE, NOT_CONVERGED, complain
from conepursuit.cli.display import MOST_ROWS, Waiting, facts, show_files, table
from conepursuit.cli.layouts import Layout
from conepursuit.cli.reading import Data, read_matrix
from conepursuit.cli.tables import DETECT
from conepursuit.cli.writing import write_csv, write_json, write_npy
from conepursuit.estimators.factorization import GreedyNMF


def factorize(
    X: str,
    layout: Layout = DETECT,
    *,
    components: str,
    loss: str,
    out: Path | None,
    format_: str | None,
) -> int:
    """Factorise the matrix in a file, print and write the factors, and return the exit code."""
    if format_ is not None and out is None:
        raise ValueError(f"--format {format_} needs a folder to write to. Add --out DIR.")
    model = GreedyNMF(rank(components), loss=loss)
    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder; {out} is a file.")
    data = read_matrix(X, layout, missing=True)
    most = min(data.values.shape)
    if model.n_components != "auto" and model.n_components > most:
        raise ValueError(
            f"--components must be at most {most} for a matrix of {data.size}, which so many "
            f"reproduce exactly; got {model.n_components}."
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ConvergenceWarning)
        with Waiting(Console(stderr=True), f"factorising {data.size}"):
            W = model.fit_transform(data.values)
    console = Console(highlight=False)
    show_files(console, data)
    show(console, data, model)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write(out, data, model, W, format_ or "npy", converged=not caught)
        console.print(f" The factors are in {out}.", markup=False, soft_wrap=True)
    if not caught:
        return DONE
    return complain(f"not converged: {caught[0].message}", NOT_CONVERGED)


def rank(components: str) -> int | str:
    """Return a rank from what was typed."""
    if components == "auto":
        return components
    try:
        found = int(components)
    except ValueError:
        found = 0
    if found < 1:
        raise ValueError(f"--components must be a positive integer or auto; got {components!r}.")
    return found


def show(console: Console, data: Data, model: Any) -> None:
    """Print the objective of the last ranks."""
    path, accuracy = model.rank_path_, model.oracle_accuracy_
    first = max(0, len(path) - MOST_ROWS)
    rows = [(str(i + 1), f"{path[i]:.6g}", f"{accuracy[i]:.4f}") for i in range(first, len(path))]
    note = f"ranks 1 to {first} are not shown; --out writes all" if first else ""
    title = f"Non-negative factorisation, {data.size}, {model.loss} loss"
    headings = ("rank", "objective", "oracle accuracy")
    what = "||X - W H||" if model.loss == "squared_error" else "root of twice the divergence"
    used = int(model.components_.any(axis=1).sum())
    lines = [
        (
            "components",
            f"{model.n_components_}"
            + (f", {used} of them not zero" * (used < model.n_components_)),
        ),
        ("error", f"{model.reconstruction_err_:.6g}  ({what})"),
        ("sweeps", f"{model.n_iter_} at the last rank"),
    ]
    console.print(Group(table(title, headings, rows, note), facts(lines)))


def write(out: Path, data: Data, model: Any, W: Array, format_: str, *, converged: bool) -> None:
    """Write the factors, the path of ranks and, as the last, a summary."""
    H, path = model.components_, model.rank_path_
    if format_ == "npy":
        write_npy(out / "W.npy", W)
        write_npy(out / "H.npy", H)
    else:
        names = [f"component {k}" for k in range(len(H))]
        _write_factor(out / "W.csv", W, names, data.rows)
        _write_factor(
            out / "H.csv", H, data.columns or [f"column {j}" for j in range(H.shape[1])], names
        )
    ranks = zip(
        range(1, len(path) + 1), path.tolist(), model.oracle_accuracy_.tolist(), strict=True
    )
    write_csv(out / "rank_path.csv", ["rank", "objective", "oracle_accuracy"], ranks)
    held_out = getattr(model, "held_out_path_", None)
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
        },
    )


def _write_factor(path: Path, values: Array, columns: list[str], rows: list[str] | None) -> None:
    """Write a factor as a table, with the names of its rows where there are some."""
    if rows is None:
        write_csv(path, columns, values.tolist())
    else:
        named = ([name, *row.tolist()] for name, row in zip(rows, values, strict=True))
        write_csv(path, ["", *columns], named)
