"""Non-negative fits with any smooth loss, with a proof: `nnfit`.

What comes in are an objective f and a matrix A; what goes out is a `FitResult`. The walk:

- ``api``: `nnfit` reads its arguments, changes to safe units if need be, and picks one of these.
- ``one_target``: Newton's method on the weights of one target; ``columns`` is its problem, a
  matrix with the columns in use copied together, and ``last_step`` makes the dual point that
  proves the answer.
- ``many``: all columns of the data at once, in threads, for the losses that the kernels know.
- Which losses those are, and how all of them are called, says the table `conepursuit.losses`.
- Where there is no Hessian or A is a LinearOperator, the loop of `conepursuit.pursuit` does it.

The loops are in `conepursuit.kernels.loss_fits`.
"""

from conepursuit.loss_fits.api import nnfit

__all__ = ["nnfit"]
