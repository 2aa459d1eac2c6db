"""A run that was killed goes on from its checkpoint to the same answer; other files are refused."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from conepursuit import (
    FCMP,
    NNMP,
    OMP,
    PWMP,
    AdaptiveStep,
    AtomSet,
    Checkpoint,
    Cone,
    Corrected,
    Dictionary,
    FactoredLeastSquares,
    FunctionAtoms,
    Hull,
    KullbackLeibler,
    LeastSquares,
    NonnegativeRankOne,
    NonnegativeSphere,
    Span,
    Status,
    Symmetric,
    Union,
    UnitVectors,
    Vectors,
    certify,
    iterates,
    minimize,
    nnls,
)
from conepursuit.atoms.base import packed_keys, unpacked_keys

PROBLEM = """
import numpy as np
from conepursuit import FCMP, PWMP, Cone, Dictionary, Hull, LeastSquares, minimize

rng = np.random.default_rng(5)
D, y = rng.random((40, 90)), rng.random(40)
problem = LeastSquares(y), {domain}, {algorithm}()
"""

KILLED = """
import time
from conepursuit import Checkpoint

keep = Checkpoint({path!r}, seconds=0.0)

def callback(state):
    keep(state)
    if state.iteration == 4:
        print("four steps", flush=True)
        time.sleep(3600)

