"""Non-negative least squares, with a proof: `nnls` and what belongs to it.

The input is a matrix A and one target b, or many; the output is an `NNLSResult`. The modules:

- ``api``: `nnls` reads its arguments, weighs the rows, and calls one of the next two; targets in a
  Dask array it fits block by block, by `conepursuit.matrix_fits.lazy`.
- ``one_target``: picks the method for the size of A, changes to safe units if need be.
- ``many``: many targets, in chunks and threads; on a dense A of up to 2048 atoms they share one
  Gram matrix, and those for which that is not accurate enough go to ``one_target``.
- ``whole``: one target on a dictionary that is small or has near copies of atoms, with passes over
  all atoms.
- ``large``: one target on a large one, with a ``working_set`` of atoms; ``survey`` is its first
  pass, and ``beyond`` what passes show of the other atoms of a dictionary in a Dask array.
- ``path``: one atom after the other, for `nnls_path` and for ``max_atoms=``, unless A is small.
- ``sums``: many targets with a given sum of weights; ``sum_kernels`` has the kernels for it, and
  ``sum_target`` fits one target, with the proof that a simplex allows.
- ``proofs``: bounds on f(x) - f* on a matrix of any kind; ``audit`` tries them in turn, for
  `certify_nnls` and for fits of `nnls` whose gap is not small enough.
- ``gram``: `nnls_gram`, where only A'A and A'b are known.

The loops are in `conepursuit.kernels.least_squares`.
"""
