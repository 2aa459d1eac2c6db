"""The widths of conepursuit.theory against closed forms, their definitions and each other."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from conepursuit import Dictionary, NonnegativeSphere, Symmetric, UnitVectors
from conepursuit.datasets import make_theta_set
from conepursuit.experiments.theory import random_atoms
from conepursuit.theory import (
    TooLargeError,
    cone_width,
    cone_width_bounds,
    diameter,
    directional_width,
    generating_faces,
    minimal_directional_width,
    pyramidal_directional_width,
    pyramidal_width,
    pyramidal_width_bounds,
    radius,
)

UNLIKE = np.array([[1.0, 0.95, 0.0, -1.0, 0.0], [0.0, 0.055, 1.0, 0.0, -0.9]])
"""The literal cone width of this set is far from the one that the proofs use."""


def subsets(indices):
    indices = list(indices)
    return chain.from_iterable(combinations(indices, k) for k in range(len(indices) + 1))


def sets(n, seed=0):
    rng = np.random.default_rng(seed)
    return [random_atoms(rng) for _ in range(n)]


def surrounding(n, seed=0):
    """Return sets with the origin in the relative interior of the hull, some of them flat."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < n:
        d = int(rng.integers(1, 5))
        A = rng.standard_normal((d, int(rng.integers(d + 1, 9)))) * rng.uniform(0.3, 2)
        if minimal_directional_width(A) > 0:
            flat = np.linalg.qr(rng.standard_normal((d + 1, d)))[0]
            found.append(A if rng.random() < 0.5 else flat @ A)
    return found


@pytest.mark.parametrize("theta", [1e-6, 1e-3, *np.linspace(0.05, 1.55, 16), np.pi / 2 - 1e-9])
def test_theta_set(theta):
    A, half = make_theta_set(theta), np.sin(theta / 2)
    for width in (cone_width, minimal_directional_width, pyramidal_width):
        assert width(A) == pytest.approx(half, rel=0, abs=1e-10)
    assert cone_width(A, literal=True) == pytest.approx(half, rel=0, abs=1e-10)


@pytest.mark.parametrize("n", range(1, 6))
def test_unit_vectors(n):
    for A in (np.eye(n), UnitVectors(n), Dictionary(np.eye(n)), np.eye(n + 2)[:, :n]):
        assert cone_width(A) == pytest.approx(n**-0.5, rel=1e-10)
    assert diameter(np.eye(n)) == pytest.approx(2**0.5 if n > 1 else 1.0)


def test_two_atoms_at_60_degrees():
    A = np.array([[1.0, 0.5], [0.0, 3**0.5 / 2]])
    assert cone_width(A) == pytest.approx(3**0.5 / 2, rel=1e-10)


def test_symmetric_sets():
    assert cone_width(Symmetric(UnitVectors(3))) == pytest.approx(3**-0.5)
    assert minimal_directional_width(Symmetric(UnitVectors(3))) == pytest.approx(3**-0.5)


def test_the_counterexamples_of_the_errata():
    """B1 and B2 with the numbers that they name."""
    A = np.array([[0.9, 0.6, 0.8], [-0.2, -0.4, -0.1], [-0.3, 0.7, 0.7]])
    assert cone_width(A) == pytest.approx(0.286827, abs=5e-7)
    assert pyramidal_width(A) == pytest.approx(0.286827, abs=5e-7)
    assert diameter(A) == pytest.approx(1.067708, abs=5e-7)
    assert cone_width(UNLIKE) == pytest.approx(0.668965, abs=5e-7)
    assert minimal_directional_width(UNLIKE) == pytest.approx(0.668965, abs=5e-7)
    assert cone_width(UNLIKE, literal=True) == pytest.approx(0.003536, abs=5e-7)


def test_the_literal_reading_is_the_pyramidal_width():
    larger = 0
    for A in sets(200):
        pyramidal, unit = pyramidal_width(A), radius(A)
        assert cone_width(A, literal=True) == pytest.approx(pyramidal, rel=1e-9, abs=1e-12 * unit)
        assert cone_width(A) >= pyramidal - 1e-12 * unit
        larger += cone_width(A) > 1.1 * pyramidal
    assert larger > 20  # the reading of the proofs is not the same thing


