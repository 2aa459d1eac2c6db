"""What is asked of the library: calls written as Python, with the data that they are about.

The text of a call is what is run and what is printed, so that a failure can be pasted.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import optimize, sparse

import conepursuit
from exact import Problem

SCOPE = {"np": np, "sparse": sparse}
SCOPE |= {name: getattr(conepursuit, name) for name in conepursuit.__all__}


@dataclass(frozen=True)
class Case:
    """A call about one matrix and some targets.

    Attributes
    ----------
    kind : Kind
        What is called.
    family : str
        Where the data come from.
    A, B : arrays of shape (m, n) and (m, t)
        The data; a call that mentions ``b`` is made for each column of B.
    data : dict
        What else the call mentions: weights ``w`` of shape (m,) or ``W`` of shape (m, t), points
        ``X`` of shape (n, t), of which ``x`` is a column, and numbers.
    """

    kind: Kind
    family: str
    A: np.ndarray
    B: np.ndarray
    data: dict = field(default_factory=dict)

    def part(self, rows=None, columns=None, targets=None):
        """Return the case with some rows, columns and targets only."""
        m, n, t = *self.A.shape, self.B.shape[1]
        rows = range(m) if rows is None else rows
        columns = range(n) if columns is None else columns
        targets = range(t) if targets is None else targets
        axes = {"w": (rows,), "W": (rows, targets), "X": (columns, targets)}
        data = {k: v[np.ix_(*axes[k])] if k in axes else v for k, v in self.data.items()}
        return replace(
            self, A=self.A[np.ix_(rows, columns)], B=self.B[np.ix_(rows, targets)], data=data
        )

    def scope(self, i=None):
        """Return the names that the call may mention, with those of target i."""
        own = {**SCOPE, "A": self.A, "B": self.B, **self.data}
        if i is not None:
            own["b"] = self.B[:, i].copy()
            if "X" in self.data:
                own["x"] = self.data["X"][:, i].copy()
        return own

    def code(self, i=0):
        """Return the call as text that can be pasted."""
        given = {"A": self.A, **({"b": self.B[:, i]} if self.kind.single else {"B": self.B})}
        for name, value in self.data.items():
            if name == "X" and self.kind.single:
                given["x"] = value[:, i]
            else:
                given[name] = value
        lines = [f"{name} = {_text(value)}" for name, value in given.items()]
        return "\n".join([*lines, self.kind.text])


def _text(value):
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r})"
    return repr(value)


@dataclass(frozen=True)
class Kind:
    """A kind of call.

    Attributes
    ----------
    name, group : str
        What it is called; "nnls", "nnfit" or "minimize".
    text : str
        The call. With ``b`` it is made for each target.
    share : float
        How often it is made, in problems of its group.
    sizes : function of rng
        Returns m, n and t.
    prepare : function of rng, A and B
        Returns A, B and the other data.
    loss : str
        Whose minimum is sought.
    """

    name: str
    group: str
    text: str
    share: float
    sizes: object
    prepare: object
    loss: str = "LeastSquares"

    def __reduce__(self):  # functions made on the way cannot be sent to another process
        return _kind_named, (self.group, self.name)

    @property
    def single(self):
        """Whether a call is about one target."""
        return "(b" in self.text or ", b" in self.text or "@ b" in self.text

    def make(self, rng, family, name):
        """Return a case of a family."""
        A, B = family(rng, *self.sizes(rng))
        A, B, data = self.prepare(rng, A, B)
        return Case(self, name, A, B, data)


def _kind_named(group, name):
    from kinds import KINDS

    return next(kind for kind in KINDS if (kind.group, kind.name) == (group, name))


# Sizes


def small(rng):
    return (*rng.integers(1, 9, 2).tolist(), int(rng.integers(1, 65)))


def tiny(rng):
    return (*rng.integers(1, 6, 2).tolist(), int(rng.integers(1, 4)))


def few(rng):
    return (*rng.integers(1, 9, 2).tolist(), int(rng.integers(1, 13)))


def wide(rng):
    if rng.random() < 0.02:
        return int(rng.integers(20, 41)), int(rng.integers(9, 61)), 1
    return int(rng.integers(2, 11)), int(rng.integers(9, 25)), int(rng.integers(1, 17))


def large(rng):
    return int(rng.integers(1, 7)), int(rng.integers(513, 600)), int(rng.integers(1, 4))


# Other data


def plain(rng, A, B):
    return A, B, {}


def with_limit(rng, A, B):
    return A, B, {"k": int(rng.integers(1, A.shape[1] + 1))}


def row_weights(rng, shape):
    """Return weights of rows: ordinary, powers of four, some zero, or far apart."""
    how = rng.integers(4)
    if how == 0:
        return rng.random(shape)
    if how == 1:
        return 4.0 ** rng.integers(-5, 6, shape)
    if how == 2:
        return rng.integers(0, 3, shape).astype(float)
    return 10.0 ** rng.uniform(-10, 10, shape)


def with_weights(rng, A, B):
    w = row_weights(rng, len(A))
    return A, B, {"w": w if w.any() else w + 1.0}


def with_own_weights(rng, A, B):
    W = row_weights(rng, B.shape)
    W[0] += ~W.any(axis=0)
    return A, B, {"W": W}


def with_mask(rng, A, B):
    w = (rng.random(len(A)) < 0.7).astype(float)
    w[rng.integers(len(A))] = 1.0
    return A, B, {"w": w}


def with_start(rng, A, B):
    return A, B, {"X": feasible(rng, A, B)}


def with_answers(rng, A, B):
    """Give the weights that nnls returns."""
    return A, B, {"X": answers(A, B)}


def answers(A, B):
    """Return the weights of nnls, 0 where they overflow or where it fails, seen elsewhere."""
    try:
        with warnings.catch_warnings(action="ignore"):
            found = conepursuit.nnls(A, B).x
    except Exception:
        found = np.zeros((A.shape[1], B.shape[1]))
    return np.nan_to_num(found, posinf=0.0)


def with_answers_of_scipy(rng, A, B):
    """Give the weights that SciPy's solver returns, or random ones where it gives up."""
    X = feasible(rng, A, B)
    for i, b in enumerate(B.T):
        try:
            found = optimize.nnls(A, b)[0]
        except (RuntimeError, ValueError, np.linalg.LinAlgError):
            continue
        X[:, i] = found if np.isfinite(found).all() else X[:, i]
    return A, B, {"X": np.maximum(X, 0.0)}


