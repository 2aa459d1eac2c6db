"""Ctrl-C ends a fit of many targets long before the last of them."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from conepursuit.matrix_fits.threads import chunks, run

PATIENCE = 60
"""Seconds, a fraction of what the whole of the work would take."""

FIT = """
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it

import numpy as np
from conepursuit import Poisson, nnfit, nnls, nnls_path

rng = np.random.default_rng(0)
{data}
{small}
print("ready", flush=True)
try:
    {whole}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

MANY_LOSSES = {
    "data": "A = rng.random((2000, 512)); y = rng.poisson(9 * rng.random((2000, 4000)))",
    "small": "nnfit(Poisson(y[:9, :2]), A[:9, :2])",
    "whole": "nnfit(Poisson(y), A, n_jobs={n_jobs})",
}
MANY_PATHS = {
    "data": "A = rng.random((500, 2000)); b = rng.random((500, 20000))",
    "small": "nnls_path(A[:9, :2], b[:9, :2], 2)",
    "whole": "nnls_path(A, b, 60, n_jobs={n_jobs})",
}
MANY_TARGETS = {
    "data": "A = rng.standard_normal((3000, 2000)); b = rng.standard_normal((3000, 4000))",
    "small": "nnls(A[:30, :20], b[:30, :2])",
    "whole": "nnls(A, b, n_jobs={n_jobs})",
}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("job", [MANY_LOSSES, MANY_PATHS, MANY_TARGETS])
def test_ctrl_c_does_not_wait_for_the_batch(job, n_jobs):
    code = FIT.format(**{**job, "whole": job["whole"].format(n_jobs=n_jobs)})
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        try:
            out, _ = child.communicate(timeout=PATIENCE)
        finally:
            child.kill()
    assert out == "interrupted\n"
    assert child.returncode == 0


def test_after_an_error_no_other_part_is_begun():
    begun = []

    def task(i):
        begun.append(i)
        if i == 3:
            raise KeyboardInterrupt
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        list(run(task, range(1000), 2))
    assert len(begun) < 100


@pytest.mark.parametrize(("n_targets", "most", "n_jobs"), [(1, 5, 4), (100, 7, 1), (100, 70, 2)])
def test_chunks_cover_all_targets(n_targets, most, n_jobs):
    parts = chunks(n_targets, most, n_jobs)
    assert max(part.stop - part.start for part in parts) <= most
    assert np.concatenate([np.arange(n_targets)[part] for part in parts]).tolist() == list(
        range(n_targets)
    )
