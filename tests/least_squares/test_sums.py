"""Non-negative least squares with a given sum of weights: answers, proofs and arguments."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from conepursuit import FCMP, Dictionary, Hull, LeastSquares, Status, minimize, nnls
from conepursuit.kernels import least_squares as kernels
from conepursuit.least_squares.sum_kernels import SumFits, SumKernels, WeightSum
from conepursuit.least_squares.sum_target import SumProof, SumSearch, atom_norms, fit_one_sum
from conepursuit.rounding import product_rounding
from families import FAMILIES
from hulls import hull_excess

CONDITIONS = ["sum_to", "sum_at_most"]
SHAPES = [(12, 1), (12, 5), (20, 8), (30, 9), (25, 40), (4, 12), (3, 7)]


def problem(m, n, t=30, seed=0, noise=0.1):
    """Return atoms and targets near their hull, inside and outside."""
    rng = np.random.default_rng([m, n, seed])
    A = rng.random((m, n))
    X = rng.dirichlet(np.full(n, 0.5), t).T * rng.uniform(0.5, 1.5, t)
    return A, A @ X + noise * rng.standard_normal((m, t))


def exact_sum(x):
    return sum((Fraction(float(a)) for a in x), Fraction(0))


def check(A, b, condition, s, x, mu, dual, tolerance=1e-9):
    """Check that a sum is as asked for, and the first-order conditions, with their multipliers."""
    assert (x >= 0).all()
    excess = (exact_sum(x) - Fraction(s)) / Fraction(s)
    assert excess <= Fraction(2) ** -52
    if condition == "sum_to":
        assert excess >= -(Fraction(2) ** -52)
    else:
        assert mu >= 0
        assert mu == 0 or excess >= -(Fraction(2) ** -52)
    g = A.T @ (A @ x - b)
    size = np.linalg.norm(A, axis=0).max() * (np.linalg.norm(b) + np.linalg.norm(A @ x))
    assert abs(dual - (g + mu)).max() <= tolerance * size
    assert dual.min() >= -tolerance * size
    assert abs(dual[x > 0]).max(initial=0.0) <= tolerance * size


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("s", [0.3, 1.0, 2.5])
def test_one_and_many_are_optimal_and_agree(m, n, condition, s):
    A, B = problem(m, n)
    many = nnls(A, B, **{condition: s})
    across = nnls(A, np.asfortranarray(B), **{condition: s})
    assert many.proven.all()
    assert all(status is Status.STATIONARY for status in many.status)
    np.testing.assert_allclose(across.rnorm, many.rnorm, atol=1e-10)
    for i, b in enumerate(B.T):
        one = nnls(A, b, **{condition: s})
        assert one.status is Status.STATIONARY
        for fit, gap, dual, mu in (
            (one.x, one.gap, one.dual, one.sum_multiplier),
            (many.x[:, i], many.gap[i], many.dual[:, i], many.sum_multiplier[i]),
        ):
            check(A, b, condition, s, fit, mu, dual)
            assert 0 <= gap <= 1e-11 * (b @ b + s**2 * (A**2).sum(axis=0).max())
        np.testing.assert_allclose(A @ many.x[:, i], A @ one.x, atol=1e-9)
        np.testing.assert_allclose(many.sum_multiplier[i], one.sum_multiplier, atol=1e-9)
        if n <= m:
            np.testing.assert_allclose(many.x[:, i], one.x, atol=1e-9)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(("m", "n"), [(12, 1), (12, 5), (20, 8), (30, 9), (60, 30)])
@pytest.mark.parametrize("s", [0.1, 0.8, 1.1])
def test_kernels_hand_no_ordinary_target_back(m, n, condition, s):
    A, B = problem(m, n)
    known = SumKernels.of(A, WeightSum(s, condition == "sum_at_most"), 1000)
    for kernel in (known.for_many(), known.one_by_one()):
        fits = SumFits(30, n)
        kernel(np.ascontiguousarray(B.T), *fits.rows(slice(30)))
        assert (fits.code == 0).all()


@pytest.mark.parametrize(("m", "n"), [(6, 4), (12, 5), (20, 15), (5, 12)])
@pytest.mark.parametrize("s", [0.4, 1.0, 1.7])
def test_at_most_is_the_hull_of_the_loop(m, n, s):
    A, B = problem(m, n, t=6)
    many = nnls(A, B, sum_at_most=s)
    for i, b in enumerate(B.T):
        for hull in (Hull(Dictionary(A), radius=s), Hull(Dictionary(s * A), radius=1.0)):
            loop = minimize(LeastSquares(b), hull, FCMP(), tol=1e-14)
            np.testing.assert_allclose(A @ many.x[:, i], loop.x, atol=1e-6)
            assert 0.5 * many.rnorm[i] ** 2 <= loop.value * (1 + 1e-12)


@pytest.mark.parametrize(("m", "n"), [(6, 4), (12, 5), (20, 15), (5, 12)])
@pytest.mark.parametrize("s", [0.4, 1.0, 1.7])
def test_a_sum_is_the_hull_of_differences(m, n, s):
    """With x_0 = s - sum of the others, they are weights on a_j - a_0 of at most s."""
    A, B = problem(m, n, t=6)
    many = nnls(A, B, sum_to=s)
    differences = Hull(Dictionary(A[:, 1:] - A[:, :1]), radius=s)
    for i, b in enumerate(B.T):
        loop = minimize(LeastSquares(b - s * A[:, 0]), differences, FCMP(), tol=1e-14)
        np.testing.assert_allclose(A @ many.x[:, i], loop.x + s * A[:, 0], atol=1e-6)


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_a_sum_is_an_ordinary_fit_of_shifted_atoms(m, n):
    """The weights of the shortest point of the hull of a_j - b / s, by plain `nnls`."""
    A, B = problem(m, n, t=5)
    for b in B.T:
        shifted = np.vstack([A - b[:, None] / 0.7, np.ones(n)])
        y = nnls(shifted, np.append(np.zeros(m), 1.0)).x
        fit = nnls(A, b, sum_to=0.7)
        np.testing.assert_allclose(A @ fit.x, A @ (0.7 * y / y.sum()), atol=1e-9)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_multiplier_is_the_rate_at_which_f_falls(condition):
    A, B = problem(15, 6, t=10)
    step = 1e-6
    here, more = (nnls(A, B, **{condition: s}) for s in (0.5, 0.5 + step))
    fall = 0.5 * (here.rnorm**2 - more.rnorm**2) / step
    np.testing.assert_allclose(here.sum_multiplier, fall, atol=1e-4)


def test_a_loose_limit_changes_nothing():
    for m, n in SHAPES:
        A, B = problem(m, n)
        fit, plain = nnls(A, B, sum_at_most=1e9), nnls(A, B)
        np.testing.assert_allclose(fit.x, plain.x, atol=1e-9)
        assert not fit.sum_multiplier.any()
        assert fit.proven.all()
        assert (fit.gap <= 1e-11 * (B * B).sum(axis=0)).all()
    assert plain.sum_multiplier is None


def answers(A, B, condition, s, how):
    """Yield the target, weights as fractions, gap and proof of every answer of a kind."""
    n = A.shape[1]
    if how == "many":
        wide = np.hstack([A, np.repeat(A[:, -1:], 9 - n, axis=1)])  # too many for a table
        fit = nnls(wide, B, **{condition: s})
    elif how == "few":
        fit = nnls(A, B, **{condition: s})
    for i, b in enumerate(B.T):
        if how == "one":
            one = nnls(A, b, **{condition: s})
        elif how == "search":  # a sparse matrix has no kernel
            total = WeightSum(s, condition == "sum_at_most")
            one = fit_one_sum(sparse.csc_array(A), b.copy(), total, 0.0, 1000)
        if how in ("one", "search"):
            x, gap, proven = one.x, one.gap, one.proven
        else:
            x, gap, proven = fit.x[:, i], fit.gap[i], fit.proven[i]
        assert np.isfinite(x).all()
        assert (x >= 0).all()
        yield b, [exact_sum([a]) for a in x[: n - 1]] + [exact_sum(x[n - 1 :])], gap, proven


@pytest.mark.parametrize("how", ["one", "few", "many", "search"])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", FAMILIES)
def test_no_proof_is_false(name, condition, how):
    """f(x) - f* in rational arithmetic, by trying every support, is never above a proven gap."""
    rng = np.random.default_rng(list(f"{name} {condition} {how}".encode()))
    full = condition == "sum_to"
    for _ in range(5):
        m, n = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        A, B = FAMILIES[name](rng, m, n, 2)
        s = float(rng.choice([1.0, 0.3, 10.0 ** rng.uniform(-9, 9)]))
        try:
            given = list(answers(A, B, condition, s, how))
        except ValueError as error:
            assert "2^1400" in str(error)  # noqa: PT017  # targets that are too far away
            continue
        for b, x, gap, proven in given:
            excess = (sum(x) - Fraction(s)) / Fraction(s)
            assert excess <= Fraction(2) ** -52
            assert not full or excess >= -(Fraction(2) ** -52)
            # A gap overflows where squares of the data do.
            largest = max(
                Fraction(float(abs(b).max())), Fraction(float(abs(A).max())) * Fraction(s)
            )
            assert proven or largest**2 > Fraction(1e290)
            if proven:
                assert hull_excess(A, b, s, x, always_full=full) <= Fraction(float(gap))


def test_the_bound_counts_what_the_sum_lacks():
    A, b = np.eye(2), np.array([3.0, 1.0])
    x, s = np.array([0.9, 0.0]), 1.0
    total = WeightSum(s, False)
    found = SumProof(A, b, x, total).gap
    assert found >= float(hull_excess(A, b, s, x, always_full=True))
    g, none = A.T @ (b - A @ x), np.zeros(2)
    assert kernels.sum_gap(g, none, 0.0, x, s, False, 0.0) == pytest.approx(0.1 * 2.1)
    assert kernels.sum_gap(g - 1.0, none, 1.0, x, s, False, 0.0) == pytest.approx(0.1 * 2.1)
    # Errors of the slopes, and the distance of the residual, are added.
    assert kernels.sum_gap(g, none + 0.01, 0.0, x, s, False, 0.0) > 0.1 * 2.1 + 0.9 * 0.01
    assert kernels.sum_gap(g, none, 0.0, x, s, False, 0.2) == pytest.approx(0.1 * 2.1 + 0.02)
    # Where a sum may be smaller, no slope above zero is needed.
    assert kernels.sum_gap(-g, none, 0.0, none, s, True, 0.0) == 0.0


@pytest.mark.parametrize("how", ["one", "few", "many", "search", "atom"])
def test_slopes_that_differ_by_rounding_alone_are_no_proof(how):
    """Far targets that are orthogonal to the atoms: which atom is best, rounding decides."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        b = 1e9 * rng.standard_normal(40)
        A = rng.standard_normal((40, 4))
        A -= np.outer(b, b @ A) / (b @ b)
        s = float(10.0 ** rng.uniform(-6, 0))
        if how == "atom":
            x = s * np.eye(4)[rng.integers(4)]
            proof = SumProof(A, b, x, WeightSum(s, False))
            given = [(b, x, proof.gap, True)]
        else:
            given = answers(A, b[:, None], "sum_to", s, how)
        for _, x, gap, _ in given:
            assert hull_excess(A, b, s, x, always_full=True) <= Fraction(float(gap))
            most = product_rounding(40) * np.linalg.norm(b) * np.linalg.norm(A, axis=0)
            assert gap >= 1.99 * s * most.min()  # of the steepest slope, and of the atom's own


