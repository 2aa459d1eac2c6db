"""What fits of a matrix share, whatever the loss; used by `least_squares` and `loss_fits`.

- ``arguments``: the matrix, targets, weights, starts and counts that a user gives, checked.
- ``safe_units``: powers of two in which squares are safe, and the way back.
- ``threads``: chunks of targets, and threads that work on them.
- ``lazy``: fits of Dask arrays, block by block.
- ``results``: `NNLSResult`, `FitResult`, and `Fits`, which collects those of many targets.
"""
