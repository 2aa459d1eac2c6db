"""The files of the command line: what is read from them, and how they are written."""

import bz2
import csv
import gzip
import json
import lzma
import os
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from scipy import io, sparse

from conepursuit.cli import main, reading
from conepursuit.cli.layouts import Layout
from conepursuit.cli.reading import read, read_matrix, read_targets
from conepursuit.cli.writing import replacing, write_csv, write_json, write_npy


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def save(name, text):
    with open(name, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return name


NUMBERS = [[1.0, 2.0], [3.0, 4.5]]

TABLES = {
    "no header": ("1,2\n3,4.5\n", None, None),
    "no end of line": ("1,2\n3,4.5", None, None),
    "header": ("a,b\n1,2\n3,4.5\n", ["a", "b"], None),
    "Windows, a mark of the byte order, blank lines": (
        "\ufeffa,b\r\n\r\n1,2\r\n3,4.5\r\n\r\n", ["a", "b"], None,
    ),
    "quotes and spaces": ('"a, x", b\n"1", 2\n3 ,4.5\n', ["a, x", "b"], None),
    "names of rows": ("id,a,b\nr,1,2\ns,3,4.5\n", ["a", "b"], ["r", "s"]),
    "an empty corner, as of pandas": (",a,b\n0,1,2\n1,3,4.5\n", ["a", "b"], ["0", "1"]),
    "pandas without names": (",0,1\n0,1,2\n1,3,4.5\n", ["0", "1"], ["0", "1"]),
    "weights of our own": ("atom,a,b\n0,1,2\n1,3,4.5\n", ["a", "b"], ["0", "1"]),
    "weights of targets without names": ("atom,0,1\ns,1,2\n7,3,4.5\n", ["0", "1"], ["s", "7"]),
    "a short header, as of R": ("a,b\nr,1,2\ns,3,4.5\n", ["a", "b"], ["r", "s"]),
    "a short header above 1, 2": ("a,b\n1,1,2\n2,3,4.5\n", ["a", "b"], ["1", "2"]),
    "a short header above 0, 1": ("a,b\n0,1,2\n1,3,4.5\n", ["a", "b"], ["0", "1"]),
    "pandas with wavelengths": (",400,410.5\n7,1,2\n5,3,4.5\n", ["400", "410.5"], ["7", "5"]),
    "pandas with names of all kinds": (",a,b\n7,1,2\ns,3,4.5\n", ["a", "b"], ["7", "s"]),
    "names of rows, the first of them missing": (
        "id,a,b\nNA,1,2\ns,3,4.5\n", ["a", "b"], ["NA", "s"],
    ),
    "underscores are names": ("1_1,1_2\n1,2\n3,4.5\n", ["1_1", "1_2"], None),
    "exponents": ("1e0,+2.\n30E-1,4.5\n", None, None),
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind, suffix):
    text, columns, rows = TABLES[kind]
    if suffix == "tsv":
        text = text.replace(",", "\t")
        columns = columns and [name.replace(",", "\t") for name in columns]
    found = read(save(f"x.{suffix}", text))
    assert found.values.tolist() == NUMBERS
    assert (found.columns, found.rows) == (columns, rows)


PLAIN = {
    "a first line and a second that are both equally spaced": "1,2,3\n4,5,6\n",
    "one line": "1,2,3\n",
    "two columns": "400,410\n1,5\n",
    "a line that is not equally spaced": "400,410,430\n1,5,2\n",
    "a line that falls and rises": "1,2,1\n1,5,2\n",
    "a first column without a header": "1,5\n2,7\n3,6\n",
    "missing numbers": ",,\n1,2,3\n",
}


@pytest.mark.parametrize("kind", PLAIN)
def test_lines_of_numbers_are_no_headers(kind):
    found = read(save("x.csv", PLAIN[kind]))
    assert found.values.size == PLAIN[kind].count(",") + PLAIN[kind].count("\n")
    assert (found.columns, found.rows) == (None, None)


@pytest.mark.parametrize("text", ["a,b\n1,5\n2,7\n", "a,b\n1,5\n2,7\n4,5\n", "a\n1\n2\n3\n"])
def test_columns_of_numbers_are_no_names_of_rows(text):
    assert read(save("x.csv", text)).rows is None


ASKED = {
    ("400,410,420\n1,5,2\n", True, None): (["400", "410", "420"], None, [[1, 5, 2]]),
    ("400,410,420\n1,5,2\n", False, None): (None, None, [[400, 410, 420], [1, 5, 2]]),
    ("a,b\n1,5\n2,7\n3,6\n", None, True): (["b"], ["1", "2", "3"], [[5], [7], [6]]),
    ("a,b\n1,5\n2,7\n3,6\n", None, False): (["a", "b"], None, [[1, 5], [2, 7], [3, 6]]),
    ("r,1,2\ns,3,4\n", False, None): (None, ["r", "s"], [[1, 2], [3, 4]]),
    ("id,1,2\ns,3,4\n", True, None): (["1", "2"], ["s"], [[3, 4]]),
    ("a,b\n7,1,2\n", None, True): (["a", "b"], ["7"], [[1, 2]]),
    ("id,a\n<LOD,1\n7,2\n", None, True): (["a"], ["<LOD", "7"], [[1], [2]]),
    (",a\n0,1\n", None, False): (["", "a"], None, [[0, 1]]),
    ("y\n1\n2\n", None, True): (["y"], None, [[1], [2]]),
    ("k;l,a\nx;1,1\n", None, True): (["a"], ["x;1"], [[1]]),
}


@pytest.mark.parametrize(("text", "header", "row_names"), ASKED)
def test_what_is_asked_for_is_not_guessed(text, header, row_names):
    found = read(save("x.csv", text), Layout(header, row_names))
    columns, rows, numbers = ASKED[text, header, row_names]
    assert (found.columns, found.rows, found.values.tolist()) == (columns, rows, numbers)


def test_semicolons_in_names_are_none_of_separators():
    found = read(save("x.csv", "a;x,b;y\n1,2\n"))
    assert found.columns == ["a;x", "b;y"]
    assert read(save("x.csv", "id,a\nx;1,1\n")).rows == ["x;1"]
    assert read(save("x.csv", "i;d,a\nr;s,1\n")).rows == ["r;s"]
    with pytest.raises(ValueError, match="semicolon-separated"):
        read(save("x.tsv", "a;b\n1,5;2\n"))


def test_options_settle_all_tables_of_a_command(capsys):
    save("A.csv", "t,a,b\n1,1,0\n2,0,1\n3,0,0\n")
    save("b.csv", "t,y\n1,4\n2,5\n3,0\n")
    assert main(["solve", "A.csv", "b.csv"]) == 2
    assert "Use --row-names or --no-row-names" in capsys.readouterr().err
    assert main(["solve", "A.csv", "b.csv", "--row-names", "--out", "x.csv"]) == 0
    out = capsys.readouterr().out
    assert "A.csv: 3 x 2, header, row names\nb.csv: 3 x 1, header, row names\n" in out
    assert main(["solve", "A.csv", "b.csv", "--row-names", "--certify", "x.csv"]) == 0
    assert "x.csv: 2 x 1, header, row names\n" in capsys.readouterr().out
    assert main(["solve", "A.csv", "b.csv", "--no-row-names", "--out", "x.csv"]) == 0
    assert "b.csv: 3 x 2, header, no row names\n" in capsys.readouterr().out
    assert main(["solve", "A.csv", "b.csv", "--no-row-names", "--certify", "x.csv"]) == 0
    assert main(["factorize", "A.csv", "--components", "1", "--row-names"]) == 0
    assert "A.csv: 3 x 2, header, row names\n" in capsys.readouterr().out
    save("A.csv", "1,2,3\n0,5,1\n1,0,2\n")
    assert main(["factorize", "A.csv", "--components", "1", "--no-header"]) == 0
    assert "A.csv: 3 x 3, no header, no row names\n" in capsys.readouterr().out


def test_rows_that_do_not_agree_say_what_was_understood(capsys):
    save("A.csv", "a,b\n1,0\n0,1\n")
    save("b.csv", "1\n2\n3\n")
    assert main(["solve", "A.csv", "b.csv"]) == 2
    err = capsys.readouterr().err
    assert (
        "A.csv was read as 2 x 2, header, no row names. b.csv was read as 3 x 1, no header" in err
    )


@pytest.mark.parametrize(
    "text", ["a\tb\n1\t2\n3\t4.5\n", "\na,b\n1,2\n3,4.5", "a b\n1  2 \n 3 4.5\n"]
)
def test_what_separates_cells_of_txt_is_told_by_its_first_line(text):
    data = read(save("x.txt", f"\ufeff{text}"))
    assert (data.values.tolist(), data.columns) == (NUMBERS, ["a", "b"])
    assert read(save("one.txt", "1\n2\n")).values.tolist() == [[1.0], [2.0]]


SUBSTITUTIONS = "Mutation type,Trinucleotide,s,t\nC>A,ACA,1,2\nT>G,GTC,3,4.5\n"


@pytest.mark.parametrize("heading", ["Mutation type,Trinucleotide", "Type,SubType", ","])
@pytest.mark.parametrize("row_names", [None, True])
def test_a_change_and_its_context_are_one_name(heading, row_names):
    text = SUBSTITUTIONS.replace("Mutation type,Trinucleotide", heading)
    data = read(save("x.csv", text), Layout(row_names=row_names))
    assert data.values.tolist() == NUMBERS
    assert (data.columns, data.rows) == (["s", "t"], ["A[C>A]A", "G[T>G]C"])
    assert data.understood == "2 x 2, header, row names in two columns"


def test_what_is_no_change_and_context():
    with pytest.raises(ValueError, match="got 'T>G' and 'GAC' on line 3"):
        read(save("x.csv", SUBSTITUTIONS.replace("GTC", "GAC")))
    with pytest.raises(ValueError, match="must hold numbers; got 'AAA' on line 2"):
        read(save("x.csv", SUBSTITUTIONS.replace("ACA", "AAA")))


COMPRESSED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def compress(name, suffix):
    with COMPRESSED[suffix](f"{name}{suffix}", "wb") as file:
        file.write(Path(name).read_bytes())
    os.remove(name)
    return f"{name}{suffix}"


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_every_format_is_read_compressed(suffix):
    save("x.csv", "1,2\n3,4.5\n")
    save("x.tsv", "1\t2\n3\t4.5\n")
    save("x.txt", "1 2\n3 4.5\n")
    np.save("x.npy", NUMBERS)
    np.savez("x.npz", a=NUMBERS, b=np.zeros(1))
    sparse.save_npz("s.npz", sparse.csr_array(NUMBERS))
    io.mmwrite("x.mtx", sparse.coo_array(NUMBERS))
    for name in ("x.csv", "x.tsv", "x.txt", "x.npy", "x.npz", "s.npz", "x.mtx"):
        given = compress(name, suffix) + (":a" if name == "x.npz" else "")
        values = read(given).values
        assert (values.toarray() if sparse.issparse(values) else values).tolist() == NUMBERS


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("name", ["x.csv", "x.npy", "x.mtx", "x.npz"])
def test_damaged_compressed_files_are_named(name, suffix):
    save(f"{name}{suffix}", "1,2\n3,4.5\n")
    with pytest.raises(ValueError, match=f"{name}{suffix} is not a {suffix} file, or is damaged"):
        read(f"{name}{suffix}")
    np.save("x.npy", NUMBERS)
    cut = Path(compress("x.npy", suffix)).read_bytes()[:-10]
    Path(f"{name}{suffix}").write_bytes(cut)
    with pytest.raises(ValueError, match=f"{name}{suffix} is not a .* file, or is damaged|UTF-8"):
        read(f"{name}{suffix}")


def test_a_long_cell_is_cut_in_messages():
    with pytest.raises(ValueError, match=r"got 'r.*\.\.\..*' on line 2") as caught:
        read(save("x.csv", "a\tb\nr" + "\t0.25" * 99 + "\n"))
    assert len(str(caught.value)) < 200


def test_a_table_keeps_every_digit():
    A = np.random.default_rng(0).standard_normal((20, 7)) * 10.0 ** np.arange(-150, 200, 50)
    save("x.csv", "\n".join(",".join(map(repr, row)) for row in A.tolist()))
    assert (read("x.csv").values == A).all()


def test_numbers_are_missing_where_cells_are_empty():
    found = read_matrix(save("x.csv", "a,b,c\n1,,NA\n,2,nan\n"), missing=True)
    np.testing.assert_array_equal(found.values, [[1, np.nan, np.nan], [np.nan, 2, np.nan]])


def test_bytes_in_any_order_and_integers():
    for dtype in (">f8", "<f4", ">i2", "?", "u1"):
        np.save("x.npy", np.eye(3, dtype=dtype))
        found = read_matrix("x.npy").values
        assert found.dtype.isnative
        assert (found == np.eye(3)).all()


def test_one_column_is_one_target():
    assert read_targets(save("b.csv", "b\n1\n2\n")).values.tolist() == [1.0, 2.0]
    assert read_targets(save("b.csv", "1\n2\n")).values.shape == (2,)
    np.save("b.npy", np.ones((3, 1)))
    assert read_targets("b.npy").values.shape == (3,)
    np.save("b.npy", np.ones((3, 2)))
    assert read_targets("b.npy").values.shape == (3, 2)


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrix_market(field):
    A = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 1, 3], [1, 0, 2])), shape=(4, 3))
    io.mmwrite("A.mtx", A, field=field)
    found = read_matrix("A.mtx").values
    assert sparse.issparse(found)
    expected = A.toarray() > 0 if field == "pattern" else A.toarray()
    assert (found.toarray() == expected).all()
    assert found.dtype == np.float64
    io.mmwrite("D.mtx", A.toarray())
    assert (read_matrix("D.mtx").values == A.toarray()).all()
    io.mmwrite("b.mtx", sparse.coo_array(A.toarray()[:, :1]))
    assert read_targets("b.mtx").values.tolist() == [0.0, 2.0, 0.0, 0.0]