@pytest.mark.parametrize("condition", CONDITIONS)
def test_degenerate_dictionaries(condition):
    A, B = problem(10, 4, t=12)
    cases = {
        "copies": np.hstack([A, A, A]),
        "zero atoms": np.hstack([A, np.zeros((10, 2))]),
        "only zeros": np.zeros((10, 3)),
        "multiples": np.hstack([A, 2 * A, 0.5 * A]),
        "one atom": A[:, :1],
        "one row": A[:1],
        "an outlier": np.hstack([A, 1e6 * A[:, :1]]),
    }
    for name, atoms in cases.items():
        targets = np.hstack([B, np.zeros((10, 1)), 1e8 * B[:, :1], -B[:, :1]])[: len(atoms)]
        many = nnls(atoms, targets, **{condition: 1.0})
        assert many.proven.all(), name
        for i, b in enumerate(targets.T):
            one = nnls(atoms, b, **{condition: 1.0})
            assert one.status is Status.STATIONARY, name
            assert many.status[i] is Status.STATIONARY, name
            check(atoms, b, condition, 1.0, one.x, one.sum_multiplier, one.dual)
            check(atoms, b, condition, 1.0, many.x[:, i], many.sum_multiplier[i], many.dual[:, i])
            np.testing.assert_allclose(many.rnorm[i], one.rnorm, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(
    "units", [(1e-150, 1e-150, 1.0), (1e150, 1e150, 1.0), (1e150, 1.0, 1e-150)]
)
def test_units_do_not_matter(condition, units):
    A, B = problem(12, 9, t=6)
    of_atoms, of_targets, of_weights = units
    usual = nnls(A, B, **{condition: 1.0})
    scaled = nnls(of_atoms * A, of_targets * B, **{condition: of_weights})
    np.testing.assert_allclose(scaled.x, of_weights * usual.x, atol=1e-9 * of_weights)
    np.testing.assert_allclose(scaled.rnorm, of_targets * usual.rnorm, rtol=1e-9)
    rate = of_targets * of_atoms
    np.testing.assert_allclose(scaled.sum_multiplier / rate, usual.sum_multiplier, atol=1e-9)
    assert scaled.proven.all()


@given(seed=st.integers(0, 10**6), power=st.integers(-100, 100))
@settings(max_examples=30, deadline=None)
def test_the_order_of_atoms_and_powers_of_two_do_not_matter(seed, power):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 12)), int(rng.integers(1, 14))
    A, B = problem(m, n, t=4, seed=seed)
    order = rng.permutation(n)
    for condition in CONDITIONS:
        fit = nnls(A, B, **{condition: 1.0})
        other = nnls(2.0**power * A[:, order], 2.0**power * B, **{condition: 1.0})
        np.testing.assert_allclose(A[:, order] @ other.x, A @ fit.x, atol=1e-8)
        np.testing.assert_allclose(other.rnorm / 2.0**power, fit.rnorm, atol=1e-8)
        rate = other.sum_multiplier / 4.0**power
        np.testing.assert_allclose(rate, fit.sum_multiplier, atol=1e-8)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_sparse_matrices_and_operators(condition):
    A, B = problem(40, 15, t=4)
    A[A < 0.3] = 0.0
    total = WeightSum(0.8, condition == "sum_at_most")
    for b in B.T.copy():
        dense = nnls(A, b, **{condition: 0.8})
        for matrix in (sparse.csc_array(A), aslinearoperator(A)):
            fit = fit_one_sum(matrix, b, total, 0.0, 1000)
            assert fit.proven
            assert fit.status is Status.STATIONARY
            check(A, b, condition, 0.8, fit.x, fit.sum_multiplier, fit.dual)
            np.testing.assert_allclose(fit.x, dense.x, atol=1e-9)
    many = nnls(sparse.csc_array(A), B, **{condition: 0.8})
    np.testing.assert_allclose(many.x, nnls(A, B, **{condition: 0.8}).x, atol=1e-9)


