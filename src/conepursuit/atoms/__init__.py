"""Atom sets: what the non-negative combinations are made of.

- ``base``: `AtomSet`, a set with its oracle, and `Atoms`, a batch of its members.
- ``vectors``: batches of vectors, kept in one append-only ``table``; `UnitVectors`,
  `NonnegativeSphere`.
- ``dictionary``: the columns of a matrix of any kind; ``block_dictionary``: of a Dask array.
- ``rank_one``: rank-one matrices; ``power`` is their oracle, with its proof. ``rank_one_tensor``:
  rank-one tensors.
- ``combined``, ``custom``: `Symmetric` and `Union`; sets from a user's oracle, and rough oracles.
"""

from conepursuit.atoms.base import Atoms, AtomSet
from conepursuit.atoms.combined import Symmetric, Union
from conepursuit.atoms.custom import ApproximateOracle, FunctionAtoms
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.atoms.rank_one import (
    NonnegativeRankOne,
    NonnegativeSymmetric,
    PositiveSemidefinite,
    RankOnes,
)
from conepursuit.atoms.rank_one_tensor import NonnegativeRankOneTensor
from conepursuit.atoms.vectors import NonnegativeSphere, UnitVectors, Vectors

__all__ = [
    "ApproximateOracle",
    "AtomSet",
    "Atoms",
    "Dictionary",
    "FunctionAtoms",
    "NonnegativeRankOne",
    "NonnegativeRankOneTensor",
    "NonnegativeSphere",
    "NonnegativeSymmetric",
    "PositiveSemidefinite",
    "RankOnes",
    "Symmetric",
    "Union",
    "UnitVectors",
    "Vectors",
]
