import pytest


@pytest.fixture(scope="session")
def cluster():
    """A client of two worker processes on this machine, which is nobody's default scheduler."""
    distributed = pytest.importorskip("distributed")
    from dask import config

    patient = {f"distributed.comm.timeouts.{name}": "120s" for name in ("connect", "tcp")}
    with (
        config.set(patient),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
        ) as workers,
        distributed.Client(workers, set_as_default=False, timeout="120s") as client,
    ):
        yield client
