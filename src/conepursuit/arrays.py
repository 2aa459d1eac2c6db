"""Operations on arrays of any array-API library, and checks of arguments.

This is the only module that imports ``array_api_compat``. Data of any library are taken as NumPy
arrays; the operations work on those of other libraries where a user's own parts hand them in.
NumPy arrays take a short cut, since a call through a namespace costs more than the arithmetic on
small problems.
"""

from __future__ import annotations

import sys
from math import inf, sqrt
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array
from numpy.typing import NDArray

EPS = float(np.finfo(np.float64).eps)
"""The distance from 1 to the next float64: twice the largest relative error of one operation."""

Array: TypeAlias = NDArray[Any]
"""An array of the size of the data, such as x or a gradient, of any array-API library."""

Vector: TypeAlias = NDArray[np.float64]
"""A float64 vector of NumPy, such as the weights or the scores of the active atoms."""

quiet = np.errstate(over="ignore", divide="ignore", invalid="ignore")
"""A decorator that turns off NumPy's warnings of overflow, of division by zero and of NaN.

It is for functions that look at their numbers themselves: what overflows ends as a status, or as a
gap that is not proven.
"""


def is_number(given: Any) -> bool:
    """Return whether a parameter is a real number that a float can be; a bool is not one."""
    if isinstance(given, float):  # most are
        return True
    if not isinstance(given, Real) or isinstance(given, bool):
        return False
    try:
        float(given)
    except OverflowError:  # an integer or a fraction beyond 1.8e308
        return False
    return True


def is_integer(given: Any) -> bool:
    """Return whether a parameter is an integer; a bool is not."""
    return isinstance(given, Integral) and not isinstance(given, bool)


def inner(a: Array, b: Array) -> float:
    """Return the inner product of two arrays of one shape."""
    if type(a) is np.ndarray and type(b) is np.ndarray:
        return float(a.dot(b)) if a.ndim == 1 else float(np.vdot(a, b))
    if hasattr(a, "inner"):  # a matrix that is kept as factors
        return float(a.inner(b))
    if hasattr(b, "inner"):
        return float(b.inner(a))
    xp = array_namespace(a, b)
    return float(xp.sum(a * b))


def norm(a: Array) -> float:
    """Return the Euclidean (Frobenius) norm of an array.

    Entries of a NumPy array whose squares overflow or underflow are scaled first.
    """
    with np.errstate(over="ignore"):
        square = inner(a, a)
    if not 1e-280 < square < 1e280 and type(a) is np.ndarray:  # squares may have been lost
        largest = float(np.abs(a).max(initial=0.0))
        if 0.0 < largest < inf:
            scaled = a / largest
            return largest * sqrt(inner(scaled, scaled))
    return sqrt(max(square, 0.0))


def overlap(a: Array | float, b: Array | float) -> float:
    """Return sum_i |a_i b_i| of two NumPy arrays, otherwise the bound ||a|| ||b||.

    A number stands for an array of that norm.
    """
    if type(a) is np.ndarray and type(b) is np.ndarray:
        return float(np.abs(a).reshape(-1) @ np.abs(b).reshape(-1))
    return length(a) * length(b)


def magnitude(a: Array, b: Array | None = None) -> Array | float:
    """Return |a| + |b| for every entry of NumPy arrays, otherwise the number ||a|| + ||b||."""
    if type(a) is np.ndarray and (b is None or type(b) is np.ndarray):
        size: Array = np.abs(a)
        return size if b is None else size + np.abs(b)
    return norm(a) + (0.0 if b is None else norm(b))


def length(a: Array | float) -> float:
    """Return the norm of an array; a number stands for an array of that norm."""
    return a if isinstance(a, float) else norm(a)


def is_finite(a: Array) -> bool:
    """Return whether no entry is NaN or infinite."""
    if type(a) is np.ndarray:
        return bool(np.isfinite(a).all())
    if hasattr(a, "is_finite"):
        return bool(a.is_finite())
    xp = array_namespace(a)
    return bool(xp.all(xp.isfinite(a)))


def ones(shape: tuple[int, ...], like: Array) -> Array:
    """Return float64 ones on the device of `like`."""
    return zeros(shape, like=like) + 1.0


def zeros(shape: tuple[int, ...], like: Array | None = None) -> Array:
    """Return float64 zeros, on the device of `like` where it is given."""
    if like is None or is_numpy_array(like):
        return np.zeros(shape)
    xp = array_namespace(like)
    result: Array = xp.zeros(shape, dtype=xp.float64, device=device(like))
    return result


def is_labelled(data: Any) -> bool:
    """Return whether something has dimensions with names, as an `xarray.DataArray` has."""
    return type(data) is not np.ndarray and hasattr(data, "dims") and hasattr(data, "coords")


def inside(data: Any) -> Any:
    """Return the array in an `xarray.DataArray`, and anything else as it is."""
    return data.data if is_labelled(data) else data


def as_float_array(data: Any, name: str) -> Array:
    """Return `data` as a float64 array without NaN or infinity; integers are converted.

    Parameters
    ----------
    data : array_like
        Arrays of other libraries, tables and lists become NumPy arrays.
    name : str
        The name of `data` in error messages.
    """
    array = as_real_array(data, name).astype(np.float64, copy=False)
    if not is_finite(array):
        raise ValueError(
            f"{name} must be finite; got NaN or infinity in an array of shape "
            f"{tuple(array.shape)}. Remove or replace those entries."
        )
    return array


