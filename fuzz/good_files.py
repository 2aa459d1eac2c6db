"""Small good files of every format that is read, and the commands that read them.

A command is a list of words; {bad} stands for the file that is damaged. Those that begin with
``checkpoint`` and ``dataset`` are functions of Python, see `files.py`.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import io as scipy_io
from scipy import sparse

import conepursuit as cp
from conepursuit.datasets.files import PACKAGED
from conepursuit.datasets.registry import FILES
from damage import damaged, damaged_archive, damaged_json

MATRIX = [
    "solve {bad} b.csv", "solve {bad} b.csv --loss huber", "solve A.csv {bad}",
    "factorize {bad} --components 2", "solve A.csv b.csv --certify {bad}",
    "solve {bad} b.csv --out x.json", "solve {bad} b.csv --transpose A --max-atoms 2",
]  # fmt: skip
SCENE = ["unmix {bad} --endmembers 2 --out out"]
LIBRARY = ["unmix scene.npy --library {bad} --out out"]
PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
UNPACK = {"gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}


class Format(NamedTuple):
    """A format: the files of a good example, which of them are damaged, and how they are read.

    Attributes
    ----------
    files : dict of str to bytes
        The example, with what else the commands need.
    bad : str
        What a command is given, and how the name must begin that a message has.
    targets : list of str
        The files of which one is damaged.
    commands : list of str
        Of which one is run.
    damage : callable
        ``damage(rng, bytes)`` returns other bytes.
    """

    files: dict[str, bytes]
    bad: str
    targets: list[str]
    commands: list[str]
    damage: Callable[[Any, bytes], bytes] = damaged


def packed(kind):
    """Return what damages a compressed file, or what is in it."""

    def damage(rng, data):
        if rng.random() < 0.5:
            return damaged(rng, data)
        return PACK[kind](damaged(rng, UNPACK[kind](data)))

    return damage


def read_all(folder):
    """Return the files in a folder, by their paths in it."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def saved(write, *arguments, **options):
    """Return the bytes that a function writes into an open file."""
    out = io.BytesIO()
    write(out, *arguments, **options)
    return out.getvalue()


def matrix_formats():
    """Return the formats of matrices and targets."""
    rng = np.random.default_rng(0)
    A = rng.random((6, 4)) * (rng.random((6, 4)) < 0.7)
    lines = [",".join(map(repr, row)) for row in A.tolist()]
    named = ["id,iron,ash,oak,tin", *(f"r{i},{line}" for i, line in enumerate(lines))]
    csv, more = "\n".join(named).encode(), {}
    more["b.csv"] = "\n".join(["id,w", *(f"r{i},{i + 1}" for i in range(6))]).encode()
    more["A.csv"] = csv
    plain = "\n".join(lines).encode()
    texts = {
        "csv": csv, "tsv": csv.replace(b",", b"\t"), "txt": plain.replace(b",", b" "),
        "npy": saved(np.save, A), "mtx": saved(scipy_io.mmwrite, A),
        "sparse.mtx": saved(scipy_io.mmwrite, sparse.coo_array(A)),
    }  # fmt: skip
    out = {}
    for kind, content in texts.items():
        name = f"bad.{kind}"
        out[kind] = Format({name: content, **more}, name, [name], MATRIX)
        for end in PACK if kind in ("csv", "npy", "mtx") else ():
            name = f"bad.{kind}.{end}"
            files = {name: PACK[end](content), **more}
            out[f"{kind}.{end}"] = Format(files, name, [name], MATRIX, packed(end))
    archives = {"npz": saved(np.savez, a=A)}
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        stored = sparse.coo_array(A).asformat(kind)
        archives[f"{kind}.npz"] = saved(sparse.save_npz, stored)
    for kind, content in archives.items():
        name = f"bad.{kind}"
        out[kind] = Format({name: content, **more}, name, [name], MATRIX, damaged_archive)
    return out, more


def scene_formats(folder):
    """Return the formats of scenes and libraries."""
    from spectral.io import envi

    import scene_files

    X, spectra = scene_files.made(5, 4, 6, 2)
    X = X.astype(np.float32)
    kinds = {"npy": "scene.npy", "hdr": "scene.hdr", "tif": "scene.tif", "nc": "scene.nc",
             "zarr": "scene.zarr"}  # fmt: skip
    out = {}
    for kind, title in kinds.items():
        place = folder / kind
        place.mkdir()
        scene_files.save(X, place / f"bad.{kind}", wavelengths=[400.0 + 10 * i for i in range(6)])
        files = read_all(place)
        targets = ["bad.hdr"] if kind == "hdr" else sorted(files)
        out[title] = Format(files, f"bad.{kind}", targets, SCENE)
        if kind == "hdr":
            others = [name for name in files if name != "bad.hdr"]
            out["scene.img"] = Format(files, "bad.hdr", others, SCENE)
    held = {"mat": saved(scipy_io.savemat, {"X": X, "name": "a scene"}, do_compression=False)}
    held["packed.mat"] = saved(scipy_io.savemat, {"X": X, "n": 3}, do_compression=True)
    for kind, content in held.items():
        out[f"scene.{kind}"] = Format(
            {f"bad.{kind}": content}, f"bad.{kind}", [f"bad.{kind}"], SCENE
        )
    archive = {"bad.npz": saved(np.savez, X=X)}
    out["scene.npz"] = Format(archive, "bad.npz", ["bad.npz"], SCENE, damaged_archive)
    scene = {"scene.npy": saved(np.save, X)}
    lines = [",".join(["band", "oak", "tin"])]
    lines += [f"{i}," + ",".join(map(str, row)) for i, row in enumerate(spectra.T.tolist())]
    table = {"bad.csv": "\n".join(lines).encode(), **scene}
    out["library.csv"] = Format(table, "bad.csv", ["bad.csv"], LIBRARY)
    place = folder / "sli"
    place.mkdir()
    header = {"spectra names": ["oak", "tin"], "wavelength": list(range(6))}
    library = envi.SpectralLibrary(spectra.astype(np.float32), header)
    with chdir(place):
        library.save("bad")
    files = {**read_all(place), **scene}
    parts = [name for name in files if name.startswith("bad")]
    out["library.sli"] = Format(files, "bad.sli", parts, LIBRARY)
    return out


