"""Run the tests of the kernels, and a short fuzz, under sanitizers.

    python tools/sanitize.py
    python tools/sanitize.py --minutes 10

The kernels are built in ``build/sanitize`` with the address and undefined-behaviour sanitizers and
with checked indices; the first error ends the process. Needs gcc or clang with their libraries;
where they are missing, this says so and ends.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "sanitize"
SITE = BUILD / "site"
TESTS = (
    "tests/test_kernels.py",
    "tests/least_squares/test_nnls_kernels.py",
    "tests/least_squares/test_rounding.py",
    "tests/least_squares/test_sums.py::test_one_and_many_are_optimal_and_agree",
    "tests/least_squares/test_sums.py::test_degenerate_dictionaries",
    "tests/loss_fits/test_many_targets_kernel.py",
    "tests/factorization/test_divergence_factors.py",
    "tests/factorization/test_divergence_weights.py",
    "tests/factorization/test_greedy_factors.py",
    "tests/factorization/test_weighted_factors.py",
    "tests/estimators/test_garrote_kernel.py",
    "tests/pursuit/test_weight_programs.py",
)


def main() -> int:
    """Build, test and fuzz; return 0 if nothing fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0.5, help="of fuzz")
    minutes = parser.parse_args().minutes
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    library = compiler and runtime(compiler)
    if not library:
        print("no compiler with sanitizers was found; g++ with libasan would do")
        return 0
    build(compiler)
    # Without -S, the kernels of the editable installation would be found first.
    command = [sys.executable, "-S"]
    environment = {
        **os.environ,
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter keeps memory to its end
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join([str(SITE), sysconfig.get_path("purelib")]),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    tests = [*command, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *TESTS]
    # The same problems each time: what a new seed finds is no fault of a change.
    fuzz = [*command, "fuzz/run.py", "--minutes", str(minutes), "--jobs", "1"]
    fuzz += ["--seed", "2466248809"]
    running = [subprocess.Popen(part, cwd=ROOT, env=environment) for part in (tests, fuzz)]
    return max(abs(process.wait()) for process in running)


def runtime(compiler: str) -> str | None:
    """Return the path of the library of the address sanitizer; None if there is none."""
    names = ("libasan.so", "libclang_rt.asan-x86_64.so", "libclang_rt.asan-aarch64.so")
    for name in names:
        asked = [compiler, f"-print-file-name={name}"]
        found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        if os.path.isabs(found) and os.path.exists(found):
            return found
    return None


def build(compiler: str) -> None:
    """Build the kernels for this processor into `SITE`, beside a copy of the package."""
    from conepursuit.kernels import level

    tools = sysconfig.get_path("scripts")
    environment = {**os.environ, "PATH": os.pathsep.join([tools, os.environ["PATH"]])}
    options = [
        f"-DCMAKE_CXX_COMPILER={compiler}", f"-DPython_EXECUTABLE={sys.executable}",
        "-DCMAKE_BUILD_TYPE=Debug", "-DSANITIZE=ON", f"-DLEVELS={level()}",
        f"-DCMAKE_INSTALL_PREFIX={SITE}",
    ]  # fmt: skip
    configure = ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(BUILD), *options]
    compile_ = ["cmake", "--build", str(BUILD), "--target", "install"]
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "conepursuit", SITE / "conepursuit")
    for command in (configure, compile_):
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
