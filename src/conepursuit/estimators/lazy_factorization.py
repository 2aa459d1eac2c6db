"""What `GreedyNMF` asks of a Dask array, and what it refuses."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import validate_data

from conepursuit.arrays import inside
from conepursuit.estimators.greedy import RULES
from conepursuit.matrix_fits.lazy import whole_targets


def lazy_matrix(model: Any, X: Any, *, reset: bool) -> Any:
    """Return X as a Dask array with one chunk along its columns, or raise a ValueError.

    With `reset` the number of its features is noted in the model, else compared with that.
    """
    matrix = inside(X)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            "X must be a matrix with at least one row and one column; got a Dask array of shape "
            f"{matrix.shape}."
        )
    matrix = whole_targets(matrix, 1, "X")
    validate_data(model, matrix, reset=reset, skip_check_array=True)
    return matrix


def refuse_lazy(model: Any, divergence: bool, entry_weight: Any) -> None:
    """Raise a ValueError if the parameters of a GreedyNMF ask for what needs X in memory."""
    refuse_weights(entry_weight)
    rank = model.n_components
    if rank in RULES:
        raise ValueError(
            f"n_components={rank!r} needs X in memory, and X is a Dask array. Let a sample of its "
            f"rows choose: GreedyNMF({rank!r}).fit(X[:10_000].compute()).n_components_."
        )
    if model.oracle_rounds:
        raise ValueError(
            "the proof of the oracle's accuracy needs X in memory, and X is a Dask array. Use "
            f"oracle_rounds=0; got {model.oracle_rounds}."
        )
    if model.correction == "gcd":
        raise ValueError('correction="gcd" is not for a Dask array. Use "auto".')
    if divergence and (model.path or model.correction is None or model.alpha_W or model.alpha_H):
        raise ValueError(
            'with loss="kullback_leibler" a Dask array is fitted at one rank, with corrections and '
            f"without penalties; got path={model.path!r}, correction={model.correction!r}, "
            f"alpha_W={model.alpha_W!r} and alpha_H={model.alpha_H!r}. Use the defaults, or "
            'loss="squared_error".'
        )


def refuse_weights(entry_weight: Any) -> None:
    """Raise a ValueError if entries of a Dask array have weights."""
    if entry_weight is not None:
        raise ValueError(
            "entry_weight is not supported where X is a Dask array. Use NaN in X for entries that "
            "are missing."
        )
