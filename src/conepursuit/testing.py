"""Numerical checks of the contracts, for those who write their own parts.

Each function raises an AssertionError that says what failed and by how much. They sample; passing
them is evidence, not proof.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from conepursuit.arrays import Array, inner, norm
from conepursuit.atoms import AtomSet, Dictionary
from conepursuit.objectives import LeastSquares, Objective
from conepursuit.objectives.base import hessian_at
from conepursuit.pursuit.algorithms import FCMP, Algorithm
from conepursuit.pursuit.domains import Cone, Domain, Hull, Span
from conepursuit.pursuit.results import State
from conepursuit.pursuit.solve import iterates, minimize

STEP = 1e-5
"""Length of a finite difference, relative to max(1, ||x||); its error is of second order."""


def check_objective(
    objective: Objective,
    points: Array | None = None,
    *,
    n_points: int = 20,
    scale: float = 1.0,
    random_state: int = 0,
) -> None:
    """Check gradient, convexity, L, mu, curvature and conjugate of an objective.

    Parameters
    ----------
    objective : Objective
        What to check.
    points : array of shape (n, *objective.shape), optional
        Where to check; by default at standard normal points times `scale`.
    n_points : int
        How many points to draw.
    scale : float
        The factor of the points drawn.
    random_state : int
        Seed of the draw.
    """
    rng = np.random.default_rng(random_state)
    if points is None:
        points = scale * rng.standard_normal((n_points, *objective.shape))
    for x, other in zip(points, np.roll(points, 1, axis=0), strict=True):
        value, gradient = objective.value_and_gradient(x)
        assert gradient.shape == tuple(objective.shape), (
            f"the gradient has shape {gradient.shape}, the objective {objective.shape}"
        )
        _close(objective.value(x), value, "value(x) and value_and_gradient(x)", 1e-9)
        d = rng.standard_normal(objective.shape)
        _check_hessian(objective, x, d)
        _check_derivatives(objective, x, d, gradient)
        _check_between(objective, x, value, gradient, other)
        conjugate = objective.conjugate(gradient)
        if conjugate is not None:  # Fenchel and Young: equality where u is the gradient
            pairing = inner(gradient, x)
            slack = 1e-7 * (abs(value) + abs(conjugate) + abs(pairing))
            assert abs(value + conjugate - pairing) <= slack, (
                f"f(x) + f*(g) - <g, x> = {value + conjugate - pairing:.3g} must be 0"
            )


def _check_hessian(objective: Objective, x: Array, d: Array) -> None:
    """Check that the Hessian is a function which returns arrays of the shape of x."""
    try:
        hessian = hessian_at(objective, x)
    except TypeError as error:
        raise AssertionError(str(error)) from error
    if hessian is not None:
        shape = np.shape(hessian(d))
        assert shape == tuple(objective.shape), (
            f"hessian(x)(d) must have the shape of x, {tuple(objective.shape)}; it has {shape}"
        )


def _check_derivatives(objective: Objective, x: Array, d: Array, gradient: Array) -> None:
    """Compare gradient and curvature with central differences along d."""
    step = STEP * max(1.0, norm(x)) / norm(d)
    up, g_up = objective.value_and_gradient(x + step * d)
    down, g_down = objective.value_and_gradient(x - step * d)
    if not (np.isfinite(up) and np.isfinite(down)):
        return
    slope, scale = inner(gradient, d), norm(gradient) * norm(d) + abs(up) + abs(down)
    assert abs((up - down) / (2 * step) - slope) <= 1e-5 * scale / min(1.0, step / STEP), (
        f"<gradient, d> is {slope:.6g}, the difference of values {(up - down) / (2 * step):.6g}"
    )
    curvature = objective.curvature(x, d)
    if curvature is not None:
        change = inner(g_up - g_down, d) / (2 * step)
        assert abs(change - curvature) <= 1e-4 * (abs(curvature) + abs(change)) + 1e-6 * scale, (
            f"<d, H d> is {curvature:.6g}, the difference of gradients {change:.6g}"
        )


def _check_between(
    objective: Objective, x: Array, value: float, gradient: Array, other: Array
) -> None:
    """Check convexity, L and mu on the segment between two points."""
    there, g_there = objective.value_and_gradient(other)
    if not np.isfinite(there):
        return
    square = inner(other - x, other - x)
    excess = there - value - inner(gradient, other - x)
    slack = 1e-9 * (abs(there) + abs(value) + norm(gradient) * square**0.5)
    low = 0.5 * objective.strong_convexity * square
    assert excess >= low - slack, (
        f"f lies {excess:.6g} above its tangent, convexity (mu) asks for at least {low:.6g}"
    )
    if objective.smoothness is not None:
        high = 0.5 * objective.smoothness * square
        assert excess <= high + slack, (
            f"f lies {excess:.6g} above its tangent, L = {objective.smoothness:.6g} allows "
            f"{high:.6g}"
        )
        change = norm(g_there - gradient)
        limit = objective.smoothness * square**0.5
        assert change <= limit * (1 + 1e-9) + slack, (
            f"the gradient changes by {change:.6g}, L allows {limit:.6g}"
        )


def check_atom_set(
    atoms: AtomSet, members: Array | None = None, *, n_points: int = 20, random_state: int = 0
) -> None:
    """Check the oracle of an atom set, its batches, accuracy, radius, symmetry and functional.

    Parameters
    ----------
    atoms : AtomSet
        What to check.
    members : array of shape (n, *atoms.shape), optional
        Atoms of the set that the oracle must not be worse than. By default its own answers to
        other gradients.
    n_points : int
        How many gradients to draw.
    random_state : int
        Seed of the draw.
    """
    rng = np.random.default_rng(random_state)
    gradients = rng.standard_normal((n_points, *atoms.shape))
    answers = [atoms.lmo(g) for g in gradients]
    arrays = [a.combine(np.ones(1)) for a in answers]
    if members is None:
        members = np.array(arrays)
    t = atoms.positive_functional()
    for g, answer, array in zip(gradients, answers, arrays, strict=True):
        assert len(answer) == 1, f"lmo must return a batch of one; got {len(answer)} atoms"
        score, slack = inner(g, array), 1e-9 * norm(g) * max(norm(array), 1e-300)
        _close(float(answer.inner(g)[0]), score, "inner(g) and <g, atom>", 1e-9)
        _close(float(answer.rescore(g, answer)[0]), score, "rescore and <g, atom>", 1e-9)
        least = min(inner(g, m) for m in members)
        delta = atoms.accuracy
        asked = least if least > 0 or delta is None else delta * least
        assert score <= asked + slack or delta is None or (least > 0 and delta < 1), (
            f"the oracle scores {score:.6g}, an atom {least:.6g} with accuracy {atoms.accuracy}"
        )
        again = atoms.lmo(3.0 * g)
        _close(inner(g, again.combine(np.ones(1))), score, "lmo(3 g) and lmo(g)", 1e-9)
        if atoms.radius is not None:
            assert norm(array) <= atoms.radius * (1 + 1e-9), (
                f"an atom has norm {norm(array):.6g}, the radius is {atoms.radius:.6g}"
            )
        if t is not None:
            shifted = g + atoms.shift(g, answer, 0.0) * t
            lowest = min(inner(shifted, m) for m in members)
            assert lowest >= -1e-9 * norm(shifted) * max(norm(m) for m in members), (
                f"<g + c t, atom> is {lowest:.6g}, but t and its shift c promise 0"
            )
        if atoms.symmetric:
            _close(inner(g, atoms.lmo(-g).combine(np.ones(1))), -score, "a symmetric set", 1e-9)
    _check_batches(atoms, gradients, rng)


def _check_batches(atoms: AtomSet, gradients: Array, rng: np.random.Generator) -> None:
    """Check join, indexing, combine, inner and gram against each other."""
    batch, arrays = atoms.empty(), []
    for g in gradients:
        answer = atoms.lmo(g)
        if answer.keys[0] not in batch.keys:
            batch = batch.join(answer)
            arrays.append(answer.combine(np.ones(1)))
    weights, g = rng.random(len(batch)), gradients[0]
    expected = sum(w * a for w, a in zip(weights, arrays, strict=True))
    _close(norm(batch.combine(weights) - expected), 0.0, "combine", 1e-9, norm(expected))
    scores = np.array([inner(g, a) for a in arrays])
    size = norm(g) * max(norm(a) for a in arrays)
    _close(float(np.abs(batch.inner(g) - scores).max()), 0.0, "inner", 1e-9, size)
    gram = np.array([[inner(a, b) for a in arrays] for b in arrays])
    _close(float(np.abs(batch.gram() - gram).max()), 0.0, "gram", 1e-9, float(gram.max()))
    half = batch[range(0, len(batch), 2)]
    assert half.keys == batch.keys[::2], "indexing must keep the keys in order"
    _close(float(np.abs(half.inner(g) - scores[::2]).max()), 0.0, "indexing", 1e-9, size)


def check_algorithm(algorithm: Algorithm, *, n_problems: int = 10, random_state: int = 0) -> None:
    """Check an algorithm on random least-squares problems, state by state.

    Weights stay feasible and make up x, f does not rise under a monotone rule, slopes are
    directional derivatives, a proven gap is at least f(x) - f*, and within 100 iterations f falls
    by at least half of f(x_0) - f*.
    """
    rng = np.random.default_rng(random_state)
    for _ in range(n_problems):
        D = rng.random((12, 20))
        objective = LeastSquares(D @ rng.random(20) + 0.3 * rng.standard_normal(12))
        domain = _accepted_domain(algorithm, objective, Dictionary(D))
        optimum = minimize(objective, domain, FCMP(variant=1), tol=1e-12).value
        run = iterates(objective, domain, algorithm)
        states = [state for _, state in zip(range(101), run, strict=False)]
        for state in states:
            _check_state(objective, domain, state, optimum, 1e-12 * states[0].value)
        if algorithm.monotone:
            rise = max((b.value - a.value for a, b in pairwise(states)), default=0.0)
            assert rise <= 1e-12 * states[0].value, f"f rose by {rise:.3g}"
        gained = states[0].value - min(s.value for s in states)
        possible = states[0].value - optimum
        assert gained >= 0.5 * possible, f"f fell by {gained:.3g} where {possible:.3g} is possible"


def _check_state(
    objective: LeastSquares, domain: Domain, state: State, optimum: float, slack: float
) -> None:
    """Check weights, x, slope and gap of one state of a run; see `check_algorithm`."""
    weights, x, d = state.iterate.weights, state.iterate.x, state.direction
    assert domain.signed or (weights > 0).all(), f"a weight is {weights.min():.3g}"
    assert weights.sum() <= domain.radius * (1 + 1e-9), "the weights exceed the radius"
    drift = norm(x - state.iterate.recomputed().x)
    _close(drift, 0.0, "x and the sum of weighted atoms", 1e-9, norm(objective.y))
    assert len(set(state.iterate.atoms.keys)) == len(weights), "an atom is stored twice"
    if d.kind != "refit" and d.slope < 0:
        gradient, vector = objective.value_and_gradient(x)[1], state.iterate.vector(d)
        size = norm(gradient) * norm(vector)
        _close(d.slope, inner(gradient, vector), "slope and <gradient, direction>", 1e-9, size)
    certificate, error = state.certificate, state.value - optimum
    assert not certificate.proven or certificate.gap >= error - slack, (
        f"the gap {certificate.gap:.6g} is called proven, but f is {error:.6g} above its optimum"
    )


def _accepted_domain(algorithm: Algorithm, objective: Objective, atoms: Dictionary) -> Domain:
    """Return the first of Cone, Hull and Span that the algorithm takes."""
    domains: list[Domain] = [Cone(atoms), Hull(atoms, radius=10.0), Span(atoms)]
    reasons = []
    for domain in domains:
        try:
            algorithm.check(objective, domain)
        except ValueError as reason:
            reasons.append(str(reason))
        else:
            return domain
    raise AssertionError(
        "the algorithm takes neither a Cone nor a Hull nor a Span: " + " ".join(reasons)
    )


def _close(a: float, b: float, what: str, tolerance: float, scale: float | None = None) -> None:
    size = max(abs(a), abs(b), 1e-300) if scale is None else scale
    assert abs(a - b) <= tolerance * size + 1e-300, f"{what} differ: {a:.9g} and {b:.9g}"