minimize(*problem, callback=callback)
"""


@pytest.mark.parametrize("algorithm", ["PWMP", "FCMP"])
@pytest.mark.parametrize("domain", ["Cone(Dictionary(D))", "Hull(Dictionary(D), radius=0.8)"])
def test_a_run_that_is_killed_goes_on_to_the_same_answer(tmp_path, domain, algorithm):
    code, path = PROBLEM.format(domain=domain, algorithm=algorithm), tmp_path / "run.npz"
    killed = code + KILLED.format(path=str(path))
    with subprocess.Popen([sys.executable, "-c", killed], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"four steps\n"
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    names: dict = {}
    exec(code, names)
    problem, saved = names["problem"], Checkpoint.load(path)
    assert saved.iteration == 4
    whole = minimize(*problem)
    rest = minimize(*problem, start=saved)
    assert whole.n_iter > 4
    assert rest.status is whole.status is Status.CONVERGED
    assert rest.trace["value"][0] == pytest.approx(whole.trace["value"][4], rel=1e-12)
    assert abs(rest.value - whole.value) <= rest.certificate.gap + whole.certificate.gap
    np.testing.assert_allclose(rest.x, whole.x, atol=1e-4 * np.linalg.norm(whole.x))


RNG = np.random.default_rng(0)
D, Y, X = RNG.random((12, 30)), RNG.random(12), RNG.random((7, 9))
TEXT = sparse.random_array((20, 15), density=0.2, rng=np.random.default_rng(1), format="csr")


def best_column(gradient):
    return D[:, (D.T @ gradient).argmin()]


CASES = {
    "columns": (LeastSquares(Y), Cone(Dictionary(D)), PWMP()),
    "sparse columns": (LeastSquares(Y), Cone(Dictionary(sparse.csc_array(D))), FCMP()),
    "penalty": (LeastSquares(Y), Cone(Dictionary(D), penalty=0.1), PWMP()),
    "span": (LeastSquares(Y), Span(Dictionary(D[:, :8])), OMP()),
    "infinite at the origin": (KullbackLeibler(Y), Cone(Dictionary(D)), PWMP(AdaptiveStep())),
    "entries": (LeastSquares(Y - 0.5), Cone(UnitVectors(12)), NNMP()),
    "signed": (LeastSquares(Y), Hull(Symmetric(Dictionary(D)), 0.3), PWMP()),
    "sphere": (LeastSquares(X), Cone(NonnegativeSphere(X.shape)), NNMP()),
    "function": (LeastSquares(Y), Cone(FunctionAtoms(best_column, 12)), FCMP()),
    "both kinds of keys": (
        LeastSquares(Y - 0.3),
        Cone(Union(UnitVectors(12), Symmetric(NonnegativeSphere(12)))),
        PWMP(),
    ),
    "rank one": (LeastSquares(X), Cone(NonnegativeRankOne(X.shape)), Corrected(FCMP())),
    "factored": (
        FactoredLeastSquares(TEXT),
        Cone(NonnegativeRankOne(TEXT.shape, factored=True)),
        FCMP(),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_is_the_iterate_of_its_state(tmp_path, name):
    problem, path = CASES[name], tmp_path / "run.npz"
    result = minimize(*problem, max_iter=4, callback=Checkpoint(path))
    saved = Checkpoint.load(path)
    assert saved.iteration == result.n_iter
    state = next(iterates(*problem, start=saved))
    assert state.iteration == result.n_iter
    assert state.iterate.same_weights(result.iterate)
    assert state.iterate.atoms.keys == result.atoms.keys
    np.testing.assert_allclose(
        state.iterate.atoms.gram(), result.atoms.gram(), rtol=1e-12, atol=1e-15
    )
    assert state.value == pytest.approx(result.value, rel=1e-12, abs=1e-15)
    assert certify(*problem[:2], saved).gap == pytest.approx(result.certificate.gap, rel=1e-6)
    on = minimize(*problem, max_iter=3, start=saved)
    assert on.n_iter <= 3  # counts the new run alone
    assert on.value <= result.value * (1 + 1e-12)


def test_columns_are_kept_by_their_indices_alone(tmp_path):
    minimize(*CASES["signed"], callback=Checkpoint(tmp_path / "signed.npz"))
    assert not hasattr(Checkpoint.load(tmp_path / "signed.npz"), "rows")
    minimize(*CASES["columns"], callback=Checkpoint(tmp_path / "columns.npz"))
    assert Checkpoint.load(tmp_path / "columns.npz").keys.dtype == np.int64


keys = st.recursive(
    st.integers(-5, 5) | st.binary(max_size=16) | st.text(max_size=5),
    lambda inner: st.tuples(st.integers(0, 3), inner),
    max_leaves=3,
)


@given(st.lists(keys, max_size=4).map(tuple))
@settings(max_examples=100, deadline=None)
def test_keys_come_back_as_they_were(given_keys):
    assert unpacked_keys(packed_keys(given_keys)) == given_keys


def test_the_first_two_states_and_the_last_are_written(tmp_path):
    path, seen = tmp_path / "run.npz", []
    keep = Checkpoint(path, seconds=1e9)

    def callback(state):
        keep(state)
        seen.append(Checkpoint.load(path).iteration)

    for _ in range(2):  # one object serves several runs
        seen.clear()
        result = minimize(*CASES["columns"], max_iter=5, callback=callback)
        keep.close()
        assert seen == [0, 1, 1, 1, 1, 1]
        assert Checkpoint.load(path).iteration == result.n_iter == 5


def test_ctrl_c_leaves_the_last_state(tmp_path):
    _, cone, algorithm = CASES["columns"]
    evaluated = 0

    class Interrupted(LeastSquares):
        def value_and_gradient(self, x):
            nonlocal evaluated
            evaluated += 1
            if evaluated == 9:
                raise KeyboardInterrupt
            return super().value_and_gradient(x)

    result = minimize(Interrupted(Y), cone, algorithm, callback=Checkpoint(tmp_path / "run.npz"))
    assert result.status is Status.INTERRUPTED
    saved = Checkpoint.load(tmp_path / "run.npz")
    assert saved.iteration == result.n_iter >= 4
    np.testing.assert_array_equal(saved.weights, result.weights)


def test_a_write_that_fails_leaves_the_file_before_it(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    Checkpoint(path).write("anything", rank=3, H=X, note="a text")
    savez = np.savez

    def full_disk(file, **arrays):
        savez(file, **arrays)
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="no space left"):
        Checkpoint(path).write("anything", rank=4, H=X)
    saved = Checkpoint.load(path)
    assert (saved.kind, saved.rank, saved.note, saved.path) == ("anything", 3, "a text", path)
    np.testing.assert_array_equal(saved.H, X)
    assert os.listdir(tmp_path) == ["run.npz"]


@pytest.mark.parametrize("trouble", ["folder", "disk"])
def test_a_run_goes_on_where_its_checkpoint_cannot_be_written(trouble, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    checkpoint = Checkpoint(tmp_path / "runs" / "run.npz", seconds=0)
    if trouble == "folder":
        (tmp_path / "runs").rmdir()
    else:

        def full_disk(file, **arrays):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(np, "savez", full_disk)
    with pytest.warns(RuntimeWarning, match=r"run.npz cannot be written, and") as said:
        result = minimize(*CASES["columns"], callback=checkpoint)
    assert result.status.success
    assert len(said) == 1  # once, whatever the number of states
    with pytest.warns(RuntimeWarning, match="cannot be written"):  # and once in the next run
        minimize(*CASES["columns"], callback=checkpoint)


def test_a_disk_that_has_room_again_is_written_to(tmp_path):
    (tmp_path / "runs").mkdir()
    checkpoint = Checkpoint(tmp_path / "runs" / "run.npz", seconds=0)
    (tmp_path / "runs").rmdir()

    def callback(state):
        checkpoint(state)
        (tmp_path / "runs").mkdir(exist_ok=True)

    with pytest.warns(RuntimeWarning, match="cannot be written"):
        result = minimize(*CASES["columns"], callback=callback)
    assert Checkpoint.load(checkpoint.path).iteration == result.n_iter


CRAFTED = {
    "keys": [None, 3, [0.5], [10**6], [-1], ["[0]"], ["("], [0, 0]],
    "weights": [None, "a", [1.0], [np.nan], [[1.0]]],
    "value": [None, "a", [1.0, 2.0], np.nan],
    "decrease": [None, "a"],
    "iteration": [None, "a", [1, 2], 0.5],
    "shape": [None, 3, "ab", [[1]]],
    "kind": [None, 3, ["minimize"]],
    "conepursuit_checkpoint": ["a", [1, 2]],
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_checkpoints_are_named(name, tmp_path):
    path = tmp_path / "run.npz"
    minimize(*CASES["columns"], callback=Checkpoint(path))
    with np.load(path) as file:
        held = dict(file)
    for value in CRAFTED[name]:
        changed = {key: array for key, array in held.items() if key != name}
        np.savez(path, **changed, **({} if value is None else {name: value}))
        with pytest.raises(ValueError, match=r"run.npz is not a checkpoint|checkpoint of another"):
            minimize(*CASES["columns"], start=Checkpoint.load(path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keys", [10**6]), ("keys", [-1]), ("keys", [0.5]), ("n_columns", -1),
        ("n_columns", 10**15), ("n_columns", 7), ("weights", [np.nan]), ("weights", "a"),
    ],
)  # fmt: skip
def test_crafted_checkpoints_of_nnls_are_named(name, value, tmp_path):
    path = tmp_path / "run.npz"
    entries = {"iteration": 1, "keys": [0], "weights": [1.0], "rnorm": 1.0, "n_columns": 3}
    Checkpoint(path).write("nnls", **{**entries, name: value})
    with pytest.raises(
        ValueError, match=r"run.npz (is not a checkpoint of this|takes more memory)"
    ):
        nnls(np.eye(3), np.ones(3), start=Checkpoint.load(path))


@pytest.mark.parametrize("change", ["columns", "rows", "nothing"])
def test_sparse_atoms_of_a_crafted_checkpoint_are_looked_at(change, tmp_path):
    path, atoms = tmp_path / "run.npz", Vectors.single((3,), "a", sparse.csr_array([[1.0, 0, 2]]))
    saved = {"kind": "minimize", **atoms.saved()}
    if change == "columns":
        saved["columns"] = np.array([0, 10**6])
    elif change == "rows":
        saved["rows"] = np.array(["x", "y"])
    Checkpoint(path).write(**saved)
    if change == "nothing":
        assert atoms.restored(Checkpoint.load(path)).table.rows.toarray().tolist() == [[1, 0, 2]]
        return
    with pytest.raises(ValueError, match=r"damaged sparse matrix|could not convert"):
        atoms.restored(Checkpoint.load(path))


def test_files_that_are_no_checkpoints_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    minimize(*CASES["columns"], callback=Checkpoint(path))
    whole = path.read_bytes()
    for n_bytes in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(ValueError, match=r"run.npz is not a checkpoint, or is damaged"):
            Checkpoint.load(path)
    np.savez(path, x=Y)
    with pytest.raises(ValueError, match="is not a checkpoint, or is damaged: it holds x"):
        Checkpoint.load(path)
    with path.open("wb") as file:
        np.save(file, Y)
    with pytest.raises(ValueError, match="is not a checkpoint, or is damaged: it holds one array"):
        Checkpoint.load(path)
    with pytest.raises(FileNotFoundError):
        Checkpoint.load(tmp_path / "missing.npz")


def test_a_newer_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("conepursuit.checkpoints.VERSION", 2)
    Checkpoint(tmp_path / "run.npz").write("minimize")
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"version 2.*reads versions up to 1"):
        Checkpoint.load(tmp_path / "run.npz")


def test_a_checkpoint_of_another_problem_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    problem = objective, cone, algorithm = CASES["columns"]
    minimize(*problem, callback=Checkpoint(path))
    saved = Checkpoint.load(path)
    with pytest.raises(ValueError, match=r"shape \(12,\).*takes shape \(5,\)"):
        minimize(LeastSquares(Y[:5]), Cone(Dictionary(D[:5])), algorithm, start=saved)
    few = Dictionary(D[:, : int(saved.keys.max())])
    with pytest.raises(ValueError, match="has no atom with the key"):
        minimize(objective, Cone(few), algorithm, start=saved)
    for other in (
        (objective, Cone(Dictionary(D[:, ::-1])), algorithm),
        (LeastSquares(Y + 0.01), cone, algorithm),
        (objective, Cone(Dictionary(D), penalty=0.1), algorithm),
    ):
        with pytest.raises(ValueError, match=r"another problem: f was .* and is"):
            minimize(*other, start=saved)
    with pytest.raises(ValueError, match=r"sum to at most 0\.01"):
        minimize(objective, Hull(Dictionary(D), 0.01), PWMP(), start=saved)
    Checkpoint(path).write("GreedyNMF", rank=3)
    with pytest.raises(ValueError, match="checkpoint of GreedyNMF, from which minimize cannot"):
        minimize(*problem, start=Checkpoint.load(path))


def test_vectors_of_another_set_are_refused(tmp_path):
    objective, cone, algorithm = CASES["rank one"]
    minimize(objective, cone, algorithm, max_iter=2, callback=Checkpoint(tmp_path / "run.npz"))
    saved = Checkpoint.load(tmp_path / "run.npz")
    with pytest.raises(ValueError, match="have 16 numbers each, those of this problem 63"):
        minimize(objective, Cone(NonnegativeSphere(X.shape)), NNMP(), start=saved)


class Named(AtomSet):
    """The columns of D under keys of one's own, without the method `atom`."""

    shape = (12,)

    def __init__(self, key):
        self.inside, self.key = Dictionary(D), key

    def lmo(self, gradient):
        answer = self.inside.lmo(gradient)
        batch = self.inside.atom(answer.keys[0])
        batch.keys = (self.key(answer.keys[0]),)
        return batch

    def empty(self):
        return self.inside.empty()


