"""The functions of `conepursuit.rounding`, compiled for kernels."""

from __future__ import annotations

from typing import Any

from numba import njit

from conepursuit import rounding

product_rounding: Any = njit(rounding.product_rounding)
lane_rounding: Any = njit(rounding.lane_rounding)
doubled_rounding: Any = njit(rounding.doubled_rounding)
expected_rounding: Any = njit(rounding.expected_rounding)
resolution: Any = njit(rounding.resolution)
