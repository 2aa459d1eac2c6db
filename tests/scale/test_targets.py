"""Many targets as Dask arrays: the answers are those in memory, bit for bit."""

import os
import signal
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_info, threadpool_limits

from conepursuit import (
    GreedyCP,
    Huber,
    LeastSquares,
    Logistic,
    Poisson,
    Status,
    Unmixer,
    certify_nnls,
    minimize,
    nnfit,
    nnfit_path,
    nnls,
    nnls_path,
)
from conepursuit.least_squares.many import ManyTargets
from conepursuit.linear.blas import ONE_BLAS_THREAD
from conepursuit.unmixing import kinds

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
M, N = 20, 23
FEW, MANY, LARGE = RNG.random((M, 5)), RNG.random((M, 30)), RNG.random((M, 2100))
B = RNG.random((M, N))
COUNTS = RNG.poisson(4 * B).astype(float)
OWN, ROWS, MASK = RNG.random((M, N)), RNG.random(M), RNG.random((M, N)) < 0.2
MASK[:, 0] = True  # a target of which no entry counts, in a block of its own
START = RNG.random((30, N))
SCENE = RNG.dirichlet(np.ones(5), (4, 7)) @ FEW.T + 0.01 * RNG.random((4, 7, M))
SCENE[1, 2] = np.nan
LINE = {"chunks": (7, (1, 19, 3))}  # two chunks along the entries; single targets are special
IMAGE = {"chunks": (3, 3, 8)}
NNLS = ("x", "rnorm", "dual", "gap", "proven", "status", "n_iter", "support")
FIT = ("x", "value", *NNLS[2:])
AUDIT = ("violation", "complementarity", "gap", "method", "proven")
UNMIXED = ("abundances", "residual", "gap", "proven")


def lazy(array, chunks):
    return da.from_array(array, chunks=chunks["chunks"])


def same(array, chunks):
    return array


CALLS = {
    "few atoms": (NNLS, lambda of: nnls(FEW, of(B, LINE))),
    "atoms": (NNLS, lambda of: nnls(MANY, of(B, LINE))),
    "a large dictionary": (NNLS, lambda of: nnls(LARGE, of(B[:, :4], {"chunks": (M, 2)}))),
    "weights of rows": (NNLS, lambda of: nnls(FEW, of(B, LINE), weights=ROWS)),
    "weights of entries": (NNLS, lambda of: nnls(FEW, of(B, LINE), weights=of(OWN, LINE))),
    "a sum": ((*NNLS, "sum_multiplier"), lambda of: nnls(FEW, of(B, LINE), sum_to=1.0)),
    "a bound on the sum": (NNLS, lambda of: nnls(MANY, of(B, LINE), sum_at_most=0.5)),
    "few weights": (NNLS, lambda of: nnls(MANY, of(B, LINE), max_atoms=2)),
    "few steps": (NNLS, lambda of: nnls(MANY, of(B, LINE), max_iter=2)),
    "a start": (NNLS, lambda of: nnls(MANY, of(B, LINE), weights=OWN, start=of(START, LINE))),
    "float32": (NNLS, lambda of: nnls(FEW, of(B.astype(np.float32), LINE))),
    "integers": (NNLS, lambda of: nnls(FEW, of((100 * B).astype(int), LINE))),
    "poisson": (FIT, lambda of: nnfit(Poisson(of(COUNTS, LINE)), MANY, start=START)),
    "poisson, mask": (FIT, lambda of: nnfit(Poisson(of(COUNTS, LINE), mask=of(MASK, LINE)), FEW)),
    "huber": (FIT, lambda of: nnfit(Huber(of(B, LINE), 0.1, weights=ROWS[:, None]), FEW)),
    "logistic": (FIT, lambda of: nnfit(Logistic(of(B > 0.5, LINE)), FEW, penalty=0.1)),
    "squares": (FIT, lambda of: nnfit(LeastSquares(of(B, LINE), weights=OWN), FEW)),
    "one by one": (
        FIT, lambda of: nnfit(Poisson(of(COUNTS[:, :3], {"chunks": (M, 1)})), LARGE[:, :520])
    ),
    "an audit": (
        AUDIT, lambda of: certify_nnls(MANY, of(B, LINE), nnls(MANY, of(B, LINE)), weights=ROWS)
    ),
    "an audit of others": (AUDIT, lambda of: certify_nnls(MANY, of(B, LINE), START, weights=OWN)),
    "unmixed": (UNMIXED, lambda of: Unmixer(endmembers=FEW.T).fit(SCENE).unmix(of(SCENE, IMAGE))),
    "unmixed, sum": (
        UNMIXED, lambda of: Unmixer(4, sum_to_one=True).fit(SCENE).unmix(of(SCENE, IMAGE))
    ),
    "unmixed, weights": (
        UNMIXED,
        lambda of: Unmixer(4, band_weights=ROWS, bad_bands=[3]).fit(SCENE).unmix(of(SCENE, IMAGE)),
    ),
    "unmixed, huber": (
        UNMIXED, lambda of: Unmixer(4, loss="huber").fit(SCENE).unmix(of(SCENE, IMAGE))
    ),
}  # fmt: skip


