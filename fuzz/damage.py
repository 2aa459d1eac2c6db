"""Ways to damage the bytes of a file, and files that are hostile on purpose."""

from __future__ import annotations

import io
import json
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np

NUMBERS = [
    "-1", "0", "1", "-0.0", "nan", "-inf", "1e400", "1e-320", "-1e308", "1e308", "2147483648",
    "-2147483649", "4294967296", "9223372036854775807", "9223372036854775808", "1" * 400, "0x10",
    "1_0", "", "{1,2}", "[[]]", "\x1b[31m", "\uffff", "x" * 5000, "1;2", "١",
]  # fmt: skip
"""What a number in a text is replaced by."""

INTEGERS = [-1, 0, 1, 2, 255, 60000, 2**16, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63)]
"""What an integer in an array or in binary data is replaced by."""

FLOATS = [0.0, -0.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-200]

CANARY = "executed"
"""The file that a pickle writes if it is executed."""


class Payload:
    """A pickle of it runs code where it is loaded."""

    def __reduce__(self):
        return Path.write_text, (Path(CANARY), "by a pickle")


def pickled():
    """Return the bytes of a pickle that must not be executed."""
    return pickle.dumps(Payload())


def flipped(rng, data):
    """Change a few bits."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        if out:
            out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def cut(rng, data):
    """Truncate."""
    return data[: rng.integers(len(data) + 1)]


def spliced(rng, data):
    """Repeat, drop or move a part."""
    i, j, k = sorted(int(n) for n in rng.integers(len(data) + 1, size=3))
    return [data[:i] + data[j:], data[:j] + data[i:], data[:i] + data[j:k] + data[i:j] + data[k:]][
        rng.integers(3)
    ]


def overwritten(rng, data):
    """Write a run of equal or random bytes over a part."""
    i, size = int(rng.integers(len(data) + 1)), int(rng.integers(1, 64))
    run = [bytes(size), b"\xff" * size, rng.bytes(size), b"[" * size][rng.integers(4)]
    return data[:i] + run + data[i + size :]


def renumbered(rng, data):
    """Replace a number in a text, or a binary integer."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?", data[:20000]))
    if found and rng.random() < 0.7:
        match = found[rng.integers(len(found))]
        new = NUMBERS[rng.integers(len(NUMBERS))].encode()
        return data[: match.start()] + new + data[match.end() :]
    size, number = int(rng.choice([2, 4, 8])), INTEGERS[rng.integers(len(INTEGERS))]
    i = int(rng.integers(max(1, len(data) - size)))
    new = (number % 256**size).to_bytes(size, "little" if rng.random() < 0.7 else "big")
    return data[:i] + new + data[i + size :]


def early(rng, data):
    """Change bytes near the start, where headers stand."""
    head = min(len(data), 200)
    return flipped(rng, data[:head]) + data[head:]


def hostile(rng, data):
    """Return something else than the file should hold."""
    array = io.BytesIO()
    np.save(array, np.array([Payload()], dtype=object), allow_pickle=True)
    choices = [
        b"", b"\n", b"\0" * 300, pickled(), array.getvalue(), b"[" * 100_000, b'{"a":' * 20_000,
        b"PK\x03\x04" + rng.bytes(60), b"\x93NUMPY\x01\x00", b"\x1f\x8b\x08" + rng.bytes(40),
        b"CDF\x01" + rng.bytes(40), b"\x89HDF\r\n\x1a\n" + rng.bytes(200), b"II*\0" + rng.bytes(90),
        rng.bytes(int(rng.integers(1, 500))), data + data, data[::-1], "ÿþ".encode("utf-16"),
        b"1," * 50_000, b"\xef\xbb\xbf", b'"' + data, npy_header(rng),
    ]  # fmt: skip
    return choices[rng.integers(len(choices))]


def npy_header(rng):
    """Return a .npy file with a header that claims what it likes."""
    shapes = [(-1, 3), (3, -1), (-2, -3), (10**9, 10**9), (2**63,), (0,), (), (10**30, 1), (6, 4)]
    types = ["<f8", ">f8", "|O", "|V0", "<U0", "<i8", "<M8[s]", "<c16", "|b1", "<f2", "<f16"]
    head = {
        "descr": types[rng.integers(len(types))],
        "fortran_order": bool(rng.integers(2)),
        "shape": shapes[rng.integers(len(shapes))],
    }
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, head)
    return out.getvalue() + bytes(192)


WAYS = [flipped, early, cut, spliced, overwritten, renumbered, renumbered, hostile]


def damaged(rng, data):
    """Return the bytes of a file, damaged in one way or two."""
    for _ in range(int(rng.integers(1, 3))):
        data = WAYS[rng.integers(len(WAYS))](rng, data)
    return data


def damaged_archive(rng, data):
    """Return a .npz file in which an array has other entries, another shape or type, or is lost."""
    if rng.random() < 0.4:
        return damaged(rng, data)
    with np.load(io.BytesIO(data)) as file:
        arrays = dict(file)
    names = sorted(arrays)
    for _ in range(int(rng.integers(1, 3))):
        name = names[rng.integers(len(names))]
        if name in arrays:
            changed = damaged_array(rng, arrays[name])
            arrays = {**arrays, name: changed} if changed is not None else _less(arrays, name)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, value in arrays.items():
            member = io.BytesIO()
            np.save(member, value, allow_pickle=True)
            content = member.getvalue() if rng.random() < 0.95 else damaged(rng, member.getvalue())
            file.writestr(f"{name}.npy", content)
    return out.getvalue()


def _less(arrays, name):
    return {key: value for key, value in arrays.items() if key != name}


def damaged_array(rng, given):
    """Return an array with something wrong; None to leave it out."""
    way, array = int(rng.integers(9)), np.array(given)
    if way == 0:
        return None
    if way == 1:
        return np.array([Payload()], dtype=object)
    if way == 2 and array.dtype.kind in "iufb":
        return array.astype([np.float32, np.int8, "U8", complex, np.uint64, ">i4"][rng.integers(6)])
    if way == 3:
        return array.reshape(-1)[: rng.integers(array.size + 1)]
    if way == 4:
        return array[None] if rng.random() < 0.5 else np.array(NUMBERS[rng.integers(len(NUMBERS))])
    if array.size and array.dtype.kind in "iuf":
        flat = array.reshape(-1)
        if array.dtype.kind == "i":
            flat = flat.astype(np.int64)
        choices = FLOATS if array.dtype.kind == "f" else INTEGERS
        for _ in range(int(rng.integers(1, 4))):
            with np.errstate(all="ignore"):
                new = np.asarray(choices[rng.integers(len(choices))]).astype(flat.dtype)
            flat[rng.integers(flat.size)] = new
        return flat.reshape(array.shape)
    return np.array(b"csr" if rng.random() < 0.5 else "lil")


def damaged_json(rng, data):
    """Return JSON in which a part is replaced by something of another kind."""
    if rng.random() < 0.3:
        return damaged(rng, data)
    content = json.loads(data)
    for _ in range(int(rng.integers(1, 4))):
        _replace(rng, content)
    return json.dumps(content).encode()


def _replace(rng, content):
    """Replace one value somewhere inside nested lists and dicts."""
    here = content
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        if isinstance(here[key], dict | list) and rng.random() < 0.7:
            here = here[key]
            continue
        others = [None, -1, 0, 10**9, 10**400, 1e308, float("nan"), "x", "\x1b[31m", [], {}, True,
                  [1], {"a": 1}, [[]], "1" * 5000]  # fmt: skip
        here[key] = others[rng.integers(len(others))]
        return
