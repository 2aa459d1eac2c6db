"""Proofs of least-squares fits where A'A and A'b are all that is known.

The claim is about f(x) = 1/2 <x, G x> - <c, x> with the floats in G and c, for which no A need
exist: a G that was computed is often indefinite by rounding, and f may then have no minimum.

With slopes g = c - G x, any h and v >= 0 with g <= v G h, every y >= 0 has

    f(x) - f(y) <= <x, v G h - g> + 1/2 v^2 <h, G h> - 1/2 <y - x - v h, G (y - x - v h)>,

which is `tilted_gap` if the last term is not positive, that is, if G is positive semidefinite. Of a
G that is not, or of which that cannot be said, a positive semidefinite Q takes the place, with
<y, Q y> <= <y, G y> for all y >= 0: then f is at least q(y) = 1/2 <y, Q y> - <c, y>, so that

    f(x) - f* <= (q(x) - min q) + 1/2 <x, (G - Q) x>.

Let G be scaled to diagonal entries near one. If G + e I is positive semidefinite and <y, G y> is
at least k ||y||^2 for all y >= 0, then Q = (G + e I) / (1 + e / k) will do. Such a k is known:

- if no entry of G is negative: k is the least diagonal entry;
- if some h >= 0 has G h >= s > 0, as where atoms lie in an open half space: by the inequality of
  Cauchy and Schwarz for G + e I, k = s^2 / <h, (G + e I) h> - e.

What remains is decided in exact arithmetic, on small G: signed atoms that fill the space.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh, lstsq
from scipy.linalg.lapack import dposv, dpotrf

from conepursuit.arrays import Array, Vector
from conepursuit.kernels import least_squares as kernels
from conepursuit.least_squares.whole import NO_GRAM
from conepursuit.rounding import UNIT, product_rounding, resolution

MOST_EXACT = 40
"""The most atoms for which G is tested in exact arithmetic, which may take 0.1 seconds."""


class Form(NamedTuple):
    """The form (T + e I) / (1 + share), which takes the place of T; both are zero for T itself.

    I leaves out the atoms that are zero.
    """

    e: float
    share: float


def proven_gaps(G: Array, c: Array, X: Array, root: Array) -> Vector:
    """Return bounds on f(x) - f*, inf where none is proved, for columns of c and of X.

    `root` is a matrix A with A'A near G.
    """
    powers = -(-np.frexp(G.diagonal())[1] // 2)
    scale = np.ldexp(1.0, -powers)
    T = G * scale * scale[:, None]
    symmetric = np.array_equal(T, T.T)
    T = T if symmetric else (T + T.T) / 2
    known = Scaled(T, 0.0 if symmetric else UNIT, np.ldexp(1.0, powers - powers.max()))

    def gaps(form: Form) -> Vector:
        return np.array([one(form, *pair) for pair in zip(c.T, X.T, strict=True)])

    def one(form: Form, column: Vector, x: Vector) -> float:
        right = column * scale
        target = int(np.frexp(np.abs(right).max())[1])
        gap = known.gap(form, np.ldexp(right, -target), np.ldexp(x, powers - target))
        if gap == 0 and column.max() <= 0:
            return gap
        return float(np.nextafter(np.ldexp(gap + 2.0**-1000, 2 * target), inf))

    plain = gaps(Form(0.0, 0.0))
    if not np.isfinite(plain).all() and known.lean(root * scale):
        plain = gaps(Form(0.0, 0.0))
    if not np.isfinite(plain).any() or known.definite(0.0):
        return plain
    n, lowest = len(T), float(eigvalsh(T)[0])
    form = known.below(root * scale, lowest)
    if form is not None and form.share <= resolution(n):
        return gaps(form)
    if symmetric and n <= MOST_EXACT and -lowest <= n * product_rounding(n) and semidefinite(T):
        return plain
    return np.full(len(plain), inf) if form is None else gaps(form)


class Scaled:
    """A symmetric matrix T with diagonal entries between 1/4 and 1, or zero.

    `inexact` bounds the relative error of its entries. `ones` is the first h that bounds try.
    """

    def __init__(self, T: Array, inexact: float, ones: Vector) -> None:
        self.T, self._sizes = T, np.abs(T)
        self._noise = product_rounding(len(T))  # with room for five more operations
        self._inexact = inexact * float(self._sizes.max()) * len(T)
        self._positive = T.diagonal() > 0
        self._functionals = [ones]

    def lean(self, atoms: Array) -> bool:
        """Look for an h >= 0 with T h > 0, and let bounds try it; return whether there is one.

        The columns of `atoms` are atoms whose Gram matrix is near T.
        """
        if len(self._functionals) == 1:
            h = functional(atoms[:, self._positive])
            if h is not None:
                self._functionals.append(np.zeros(len(self.T)))
                self._functionals[1][self._positive] = h
        return len(self._functionals) == 2

    def definite(self, e: float) -> bool:
        """Return whether T + e I is proved to be positive semidefinite.

        Notes
        -----
        If the factorisation of M succeeds in floating point, M plus errors of a norm of at most
        `product_rounding` times its trace is positive semidefinite (S. M. Rump, Verification of
        positive definiteness, 2006). That is subtracted from the diagonal before.
        """
        M = self.T
        if not self._positive.all():
            if self._sizes[~self._positive].any():
                return False
            M = M[np.ix_(self._positive, self._positive)]
        n = len(M)
        trace = float(M.trace()) + e * n
        M = M.copy()
        M.flat[:: n + 1] += e - product_rounding(n) * trace - self._inexact
        return n == 0 or dpotrf(M.T, clean=False, overwrite_a=True)[1] == 0

    def below(self, atoms: Array, lowest: float) -> Form | None:
        """Return a form that is at most T for y >= 0 and positive semidefinite, None without one.

        The columns of `atoms` are atoms whose Gram matrix is near T, and `lowest` is the least
        eigenvalue of T as computed.
        """
        n = len(self.T)
        e = max(0.0, -lowest) + 1.1 * product_rounding(n) * float(self.T.trace()) + self._inexact
        for _ in range(3):
            if self.definite(e):
                break
            e *= 2.0
        else:
            return None
        if (self.T >= 0).all():
            least = float(self.T.diagonal()[self._positive].min(initial=1.0))
            return Form(e, 1.01 * e / least)
        if not self.lean(atoms):
            return None
        h = self._functionals[1]
        s, errors = self.T @ h, self._noise * (self._sizes @ h)
        firm = float((s - errors)[self._positive].min())
        square = 1.01 * float(h @ (s + errors) + e * (h @ h))
        k = 0.99 * firm * firm / square - e if firm > 0 else 0.0
        return Form(e, 1.01 * e / k) if k > e else None

    def gap(self, form: Form, c: Vector, x: Vector) -> float:
        """Return the bound that a form proves, if it is positive semidefinite, or inf.

        Tried are the vectors h that serve all targets, and the h on the atoms with weight with
        <t, a> = ||a|| for t = A h.
        """
        q, q_errors = self._times(form, x)
        g, errors = c - q, q_errors + self._noise * np.abs(c)
        lower = 0.51 * form.share * float(x @ (self._sizes @ x))
        gap = min(self._tilted(form, g, errors, x, h) for h in self._functionals)
        used = np.flatnonzero(x)
        if len(used) and not gap <= 4.0 * self._noise * float(np.abs(c) @ x):
            lengths, T, h = np.sqrt(self.T.diagonal()[used]), self.T[np.ix_(used, used)], 0.0 * x
            _, h[used], failed = dposv(T, lengths)
            newton = inf if failed else self._tilted(form, g, errors, x, h)
            if newton == inf:
                h[used] = lstsq(T, lengths, lapack_driver="gelsy", check_finite=False)[0]
                newton = self._tilted(form, g, errors, x, h)
            gap = min(gap, newton)
        return gap + lower

    def _tilted(self, form: Form, g: Vector, errors: Vector, x: Vector, h: Vector) -> float:
        s, s_errors = self._times(form, h)
        square = float(h @ s + np.abs(h) @ s_errors) + self._noise * float(np.abs(h) @ np.abs(s))
        length = 1.01 * sqrt(max(square, 0.0)) if square < inf else inf
        return float(kernels.tilted_gap(g, errors, s, s_errors, x, length, 0.0))

    def _times(self, form: Form, h: Vector) -> tuple[Vector, Vector]:
        """Return the product of a form with a vector, and bounds on the errors of its entries."""
        product, size = self.T @ h, self._sizes @ np.abs(h)
        if form.e:
            more = form.e * np.where(self._positive, h, 0.0)
            product, size = (product + more) / (1.0 + form.share), size + np.abs(more)
        return product, self._noise * size


def functional(atoms: Array) -> Vector | None:
    """Return the h >= 0 with <A h, a> >= 1 for all atoms a whose A h is shortest, None without one.

    See `Proof.along_level` for the problem that is solved.
    """
    n = atoms.shape[1]
    unit = np.ones((n, len(atoms) + 1))
    unit[:, :-1] = atoms.T
    target, z, slopes = np.zeros(unit.shape[1]), np.zeros(n), np.empty(n)
    target[-1] = 1.0
    code = kernels.fit_target(unit, target, NO_GRAM, z, slopes, 0.0, n, 10 * n + 10)[3]
    left = 1.0 - float(z.sum())
    return z / left if code >= 0 and left > 0 else None


def semidefinite(T: Array) -> bool:
    """Return whether a symmetric matrix is positive semidefinite, decided in exact arithmetic.

    Notes
    -----
    Floats are integers times powers of two. Elimination after Bareiss, in which every division is
    exact, leaves the Schur complement of the pivots, times a positive number.
    """
    exponents = np.where(T == 0, 5000, np.frexp(T)[1])
    shift = 53 - int(exponents.min())
    if shift > 2000:
        return False
    M = np.array([[_integer(entry, shift) for entry in row] for row in T.tolist()], dtype=object)
    before = 1
    while len(M):
        diagonal = M.diagonal()
        pivot = int(np.argmax(diagonal))
        if diagonal.min() < 0:
            return False
        if diagonal[pivot] == 0:
            return not M.any()
        rest, row = np.delete(np.arange(len(M)), pivot), M[pivot]
        part = M[np.ix_(rest, rest)] * row[pivot]
        M, before = (part - np.multiply.outer(row[rest], row[rest])) // before, row[pivot]
    return True


def _integer(entry: float, shift: int) -> int:
    """Return a float times 2 to a power that makes it an integer."""
    top, low = entry.as_integer_ratio()
    return (top << shift) // low