def fields(make, of):
    """Return the fields of all calls, or of some, by the name of the call and the field."""
    return {
        (call, name): getattr(answer, name)
        for call, (names, function) in make.items()
        for answer in [function(of)]
        for name in names
    }


@pytest.fixture(scope="module")
def expected():
    return fields(CALLS, same)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "cluster"])
def test_every_field_is_that_in_memory(scheduler, expected, request):
    if scheduler == "cluster":
        scheduler = request.getfixturevalue("cluster")
    (found,) = dask.compute(fields(CALLS, lazy), scheduler=scheduler)
    for key, known in expected.items():
        np.testing.assert_array_equal(found[key], known, err_msg=str(key), strict=True)


def test_fields_say_what_they_will_be(expected):
    for (call, name), array in fields(CALLS, lazy).items():
        assert isinstance(array, da.Array), (call, name)
        known = expected[call, name]
        assert (array.shape, array.dtype) == (known.shape, known.dtype), (call, name)
        if call == "few atoms":
            assert array.chunks[-1] == (1, 19, 3)
            assert array.numblocks[:-1] in ((), (1,))


@settings(max_examples=10)
@given(data=st.data())
def test_no_chunks_change_a_bit(data):
    def cuts(length):
        ends = data.draw(st.sets(st.integers(1, length - 1), max_size=6))
        return tuple(np.diff([0, *sorted(ends), length]).tolist())

    chunks = {"chunks": (cuts(M), cuts(N))}
    turned = data.draw(st.booleans())
    for names, fit in (
        (NNLS, lambda b: nnls(FEW, b)),
        (FIT, lambda b: nnfit(Poisson(b), FEW)),
    ):
        known = fit(B)
        # Blocks of a transposed array lie in memory the other way.
        given = lazy(np.ascontiguousarray(B.T), {"chunks": chunks["chunks"][::-1]}).T
        (found,) = dask.compute(vars(fit(given if turned else lazy(B, chunks))), scheduler="sync")
        for name in names[:-1]:
            np.testing.assert_array_equal(found[name], getattr(known, name), err_msg=name)


def test_each_block_is_fitted_once(monkeypatch):
    sizes, known = [], ManyTargets.fit

    def counted(self, targets, *args, **options):
        sizes.append(targets.shape[1])
        return known(self, targets, *args, **options)

    monkeypatch.setattr(ManyTargets, "fit", counted)
    fit = nnls(FEW, da.from_array(B, chunks=(M, 10)))
    assert not sizes
    assert repr(fit) == "NNLSResult(23 targets, not computed yet)"
    fit.gap.compute(scheduler="sync")
    assert sorted(sizes) == [3, 10, 10]
    dask.compute(fit.x, fit.rnorm, fit.status, fit.support, scheduler="sync")
    assert sorted(sizes[3:]) == [3, 10, 10]


def test_what_targets_share_is_computed_once(monkeypatch):
    made, known = [], ManyTargets.kernel_for

    def counted(self, matrix):
        made.append(matrix.shape)
        return known(self, matrix)

    monkeypatch.setattr(ManyTargets, "kernel_for", counted)
    nnls(MANY, da.from_array(B, chunks=(M, 2))).x.compute(scheduler="sync")
    assert made == [MANY.shape]


def test_statuses_are_compared_lazily():
    fit = nnls(FEW, da.from_array(B, chunks=(M, 10)))
    assert bool((fit.status == Status.STATIONARY).all().compute())


