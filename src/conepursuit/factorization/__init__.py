"""Non-negative factorisations X ~ F'G: the engine of `GreedyNMF`.

What comes in are data with weights, a rank and penalties; what goes out are two factors, with the
objective and the accuracy of the oracle at every rank. The walk:

- ``data``: `FactorData`, which entries count and in which units; the best F for a given G.
- ``losses``: `FactorLoss`, what a loss of two factors must know, and sweeps with extrapolation.
- ``squared``, ``divergence``: least squares (plain, weighted, of stored entries) and the
  Kullback-Leibler divergence; their sweeps are in `conepursuit.kernels.factorization`.
- ``greedy``: `factorize`, one rank after the other: oracle, weights, then all atoms.
- ``held_out``: the choice of a rank by entries that are left out.
- ``sources``: the choice of a rank by components that two halves of the data agree on.
- ``lazy_data``: `LazyFactorData`, the data in a Dask array. ``lazy_rows`` has the passes over its
  blocks, and the factor that lies in them; ``lazy_squared`` and ``lazy_divergence`` are the losses,
  for the same `factorize`; ``lazy_oracle`` finds the atoms, ``lazy_weights`` the best F.
- ``corrected``: `Corrected`, the algorithm for the generic loop, which ``greedy`` is held to.
"""