def test_one_of_several_arrays_is_chosen_by_name():
    np.savez("x.npz", A=np.eye(2), b=np.ones(2))
    assert (read("x.npz:A").values == np.eye(2)).all()
    assert read("x.npz:b").values.shape == (2,)
    np.savez("one.npz", np.eye(3))
    assert read("one.npz").values.shape == (3, 3)
    np.save("odd.npz:b.npy", np.ones(4))
    assert read("odd.npz:b.npy").values.shape == (4,)
    for given in ("x.npz", "x.npz:C"):
        with pytest.raises(ValueError, match=r"^x.npz holds the arrays A, b. Choose one by x.npz:"):
            read(given)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_sparse_matrices_of_scipy(kind):
    A = np.diag([1.0, 0.0, 2.0])
    sparse.save_npz("x.npz", kind(A))
    found = read_matrix("x.npz").values
    assert found.format == "csc"
    assert (found.toarray() == A).all()


def test_nan_is_named_by_file_row_and_column():
    A = np.ones((5, 4))
    A[3, 2], A[4, 1] = np.nan, np.inf
    np.save("x.npy", A)
    sparse.save_npz("x.npz", sparse.csc_array(A))
    io.mmwrite("x.mtx", sparse.coo_array(A))
    for name in ("x.npy", "x.npz", "x.mtx"):
        with pytest.raises(ValueError, match=rf"^{name} .* got nan at row 3, column 2, counted"):
            read_matrix(name)
    with pytest.raises(ValueError, match="got inf at row 4, column 1"):
        read_matrix("x.npy", missing=True)
    with pytest.raises(ValueError, match="got nan at row 3, column 2"):
        read_matrix("x.npz", missing=True)
    np.save("b.npy", A[:, 2])
    with pytest.raises(ValueError, match="got nan at row 3, column 0"):
        read_targets("b.npy")
    save("x.csv", "id,a,b\nr,1,2\n\ns,3,\n")
    expected = r"got nan at row 1, column 1 \('b'\), counted from 0; line 4 of the file"
    with pytest.raises(ValueError, match=expected):
        read_matrix("x.csv")


