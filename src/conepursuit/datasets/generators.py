"""Problems that are made, with known properties."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise
from math import inf, pi, sqrt
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from conepursuit.arrays import Array, Vector, is_integer, is_number

Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
Stream: TypeAlias = Literal["plain", "script"]

D, N_ATOMS, N_NEGATED, LARGEST = 50, 100, 10, 5.0
"""Dimensions, atoms, negated coordinates and largest weight of the synthetic problem."""

MATLAB_SEED = 5489
"""With which MATLAB's ``rng(0)`` starts the Mersenne Twister."""


class SparseConic(NamedTuple):
    """A target that few atoms explain.

    Attributes
    ----------
    atoms : array of shape (n_samples, n_atoms)
        Unit vectors, as columns.
    weights : array of shape (n_atoms,)
        The true weights, most of them zero.
    y : array of shape (n_samples,)
        atoms @ weights, and noise.
    """

    atoms: Array
    weights: Vector
    y: Vector


def make_synthetic(random_state: Seed = None, *, stream: Stream = "plain") -> tuple[Array, Vector]:
    """Make the paper's synthetic problem: 100 atoms in 50 dimensions and a target off their cone.

    The atoms are random unit vectors of the first orthant; y = A a with a uniform on [0, 5], then
    ten of its coordinates, drawn with replacement, are negated.

    Parameters
    ----------
    random_state : int, generator or None
        Seed, or where random numbers come from; a generator that is passed again goes on to the
        next problem. For the script's stream a `numpy.random.RandomState`, or the argument of
        MATLAB's ``rng``; None is its 0, as in the script.
    stream : {"plain", "script"}
        "script" draws as the script that was released with the paper: see `iter_synthetic`.

    Returns
    -------
    atoms : array of shape (50, 100)
        Unit vectors as columns; the origin is implied.
    y : array of shape (50,)
        The target.
    """
    return next(iter_synthetic(1, random_state, stream=stream))


def iter_synthetic(
    n_problems: int | None = None, random_state: Seed = None, *, stream: Stream = "plain"
) -> Iterator[tuple[Array, Vector]]:
    """Return an iterator over the paper's synthetic problems, made one after another.

    Parameters
    ----------
    n_problems : int, optional
        How many; the paper has 20. By default there is no end.
    random_state, stream
        As for `make_synthetic`.

    Returns
    -------
    iterator of (atoms, y)
        As `make_synthetic` returns them.

    Notes
    -----
    The script's problems are those of the paper's figure. MATLAB's ``rng(0)`` is the Mersenne
    Twister with seed 5489; ``rand`` fills columns first and ``randi(m)`` is floor(m u) + 1. The
    origin is an atom there, the first, with a weight of its own, and the start of Frank-Wolfe is
    drawn after every problem. Both are drawn here too, and dropped.

    Examples
    --------
    >>> [float(y.max().round(3)) for _, y in iter_synthetic(2, stream="script")]
    [34.944, 35.882]
    """
    if n_problems is not None and not (is_integer(n_problems) and n_problems >= 0):
        raise ValueError(
            f"n_problems must be a non-negative integer or None, for no end; got {n_problems!r}."
        )
    turns = count() if n_problems is None else range(n_problems)
    if stream == "plain":
        rng = _generator(random_state)
        return (_plain(rng) for _ in turns)
    if stream == "script":
        twister = _matlab(random_state)
        return (_script(twister) for _ in turns)
    raise ValueError(f"stream must be 'plain' or 'script'; got {stream!r}.")


def make_theta_set(theta: float) -> Array:
    """Return the atoms of the paper's theta set, {+-(1, 0), +-(cos theta, sin theta)}.

    Its cone is the plane, and its cone width sin(theta / 2) for theta up to pi/2.

    Parameters
    ----------
    theta : float
        The angle between the two lines, above 0 and below pi.

    Returns
    -------
    array of shape (2, 4)
        The atoms as columns; the origin is implied.

    Examples
    --------
    >>> from math import pi
    >>> make_theta_set(pi / 2).round(3).tolist()
    [[-1.0, 0.0, 1.0, -0.0], [0.0, 1.0, -0.0, -1.0]]
    """
    if not (is_number(theta) and 0 < theta < pi):
        raise ValueError(f"theta must lie above 0 and below pi; got {theta!r}.")
    half = np.array([[-1.0, np.cos(theta)], [0.0, np.sin(theta)]])
    return np.hstack([half, -half])


