"""What is said about the cost of an iteration, from made measurements."""

import pytest

from conepursuit.experiments import complexity


def measured(dimension, seconds):
    """Return results of all algorithms whose iterations take some seconds, and products 1 ms."""
    cost = {"seconds": [seconds] * 4, "active": [1, 2, 3, 4], "product": 1e-3}
    rate = {"least_share": 1.0, "bad": 0.0, "rate": 0.5, "power": 2.0}
    names = [name.replace(" v. ", "-") for name in complexity.ALGORITHMS]
    results = {f"{name}-{d}": cost for name in names for d in (250, dimension)}
    return results | {f"{name}-rate": rate for name in names}


@pytest.mark.parametrize(
    ("dimension", "seconds", "verdict", "remark"),
    [
        (4000, 1.2e-3, "agrees", "The second query needs no product"),
        (4000, 8e-3, "differs", "more than one product"),
        (500, 8e-3, "not tested", "A product takes 1 ms in dimension 500"),
    ],
)
def test_the_remark_on_the_cost_follows_the_measurement(dimension, seconds, verdict, remark):
    found = complexity.present(measured(dimension, seconds)).comparisons
    (claim,) = (claim for claim in found if "time of an iteration" in claim.what)
    assert claim.verdict == verdict
    assert remark in claim.remark
