"""Rows of two files that belong together, and files whose rows are columns."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from conepursuit import nnls
from conepursuit.cli import main
from conepursuit.cli.problems import matched, read_problem
from conepursuit.cli.reading import Data


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def save(name, text):
    Path(name).write_text(text, encoding="utf-8")
    return name


def table(rows):
    """Return a file with a row of one number, its name, for each of some names."""
    return Data(np.array([[float(row)] for row in rows]), "file", rows=[str(row) for row in rows])


NAMES = st.lists(st.integers(0, 9), unique=True, min_size=1).map(lambda rows: [*map(str, rows)])


@settings(max_examples=60, deadline=None)
@given(ours=NAMES, theirs=NAMES)
def test_rows_of_one_name_stand_side_by_side(ours, theirs):
    common = [name for name in ours if name in theirs]
    if common:
        A, b, note = matched(table(ours), table(theirs), common=True)
        assert A.rows == b.rows == common
        assert A.values.tolist() == b.values.tolist() == [[float(name)] for name in common]
        assert f"{len(common)} are in both" in note
        dropped = len(ours) - len(common), len(theirs) - len(common)
        assert f"dropped are {dropped[0]} of file and {dropped[1]} of file" in note
    if len(common) == len(ours) == len(theirs):
        A, b, note = matched(table(ours), table(theirs), common=False)
        assert A.rows == b.rows == ours
        assert b.values.tolist() == A.values.tolist()
        assert bool(note) == (ours != theirs)
        return
    with pytest.raises(ValueError, match=f"the same names; {len(common)} are in both"):
        matched(table(ours), table(theirs), common=False)


SIGNATURES = "Type\tS1\tS2\nA[C>A]A\t0.7\t0.1\nA[C>A]C\t0.2\t0.1\nG[T>G]C\t0.1\t0.8\n"
CATALOGUE = "Mutation type,Trinucleotide,t1,t2\nT>G,GTC,13,80\nC>A,ACC,20,10\nC>A,ACA,70,10\n"


def test_signatures_of_cosmic_fit_a_catalogue_of_pcawg(capsys):
    save("signatures.txt", SIGNATURES)
    save("catalogue.csv", CATALOGUE)
    assert main(["solve", "signatures.txt", "catalogue.csv", "--out", "x.csv"]) == 0
    out = capsys.readouterr().out
    assert "signatures.txt: 3 x 2, header, row names\n" in out
    assert "catalogue.csv: 3 x 2, header, row names in two columns\n" in out
    assert "rows of catalogue.csv are matched to those of signatures.txt by name\n" in out
    A, B = [[0.7, 0.1], [0.2, 0.1], [0.1, 0.8]], [[70, 10], [20, 10], [13, 80]]
    found = np.loadtxt("x.csv", delimiter=",", skiprows=1, usecols=(1, 2))
    assert (found == nnls(A, B).x).all()
    assert main(["solve", "signatures.txt", "catalogue.csv", "--certify", "x.csv"]) == 0
    save("signatures.txt", SIGNATURES.replace("A[C>A]C", "A[C>A]T"))
    assert main(["solve", "signatures.txt", "catalogue.csv"]) == 2
    assert "2 are in both, 1 only in signatures.txt, such as 'A[C>A]T'" in capsys.readouterr().err
    assert main(["solve", "signatures.txt", "catalogue.csv", "--match", "--out", "x.json"]) == 0
    out = capsys.readouterr().out
    assert "2 are in both, dropped are 1 of signatures.txt and 1 of catalogue.csv\n" in out
    assert "Non-negative least squares, 2 x 2" in out
    assert '"matching": "rows are matched by name: 2 are in both' in Path("x.json").read_text()


def test_names_that_cannot_be_matched():
    save("A.csv", "id,a\nr,1\ns,3\n")
    save("b.csv", "id,y\nr,1\nr,2\n")
    with pytest.raises(ValueError, match=r"b.csv must have a name for each row.*'r' is that of 2"):
        read_problem("A.csv", "b.csv")
    assert read_problem("b.csv", "b.csv").matching == ""  # by their places, as before
    save("b.csv", "id,y\nu,1\nv,2\n")
    for match in (False, True):
        with pytest.raises(ValueError, match=r"0 are in both, 2 only in A.csv, .* --transpose"):
            read_problem("A.csv", "b.csv", match=match)
    save("b.csv", "1\n2\n")
    with pytest.raises(ValueError, match=r"b.csv has none. .* use --row-names"):
        read_problem("A.csv", "b.csv", match=True)


def test_weights_are_matched_to_atoms_by_name():
    save("A.csv", "a,b\n1,0\n0,1\n")
    save("b.csv", "1\n2\n")
    save("x.csv", "atom,weight\nb,2\na,1\n")
    assert main(["solve", "A.csv", "b.csv", "--certify", "x.csv"]) == 0


def test_atoms_and_targets_may_be_rows(capsys):
    rng = np.random.default_rng(0)
    A, B = rng.random((4, 3)), rng.random((4, 2))
    np.save("A.npy", A.T)
    sparse.save_npz("S.npz", sparse.csr_array(A.T))
    lines = [f"t{i}," + ",".join(map(repr, column)) for i, column in enumerate(B.T.tolist())]
    save("B.csv", "id,c0,c1,c2,c3\n" + "\n".join(lines) + "\n")
    problem = read_problem("A.npy", "B.csv", transpose="both")
    assert (problem.A.values == A).all()
    assert (problem.b.values == B).all()
    assert (problem.b.columns, problem.b.rows) == (["t0", "t1"], ["c0", "c1", "c2", "c3"])
    for name in ("A.npy", "S.npz"):
        assert main(["solve", name, "B.csv", "--transpose", "both", "--out", "x.csv"]) == 0
        assert f"{name}: 3 x 4, transposed\nB.csv: 2 x 4, header, row names, transposed\n" in (
            capsys.readouterr().out
        )
        assert Path("x.csv").read_text().startswith("atom,t0,t1\n")
    np.save("A.npy", A)
    assert main(["solve", "A.npy", "B.csv", "--transpose", "b", "--certify", "x.csv"]) == 0
    save("row.csv", ",".join(map(repr, B[:, 0].tolist())) + "\n")
    assert main(["solve", "A.npy", "row.csv", "--transpose", "B"]) == 0
