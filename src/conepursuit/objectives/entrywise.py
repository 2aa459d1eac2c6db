"""Losses that are sums over entries, ``f(x) = sum_i w_i l(x_i, y_i)``, with weights and a mask."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from conepursuit.arrays import EPS, Array, Vector, as_real_array, inner, inside, overlap
from conepursuit.atoms.base import Atoms
from conepursuit.labels import aligned, column_labels, row_labels
from conepursuit.linear import is_dask, weighted_squares
from conepursuit.objectives.base import LARGEST_SCALE, Objective, as_target
from conepursuit.objectives.lazy import LazyLoss


class EntrywiseLoss(Objective):
    """f(x) = sum_i w_i l(x_i, y_i) for a convex loss l of one number.

    A subclass has `losses`, `slopes`, `curvatures` and `excesses`, each on all entries at once;
    value, gradient, Hessian, conjugate and proven gaps follow. It also has `options` if it takes a
    parameter, and `smoothness` if that is known.

    Parameters
    ----------
    y : array_like
        The data, of any shape. Of a Dask array (m, n_targets) a loss is made that `nnfit` takes.
    weights : array_like, optional
        A weight w_i >= 0 for each entry, or an array that broadcasts to the shape of y, such as one
        weight for each row. An entry of weight 0 does not count.
    mask : array_like of bool, optional
        True for the entries to leave out, as in `numpy.ma`. They may be NaN.
    """

    unused = 0.0
    """The value that replaces the data of entries that do not count."""

    constants: Array | None = None
    """Constants that are added to the losses of the entries; None if there are none."""

    bounded_slopes = False
    """Whether no slope exceeds a bound, so that data of any size are safe."""

    may_recede = False
    """Whether some data leave f without a minimiser; see `recedes`."""

    def __new__(cls, y: Any = None, *parameters: Any, **options: Any) -> Any:
        if type(y) is not np.ndarray and is_dask(inside(y)):
            return LazyLoss(cls, y, *parameters, **options)
        return super().__new__(cls)

    def __init__(self, y: Any, *, weights: Any = None, mask: Any = None) -> None:
        self.y, self.weights = observed(y, weights, mask, self.unused)
        self.shape = tuple(self.y.shape)
        self.row_labels, self.column_labels = row_labels(y), column_labels(y)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape})"

    def options(self) -> dict[str, Any]:
        """Return the parameters of the loss beyond y, weights and mask."""
        return {}

    def column(self, i: int) -> EntrywiseLoss:
        """Return the loss of one column of y."""
        weights = None if self.weights is None else self.weights[:, i]
        return type(self)(self.y[:, i], weights=weights, **self.options())

    @abstractmethod
    def losses(self, x: Array) -> Array:
        """Return l(x_i, y_i) for every entry, inf outside the domain."""

    @abstractmethod
    def slopes(self, x: Array) -> Array:
        """Return l'(x_i, y_i) for every entry."""

    @abstractmethod
    def curvatures(self, x: Array) -> Array:
        """Return l''(x_i, y_i) for every entry."""

    @abstractmethod
    def excesses(self, x: Array, v: Array) -> Array:
        """Return l(x_i) + l*(v_i) - v_i x_i >= 0, which is zero at v_i = l'(x_i)."""

    def anchor(self) -> Array:
        """Return some x at which the losses are finite, to make the conjugate from excesses."""
        return self.y

    def least_intercept(self) -> float:
        """Return the least intercept that a `FreeIntercept` may have, whatever x is."""
        return -inf

    def lowest_shift(self, x: Array) -> float:
        """Return the b below which x + b leaves the domain."""
        return -inf

    def typical_shift(self, x: Array) -> float:
        """Return a first guess of the b that minimises f(x + b)."""
        return float(np.median((self.y - x)[self.counted]))

    def value(self, x: Array) -> float:
        return self._sum(self.losses(x))

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slopes = self.slopes(x)
        return self.value(x), self.weighted(slopes)

    def sizes(self, x: Array) -> Array:
        """Return the sum of the absolute terms of each loss and its slope times x.

        The rounding of a loss is a few units in the last place of this, even where terms cancel.
        """
        span: Array = np.abs(x) + np.abs(self.y)
        return span * span

    def steepest_bend(self, x: Array, drift: Array) -> Array:
        """Return how much l bends within the drift of x, inf where that leaves the domain.

        The bend is a number c so that l is at most c drift^2 above its tangent at x. As l is
        convex, l is above its tangent by at most the drift times the change of l' over it.
        """
        if self.smoothness is not None and self.smoothness < inf:
            return np.full(self.shape, self.smoothness / self.largest_weight)
        here, far = self.slopes(x), 2.0 * drift + EPS * np.abs(x)
        ahead, behind = self.slopes(x + far), self.slopes(x - far)
        change = np.maximum(ahead - here, here - behind) + 8 * EPS * np.abs(here)
        return np.where(np.isfinite(change), change / drift, inf)

    def gap_rounding(
        self, x: Array, value: float, size: Array | float, drift: Array | float
    ) -> float:
        total = 16 * EPS * (self._sum(self.sizes(x)) + abs(value))
        if isinstance(drift, float) and drift == 0.0:
            return total
        entries = np.full(self.shape, drift) if isinstance(drift, float) else drift
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bends = np.where(entries > 0, self.steepest_bend(x, entries) * entries**2, 0.0)
        return total + 2 * overlap(size, drift) + self._sum(bends)

    def stiffness(self, x: Array) -> Array:
        """Return the diagonal of the Hessian in models of f, which may be raised a little."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self.weighted(self.curvatures(x))

    def curvature(self, x: Array, d: Array) -> float:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return inner(self.weighted(self.curvatures(x)) * d, d)

    def hessian(self, x: Array) -> Callable[[Array], Array]:
        diagonal = self.stiffness(x)
        return lambda d: diagonal * d

    def model(self, x: Array, atoms: Atoms, others: Atoms) -> Array:
        return atoms.weighted_gram(self.stiffness(x), others)

    def curvatures_along(self, x: Array, matrix: Any) -> Array:
        return weighted_squares(matrix, self.stiffness(x))

    def admissible(self, u: Array, level: float) -> Array:
        return self.weighted(self.nearest_slopes(self._shares(u), level))

    def nearest_slopes(self, v: Array, level: float) -> Array:
        """Return v inside the domain of the conjugate; entries below `level` may become zero."""
        return v

    def conjugate(self, u: Array) -> float:
        v, anchor = self.per_weight(u), self.anchor()
        if v is None:
            return inf
        return self._sum(self.excesses(anchor, v) - self.losses(anchor)) + inner(u, anchor)

    def duality_gap(
        self, x: Array, value: float, gradient: Array, tilt: Array | None, largest: float
    ) -> float | None:
        """Return a small f(x) + f*(s q) over 0 <= s <= largest, q = gradient + tilt.

        Notes
        -----
        It is ``s <q, x> + sum_i w_i excess_i(s q_i / w_i)``, in which nothing cancels. Tried are
        s = 1, or the largest allowed, and the minimiser of the quadratic model about 1, in which
        the inverse Hessian stands for the curvature of f*.
        """
        q = gradient if tilt is None else gradient + tilt
        v = self.per_weight(q)
        if v is None:
            return None
        qx, most = inner(q, x), min(largest, self.largest_multiple(v), LARGEST_SCALE)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shares = np.where(v == 0, 0.0, v * v / self.curvatures(x))
        square = self._sum(shares)
        trials = {min(1.0, most)}
        if 0 < square < inf:
            trials.add(min(max(1.0 - qx / square, 0.0), most))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            gap = min(s * qx + self._sum(self.excesses(x, s * v)) for s in trials)
        return gap if gap < inf else None

    def largest_multiple(self, v: Array) -> float:
        """Return the largest s for which s v may lie in the domain of the conjugate."""
        return inf

    def _sum(self, terms: Array) -> float:
        return float(self.weighted(terms).sum())

    def weighted(self, terms: Array) -> Array:
        """Return w_i times the terms, zero where w_i is, whatever the term."""
        if self.weights is None:
            return terms
        out: Array = np.zeros(terms.shape)
        return np.multiply(self.weights, terms, out=out, where=self.weights > 0)

    def per_weight(self, u: Array) -> Array | None:
        """Return u / w; None if u is not zero where w is, so that f*(u) is infinite."""
        outside = self.weights is not None and u[self.weights == 0].any()
        return None if outside else self._shares(u)

    def _shares(self, u: Array) -> Array:
        """Return u / w, zero where w is."""
        if self.weights is None:
            return u
        return np.divide(u, self.weights, out=np.zeros_like(u), where=self.weights > 0)

    @property
    def counted(self) -> Array:
        """Which entries count, an array of bool."""
        if self.weights is None:
            return np.ones(self.shape, dtype=bool)
        counted: Array = self.weights > 0
        return counted

    @property
    def largest_weight(self) -> float:
        """The largest weight of an entry."""
        return 1.0 if self.weights is None else float(self.weights.max())


def observed(y: Any, weights: Any, mask: Any, unused: float) -> tuple[Array, Vector | None]:
    """Return the data, `unused` where they do not count, and the weights of the entries.

    The weights are None if all of them are one.
    """
    if weights is None and mask is None:
        return as_target(y), None
    rows, data = row_labels(y), as_real_array(y, "y").astype(np.float64, copy=False)
    weights, mask = aligned(weights, rows, "weights", "y"), aligned(mask, rows, "mask", "y")
    full = np.ones(data.shape) if weights is None else _broadcast(weights, data, "weights")
    wrong = ~(np.isfinite(full) & (full >= 0))
    if wrong.any():
        raise ValueError(
            f"weights must be finite and not negative; got {full[wrong][0]}. Use 0 for entries "
            "that do not count."
        )
    if mask is not None:
        full = np.where(_broadcast(_as_mask(mask), data, "mask"), 0.0, full)
    counted = full > 0
    if not counted.any():
        raise ValueError("no entry of y counts: all are masked or have weight 0.")
    return as_target(np.where(counted, data, unused)), full


def _as_mask(mask: Any) -> Array:
    given = np.asarray(mask)
    if given.dtype != np.bool_:
        raise ValueError(
            f"mask must hold booleans, True for what is left out; got dtype {given.dtype}."
        )
    return given


def _broadcast(given: Any, data: Array, name: str) -> Array:
    array = given if name == "mask" else as_real_array(given, name).astype(np.float64, copy=False)
    try:
        return np.broadcast_to(array, data.shape)
    except ValueError:
        raise ValueError(
            f"{name} must have the shape of y, {data.shape}, or one that broadcasts to it; "
            f"got {array.shape}."
        ) from None
