"""Non-negative matrix factorisation against scikit-learn's NMF.

scikit-learn runs with its defaults. Ours runs with its defaults as well, and once more with the
least `max_iter` after which the objective is no worse than scikit-learn's; what is timed is the
whole `fit`. One thread, CPU clock, contestants in turns, "minimum / median". The second table is
about the fit that has all ranks, ``path=True``.

Run it with ``CONEPURSUIT_DATA=... make bench-nmf``; it takes about three minutes.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
if "MALLOC_TRIM_THRESHOLD_" not in os.environ:  # read by the allocator at the start of a process
    os.environ |= {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
    import sys

    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse  # noqa: E402  # the settings above must come first
import warnings  # noqa: E402
from statistics import median  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.decomposition import NMF  # noqa: E402

from conepursuit import GreedyNMF  # noqa: E402
from conepursuit.datasets import load_cbcl_faces, load_reuters  # noqa: E402
from timing import show, timed  # noqa: E402

MOST = 400
"""Sweeps after which ours is taken not to reach the level."""


def piano_spectrogram(seed=0, frames=800, bins=513, rate=16000, n_notes=12, n_events=60):
    """Return the magnitudes (bins x frames) of the short-time Fourier transform of a melody.

    The melody is of `n_notes` pitches of a minor scale, struck `n_events` times, one to three at
    once; a note has ten partials, slightly inharmonic, of which the higher decay sooner.
    """
    rng = np.random.default_rng(seed)
    window = 2 * (bins - 1)
    hop = window // 2
    samples = window + hop * (frames - 1)
    scale = np.array([0, 2, 3, 5, 7, 8, 10])
    steps = np.concatenate([scale + 12 * octave for octave in range(-1, 3)])[:n_notes]
    partials = np.arange(1, 11)
    sound = 1e-4 * rng.standard_normal(samples)
    for start in np.sort(rng.integers(0, samples - window, n_events)):
        time = np.arange(min(samples - start, 2 * rate)) / rate
        for pitch in 220.0 * 2.0 ** (rng.choice(steps, rng.integers(1, 4), replace=False) / 12):
            tones = pitch * partials * np.sqrt(1 + 4e-4 * partials**2)
            for tone, partial in zip(tones, partials, strict=True):
                if tone < rate / 2:
                    decay = np.exp(-time * (1.5 + 0.6 * partial))
                    phase, level = rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 1.0) * partial**-1.2
                    wave = level * decay * np.sin(2 * np.pi * tone * time + phase)
                    sound[start : start + len(time)] += wave
    blocks = np.lib.stride_tricks.sliding_window_view(sound, window)[::hop] * np.hanning(window)
    return np.ascontiguousarray(np.abs(np.fft.rfft(blocks, axis=1)).T)


def problems(folder):
    """Yield name, data, rank and loss."""
    digits, piano = load_digits().data, piano_spectrogram()
    if folder:
        faces, reuters = load_cbcl_faces(folder=folder).V, load_reuters(folder=folder).X
        yield "faces, K = 10", faces, 10, "squared_error"
        yield "faces, K = 50", faces, 50, "squared_error"
    yield "digits, K = 10", digits, 10, "squared_error"
    if folder:
        yield "Reuters, K = 10", reuters, 10, "squared_error"
        yield "faces, K = 10", faces, 10, "kullback_leibler"
        yield "faces, K = 50", faces, 50, "kullback_leibler"
    yield "piano, K = 12", piano, 12, "kullback_leibler"
    if folder:
        yield "Reuters, K = 10", reuters, 10, "kullback_leibler"
        yield "Reuters, K = 50", reuters, 50, "kullback_leibler"


def objective(model):
    """Return the objective of a fitted model."""
    return 0.5 * model.reconstruction_err_**2


def theirs(rank, loss):
    solver = (
        {} if loss == "squared_error" else {"solver": "mu", "beta_loss": loss.replace("_", "-")}
    )
    return NMF(rank, random_state=0, **solver)


def least_sweeps(X, rank, loss, level):
    """Return the least number of sweeps after which ours is at the level, None if none is."""
    few, many = 0, 1
    while objective(GreedyNMF(rank, loss=loss, max_iter=many, tol=0).fit(X)) > level:
        few, many = many, 2 * many
        if many > MOST:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        fit = GreedyNMF(rank, loss=loss, max_iter=middle, tol=0).fit(X)
        few, many = (few, middle) if objective(fit) <= level else (middle, many)
    return many


def cell(times):
    return f"{1e3 * min(times):.0f} / {1e3 * median(times):.0f} ms"


def level_rows(folder, repeat):
    for name, X, rank, loss in problems(folder):
        level = objective(theirs(rank, loss).fit(X))
        sweeps, default = least_sweeps(X, rank, loss, level), GreedyNMF(rank, loss=loss)
        calls = {
            "scikit-learn": lambda X=X, rank=rank, loss=loss: theirs(rank, loss).fit(X),
            "default": lambda X=X, model=default: model.fit(X),
        }
        if sweeps is not None:
            soon = GreedyNMF(rank, loss=loss, max_iter=sweeps, tol=0)
            calls["soon"] = lambda X=X, model=soon: model.fit(X)
        times = timed(calls, repeat)
        least = {key: min(each) for key, each in times.items()}
        yield (
            name, loss, cell(times["scikit-learn"]), cell(times["default"]),
            f"{least['scikit-learn'] / least['default']:.1f}", f"{objective(default) / level:.4f}",
            "not reached" if sweeps is None else cell(times["soon"]),
            "-" if sweeps is None else f"{least['scikit-learn'] / least['soon']:.1f}",
        )  # fmt: skip


def path_rows(folder, repeat):
    faces = load_cbcl_faces(folder=folder).V
    model = GreedyNMF(50, path=True)
    calls = {
        "one": lambda: theirs(50, "squared_error").fit(faces),
        "path": lambda: model.fit(faces),
    }
    times = timed(calls, repeat)
    worst = 0.0
    for rank in (1, 2, 3, 5, 8, 10, 15, 20, 25, 30, 35, 40, 45, 49):
        separate = min(
            objective(GreedyNMF(rank).fit(faces)),
            objective(theirs(rank, "squared_error").fit(faces)),
        )
        worst = max(worst, model.rank_path_[rank - 1] / separate)
    yield (
        cell(times["one"]), cell(times["path"]), f"{min(times['path']) / min(times['one']):.2f}",
        f"{worst:.4f}",
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", choices=["level", "path"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = os.environ.get("CONEPURSUIT_DATA")
    if arguments.only != "path":
        headings = (
            "data", "loss", "scikit-learn", "ours", "times faster", "objective, ours / theirs",
            "ours to their objective", "times faster",
        )  # fmt: skip
        show("scikit-learn's defaults and ours", headings, level_rows(folder, arguments.repeat))
    if arguments.only != "level" and folder:
        headings = (
            "scikit-learn, K = 50",
            "ours, path=True, K = 1..50",
            "ours / theirs",
            "worst / separate",
        )
        show("All ranks of the faces from one fit", headings, path_rows(folder, arguments.repeat))


if __name__ == "__main__":
    main()
