"""Triangular factors, small quadratic programmes, passes over a matrix, constants of rounding."""
