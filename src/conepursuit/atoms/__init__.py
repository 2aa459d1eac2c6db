"""Atom sets: what the non-negative combinations are made of."""

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
from conepursuit.atoms.vectors import NonnegativeSphere, UnitVectors, Vectors

__all__ = [
    "ApproximateOracle",
    "AtomSet",
    "Atoms",
    "Dictionary",
    "FunctionAtoms",
    "NonnegativeRankOne",
    "NonnegativeSphere",
    "NonnegativeSymmetric",
    "PositiveSemidefinite",
    "RankOnes",
    "Symmetric",
    "Union",
    "UnitVectors",
    "Vectors",
]
