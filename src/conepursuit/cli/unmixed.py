"""What ``conepursuit unmix`` writes beside the maps, and what it prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console, Group

from conepursuit.cli.display import MOST_ROWS, facts, table
from conepursuit.cli.endmembers import Endmembers
from conepursuit.cli.writing import write_json
from conepursuit.experiments.drawing import draw
from conepursuit.files import replacing
from conepursuit.scenes.pictures import MOST_PICTURES, picture, plot_residuals, plot_spectra, shown
from conepursuit.scenes.report import Contents, Picture, page
from conepursuit.scenes.results import Progress, Results
from conepursuit.scenes.scene import MapFile, Scene
from conepursuit.scenes.survey import Survey, survey
from conepursuit.unmixing import Unmixer

ENDMEMBERS = "endmembers.csv"


@dataclass(frozen=True, eq=False)
class Run:
    """A run of the command.

    Attributes
    ----------
    scene : Scene
        The scene, with the bad bands and the value without data that count.
    model : Unmixer
        With its endmembers.
    endmembers : Endmembers
        The same, with names.
    results : Results
        The folder.
    progress : Progress
        Which tiles are finished.
    tiles : list of slice
        All tiles.
    maps : dict of str to MapFile
        The maps.
    seconds : dict of str to float
        How long the parts took.
    """

    scene: Scene
    model: Unmixer
    endmembers: Endmembers
    results: Results
    progress: Progress
    tiles: list[slice]
    maps: dict[str, MapFile]
    seconds: dict[str, float] = field(default_factory=dict)


def write_results(run: Run, start: float) -> dict[str, Any]:
    """Write pictures, the report and the summary, move all to its place, and return the summary.

    Parameters
    ----------
    run : Run
        With all tiles finished.
    start : float
        When the command began, by `perf_counter`.
    """
    begin = perf_counter()
    seen = survey(run.maps, run.tiles, run.scene.shape)
    abundances, quality = pictures(run, seen)
    folder = run.results.unfinished / "pictures"
    folder.mkdir(exist_ok=True)
    for name, png in [*abundances.items(), *quality.items()]:
        _write(folder / f"{name}.png", png.png)
    run.seconds["drawing"] = perf_counter() - begin
    run.seconds["all"] = perf_counter() - start
    summary = summary_of(run, seen)
    contents = contents_of(run, seen, summary, abundances, quality)
    _write(run.results.unfinished / "report.html", page(contents).encode())
    write_json(run.results.unfinished / "summary.json", summary)
    run.results.complete()
    return summary


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def pictures(run: Run, seen: Survey) -> tuple[dict[str, Picture], dict[str, Picture]]:
    """Return the pictures of abundances, and of residual and gap, by the names of their files."""
    drawn = shown(seen.mean)
    top = float(np.nanquantile(seen.abundances[:, :, drawn], 0.999))
    digits = len(str(len(seen.mean)))
    abundances = {}
    for i in drawn:
        name = run.endmembers.names[i]
        png = picture(seen.abundances[:, :, i], name, colours="viridis", top=top)
        caption = f"mean {seen.mean[i]:.3g}, largest {seen.largest[i]:.3g}"
        abundances[f"abundance_{i + 1:0{digits}}"] = Picture(f"abundance of {name}", png, caption)
    high = float(np.nanquantile(seen.residual, 0.999))
    residual = picture(seen.residual, "residual", colours="magma", top=high)
    gap = picture(seen.gap, "gap", colours="cividis", top=seen.gap_largest, logarithmic=True)
    quality = {
        "residual": Picture(
            "residual", residual, f"distance of pixel and mixture: RMS {seen.residual_rms:.4g}"
        ),
        "gap": Picture("gap", gap, f"a bound on loss − least loss: at most {seen.gap_largest:.2g}"),
    }
    return abundances, quality


def summary_of(run: Run, seen: Survey) -> dict[str, Any]:
    """Return what summary.json holds."""
    identity = run.progress.identity
    known, proven = run.progress.total("known"), run.progress.total("proven")
    return {
        "scene": str(run.scene.path),
        "shape": list(run.scene.shape),
        "dtype": run.scene.dtype.name,
        "endmembers": run.endmembers.names,
        "source": run.endmembers.source,
        "settings": {key: value for key, value in identity.items() if key.startswith("--")},
        "version": identity["version"],
        "pixels": run.scene.shape[0] * run.scene.shape[1],
        "pixels_with_data": known,
        "pixels_certified": proven,
        "share_certified": proven / known,
        "mean_abundance": seen.mean.tolist(),
        "largest_abundance": seen.largest.tolist(),
        "residual_rms": seen.residual_rms,
        "residual_largest": seen.residual_largest,
        "gap_largest": seen.gap_largest,
        "seconds": dict(run.seconds),
    }


def contents_of(
    run: Run,
    seen: Survey,
    summary: Mapping[str, Any],
    abundances: Mapping[str, Picture],
    quality: Mapping[str, Picture],
) -> Contents:
    """Return what the report shows."""
    rows, columns, bands = run.scene.shape
    names, spectra = run.endmembers.names, run.endmembers.spectra
    drawn = shown(seen.mean)
    part = "" if seen.step == 1 else f" Maps show one pixel of each {seen.step} x {seen.step}."
    few = (
        ""
        if len(drawn) == len(names)
        else f" The {MOST_PICTURES} endmembers with the largest means are drawn."
    )
    known = summary["pixels_with_data"]
    lines = partial(
        plot_spectra,
        spectra=spectra[drawn],
        names=[names[i] for i in drawn],
        wavelengths=run.scene.wavelengths,
        bad_bands=run.scene.bad_bands,
    )
    return Contents(
        title=f"Unmixing of {run.scene.path.name}",
        opening=(
            f"{rows:,} x {columns:,} pixels in {bands} bands ({summary['dtype']}), fitted by "
            f"mixtures of {len(names)} endmembers ({run.endmembers.source}). A pixel is certified "
            "where the gap of its fit, a bound on its distance from the best one, is proven."
        ),
        numbers={
            "pixels certified": _percent(summary["pixels_certified"], known),
            "pixels with data": f"{known:,}",
            "RMS residual": f"{seen.residual_rms:.4g}",
            "largest gap": f"{seen.gap_largest:.2g}",
            "time": f"{run.seconds['all']:.1f} s",
        },
        spectra=draw(lines),
        spectra_caption="The spectra of the endmembers"
        + (", with gaps at bad bands." if run.scene.bad_bands is not None else "."),
        abundances=list(abundances.values()),
        abundances_note=f"All maps have the same scale. Grey is without data.{part}{few}",
        residuals=draw(partial(plot_residuals, residual=seen.residual)),
        residuals_caption="The residuals of the pixels of the map; the largest 1 % are left out.",
        quality=list(quality.values()),
        facts={
            "Settings": _settings(summary),
            "Seconds (reading, unmixing and writing overlap)": {
                what: f"{seconds:.2f}" for what, seconds in run.seconds.items()
            },
        },
    )


def _percent(part: int, whole: int) -> str:
    """Return a share, and 100 % only where it is all."""
    share = 100.0 * part / whole
    return "100 %" if part == whole else f"{min(share, 99.99):.2f} %"


def _settings(summary: Mapping[str, Any]) -> dict[str, str]:
    shown_settings = {"scene": summary["scene"], "conepursuit": summary["version"]}
    for name, value in summary["settings"].items():
        if value not in (None, False, []):
            shown_settings[name] = ", ".join(map(str, value)) if isinstance(value, list) else value
    return {name: str(value) for name, value in shown_settings.items()}


def show(console: Console, run: Run, summary: Mapping[str, Any]) -> None:
    """Print the abundances of the endmembers, and how good they are."""
    mean, largest = summary["mean_abundance"], summary["largest_abundance"]
    order = np.argsort(-np.asarray(mean), kind="stable")[:MOST_ROWS]
    rows = [(run.endmembers.names[i], f"{mean[i]:.4g}", f"{largest[i]:.4g}") for i in sorted(order)]
    left = len(mean) - len(rows)
    note = f"and {left} more with smaller means; abundance maps hold all" if left else ""
    size = " x ".join(map(str, summary["shape"]))
    known, proven = summary["pixels_with_data"], summary["pixels_certified"]
    out = run.results.folder
    lines = [
        ("endmembers", run.endmembers.source),
        ("pixels", f"{summary['pixels']:,}, {known:,} of them with data"),
        ("certified", f"{_percent(proven, known)} of these"),
        ("residual", f"{summary['residual_rms']:.6g}  (root mean square)"),
        ("gap", f"at most {summary['gap_largest']:.2g}"),
        ("time", f"{summary['seconds']['all']:.1f} s"),
        ("maps", f"{out}, with {out / 'report.html'}"),
    ]
    headings = ("endmember", "mean abundance", "largest")
    console.print(Group(table(f"Unmixing, {size}", headings, rows, note), facts(lines)))
