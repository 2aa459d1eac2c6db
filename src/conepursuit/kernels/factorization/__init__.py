"""Loops of matrix factorisations, called by `conepursuit.factorization`."""
