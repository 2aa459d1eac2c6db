"""The table of losses: `nnfit`, estimators, factorisations and the command line read it.

To add a loss, write its formula as a subclass of `EntrywiseLoss` and add a row here. The row makes
it public and says where it can be used. A kernel code, with the formula in
`kernels.loss_fits.losses`, makes fits of many targets fast. The module of an objective is imported
when the first one is made, so that the command line can list the names at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from math import inf
from typing import Any

from conepursuit.caller import warn_caller
from conepursuit.kernels.constants import BETA, HUBER, KULLBACK_LEIBLER, LOGISTIC, SQUARED


@dataclass(frozen=True)
class Loss:
    """One row of the table.

    Attributes
    ----------
    name : str
        Its name in estimators, factorisations and on the command line.
    module, kind : str
        The objective is the class `kind` in ``conepursuit.objectives.<module>``.
    code : int, optional
        Its number in the kernels, whose values may differ from its own by a constant; None if
        they do not know it.
    parameter : str, optional
        The name of its parameter.
    default : float, optional
        The default of the parameter. A loss with a parameter but no default cannot be chosen by
        name, so that only `nnfit` takes it.
    kernel_range : pair of floats
        The kernels know the loss if its parameter lies strictly between these.
    labels : bool
        Whether the data are labels of two classes: then it is not for regression.
    counts : bool
        Whether data must not be negative.
    factorizes : bool
        Whether `GreedyNMF` offers it.
    """

    name: str
    module: str
    kind: str
    code: int | None = None
    parameter: str | None = None
    default: float | None = None
    kernel_range: tuple[float, float] = (-inf, inf)
    labels: bool = False
    counts: bool = False
    factorizes: bool = False

    @property
    def named(self) -> bool:
        """Whether the name alone determines the loss: a parameter, if it has one, has a default."""
        return self.parameter is None or self.default is not None

    def of(self, y: Any, *, weights: Any = None, **parameters: Any) -> Any:
        """Return the objective for data y; parameters that the loss does not have are ignored."""
        make = getattr(import_module(f"conepursuit.objectives.{self.module}"), self.kind)
        own = {key: value for key, value in parameters.items() if key == self.parameter}
        return make(y, weights=weights, **own)


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("squared_error", "quadratic", "LeastSquares", SQUARED, factorizes=True),
        Loss("poisson", "divergence", "Poisson", KULLBACK_LEIBLER, counts=True),
        Loss("huber", "glm", "Huber", HUBER, "delta", 1.0),
        Loss(
            "kullback_leibler", "divergence", "KullbackLeibler", KULLBACK_LEIBLER, "shift", 0.0,
            counts=True, factorizes=True,
        ),
        Loss(
            "beta_divergence", "divergence", "BetaDivergence", BETA, "beta",
            kernel_range=(1, 2), counts=True,
        ),
        Loss("logistic", "glm", "Logistic", LOGISTIC, labels=True),
    )
}  # fmt: skip

OLD_NAMES = {
    "squared": "squared_error",
    "frobenius": "squared_error",
    "kullback-leibler": "kullback_leibler",
}
"""Deprecated names of losses, each with the name to use instead."""


def named_losses(*, labels: bool = True, factorizes: bool = False) -> list[str]:
    """Return the names of the losses that can be chosen by name.

    With ``labels=False`` losses of class labels are left out; with ``factorizes=True`` only those
    that `GreedyNMF` offers are returned.
    """
    return [
        loss.name
        for loss in LOSSES.values()
        if loss.named and (labels or not loss.labels) and (loss.factorizes or not factorizes)
    ]


def loss_named(name: Any, among: Iterable[str], old: Iterable[str] = ()) -> Loss:
    """Return the loss with a name that is in `among`, or in `old`, a part of `OLD_NAMES`.

    A name in `old` gives a DeprecationWarning; one in neither raises a ValueError.
    """
    known = list(among)
    if isinstance(name, str) and name in old:
        new = OLD_NAMES[name]
        warn_caller(
            f"loss={name!r} is called {new!r} now; the old name will be removed.",
            DeprecationWarning,
        )
        return LOSSES[new]
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"loss must be one of {', '.join(map(repr, known))}; got {name!r}.")
    return LOSSES[name]


def kernel_code(objective: Any) -> tuple[int, float] | None:
    """Return the number of a loss in the kernels and its parameter; None if they do not know it."""
    kind = type(objective)
    home = kind.__module__.removeprefix("conepursuit.objectives.")
    rows = (row for row in LOSSES.values() if (row.module, row.kind) == (home, kind.__name__))
    row = next(rows, None)
    if row is None or row.code is None:
        return None
    value = float(objective.options()[row.parameter]) if row.parameter else 0.0
    least, most = row.kernel_range
    return (row.code, value) if least < value < most else None
