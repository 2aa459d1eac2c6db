"""The synthetic experiment: least squares on the cone of 100 random atoms in 50 dimensions.

Suboptimality is measured against an optimum that is certified by its own gap, not against the best
value that some method reached (errata D1). FNNOMP, also in the paper's figure, is
not here.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from conepursuit.algorithms import AFW, AMP, FCMP, FW, NNMP, PFW, PWMP, Algorithm
from conepursuit.arrays import Array, norm
from conepursuit.atoms import Dictionary
from conepursuit.domains import Cone, Domain, Hull
from conepursuit.objectives import LeastSquares
from conepursuit.plotting import COLOURS
from conepursuit.solve import minimize
from conepursuit.steps import CurvatureStep

D, N_ATOMS, N_NEGATED = 50, 100, 10
ROUNDING = 1e-14
"""Share of f below which a suboptimality is rounding."""


def make_problem(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return atoms, unit vectors of the first orthant, and a target outside their cone.

    y = A a with a uniform on [0, 5], then ten of its coordinates, drawn with replacement, negated.
    """
    atoms = rng.random((D, N_ATOMS))
    atoms /= np.linalg.norm(atoms, axis=0)
    y = atoms @ rng.uniform(0, 5, N_ATOMS)
    negated = rng.integers(0, D, N_NEGATED)
    y[negated] = -y[negated]
    return atoms, y


def contestants(atoms: Array, y: Array) -> dict[str, tuple[Domain, Algorithm]]:
    """Return the algorithms of the paper and the Frank-Wolfe baselines, each with its domain."""
    cone = Cone(Dictionary(atoms))
    hull = Hull(cone.atoms, radius=10 * norm(y))
    distances = np.maximum(2 - 2 * atoms.T @ atoms, 0)
    diameter = max(1.0, float(np.sqrt(distances.max())))  # the origin is an atom
    return {
        "FCMP variant 1": (cone, FCMP(variant=1)),
        "FCMP variant 0": (cone, FCMP(variant=0)),
        "PWMP": (cone, PWMP()),
        "AMP": (cone, AMP()),
        "NNMP": (cone, NNMP()),
        "PWMP affine inv.": (cone, PWMP(CurvatureStep(diameter**2))),
        "AMP affine inv.": (cone, AMP(CurvatureStep(diameter**2))),
        "NNMP affine inv.": (cone, NNMP(CurvatureStep(1.0), norm="gauge")),
        "pairwise FW": (hull, PFW()),
        "away-steps FW": (hull, AFW()),
        "Frank-Wolfe": (hull, FW()),
    }


@dataclass(frozen=True)
class Outcome:
    """What one algorithm did over all realisations.

    Attributes
    ----------
    suboptimality : array of shape (n_realisations, n_iter + 1)
        f(x_t) - f*; after the end of a run, its last value.
    bad_share : float
        Share of steps that were clipped at the weight of an atom.
    n_atoms : float
        Mean number of active atoms at the end.
    time : float
        Mean seconds per iteration.
    """

    suboptimality: Array
    bad_share: float
    n_atoms: float
    time: float


