import os

# Before NumPy is imported: the tests run side by side, and threads of the BLAS would wait for each
# other. Processes that tests start inherit it.
for library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "conepursuit", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("conepursuit")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Let tests that are skipped without data share one line of the summary for each file."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if "CONEPURSUIT_DATA" in reason:
            report.longrepr = str(item.path), None, "Skipped: CONEPURSUIT_DATA names no such data"
    return report
