"""What an iteration costs and how fast the error falls, beside the paper's table of complexity.

The table claims a cost of C + O(d) for NNMP, C + O(d + t d) for PWMP and AMP and C + O(d) + h for
FCMP, with C the cost of the oracle; and numbers k(t) of good steps. Measured are the time of an
iteration against the dimension d and against the number of active atoms, the share k(t)/t, and the
rate that fits the fall of the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from conepursuit.arrays import Array, Vector
from conepursuit.atoms import Dictionary
from conepursuit.datasets import iter_synthetic, make_sparse_conic
from conepursuit.experiments.findings import Comparison, Experiment, Findings, Part, Table
from conepursuit.experiments.synthetic import certified_optimum
from conepursuit.objectives import LeastSquares
from conepursuit.plotting import COLOURS
from conepursuit.pursuit.algorithms import AMP, FCMP, NNMP, PWMP, Algorithm
from conepursuit.pursuit.domains import Cone
from conepursuit.pursuit.solve import iterates, minimize

ALGORITHMS: dict[str, Algorithm] = {
    "NNMP": NNMP(),
    "PWMP": PWMP(),
    "AMP": AMP(),
    "FCMP v. 0": FCMP(variant=0),
    "FCMP v. 1": FCMP(variant=1),
}
PAPER = {
    "NNMP": ("C + O(d)", "O(1/t)", "-"),
    "PWMP": ("C + O(d + td)", "O(exp(-β k))", "t / (3|A|! + 1)"),
    "AMP": ("C + O(d + td)", "O(exp(-β/2 k))", "t/2"),
    "FCMP v. 0": ("C + O(d) + h_0", "O(exp(-β k))", "t / (3|A|! + 1)"),
    "FCMP v. 1": ("C + O(d) + h_1", "O(exp(-β k))", "t"),
}
"""Cost, convergence and good steps, as printed."""

N_ATOMS, N_ITER = 2000, 120
DIMENSIONS = (250, 500, 1000, 2000, 4000)


def costs(name: str, dimension: int, n_iter: int = N_ITER, repeats: int = 3) -> dict[str, Any]:
    """Return the CPU seconds of each iteration of a run, the least of some repeats, and of C.

    Parameters
    ----------
    name : str
        The algorithm.
    dimension : int
        Rows of the dictionary, which has 2,000 atoms.
    n_iter : int
        Iterations to time.
    repeats : int
        How often.
    """
    made = make_sparse_conic(dimension, N_ATOMS, 400, noise=0.5, random_state=0)
    atoms, y = np.asfortranarray(made.atoms), made.y
    cone, objective = Cone(Dictionary(atoms)), LeastSquares(y)
    with threadpool_limits(limits=1, user_api="blas"):
        runs = [_timed_run(objective, cone, ALGORITHMS[name], n_iter) for _ in range(repeats)]
        products = []
        for _ in range(20):
            began = process_time()
            atoms.T @ y
            products.append(process_time() - began)
    n = min(len(times) for times, _ in runs)
    least = np.min([times[:n] for times, _ in runs], axis=0)
    return {"seconds": least.tolist(), "active": runs[0][1][:n], "product": min(products)}


def _timed_run(
    objective: LeastSquares, cone: Cone, algorithm: Algorithm, n_iter: int
) -> tuple[Vector, list[int]]:
    """Return the CPU time of each iteration, and the active atoms after it."""
    times, active = [], []
    run = iterates(objective, cone, algorithm)
    next(run)
    began = process_time()
    for state in islice(run, n_iter):
        now = process_time()
        times.append(now - began)
        active.append(len(state.iterate.weights))
        began = process_time()
    return np.array(times), active


def rates(name: str, n_problems: int = 20, n_iter: int = 200) -> dict[str, Any]:
    """Return the least k(t)/t, the share of bad steps, and the fitted rates, on synthetic data.

    The rate fits log(f(x_t) - f*) by a line in t from the first step to 1e-10 of the start; the
    power fits it by a line in log(t).
    """
    shares, bad, slopes, powers = [], [], [], []
    for atoms, y in iter_synthetic(n_problems, 0):
        objective, cone = LeastSquares(y), Cone(Dictionary(atoms))
        result = minimize(
            objective, cone, ALGORITHMS[name], max_iter=n_iter, tol=0.0
        ).unless_interrupted()
        good = result.trace["good"][:-1]
        t = np.arange(1, len(good) + 1)
        shares.append(float((np.cumsum(good) / t).min()))
        bad.append(1 - float(good.mean()))
        errors = result.trace["value"] - certified_optimum(objective, atoms)
        told = np.flatnonzero(errors > 1e-10 * errors[0])[1:]
        slopes.append(-_slope(told.astype(float), np.log(errors[told])))
        powers.append(-_slope(np.log(told), np.log(errors[told])))
    return {
        "least_share": min(shares),
        "bad": float(np.mean(bad)),
        "rate": float(np.median(slopes)),
        "power": float(np.median(powers)),
    }


def _slope(x: Array, y: Array) -> float:
    return float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else float("nan")


def parts(quick: bool) -> dict[str, Part]:
    """Return the costs in every dimension, and the rates, of every algorithm."""
    dimensions = DIMENSIONS[:2] if quick else DIMENSIONS
    budget = (30, 1) if quick else (N_ITER, 3)
    found: dict[str, Part] = {}
    for name in ALGORITHMS:
        for d in dimensions:
            found[f"{_key(name)}-{d}"] = partial(costs, name, d, *budget)
        found[f"{_key(name)}-rate"] = partial(rates, name, 3 if quick else 20)
    return found


def present(results: Mapping[str, Any]) -> Findings:
    """Return measured costs and rates beside the table of the paper."""
    largest = _largest(results)
    curves = {name: results[f"{_key(name)}-{largest}"] for name in ALGORITHMS}
    caption = f"CPU time of an iteration over that of D'g, in dimension {largest}"
    tables = [_cost_table(results), _rate_table(results)]
    return Findings(_comparisons(results), tables, {caption: partial(plot, curves)})


def _key(name: str) -> str:
    return name.replace(" v. ", "-")


def _cost_table(results: Mapping[str, Any]) -> Table:
    rows = []
    for name, (cost, _, _) in PAPER.items():
        runs = {int(k.split("-")[-1]): v for k, v in results.items() if _is_cost(k, _key(name))}
        medians = {d: float(np.median(run["seconds"])) for d, run in runs.items()}
        shares = [medians[d] / run["product"] for d, run in runs.items()]
        exponent = _slope(np.log(list(medians)), np.log(list(medians.values())))
        slope = _per_atom(runs[max(runs)])
        ratio = f"{min(shares):.2f} to {max(shares):.2f}"
        rows.append((name, cost, ratio, f"{exponent:.2f}", f"{slope:.3f}"))
    return Table(
        "Cost of an iteration",
        ("algorithm", "paper", "time / C", "exponent of d", "slope in atoms"),
        rows,
        "C is the product D'g with 2,000 atoms. Slope in atoms: by how much an iteration's time "
        "over C grows with 100 active atoms, in the largest dimension.",
    )


def _rate_table(results: Mapping[str, Any]) -> Table:
    rows = []
    for name, (_, convergence, good) in PAPER.items():
        rate = results[f"{_key(name)}-rate"]
        rows.append(
            (
                name,
                convergence,
                f"{rate['rate']:.3f}",
                f"{rate['power']:.1f}",
                good,
                f"{rate['least_share']:.2f}",
                f"{100 * rate['bad']:.1f} %",
            )
        )
    columns = ("algorithm", "paper", "rate", "power of t", "paper: k(t)", "least k(t)/t", "bad")
    note = "Rate: of log(f − f*) in t; power: in log(t); medians over synthetic problems."
    return Table("Convergence", columns, rows, note)


def _is_cost(key: str, algorithm: str) -> bool:
    head, _, last = key.rpartition("-")
    return head == algorithm and last.isdigit()


def _largest(results: Mapping[str, Any]) -> int:
    return max(int(key.split("-")[-1]) for key in results if _is_cost(key, "NNMP"))


def _per_atom(run: Mapping[str, Any]) -> float:
    """Return by how much an iteration's time over C grows with 100 active atoms."""
    active, seconds = np.array(run["active"], float), np.array(run["seconds"]) / run["product"]
    return 100 * _slope(active, seconds) if np.ptp(active) > 0 else 0.0


