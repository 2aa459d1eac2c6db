"""Atom sets: what the non-negative combinations are made of."""

from conepursuit.atoms.base import Atoms, AtomSet
from conepursuit.atoms.combined import Symmetric, Union
from conepursuit.atoms.custom import ApproximateOracle, FunctionAtoms
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.atoms.vectors import NonnegativeSphere, UnitVectors, Vectors

__all__ = [
    "ApproximateOracle",
    "AtomSet",
    "Atoms",
    "Dictionary",
    "FunctionAtoms",
    "NonnegativeSphere",
    "Symmetric",
    "Union",
    "UnitVectors",
    "Vectors",
]
