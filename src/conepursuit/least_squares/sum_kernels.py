"""The kernels of non-negative least squares with a given sum of weights, and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from conepursuit.arrays import Array
from conepursuit.kernels import least_squares as kernels
from conepursuit.kernels.constants import FEW_ATOMS
from conepursuit.least_squares.many import aligned, atoms_and_gram, empty_tables
from conepursuit.matrix_fits.results import Fits, NNLSResult
from conepursuit.matrix_fits.safe_units import inverted, safe_squares


@dataclass(frozen=True)
class WeightSum:
    """What the weights sum to.

    Attributes
    ----------
    s : float
        The sum, positive.
    at_most : bool
        Whether a smaller sum is allowed.
    """

    s: float
    at_most: bool


class SumFits(Fits[NNLSResult]):
    """The results of many targets, with the multipliers of the sum of weights."""

    def __init__(self, n_targets: int, n: int) -> None:
        super().__init__(NNLSResult, n_targets, n)
        self.multipliers = np.zeros(n_targets)

    def rows(self, part: slice) -> tuple[Array, ...]:
        """Return the rows of some targets, multipliers first, as views that a kernel writes to."""
        return (self.multipliers[part], *super().rows(part))

    def put(self, i: int, fit: NNLSResult) -> None:
        """Write the result of one target."""
        super().put(i, fit)
        self.multipliers[i] = fit.sum_multiplier

    def result(self) -> NNLSResult:
        """Return the results of all targets as one result."""
        fit = super().result()
        return NNLSResult(
            fit.x, fit.rnorm, fit.dual, fit.gap, fit.proven, fit.status, fit.n_iter,
            self.multipliers,
        )  # fmt: skip


class SumKernels:
    """The kernels for a dense dictionary and a sum of weights.

    Attributes
    ----------
    matrix : array of shape (m, n)
        The dictionary.
    total : WeightSum
        What the weights sum to.
    max_steps : int
        The most linear systems to solve for a target.
    atoms, gram : arrays
        The atoms as rows, and their Gram matrix, as of `atoms_and_gram`.
    raised : float
        The constant by which kernels raise the Gram matrix (``cpp/least_squares/sums.hpp``): the
        mean of the squared norms.
    """

    def __init__(
        self, matrix: Array, total: WeightSum, max_steps: int, atoms: Array, gram: Array
    ) -> None:
        self.matrix, self.total, self.max_steps = matrix, total, max_steps
        self.atoms, self.gram = atoms, gram
        n = matrix.shape[1]
        self.raised = float(gram.diagonal()[:n].mean())
        self._higher = gram[:n, :n] + self.raised
        self._sums = atoms[:n].sum(axis=1)

    @classmethod
    def of(cls, matrix: Array, total: WeightSum, max_steps: int) -> SumKernels | None:
        """Return the kernels; None if the data need scaling, or all atoms are zero."""
        found = atoms_and_gram(matrix)
        if found is None:
            return None
        reach = total.s * sqrt(float(found[1].diagonal().max()))
        if not safe_squares(np.array(reach * reach)):
            return None
        return cls(matrix, total, max_steps, *found)

    def for_many(self) -> Callable[..., None]:
        """Return the kernel that fits rows of targets.

        For up to eight atoms, or seven and the slack of ``sum_at_most``, it is a table of all
        supports.
        """
        few = self.matrix.shape[1] + self.total.at_most <= FEW_ATOMS
        return self._for_few() if few else self.one_by_one()

    def one_by_one(self) -> Callable[..., None]:
        """Return the kernel that fits rows of targets, one after the other."""
        n, s, at_most = self.matrix.shape[1], self.total.s, self.total.at_most
        shared, raised = aligned(n, n), 0.0 if at_most else self.raised
        shared[:, :n] = self.gram[:n, :n] if at_most else self._higher
        inverse_norms = inverted(np.sqrt(shared.diagonal()))

        def fit(targets: Array, multipliers: Array, *out: Array) -> None:
            kernels.fit_targets(
                s, at_most, multipliers, raised, self.atoms, targets, shared, inverse_norms,
                self._sums, n, self.max_steps, *out,
            )  # fmt: skip

        return fit

    def _for_few(self) -> Callable[..., None]:
        """Return the kernel that looks supports up in a table."""
        (m, n), s, at_most = self.matrix.shape, self.total.s, self.total.at_most
        tables, half = empty_tables(n, 2 ** (n + at_most)), 2**n
        higher = self.gram.copy()
        higher[:n, :n] = self._higher
        kernels.tabulate(higher, n, m, *(table[:half] for table in tables))
        if at_most:  # the supports with slack are those without a condition
            kernels.tabulate(self.gram, n, m, *(table[half:] for table in tables))
        norms = np.sqrt(self.gram.diagonal()[:n])
        kernels.tabulate_sum(norms, m, self.raised, s, at_most, *tables)

        def fit(targets: Array, multipliers: Array, *out: Array) -> None:
            kernels.fit_few(
                s, at_most, multipliers, self.atoms, targets, self.gram, self._sums, *tables, *out
            )

        return fit
