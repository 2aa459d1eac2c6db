"""Look for crashes, tracebacks, hangs and messages without a name, in files that are damaged.

    python fuzz/files.py --each 2000 --jobs 2
    python fuzz/files.py --each 100 --only npz --seed 1
    python fuzz/files.py --replay out/fuzz-files/npz-0-17

Every file is read by a command in a process of its own, with little memory and little time. A file
that fails is kept with its command. Ends with status 1 if anything was found.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # scenes are made there

import good_files
from damage import CANARY

SECONDS = 60
"""A command that takes longer hangs."""

MEMORY = 2**32
"""Bytes that a command may take beside those of the process that begins it."""

DRAWN = 10
"""Of so many files, one is read with all the pictures of its report."""

CHUNK = 50
"""Files that a process makes before it reports."""

KEPT = 3
"""Files that are kept of each format and each kind of failure."""

OUT = Path("out", "fuzz-files")


class Failure(NamedTuple):
    """What is wrong with the end of a command, and what it printed."""

    what: str
    command: str
    text: str


@cache
def formats():
    """Return all formats, with whatever their libraries need loaded."""
    warnings.simplefilter("ignore")
    made = good_files.formats(Path(tempfile.mkdtemp()))
    for name in ("npy", "scene.npy"):  # loads what all commands need
        rehearse(made[name])
    return made


def rehearse(form):
    """Run the first command of a format on its good files, in this process."""
    folder = Path(tempfile.mkdtemp())
    write(folder, form.files)
    good_files.quietly(folder, form.commands[0].format(bad=form.bad))
    shutil.rmtree(folder)


def write(folder, files):
    """Write files by their paths in a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def run(command):
    """Run a command in this process and return its exit code."""
    from conepursuit.cli import complain, described, main

    words = shlex.split(command)
    if words[0] not in ("checkpoint", "dataset"):
        return main(words)
    try:
        if words[0] == "checkpoint":
            good_files.CHECKPOINTS[words[1]](start=good_files.cp.Checkpoint.load(words[2]))
        else:
            from conepursuit.datasets.files import stored

            stored(words[1], ".")
    except (ValueError, TypeError, OSError) as error:
        return complain(described(error) if isinstance(error, OSError) else str(error), 2)
    return 0


def draw_nothing():
    """Let reports have no pictures, which take longer than all else."""
    from conepursuit.cli import unmixed

    unmixed.picture, unmixed.draw = (lambda *_, **__: b""), (lambda plot: "<svg></svg>")


def ended(folder, command, *, drawn):
    """Run a command in a folder, in a process of its own; return how it ended and its output."""
    texts = folder / ".stdout", folder / ".stderr"
    child = os.fork()
    if not child:
        code = 99
        try:
            os.chdir(folder)
            for number, path in zip((1, 2), (".stdout", ".stderr"), strict=True):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            _limit()
            if not drawn:
                draw_nothing()
            code = run(command)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    outputs = [path.read_text(errors="replace") for path in texts]
    return os.waitstatus_to_exitcode(status), *outputs


def _limit():
    """Limit the memory, the time and the files of this process."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30))
    for number in (signal.SIGALRM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(SECONDS)


def judged(folder, command, bad, *, drawn=True):
    """Run a command and return what is wrong with its end; None if nothing is."""
    code, out, error = ended(folder, command, drawn=drawn)
    name, what = Path(bad).name.split(".")[0], None
    noisy = bad.endswith((".tif", ".nc"))  # libraries in C print before our message comes
    error = error[error.rfind("conepursuit:") if noisy and code == 2 else 0 :]
    if code < 0:
        hang = code == -signal.SIGALRM
        what = "hang" if hang else f"crash by {signal.Signals(-code).name}"
    elif (folder / CANARY).exists():
        what = "a pickle was executed"
    elif "Traceback" in error or code not in (0, 1, 2):
        last = error.strip().splitlines()[-1:] or [""]
        what = f"traceback: {last[0].split(':')[0]}"
    elif code == 2 and error.count("\n") != 1:
        what = "a message that is not one line"
    elif code == 2 and name not in error and " --" not in error[:15]:  # it may name an option
        what = "a message without the file's name"
    elif code == 0 and error and not noisy:
        what = "something on stderr of a command that succeeds"
    elif any(not (c.isprintable() or c in "\n") for c in out + error):
        what = "a control character"
    return None if what is None else Failure(what, command, f"{out[-1000:]}{error[-3000:]}")


def case(name, seed, index):
    """Return the files and the command of a case."""
    form = formats()[name]
    rng = np.random.default_rng([seed, crc32(name.encode()), index])
    target = form.targets[rng.integers(len(form.targets))]
    files = {**form.files, target: form.damage(rng, form.files[target])}
    return files, form.commands[rng.integers(len(form.commands))].format(bad=form.bad), form.bad


def chunk(name, seed, first, count, keep):
    """Run some cases; return what was wrong, with its index."""
    found = []
    for index in range(first, first + count):
        folder = Path(tempfile.mkdtemp())
        files, command, bad = case(name, seed, index)
        write(folder, files)
        failure = judged(folder, command, bad, drawn=index % DRAWN == 0)
        shutil.rmtree(folder)
        if failure is not None:
            found.append((index, failure))
            kept = keep / f"{name}-{seed}-{index}"
            write(kept, files)
            (kept / "COMMAND").write_text(f"{command}\n{bad}\n")
    return name, found


def look(names, each, seed, jobs, keep):
    """Run so many cases of each format; return the failures by format."""
    found = {name: [] for name in names}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        tasks = [
            pool.submit(chunk, name, seed, first, min(CHUNK, each - first), keep)
            for name in names
            for first in range(0, each, CHUNK)
        ]
        for task in as_completed(tasks):
            name, failures = task.result()
            found[name] += failures
    return found


def show(found, each, seed, keep):
    """Print the number of failures of each format and kind, with one of each; drop the others."""
    for name, failures in found.items():
        print(f"{name}: {each} files, {len(failures)} failures", flush=True)
        shown = Counter()
        for index, failure in sorted(failures):
            shown[failure.what] += 1
            place = keep / f"{name}-{seed}-{index}"
            if shown[failure.what] == 1:
                print(f"  {failure.what}: {place}: {failure.command}\n    {failure.text.strip()}")
            if shown[failure.what] > KEPT:
                shutil.rmtree(place)
        for what, times in shown.items():
            print(f"  {times} x {what}")


def replay(kept):
    """Run the command of a case that was kept, and say how it ends."""
    formats()
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    command, bad = (kept / "COMMAND").read_text().splitlines()
    failure = judged(folder, command, bad)
    print(command)
    for name in (".stdout", ".stderr"):
        print((folder / name).read_text(errors="backslashreplace"))
    print("nothing wrong" if failure is None else failure.what)
    return int(failure is not None)


def main():
    """Read the options, look at files, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=100, help="files of each format")
    parser.add_argument("--only", nargs="+", help="the names of some formats, as they are printed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT, help="where files that fail are kept")
    parser.add_argument("--replay", type=Path, help="a folder that was kept")
    options = parser.parse_args()
    if options.replay is not None:
        return replay(options.replay)
    names = [name for name in formats() if options.only is None or name in options.only]
    keep = options.out.resolve()
    found = look(names, options.each, options.seed, options.jobs, keep)
    show(found, options.each, options.seed, keep)
    total = sum(map(len, found.values()))
    print(f"{len(names)} formats, {options.each * len(names)} files, {total} failures")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