def test_labels_are_kept():
    xarray = pytest.importorskip("xarray")
    b = xarray.DataArray(
        da.from_array(B, chunks=(M, 10)), dims=("band", "pixel"), attrs={"sensor": "A"},
        coords={"band": np.arange(M), "pixel": np.arange(N) + 100},
    )  # fmt: skip
    fits = {"nnls": nnls(FEW, b), "nnfit": nnfit(Huber(b), FEW)}
    fits["certify"] = certify_nnls(FEW, b, fits["nnls"])
    for call, fit in fits.items():
        gap = fit.gap
        assert gap.dims == ("pixel",), call
        assert gap.attrs == {"sensor": "A"}
        assert list(gap.coords) == ["pixel"]
        assert isinstance(gap.data, da.Array)
    assert fits["nnls"].x.dims == fits["nnfit"].x.dims == ("atom", "pixel")
    np.testing.assert_array_equal(fits["nnls"].x.sel(pixel=105), nnls(FEW, B).x[:, 5])

    scene = xarray.DataArray(
        np.ascontiguousarray(np.moveaxis(SCENE, 2, 0)), dims=("band", "y", "x"),
        coords={"y": np.arange(4.0), "x": np.arange(7.0)}, attrs={"sensor": "A"},
    )  # fmt: skip
    model = Unmixer(endmembers=FEW.T).fit(scene.chunk({"band": 5, "y": 1, "x": 3}))
    known = Unmixer(endmembers=FEW.T).fit(scene.transpose("y", "x", "band").copy(data=SCENE))
    assert isinstance(model.gap_.data, da.Array)
    for name in ("abundances_", "residual_", "gap_", "proven_"):
        xarray.testing.assert_identical(getattr(model, name).compute(), getattr(known, name))


def test_blocks_may_be_empty():
    empty, rows = {"chunks": (M, (0, 10, 0, 13))}, {"chunks": ((0, 4), 7, M)}
    fits = {
        "nnls": (NNLS, lambda of: nnls(FEW, of(B, empty), weights=OWN)),
        "nnfit": (FIT, lambda of: nnfit(Poisson(of(COUNTS, empty)), FEW)),
        "unmixed": (
            UNMIXED,
            lambda of: Unmixer(endmembers=FEW.T).fit(SCENE).unmix(of(SCENE, rows)),
        ),
    }  # fmt: skip
    (found,) = dask.compute(fields(fits, lazy), scheduler="sync")
    for key, known in fields(fits, same).items():
        np.testing.assert_array_equal(found[key], known, err_msg=str(key), strict=True)
    assert nnls(FEW, da.zeros((M, 0))).x.compute(scheduler="sync").shape == (5, 0)


def test_endmembers_are_found_in_scenes_that_fit_into_memory(monkeypatch):
    scene = da.from_array(SCENE, chunks=(2, 7, M))
    np.testing.assert_array_equal(Unmixer(3).fit(scene).indices_, Unmixer(3).fit(SCENE).indices_)
    monkeypatch.setattr(kinds, "SEARCHED", SCENE.nbytes - 1)
    with pytest.raises(ValueError, match="Call find_endmembers with a part"):
        Unmixer(3).fit(scene)
    assert Unmixer(endmembers=FEW.T).fit(scene).gap_.shape == (4, 7)


def test_bad_input_is_refused_at_once():
    b = da.from_array(B, chunks=(M, 10))
    unknown = b[:, da.from_array(B[0] > 0.5, chunks=10)]
    wrong = {
        "compute_chunk_sizes": lambda: nnls(FEW, unknown),
        "real numbers; got a Dask array of dtype object": lambda: nnls(FEW, b.astype(object)),
        "one entry per row of A": lambda: nnls(FEW, b[1:]),
        "start must have a column for each": lambda: nnls(FEW, b, start=START[:, :3]),
        "x must have a column for each": lambda: certify_nnls(FEW, b, START[:, :3]),
        "weights must have the shape": lambda: Poisson(b, weights=ROWS),
        "mask must hold booleans": lambda: Poisson(b, mask=OWN),
        "delta must be positive": lambda: Huber(b, -1.0),
        r"Use y.compute\(\)": lambda: Poisson(b[:, 0]),
        "must be an Objective": lambda: minimize(Poisson(b), None, None),
        "unknown size": lambda: Unmixer(endmembers=FEW.T).fit(unknown.T),
    }
    for message, call in wrong.items():
        with pytest.raises(ValueError, match=message):
            call()
    single = nnls(FEW, b[:, 0])  # one target is small
    np.testing.assert_array_equal(single.x, nnls(FEW, B[:, 0]).x)