def make_sparse_conic(
    n_samples: int = 100,
    n_atoms: int = 200,
    n_active: int = 10,
    *,
    noise: float = 0.0,
    coherence: float = 0.0,
    random_state: Seed = None,
) -> SparseConic:
    """Make a dictionary, sparse non-negative weights and the target that they give.

    Parameters
    ----------
    n_samples : int
        The number of dimensions.
    n_atoms : int
        The number of atoms, normal random vectors divided by their norm.
    n_active : int
        How many weights are positive. Which is random; they are uniform on [1, 2].
    noise : float
        The norm of the noise over that of the target without it; the noise is normal.
    coherence : float
        The correlation of neighbouring atoms, from 0 to below 1. Those k apart have coherence^k.
    random_state : int, generator or None
        Seed, or where random numbers come from.

    Returns
    -------
    SparseConic
        The tuple ``(atoms, weights, y)``, with these names.

    Examples
    --------
    >>> problem = make_sparse_conic(30, 60, 3, noise=0.1, coherence=0.9, random_state=0)
    >>> clean = problem.atoms @ problem.weights
    >>> round(float(np.linalg.norm(problem.y - clean) / np.linalg.norm(clean)), 6)
    0.1
    """
    _check_sizes(n_samples, n_atoms, n_active)
    if not (is_number(noise) and 0 <= noise < inf):
        raise ValueError(f"noise must be a number from 0 on; got {noise!r}.")
    if not (is_number(coherence) and 0 <= coherence < 1):
        raise ValueError(f"coherence must lie from 0 to below 1; got {coherence!r}.")
    rng = _generator(random_state)
    rows = rng.standard_normal((n_atoms, n_samples))
    fresh = sqrt(1 - coherence**2)
    for before, row in pairwise(rows) if coherence else ():
        row *= fresh
        row += coherence * before
    atoms = np.ascontiguousarray((rows / np.linalg.norm(rows, axis=1, keepdims=True)).T)
    weights = np.zeros(n_atoms)
    weights[rng.choice(n_atoms, n_active, replace=False)] = rng.uniform(1.0, 2.0, n_active)
    y = atoms @ weights
    error = rng.standard_normal(n_samples)
    y += error * (noise * np.linalg.norm(y) / np.linalg.norm(error))
    return SparseConic(atoms, weights, y)


def _check_sizes(n_samples: int, n_atoms: int, n_active: int) -> None:
    sizes = {"n_samples": n_samples, "n_atoms": n_atoms, "n_active": n_active}
    for name, size in sizes.items():
        if not (is_integer(size) and size >= 1):
            raise ValueError(f"{name} must be a positive integer; got {size!r}.")
    if n_active > n_atoms:
        raise ValueError(f"n_active must be at most n_atoms, {n_atoms}; got {n_active}.")


def _generator(random_state: Seed) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        raise ValueError(
            "random_state must be an integer, a numpy.random.Generator or None; got a RandomState, "
            "which only make_synthetic(stream='script') takes."
        )
    return np.random.default_rng(random_state)


def _matlab(random_state: Seed) -> np.random.RandomState:
    """Return what MATLAB draws from after ``rng(random_state)``."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    if isinstance(random_state, np.random.Generator):
        raise ValueError(
            "the script's stream needs random_state to be None, an integer or a "
            "numpy.random.RandomState; got a Generator, which draws otherwise."
        )
    return np.random.RandomState(random_state or MATLAB_SEED)


def _plain(rng: np.random.Generator) -> tuple[Array, Vector]:
    atoms = rng.random((D, N_ATOMS))
    atoms /= np.linalg.norm(atoms, axis=0)
    y = atoms @ rng.uniform(0, LARGEST, N_ATOMS)
    negated = rng.integers(0, D, N_NEGATED)
    y[negated] = -y[negated]  # all at once: a coordinate that was drawn twice is negated once
    return atoms, y


def _script(twister: np.random.RandomState) -> tuple[Array, Vector]:
    atoms = np.ascontiguousarray(twister.random_sample((N_ATOMS, D)).T)
    atoms /= np.linalg.norm(atoms, axis=0)
    weights = LARGEST * twister.random_sample(N_ATOMS + 1)[1:]  # the first is that of the origin
    negated = np.floor(D * twister.random_sample(N_NEGATED)).astype(np.intp)
    twister.random_sample(N_ATOMS + 1)  # where the script starts Frank-Wolfe
    y = atoms @ weights
    y[negated] = -y[negated]
    return atoms, y