@pytest.mark.parametrize("factor", [0.0, 1e-6, 1.0, 1e4, 1e8, 1e12, 1e20, -1e4])
def test_targets_at_any_distance_need_few_ordinary_fits(factor):
    A, B = problem(10, 6, t=5)
    for b in factor * B.T:
        search = SumSearch(A, b, 1.0, atom_norms(A, b), 1000)
        search.run()
        assert search.room > 1000 - 200
        fit = fit_one_sum(sparse.csc_array(A), b, WeightSum(1.0, False), 0.0, 1000)
        assert fit.status is Status.STATIONARY
        np.testing.assert_allclose(A @ fit.x, A @ nnls(A, b, sum_to=1.0).x, atol=1e-6)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_three_hundred_atoms_float32_and_threads(condition):
    A, B = problem(100, 300, t=20)
    for atoms in (A, A.astype(np.float32)):
        wide = atoms.astype(np.float64)
        one, two = (nnls(atoms, B, n_jobs=jobs, **{condition: 1.0}) for jobs in (1, 2))
        assert (one.x == two.x).all()
        assert one.proven.all()
        for i, b in enumerate(B.T):
            check(wide, b, condition, 1.0, one.x[:, i], one.sum_multiplier[i], one.dual[:, i])


@pytest.mark.parametrize("condition", CONDITIONS)
def test_weights_of_rows(condition):
    A, B = problem(12, 5, t=4)
    w = np.random.default_rng(0).random(12)
    root = np.sqrt(w)[:, None]
    plain = nnls(root * A, root * B, **{condition: 0.9})
    same, own = (nnls(A, B, weights=v, **{condition: 0.9}) for v in (w, np.tile(w, (4, 1)).T))
    for fit in (same, own):
        np.testing.assert_allclose(fit.x, plain.x, atol=1e-10)
        assert fit.proven.all()


