"""Factorisations of Dask arrays: the steps are those in memory, pass by pass."""

import gc
import os
import signal
import subprocess
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from conepursuit import Checkpoint, GreedyNMF, nnls
from conepursuit.factorization import lazy_rows, lazy_squared
from conepursuit.factorization.divergence import DivergenceLoss
from conepursuit.factorization.greedy import factorize
from conepursuit.factorization.lazy_data import LazyFactorData
from conepursuit.factorization.losses import NO_PENALTIES, Penalty
from conepursuit.factorization.squared import SquaredLoss, WeightedSquaredLoss

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
M, N, K = 60, 40, 5
X = (RNG.random((M, K)) * (RNG.random((M, K)) < 0.5)) @ RNG.random((K, N))
X += 0.05 * RNG.random((M, N))
GAPS = np.where(RNG.random((M, N)) < 0.1, np.nan, X)
GAPS[20:23] = np.nan  # rows of which nothing is known
COUNTS = np.where(RNG.random((M, N)) < 0.2, X, 0.0)
COUNTS[30] = 0.0
SINGLE = X.astype(np.float32)
BOTH = Penalty(0.05, 0.1), Penalty(0.02, 0.03)
CHUNKS = (1, 16, 0, 29, 14)


def lazy(array, chunks=CHUNKS, columns=N):
    return da.from_array(array, chunks=(chunks, columns))


def stored(array):
    """Return an array of Dask whose blocks are sparse, but for one, which is dense."""

    def sparser(block):
        return block if len(block) == 16 else sparse.csc_matrix(block)

    return lazy(array).map_blocks(sparser, meta=np.empty((0, 0)))


def as_in_blocks(kind):
    """Return a loss in memory that extrapolates the second factor alone, as blocks do."""

    class Loss(kind):
        def _swept(self, ahead, last, momentum):
            moved = ahead[0].copy(), ahead[1].copy()
            for axis in (0, 1):
                value = self.update(moved, axis)
            return moved, moved, self.value(moved) if value is None else value

    return Loss


def plain(penalties=NO_PENALTIES):
    return as_in_blocks(SquaredLoss)(X, penalties)


def weighted(penalties=NO_PENALTIES):
    counts = np.where(np.isnan(GAPS), 0.0, 1.0)
    return as_in_blocks(WeightedSquaredLoss)(np.nan_to_num(GAPS), counts, penalties)


