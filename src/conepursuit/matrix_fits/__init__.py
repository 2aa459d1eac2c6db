"""What fits of a matrix share, whatever the loss; `least_squares` and `loss_fits` stand on it.

- ``arguments``: the matrix, targets, weights, starts and counts that a user gives, checked.
- ``safe_units``: powers of two in which squares are safe, and the way back.
- ``threads``: chunks of targets, and threads that work on them.
- ``results``: `NNLSResult`, `FitResult`, and the rows of many targets that become one of them.
"""