def as_real_array(data: Any, name: str) -> Array:
    """Return `data` as a NumPy array of real numbers.

    float32 and float64 stay as they are, other numbers become float64, and NA of pandas NaN. Masked
    and sparse data, other dtypes, and arrays that NumPy cannot read raise a ValueError.
    """
    if type(data) is np.ndarray and data.dtype.char in "fd" and _as_compiled(data):
        return data
    if isinstance(data, np.ndarray) and hasattr(data, "mask"):  # np.ma would be loaded by its name
        raise ValueError(
            f"{name} is a masked array, whose mask would be lost. Fill it, or give its data and, "
            "where there is a choice of weights, weight 0 to what is masked."
        )
    if hasattr(data, "tocsr"):
        raise ValueError(
            f"{name} is sparse, and an array is needed. Use {name}.toarray(); for a factorisation, "
            "FactoredLeastSquares and FactoredKullbackLeibler keep it as it is."
        )
    array = _as_numpy(data, name)
    if array.dtype.char in "fd":
        return array if _as_compiled(array) else array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers; got dtype {array.dtype}. Convert it to float64 first."
        )
    return array.astype(np.float64)


def _as_numpy(data: Any, name: str) -> Array:
    """Return anything array-like as a NumPy array, whatever its dtype."""
    try:
        array = np.asarray(data)
    except (TypeError, RuntimeError) as reason:
        if not is_array_api_obj(data):
            raise
        raise ValueError(
            f"{name} is a {type(data).__module__}.{type(data).__qualname__} that NumPy cannot read "
            f"({reason}). Give a NumPy array, such as tensor.detach().cpu().double().numpy()."
        ) from reason
    pandas: Any = sys.modules.get("pandas") if array.dtype == object else None
    if pandas is not None and isinstance(data, pandas.DataFrame | pandas.Series):
        kinds = data.dtypes if data.ndim == 2 else [data.dtype]
        if all(map(pandas.api.types.is_numeric_dtype, kinds)):  # they may be nullable
            array = data.to_numpy(dtype=np.float64, na_value=np.nan)
    return array


def _as_compiled(array: Array) -> bool:
    """Return whether numbers lie in memory as compiled code reads them."""
    return array.dtype.isnative and array.flags.aligned


NO_LIMIT = 2**60
"""`count` returns this for every larger number; it fits into the integers of the kernels."""


def count(number: Any, name: str) -> int:
    """Return a positive integer, at most `NO_LIMIT`; raise a ValueError for anything else."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise ValueError(f"{name} must be a positive integer; got {number!r}.")
    return min(int(number), NO_LIMIT)


def check_stored(data: Any, name: str) -> None:
    """Raise a ValueError if a sparse matrix says that entries lie outside it.

    SciPy and the kernels trust the indices of a sparse matrix, and would read and write memory that
    is not theirs. What enters the library is checked once; data that are not sparse are passed.
    """
    known = type(data) is not np.ndarray and hasattr(data, "tocsr") and hasattr(data, "format")
    wrong = _misplaced(data) if known else None
    if wrong is not None:
        raise ValueError(
            f"{name} is a damaged sparse matrix: {wrong}. Make it again from its rows, columns and "
            "entries."
        )


def _misplaced(matrix: Any) -> str | None:
    """Return in words what is wrong with where a sparse matrix stores its entries."""
    if matrix.format == "lil":
        lengths = [len(row) for row in matrix.rows]
        if len(lengths) != matrix.shape[0] or lengths != [len(row) for row in matrix.data]:
            return "it has not as many columns as entries in each row"
        columns = np.array([j for row in matrix.rows for j in row])
        return _outside(columns, matrix.shape[1], len(columns))
    if matrix.format == "coo":
        n = len(matrix.data)
        found = (_outside(i, k, n) for i, k in zip(matrix.coords, matrix.shape, strict=True))
        return next(filter(None, found), None)
    if matrix.format not in ("csr", "csc", "bsr"):
        return None  # of the others, no entry can lie outside
    rows, columns = (1, *matrix.shape)[-2:]
    if matrix.format == "bsr":
        rows, columns = rows // matrix.blocksize[0], columns // matrix.blocksize[1]
    lines, limit = (columns, rows) if matrix.format == "csc" else (rows, columns)
    ends, places = matrix.indptr, matrix.indices
    rising = ends.ndim == 1 and len(ends) == lines + 1 and ends[0] == 0 and ends[-1] <= len(places)
    if not rising or (ends[1:] < ends[:-1]).any():
        return f"its indptr must rise from 0 to at most {len(places)} in {lines} steps"
    if len(places) != len(matrix.data):
        return f"it has {len(places)} indices for {len(matrix.data)} entries"
    return _outside(places[: ends[-1]], limit, int(ends[-1]))  # what follows is not used


def _outside(indices: Array, limit: int, n: int) -> str | None:
    """Return in words which of n indices is not from 0 to below a limit."""
    if indices.shape != (n,):
        return f"it has indices of shape {indices.shape} for {n} entries"
    if not n:
        return None
    if indices.dtype.kind not in "iu":
        return f"its indices must be integers; got the type {indices.dtype}"
    largest = indices.view(indices.dtype.str.replace("i", "u")).max()  # a negative one is large
    if largest < limit:
        return None
    least = indices.min()
    return f"its indices must be from 0 to {limit - 1}; got {least if least < 0 else largest}"
