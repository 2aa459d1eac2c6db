"""The types of ``cpp/factorization/bind.cpp``."""

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64] | npt.NDArray[np.int32]
Real = npt.NDArray[np.float64] | npt.NDArray[np.float32]

COMPONENTS: int

def entries(indices: Ints, indptr: Ints, F: F64, G: F64) -> F64: ...
def sweep_observed(
    data: F64, weights: F64, indices: Ints, indptr: Ints, F: F64, G: F64, l1: float, l2: float,
    sweeps: int,
) -> None: ...  # fmt: skip
def observed_value(
    data: F64, weights: F64, indices: Ints, indptr: Ints, F: F64, G: F64, l1: float, l2: float
) -> float: ...
def update_sparse(
    data: F64, indices: Ints, indptr: Ints, F: F64, G: F64, sums: F64, l1: float, l2: float,
    step: bool, evaluate: bool,
) -> float: ...  # fmt: skip
def fit_rows(
    data: F64, indices: Ints, indptr: Ints, F: F64, G: F64, l1: float, l2: float,
    tolerance: float, max_sweeps: int,
) -> int: ...  # fmt: skip
def hals(gram: F64, target: F64, F: F64, sweeps: int) -> None: ...
def greedy_sweep(
    gram: F64, target: F64, F: F64, l1: float, l2: float, tolerance: float, max_inner: int
) -> int: ...
def sweep_weighted(X: F64, M: F64, F: F64, G: F64, l1: float, l2: float, sweeps: int) -> None: ...
def sweep_by_residuals(
    X: F64, M: F64, F: F64, G: F64, l1: float, l2: float, sweeps: int
) -> None: ...
def sweep_by_grams(X: F64, M: F64, F: F64, G: F64, l1: float, l2: float, sweeps: int) -> None: ...
def weighted_value(X: F64, M: F64, F: F64, G: F64, l1: float, l2: float) -> float: ...
def update_dense(
    X: F64, M: F64, F: F64, G: F64, l1: float, l2: float, step: bool, evaluate: bool
) -> float: ...
def extrapolate(new: F64, old: F64, share: float, limit: float, out: F64) -> None: ...
def slopes(X: F64, M: F64, Z: F64, out: Real) -> None: ...
def curvature(X: F64, M: F64, Z: F64, u: F64, v: F64) -> float: ...
def minimiser(u: float, pull: float, bend: float, c: float, q: float) -> float: ...
def settle(H: F64, v: F64, slope: F64) -> None: ...
def cyclic_kl_sweep(X: F64, F: F64, G: F64, floor: float) -> None: ...
def logistic_sweeps(
    atoms: F64, y: F64, weights: F64, penalty: float, intercept: bool, c: F64, b: float,
    tol: float, max_sweeps: int,
) -> tuple[float, int, bool]: ...  # fmt: skip
def squared_sweeps(
    atoms: F64, y: F64, weights: F64, penalty: float, intercept: bool, c: F64, b: float,
    tol: float, max_sweeps: int,
) -> tuple[float, int, bool]: ...  # fmt: skip
def logistic_curvature(margin: float, reach: float) -> float: ...
