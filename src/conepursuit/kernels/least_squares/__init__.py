"""Loops of non-negative least squares, called by `conepursuit.least_squares`."""