def test_lemma_4_the_origin_inside():
    for A in surrounding(100):
        assert cone_width(A) == pytest.approx(minimal_directional_width(A), rel=1e-10)


def test_the_minimal_directional_width_is_zero_with_the_origin_on_the_boundary():
    assert minimal_directional_width(np.eye(3)) == 0
    assert minimal_directional_width([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]]) == 0
    assert minimal_directional_width([[1.0, -0.5]]) == 0.5


def test_theorem_8_holds_for_every_gradient_and_every_representation():
    """<r, z - v> >= CWidth <r, e> for e = (x* - x) / ||x* - x||: all that the rates need."""
    rng = np.random.default_rng(0)
    tightest = np.inf
    for A in sets(150):
        width, n = cone_width(A), A.shape[1]
        for _ in range(40):
            active = rng.permutation(n)[: rng.integers(0, n + 1)]
            x = A[:, active] @ rng.random(len(active))
            ways = A @ (rng.random((n, 50)) * rng.integers(0, 2, (n, 50))) - x[:, None]
            ways = ways[:, np.linalg.norm(ways, axis=0) > 1e-9 * radius(A)]
            r = rng.standard_normal(ways.shape)
            # Gradients that point along the way make the bound tight.
            r = r * rng.integers(0, 2, r.shape[1]) * 0.3 + ways / np.linalg.norm(ways, axis=0)
            ahead = (r * ways).sum(axis=0) / np.linalg.norm(ways, axis=0)
            scores = A.T @ r
            span = scores.max(axis=0, initial=0) - scores[active].min(axis=0, initial=0)
            told = ahead > 1e-9
            assert (span[told] >= width * ahead[told] * (1 - 1e-12)).all()
            tightest = min(tightest, (span[told] / (width * ahead[told])).min(initial=np.inf))
    assert tightest < 1.05


def test_the_definition_on_a_grid_of_directions():
    """In the plane, over all faces, all subsets S and a grid of directions."""
    rng = np.random.default_rng(1)
    angles = np.linspace(0, 2 * np.pi, 1441)
    for _ in range(6):
        A = rng.standard_normal((2, 4)) + np.array([[rng.integers(0, 3)], [0]])
        least = np.inf
        for face in generating_faces(A):
            rays = [np.arctan2(*A[::-1, i]) + np.pi * k for i in face for k in range(2)]
            r = np.array([[np.cos(a), np.sin(a)] for a in (*angles, *rays)])
            for S in subsets(face):
                cone = np.hstack([A[:, list(face)], -A[:, list(S)]])
                feasible = [nnls(cone, one)[1] < 1e-9 if cone.size else False for one in r]
                scores = r[feasible] @ A
                low = scores[:, list(S)].min(axis=1, initial=0)
                high = scores[:, list(face)].max(axis=1, initial=0)
                least = min(least, (high - low).min(initial=np.inf))
        assert cone_width(A) <= least + 1e-12
        assert least <= cone_width(A) + 2 * radius(A) * (angles[1] - angles[0])


@pytest.mark.parametrize("literal", [False, True])
def test_where_the_cone_width_is_attained(literal):
    for A in sets(60, seed=2):
        width = cone_width(A, literal=literal)
        with_origin = np.hstack([A, np.zeros((A.shape[0], 1))])  # column -1 is the origin
        face, active = with_origin[:, width.face], with_origin[:, width.active]
        r = width.direction
        assert np.linalg.norm(r) == pytest.approx(1)
        span = (r @ face).max() - (r @ active).min()
        assert width == pytest.approx(span, rel=1e-9, abs=1e-12 * radius(A))
        base = active.mean(axis=1) if literal else active.sum(axis=1)
        tangent = face - base[:, None] if literal else np.hstack([face, -active])
        assert nnls(tangent, r)[1] <= 1e-7  # the direction is feasible


