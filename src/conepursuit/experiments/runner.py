"""Runs the experiments part by part, keeps what is finished, and writes what they found."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from importlib import import_module
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

from conepursuit.datasets import DatasetNotFoundError
from conepursuit.experiments.findings import Experiment, Findings, Table
from conepursuit.experiments.report import Section, draw, page

NAMES = ("synthetic", "nmf", "garrote", "tightness", "kl", "complexity", "theory")
PACKAGES = ("conepursuit", "numpy", "scipy", "scikit-learn", "numba")


def experiment(name: str) -> Experiment:
    """Return an experiment by name."""
    found: Experiment = import_module(f"conepursuit.experiments.{name}").EXPERIMENT
    return found


def reproduce(names: Sequence[str], out: Path, quick: bool, console: Any) -> bool:
    """Run experiments and write their tables, figures and numbers, and a report of them all.

    Parameters
    ----------
    names : sequence of str
        Which of `NAMES`; all of them if there are none.
    out : Path
        The folder for everything that is written. Parts that were finished there before, with the
        same version of the library, are not run again.
    quick : bool
        Whether to run each on a small budget.
    console : rich.console.Console
        Where progress and tables are shown.

    Returns
    -------
    bool
        Whether all of them could be run; one whose data is missing is left out, and said to be.
    """
    sections, complete = [], True
    with _progress(console) as progress:
        for name in names or NAMES:
            try:
                results, seconds = _results(experiment(name), out / "parts" / name, quick, progress)
            except DatasetNotFoundError as error:
                console.print(f"{name} is left out. {error}", markup=False)
                complete = False
                continue
            sections.append(_written(experiment(name), results, seconds, out, quick))
            for table in sections[-1].findings.tables:
                console.print(rich_table(table))
    write(out / "report.html", page(sections, facts(quick)))
    console.print(f"The report is {out / 'report.html'}.", markup=False)
    return complete


def _results(
    found: Experiment, folder: Path, quick: bool, progress: Any
) -> tuple[dict[str, Any], float]:
    """Return what the parts of an experiment returned, and the seconds that they took."""
    parts = found.parts(quick)
    task = progress.add_task(found.name, total=len(parts))
    results, seconds = {}, 0.0
    for name, compute in parts.items():
        progress.update(task, description=f"{found.name}: {name}")
        path = folder / f"{name}{'-quick' if quick else ''}.json"
        kept = _kept(path)
        if kept is None:
            began = perf_counter()
            kept = {"result": compute(), "seconds": perf_counter() - began, "version": _version()}
            write(path, json.dumps(kept))
            kept = json.loads(path.read_text(encoding="utf-8"))
        results[name] = kept["result"]
        seconds += kept["seconds"]
        progress.advance(task)
    progress.update(task, description=found.name)
    return results, seconds


def _kept(path: Path) -> dict[str, Any] | None:
    """Return a finished part of this version of the library, None where there is none."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return kept if kept["version"] == _version() else None


def _version() -> str:
    return version("conepursuit")


def _written(
    found: Experiment, results: Mapping[str, Any], seconds: float, out: Path, quick: bool
) -> Section:
    """Write the tables, figures and numbers of an experiment, and return its part of the report."""
    findings = found.present(results)
    figures = {caption: draw(plot) for caption, plot in findings.figures.items()}
    for number, plot in enumerate(findings.figures.values(), start=1):
        write(out / f"{found.name}-{number}.svg", picture(plot))
    write(out / f"{found.name}.md", markdown(found, findings))
    numbers = {
        "experiment": found.name,
        "source": found.source,
        "seconds": round(seconds, 1),
        "facts": facts(quick),
        "comparisons": [{**vars(one), "agrees": bool(one.agrees)} for one in findings.comparisons],
        "tables": [vars(one) for one in findings.tables],
    }
    write(out / f"{found.name}.json", json.dumps(numbers, indent=1, ensure_ascii=False) + "\n")
    return Section(found.name, found.title, found.source, seconds, findings, figures)


def markdown(found: Experiment, findings: Findings) -> str:
    """Return the comparisons and tables of an experiment as Markdown."""
    rows = [
        (one.what, one.paper, one.ours, "yes" if one.agrees else "no", one.remark)
        for one in findings.comparisons
    ]
    summary = Table("", ("what", "paper", "here", "agrees", "remark"), rows)
    blocks = [f"# {found.title}\n\n{found.source}", _markdown_table(summary)]
    for table in findings.tables:
        blocks += [f"## {table.title}", _markdown_table(table)] + [table.note] * bool(table.note)
    return "\n\n".join(blocks) + "\n"


def _markdown_table(table: Table) -> str:
    lines = [table.columns, ["---", *["---:"] * (len(table.columns) - 1)], *table.rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in escaped)


def picture(plot: Callable[[Any], None]) -> str:
    """Return a figure as an SVG file of its own, the same bytes each time."""
    from matplotlib import pyplot, rc_context

    with rc_context({"svg.hashsalt": "conepursuit"}):
        figure, ax = pyplot.subplots(figsize=(6.8, 4.2), layout="constrained")
        plot(ax)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return text.getvalue()


def rich_table(table: Table) -> Any:
    """Return a table for the terminal."""
    from rich.table import Table as RichTable

    out = RichTable(title=table.title, caption=table.note or None)
    for i, heading in enumerate(table.columns):
        out.add_column(heading, justify="right" if i else "left", no_wrap=True)
    for row in table.rows:
        out.add_row(*row)
    return out


def facts(quick: bool) -> dict[str, str]:
    """Return what a reader must know of the run: date, machine and versions."""
    return {
        "date": date.today().isoformat(),
        "budget": "quick" if quick else "full",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "Python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def write(path: Path, text: str) -> None:
    """Write a file beside and rename it, so that an interrupt leaves no half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


@contextmanager
def _progress(console: Any) -> Iterator[Any]:
    """Show how far it is and how much time is left."""
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console) as shown:
        yield shown
