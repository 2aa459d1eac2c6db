"""Runs the experiments part by part, keeps what is finished, and writes what they found."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from signal import SIGINT, signal
from textwrap import fill
from threading import current_thread, main_thread
from time import perf_counter
from typing import Any

from conepursuit.datasets import DatasetNotFoundError, File
from conepursuit.experiments.drawing import draw
from conepursuit.experiments.errata import named_points
from conepursuit.experiments.findings import Experiment, Findings, Table
from conepursuit.experiments.report import Missing, Section, named_texts, page
from conepursuit.files import replacing
from conepursuit.kernels import FILE

NAMES = (
    "synthetic",
    "nmf",
    "garrote",
    "tightness",
    "kl",
    "tensor",
    "unmixing",
    "complexity",
    "theory",
)
PACKAGES = ("conepursuit", "numpy", "scipy", "scikit-learn")


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
        The folder for everything that is written. Parts that were finished there before, by the
        same code, are not run again, and experiments that were finished are in the report too.
    quick : bool
        Whether to run each on a small budget, and write to the folder ``quick`` in `out`.
    console : rich.console.Console
        Where progress and tables are shown.

    Returns
    -------
    bool
        Whether all of them could be run; parts whose data are missing are left out, and said to
        be so.
    """
    out = out / "quick" if quick else out
    out.mkdir(parents=True, exist_ok=True)
    sections: dict[str, Section] = {}
    missing: dict[str, Missing] = {}
    with _progress(console) as progress:
        for name in names or NAMES:
            found = experiment(name)
            results, seconds, absent = _results(found, out / "parts" / name, quick, progress)
            if absent:
                parts, files = (
                    tuple(absent) if results else (),
                    tuple(dict.fromkeys(absent.values())),
                )
                missing[name] = Missing(name, found.title, parts, files)
                advice = " ".join(file.advice for file in files)
                console.print(f"Left out: {missing[name].told} {advice}", markup=False)
            if results:
                sections[name] = _written(found, results, seconds, out, quick)
                _show(sections[name].findings, console)
    for name in NAMES:
        before = None if name in missing else _finished(name, out / "parts" / name, quick)
        if name not in sections and before is not None:
            sections[name] = _written(experiment(name), *before, out, quick)
    if sections:
        ordered = dict.fromkeys((*NAMES, *sections))
        whole = page(
            [sections[name] for name in ordered if name in sections],
            facts(quick),
            quick=quick,
            missing=list(missing.values()),
            not_run=[name for name in NAMES if name not in sections and name not in missing],
        )
        write(out / "report.html", whole)
        console.print(f"The report is {out / 'report.html'}.", markup=False)
    return not missing


def _show(findings: Findings, console: Any) -> None:
    """Print the tables, and what they say of the paper's claims."""
    for table in findings.tables:
        console.print(rich_table(table, console.width))
    for one in findings.comparisons:
        line = f"{one.what}: paper {one.paper}; here {one.ours} ({one.verdict}). {one.remark}"
        console.print(line.rstrip(), markup=False, highlight=False)


def _results(
    found: Experiment, folder: Path, quick: bool, progress: Any
) -> tuple[dict[str, Any], float, dict[str, File]]:
    """Return what the parts of an experiment returned, their seconds, and what data others lack."""
    parts = found.parts(quick)
    task = progress.add_task(found.name, total=len(parts))
    results: dict[str, Any] = {}
    absent: dict[str, File] = {}
    seconds = 0.0
    for name, compute in parts.items():
        progress.update(task, description=f"{found.name}: {name}")
        path = folder / f"{name}.json"
        kept = _kept(path)
        if kept is None:
            began = perf_counter()
            try:
                with heeding_interrupts():
                    result = compute()
            except DatasetNotFoundError as error:
                absent[name] = error.file
                progress.advance(task)
                continue
            seconds_here = perf_counter() - began
            kept = {"result": result, "seconds": seconds_here, "code": fingerprint()}
            write(path, json.dumps(kept))
            kept = json.loads(path.read_text(encoding="utf-8"))
        results[name] = kept["result"]
        seconds += kept["seconds"]
        progress.advance(task)
    progress.update(task, description=found.name)
    return results, seconds, absent