def _comparisons(results: Mapping[str, Any]) -> list[Comparison]:
    share = results["AMP-rate"]["least_share"]
    bad = results["PWMP-rate"]["bad"]
    slow, fast = results["NNMP-rate"]["power"], results["PWMP-rate"]["rate"]
    d = _largest(results)
    extra = [
        float(np.median(results[f"{key}-{d}"]["seconds"])) / results[f"{key}-{d}"]["product"]
        for key in ("PWMP", "AMP")
    ]
    return [
        Comparison("AMP: good steps k(t)/t", "at least 1/2", f"{share:.2f}", share >= 0.5),
        Comparison(
            "PWMP: share of bad steps",
            "1.5 % (on hyperspectral data)",
            f"{100 * bad:.1f} %",
            bad < 0.05,
            "These are synthetic data (errata D6); the bound t / (3|A|! + 1) on good steps says "
            "next to nothing (errata B9).",
        ),
        Comparison(
            f"PWMP and AMP: time of an iteration over C, in dimension {d}",
            "C + O(d + t d)",
            f"{min(extra):.2f} to {max(extra):.2f}",
            max(extra) < 1.5 if d == DIMENSIONS[-1] else None,
            _remark_on_cost(d, results[f"PWMP-{d}"]["product"], max(extra)),
        ),
        Comparison(
            "NNMP sublinear, PWMP linear",
            "O(1/t) and O(exp(-β k))",
            f"NNMP falls as t^-{slow:.1f}, PWMP as exp(-{fast:.2f} t)",
            fast > 0.05,
            "",
        ),
    ]


def _remark_on_cost(d: int, product: float, extra: float) -> str:
    """Return what the time of an iteration, as a multiple of C, says in dimension d."""
    if d < DIMENSIONS[-1]:
        return (
            f"A product takes {1e3 * product:.2g} ms in dimension {d}, so that most of the time "
            f"may be that of the interpreter. The whole run has dimension {DIMENSIONS[-1]:,}."
        )
    if extra < 1.5:
        return "The second query needs no product: the oracle's pass has scored the active atoms."
    return "An iteration takes more than one product; a machine that is busy may be the reason."


def plot(curves: Mapping[str, Mapping[str, Any]], ax: Any) -> None:
    """Draw the time of an iteration over C against the active atoms."""
    for i, (name, run) in enumerate(curves.items()):
        ax.plot(
            run["active"],
            np.array(run["seconds"]) / run["product"],
            "os^Dv"[i],
            markersize=3,
            color=COLOURS[i],
            label=name,
        )
    ax.set(xlabel="active atoms", ylabel="CPU time of an iteration over that of D'g", ylim=(0, 3))
    ax.grid(True, color="0.9")
    ax.legend(frameon=False)


EXPERIMENT = Experiment(
    "complexity",
    "Cost per iteration and convergence",
    "Table 1, Section 3.2",
    parts,
    present,
)
