"""What a call said, and what is wrong with that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

GROSS = 1e-10
"""A proof that is false by more than this share of f(0) is more than rounding."""

TIGHT = 1e-10
"""A proven gap below this share of f(0) counts as tight."""


@dataclass(frozen=True)
class Failure:
    """Something wrong with the answer for one target.

    Attributes
    ----------
    what : str
        "false proof", "wrong value", "not finite" (of a gap), "invalid" (of another number),
        "exception" or "warning".
    target : int
        Which column of B.
    detail : str
        What was seen.
    size : float
        By how much a proof is false or a value wrong, as a share of f(0) or of the terms of f.
    """

    what: str
    target: int
    detail: str
    size: float = 0.0


@dataclass(frozen=True)
class Answer:
    """What a call said of one target: weights, gap, proof, and other numbers that it returned.

    The value of f is None where the call returns none, or where it leaves out a constant.
    """

    x: np.ndarray
    gap: float
    proven: bool
    others: tuple
    penalty: float = 0.0
    success: bool = False
    value: float | None = None
