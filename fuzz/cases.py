"""What is asked of the library: calls written as Python, with the data that they are about.

The text of a call is what is run and what is printed, so that a failure can be pasted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

import conepursuit
import own

EARLY = 10
"""A run of at most so many steps counts as stopped early."""

SCOPE = {"np": np, "sparse": sparse}
SCOPE |= {name: getattr(conepursuit, name) for name in conepursuit.__all__}
SCOPE |= {name: getattr(own, name) for name in own.__all__}


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
        if self.kind.gram:
            rows = columns = columns if rows is None else rows
        rows = range(m) if rows is None else rows
        columns = range(n) if columns is None else columns
        targets = range(t) if targets is None else targets
        axes = {"w": (rows,), "W": (rows, targets), "X": (columns, targets)}
        data = {k: v[np.ix_(*axes[k])] if k in axes else v for k, v in self.data.items()}
        return replace(
            self, A=self.A[np.ix_(rows, columns)], B=self.B[np.ix_(rows, targets)], data=data
        )

    @property
    def way(self):
        """How the points come about: "audit", "stopped" early by max_iter, or "converged"."""
        if "certify" in self.kind.text:
            return "audit"
        return "stopped" if self.data.get("steps", np.inf) <= EARLY else "converged"

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
        used = [f"from own import {n}" for n in own.__all__ if f"{n}(" in self.kind.text]
        given = {"A": self.A, **({"b": self.B[:, i]} if self.kind.single else {"B": self.B})}
        for name, value in self.data.items():
            if name == "X" and self.kind.single:
                given["x"] = value[:, i]
            else:
                given[name] = value
        lines = [f"{name} = {_text(value)}" for name, value in given.items()]
        return "\n".join([*used[:1], *lines, self.kind.text])


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
        What it is called, and the group that `--only` of `run.py` names.
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
    def intercept(self):
        """Whether the loss has a free intercept."""
        return "FreeIntercept(" in self.text or "fit_intercept=True" in self.text

    @property
    def squares(self):
        """Whether gaps are compared with exact numbers: least squares without an intercept.

        Estimators give gaps of the mean loss, which are rounded.
        """
        return self.loss == "LeastSquares" and not self.intercept and self.group != "estimators"

    @property
    def gram(self):
        """Whether A and b are a form G and c, so that rows and columns are the same."""
        return "nnls_gram(A" in self.text and "@" not in self.text

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


def several(rng):
    return (*rng.integers(1, 9, 2).tolist(), int(rng.integers(2, 65)))


def some(rng):
    return (*rng.integers(1, 7, 2).tolist(), int(rng.integers(1, 25)))


def forms(rng):
    return (*rng.integers(1, 6, 2).tolist(), int(rng.integers(1, 17)))