def feasible(rng, A, B):
    """Return weights that are not negative, with fits of the size of the targets."""
    X = rng.random((A.shape[1], B.shape[1])) * (rng.random((A.shape[1], 1)) < 0.6)
    with np.errstate(all="ignore"):
        size = np.abs(B).max(axis=0, initial=0.0) / np.abs(A).max(axis=0, initial=0.0)[:, None]
    return X * np.where(np.isfinite(size) & (size < 1e300), size, 1.0)


def as_integers(rng, A, B):
    """Round the data to integers whose Gram matrix is exact."""
    with np.errstate(all="ignore"):
        A, B = (np.nan_to_num(np.round(1000 * (M / np.abs(M).max()))) for M in (A, B))
    return A, B, {}


def as_float32(rng, A, B):
    with np.errstate(all="ignore"):
        return A.astype(np.float32).clip(-3e38, 3e38).astype(np.float64), B, {}


def as_sparse(rng, A, B):
    """Spread the rows over so many that a sparse matrix is kept as one."""
    rows = np.sort(rng.permutation(1_000_000 // A.shape[1] + 2)[: len(A)])
    tall, targets = np.zeros((1_000_000 // A.shape[1] + 2, A.shape[1])), None
    tall[rows] = A
    targets = np.zeros((len(tall), B.shape[1]))
    targets[rows] = B
    return tall, targets, {}


def with_penalty(rng, A, B):
    """Give a penalty from far below the one at which nothing is fitted to a little above."""
    with np.errstate(all="ignore"):
        most = float(np.abs(A.T @ B).max())
    most = most if 0 < most < 1e300 else 1.0
    return A, B, {"penalty": most * 10.0 ** rng.uniform(-6, 0.1)}


def with_radius(rng, A, B):
    """Give a radius of a hull that is of the size of the weights of a fit."""
    with np.errstate(over="ignore"):
        most = float(answers(A, B).sum(axis=0).max())
    most = most if 0 < most < 1e300 else 1.0
    return A, B, {"radius": most * float(rng.uniform(0.1, 1.5))}


def with_bound(rng, A, B):
    """Give a bound on the sum of the weights of a minimiser, which is known exactly."""
    problem = Problem(A, B)
    points = [problem.solution(i, problem.minimiser(i, ())) for i in range(B.shape[1])]
    with np.errstate(over="ignore"):
        most = float(np.sum(points, axis=1).max())
    if not most < 1e300:  # no float bounds it
        return A, B, {"radius": np.inf}
    return A, B, {"radius": most * float(rng.uniform(1.001, 3)) or 1.0}


def with_point_and_penalty(rng, A, B):
    A, B, data = with_penalty(rng, A, B)
    return A, B, {**data, "X": feasible(rng, A, B)}