def test_nan_is_found_in_any_block(monkeypatch):
    from conepursuit.cli import reading

    monkeypatch.setattr(reading, "BLOCK", 8)
    A = np.ones((7, 3))
    A[5, 1] = np.nan
    np.save("x.npy", A)
    with pytest.raises(ValueError, match="row 5, column 1"):
        read_matrix("x.npy")


WRONG_TABLES = {
    "": "x.csv is empty",
    "a,b\n": "has a line of names, but no numbers",
    "1,2\n3,x\n": "got 'x' on line 2, column 1 counted from 0",
    "id,a\nr,1\ns,y\n": "got 'y' on line 3, column 0",
    "b\nx\n": "got 'x' on line 2, column 0",
    "1,2\n3\n": "got 1 on line 2, and 2 on line 1",
    "1,2\n3,4\n5,6,7\n": "got 3 on line 3, and 2 on line 1",
    "a,b,c\n1,2\n": "got 3 names on line 1 and 2 columns on line 2",
    "r,1,2\ns,3,4\n": "may or may not have a header",
    "id,400,410\nr,1,2\n": "may or may not have a header",
    "1;2\n3;4\n": "looks like semicolon-separated values, perhaps with decimal commas",
    "a;b\n1,5;2,5\n": "looks like semicolon-separated values",
    "id;a\nr;1,5\n": "got 'r;1,5' on line 2. Save it with commas and decimal points",
    "a,b\n1,2\n<LOD,4\n": "got '<LOD' on line 3, column 0 counted from 0. If the first",
    "a,b\n1%,2\n3,4\n": "got '3' on line 3, column 0 counted from 0, below '1%' on line 2",
    'a,b\n,2\n"1,234",4\n5,6\n': "got '5' on line 4, column 0 counted from 0, below '1,234'",
    "a,b\n7,1,2\n8,3,4.5\n": "got '7' on line 2. If its commas are decimal ones",
    "a,b\n1,1,2\n2,3,4\n4,5,6\n": "one name fewer in its header than columns",
    "a,b\nr,1,2\n2,3,4\n": "got '2' on line 3",
    "y\n1,5\n": "got '1' on line 2. If its commas are decimal ones",
    "400,410,420\n1,5,2\n": "400, 410, 420, ..., are equally spaced. Use --header or --no-header",
    "420,410,400\n1,,2\n": "Use --header or --no-header",
    "a,b\n1,5\n2,7\n3,6\n": "row names: the numbers in its first column, 1, 2, 3, ...,",
    "a,b\n0.3,5\n0.2,7\n0.1,6\n": "Use --row-names or --no-row-names",
    "1,<LOD,3\n4,5,6\n": "line 1 holds text, '<LOD', and numbers, 1. Use --header",
    ",5,3,4\n4,5,6,7\n": "the first cell is empty, and the rest of its line are numbers",
    ",b\nr,1,2\n": "got 1 names on line 1 and 2 columns on line 2",
    "1,x\n": "got 'x' on line 1, column 1",
}


