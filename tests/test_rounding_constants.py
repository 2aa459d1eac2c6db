"""The constants behind every proof are bounds, and not much larger than they must be."""

from fractions import Fraction

import pytest

from conepursuit import rounding

HALF = Fraction(1, 2**53)


def sums(additions):
    """Return the bound on the relative error of a sum of products with so many additions in row."""
    return additions * HALF / (1 - additions * HALF)


@pytest.mark.parametrize("m", [1, 2, 16, 100, 10**4, 10**7, 10**12])
def test_each_is_a_bound_with_a_margin_of_a_few_units(m):
    least = {
        "product_rounding": sums(m + 4),  # a few units for the norms beside it
        "lane_rounding": sums(-(-m // 16) + 4 + 4),  # 16 sums, which four additions put together
        "doubled_rounding": sums(m + 4) ** 2,
    }
    for name, bound in least.items():
        given = Fraction(getattr(rounding, name)(m))
        room = Fraction(103, 100) * (bound + 12 * HALF)
        if name == "doubled_rounding":
            room = Fraction(107, 100) * (sums(m + 8)) ** 2
        assert bound < given <= room, name
    assert 250 < rounding.resolution(m) / rounding.product_rounding(m) < 260
    typical = rounding.expected_rounding(m)
    assert 2.0**-53 * m**0.5 < typical < 2.0**-53 * (2 * m**0.5 + 40)


def test_the_numbers_they_are_made_of():
    assert HALF == rounding.UNIT
    assert rounding.LANES == 16
    assert sums(3) < Fraction(rounding.WEIGHTED) < sums(5)  # a root, a product, and their margin
    assert 2.0**-62 <= rounding.FLOOR <= 2.0**-58