@pytest.mark.parametrize("n", [12, 40])
def test_a_limit_on_steps_is_a_status(n):
    A, B = problem(30, n, t=8)
    for fit in (nnls(A, B, sum_to=1.0, max_iter=1), nnls(A, B, sum_at_most=0.5, max_iter=1)):
        assert Status.MAX_ITER in fit.status
        assert fit.proven.all()
        assert (fit.x.sum(axis=0) < 1.0 + 1e-12).all()
    search = fit_one_sum(sparse.csc_array(A), B[:, 0].copy(), WeightSum(1.0, False), 0.0, 1)
    assert search.status is Status.MAX_ITER
    best = nnls(A, B, sum_to=1.0)
    rough = nnls(A, B, sum_to=1.0, max_iter=1)
    assert (0.5 * (rough.rnorm**2 - best.rnorm**2) <= rough.gap).all()


def test_a_result_can_be_pickled():
    A, B = problem(12, 5)
    fit = nnls(A, B, sum_to=1.0)
    again = pickle.loads(pickle.dumps(fit))
    assert (again.sum_multiplier == fit.sum_multiplier).all()
    assert (again.x == fit.x).all()


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf, True, "1", [1.0, 1.0]])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_sum_that_is_none_is_refused(condition, wrong):
    with pytest.raises(ValueError, match=f"{condition} .* positive finite number"):
        nnls(np.eye(2), np.ones(2), **{condition: wrong})


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(
    "other", [{"max_atoms": 1}, {"tol": 1e-3}, {"start": np.array([0.5, 0.5])}, {"callback": print}]
)
def test_what_does_not_combine_is_refused(condition, other):
    with pytest.raises(ValueError, match=f"cannot be combined with {condition}"):
        nnls(np.eye(2), np.ones(2), **{condition: 1.0}, **other)


