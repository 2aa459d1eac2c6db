"""How far a computed inner product may be from the exact one: the constants behind every proof.

With u = 2^-53, the sum of m products in any order, with or without fused operations, satisfies
``|computed - <a, b>| <= m u / (1 - m u) sum_i |a_i b_i|`` (Higham, Accuracy and Stability of
Numerical Algorithms, section 3.1), and sum_i |a_i b_i| is at most ||a|| ||b||. The functions below
return the factor, with a margin of two per cent and a few units for the rounding of the norms and
of the expressions that it is used in. They hold for up to 10^13 terms, where m u is 1e-3.
docs/certificates.md tells how proofs use them.
"""

from __future__ import annotations

from math import sqrt

UNIT = 2.0**-53
"""Half the distance from 1 to the next number: the largest relative error of one operation."""

WEIGHTED = 4 * UNIT
"""A bound on the relative error of an entry that was multiplied by the root of a weight.

The bounds of plain products have room for it; those of products in twice the precision add it.
"""

LANES = 16
"""How many partial sums an inner product is made of where `lane_rounding` bounds its error."""

FLOOR = 2.0**-60
"""Share of ||b|| that is added to the length of a residual before its products are bounded.

It covers products that underflow where data as small as 1e-130 meet a residual of 1e-150, and
adds no more than 1e-34 ||b||^2 to a gap.
"""


def product_rounding(m: int) -> float:
    """Return c so that an inner product of m terms is wrong by at most c ||a|| ||b||, in any order.

    >>> round(product_rounding(100) / 2.0**-53)
    110
    """
    return 1.02 * UNIT * (m + 8)


def lane_rounding(m: int) -> float:
    """Return c as `product_rounding` does, for `LANES` partial sums that are added in pairs."""
    return 1.02 * UNIT * (m // LANES + 14)


def expected_rounding(m: int) -> float:
    """Return the usual error of an inner product of m terms, relative to ||a|| ||b||.

    Errors of either sign cancel, so that it grows like the root of m. It serves decisions that
    prove nothing, such as which atoms still descend: a smaller slope may be rounding alone.
    """
    return 2.0 * UNIT * (16.0 + sqrt(m))


def resolution(m: int) -> float:
    """Return the share of f(0), ||b||^2 / 2 in least squares, below which gaps are not improved.

    It is 256 times `product_rounding`. Plain arithmetic proves gaps of a few times
    `product_rounding` of f(0), and larger ones where weights cancel. A gap up to the share returned
    is kept. For a larger one other functionals are tried and products are computed in twice the
    precision, which takes as long as a few more solves. Fits with other losses end there if the
    gap is that of rounding.
    """
    return 261.0 * UNIT * (m + 8)


def doubled_rounding(m: int) -> float:
    """Return c as `product_rounding` does, for a sum that is kept in twice the precision.

    Rounding the sum to one float adds an error of `UNIT` times the result (Ogita, Rump and Oishi,
    Accurate Sum and Dot Product, 2005).
    """
    return (1.02 * UNIT * (m + 8)) ** 2
