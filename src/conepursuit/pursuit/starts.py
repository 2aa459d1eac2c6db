"""Iterates of a domain, made from what a user gives: a result, a checkpoint, weights or an x."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite, isnan, nan
from typing import Any, cast

import numpy as np
from scipy.optimize import brentq

from conepursuit.arrays import (
    Array,
    Vector,
    as_float_array,
    inner,
    is_finite,
    is_integer,
    is_number,
    norm,
    ones,
    zeros,
)
from conepursuit.atoms.base import Atoms, AtomSet, unpacked_keys
from conepursuit.atoms.dictionary import Dictionary
from conepursuit.atoms.vectors import UnitVectors
from conepursuit.checkpoints import Saved, named_if_saved
from conepursuit.labels import order_of
from conepursuit.low_rank import FactoredTensor
from conepursuit.objectives.base import Objective, check_real
from conepursuit.pursuit.domains import Domain, describe
from conepursuit.pursuit.iterate import Iterate


def check_fit(objective: Objective, domain: Domain) -> None:
    """Raise ValueError unless these are an objective and a domain of one shape."""
    if not isinstance(objective, Objective):
        raise ValueError(
            f"the objective must be an Objective; got {type(objective).__name__}. "
            "Use LeastSquares(y) or FunctionObjective(function, shape)."
        )
    if not hasattr(domain, "refit"):
        raise ValueError(
            f"the domain must be a Cone, Span or Hull; got {type(domain).__name__}. "
            "Use Cone(Dictionary(D)) for the columns of a matrix D."
        )
    kept = getattr(domain.atoms, "factored", False)
    if kept != isinstance(objective.origin(), FactoredTensor):
        raise ValueError(
            f"{objective!r} and {describe(domain)} must both be factored, or neither. Use "
            "NonnegativeRankOne(shape, factored=True) with FactoredLeastSquares(X), or "
            "factored=False with LeastSquares(X)."
        )
    if tuple(objective.shape) != tuple(domain.atoms.shape):
        raise ValueError(
            f"{objective!r} takes arrays of shape {tuple(objective.shape)}, but the "
            f"atoms of {describe(domain)} have shape {tuple(domain.atoms.shape)}. "
            "They must agree; atoms are columns."
        )
    check_rows(objective, domain.atoms)


def check_rows(objective: Objective, atoms: AtomSet) -> None:
    """Raise ValueError if atoms and data have row labels that differ, or stand in other orders."""
    if isinstance(atoms, Dictionary) and objective.row_labels is not None:
        order = order_of(atoms.row_labels, objective.row_labels, "the dictionary", "the data")
        if order is not None:
            raise ValueError(
                "the rows of the dictionary are in another order than those of the data. Use "
                "Dictionary(D.loc[y.index]), with D the table and y the data."
            )


SAME = 1e-6
"""f at a checkpoint is what it was if it differs by up to this times |f| + |decrease|.

