"""What ``conepursuit solve`` is to solve: two files, whose rows belong together, and a loss."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from conepursuit.arrays import Array
from conepursuit.cli.layouts import Layout
from conepursuit.cli.reading import Data, read_matrix, read_targets
from conepursuit.cli.tables import DETECT
from conepursuit.losses import LOSSES


@dataclass(frozen=True)
class Problem:
    """A dictionary, the targets, and what is minimised.

    Attributes
    ----------
    A, b : Data
        The files.
    matching : str
        How rows of the files were matched by name, in words; empty if they were not.
    loss : str
        One of `losses.LOSSES`.
    delta : float, optional
        The parameter of a loss that has one of this name.
    penalty : float
        On the sum of the weights.
    max_atoms : int, optional
        The most weights that may be positive.
    tol : float, optional
        The gap at which a fit may stop, as a share of the decrease since x = 0.
    """

    A: Data
    b: Data
    matching: str = ""
    loss: str = "squared_error"
    delta: float | None = None
    penalty: float = 0.0
    max_atoms: int | None = None
    tol: float | None = None

    def loss_of(self, b: Array) -> Any:
        """Return the loss for some targets."""
        given = {} if self.delta is None else {"delta": self.delta}
        return LOSSES[self.loss].of(b, **given)

    @property
    def tolerance(self) -> float:
        """The tolerance, with its default; least squares without a penalty have 0 instead."""
        return 1e-8 if self.tol is None else self.tol

    @property
    def start(self) -> str:
        """Where decreases of the objective are measured from, in words."""
        return "the best equal weights" if LOSSES[self.loss].counts else "x = 0"

    @property
    def plain(self) -> bool:
        """Whether it is least squares without a penalty."""
        return self.loss == "squared_error" and not self.penalty

    @property
    def measure(self) -> str:
        """What is reported of a fit."""
        return "residual" if self.plain else "value"

    @property
    def objective(self) -> str:
        """What is minimised, and what gaps are of."""
        loss = "1/2 ||A x - b||^2" if self.loss == "squared_error" else f"{self.loss} loss"
        return f"{loss} + {self.penalty:g} sum(x)" if self.penalty else loss

    @property
    def many(self) -> bool:
        """Whether there are several targets."""
        return len(self.b.values.shape) == 2


def read_problem(
    A: str,
    b: str,
    layout: Layout = DETECT,
    *,
    match: bool = False,
    transpose: str | None = None,
    **options: Any,
) -> Problem:
    """Return the problem in two files whose rows belong together.

    Parameters
    ----------
    A, b : str
        The files.
    layout : Layout
        Whether tables have headers and names of rows.
    match : bool
        Whether only the rows are kept whose names are in both files.
    transpose : {"a", "b", "both"}, optional
        Which file has atoms, or targets, as rows.
    **options
        The other attributes of `Problem`.
    """
    atoms = read_matrix(A, layout, transpose=transpose in ("a", "both"))
    targets = read_targets(b, layout, transpose=transpose in ("b", "both"))
    return Problem(*matched(atoms, targets, common=match), **options)


def target_names(problem: Problem) -> list[str]:
    """Return the names of the targets, or their numbers."""
    n_targets = problem.b.values.shape[1] if problem.many else 1
    return problem.b.columns or [str(i) for i in range(n_targets)]


def matched(A: Data, b: Data, *, common: bool) -> tuple[Data, Data, str]:
    """Return two files whose rows belong together in order, and what was done in words.

    Where both have names of rows, these decide. If they are the same in another order, the rows of
    b are put into the order of A.

    Parameters
    ----------
    A, b : Data
        The files.
    common : bool
        Whether rows whose names are in one file only are dropped. Without it they are an error.
    """
    if A.rows is None or b.rows is None:
        _check_lengths(A, b, common=common)
        return A, b, ""
    if A.rows == b.rows and not common:
        return A, b, ""
    for data in (A, b):
        _check_unique(data)
    places = {name: i for i, name in enumerate(b.rows)}
    ours = [i for i, name in enumerate(A.rows) if name in places]
    theirs = [places[A.rows[i]] for i in ours]
    if len(ours) == len(A.rows) == len(b.rows) and not common:
        note = f"rows of {b.file} are matched to those of {A.file} by name"
        return A, b.taken(theirs), note
    if not common or not ours:
        raise ValueError(_difference(A, b, len(ours)))
    dropped = f"{len(A.rows) - len(ours)} of {A.file} and {len(b.rows) - len(ours)} of {b.file}"
    note = f"rows are matched by name: {len(ours)} are in both, dropped are {dropped}"
    return A.taken(ours), b.taken(theirs), note


def _check_lengths(A: Data, b: Data, *, common: bool) -> None:
    """Raise a ValueError unless rows can be told by their places alone."""
    if common:
        without = (A if A.rows is None else b).file
        raise ValueError(
            f"--match needs names of rows in both files; {without} has none. If its first column "
            "holds them, use --row-names."
        )
    m = A.values.shape[0]
    if b.values.shape[0] != m:
        taken = [f" {d.file} was read as {d.understood}." for d in (A, b) if d.understood]
        advice = " Use --transpose b." if b.values.shape[1:] == (m,) else ""
        raise ValueError(
            f"{b.file} must have a row for each of the {m} rows of {A.file}; got {b.size} for "
            f"{A.size}.{advice}{''.join(taken)}"
        )


def _check_unique(data: Data) -> None:
    """Raise a ValueError if two rows have the same name."""
    name, times = Counter(data.rows).most_common(1)[0]
    if times > 1:
        raise ValueError(
            f"{data.file} must have a name for each row, to match it by; {name!r} is that of "
            f"{times} rows."
        )


def _difference(A: Data, b: Data, n_common: int) -> str:
    """Say how the names of rows in two files differ."""
    ours, theirs = A.rows or [], b.rows or []
    parts = []
    for data, names, others in ((A, ours, set(theirs)), (b, theirs, set(ours))):
        own = [name for name in names if name not in others]
        parts += [f"{len(own)} only in {data.file}, such as {own[0]!r}"] if own else []
    advice = "Use --match to keep those in both."
    if not n_common:
        advice = "If the atoms or the targets are rows, use --transpose."
    return (
        f"the rows of {A.file} and {b.file} must have the same names; {n_common} are in both, "
        f"{' and '.join(parts)}. {advice}"
    )
