"""Atoms of a factorisation whose data lie in blocks: the oracle of `atoms/power`, by passes.

A step of a Lanczos run, or a round of the power method, is one pass, and one pass makes the steps
of both runs. The vectors for columns are on this machine, those for rows stay in the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array, Vector
from conepursuit.atoms.power import (
    GAIN,
    RAISED,
    ROUNDS,
    SETTLED,
    STEPS,
    Bounds,
    nonnegative_units,
    unit,
)
from conepursuit.factorization import lazy_rows
from conepursuit.factorization.lazy_rows import Largest, RowBlocks, RowFactor, Sums, tile_of, tiles
from conepursuit.factorization.losses import Found
from conepursuit.low_rank import FactoredMatrix


@dataclass(frozen=True)
class Residual:
    """R = X - F'G, with rows in blocks, and 0 where an entry is missing; never formed as a whole.

    Attributes
    ----------
    rows : RowBlocks
        The data.
    first : RowFactor
        F.
    second : array of shape (k, n)
        G.
    kind : type
        The dtype of products with the data.
    scale : float
        What the data are divided by.
    missing : bool
        Whether an entry is NaN.
    """

    rows: RowBlocks
    first: RowFactor
    second: Array
    kind: Any
    scale: float
    missing: bool

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the data."""
        return self.rows.shape

    def work(self, **asked: Any) -> Any:
        """Return what is done with each block; see `_block`."""
        return partial(
            _block, scale=self.first.scale, G=self.second, kind=self.kind, unit=self.scale,
            missing=self.missing, **asked,
        )  # fmt: skip

    def sums(self, **asked: Any) -> Sums:
        """Return what is asked, by one pass."""
        return self.rows.sums(self.work(**asked), self.first)


class Lanczos:
    """A short Lanczos run for the largest eigenvalue of M'M, whose products come from outside.

    It does what `leading_pair` does, without the left vectors: these would need a pass of their
    own at each step.

    Attributes
    ----------
    vector : array of shape (n,)
        What M'M is to be multiplied with next.
    done : bool
        Whether the run has ended.
    value, residual : float
        Some singular value of M is within `residual` of `value`, which is at most the largest.
    right : array of shape (n,)
        The right singular vector.
    """

    def __init__(self, start: Vector, steps: int) -> None:
        self.vector, self.left, self.done = unit(start), steps, False
        self.basis: list[Vector] = []
        self.diagonal: list[float] = []
        self.beside: list[float] = []
        self.value, self.residual, self.right = 0.0, 0.0, self.vector

    def advance(self, product: Vector) -> None:
        """Make a step with M'M times `vector`."""
        self.basis.append(self.vector)
        self.diagonal.append(float(self.vector @ product))
        basis = np.array(self.basis)
        for _ in range(2):
            product = product - basis.T @ (basis @ product)
        beyond = float(np.linalg.norm(product))
        matrix = np.diag(self.diagonal) + np.diag(self.beside, 1) + np.diag(self.beside, -1)
        values, vectors = np.linalg.eigh(matrix)
        self.value = float(np.sqrt(max(values[-1], 0.0)))
        self.right = vectors[:, -1] @ basis
        tail = beyond * abs(float(vectors[-1, -1]))
        self.residual = tail / self.value if self.value > 0 else 0.0
        self.left -= 1
        exhausted = beyond <= 1e-12 * values[-1]
        self.done = self.residual <= SETTLED * self.value or exhausted or not self.left
        if not self.done:
            self.beside.append(beyond)
            self.vector = product / beyond


def residual_pairs(
    R: Residual, count: int, extra: Array | None, stored: Any
) -> tuple[list[Found], Bounds]:
    """Return atoms u v' of large u'Rv, and bounds on it, as `nonnegative_pairs` does.

    Parameters
    ----------
    R : Residual
        The matrix.
    count : int
        How many atoms.
    extra : array, optional
        One more start for v.
    stored : type
        The dtype in which the blocks keep u.
    """
    n = R.shape[1]
    steps = min(STEPS, *R.shape)
    top = Lanczos(np.random.default_rng(0).standard_normal(n), steps)
    perron, heavy = Lanczos(np.ones(n), steps), np.zeros(n)
    while not (top.done and perron.done):
        asked = {"signed": top.vector} if not top.done else {}
        asked |= {"positive": perron.vector} if not perron.done else {}
        sums = R.sums(**asked)
        if not top.done:
            top.advance(sums["signed"])
        if not perron.done:
            heavy = sums["heavy"].what
            perron.advance(sums["positive"])
    starts = [np.maximum(top.right, 0.0), np.maximum(-top.right, 0.0), np.abs(perron.right), heavy]
    rights = np.stack([unit(start) for start in (starts if extra is None else [*starts, extra])])
    q = np.abs(perron.right)
    q = q + RAISED * q.max()
    atom, sums = _alternated(R, rights, stored, positive=q)
    back = sums["positive"]
    slack = 1.0 + 100 * float(np.finfo(R.kind).eps)
    proved = float(np.sqrt((back / q).max())) * slack if back.any() else 0.0
    measured = min(top.value + top.residual, perron.value + perron.residual)
    found = [atom]
    while len(found) < count and found[-1].value > 0:
        left, right = found[-1].factors
        weighted = found[-1].value * right
        first: Any = left
        R = replace(
            R,
            first=lazy_rows.stacked([R.first, first]),
            second=np.vstack([R.second, weighted]),
        )
        found.append(_alternated(R, rights, stored)[0])
    least = max(found[0].value, 0.0)
    return found, Bounds(max(proved, least), max(min(measured, proved), least))


