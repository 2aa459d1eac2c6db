"""The paper: minimise f over a cone, a span or a hull of atoms, by any of its algorithms.

What comes in are an objective, a domain and an algorithm; what goes out is a `Result`. The walk:

- ``solve``: `minimize` follows `iterates`, the only loop, records its states and stops it.
- ``starts``: from what a user gives (a result, weights, an x) to the first `Iterate`.
- ``iterate``: x with its atoms and weights; what is known there (`Local`); the one `Direction`.
- ``domains``: `Cone`, `Span`, `Hull`.
- ``algorithms``: one choice of direction each; ``steps``: how far to go along it.
- ``full_correction``: the update of FCMP and OMP, by the small quadratic programmes of
  ``weight_programs``.
- ``certify``: gaps, proven or not, for every state and for anybody's answer.
- ``results``: `State`, `Trace`, `Result`; ``penalty_path``: a run for each of many penalties.
"""