def run(n_realisations: int = 20, n_iter: int = 50, seed: int = 0) -> dict[str, Outcome]:
    """Run all contestants on the same problems."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[tuple[Array, int, int, int, float]]] = {}
    for _ in range(n_realisations):
        atoms, y = make_problem(rng)
        objective = LeastSquares(y)
        optimum = certified_optimum(objective, atoms)
        for name, (domain, algorithm) in contestants(atoms, y).items():
            began = perf_counter()
            result = minimize(objective, domain, algorithm, max_iter=n_iter, tol=0.0)
            elapsed = perf_counter() - began
            error = result.trace["value"] - optimum
            padded = np.append(error, np.full(n_iter + 1 - len(error), error[-1]))
            bad = int((~result.trace["good"]).sum())
            rows.setdefault(name, []).append(
                (padded, bad, result.n_iter, len(result.weights), elapsed)
            )
    return {name: _outcome(runs) for name, runs in rows.items()}


def certified_optimum(objective: LeastSquares, atoms: Array) -> float:
    """Return f*, known to a proven relative gap of 1e-12."""
    result = minimize(objective, Cone(Dictionary(atoms)), FCMP(variant=1), tol=1e-12)
    assert result.status.success
    assert result.certificate.proven
    return result.value


def _outcome(runs: list[tuple[Array, int, int, int, float]]) -> Outcome:
    errors, bad, steps, n_atoms, times = zip(*runs, strict=True)
    return Outcome(
        np.array(errors), sum(bad) / sum(steps), float(np.mean(n_atoms)), sum(times) / sum(steps)
    )


def table(outcomes: Mapping[str, Outcome]) -> Any:
    """Return a rich table of mean suboptimalities."""
    from rich.table import Table

    means = {name: outcome.suboptimality.mean(axis=0) for name, outcome in outcomes.items()}
    n_problems = len(next(iter(outcomes.values())).suboptimality)
    start = next(iter(means.values()))[0]
    out = Table(
        title=f"Mean of f(x_t) − f* over {n_problems} problems ({start:.3g} at t = 0)",
        caption=f"0: below {ROUNDING:g} of the start, the rounding of f",
    )
    out.add_column("algorithm", no_wrap=True)
    marks = (10, 20, 50)
    for heading in [f"t = {t}" for t in marks] + ["bad steps", "atoms", "µs/step"]:
        out.add_column(heading, justify="right", no_wrap=True)
    for name, outcome in outcomes.items():
        errors = (means[name][t] for t in marks)
        out.add_row(
            name,
            *(f"{e:.1e}" if e > ROUNDING * start else "0" for e in errors),
            f"{100 * outcome.bad_share:.1f} %",
            f"{outcome.n_atoms:.1f}",
            f"{1e6 * outcome.time:.0f}",
        )
    return out


FAMILIES = {"FCMP": 0, "PWMP": 1, "pairwise": 1, "AMP": 2, "away": 2, "NNMP": 3, "Frank": 3}
"""Related algorithms share a colour; they are told apart by the line."""


def _style(name: str) -> dict[str, Any]:
    """Return how a curve is drawn; those that lie on a solid one are black."""
    family = next(index for prefix, index in FAMILIES.items() if name.startswith(prefix))
    if name.endswith(("affine inv.", "variant 0")):
        line, width = "--", 1.6
    elif name.endswith(("FW", "Wolfe")):
        line, width = ":", 1.6
    else:
        line, width = "-", 3.2
    coincides = (line, family) in {("--", 0), ("--", 2), (":", 1), (":", 3)}
    shade = "black" if coincides else COLOURS[family]
    return {"color": shade, "linestyle": line, "linewidth": width}


def figure(outcomes: Mapping[str, Outcome], path: Path) -> None:
    """Draw mean suboptimality against iteration."""
    from matplotlib import pyplot

    fig, ax = pyplot.subplots(figsize=(7.6, 4.6), layout="constrained")
    for name, outcome in outcomes.items():
        mean = outcome.suboptimality.mean(axis=0)
        ax.plot(np.where(mean > ROUNDING * mean[0], mean, np.nan), label=name, **_style(name))
    ax.set(yscale="log", xlabel="iteration t", ylabel="mean suboptimality f(x$_t$) − f*")
    ax.grid(True, color="0.9")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    fig.savefig(path)
    pyplot.close(fig)


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment, print its table and write its figure."""
    from rich.console import Console

    parser = argparse.ArgumentParser(description="The synthetic experiment of the paper.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the figure")
    out: Path = parser.parse_args(arguments).out
    console = Console()
    with console.status("running every algorithm on the same random problems"):
        outcomes = run()
    console.print(table(outcomes))
    out.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "svg"):
        figure(outcomes, out / f"synthetic.{suffix}")
    console.print(f"The figure is in {out / 'synthetic.png'} and {out / 'synthetic.svg'}.")


if __name__ == "__main__":
    main()
