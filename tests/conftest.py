import pytest
from hypothesis import HealthCheck, settings

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