def _finished(name: str, folder: Path, quick: bool) -> tuple[dict[str, Any], float] | None:
    """Return the results and seconds of an experiment all of whose parts are kept."""
    kept = {part: _kept(folder / f"{part}.json") for part in experiment(name).parts(quick)}
    whole = {part: one for part, one in kept.items() if one is not None}
    if len(whole) < len(kept):
        return None
    results = {part: one["result"] for part, one in whole.items()}
    return results, sum(one["seconds"] for one in whole.values())


def _kept(path: Path) -> dict[str, Any] | None:
    """Return a part that this code has finished, None where there is none or it is damaged."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    whole = isinstance(kept, dict) and {"result", "seconds", "code"} <= set(kept)
    return kept if whole and kept["code"] == fingerprint() else None


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end if Ctrl-C was pressed, whoever swallowed the exception.

    Python ignores exceptions in callbacks of C code and in finalisers, and what was computed then
    may be cut short.
    """
    if current_thread() is not main_thread():  # signals reach the main thread alone
        yield
        return
    pressed = False

    def note(number: int, frame: Any) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    before = signal(SIGINT, note)
    try:
        yield
    finally:
        signal(SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


@cache
def fingerprint() -> str:
    """Return a hash of the library's code, which decides whether a kept part is still valid."""
    digest = sha256(Path(FILE).read_bytes())
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _written(
    found: Experiment, results: Mapping[str, Any], seconds: float, out: Path, quick: bool
) -> Section:
    """Write the tables, figures and numbers of an experiment, and return its part of the report."""
    findings = found.present(results)
    figures = {caption: draw(plot) for caption, plot in findings.figures.items()}
    for number, plot in enumerate(findings.figures.values(), start=1):
        write(out / f"{found.name}-{number}.svg", picture(plot))
    write(out / f"{found.name}.md", markdown(found, findings, quick))
    numbers = {
        "experiment": found.name,
        "source": found.source,
        "seconds": round(seconds, 1),
        "facts": facts(quick),
        "comparisons": [
            {**vars(one), "agrees": None if one.agrees is None else bool(one.agrees)}
            for one in findings.comparisons
        ],
        "tables": [vars(one) for one in findings.tables],
    }
    write(out / f"{found.name}.json", json.dumps(numbers, indent=1, ensure_ascii=False) + "\n")
    return Section(found.name, found.title, found.source, seconds, findings, figures)


def markdown(found: Experiment, findings: Findings, quick: bool) -> str:
    """Return the comparisons and tables of an experiment as Markdown, with the errata named."""
    rows = [
        (one.what, one.paper, one.ours, one.verdict, one.remark) for one in findings.comparisons
    ]
    summary = Table("", ("what", "paper", "here", "verdict", "remark"), rows)
    heading = f"# {found.title}{' (quick)' if quick else ''}\n\nIn the paper: {found.source}."
    blocks = [heading] + [_markdown_table(summary)] * bool(rows)
    for table in findings.tables:
        blocks += [f"## {table.title}", _markdown_table(table)] + [table.note] * bool(table.note)
    points = named_points(named_texts(findings))
    blocks += ["## Errata"] * bool(points)
    blocks += [f"{name}: {point.point} {point.done}" for name, point in points.items()]
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


def rich_table(table: Table, width: int) -> Any:
    """Return a table for a terminal of so many columns.

    Where a table with lines is too wide, it has none, its headings are as narrow as the numbers
    below them, and names of rows are wrapped.
    """
    from rich.box import HEAVY_HEAD, SIMPLE_HEAD
    from rich.table import Table as RichTable

    cells = [[len(row[i]) for row in table.rows] for i in range(len(table.columns))]
    widest = [max([1, *below]) for below in cells]
    full = [max(w, len(heading)) for w, heading in zip(widest, table.columns, strict=True)]
    narrow = sum(full) + 3 * len(full) + 1 > width
    out = RichTable(
        title=table.title,
        caption=table.note or None,
        box=SIMPLE_HEAD if narrow else HEAVY_HEAD,
        padding=0 if narrow else (0, 1),
    )
    for i, heading in enumerate(table.columns):
        short = fill(heading, widest[i], break_long_words=False) if narrow else heading
        out.add_column(short, justify="right" if i else "left", no_wrap=i > 0 or not narrow)
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
    """Write a file and the folders that it needs, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode())


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
