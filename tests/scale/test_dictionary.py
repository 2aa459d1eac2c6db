"""Dictionaries as Dask arrays: the answers are those in memory, found in few passes."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

from conepursuit import (
    AMP,
    FCMP,
    MP,
    NNMP,
    OMP,
    PFW,
    PWMP,
    Checkpoint,
    Cone,
    Dictionary,
    Huber,
    Hull,
    LeastSquares,
    Poisson,
    Span,
    Status,
    Symmetric,
    Union,
    certify,
    certify_nnls,
    minimize,
    nnfit,
    nnls,
    nnls_path,
)
from conepursuit.least_squares import beyond, working_set
from conepursuit.linear import column, matvec, rmatvec
from conepursuit.linear.blocks import BlockMatrix
from exact import Problem, exceeds
from families import FAMILIES

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
M, N = 30, 200
ATOMS = RNG.random((M, N)) * RNG.choice([0.01, 1.0, 100.0], N)
ATOMS[:, 5] = 0.0
SIGNED = RNG.standard_normal((M, 45))
B = ATOMS[:, [1, 50, 120]] @ [1.0, 2.0, 3.0] + 0.1 * RNG.standard_normal(M)
COUNTS = RNG.poisson(5 * RNG.random(M)).astype(float)
ROWS = RNG.random(M)
CHUNKS = {"atoms": (M, 80), "rows": (16, N), "both": (16, 80)}


def blocks(matrix, chunks="atoms", kind=None):
    """Return a matrix as a Dask array, whose blocks may be sparse."""
    array = da.from_array(matrix, chunks=tuple(map(min, CHUNKS[chunks], matrix.shape)))
    return array if kind is None else array.map_blocks(kind)


@pytest.fixture(params=["synchronous", "threads", "cluster"])
def scheduler(request):
    """Let Dask compute by one of its schedulers."""
    if request.param == "cluster":
        with request.getfixturevalue("cluster").as_current():
            yield
    else:
        with dask.config.set(scheduler=request.param):
            yield


@pytest.fixture
def alone():
    """Let Dask compute in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("chunks", CHUNKS)
def test_nnls_is_that_in_memory(scheduler, chunks):
    for matrix, kind in ((ATOMS, None), (SIGNED, None), (ATOMS * (ATOMS > 0.5), sparse.csr_array)):
        known, D = nnls(matrix, B), blocks(matrix, chunks, kind)
        fit = nnls(D, B)
        np.testing.assert_allclose(fit.x, known.x, atol=1e-9 * known.x.max())
        np.testing.assert_allclose(fit.rnorm, known.rnorm, rtol=1e-12)
        assert (fit.proven, fit.status) == (True, Status.STATIONARY)
        assert fit.gap < 1e-11 * (B @ B)
        assert isinstance(fit.dual, da.Array)
        np.testing.assert_allclose(fit.dual.compute(), known.dual, atol=1e-10 * np.abs(B).max())
        audit, other = certify_nnls(D, B, fit), certify_nnls(matrix, B, fit.x)
        assert audit.proven
        assert audit.gap < 1e-11 * (B @ B)
        np.testing.assert_allclose(audit.complementarity, other.complementarity, atol=1e-12)


def test_nnls_with_weights_of_rows_limits_and_starts(alone):
    D = blocks(ATOMS)
    for options in ({"weights": ROWS}, {"max_atoms": 3}, {"start": nnls(ATOMS, B)}):
        known, fit = nnls(ATOMS, B, **options), nnls(D, B, **options)
        np.testing.assert_allclose(fit.x, known.x, atol=1e-9 * known.x.max())
        assert fit.status == known.status
    rough = nnls(D, B, tol=1e-2)
    assert rough.status is Status.CONVERGED
    assert rough.proven
    assert rough.gap <= 1e-2 * 0.5 * (B @ B - rough.rnorm**2)
    many = nnls(D, np.stack([B, 2 * B], axis=1))
    np.testing.assert_allclose(many.x[:, 1], 2 * nnls(ATOMS, B).x, rtol=1e-8)


