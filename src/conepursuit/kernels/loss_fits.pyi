"""The types of ``cpp/loss_fits/bind.cpp``."""

import numpy as np
import numpy.typing as npt

F = npt.NDArray[np.float64]
I = npt.NDArray[np.int64]
B = npt.NDArray[np.bool_]

def fit_losses(
    code: int, parameter: float, atoms: F, targets: F, entry_weights: F, penalty: float,
    tol: float, max_steps: int, c: F, dual: F, value: F, gap: F, proven: B, status: I, n_iter: I,
) -> None: ...  # fmt: skip

class Losses:
    """The functions of the module `losses`."""

    @staticmethod
    def slope(code: int, parameter: float, y: float, x: float) -> float: ...
    @staticmethod
    def divergence(code: int, parameter: float, y: float, x: float, z: float) -> float: ...
    @staticmethod
    def young(code: int, parameter: float, y: float, x: float, change: float) -> float: ...

losses: Losses