def run_formats(folder, more):
    """Return the formats of what the library writes itself, and reads again."""
    out = {}
    weights = folder / "weights"
    weights.mkdir()
    for name, content in more.items():
        (weights / name).write_bytes(content)
    quietly(weights, "solve A.csv b.csv --out bad.json")
    audit = ["solve A.csv b.csv --certify {bad}"]
    out["weights.json"] = Format(read_all(weights), "bad.json", ["bad.json"], audit, damaged_json)
    for kind, run in CHECKPOINTS.items():
        path = folder / f"{kind}.npz"
        run(callback=cp.Checkpoint(path))
        files = {"bad.npz": path.read_bytes()}
        title = f"checkpoint.{kind}"
        out[title] = Format(
            files, "bad.npz", ["bad.npz"], [f"checkpoint {kind} {{bad}}"], damaged_archive
        )
    place = folder / "resumed"
    place.mkdir()
    unfinished(place)
    files = read_all(place)
    parts = [name for name in files if name.endswith(("progress.json", "endmembers.csv"))]
    resumed = ["unmix scene.npy --endmembers 2 --tile-rows 2 --out bad --resume"]
    out["progress.json"] = Format(files, "bad", parts, resumed, damaged_either)
    for name, file in FILES.items():
        if (PACKAGED / file.path).is_file():
            files = {file.path: (PACKAGED / file.path).read_bytes()}
            harm = damaged_archive if file.path.endswith(".npz") else damaged
            out[f"dataset.{name}"] = Format(
                files, Path(file.path).name, [file.path], [f"dataset {name}"], harm
            )
    return out


def damaged_either(rng, data):
    """Damage JSON, or a table."""
    return (damaged_json if data[:1] == b"{" else damaged)(rng, data)


def unfinished(place):
    """Write a scene, and a folder with a run that was interrupted after a tile."""
    import scene_files
    from conepursuit.cli import unmixing

    def interrupted(*_):
        raise KeyboardInterrupt

    scene_files.save(scene_files.made(5, 4, 6, 2)[0], place / "scene.npy")
    original, unmixing.write_results = unmixing.write_results, interrupted
    quietly(place, "unmix scene.npy --endmembers 2 --tile-rows 2 --out bad")
    unmixing.write_results = original


def quietly(folder, command):
    """Run a command of the command line in a folder, in this process; drop what it prints."""
    from conepursuit.cli import main

    nowhere = io.StringIO()
    with chdir(folder), redirect_stdout(nowhere), redirect_stderr(nowhere):
        return main(command.split())


def _dictionary(**options):
    A = np.random.default_rng(0).random((8, 5))
    return cp.minimize(cp.LeastSquares(A.sum(axis=1)), cp.Cone(cp.Dictionary(A)), cp.PWMP(),
                       max_iter=4, **options)  # fmt: skip


def _rank_one(**options):
    X = np.random.default_rng(0).random((4, 3))
    return cp.minimize(cp.LeastSquares(X), cp.Cone(cp.NonnegativeRankOne((4, 3))), cp.FCMP(),
                       max_iter=3, **options)  # fmt: skip


def _unit_vectors(**options):
    return cp.minimize(cp.LeastSquares([1.0, 2.0, 0.5]), cp.Cone(cp.UnitVectors(3)), cp.PWMP(),
                       max_iter=3, **options)  # fmt: skip


def _nnls(**options):
    A = np.random.default_rng(0).random((8, 3000))  # smaller ones are fitted without a callback
    return cp.nnls(A, A[:, 0] + A[:, 7], max_atoms=3, **options)


def _nmf(**options):
    X = np.random.default_rng(0).random((6, 5))
    return cp.GreedyNMF(2, max_iter=5, tol=0.1).fit(X, **options)


CHECKPOINTS = {
    "dictionary": _dictionary,
    "rank_one": _rank_one,
    "unit_vectors": _unit_vectors,
    "nnls": _nnls,
    "nmf": _nmf,
}  # fmt: skip


def formats(folder):
    """Return all formats by their names; a folder is used to make the files."""
    matrices, more = matrix_formats()
    made = {**matrices, **scene_formats(folder), **run_formats(folder, more)}
    shutil.rmtree(folder)
    return made