The file holds f at an x that many steps have made, which differs by rounding from the sum of its
atoms. A larger difference means that the problem is another one.
"""


def as_iterate(objective: Objective, domain: Domain, point: Any) -> Iterate:
    """Return a result, an iterate, a checkpoint, or the weights of all atoms as an iterate.

    Atoms are made anew from their keys, by the atom set of the domain, or taken as they are where
    it cannot do that. Weights of all atoms need a finite set.
    """
    with named_if_saved(point):
        keys, weights, stored = _parts(objective, domain, getattr(point, "iterate", point))
        batch = domain.atoms.empty()
        domain.atoms.fetch(keys)
        for place, key in enumerate(keys):
            atom = domain.atoms.atom(key)
            if atom is None and stored is None:
                raise ValueError(
                    f"{domain.atoms!r} cannot make the atom with the key {key!r} anew, and its "
                    "vector is not in the checkpoint. Give the set a method atom(key)."
                )
            batch = batch.join(atom if atom is not None else cast(Atoms, stored)[[place]])
        iterate = Iterate(objective.origin(), batch, weights).recomputed()
        _check_weights(iterate, domain)
        return iterate


def _parts(
    objective: Objective, domain: Domain, point: Any
) -> tuple[tuple[Any, ...], Vector, Atoms | None]:
    """Return the keys and weights of a point, and its atoms where it has them."""
    if isinstance(point, Iterate):
        _check_shape("the iterate", point.x.shape, objective)
        return point.atoms.keys, point.weights.copy(), point.atoms
    if isinstance(point, Saved):
        point.check_kind("minimize")
        return *_saved_parts(objective, point), domain.atoms.empty().restored(point)
    full = _full_weights(domain, point)
    keys = tuple(int(key) for key in np.flatnonzero(full))
    return keys, full[list(keys)], None


def _saved_parts(objective: Objective, saved: Saved) -> tuple[tuple[Any, ...], Vector]:
    """Return the keys and weights of a checkpoint, with all of it looked at but its atoms."""
    _check_shape("it", saved.shape, objective)
    keys, weights = unpacked_keys(saved.keys), as_float_array(saved.weights, "its weights")
    if weights.shape != (len(set(keys)),) or len(keys) != len(weights):
        raise ValueError(f"it has {len(keys)} keys, and weights of shape {weights.shape}")
    if not (is_number(saved.value) and is_number(saved.decrease) and is_integer(saved.iteration)):
        raise ValueError("its value, decrease and iteration must be numbers")
    return keys, weights


def _check_shape(what: str, shape: Iterable[int], objective: Objective) -> None:
    """Raise ValueError unless the x of a point has the shape that the objective takes."""
    own = tuple(int(n) for n in shape)
    if own != tuple(objective.shape):
        raise ValueError(
            f"{what} has x of shape {own}, but {objective!r} takes shape {tuple(objective.shape)}."
        )


def first_point(objective: Objective, domain: Domain, start: Any) -> tuple[Iterate, float, bool]:
    """Return where a run starts, f at its reference, and whether the start given was taken.

    The decrease of f is measured from the reference. That is the origin or, where f or its
    gradient is infinite there, the best multiple of a few atoms; where none is found, it is the
    start given. A run starts from the reference if no start is given, or one where f or its
    gradient is infinite.
    """
    given = None if start is None else as_iterate(objective, domain, start)
    at_start = inf if given is None else _finite_value(objective, domain, given)
    if isinstance(start, Saved):
        _check_value(start, at_start)
    taken = given if at_start < inf else None
    origin = Iterate(objective.origin(), domain.atoms.empty(), zeros((0,)))
    reference = _finite_value(objective, domain, origin)
    if reference < inf:
        return taken or origin, reference, taken is not None
    try:
        best = best_multiple(objective, domain)
    except ValueError:
        if taken is None:
            raise
        return taken, at_start, True
    return taken or best, _finite_value(objective, domain, best), taken is not None


def _check_value(saved: Saved, value: float) -> None:
    """Raise ValueError unless f at a checkpoint is what it was when that was written."""
    if not abs(value - saved.value) <= SAME * (abs(saved.value) + abs(saved.decrease)):
        raise ValueError(
            f"{saved.path} is the checkpoint of another problem: f was {saved.value:.9g} at its "
            f"weights, and is {value:.9g} here. Objective, atoms and penalty must be those of the "
            "run that wrote it."
        )


def _finite_value(objective: Objective, domain: Domain, iterate: Iterate) -> float:
    """Return f(x) with the penalty; inf if that or the gradient is infinite or NaN."""
    value, gradient = objective.value_and_gradient(iterate.x)
    check_real(value, gradient)
    finite = isfinite(value) and is_finite(gradient)
    return float(value) + domain.penalty * iterate.size if finite else inf


def best_multiple(objective: Objective, domain: Domain) -> Iterate:
    """Return the best multiple of one atom, or of the sum of a few, where f is finite.

    It is for an f that is infinite at the origin. The first atom is the oracle's answer to the
    gradient just below the best multiple of the array of ones. While f is infinite on all multiples
    of the sum of the atoms, one more joins: the oracle's answer to the gradient a little inside the
    domain, on the entries that no atom reaches yet. If the oracle has no new atom, all atoms of a
    finite set are tried together, then one by one.
    """
    everywhere = objective.covering_atom()
    if everywhere is not None:
        best = _multiple(objective, domain, everywhere)
        assert best is not None
        return best
    inside = ones(objective.shape, objective.origin())
    level = ray_minimum(objective, inside, 0.0)
    if level is None:
        raise ValueError(
            f"{objective!r}, or its gradient, is infinite or NaN at the origin, and at every "
            "multiple of the array of ones. Start from a point where both are finite."
        )
    # If the data are constant, all slopes are zero at the best multiple, but not below it.
    atoms, x, margin = domain.atoms.empty(), objective.origin(), 0.9 * level
    while True:
        wanted = objective.value_and_gradient(x + margin * inside)[1]
        if len(atoms):
            wanted = wanted * (x <= 0)  # entries not reached yet
        atom = domain.atoms.lmo(wanted)
        if atom.keys[0] in atoms.keys or not float(atom.norms()[0]) > 0:
            return _some_multiple(objective, domain)
        atoms = atoms.join(atom)
        best = _multiple(objective, domain, atoms)
        if best is not None:
            return best
        x, margin = atoms.combine(1.0 / atoms.norms()), 1e-6 * level


def _multiple(objective: Objective, domain: Domain, atoms: Atoms) -> Iterate | None:
    """Return the best multiple of the sum of unit atoms; None if f is infinite on all of them."""
    weights = 1.0 / atoms.norms()
    x = atoms.combine(weights)
    best = ray_minimum(objective, x, domain.penalty * float(weights.sum()))
    return None if best is None else Iterate(best * x, atoms, best * weights)


def _some_multiple(objective: Objective, domain: Domain) -> Iterate:
    """Return the best multiple of the sum of all atoms of a finite set, or of one of them."""
    everything = domain.atoms.empty()
    for key in range(domain.atoms.n_atoms or 0):
        atom = domain.atoms.atom(key)
        if atom is not None and float(atom.norms()[0]) > 0:
            everything = everything.join(atom)
    if len(everything):
        candidates = (everything, *(everything[[j]] for j in range(len(everything))))
        for atoms in candidates:
            best = _multiple(objective, domain, atoms)
            if best is not None:
                return best
    raise ValueError(
        f"{objective!r} is infinite on {describe(domain)} as far as can be seen: "
        f"{why_infinite(objective, _reached(everything))} Or start where f is finite."
    )


def _reached(atoms: Atoms) -> Array | bool:
    """Return at which entries some of these atoms is not zero; False if there are no atoms."""
    units = (atoms[[j]].combine(np.ones(1)) for j in range(len(atoms)))
    return np.any([unit != 0 for unit in units], axis=0) if len(atoms) else False


def why_infinite(objective: Objective, reached: Array | bool) -> str:
    """Return why f may be infinite at all combinations of atoms, and what to do.

    `reached` says at which entries some atom is not zero.
    """
    inside = ones(objective.shape, objective.origin())
    level = ray_minimum(objective, inside, 0.0) or 1.0
    if isfinite(objective.value(level * inside * reached)):
        return (
            "no combination of the atoms that was tried is positive wherever f needs that, as may "
            "be with atoms of both signs. Mask entries, or add an atom that is not negative."
        )
    return (
        "some entry of the data is positive where all atoms are zero. Mask such entries, or add "
        "an atom that reaches them."
    )


def ray_minimum(objective: Objective, vector: Array, charge: float) -> float | None:
    """Return the s > 0 that minimises f(s v) + s * charge.

    None if v is zero, or if f is infinite at all s tried.
    """

    def slope(power: float) -> float:
        value, gradient = objective.value_and_gradient(10.0**power * vector)
        if not (isfinite(value) and is_finite(gradient)):
            return nan
        return inner(gradient, vector) + charge

    size = norm(vector)
    if not size > 0:
        return None
    middle = -float(np.log10(size))
    tried = [middle + sign * k for k in range(40) for sign in (1, -1)]
    known = next((p for p in tried if not isnan(slope(p))), None)
    if known is None:
        return None
    low = high = known
    while slope(low) > 0 and low > known - 300:
        low -= 1.0
    while slope(high) < 0 and high < known + 300:
        high += 1.0
    if not slope(low) < 0 < slope(high):
        return float(10.0**known)
    best: float = 10.0 ** brentq(slope, low, high, xtol=1e-12)
    return best


def _full_weights(domain: Domain, point: Any) -> Any:
    """Return the weights of all atoms as a vector; other sets than finite ones are refused."""
    n = domain.atoms.n_atoms
    if n is None:
        raise ValueError(
            f"weights need a finite set of atoms, such as a Dictionary; got {domain.atoms!r}. "
            "Give the iterate of a result."
        )
    weights = as_float_array(point, "weights").reshape(-1)
    if len(weights) != n:
        raise ValueError(f"weights must have {n} entries, one per atom; got {len(weights)}.")
    return weights


def _check_weights(iterate: Iterate, domain: Domain) -> None:
    """Raise ValueError unless the weights are allowed by the domain."""
    weights = iterate.weights
    if not np.isfinite(weights).all():
        raise ValueError("the weights must be finite; got NaN or infinity.")
    if not domain.signed and (weights < 0).any():
        raise ValueError(
            f"{describe(domain)} needs non-negative weights; the least is "
            f"{weights.min():.3g}. Use Span(atoms) for weights of either sign."
        )
    if domain.room(np.zeros(0)) < inf and weights.sum() > domain.radius * (1 + 1e-9):
        raise ValueError(
            f"{describe(domain)} needs weights that sum to at most {domain.radius}; "
            f"they sum to {weights.sum():.6g}."
        )


def point_to_certify(
    objective: Objective, domain: Domain, point: Any, x: Any, weights: Any
) -> tuple[Iterate, bool]:
    """Return an iterate, and whether it is known to lie in the domain."""
    if sum(given is not None for given in (point, x, weights)) != 1:
        raise ValueError("certify needs exactly one of a point, x= and weights=.")
    if isinstance(getattr(point, "iterate", point), Iterate | Saved):
        return as_iterate(objective, domain, point), True
    if point is not None:
        n, shape = domain.atoms.n_atoms, np.shape(point)
        is_x, is_weights = shape == tuple(objective.shape), shape == (n,)
        if is_x == is_weights and not isinstance(domain.atoms, UnitVectors):
            raise ValueError(
                f"an array of shape {shape} may be {'either' if is_x else 'neither'} "
                f"of x, shape {tuple(objective.shape)}, and the weights of all atoms"
                f"{f', shape ({n},)' if n else ''}. Pass x= or weights=."
            )
        x, weights = (None, point) if is_weights else (point, None)
    if x is not None and isinstance(domain.atoms, UnitVectors):
        x, weights = None, x  # the weights of unit vectors are the entries of x
    if weights is not None:
        return as_iterate(objective, domain, weights), True
    return _bare_point(objective, domain, x)


def _bare_point(objective: Objective, domain: Domain, x: Any) -> tuple[Iterate, bool]:
    """Return x as an iterate without atoms, and whether it is known to lie in the domain.

    The gauge of the atoms tells, where they have one; an x outside raises a ValueError.
    """
    full = as_float_array(x, "x")
    if full.shape != tuple(objective.shape):
        raise ValueError(f"x must have shape {tuple(objective.shape)}; got {full.shape}.")
    if domain.penalty:
        raise ValueError("a penalised problem is about weights, not x. Pass weights=.")
    gauge = None if domain.signed else domain.atoms.gauge(full)
    bound = domain.radius if domain.room(np.zeros(0)) < inf else inf
    if gauge is not None and (gauge == inf or gauge > bound * (1 + 1e-6)):
        raise ValueError(
            f"x lies outside {describe(domain)}: its gauge is {gauge:.6g}"
            f"{f', the radius {bound:.6g}' if bound < inf else ''}."
        )
    return Iterate(full, domain.atoms.empty(), np.zeros(0)), gauge is not None
