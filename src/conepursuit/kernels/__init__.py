"""Plain numba functions on plain arrays, imported where they are used.

Importing this package costs nothing: numba is loaded with the module that holds a kernel.
"""
