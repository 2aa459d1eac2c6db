"""The build backend: scikit-build-core, with a compiler from PyPI where the machine has none.

The package `ziglang` holds clang and a linker. Where no C++ compiler is found it becomes a build
dependency, and CMake is given small scripts that call it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import scikit_build_core.build as core
from scikit_build_core.build import build_sdist as build_sdist
from scikit_build_core.build import get_requires_for_build_sdist as get_requires_for_build_sdist
from scikit_build_core.build import (
    prepare_metadata_for_build_editable as prepare_metadata_for_build_editable,
)
from scikit_build_core.build import (
    prepare_metadata_for_build_wheel as prepare_metadata_for_build_wheel,
)

COMPILERS = ("c++", "g++", "clang++", "cl")
ZIG = "ziglang>=0.13"
SCRIPTS = Path("build", "zig")
"""Where the scripts and the cache of the compiler from PyPI are: the same place in every build."""


def has_compiler() -> bool:
    """Return whether the machine has a C++ compiler, or the environment names one.

    On Windows, CMake looks for one itself, and the scripts that call ziglang would not run.
    """
    found = "CXX" in os.environ or any(shutil.which(name) for name in COMPILERS)
    return found or sys.platform == "win32"


def get_requires_for_build_wheel(settings: dict[str, Any] | None = None) -> list[str]:
    """Return what the build needs beyond pyproject.toml."""
    return core.get_requires_for_build_wheel(settings) + ([] if has_compiler() else [ZIG])


def get_requires_for_build_editable(settings: dict[str, Any] | None = None) -> list[str]:
    """Return what the build needs beyond pyproject.toml."""
    return core.get_requires_for_build_editable(settings) + ([] if has_compiler() else [ZIG])


def build_wheel(
    folder: str, settings: dict[str, Any] | None = None, metadata: str | None = None
) -> str:
    """Build a wheel."""
    with compiler():
        return core.build_wheel(folder, settings, metadata)


def build_editable(
    folder: str, settings: dict[str, Any] | None = None, metadata: str | None = None
) -> str:
    """Build the kernels, and a wheel that points to the sources in Python."""
    with compiler():
        return core.build_editable(folder, settings, metadata)


@contextmanager
def compiler() -> Iterator[None]:
    """Let CMake find clang in the package ziglang, if there is no other compiler."""
    if has_compiler():
        yield
        return
    before = dict(os.environ)
    tools = {name: script(name) for name in ("c++", "ar", "ranlib")}
    own = shlex.join([f"-DCMAKE_AR={tools['ar']}", f"-DCMAKE_RANLIB={tools['ranlib']}"])
    os.environ["CXX"] = tools["c++"]
    os.environ["CMAKE_ARGS"] = f"{before.get('CMAKE_ARGS', '')} {own}".strip()
    for cache in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):  # the home may be read-only
        os.environ.setdefault(cache, str((SCRIPTS / "cache").absolute()))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def script(name: str) -> str:
    """Return the path of a script that calls a tool of ziglang."""
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    path = (SCRIPTS / f"zig-{name}").absolute()
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {name} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