def test_what_cannot_be_kept_is_refused_at_once(tmp_path):
    path = tmp_path / "run.npz"
    objective, _, algorithm = CASES["columns"]
    with pytest.raises(ValueError, match="keeps keys of atoms that are numbers"):
        minimize(
            objective, Cone(Named(lambda j: frozenset([j]))), PWMP(), callback=Checkpoint(path)
        )
    texts = Cone(Named("column {}".format))  # kept with their vectors
    minimize(objective, texts, algorithm, max_iter=3, callback=Checkpoint(path))
    assert minimize(objective, texts, algorithm, start=Checkpoint.load(path)).status.success
    numbers = Cone(Named(int))
    minimize(objective, numbers, algorithm, max_iter=3, callback=Checkpoint(path))
    with pytest.raises(ValueError, match="Give the set a method"):
        minimize(objective, numbers, algorithm, start=Checkpoint.load(path))
    with pytest.raises(ValueError, match="Python objects in what"):
        Checkpoint(path).write("anything", what=[object()])
    with pytest.raises(ValueError, match="seconds must not be negative"):
        Checkpoint(path, seconds=-1.0)
    with pytest.raises(FileNotFoundError):
        minimize(objective, texts, algorithm, callback=Checkpoint(tmp_path / "no" / "run.npz"))


def test_a_missing_folder_is_said_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match="folder of the checkpoint"):
        Checkpoint(tmp_path / "missing" / "run.npz")