LOSSES = {
    "dense": (plain, lazy(X), NO_PENALTIES),
    "penalties": (lambda: plain(BOTH), lazy(X), BOTH),
    "missing": (weighted, lazy(GAPS), NO_PENALTIES),
    "missing, penalties": (lambda: weighted(BOTH), lazy(GAPS), BOTH),
    "sparse": (
        lambda: as_in_blocks(SquaredLoss)(sparse.csr_array(COUNTS)), stored(COUNTS), NO_PENALTIES
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("algorithm", ["fcmp", "pwmp"])
@pytest.mark.parametrize("name", LOSSES)
def test_steps_are_those_in_memory(name, algorithm):
    make, blocks, penalties = LOSSES[name]
    options = {"growth": 0.25, "max_iter": 12, "tol": 1e-5, "algorithm": algorithm}
    known = factorize(make(), 6, **options)
    data = LazyFactorData.of(blocks, False, scale=True)
    found = factorize(data.loss(penalties), 6, **options)
    np.testing.assert_allclose(found.path, known.path, rtol=1e-8)
    np.testing.assert_allclose(found.values, known.values, rtol=1e-8)
    np.testing.assert_allclose(found.accuracy, known.accuracy, rtol=1e-6)
    np.testing.assert_allclose(found.fit, known.fit, rtol=1e-8)
    np.testing.assert_allclose(found.factors[1], known.factors[1], atol=1e-6)
    first = found.factors[0]
    (parts,) = dask.compute([np.vstack(dask.compute(*own)) for own in first.parts])
    np.testing.assert_allclose(first.scale[:, None] * np.hstack(parts), known.factors[0], atol=1e-6)


@pytest.mark.parametrize("kind", ["dense", "missing", "sparse"])
def test_divergences_step_as_in_memory(kind):
    given = {"dense": X, "missing": GAPS, "sparse": sparse.csr_array(COUNTS)}[kind]
    blocks = {"dense": lazy(X), "missing": lazy(GAPS), "sparse": stored(COUNTS)}[kind]
    gaps = np.isnan(GAPS)
    in_memory = {
        "dense": lambda: DivergenceLoss(X),
        "missing": lambda: DivergenceLoss(np.nan_to_num(GAPS), np.where(gaps, 0.0, 1.0)),
        "sparse": lambda: DivergenceLoss(given),
    }[kind]()
    data = LazyFactorData.of(blocks, True, scale=True)
    loss, G = data.loss(), RNG.random((3, N)) + 0.1
    F = np.full((3, M), 0.2)
    first = lazy_rows.RowFactor.of(data.rows.keep(lambda rows: np.full((3, rows), 0.1)), 3, M)
    start = np.full((3, 1), 2.0) * first, G
    known, values, _ = in_memory.corrected((F, G), 15, 0.0)
    found, same, _ = loss.corrected(start, 15, 0.0)
    np.testing.assert_allclose(same, values, rtol=1e-9)
    np.testing.assert_allclose(found[1], known[1], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(loss.value(loss.first()), in_memory.value(in_memory.first()))


@pytest.mark.parametrize("blocks", [lazy, stored])
def test_entries_next_to_zero_grow_where_they_should(blocks):
    rng = np.random.default_rng(3)
    F, G = rng.random((3, M)), rng.random((3, N)) + 0.5
    data = LazyFactorData.of(blocks(F.T @ G), True, scale=True)
    start = G.copy()
    start[0, :7], start[1, 4:9] = 0.0, 1e-30
    parts = [F[:, first:last] for first, last in data.rows.spans]
    first = lazy_rows.RowFactor.of(parts, 3, M)
    (_, found), values, _ = data.loss().corrected((first, start), 6, 0.0)
    assert np.all(np.diff(values) <= 0)
    assert found.min() > 0.01


FITS = {
    "squares": (X, lazy(X), {}),
    "few columns": (X[:, :9], lazy(X[:, :9], columns=9), {}),
    "columns in chunks": (X, da.from_array(X, chunks=(25, 12)), {}),
    "float32": (SINGLE.astype(float), lazy(SINGLE), {}),
    "integers": (np.round(100 * X), lazy(np.round(100 * X).astype(int)), {}),
    "Fortran order": (X, lazy(np.asfortranarray(X)), {}),
    "penalties": (X, lazy(X), {"alpha_W": 1e-3, "alpha_H": 1e-3, "l1_ratio": 0.5}),
    "one at a time": (X, lazy(X), {"path": True}),
    "without corrections": (X, lazy(X), {"correction": None}),
    "a random start": (X, lazy(X), {"random_state": 0}),
    "large numbers": (1e200 * X, lazy(1e200 * X), {}),
    "small numbers": (1e-200 * X, lazy(1e-200 * X), {}),
    "missing": (GAPS, lazy(GAPS), {}),
    "sparse": (sparse.csr_array(COUNTS), stored(COUNTS), {}),
    "divergence": (X, lazy(X), {"loss": "kullback_leibler"}),
    "divergence, missing": (GAPS, lazy(GAPS), {"loss": "kullback_leibler"}),
    "divergence, sparse": (
        sparse.csr_array(COUNTS), stored(COUNTS), {"loss": "kullback_leibler"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_fits_are_as_good_as_in_memory(name):
    given, blocks, options = FITS[name]
    options = {"tol": 1e-4, "max_iter": 25, **options}
    known = GreedyNMF(4, **options).fit(given)
    model = GreedyNMF(4, **options)
    W = model.fit_transform(blocks)
    assert isinstance(W, da.Array)
    assert (W.shape, W.dtype) == ((M, 4), np.float64)
    np.testing.assert_allclose(model.reconstruction_err_, known.reconstruction_err_, rtol=0.02)
    expected = model.transform(given)  # in memory, for the same H
    scale = expected.max()
    np.testing.assert_allclose(W.compute() / scale, expected / scale, atol=1e-6)
    if options.get("path"):
        assert model.at_rank(2).components_.shape == (2, N)
        assert model.at_rank(2).transform(blocks).shape == (M, 2)
    again = model.inverse_transform(W)
    assert isinstance(again, da.Array)
    np.testing.assert_allclose(again.compute() / scale, expected @ model.components_ / scale)
    with pytest.raises(ValueError, match="a column for each of the 4 components"):
        model.inverse_transform(W[:, :2])


@pytest.mark.parametrize("name", ["squares", "missing", "divergence, sparse"])
def test_every_scheduler_has_the_same_answer(name, cluster):
    _, blocks, options = FITS[name]
    model = GreedyNMF(2, max_iter=3, **options)
    known = model.fit(blocks).components_
    with dask.config.set(scheduler="threads"):
        np.testing.assert_array_equal(model.fit(blocks).components_, known)
    with cluster.as_current(), dask.config.set(scheduler=None):
        np.testing.assert_array_equal(model.fit(blocks).components_, known)
        W = model.transform(blocks).compute()
    np.testing.assert_array_equal(W, model.transform(blocks).compute(scheduler="threads"))


@settings(max_examples=10)
@given(ends=st.sets(st.integers(1, M - 1), max_size=6), name=st.sampled_from(["dense", "missing"]))
def test_no_chunks_change_more_than_rounding(ends, name):
    given = {"dense": X, "missing": GAPS}[name]
    chunks = tuple(np.diff([0, *sorted(ends), M]).tolist())
    whole = GreedyNMF(3, max_iter=2).fit(lazy(given, (M,)))
    cut = GreedyNMF(3, max_iter=2).fit(lazy(given, chunks))
    np.testing.assert_allclose(cut.components_, whole.components_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(cut.rank_path_, whole.rank_path_, rtol=1e-9)


def test_a_pass_reads_each_block_once():
    reads = []

    def read(block):
        if block.size:
            reads.append(len(block))
        return block

    blocks = lazy(X, (20, 40)).map_blocks(read, meta=np.empty((0, 0)))
    counts = {}
    for sweeps in (4, 7):
        reads.clear()
        model = GreedyNMF(3, max_iter=sweeps, tol=0.0).fit(blocks)
        counts[sweeps] = model.n_passes_
        assert model.n_iter_ == sweeps
        assert sorted(reads) == model.n_passes_ * [20] + model.n_passes_ * [40]
    assert counts[7] - counts[4] == 3
    assert not hasattr(model.fit(X), "n_passes_")


def test_graphs_do_not_grow():
    class Sizes(dask.callbacks.Callback):
        def __init__(self):
            super().__init__(start=lambda graph: self.sizes.append(len(graph)))
            self.sizes = []

    for options in ({}, {"loss": "kullback_leibler"}):
        with Sizes() as seen:
            GreedyNMF(3, max_iter=30, tol=0.0, **options).fit(lazy(X))
        assert max(seen.sizes[-20:]) <= max(seen.sizes[:20])


def test_factors_of_float32_data_are_stored_as_float32():
    loss = LazyFactorData.of(lazy(SINGLE), False, scale=True).loss()
    fit = factorize(loss, 3, max_iter=2)
    assert {part.compute().dtype for (part,) in fit.factors[0].parts} == {np.dtype(np.float32)}


def test_two_copies_of_the_factor_of_rows_are_held(monkeypatch):
    made, held, states, known = [], [], [], lazy_squared._swept_block

    def noted(*args, **options):
        part, sums = known(*args, **options)
        made.append(weakref.ref(part))
        held.append(sum(each() is not None for each in made))
        return part, sums

    monkeypatch.setattr(lazy_squared, "_swept_block", noted)
    model = GreedyNMF(3, max_iter=30, tol=0.0).fit(lazy(X), callback=states.append)
    assert model.n_iter_ > states[-1].sweep  # some sweeps were undone
    assert max(held) == 2 * len(CHUNKS)


def test_nothing_is_left_on_a_cluster(cluster):
    with cluster.as_current(), dask.config.set(scheduler=None):
        GreedyNMF(2, max_iter=3).fit(lazy(X))
    gc.collect()
    for _ in range(600):
        if not (left := cluster.who_has()):
            break
        cluster.sync(_pause)
    assert not left


async def _pause():
    import asyncio

    await asyncio.sleep(0.05)


def test_what_cannot_be_fitted_better_is_zero():
    line = np.outer(np.arange(M) % 7, np.arange(N) % 5).astype(float)
    model = GreedyNMF(4).fit(lazy(line))
    assert model.reconstruction_err_ < 1e-6 * np.linalg.norm(line)
    model = GreedyNMF(2).fit(lazy(np.zeros((M, N))))
    assert not model.components_.any()
    costly = GreedyNMF(3, alpha_W=1e3, alpha_H=1e3, l1_ratio=1.0).fit(lazy(X))
    assert not costly.components_.any()
    np.testing.assert_allclose(costly.reconstruction_err_, np.linalg.norm(X))


def test_factors_are_restored_from_what_was_noted():
    loss = LazyFactorData.of(lazy(X), False, scale=True).loss(BOTH)
    factors = loss.balanced(factorize(loss, 3, max_iter=2).factors)
    before = loss.value(factors)
    assert loss.value(loss.restored(loss.noted(factors))) <= before


def test_a_factor_in_blocks_is_extrapolated_with_its_scale():
    data = LazyFactorData.of(lazy(X), True, scale=True)
    loss, numbers = data.loss(), RNG.random((2, 2, M)) + 0.1
    weights = np.array([[2.0], [3.0]])

    def factor(array):
        return lazy_rows.RowFactor.of(
            [array[:, first:last] for first, last in data.rows.spans], 2, M
        )

    found = loss._beyond(weights * factor(numbers[0]), factor(numbers[1]), 0.5)
    parts = dask.compute(*(part for (part,) in found.parts))
    known = DivergenceLoss._beyond(weights * numbers[0], numbers[1], 0.5)
    np.testing.assert_allclose(np.hstack(parts), known)


@pytest.mark.parametrize("given", [X, lazy(X)], ids=["memory", "dask"])
@pytest.mark.parametrize("loss", ["squared_error", "kullback_leibler"])
def test_a_fit_goes_on_from_what_a_callback_saw(given, loss):
    states = []
    model = GreedyNMF(5, loss=loss, max_iter=8, tol=0.0).fit(given, callback=states.append)
    last = [state for state in states if state.rank == 5]
    assert [state.sweep for state in last] == list(range(1, len(last) + 1))
    assert all(len(state.H) == state.rank for state in states)
    assert np.all(np.diff([state.value for state in last]) <= 0)
    np.testing.assert_allclose(last[-1].value, 0.5 * model.reconstruction_err_**2, rtol=1e-4)
    if loss == "squared_error":
        below = [state for state in states if state.rank < 5]
        assert [(s.rank, s.sweep) for s in below] == [(1, 0), (2, 0), (3, 0), (4, 0)]
        grown = GreedyNMF(5, max_iter=8).fit(given, start=below[2].H)
        np.testing.assert_allclose(grown.reconstruction_err_, model.reconstruction_err_, rtol=0.05)
    stopped = GreedyNMF(5, loss=loss).fit(given, callback=lambda state: state.sweep == 3)
    assert 3 <= stopped.n_iter_ <= 5
    more = []
    onward = GreedyNMF(5, loss=loss, max_iter=3)
    onward.fit(given, start=last[2].H, callback=more.append)
    assert more[0].value <= last[2].value
    assert onward.reconstruction_err_ <= np.sqrt(2 * last[2].value)


def test_a_callback_stops_penalised_fits():
    model = GreedyNMF(3, alpha_W=1e-3, max_iter=50, tol=0.0)
    assert model.fit(X, callback=lambda state: state.sweep == 12).n_iter_ <= 16
    assert len(model.fit(X, callback=lambda state: state.rank == 2).components_) == 2


def test_bad_starts_are_refused():
    for start, options, message in (
        (np.ones((4, N)), {}, "1 to 3 rows and 40 columns"),
        (np.ones((2, N + 1)), {}, "1 to 3 rows"),
        (-np.ones((2, N)), {}, "must not be negative"),
        (np.full((2, N), np.nan), {}, "start must be finite"),
        (np.ones((2, N)), {"path": True}, "path=False"),
        (np.ones((2, N)), {"n_components": "auto"}, "n_components as a number"),
    ):
        with pytest.raises(ValueError, match=message):
            GreedyNMF(**{"n_components": 3, **options}).fit(X, start=start)
    with pytest.raises(ValueError, match="all 3 components"):
        GreedyNMF(3, loss="kullback_leibler").fit(lazy(X), start=np.ones((2, N)))


def test_bad_input_is_refused_at_once():
    blocks = lazy(X)
    unknown = blocks[da.from_array(X[:, 0] > 0.5, chunks=(CHUNKS,))]
    divergence = {"loss": "kullback_leibler"}
    for array, options, message in (
        (unknown, {}, "X.compute_chunk_sizes"),
        (blocks.astype(object), {}, "dtype object"),
        (blocks.astype(complex), {}, "real numbers"),
        (blocks[:, 0], {}, "must be a matrix"),
        (blocks[:0], {}, "at least one row"),
        (blocks, {"n_components": "auto"}, r"GreedyNMF\('auto'\).fit\(X\[:10_000\].compute"),
        (blocks, {"n_components": "sources"}, "needs X in memory"),
        (blocks, {"oracle_rounds": 2}, "oracle_rounds=0"),
        (blocks, {"correction": "gcd"}, "not for a Dask array"),
        (blocks, {**divergence, "path": True}, "path=True"),
        (blocks, {**divergence, "alpha_W": 1.0}, "alpha_W=1.0"),
        (blocks, {**divergence, "correction": None}, "correction=None"),
    ):
        with pytest.raises(ValueError, match=message):
            GreedyNMF(**{"n_components": 3, **options}).fit(array)
    for call in (GreedyNMF(3).fit, GreedyNMF(3).fit(X).transform):
        with pytest.raises(ValueError, match="Use NaN in X"):
            call(blocks, entry_weight=np.ones((M, N)))
    with pytest.raises(ValueError, match="40 features"):
        GreedyNMF(3).fit(X).transform(blocks[:, :7])


def test_errors_in_a_block_say_where():
    negative, infinite, sparse_gap = X.copy(), X.copy(), COUNTS.copy()
    negative[50, 3], infinite[2, 2], sparse_gap[59, 0] = -1.0, np.inf, np.nan
    strange = lazy(X).map_blocks(lambda block: block.tolist(), meta=np.empty((0, 0)))
    masked = lazy(X).map_blocks(np.ma.masked_array, meta=np.empty((0, 0)))
    for array, message in (
        (lazy(negative), r"in the rows 46:60, .*must not be negative; the least entry is -1\. "),
        (lazy(infinite), "in the rows 1:17, .*must not be infinite"),
        (stored(sparse_gap), "in the rows 46:60, .*sparse and holds NaN"),
        (strange, "arrays of NumPy or sparse.*got a builtins.list"),
        (masked, "masked array"),
        (lazy(np.full((M, N), np.nan)), "no entry of X counts"),
    ):
        with pytest.raises(ValueError, match=message):
            GreedyNMF(2).fit(array)
    W = GreedyNMF(2).fit(X).transform(lazy(negative))
    with pytest.raises(ValueError, match="in the rows 46:60"):
        W.compute()
    assert W[:46].compute().shape == (46, 2)


def test_chunks_of_columns_that_make_large_blocks_are_warned_of():
    wide = da.zeros((100_000, 1000), chunks=(50_000, 500))
    model = GreedyNMF(2).fit(X)
    model.n_features_in_ = 1000
    model.components_ = np.ones((2, 1000))
    with pytest.warns(UserWarning, match="put together"):
        assert model.transform(wide).chunks == ((50_000, 50_000), (2,))


def test_a_worker_that_is_killed_changes_nothing(cluster):
    model = GreedyNMF(3, max_iter=5, tol=0.0)
    known = model.fit(lazy(X)).components_
    victims = list(cluster.run(os.getpid).values())[:1]

    def kill(state):
        if state.sweep == 2 and victims:
            os.kill(victims.pop(), signal.SIGKILL)

    with cluster.as_current(), dask.config.set(scheduler=None):
        np.testing.assert_array_equal(model.fit(lazy(X), callback=kill).components_, known)
    assert not victims
    cluster.wait_for_workers(2, timeout=120)


def test_a_closed_cluster_is_an_error_and_the_last_state_stays():
    distributed = pytest.importorskip("distributed")
    states, local = [], {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with (
        distributed.LocalCluster(**local, dashboard_address=":0") as workers,
        distributed.Client(workers, set_as_default=False) as client,
        client.as_current(),
        dask.config.set(scheduler=None),
    ):

        def close(state):
            states.append(state)
            if state.sweep == 2:
                workers.close()

        with pytest.raises(
            RuntimeError, match=r"the cluster was lost in pass \d+ over X: .*start=H"
        ):
            GreedyNMF(3, tol=0.0).fit(lazy(X), callback=close)
    model = GreedyNMF(3).fit(lazy(X), start=states[-1].H)
    assert model.reconstruction_err_ <= np.sqrt(2 * states[-1].value)


PEAK = """
import re, sys
from pathlib import Path
import dask, dask.array as da, numpy as np
from conepursuit import GreedyNMF

def held():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def block(block_info=None):
    first = block_info[None]["array-location"][0][0]
    rows = np.arange(first, first + 4000, dtype=np.float32)[:, None] % 97
    return rows * np.arange(256, dtype=np.float32) + rows % 13

X = da.map_blocks(block, chunks=(20 * (4000,), 256), dtype=np.float32)
dask.config.set(scheduler="synchronous")
GreedyNMF(1, max_iter=1, tol=0.0).fit(X[:4000])
before = held()
GreedyNMF(1, max_iter=1, tol=0.0).fit(X)
print((held() - before) / (4000 * 256 * 4))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read on Linux")
def test_memory_is_that_of_a_few_blocks():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PEAK], check=True, capture_output=True, text=True
    )
    assert float(done.stdout) < 3  # of 20


def test_dask_is_imported_for_its_arrays_alone():
    code = (
        "import sys, numpy as np; from conepursuit import GreedyNMF; "
        "GreedyNMF(1).fit(np.eye(3)).transform(np.eye(3)); print('dask' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


KILLED = """
import sys, time
import dask, dask.array as da, numpy as np
from conepursuit import Checkpoint, GreedyNMF

rng = np.random.default_rng(0)
W, H = (np.maximum(rng.standard_normal(shape), 0) for shape in ((90, 4), (4, 20)))
X = W @ H + 0.05 * rng.random((90, 20))
data = da.from_array(X, chunks=(30, 20)) if sys.argv[2] == "dask" else X
checkpoint = Checkpoint(sys.argv[1], seconds=0)

def watch(state):
    checkpoint(state)
    print(state.rank, flush=True)
    time.sleep(0.1)

with dask.config.set(scheduler="synchronous"):
    GreedyNMF(4, max_iter=500, tol=1e-9).fit(data, callback=watch)
"""


@pytest.mark.parametrize("kind", ["dask", "memory"])
def test_a_fit_that_was_killed_goes_on(kind, tmp_path):
    path = tmp_path / "fit.npz"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), kind], stdout=subprocess.PIPE, text=True
    ) as run:
        while run.stdout.readline().strip() != "4":
            pass
        run.send_signal(signal.SIGKILL)
        assert run.wait(60) == -signal.SIGKILL
    rng = np.random.default_rng(0)
    W, H = (np.maximum(rng.standard_normal(shape), 0) for shape in ((90, 4), (4, 20)))
    X = W @ H + 0.05 * rng.random((90, 20))
    data = da.from_array(X, chunks=(30, 20)) if kind == "dask" else X
    saved, model = Checkpoint.load(path), GreedyNMF(4, max_iter=500, tol=1e-9)
    with dask.config.set(scheduler="synchronous"):
        known = model.fit(data).reconstruction_err_
        again = model.fit(data, start=saved).reconstruction_err_
    assert saved.rank == 4
    assert 0.5 * known**2 * (1 + 1e-6) < saved.value  # it had more to do
    np.testing.assert_allclose(again, known, rtol=1e-4)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    path, X = tmp_path / "fit.npz", np.random.default_rng(0).random((12, 6))
    checkpoint = Checkpoint(path)
    GreedyNMF(2).fit(X, callback=checkpoint)
    with pytest.raises(ValueError, match="a checkpoint of GreedyNMF"):
        nnls(X, X[:, 0], start=Checkpoint.load(path))
    with pytest.raises(ValueError, match="start must have 1 to 2 rows and 5 columns"):
        GreedyNMF(2).fit(X[:, :5], start=Checkpoint.load(path))