def test_where_the_pyramidal_width_is_attained():
    for A in sets(40, seed=3):
        width = pyramidal_width(A)
        with_origin = np.hstack([A, np.zeros((A.shape[0], 1))])
        face, active = with_origin[:, width.face], with_origin[:, width.active]
        heights, feet = width.direction @ face, width.direction @ active
        np.testing.assert_allclose(heights, heights[0], atol=1e-9 * radius(A))
        assert heights[0] - feet.max() == pytest.approx(width, abs=1e-9 * radius(A))


def test_directional_widths_by_hand():
    A = np.array([[2.0, 0.0], [0.0, 1.0]])
    assert directional_width(A, [3.0, 0.0]) == 2
    assert directional_width(A, [1.0, -1.0]) == pytest.approx(3 / 2**0.5)
    assert directional_width(A, [1.0, 1.0]) == pytest.approx(2 / 2**0.5)  # down to the origin
    assert pyramidal_directional_width(A, [1.0, 0.0], [1.0, 0.0]) == 2  # needs the origin
    assert pyramidal_directional_width(A, [1.0, 0.0], [2.0, 0.0]) == 0
    assert pyramidal_directional_width(A, [-1.0, 0.0], [2.0, 0.0]) == 2


def test_the_pyramidal_directional_width_over_all_subsets():
    rng = np.random.default_rng(4)
    for A in sets(25, seed=4):
        points = np.hstack([A, np.zeros((A.shape[0], 1))])
        n = points.shape[1]
        mix = rng.random(n) * rng.integers(0, 2, n)
        x, r = points @ (mix / (mix.sum() or 1.0)), rng.standard_normal(A.shape[0])
        r /= np.linalg.norm(r)
        scores = r @ points
        system = np.vstack([points, np.ones(n)])
        made = [
            scores.max() - scores[list(S)].min()
            for S in subsets(range(n))
            if S and nnls(system[:, list(S)], np.append(x, 1.0))[1] < 1e-9
        ]
        expected = pytest.approx(min(made), abs=1e-12)
        assert pyramidal_directional_width(A, r, x) == expected


def rotation(rng, d):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


@given(seed=st.integers(0, 10**6), power=st.integers(-12, 12))
def test_widths_are_invariant_under_rotation_and_homogeneous(seed, power):
    rng = np.random.default_rng(seed)
    A, scale = random_atoms(rng), 2.5**power
    d, n = A.shape
    turned = scale * rotation(rng, d) @ A[:, rng.permutation(n)]
    unit = 1e-10 * radius(A)
    for width in (
        cone_width,
        lambda A: cone_width(A, literal=True),
        pyramidal_width,
        minimal_directional_width,
        radius,
        diameter,
    ):
        assert width(turned) / scale == pytest.approx(width(A), rel=0, abs=unit)
    Q, r = rotation(rng, d), rng.standard_normal(d)
    x = A @ rng.dirichlet(np.ones(n + 1))[:-1]
    assert directional_width(Q @ A, Q @ r) == pytest.approx(directional_width(A, 7 * r), abs=unit)
    moved = pyramidal_directional_width(scale * Q @ A, Q @ r, scale * Q @ x) / scale
    assert moved == pytest.approx(pyramidal_directional_width(A, r, x), abs=unit)


def test_neither_the_origin_nor_duplicates_matter():
    for A in sets(20, seed=5):
        more = np.hstack([np.zeros((A.shape[0], 1)), A, A[:, :1]])
        for width in (cone_width, pyramidal_width, minimal_directional_width):
            assert width(more) == pytest.approx(width(A), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_any_unit(scale):
    A = np.array([[1.0, 0.5], [0.0, 3**0.5 / 2]])
    assert cone_width(scale * A) == pytest.approx(scale * 3**0.5 / 2, rel=1e-10)
    assert diameter(scale * A) == pytest.approx(scale)


def test_generating_faces():
    assert generating_faces(np.eye(2)) == [(), (0,), (1,), (0, 1)]
    # a half plane: its edge is a line, which is its smallest face
    assert generating_faces([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]]) == [(0, 1), (0, 1, 2)]
    assert generating_faces(np.array([[1.0, -1.0]])) == [(0, 1)]
    # a short atom inside a cone, and one on its edge
    assert generating_faces([[1.0, 0.0, 1e-6, 3.0], [0.0, 1.0, 1e-6, 0.0]]) == [
        (),
        (1,),
        (0, 3),
        (0, 1, 2, 3),
    ]
    square = np.array([[1.0, 1, -1, -1], [1, -1, 1, -1], [1, 1, 1, 1]])
    assert [len(face) for face in generating_faces(square)] == [0, 1, 1, 1, 1, 2, 2, 2, 2, 4]


