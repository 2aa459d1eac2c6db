"""scikit-learn's checks of data, after our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.utils.validation import check_array, validate_data

from conepursuit.arrays import check_stored


def validated(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """Return what scikit-learn's `validate_data` does, of a sparse X whose indices are right."""
    check_stored(X, "X")
    with floats_held("X" if not y else "X and y"):
        return validate_data(estimator, X, *y, **options)


def checked_array(array: Any, name: str, **options: Any) -> Any:
    """Return what scikit-learn's `check_array` does, of a sparse array whose indices are right."""
    check_stored(array, name)
    with floats_held(name):
        return check_array(array, input_name=name, **options)


@contextmanager
def floats_held(name: str) -> Iterator[None]:
    """Raise a ValueError for an integer of Python that is larger than every float."""
    try:
        yield
    except OverflowError:
        raise ValueError(
            f"{name} must hold numbers below 1.8e308; got an integer that no float64 holds."
        ) from None