@pytest.mark.parametrize("chunks", CHUNKS)
def test_paths_are_those_in_memory(scheduler, chunks):
    for options in ({}, {"forced": [7], "forbidden": [50, 120]}, {"weights": ROWS}):
        known = nnls_path(ATOMS, B, 6, **options)
        path = nnls_path(blocks(ATOMS, chunks), B, 6, **options)
        assert [each.tolist() for each in path.supports] == [
            each.tolist() for each in known.supports
        ]
        np.testing.assert_allclose(path.rnorm, known.rnorm, rtol=1e-10)


def test_forbidden_atoms_do_not_hide_others(alone, monkeypatch):
    monkeypatch.setattr(beyond.Beyond, "candidates", 2)
    steep = np.argsort(-(ATOMS.T @ B))[:150]
    known = nnls_path(ATOMS, B, 3, forbidden=steep)
    path = nnls_path(blocks(ATOMS), B, 3, forbidden=steep)
    assert path.supports[-1].tolist() == known.supports[-1].tolist()


DOMAINS = {
    "cone": Cone,
    "penalised": lambda atoms: Cone(atoms, penalty=0.3),
    "hull": lambda atoms: Hull(atoms, radius=2.0),
    "span": Span,
    "symmetric": lambda atoms: Cone(Symmetric(atoms)),
    "union": lambda atoms: Cone(Union(atoms, Dictionary(np.eye(M)))),
}
RUNS = [
    ("cone", NNMP()), ("cone", AMP()), ("cone", PWMP()), ("cone", FCMP()), ("penalised", AMP()),
    ("penalised", FCMP()), ("hull", PFW()), ("hull", FCMP()), ("span", MP()), ("span", OMP()),
    ("symmetric", PWMP()), ("union", PWMP()),
]  # fmt: skip


def runs_agree(chunks, kind=None):
    """Compare the runs of all algorithms, step by step, with those in memory."""
    for name, algorithm in RUNS:
        for objective in (LeastSquares(B), Huber(B, 0.1)):
            given = [DOMAINS[name](Dictionary(D)) for D in (ATOMS, blocks(ATOMS, chunks, kind))]
            known, run = (
                minimize(objective, each, algorithm, max_iter=12, tol=1e-6) for each in given
            )
            message = f"{name}, {algorithm}, {objective}"
            assert run.atoms.keys == known.atoms.keys, message
            assert run.status == known.status, message
            assert run.certificate.method == known.certificate.method, message
            np.testing.assert_allclose(run.value, known.value, rtol=1e-9, err_msg=message)
            np.testing.assert_allclose(run.weights, known.weights, rtol=1e-6, err_msg=message)
            np.testing.assert_allclose(
                run.certificate.gap, known.certificate.gap, rtol=1e-6, atol=1e-9, err_msg=message
            )


@pytest.mark.parametrize("chunks", CHUNKS)
def test_every_algorithm_makes_the_same_run(alone, chunks):
    runs_agree(chunks)


def test_every_algorithm_makes_the_same_run_on_sparse_blocks(alone):
    runs_agree("both", sparse.csc_array)


