"""Names of rows and columns that tables carry: those of pandas, of xarray and of polars.

No such library is imported here: a program that has a table has imported its library already.
Labels of pandas and xarray are a ``pandas.Index``, whose methods do the work.
"""

from __future__ import annotations

import sys
from typing import Any

MOST_NAMED = 3
"""Up to this many labels are listed in a message."""


def row_labels(data: Any) -> Any:
    """Return the labels of the rows of a table or a vector, None if it has none.

    >>> import pandas as pd
    >>> row_labels(pd.Series([1.0, 2.0], index=["a", "b"])).tolist()
    ['a', 'b']
    """
    if _is_a(data, "pandas", "DataFrame", "Series"):
        return data.index
    return _coordinate(data, 0)


def column_labels(data: Any) -> Any:
    """Return the labels of the columns of a table, None if it has none or is a vector."""
    if _is_a(data, "pandas", "DataFrame") or _is_a(data, "polars", "DataFrame"):
        return data.columns
    return _coordinate(data, 1)


def aligned(data: Any, labels: Any, name: str, to: str) -> Any:
    """Return `data` with its rows in the order of `labels`, which are the row labels of `to`.

    Data or `labels` without labels correspond by position. Labels that differ, and labels that
    occur twice and stand in another order, raise a ValueError. Data of another length are left as
    they are where the labels on both sides only count the rows.

    >>> import pandas as pd
    >>> b = pd.Series([1.0, 2.0], index=["u", "v"])
    >>> aligned(b, pd.Index(["v", "u"]), "b", "A").tolist()
    [2.0, 1.0]
    """
    order = order_of(row_labels(data), labels, name, to)
    if order is None:
        return data
    return data.iloc[order] if hasattr(data, "iloc") else data[order]


def order_of(own: Any, labels: Any, name: str, to: str) -> Any:
    """Return where each of `labels`, those of `to`, is among the labels `own` of `name`.

    It is None where rows correspond by position. Labels that do not match raise a ValueError; see
    `aligned`.
    """
    if own is None or labels is None or own.equals(labels):
        return None
    if len(own) != len(labels) and all(_is_a(one, "pandas", "RangeIndex") for one in (own, labels)):
        return None
    advice = (
        f"Give {name} the row labels of {to}, or an array without labels, such as "
        f"np.asarray({name}), where the rows correspond by position."
    )
    unknown, missing = (one[~one.isin(other)] for one, other in ((own, labels), (labels, own)))
    if len(unknown) or len(missing):
        found = [f"{name} has {_listed(unknown)}, which {to} has not"] * bool(len(unknown))
        found += [f"{to} has {_listed(missing)}, which {name} has not"] * bool(len(missing))
        raise ValueError(f"the row labels of {name} and {to} differ: {'; '.join(found)}. {advice}")
    if not (own.is_unique and labels.is_unique):
        twice = own[own.duplicated()] if own.has_duplicates else labels[labels.duplicated()]
        raise ValueError(
            f"the rows of {name} and {to} are in different orders, or not as many, and cannot be "
            f"matched, since {_listed(twice.unique())} occurs more than once. {advice}"
        )
    return own.get_indexer(labels)


def check_dimensions(data: Any, matrix: Any, name: str, to: str) -> None:
    """Raise a ValueError if the rows of an xarray matrix are another dimension of the data."""
    if _is_a(data, "xarray", "DataArray") and _is_a(matrix, "xarray", "DataArray"):
        rows = matrix.dims[0]
        if data.ndim and data.dims[0] != rows and rows in data.dims:
            raise ValueError(
                f"the rows of {to} are its dimension {rows!r}, which comes later in {name}, with "
                f"dimensions {data.dims}. Use {name}.transpose({rows!r}, ...)."
            )


def _is_a(data: Any, module: str, *names: str) -> bool:
    """Return whether something is of one of the named classes of a module, if it is loaded."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(
        data, tuple(getattr(loaded, name) for name in names if hasattr(loaded, name))
    )


def _coordinate(data: Any, axis: int) -> Any:
    """Return the labels of an axis of an xarray DataArray, None where it has none."""
    if not _is_a(data, "xarray", "DataArray") or data.ndim <= axis:
        return None
    return data.indexes.get(data.dims[axis])


def _listed(labels: Any) -> str:
    """Return the first labels as text."""
    more = f" and {len(labels) - MOST_NAMED} more" if len(labels) > MOST_NAMED else ""
    return ", ".join(repr(label) for label in labels[:MOST_NAMED].tolist()) + more
