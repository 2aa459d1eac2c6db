"""Loops of matrix factorisations, called by `conepursuit.factorization` and `low_rank`."""