@pytest.mark.parametrize("text", WRONG_TABLES)
def test_what_is_no_table_of_numbers(text):
    with pytest.raises(ValueError, match=r"^x\.csv ") as error:
        read(save("x.csv", text))
    assert WRONG_TABLES[text] in str(error.value)


def test_what_is_no_text():
    with open("x.csv", "wb") as file:
        file.write(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(ValueError, match=r"x.csv is not a table of text in UTF-8"):
        read("x.csv")


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.mtx"])
@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04nonsense", b"\x93NUMPY\x01"])
def test_damaged_files(name, content):
    with open(name, "wb") as file:
        file.write(content)
    with pytest.raises(ValueError, match=rf"{name} is not a .* file, or is damaged"):
        read(name)


def test_what_holds_no_real_numbers():
    np.save("x.npy", np.ones(3, dtype=complex))
    with pytest.raises(ValueError, match=r"x.npy must hold real numbers; got dtype complex128"):
        read("x.npy")
    np.save("x.npy", np.array(["a", "b"]))
    with pytest.raises(ValueError, match=r"x.npy must hold real numbers; got dtype <U1"):
        read("x.npy")
    np.save("x.npy", np.array([None]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"x.npy is not a .npy file, or is damaged"):
        read("x.npy")
    for empty in (np.ones((0, 3)), np.ones((3, 0)), np.float64(1.0)):
        np.save("x.npy", empty)
        with pytest.raises(ValueError, match=r"x.npy holds no numbers"):
            read("x.npy")
    np.savez("x.npz")
    with pytest.raises(ValueError, match=r"x.npz holds the arrays none"):
        read("x.npz")


def test_what_is_no_file_that_can_be_read(tmp_path):
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(ValueError, match=r"folder.npy must be a file, .*; it is a folder"):
        read("folder.npy")
    with pytest.raises(ValueError, match=r"x.dat.gz must be a file with the suffix .*'.dat'"):
        read(save("x.dat.gz", "1 2"))
    with pytest.raises(ValueError, match=r"no.npz: there is no such file"):
        read("no.npz:A")


def test_weights_of_other_atoms_are_not_audited(capsys):
    save("A.csv", "a,b\n1,0\n0,1\n")
    save("b.csv", "1\n2\n")
    for names, expected in (("ab", 0), ("01", 0), ("ac", 2), ("ba", 1)):
        save("x.csv", f"atom,weight\n{names[0]},1\n{names[1]},2\n")
        assert main(["solve", "A.csv", "b.csv", "--certify", "x.csv"]) == expected
    assert "the names of atoms in x.csv must be those of A.csv" in capsys.readouterr().err


def test_weights_in_json_of_another_problem_are_not_audited(capsys):
    np.save("A.npy", np.eye(3))
    np.save("b.npy", np.ones(3))
    np.save("B.npy", np.ones((3, 2)))
    main(["solve", "A.npy", "B.npy", "--out", "x.json"])
    assert main(["solve", "A.npy", "b.npy", "--certify", "x.json"]) == 2
    save("x.json", "[1, 2]")
    assert main(["solve", "A.npy", "b.npy", "--certify", "x.json"]) == 2
    assert capsys.readouterr().err.count("x.json is not what conepursuit solve --out wrote") == 2


def test_json_and_csv_keep_every_digit():
    numbers = np.random.default_rng(0).standard_normal(100) * 10.0 ** np.arange(-150, 150, 3)
    write_json(Path("x.json"), {"x": numbers.tolist(), "gap": float("inf"), "name": "Rätsch"})
    with open("x.json", encoding="utf-8") as file:
        found = json.load(file)
    assert found == {"x": numbers.tolist(), "gap": None, "name": "Rätsch"}
    write_csv(Path("x.csv"), ["x, y", "é"], ([i, x] for i, x in enumerate(numbers.tolist())))
    with open("x.csv", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["x, y", "é"]
    assert [float(x) for _, x in rows] == numbers.tolist()


WRITERS = {
    "x.json": lambda path: write_json(path, {"new": 1}),
    "x.csv": lambda path: write_csv(path, ["new"], [[1]]),
    "x.npy": lambda path: write_npy(path, np.ones(3)),
}


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_whole_or_as_it_was(name, error, tmp_path, monkeypatch):
    path = tmp_path / name
    path.write_text("old")

    def fail(*arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(type(error)):
            WRITERS[name](path)
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == [name]
    WRITERS[name](path)
    assert path.read_bytes() != b"old"
    assert [found.name for found in tmp_path.iterdir()] == [name]


def test_rows_that_fail_leave_no_half_of_a_table(tmp_path):
    path = tmp_path / "x.csv"

    def rows():
        yield from ([i] for i in range(10_000))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_csv(path, ["i"], rows())
    assert not list(tmp_path.iterdir())


def test_the_old_file_stands_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_what_a_killed_process_left_is_deleted_by_the_next_writer(tmp_path):
    path, left = tmp_path / "x[1].csv", [tmp_path / f".x[1].csv.{i}.part" for i in (1, 2)]
    other = tmp_path / ".xx.csv.1.part"
    for part in (*left, other):
        part.write_text("half")
    for part in (left[0], other):
        os.utime(part, (1e9, 1e9))
    write_csv(path, ["a"], [[1]])
    assert sorted(tmp_path.iterdir()) == sorted([path, left[1], other])


def test_a_link_stays_one_and_permissions_are_those_of_the_user(tmp_path):
    path = tmp_path / "x"
    (tmp_path / "link").symlink_to(path)
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert path.read_text() == "new"
    usual = tmp_path / "usual"
    usual.write_text("")
    assert path.stat().st_mode == usual.stat().st_mode


def test_a_disk_that_is_full_is_one_line(capsys, monkeypatch):
    np.save("A.npy", np.eye(3))
    np.save("b.npy", np.ones(3))

    def fail(*arguments):
        raise OSError(28, "No space left on device", "x.json")

    monkeypatch.setattr(os, "fsync", fail)
    assert main(["solve", "A.npy", "b.npy", "--out", "x.json"]) == 2
    assert capsys.readouterr().err == "conepursuit: x.json: no space left on device.\n"


def bomb(name, shape, inflated):
    """Write a .npz file with an array whose header says one size, and that inflates to another."""
    header = BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("A.npy", header.getvalue() + bytes(inflated))


def test_archives_are_measured_before_they_are_inflated(monkeypatch):
    monkeypatch.setattr(reading, "physical_memory", lambda: 2.0**20)
    monkeypatch.setattr("numpy.lib.npyio.NpzFile.__getitem__", lambda *_: pytest.fail("inflated"))
    monkeypatch.setattr(reading.sparse, "load_npz", lambda *_: pytest.fail("inflated"))
    bomb("large.npz", (1024, 1024), 2**23)
    with pytest.raises(ValueError, match=r"^large.npz holds numbers that take 0.00781 GiB, more"):
        read("large.npz")
    bomb("false.npz", (2**40, 2**20), 64)
    with pytest.raises(ValueError, match="is said to take 9223372036854775808 bytes, and has 64"):
        read("false.npz")
    sparse.save_npz("sparse.npz", sparse.csc_array(np.ones((400, 400))))
    with pytest.raises(ValueError, match=r"^sparse.npz holds numbers that take"):
        read("sparse.npz")


def hostile(kind, **parts):
    """Write a sparse .npz file with some of its arrays changed."""
    A = sparse.random_array((60, 60), density=0.3, rng=np.random.default_rng(0))
    sparse.save_npz("x.npz", sparse.coo_array(A).asformat(kind))
    with np.load("x.npz") as file:
        held = {key: value.copy() for key, value in file.items()}
    for name, change in parts.items():
        held[name] = change(held[name])
    np.savez("x.npz", **held)


def test_sparse_targets_that_no_memory_holds_are_named():
    for shape in ((2**62, 2), (2, 2**40)):
        hostile(
            "coo",
            shape=lambda _, shape=shape: np.array(shape),
            row=lambda i: 0 * i,
            col=lambda i: 0 * i,
        )
        with pytest.raises(ValueError, match=r"^x.npz (is not a|takes more memory)"):
            read_targets("x.npz")


def far(indices):
    return np.where(np.arange(len(indices)) % 7 == 3, 10**6, indices)


HOSTILE = {
    "csr indices": ("csr", {"indices": far}),
    "csc indices": ("csc", {"indices": far}),
    "csc indptr": ("csc", {"indptr": far}),
    "csr last of indptr": ("csr", {"indptr": lambda ends: np.append(ends[:-1], -1)}),
    "bsr indices": ("bsr", {"indices": lambda indices: indices - 3}),
    "coo row": ("coo", {"row": far}),
    "no format": ("csr", {"format": lambda given: np.array(3)}),
    "another format": ("csr", {"format": lambda given: np.array("lil")}),
    "shape": ("csr", {"shape": lambda shape: -shape}),
    "shape of text": ("csr", {"shape": lambda shape: np.array("ab")}),
    "few data": ("csr", {"data": lambda data: data[:5]}),
}


@pytest.mark.parametrize("command", ["solve", "factorize"])
@pytest.mark.parametrize("damage", HOSTILE)
def test_sparse_files_with_wrong_indices_are_refused(damage, command, capfd):
    kind, parts = HOSTILE[damage]
    hostile(kind, **parts)
    save("b.csv", "1\n" * 60)
    arguments = ["x.npz", "b.csv"] if command == "solve" else ["x.npz", "--components", "2"]
    assert main([command, *arguments]) == 2
    error = capfd.readouterr().err
    assert error.startswith("conepursuit: x.npz is")
    assert error.count("\n") == 1


CLAIMS = {
    "a dense .mtx": ("x.mtx", b"%%MatrixMarket matrix array real general\n100000 100000\n1\n2\n"),
    "a sparse .mtx": (
        "x.mtx", b"%%MatrixMarket matrix coordinate real general\n9 9 1000000000000\n1 1 2\n",
    ),
    "a .mtx of 10^30 rows": (
        "x.mtx", b"%%MatrixMarket matrix array real general\n" + b"1" * 30 + b" 1\n1\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["", *COMPRESSED])
@pytest.mark.parametrize("claim", CLAIMS)
def test_what_a_file_claims_is_held_against_its_size(claim, suffix, capfd):
    name, content = CLAIMS[claim]
    Path(name).write_bytes(content)
    given = compress(name, suffix) if suffix else name
    with pytest.raises(ValueError, match=f"^{given} is not a Matrix Market file, or is damaged"):
        read(given)
    assert not any(capfd.readouterr())


@pytest.mark.parametrize("shape", [(-1, 2), (2, -1), (-2, -3), (10**9, 10**9), (10**30,)])
@pytest.mark.parametrize("suffix", ["", *COMPRESSED])
def test_shapes_of_npy_that_cannot_be_are_refused(shape, suffix):
    with open("x.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(48))
    given = compress("x.npy", suffix) if suffix else "x.npy"
    with pytest.raises(ValueError, match=f"^{given} is not a .npy file, or is damaged"):
        read(given)


def test_control_characters_of_names_are_not_printed(capsys):
    wild = "\x1b[31mred", "\x9b2J", "\u202eoak"
    save("A.csv", f"id,{','.join(wild)}\nr,1,0,1\ns,0,1,2\nt\x1b,1,1,0\n")
    save("b.csv", "id,w\nr,1\ns,2\nt\x1b,1\n")
    save("c.csv", "id,w\x1b[2J\nr,1\ns,2\nt\x1b,1\x1b\n")
    save("d.csv", "id,w\nr,1\ns,2\nu\x1b,1\n")
    save("\x1b[31m.csv", "id,w\nt\x1b,1\ns,2\nr,1\n")
    for arguments, code in (
        (["A.csv", "b.csv"], 0), (["A.csv", "c.csv"], 2), (["A.csv", "d.csv"], 2),
        (["A.csv", "\x1b[31m.csv"], 0), (["A.csv", "b.csv", "--certify", "\x1b.csv"], 2),
        (["A.csv", "b.csv", "--out", "\x1b.json"], 0),
        (["A.csv", "b.csv", "--certify", "\x1b.json"], 0),
    ):  # fmt: skip
        assert main(["solve", *arguments]) == code
        printed = "".join(capsys.readouterr())
        assert all(c.isprintable() or c == "\n" for c in printed)
    assert main(["factorize", "A.csv", "--components", "1", "--out", "\x1b"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert json.loads(Path("\x1b.json").read_text())["atoms"] == list(wild)  # files keep them


@pytest.mark.parametrize("end", [b"1.5E", b"1.5\0", b"8\0\0\xff2724E-1\n1\n1\n1\n", b"1\n1\n1.5E"])
@pytest.mark.parametrize("suffix", ["", *COMPRESSED])
def test_matrix_market_files_at_which_scipy_crashes(end, suffix):
    Path("x.mtx").write_bytes(b"%%MatrixMarket matrix array real general\n2 2\n" + end)
    given = compress("x.mtx", suffix) if suffix else "x.mtx"
    with pytest.raises(ValueError, match=f"^{given} is not a Matrix Market file, or is damaged"):
        read(given)


@pytest.mark.parametrize("at", ["start", "end"])
def test_a_large_matrix_market_file_that_is_damaged_ends_in_one_error(at):
    # SciPy aborts if it cannot go back in a file of which it has read a part
    lines = ["1.5"] * 10**6
    lines[0 if at == "start" else -1] = "x"
    save("x.mtx", "%%MatrixMarket matrix array real general\n1000 1000\n" + "\n".join(lines))
    with pytest.raises(
        ValueError, match=r"^x.mtx is not a Matrix Market file, or is damaged: Line"
    ):
        read("x.mtx")


def test_targets_of_audited_weights_are_matched_by_name(capsys):
    save("A.csv", "id,iron,ash\nr,1,2\ns,3,1\nt,1,1\n")
    save("B.csv", "id,u,v\nr,1,4\ns,3,2\nt,1,2\n")  # iron alone, and twice ash
    save("x.csv", "atom,v,u\nash,2,0\niron,0,1\n")
    assert main(["solve", "A.csv", "B.csv", "--certify", "x.csv"]) == 0
    save("x.csv", "atom,u,v\nash,2,0\niron,0,1\n")
    assert main(["solve", "A.csv", "B.csv", "--certify", "x.csv"]) == 1
    assert "not a solution for 2 of 2 targets" in capsys.readouterr().err
