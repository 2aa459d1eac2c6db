"""Plain numba functions on plain arrays, imported where they are used.

Importing this package costs nothing: numba is loaded with the module that holds a kernel.

- ``constants``: codes and limits that kernels share with their callers.
- ``shared``: triangular factors, small quadratic programmes, passes over a matrix, rounding.
- ``least_squares``, ``loss_fits``, ``factorization``: the loops of the packages of these names.
- ``garrote``: coordinate descent for the estimators of the garrote.
"""
