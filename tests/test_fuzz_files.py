"""A short run of the fuzz of files: see `fuzz/files.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz" / "files.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each file is read in a process of its own")
def test_damaged_files_end_in_one_line_that_names_them(tmp_path):
    command = [sys.executable, str(FUZZ), "--each", "3", "--jobs", "1", "--out", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert ", 0 failures" in found.stdout.splitlines()[-1]
