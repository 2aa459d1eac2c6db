"""Proofs of `nnls_gram` are about the floats in G and c, whatever they were computed from."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from conepursuit import nnls_gram
from conepursuit.least_squares.gram_proofs import Scaled, semidefinite


def least_value(G, c):
    """Return min 1/2 <y, G y> - <c, y> over y >= 0 as a fraction, None if there is none.

    Every support is tried. G has a direction of descent without end exactly if some principal
    submatrix has a negative determinant and an inverse without positive entry (Hadeler, 1983).
    """
    form = np.array([[Fraction(entry) for entry in row] for row in G.tolist()])
    unit = max(entry.denominator for entry in form.ravel())
    whole = np.array([[int(entry * unit) for entry in row] for row in form], dtype=object)
    right, least = [Fraction(entry) for entry in c.tolist()], Fraction(0)
    for count in range(1, len(G) + 1):
        for support in map(list, combinations(range(len(G)), count)):
            part = whole[np.ix_(support, support)]
            if count == 1:
                adjugate, det = np.array([[1]], dtype=object), part[0, 0]
            else:
                adjugate, det = cofactors(part)
            if det < 0 and (adjugate >= 0).all():
                return None
            if det == 0:
                continue
            y = [
                Fraction(unit, det)
                * sum(int(a) * right[j] for a, j in zip(row, support, strict=True))
                for row in adjugate
            ]
            if min(y) >= 0:
                least = min(least, -sum(a * right[j] for a, j in zip(y, support, strict=True)) / 2)
    return least


def cofactors(M):
    """Return the adjugate and the determinant of a matrix of integers, by minors."""
    n = len(M)
    if n == 1:
        return np.array([[1]], dtype=object), M[0, 0]
    adjugate = np.empty((n, n), dtype=object)
    for i in range(n):
        for j in range(n):
            minor = np.delete(np.delete(M, i, axis=0), j, axis=1)
            adjugate[j, i] = (-1) ** (i + j) * cofactors(minor)[1]
    return adjugate, sum(M[0, j] * adjugate[j, 0] for j in range(n))


def value(G, c, x):
    x, c = ([Fraction(entry) for entry in v.tolist()] for v in (x, c))
    form = sum(
        a * Fraction(entry) * b
        for a, row in zip(x, G.tolist(), strict=True)
        for entry, b in zip(row, x, strict=True)
    )
    return form / 2 - sum(a * b for a, b in zip(c, x, strict=True))


def false(G, c, fit):
    """Return whether the proof of a fit is false."""
    if not fit.proven:
        return False
    least = least_value(G, c)
    return least is None or value(G, c, fit.x) - least > Fraction(fit.gap)


def test_a_form_without_a_minimum_proves_nothing():
    G, c = np.array([[1.0, -1.0], [-1.0, 1.0 - 2.0**-52]]), np.array([1.0, -1.0 - 1e-7])
    assert least_value(G, c) is None
    assert not nnls_gram(G, c).proven
    assert not nnls_gram(G, c[:, None]).proven.any()
    assert not nnls_gram(1e-30 * G, 1e10 * c).proven


KINDS = {
    "non-negative": lambda rng, m, n: rng.random((m, n)),
    "signed": lambda rng, m, n: rng.standard_normal((m, n)),
    "half space": lambda rng, m, n: rng.standard_normal((m, n)) + 1.5,
    "integers": lambda rng, m, n: rng.integers(-9, 10, (m, n)).astype(float),
    "duplicates": lambda rng, m, n: rng.standard_normal((m, n))[:, rng.integers(0, 2, n)],
    "zeros": lambda rng, m, n: rng.standard_normal((m, n)) * (rng.random(n) < 0.7),
    "scaled": lambda rng, m, n: rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-6, 6, n),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_no_proof_on_a_computed_form_is_false(kind, dtype):
    proven = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 5))
        A = KINDS[kind](rng, int(rng.integers(1, n + 1)), n).astype(dtype)
        G, c = A.T @ A, A.T @ rng.standard_normal(len(A)).astype(dtype)
        try:
            fit = nnls_gram(G, c)
        except ValueError:
            continue
        assert not false(G.astype(float), c.astype(float), fit)
        proven += fit.proven
    assert proven >= 20


@pytest.mark.parametrize("kind", ["non-negative", "half space", "integers", "duplicates"])
def test_singular_forms_are_proved(kind):
    rng = np.random.default_rng(0)
    A = KINDS[kind](rng, 6, 9)
    G, c = A.T @ A, A.T @ np.round(9 * rng.random((6, 3)))
    fit = nnls_gram(G, c)
    assert fit.proven.all()
    assert (fit.gap <= 1e-10 * np.abs(c * fit.x).sum(axis=0)).all()


def test_a_form_that_is_not_symmetric_is_proved_as_half_the_sum():
    rng = np.random.default_rng(0)
    A = rng.random((6, 4))
    G, c = A.T @ A, A.T @ rng.random(6)
    G[0, 1] *= 1 + 2.0**-50
    fit = nnls_gram(G, c)
    assert fit.proven
    assert not false(G, c, fit)


def scaled(T):
    return Scaled(T, 0.0, np.ones(len(T)))


def test_definite_and_semidefinite():
    rank_one = np.array([[1.0, -0.5], [-0.5, 0.25]])
    assert semidefinite(rank_one)
    assert not semidefinite(rank_one - np.diag([0.0, 2.0**-60 * 2.0**7]))
    assert not semidefinite(np.array([[0.0, 1.0], [1.0, 1.0]]))
    assert semidefinite(np.diag([0.0, 2.0**-900]))
    assert scaled(np.eye(2)).definite(0.0)
    assert not scaled(rank_one).definite(0.0)
    assert not scaled(np.array([[0.0, 0.1], [0.1, 1.0]])).definite(0.0)
    assert scaled(np.diag([0.0, 0.5])).definite(0.0)
