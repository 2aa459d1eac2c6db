"""Hyperspectral unmixing, figures of the appendix.

Endmembers are found in a part of the scene Urban by five methods. Each pixel is then approximated
by a non-negative combination of the six endmembers: by the algorithms of the paper, and by
hierarchical alternating least squares [1]. The paper took every fourth pixel of the whole scene;
here it is a window of as many pixels. On two scenes with a truth, abundances and endmembers are
compared with it.

References
----------
[1] N. Gillis, F. Glineur. Accelerated multiplicative updates and hierarchical ALS algorithms for
nonnegative matrix factorization. Neural Computation 24(4), 2012.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from conepursuit.arrays import Array
from conepursuit.datasets import load_jasper_ridge, load_samson, load_urban
from conepursuit.experiments.findings import Comparison, Experiment, Findings, Part, Table
from conepursuit.experiments.pixel_pursuits import ALGORITHMS, EXACT, run
from conepursuit.plotting import COLOURS
from conepursuit.unmixing import Unmixer, abundance_rmse, match_endmembers

EXTRACTORS = "spa", "vca", "xray", "h2nmf", "snpa"
"""As in the paper."""

SIDE, MATERIALS, N_ITER = 77, 6, 60
"""Rows and columns of the window of Urban, its endmembers, and iterations of each algorithm."""

SCENES = {"Samson": load_samson, "Jasper Ridge": load_jasper_ridge}
"""Scenes with a truth."""

BAD_STEPS = 0.015
"""The share of bad steps of PWMP in the paper, on average over all dictionaries."""


def window(side: int = SIDE) -> Array:
    """Return the upper left corner of Urban as an image (rows, columns, bands)."""
    return load_urban().crop_a.window(side, side).image


def pursued(extractor: str, side: int, n_iter: int) -> dict[str, Any]:
    """Return what the algorithms do on all pixels of the window with one dictionary."""
    image = window(side)
    model = Unmixer(MATERIALS, extractor=extractor).fit(image)
    pixels = image.reshape(-1, image.shape[-1])
    found: dict[str, Any] = {"maps": np.moveaxis(model.abundances_, 2, 0).round(4).tolist()}
    for name in ALGORITHMS:
        runs = run(model.endmembers_.T, pixels.T, name, n_iter)
        start = runs.suboptimality[0]
        done = runs.suboptimality <= EXACT * start
        found[name] = {
            "mean": runs.suboptimality.mean(axis=1).tolist(),
            "bad": float(runs.bad.sum() / max(runs.steps.sum(), 1)),
            "last": int(np.where(done.any(axis=0), done.argmax(axis=0), n_iter + 1).max()),
            "early": float(done[min(MATERIALS, n_iter)].mean()),
            "done": float(done[-1].mean()),
        }
    return found


def compared(scene: str, step: int) -> dict[str, Any]:
    """Return angles and errors of abundances for each method on a scene with a truth."""
    data, found = SCENES[scene](), {}
    X, truth = np.ascontiguousarray(data.Y.T[::step]), data.abundances.T[::step]
    n = len(data.materials)
    models: dict[str, dict[str, Any]] = {"true spectra": {"endmembers": data.endmembers.T}}
    models |= {name: {"n_endmembers": n, "extractor": name} for name in EXTRACTORS}
    for name, options in models.items():
        row = []
        for sum_to_one in (False, True):
            model = Unmixer(sum_to_one=sum_to_one, **options).fit(X)
            order, angles = match_endmembers(model.endmembers_, data.endmembers.T)
            row.append(abundance_rmse(model.abundances_, truth, order))
        found[name] = [float(np.degrees(angles.mean())), *row]
    return found


def parts(quick: bool) -> dict[str, Part]:
    """Return a part for each dictionary, and one for each scene with a truth."""
    side, n_iter, step = (20, 15, 9) if quick else (SIDE, N_ITER, 1)
    every: dict[str, Part] = {name: partial(pursued, name, side, n_iter) for name in EXTRACTORS}
    return every | {scene: partial(compared, scene, step) for scene in SCENES}


def present(results: Mapping[str, Any]) -> Findings:
    """Return the suboptimalities beside what the paper says of them."""
    found = {name: results[name] for name in EXTRACTORS if name in results}
    tables = [_runs_table(found)] if found else []
    tables += [_truth_table(scene, results[scene]) for scene in SCENES if scene in results]
    figures: dict[str, Any] = {}
    for name, runs in found.items():
        caption = f"Suboptimality, the mean over all pixels; dictionary by {name.upper()}"
        figures[caption] = partial(plot_runs, runs)
    if "spa" in found:
        figures["Abundances in the window of Urban, dictionary by SPA"] = partial(
            plot_maps, found["spa"]["maps"]
        )
    return Findings(_comparisons(found) if found else [], tables, figures)


def _comparisons(found: Mapping[str, Any]) -> list[Comparison]:
    last = max(runs["FCMP"]["last"] for runs in found.values())
    cause = ": an atom may lose its weight and come back" if last > MATERIALS else ""
    early = min(runs["FCMP"]["early"] for runs in found.values())
    bad = float(np.mean([runs["PWMP"]["bad"] for runs in found.values()]))
    return [
        Comparison(
            f"pixels on which FCMP is done after {MATERIALS} iterations, the least share over "
            f"{len(found)} dictionaries of {MATERIALS} spectra",
            "all",
            f"{early:.2%}",
            early >= 0.99,
            f"Iterations until it is done on every pixel: {_iterations(last, found)}{cause}.",
        ),
        Comparison(
            "bad steps of PWMP, as a share of its steps, the mean over the dictionaries",
            f"{BAD_STEPS:.1%}",
            f"{bad:.1%}",
            bad <= 2 * BAD_STEPS,
            "Steps count until a pixel is at its optimum, up to rounding; the paper does not say "
            "how many iterations its share is of.",
        ),
    ]


def _iterations(last: int, found: Mapping[str, Any]) -> str:
    """Return a number of iterations, which is one more than were made where they were too few."""
    made = len(next(iter(found.values()))["FCMP"]["mean"]) - 1
    return str(last) if last <= made else f"more than {made}"


def _runs_table(found: Mapping[str, Any]) -> Table:
    rows = [
        (
            extractor.upper(),
            *(f"{runs[name]['done']:.0%}" for name in ALGORITHMS),
            f"{runs['FCMP']['early']:.2%}",
            _iterations(runs["FCMP"]["last"], found),
            f"{runs['PWMP']['bad']:.2%}",
        )
        for extractor, runs in found.items()
    ]
    columns = "spectra", *ALGORITHMS, f"at {MATERIALS}", "last", "bad"
    note = (
        "The share of pixels at the optimum, up to rounding, after the last iteration of each "
        f"algorithm, and after iteration {MATERIALS} of FCMP; the iteration after which FCMP has "
        "no more to do on any pixel; the share of bad steps of PWMP."
    )
    n_pixels = np.size(next(iter(found.values()))["maps"][0])
    return Table(f"{n_pixels:,} pixels of Urban", columns, rows, note)


def _truth_table(scene: str, found: Mapping[str, Sequence[float]]) -> Table:
    rows = [
        (
            name if name == "true spectra" else name.upper(),
            f"{angle:.2f}°",
            *(f"{error:.3f}" for error in errors),
        )
        for name, (angle, *errors) in found.items()
    ]
    columns = "endmembers", "mean spectral angle", "RMSE, a >= 0", "RMSE, sum to one too"
    note = (
        "Root mean square error of the abundances, endmembers matched by their angles. The truth "
        "is an estimate by F. Zhu; the spectra of Samson are scaled to a maximum of 1."
    )
    return Table(f"{scene}: endmembers and abundances against the truth", columns, rows, note)


def plot_runs(runs: Mapping[str, Any], ax: Any) -> None:
    """Draw the mean suboptimality of each algorithm against the iteration."""
    for i, name in enumerate(ALGORITHMS):
        values = np.array(runs[name]["mean"])
        ax.plot(np.arange(len(values)), values, color=COLOURS[i % len(COLOURS)], label=name)
    start = runs["NNMP"]["mean"][0]
    ax.set(yscale="log", ylim=(1e-14 * start, 2 * start))
    ax.set(xlabel="iteration", ylabel="mean suboptimality")
    ax.grid(True, color="0.9")
    ax.legend(frameon=False)


def plot_maps(maps: Sequence[Any], ax: Any) -> None:
    """Draw the abundance of each endmember, side by side, on one scale."""
    images = np.array(maps)
    rows = 2 if len(images) > 3 else 1
    padded = np.pad(images, ((0, 0), (0, 2), (0, 2)), constant_values=np.nan)
    lines = [np.hstack(list(part)) for part in np.split(padded, rows)]
    drawn = ax.imshow(np.vstack(lines), vmin=0.0, vmax=float(np.quantile(images, 0.99)))
    ax.set_axis_off()
    ax.figure.colorbar(drawn, ax=ax, shrink=0.7, label="abundance")


EXPERIMENT = Experiment(
    "unmixing",
    "Hyperspectral unmixing",
    "Figures 5 and 6, Appendix A.2",
    parts,
    present,
)
