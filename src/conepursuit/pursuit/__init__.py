"""The paper: minimise f over a cone, a span or a hull of atoms, by any of its algorithms.

The input is an objective, a domain and an algorithm; the output is a `Result`. The modules:

- ``solve``: `minimize` follows `iterates`, the only loop, records its states and stops it.
- ``starts``: makes the first `Iterate` from what a user gives: a result, weights or an x.
- ``iterate``: `Iterate`, x with its atoms and weights; `Local`, the gradient and the scores there;
  `Direction`, where an algorithm goes.
- ``domains``: `Cone`, `Span`, `Hull`.
- ``algorithms``: each chooses a direction; ``steps``: how far to go along it.
- ``full_correction``: the update of FCMP and OMP, by the small quadratic programmes of
  ``weight_programs``.
- ``certify``: gaps, proven or not, for every state of a run and for any point that a user gives.
- ``results``: `State`, `Trace`, `Result`; ``penalty_path``: a run for each of many penalties.
"""