def test_a_run_on_other_schedulers(scheduler):
    known = minimize(Poisson(COUNTS), Cone(Dictionary(ATOMS)), FCMP())
    run = minimize(Poisson(COUNTS), Cone(Dictionary(blocks(ATOMS))), FCMP())
    np.testing.assert_allclose(run.coef, known.coef, atol=1e-8 * known.coef.max())
    again = certify(Poisson(COUNTS), Cone(Dictionary(blocks(ATOMS))), run)
    assert again.proven
    np.testing.assert_allclose(again.gap, known.certificate.gap, rtol=1e-2, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_proof_is_false(alone, name):
    """Gaps that are proved from blocks are held to exact fractions."""
    rng = np.random.default_rng(list(name.encode()))
    for _ in range(2):
        m, n = rng.integers(1, 8), rng.integers(2, 12)
        matrix, targets = FAMILIES[name](rng, m, n, 1)
        D, b = da.from_array(matrix, chunks=(rng.integers(1, m + 1), n // 2)), targets[:, 0]
        x = rng.random(n) * (rng.random(n) < 0.5)
        try:
            fit, audit = nnls(D, b), certify_nnls(D, b, x)
        except ValueError as refusal:
            if "scale the Dask array" in str(refusal):
                continue
            raise
        problem = Problem(matrix, targets)
        for point, answer in ((fit.x, fit), (x, audit)):
            if answer.proven:
                assert not exceeds(problem.excesses(point[:, None])[0], answer.gap)


def test_estimates_know_the_atoms_outside(alone):
    opposite = np.hstack([SIGNED[:, :3], -SIGNED[:, :3]])
    D, x = da.from_array(opposite, chunks=(M, 2)), np.zeros(6)
    known, audit = certify_nnls(opposite, B, x), certify_nnls(D, B, x)
    assert not known.proven
    assert not audit.proven
    np.testing.assert_allclose(audit.gap, known.gap)
    np.testing.assert_allclose(audit.violation, known.violation)


def test_a_working_set_that_is_full_lets_idle_atoms_leave(alone, monkeypatch):
    monkeypatch.setattr(beyond.Beyond, "candidates", 15)
    monkeypatch.setattr(working_set, "ROOM", 4)
    left, leave = [], working_set.WorkingSet._leave_idle

    def counted(self):
        before = len(self.chosen)
        leave(self)
        left.append(before - len(self.chosen))

    monkeypatch.setattr(working_set.WorkingSet, "_leave_idle", counted)
    rng = np.random.default_rng(0)
    D, b = rng.random((80, 3000)), rng.random(80)
    fit, known = nnls(da.from_array(D, chunks=(80, 1000)), b), nnls(D, b)
    assert sum(left) > 10
    np.testing.assert_allclose(fit.x, known.x, atol=1e-9 * known.x.max())
    assert fit.proven


def test_an_oracle_answers_as_that_in_memory_does(alone):
    rng = np.random.default_rng(0)
    for chunks in CHUNKS:
        known, atoms = Dictionary(ATOMS), Dictionary(blocks(ATOMS, chunks))
        long = ATOMS[:, 50] / np.linalg.norm(ATOMS[:, 50])
        for gradient in (rng.standard_normal(M), np.ones(M), -long, 1e-17 * long - ATOMS[:, 0]):
            one, other = known.lmo(gradient), atoms.lmo(gradient)
            assert one.keys == other.keys
            assert known.steepest(gradient).keys == atoms.steepest(gradient).keys
            for penalty in (0.0, 0.3, 7.0):
                for signed in (False, True):
                    np.testing.assert_allclose(
                        atoms.steepness(gradient, other, penalty, signed),
                        known.steepness(gradient, one, penalty, signed),
                        rtol=1e-12,
                    )
                for margin in (0.0, 1e-3):
                    assert atoms.ascends(gradient, other, penalty, margin) == known.ascends(
                        gradient, one, penalty, margin
                    )


def test_the_score_of_a_long_atom_may_be_rounding(alone):
    """The oracle takes a short atom that descends, not a long one that is orthogonal but for it."""
    long, short = 1e9 * np.array([1.0, 1.0, 0.0]), 1e-9 * np.array([0.0, 0.0, 1.0])
    matrix = np.stack([long, short], axis=1)
    gradient = np.array([-1.0, 1.0 - 2.0**-52, -1.0])
    answers = [
        Dictionary(each).lmo(gradient).keys for each in (matrix, da.from_array(matrix, chunks=1))
    ]
    assert answers == [(1,), (1,)]


def test_passes_are_counted_and_few(alone):
    rng = np.random.default_rng(1)
    D = rng.random((100, 4000))
    b = D[:, :20] @ rng.random(20) + 0.2 * rng.standard_normal(100)
    reads = []

    def read(block):
        reads.append(block.shape)
        return block

    array = da.from_array(D, chunks=(100, 500)).map_blocks(read, meta=np.empty((0, 0)))
    fit = nnls(array, b)
    assert fit.proven
    assert fit.gap < 1e-10 * 0.5 * (b @ b - fit.rnorm**2)
    assert len(reads) == 8 * fit.n_passes
    assert fit.n_passes <= 6
    assert nnls(D, b).n_passes is None
    reads.clear()
    run = minimize(LeastSquares(b), Cone(Dictionary(array)), PWMP(), max_iter=10)
    passes = run.trace["passes"]
    np.testing.assert_array_equal(np.diff(passes[:11]), 1.0)
    assert passes[0] == 2.0  # norms first, then the scores of the first gradient
    assert len(reads) >= 8 * passes[-1]
    assert np.isnan(minimize(LeastSquares(b), Cone(Dictionary(D)), NNMP()).trace["passes"]).all()


def test_blocks_return_their_best_atoms_and_not_all_scores(alone, monkeypatch):
    kept, ask = [], BlockMatrix._ask_again

    def noted(self, question):
        kept.append(ask(self, question))
        return kept[-1]

    monkeypatch.setattr(BlockMatrix, "_ask_again", noted)
    D = da.from_array(np.random.default_rng(0).random((20, 3000)), chunks=(20, 1000))
    minimize(LeastSquares(np.ones(20)), Cone(Dictionary(D)), PWMP(), max_iter=3)
    numbers = [
        np.size(each)
        for answers in kept
        for answer in answers
        if answer is not None
        for candidate in answer[:3]
        if candidate is not None
        for each in candidate
    ]
    assert max(numbers) == 20  # an atom


def test_what_is_asked_of_a_matrix(alone):
    for chunks in CHUNKS:
        for kind in (None, sparse.csr_array, sparse.coo_array):
            D, x = BlockMatrix(blocks(ATOMS, chunks, kind)), np.zeros(N)
            x[[3, 150]] = 1.0, 2.0
            np.testing.assert_allclose(rmatvec(D, B), ATOMS.T @ B)
            np.testing.assert_allclose(matvec(D, x), ATOMS @ x)
            part = column(D, 77)
            part = part.toarray().ravel() if sparse.issparse(part) else part
            np.testing.assert_array_equal(part, ATOMS[:, 77])
            facts = D.facts()
            np.testing.assert_allclose(facts.squares, (ATOMS**2).sum(axis=0))
            np.testing.assert_allclose(facts.sums, ATOMS.sum(axis=0))
            assert np.flatnonzero(facts.zero).tolist() == [5]


def test_blocks_may_be_empty(alone):
    D = da.from_array(ATOMS, chunks=((0, 16, 14), (0, 80, 0, 120)))
    np.testing.assert_allclose(nnls(D, B).x, nnls(ATOMS, B).x, rtol=1e-9)
    run = minimize(LeastSquares(B), Cone(Dictionary(D)), FCMP())
    known = minimize(LeastSquares(B), Cone(Dictionary(ATOMS)), FCMP())
    np.testing.assert_allclose(run.coef, known.coef, rtol=1e-8)


def test_sparse_blocks_of_any_format_and_dtype(alone):
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 120, (21, 6)) * (rng.random((21, 6)) < 0.6)
    y = rng.random(21)
    for dtype in (bool, np.int8, np.int16, np.float32):
        X = whole.astype(dtype)
        known = nnfit(LeastSquares(y), X.astype(float))
        for kind in (sparse.csr_array, sparse.coo_array, sparse.csc_matrix):
            D = da.from_array(X, chunks=(10, 6)).map_blocks(kind, meta=np.empty((0, 0), dtype))
            fit = nnfit(LeastSquares(y), D)
            np.testing.assert_allclose(fit.value, known.value, rtol=1e-9)
            assert fit.proven
            single = da.from_array(X, chunks=(21, 1)).map_blocks(kind, meta=np.empty((0, 0), dtype))
            np.testing.assert_allclose(nnls(single, y).x, nnls(X.astype(float), y).x, atol=1e-12)


def test_blocks_of_several_kinds_and_none(alone):
    def mixed(block, block_info=None):
        first = block_info[0]["array-location"][0][0]
        return sparse.csr_array(block) if first else block

    D = blocks(ATOMS, "both").map_blocks(mixed, meta=np.empty((0, 0)))
    np.testing.assert_allclose(nnls(D, B).x, nnls(ATOMS, B).x, rtol=1e-9)
    empty = da.from_array(ATOMS, chunks=((16, 0, 14), (0, 200)))
    empty = empty.map_blocks(sparse.csr_array, meta=np.empty((0, 0)))
    np.testing.assert_allclose(nnls(empty, B).x, nnls(ATOMS, B).x, rtol=1e-9)


def test_audits_of_many_weights_bring_no_columns(alone, monkeypatch):
    rng = np.random.default_rng(0)
    matrix, b = rng.random((20, 900)), rng.random(20)
    monkeypatch.setattr(working_set.WorkingSet, "add", None)
    audit = certify_nnls(da.from_array(matrix, chunks=(20, 300)), b, np.full(900, 1e-3))
    known = certify_nnls(matrix, b, np.full(900, 1e-3))
    np.testing.assert_allclose(audit.gap, known.gap)
    assert audit.proven == known.proven


def test_a_dictionary_outlives_a_cluster():
    distributed = pytest.importorskip("distributed")
    atoms = Dictionary(blocks(ATOMS))
    known = minimize(LeastSquares(B), Cone(Dictionary(ATOMS)), FCMP(), max_iter=5)
    local = {"n_workers": 1, "threads_per_worker": 1, "processes": False}

    def again():
        run = minimize(LeastSquares(B), Cone(atoms), FCMP(), max_iter=5)
        np.testing.assert_allclose(run.value, known.value)
        assert run.trace["passes"][-1] < 12  # those of other runs do not count

    for _ in range(2):
        with (
            distributed.LocalCluster(**local, dashboard_address=":0") as workers,
            distributed.Client(workers, set_as_default=False) as client,
            client.as_current(),
        ):
            again()
    with dask.config.set(scheduler="synchronous"):
        again()


def test_blocks_in_the_memory_of_a_cluster_answer_together(cluster):
    with cluster.as_current():
        D = blocks(ATOMS).persist()
        distributed_run = minimize(LeastSquares(B), Cone(Dictionary(D)), FCMP())
        fit = nnls(D, B)
    known = minimize(LeastSquares(B), Cone(Dictionary(ATOMS)), FCMP())
    assert distributed_run.atoms.keys == known.atoms.keys
    np.testing.assert_allclose(fit.x, nnls(ATOMS, B).x, rtol=1e-9)


def test_integers_float32_and_labels(alone):
    whole = np.random.default_rng(0).integers(0, 5, (M, 40))
    for matrix in (whole, whole.astype(np.float32), whole > 2):
        known = nnls(matrix.astype(float), B)
        np.testing.assert_allclose(nnls(blocks(matrix), B).x, known.x, atol=1e-9)
    xarray = pytest.importorskip("xarray")
    names = [f"atom {i}" for i in range(40)]
    table = xarray.DataArray(
        blocks(whole.astype(float)), dims=("band", "atom"),
        coords={"band": np.arange(M), "atom": names},
    )  # fmt: skip
    shuffled = xarray.DataArray(B[::-1], dims="band", coords={"band": np.arange(M)[::-1]})
    fit = nnls(table, shuffled)
    np.testing.assert_allclose(fit.x, nnls(whole, B).x, atol=1e-9)
    assert fit.labels.atoms.tolist() == names


def test_bad_input_is_refused(alone):
    D = blocks(ATOMS)
    spoiled = ATOMS.copy()
    spoiled[20, 70] = np.nan
    unknown = D[:, da.from_array(ATOMS[0] > 0.5, chunks=80)]
    lying = D.map_blocks(lambda block: block.astype(object), meta=np.empty((0, 0)))
    wrong = {
        "compute_chunk_sizes": lambda: nnls(unknown, B),
        "real numbers; got a Dask array of dtype object": lambda: nnls(D.astype(object), B),
        "must hold real numbers; got dtype object": lambda: nnls(lying, B),
        r"the block \[16:30, 0:80\] of A must be finite": lambda: nnls(blocks(spoiled, "both"), B),
        r"the block \[0:30, 0:80\] of the dictionary": lambda: minimize(
            LeastSquares(B), Cone(Dictionary(blocks(spoiled))), PWMP()
        ),
        "one entry per row of A": lambda: nnls(D, B[1:]),
        "at least one row and one column": lambda: nnls(D[:, :0], B),
        "does not combine with sum_to": lambda: nnls(D, B, sum_to=1.0),
        "does not combine with .* targets": lambda: nnls(D, da.from_array(B[:, None])),
        "and the Dask array says": lambda: nnls(
            D.map_blocks(lambda x: x, chunks=((M,), (90, 70, 40)), meta=np.empty((0, 0))), B
        ),
        "scale the Dask array": lambda: nnls(D * 1e200, B),
        "underflow; scale the Dask": lambda: nnls(D * 1e-200, B),
        "Scale the Dask array": lambda: Dictionary(D * 1e200).norms,
        "callback= is for one target": lambda: nnls(D, B[:, None], callback=print),
        "all of it is needed in memory": lambda: Dictionary(D).find_functional(),
    }
    for message, call in wrong.items():
        with pytest.raises(ValueError, match=message):
            call()


def test_small_blocks_are_warned_of(alone):
    with pytest.warns(UserWarning, match=r"has 300 blocks of 0.16 kB .* at least 0\.[0-9] s"):
        nnls(da.ones((20, 300), chunks=(20, 1)), np.ones(20))


def test_a_callback_stops_a_fit_and_a_checkpoint_goes_on(alone, tmp_path, monkeypatch):
    monkeypatch.setattr(beyond.Beyond, "candidates", 4)
    D, known, rounds = blocks(ATOMS), nnls(ATOMS, B), []
    stopped = nnls(D, B, callback=lambda each: rounds.append(each) or len(rounds) == 2)
    assert stopped.status is Status.STOPPED
    np.testing.assert_allclose(rounds[-1].rnorm, stopped.rnorm)
    np.testing.assert_array_equal(np.sort(rounds[-1].keys), stopped.support)
    whole = nnls(D, B, callback=Checkpoint(tmp_path / "fit.npz"))
    saved = Checkpoint.load(tmp_path / "fit.npz")
    np.testing.assert_array_equal(np.sort(saved.keys), whole.support)
    again = nnls(D, B, start=saved)
    np.testing.assert_allclose(again.x, known.x, atol=1e-9 * known.x.max())
    assert again.n_passes < whole.n_passes
    with pytest.raises(ValueError, match="a checkpoint of nnls"):
        minimize(LeastSquares(B), Cone(Dictionary(ATOMS)), PWMP(), start=saved)
    with pytest.raises(ValueError, match="shape"):
        nnls(D[:, :50], B, start=saved)


KILLED = """
import sys, time
import dask, dask.array as da, numpy as np
from conepursuit import Checkpoint, nnls
from conepursuit.least_squares.beyond import Beyond

Beyond.candidates = 4
rng = np.random.default_rng(0)
D, b = rng.random((40, 600)), rng.random(40)
checkpoint = Checkpoint(sys.argv[1], seconds=0)

def watch(fit):
    checkpoint(fit)
    print(fit.iteration, flush=True)
    time.sleep(0.1)

with dask.config.set(scheduler="synchronous"):
    nnls(da.from_array(D, chunks=(40, 100)), b, callback=watch)
"""


def test_a_fit_that_was_killed_goes_on(alone, tmp_path):
    path = tmp_path / "fit.npz"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    ) as run:
        for _ in range(3):
            run.stdout.readline()
        run.send_signal(signal.SIGKILL)
        assert run.wait(60) == -signal.SIGKILL
    rng = np.random.default_rng(0)
    D, b = rng.random((40, 600)), rng.random(40)
    known, saved = nnls(D, b), Checkpoint.load(path)
    assert saved.rnorm > known.rnorm * (1 + 1e-6)  # it had more to do
    fit = nnls(da.from_array(D, chunks=(40, 100)), b, start=saved)
    np.testing.assert_allclose(fit.x, known.x, atol=1e-9 * known.x.max())
    assert fit.proven


def test_a_worker_that_is_killed_changes_nothing(cluster):
    def slowly(block):
        time.sleep(0.02)
        return block

    known = nnls(ATOMS, B)
    victims = list(cluster.run(os.getpid).values())
    seen = []

    def kill_once(fit):
        seen.append(fit)
        if len(seen) == 1:
            os.kill(victims[0], signal.SIGKILL)

    with cluster.as_current():
        D = blocks(ATOMS).map_blocks(slowly, meta=np.empty((0, 0))).persist()
        fit = nnls(D, B, callback=kill_once)
    np.testing.assert_allclose(fit.x, known.x, atol=1e-9 * known.x.max())
    assert fit.proven
    assert seen
    cluster.wait_for_workers(2, timeout=120)


def test_a_cluster_that_closes_leaves_a_checkpoint(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(beyond.Beyond, "candidates", 4)
    local = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    checkpoint = Checkpoint(tmp_path / "fit.npz")

    def close(fit):
        checkpoint(fit)
        workers.close()

    with (
        distributed.LocalCluster(**local, dashboard_address=":0") as workers,
        distributed.Client(workers, set_as_default=False) as client,
        client.as_current(),
        pytest.raises(RuntimeError, match=r"the cluster was lost in pass \d over A: .* can go on"),
    ):
        nnls(blocks(ATOMS), B, callback=close)
    with dask.config.set(scheduler="synchronous"):
        fit = nnls(blocks(ATOMS), B, start=Checkpoint.load(tmp_path / "fit.npz"))
    np.testing.assert_allclose(fit.x, nnls(ATOMS, B).x, atol=1e-9 * fit.x.max())


LIMITED = """
import re, resource, sys
from pathlib import Path
import dask, dask.array as da, numpy as np
from conepursuit import nnls


def stored(block_info=None):  # da.from_array would copy the file to memory
    (_, _), (first, stop) = block_info[None]["array-location"]
    return np.load(sys.argv[1], mmap_mode="r")[:, first:stop]

D, b = np.load(sys.argv[1], mmap_mode="r"), np.load(sys.argv[2])
chunks = (D.shape[:1], (2000,) * (D.shape[1] // 2000))
array = da.map_blocks(stored, dtype=float, chunks=chunks, meta=np.empty((0, 0)))
with dask.config.set(scheduler="threads", num_workers=2):
    nnls(array[:, :4000], b)  # loads what is needed, and starts the threads
    held = 1024 * int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
    limit = held + D.nbytes // 2
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    fit = nnls(array, b)
print(fit.proven, fit.gap / (0.5 * (b @ b - fit.rnorm**2)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is that of Linux")
def test_a_file_larger_than_the_memory_that_is_allowed(tmp_path):
    rng = np.random.default_rng(0)
    D = np.lib.format.open_memmap(tmp_path / "D.npy", "w+", np.float64, (1000, 40_000))  # 320 MB
    for i in range(0, 40_000, 2000):
        D[:, i : i + 2000] = rng.random((1000, 2000))
    b = D[:, ::2000] @ np.ones(20) + 0.1 * rng.standard_normal(1000)
    np.save(tmp_path / "b.npy", b)
    files = [str(tmp_path / name) for name in ("D.npy", "b.npy")]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *files], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    proven, gap = done.stdout.split()
    assert proven == "True"
    assert float(gap) < 1e-10