def test_errors_in_a_block_say_where():
    wrong = B.copy()
    wrong[3, 21] = np.nan
    b = da.from_array(wrong, chunks=(M, 10))
    for fit in (nnls(FEW, b), nnfit(Poisson(b), FEW)):
        message = r"in the block \[0:20, 20:23\]: .* must be finite.* NaN or infinity is 21 of all"
        with pytest.raises(ValueError, match=message):
            fit.x.compute(scheduler="threads")
        np.testing.assert_array_equal(fit.proven[:20].compute(scheduler="sync"), True)
    weights = da.from_array(np.where(np.isnan(wrong), 0.0, 1.0), chunks=(M, 10))
    assert bool(nnls(FEW, b, weights=weights).proven.all().compute(scheduler="sync"))


def test_what_takes_no_targets_in_blocks_says_so():
    b = da.from_array(B, chunks=(M, 10))
    sparse = b.map_blocks(csr_matrix)
    wrong = {
        "nnls_path takes no targets in a Dask array": lambda: nnls_path(FEW, b, 3),
        "nnfit_path takes no data in a Dask array": lambda: nnfit_path(Poisson(b), FEW, 3),
        "GreedyCP takes no Dask array": lambda: GreedyCP(2).fit(da.ones((4, 4, 4))),
        "dask.diagnostics.ProgressBar": lambda: nnls(FEW, b, callback=print),
        "b is sparse, and an array is needed": lambda: nnls(FEW, sparse).x.compute(),
    }
    for message, call in wrong.items():
        with pytest.raises(ValueError, match=message):
            call()


def test_chunks_that_make_large_blocks_are_warned_of():
    tall = da.zeros((1000, 100_000), chunks=(500, 50_000))
    with pytest.warns(UserWarning, match=r"2 chunks .* 381.47 MiB.*rechunk\(\(-1, 'auto'\)\)"):
        fit = nnls(np.ones((1000, 2)), tall)
    assert fit.x.chunks == ((2,), (50_000, 50_000))


def test_the_blas_has_one_thread_while_any_block_is_fitted():
    def counts():
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = counts()
        with ONE_BLAS_THREAD:
            with ONE_BLAS_THREAD:
                assert set(counts()) == {1}
            assert set(counts()) == {1}
        assert counts() == before  # two threads, unless the environment allows one only


def behind(block, gate):
    """Return a block when a file exists, or after five minutes."""
    deadline = time.monotonic() + 300
    while not gate.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return block


def test_a_worker_that_is_killed_changes_nothing(cluster, tmp_path):
    victim = next(iter(cluster.run(os.getpid).values()))
    gate = tmp_path / "open"
    waiting = da.from_array(B, chunks=(M, 1)).map_blocks(behind, gate, meta=np.empty((0, 0)))
    running = cluster.compute(nnls(FEW, waiting).x)
    time.sleep(0.3)  # both workers have begun, or will soon
    os.kill(victim, signal.SIGKILL)
    gate.touch()
    np.testing.assert_array_equal(running.result(timeout=300), nnls(FEW, B).x)
    cluster.wait_for_workers(2, timeout=300)


def slowly(block):
    time.sleep(0.1)
    return block


def test_what_was_stored_before_a_cluster_closed_stays():
    distributed = pytest.importorskip("distributed")
    stored, known = np.full((5, N), np.nan), nnls(FEW, B).x
    slow = da.from_array(B, chunks=(M, 1)).map_blocks(slowly, meta=np.empty((0, 0)))
    local = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with (
        distributed.LocalCluster(**local, dashboard_address=":0") as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        running = client.compute(da.store(nnls(FEW, slow).x, stored, compute=False))
        deadline = time.monotonic() + 300
        while np.isnan(stored).all() and time.monotonic() < deadline:
            time.sleep(0.01)
        workers.close()
        with pytest.raises(distributed.client.FutureCancelledError):
            running.result(timeout=300)
    done = ~np.isnan(stored[0])
    assert 0 < done.sum() < N
    np.testing.assert_array_equal(stored[:, done], known[:, done])