def test_bounds_hold_the_widths():
    for A in sets(60, seed=6):
        lower, upper = cone_width_bounds(A, tries=5)
        assert lower * (1 - 1e-9) <= cone_width(A) <= upper * (1 + 1e-9)
        lower, upper = pyramidal_width_bounds(A, tries=2)
        assert lower * (1 - 1e-9) <= pyramidal_width(A) <= upper * (1 + 1e-9)


@pytest.mark.parametrize("angle", [1e-6, 1e-9])
def test_bounds_on_nearly_parallel_atoms(angle):
    A = np.array([[1.0, 1.0, 0.0], [0.0, angle, 1.0]])
    for lower, upper in (cone_width_bounds(A, tries=5), pyramidal_width_bounds(A, tries=5)):
        assert 0 <= lower <= 0.71 * angle
        assert upper >= 0.7 * angle
    assert cone_width([[1.0, 1.0], [0.0, 1e-6]]) == pytest.approx(1e-6)
    assert pyramidal_width([[1.0, 1.0], [0.0, 1e-6]]) == pytest.approx(1e-6)


def test_bounds_at_any_size():
    rng = np.random.default_rng(0)
    lower, upper = cone_width_bounds(np.eye(30), tries=10)
    assert lower == pytest.approx(30**-0.5)
    assert lower <= upper <= 1
    A = rng.random((20, 40))
    lower, upper = cone_width_bounds(A, tries=3)
    assert lower == 0  # more bases than can be tried
    assert 0 < upper < radius(A)
    lower, upper = pyramidal_width_bounds(rng.random((20, 12)), tries=3)
    assert 0 < lower < upper


@pytest.mark.parametrize("width", [cone_width, pyramidal_width, generating_faces])
def test_large_sets_are_refused_at_once(width):
    with pytest.raises(TooLargeError, match="cone_width_bounds"):
        width(np.random.default_rng(0).standard_normal((30, 60)))


def test_twelve_atoms_in_dimension_four():
    A = np.random.default_rng(0).standard_normal((4, 12)) + 2 * np.eye(4)[:, :1]
    assert 0 < pyramidal_width(A) <= cone_width(A) * (1 + 1e-12)  # they are equal, by another way
    assert cone_width(A) < cone_width_bounds(A, tries=10).upper * 1.001


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cone_width(np.zeros((2, 3))), "all zero"),
        (lambda: cone_width([1.0, 2.0]), "shape"),
        (lambda: cone_width([[np.nan, 1.0]]), "NaN"),
        (lambda: cone_width(NonnegativeSphere(3)), "finite set"),
        (lambda: directional_width(np.eye(2), [0.0, 0.0]), "r = 0"),
        (lambda: directional_width(np.eye(2), [0.0, np.nan]), "r must be finite"),
        (lambda: pyramidal_directional_width(np.eye(2), [1, 0], [np.inf, 0]), "x must be finite"),
        (lambda: pyramidal_width([[-0.005, 8e7]]), "times as long"),
        (lambda: minimal_directional_width([[-0.005, 8e7]]), "times as long"),
        (lambda: cone_width([[1.0, 1.0], [0.0, 8e-10]]), "close to a degenerate one"),
        (lambda: pyramidal_width([[1.0, 1.0], [0.0, 8e-10]]), "close to a degenerate one"),
        (lambda: minimal_directional_width([[1.0, -1e-9]] * 2), "times as long"),
        (lambda: directional_width(np.eye(2), [1.0]), r"shape of an atom, \(2,\); got \(1,\)"),
        (lambda: pyramidal_directional_width(np.eye(2), [1, 0], [2.0, 0.0]), "atomic_norm"),
        (lambda: cone_width([[1.0, 0.0], [0.0, 1e-12]]), "times as long"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
