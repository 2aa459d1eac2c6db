"""Non-negative fits with any smooth loss, with a proof: `nnfit`, and `nnfit_path`.

The input is an objective f and a matrix A; the output is a `FitResult`. The modules:

- ``api``: `nnfit` reads its arguments, changes to safe units if need be, and picks one of these.
- ``arguments``: what `nnfit` and `nnfit_path` read, and safe units.
- ``single``: one target by all columns.
- ``path``: fits with few atoms, which ``selection`` looks for.
- ``one_target``: Newton's method on the weights of one target; ``columns`` holds its problem, a
  matrix with the columns in use copied together, and ``last_step`` makes the dual point that
  proves the answer.
- ``many``: all columns of the data at once, in threads, for the losses that the kernels know.

The table `conepursuit.losses` lists the losses, with their names and those that the kernels know.
Where f has no Hessian or A is a LinearOperator, the loop of `conepursuit.pursuit` makes the fit.

The loops are in `conepursuit.kernels.loss_fits`.
"""

from conepursuit.loss_fits.api import nnfit
from conepursuit.loss_fits.path import nnfit_path

__all__ = ["nnfit", "nnfit_path"]