def _alternated(R: Residual, rights: Array, stored: Any, **asked: Any) -> tuple[Found, Sums]:
    """Return the best atom that the power method finds from several starts, and the first sums.

    It is `alternate` of `atoms/power`, but that a start v for which Rv has no positive entry ends
    with the value 0.
    """
    first = R.sums(rights=rights, **asked)
    rights, values = _right_vectors(first, rights)
    best, parts = int(values.argmax()), []
    rights, value = rights[[best]], float(values[best])
    for _ in range(ROUNDS):
        before = value
        parts, sums = R.rows.visit(R.work(rights=rights, stored=stored), R.first)
        rights, values = _right_vectors(sums, rights)
        value = float(values[0])
        if value - before <= GAIN * value:
            break
    norm = np.sqrt(sums["squares"])
    scale = np.divide(1.0, norm, out=np.zeros(1), where=norm > 0)
    left: Any = scale[:, None] * RowFactor.of(parts, 1, R.shape[0])
    return Found(value, (left, rights)), first


def _right_vectors(sums: Sums, before: Array) -> tuple[Array, Vector]:
    """Return the unit vectors v >= 0 of largest u'Rv, and these values, from R'u and ||u||^2."""
    norms = np.sqrt(sums["squares"])
    reached = norms > 0
    rows = sums["back"] / np.where(reached, norms, 1.0)[:, None]
    rights, values = nonnegative_units(rows, None)
    return np.where(reached[:, None], rights, before), np.where(reached, values, 0.0)


def _block(
    block: Any,
    F: Sequence[Array],
    *,
    scale: Vector,
    G: Array,
    kind: Any,
    unit: float,
    missing: bool,
    signed: Vector | None = None,
    positive: Vector | None = None,
    rights: Array | None = None,
    stored: Any = None,
) -> tuple[Any, Sums]:
    """Return what is asked for one block of R, whose positive part is P.

    Parameters
    ----------
    signed : array of shape (n,), optional
        v of ``R'Rv``, the sum "signed".
    positive : array of shape (n,), optional
        v of ``P'Pv``, the sum "positive"; "heavy" is the row of P of the largest sum.
    rights : array of shape (s, n), optional
        v of u = [Rv]_+: ``R'u`` is "back", ``||u||^2`` is "squares".
    stored : type, optional
        The dtype in which u is kept.
    """
    n, sums = block.shape[1], Sums()
    columns = None if rights is None else np.ascontiguousarray(rights.T.astype(kind))
    kept = None
    if rights is not None and stored is not None:
        kept = np.empty((len(rights), block.shape[0]), stored)
    for asked, name in ((signed, "signed"), (positive, "positive")):
        if asked is not None:
            sums[name] = np.zeros(n)
    if positive is not None:
        sums["heavy"] = Largest(-1.0)
    if columns is not None:
        sums["back"], sums["squares"] = np.zeros(columns.shape[::-1]), np.zeros(columns.shape[1])
    for rows, x in tiles(block, kind, unit):
        R = _residual(x, tile_of(F, rows, scale), G, missing)
        if signed is not None:
            sums["signed"] += (R @ signed.astype(kind)) @ R
        if columns is not None:
            u = np.maximum(R @ columns, 0.0).T
            sums["back"] += u @ R
            sums["squares"] += np.einsum("si,si->s", u, u, dtype=np.float64)
            if kept is not None:
                kept[:, rows] = u
        if positive is not None:
            _add_positive(sums, R, positive.astype(kind))
    return kept, sums


def _residual(x: Any, F: Array, G: Array, missing: bool) -> Any:
    """Return x - F'G, as an array with 0 for missing entries, or kept as factors if x is sparse."""
    if sparse.issparse(x):
        return FactoredMatrix(-F, G, x)
    model = F.astype(x.dtype, copy=False).T @ G.astype(x.dtype, copy=False)
    np.subtract(x, model, out=model)
    return np.nan_to_num(model, copy=False) if missing else model


def _add_positive(sums: Sums, R: Any, v: Vector) -> None:
    """Add what the positive part P of a tile has to the sums "positive" and "heavy"."""
    dense = isinstance(R, np.ndarray)
    P = np.maximum(R, 0.0) if dense else R.positive_part()
    sums["positive"] += (P @ v) @ P
    masses = np.asarray(P.sum(axis=1)).ravel()
    top = int(masses.argmax())
    row = P[top] if dense else P[[top]].toarray()[0]
    sums["heavy"] += Largest(float(masses[top]), row.astype(np.float64))
