"""The table of losses: `nnfit`, estimators, factorisations and the command line read it.

A new loss is its formula, a subclass of `EntrywiseLoss`, and a row here: with that it is public and
works in all of them for which the row says so. A kernel code, with the formula in
`kernels.loss_fits.losses`, makes fits of many targets fast. The objectives are imported when one is
made, so that the command line can list the names at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from math import inf
from typing import Any
from warnings import warn

from conepursuit.kernels.constants import BETA, HUBER, KULLBACK_LEIBLER, LOGISTIC, SQUARED


@dataclass(frozen=True)
class Loss:
    """One row of the table.

    Attributes
    ----------
    name : str
        How estimators, factorisations and the command line call it.
    module, kind : str
        The objective, and where it is: the class `kind` in ``conepursuit.objectives.<module>``.
    code : int, optional
        Which loss it is for the kernels, up to a constant.
    parameter : str, optional
        The name of its parameter.
    default : float, optional
        The default of that; without one, a name alone does not say which loss is meant, so that
        only `nnfit` takes it.
    kernel_range : pair of floats
        Between which values of the parameter, exclusively, the kernels know it.
    labels : bool
        Whether the data are labels of two classes: then it is not for regression.
    counts : bool
        Whether data must not be negative.
    factorizes : bool
        Whether `GreedyNMF` has it.
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
        """Whether its name says which loss is meant."""
        return self.parameter is None or self.default is not None

    def of(self, y: Any, *, weights: Any = None, **parameters: Any) -> Any:
        """Return the objective for some data; parameters that it does not have are left out."""
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
"""Names that were in use before every place had the same ones."""


def named_losses(*, labels: bool = True, factorizes: bool = False) -> list[str]:
    """Return the names of losses: those for labels too or not, those of factorisations or all."""
    return [
        loss.name
        for loss in LOSSES.values()
        if loss.named and (labels or not loss.labels) and (loss.factorizes or not factorizes)
    ]


def loss_named(name: Any, among: Iterable[str], old: Iterable[str] = ()) -> Loss:
    """Return the loss with a name among some, or with an old one that still works there.

    An old name warns; what is neither is a ValueError.
    """
    known = list(among)
    if isinstance(name, str) and name in old:
        new = OLD_NAMES[name]
        warn(
            f"loss={name!r} is called {new!r} now; the old name will be removed.",
            DeprecationWarning,
            stacklevel=3,
        )
        return LOSSES[new]
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"loss must be one of {', '.join(map(repr, known))}; got {name!r}.")
    return LOSSES[name]


def kernel_code(objective: Any) -> tuple[int, float] | None:
    """Return how the kernels call a loss, and its parameter; None for a loss they do not know."""
    kind = type(objective)
    home = kind.__module__.removeprefix("conepursuit.objectives.")
    rows = (row for row in LOSSES.values() if (row.module, row.kind) == (home, kind.__name__))
    row = next(rows, None)
    if row is None or row.code is None:
        return None
    value = float(objective.options()[row.parameter]) if row.parameter else 0.0
    least, most = row.kernel_range
    return (row.code, value) if least < value < most else None
