"""How good the atoms are that fits with few atoms choose, under losses other than least squares.

Tumours: every catalogue of PCAWG on the COSMIC signatures under the Poisson loss, with at most 3, 5
and 8 signatures. The excess of a fit is its loss less that with all signatures. `nnfit` is compared
with the choice of `nnls` and a refit of the chosen ones under the Poisson loss, and, for a sample,
with `ConicRegressor` and with `minimize`, whose FCMP takes one atom after the other by its slope.

Made problems: how often the value of `nnfit` is the least of all supports, by enumeration.

Run it with ``CONEPURSUIT_DATA=... make bench-few-atoms``; it takes about four minutes.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

from itertools import combinations  # noqa: E402  # the settings above must come first
from math import comb  # noqa: E402
from time import process_time  # noqa: E402

import numpy as np  # noqa: E402

from conepursuit import (  # noqa: E402
    FCMP,
    Cone,
    ConicRegressor,
    Dictionary,
    Huber,
    LeastSquares,
    Logistic,
    Poisson,
    minimize,
    nnfit,
    nnls,
)
from conepursuit.datasets import DatasetNotFoundError, load_mutational_signatures  # noqa: E402

SIZES = (3, 5, 8)
SAMPLE = 20
"""Tumours that the loop and the estimator, one target at a time, are run on."""

PROBLEMS = 50
"""Made problems for each loss and number of atoms."""

SAME = 1e-9
"""Values that differ by less than this share are taken for the same."""


def refitted(counts, A, supports):
    """Return the loss of each target, fitted with its own atoms."""
    pairs = zip(counts.T, supports, strict=True)
    return np.array([nnfit(Poisson(y[:, None]), A[:, s]).value[0] for y, s in pairs])


def tumours(A, counts, k):
    """Print how fits of all tumours with k signatures compare."""
    whole = nnfit(Poisson(counts), A).value
    began = process_time()
    fit = nnfit(Poisson(counts), A, max_atoms=k)
    seconds = process_time() - began
    other = refitted(counts, A, nnls(A, counts, max_atoms=k).support.T)
    room = SAME * np.abs(other)
    print(
        f"  {k} signatures: no worse {np.mean(fit.value <= other + room):.2%}, better "
        f"{np.mean(fit.value < other - room):.1%}; median excess "
        f"{np.median(fit.value - whole):.1f}, by least squares and a refit "
        f"{np.median(other - whole):.1f}; {1e3 * seconds / counts.shape[1]:.0f} ms a tumour"
    )


def public_ways(A, counts, k):
    """Print the median excess of each public way to k signatures, on a sample of tumours."""
    counts = counts[:, :: counts.shape[1] // SAMPLE][:, :SAMPLE]
    whole = nnfit(Poisson(counts), A).value
    model = ConicRegressor("poisson", max_atoms=k, fit_intercept=False).fit(A, counts)
    loops = [minimize(Poisson(y), Cone(Dictionary(A)), FCMP(), max_atoms=k) for y in counts.T]
    each = list(zip(counts.T, model.coef_, strict=True))
    ways = {
        "nnfit": nnfit(Poisson(counts), A, max_atoms=k).value,
        "ConicRegressor": [Poisson(y).value(A @ c) for y, c in each],
        "minimize with FCMP": [loop.value for loop in loops],
        "nnls and a refit": refitted(counts, A, nnls(A, counts, max_atoms=k).support.T),
    }
    told = [f"{name} {np.median(values - whole):.1f}" for name, values in ways.items()]
    print(f"  median excess of {SAMPLE} tumours, {k} signatures: {', '.join(told)}")


def spread(rng, m, n):
    """Return atoms that are independent of each other, or share a part."""
    return rng.gamma(0.5, 1.0, (m, n)) + 0.3 * rng.integers(2) * rng.gamma(1.0, 1.0, (m, 1))


def bumps(rng, m, n):
    """Return bumps that overlap: neighbours have a cosine of 0.9."""
    entries, width = np.linspace(0.0, 1.0, m)[:, None], rng.uniform(0.1, 0.15)
    return np.exp(-0.5 * ((entries - np.linspace(0.0, 1.0, n)) / width) ** 2) + 1e-3


def made(seed, loss, atoms, k, n=12):
    """Return a loss of data from one atom more than k, and the atoms."""
    rng = np.random.default_rng(seed)
    m = 120 if loss is Logistic else 30
    A = atoms(rng, m, n)
    w = np.zeros(n)
    w[rng.choice(n, k + 1, replace=False)] = 20 * rng.gamma(1.0, 1.0, k + 1)
    mean = A @ w
    noisy = mean + 0.1 * mean.std() * rng.standard_t(2, m)
    if loss is Poisson:
        return Poisson(rng.poisson(mean)), A
    if loss is Logistic:
        odds = 2 * (mean - np.median(mean)) / mean.std()
        return Logistic(np.where(rng.logistic(odds) > 0, 1, -1)), A - A.mean(axis=0)
    return (Huber(noisy, delta=0.1 * mean.std()) if loss is Huber else LeastSquares(noisy)), A


def enumerated(loss, atoms, k):
    """Print how often the best of all supports is found."""
    hits, worst = 0, 0.0
    for seed in range(PROBLEMS):
        f, A = made(seed, loss, atoms, k)
        each = type(f)(f.y[:, None], **f.options())
        supports = map(list, combinations(range(A.shape[1]), k))
        best = min(nnfit(each, A[:, support]).value[0] for support in supports)
        found = nnfit(f, A, max_atoms=k).value
        hits += found <= best + 1e-6 * abs(best)
        worst = max(worst, (found - best) / abs(best))
    print(
        f"  {loss.__name__}, {atoms.__name__} atoms, {k} of {A.shape[1]} "
        f"({comb(A.shape[1], k)} supports): {hits} of {PROBLEMS}; the worst is {worst:.2%} above"
    )


def main() -> None:
    """Print all comparisons."""
    print("The best of all supports is found in")
    for loss in (Poisson, Huber, LeastSquares, Logistic):
        for atoms in (spread, bumps):
            for k in (2, 3, 4):
                enumerated(loss, atoms, k)
    try:
        data = load_mutational_signatures()
    except DatasetNotFoundError as error:
        print(error)
        return
    A, counts = data.signatures, data.catalogues
    print(f"{counts.shape[1]} tumours, {A.shape[1]} signatures:")
    for k in SIZES:
        tumours(A, counts, k)
    public_ways(A, counts, 5)


if __name__ == "__main__":
    main()
