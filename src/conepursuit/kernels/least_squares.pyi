"""The types of ``cpp/least_squares/bind.cpp``."""

import numpy as np
import numpy.typing as npt

F = npt.NDArray[np.float64]
I = npt.NDArray[np.int64]
U = npt.NDArray[np.uint64]
B = npt.NDArray[np.bool_]

def fit_target(
    atoms: F, b: F, G: F, x: F, dual: F, inexact: float, limit: int, max_steps: int, /
) -> tuple[float, float, bool, int, int]: ...
def fit(
    atoms: F, b: F, c: F, inverse_norms: F, G: F, x: F, C: F, order: I, y: F, k: int,
    r: F, p: F, g: F, orthogonal: bool, limit: int, max_steps: int, /,
) -> tuple[int, int, int, bool]: ...  # fmt: skip
def sweeps(
    atoms: F, inverse_norms: F, x: F, r: F, target: float, pace: float, most: int, /
) -> tuple[float, int]: ...
def least_tilt(g: F, g_error: F, s: F, s_error: F, /) -> float: ...
def tilted_gap(
    g: F, g_error: F, s: F, s_error: F, x: F, length: float, distance: float, /
) -> float: ...
def settled(
    gap: float, g: F, norms: F, x: F, length: float, size: float, /
) -> tuple[float, bool]: ...
def functional(atoms: F, norms: F, order: I, k: int, C: F, t: F, /) -> None: ...
def accurate_residual(atoms: F, b: F, r: F, x: F, order: I, k: int, out: F, /) -> None: ...
def accurate_slopes(atoms: F, order: I, k: int, r: F, out: F, /) -> None: ...
def accurate_dot(a: F, b: F, /) -> float: ...
def lane_slopes(atoms: F, order: I, k: int, r: F, g: F, /) -> None: ...
def tabulate(
    G: F, n: int, m: int, M: F, shift: F, least: F, products: F, bounds: F, repaired: U,
    delicate: B, /,
) -> None: ...  # fmt: skip
def tabulate_sum(
    norms: F, m: int, raised: float, s: float, at_most: bool, M: F, shift: F, least: F,
    products: F, bounds: F, repaired: U, delicate: B, /,
) -> None: ...  # fmt: skip
def sum_gap(
    g: F, g_error: F, offset: float, x: F, s: float, at_most: bool, distance: float, /
) -> float: ...
def close_sum(x: F, s: float, /) -> float: ...
def fit_few(
    s: float, at_most: bool, multipliers: F, atoms: F, targets: F, G: F, sums: F, M: F, shift: F,
    least: F, products: F, bounds: F, repaired: U, delicate: B, X: F, duals: F, rnorms: F, gaps: F,
    proven: B, codes: I, counts: I, /,
) -> None: ...  # fmt: skip
def fit_targets(
    s: float, at_most: bool, multipliers: F, raised: float, atoms: F, targets: F, G: F,
    inverse_norms: F, sums: F, limit: int, max_steps: int, X: F, duals: F, rnorms: F, gaps: F,
    proven: B, codes: I, counts: I, /,
) -> None: ...  # fmt: skip
