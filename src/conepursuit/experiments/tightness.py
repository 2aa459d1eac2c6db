"""How tight Theorem 3 is on the theta set, the figures of the paper's appendix.

The set is A = {+-(1, 0), +-(cos theta, sin theta)} and the origin, with cone width sin(theta / 2);
f is half the squared distance to a target (-a_1, a_2) with a_1 and a_2 uniform on [0, 1]. The paper
compares one step of PWMP from the origin with what the theorem promises of it,

    (1 - beta) f(x_0) / f(x_1),    beta = CWidth^2 / D^2,

where its script takes D = ||a_1 - a_2|| instead of diam(A) = 2 (errata D2). Since that step starts
at the origin, D = radius(A) = 1 is valid as well, and makes the bound exact in the worst direction.
The ratio has an infinite expectation, so that its least value and its median are compared. Whole
runs stand beside the first step.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sin
from pathlib import Path
from typing import Any

import numpy as np

from conepursuit.algorithms import PWMP
from conepursuit.arrays import Array, Vector
from conepursuit.atoms import Dictionary
from conepursuit.domains import Cone
from conepursuit.objectives import LeastSquares
from conepursuit.plotting import COLOURS
from conepursuit.solve import minimize
from conepursuit.theory import check_rates, cone_width, diameter, linear_bound, radius

THETAS = np.arange(1, 16) / 10
N_TARGETS, SEED = 20, 5489
SIZES = ("script", "diameter", "radius")


def theta_set(theta: float) -> Array:
    """Return the atoms as columns; the origin is implied."""
    half = np.array([[-1.0, np.cos(theta)], [0.0, np.sin(theta)]])
    return np.hstack([half, -half])


@dataclass(frozen=True)
class Outcome:
    """What was measured at one theta.

    Attributes
    ----------
    theta, width : float
        The angle, and the computed cone width.
    ratios : dict of str to array
        For each D, what Theorem 3 allows f(x_1) to be over what it is, one entry per target.
    worst : float
        That ratio for the target in the direction where the width is attained, D the radius.
    along : float
        The smallest gain of a good step over what the theorem promises of it, in whole runs.
    """

    theta: float
    width: float
    ratios: dict[str, Vector]
    worst: float
    along: float


def run(thetas: Sequence[float] | Array = THETAS, n_targets: int = N_TARGETS) -> list[Outcome]:
    """Run PWMP on all targets of all angles; targets come from the released script's stream."""
    stream = np.random.RandomState(SEED)
    return [_outcome(float(theta), stream.rand(n_targets, 2) * [-1, 1]) for theta in thetas]


def _outcome(theta: float, targets: Array) -> Outcome:
    atoms = theta_set(theta)
    width = cone_width(atoms)
    sizes = {
        "script": float(np.linalg.norm(atoms[:, 0] - atoms[:, 1])),
        "diameter": diameter(atoms),
        "radius": radius(atoms),
    }
    ratios = {
        name: np.array([_first_step(atoms, y, width, size) for y in targets])
        for name, size in sizes.items()
    }
    worst = _first_step(atoms, width.direction, width, sizes["radius"])
    along = min(_whole_run(atoms, y, width) for y in targets)
    return Outcome(theta, float(width), ratios, worst, along)


def _first_step(atoms: Array, y: Vector, width: float, size: float) -> float:
    """Return what the theorem allows f(x_1) to be over what it is; f* is 0."""
    result = minimize(LeastSquares(y), Cone(Dictionary(atoms)), PWMP(), max_iter=1, tol=0.0)
    before, after = result.trace["value"]
    unit = {"smoothness": 1.0, "strong_convexity": 1.0}
    allowed = linear_bound(1, start=before, width=width, diameter=size, **unit)
    return float(allowed / after)


def _whole_run(atoms: Array, y: Vector, width: float) -> float:
    """Return the smallest margin of Theorem 3 along a run."""
    objective, cone = LeastSquares(y), Cone(Dictionary(atoms))
    result = minimize(objective, cone, PWMP(), max_iter=50, tol=0.0)
    return check_rates(result, objective, cone, PWMP(), width=width).smallest["Theorem 3"]


def table(outcomes: Sequence[Outcome]) -> Any:
    """Return a rich table."""
    from rich.table import Table

    off = max(abs(o.width - sin(o.theta / 2)) for o in outcomes)
    out = Table(
        title="Theorem 3 on the theta set: allowed over measured f(x_1) − f*",
        caption=f"CWidth differs from sin(θ/2) by at most {off:.0e}. along r: the worst target, "
        "D the radius. runs: the smallest gain of a step over its promise.",
    )
    for heading in ("θ", "CWidth", "diam: min", "median", "max", "radius: min", "along r", "runs"):
        out.add_column(heading, justify="right", no_wrap=True)
    for o in outcomes:
        whole, near = o.ratios["diameter"], o.ratios["radius"]
        out.add_row(
            f"{o.theta:.1f}",
            f"{o.width:.6f}",
            f"{whole.min():.3f}",
            f"{np.median(whole):.2f}",
            f"{whole.max():.0f}",
            f"{near.min():.3f}",
            f"{o.worst:.6f}",
            f"{o.along:.1f}",
        )
    return out


def figure(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw the ratios against theta: minimum, median and maximum."""
    from matplotlib import pyplot

    thetas = np.array([o.theta for o in outcomes])
    fig, ax = pyplot.subplots(figsize=(6.8, 4.2), layout="constrained")
    for i, (name, label) in enumerate((("diameter", "D = diam(A)"), ("radius", "D = radius(A)"))):
        ratios = np.array([o.ratios[name] for o in outcomes])
        low, middle, high = ratios.min(axis=1), np.median(ratios, axis=1), ratios.max(axis=1)
        ax.errorbar(
            thetas + (i - 0.5) * 0.02,
            middle,
            yerr=[middle - low, high - middle],
            fmt="o",
            markersize=4,
            capsize=2,
            color=COLOURS[i],
            label=f"{label}: minimum, median, maximum",
        )
    worst = [o.worst for o in outcomes]
    ax.plot(thetas, worst, "k_", markersize=9, label="target along r, D = radius(A): exact")
    ax.set(yscale="log", xlabel="θ", ylabel="allowed over measured f(x$_1$) − f*", xlim=(0, pi / 2))
    ax.grid(True, color="0.9")
    ax.legend(frameon=False)
    fig.savefig(path)
    pyplot.close(fig)


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment, print its table and write its figure."""
    from rich.console import Console

    parser = argparse.ArgumentParser(description="The tightness of Theorem 3 on the theta set.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the figure")
    out: Path = parser.parse_args(arguments).out
    console = Console()
    outcomes = run()
    console.print(table(outcomes))
    out.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "svg"):
        figure(outcomes, out / f"tightness.{suffix}")
    console.print(f"The figure is in {out / 'tightness.png'} and {out / 'tightness.svg'}.")


if __name__ == "__main__":
    main()