def test_both_sums_and_bad_data_are_refused():
    with pytest.raises(ValueError, match="exclude each other"):
        nnls(np.eye(2), np.ones(2), sum_to=1.0, sum_at_most=1.0)
    bad = np.array([1.0, np.nan])
    for n in (2, 9):
        A = np.ones((2, n))
        with pytest.raises(ValueError, match="b must be finite"):
            nnls(A, bad, sum_to=1.0)
        with pytest.raises(ValueError, match=r"b\[:, 1\] must be finite"):
            nnls(A, np.stack([np.ones(2), bad], axis=1), sum_to=1.0)
        with pytest.raises(ValueError, match="A must be finite"):
            nnls(np.inf * A, np.ones(2), sum_to=1.0)
    with pytest.raises(ValueError, match="2\\^1400"):
        nnls(1e-300 * np.eye(2), 1e300 * np.ones(2), sum_to=1.0)


@pytest.mark.parametrize("condition", ["sum_to", "sum_at_most"])
@pytest.mark.parametrize("powers", [(-12, 12), (-24, 29)])
def test_norms_of_atoms_that_differ_by_many_powers_of_ten(powers, condition):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        m, n = rng.integers(2, 8, 2)
        A = (rng.standard_normal((m, n)) if seed % 2 else rng.random((m, n))) + 0.0
        A *= 10.0 ** rng.uniform(*powers, n)
        A[:, 0] /= np.abs(A[:, 0]).max()  # so that f(x) is not huge, whatever the others are
        b = rng.standard_normal(m)
        one, many = nnls(A, b, **{condition: 1.0}), nnls(A, b[:, None], **{condition: 1.0})
        assert one.proven
        assert np.isfinite(one.dual).all()
        assert one.gap <= 1e-6 * (b @ b + A[:, 0] @ A[:, 0])
        assert many.gap[0] <= 1e-6 * (b @ b + A[:, 0] @ A[:, 0])
        assert one.x.sum() <= 1.0 + 2.0**-50
        if condition == "sum_to":
            assert one.x.sum() == pytest.approx(1.0, rel=1e-15)
