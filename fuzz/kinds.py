"""The kinds of calls that are fuzzed."""

from __future__ import annotations

from cases import (
    Kind,
    as_float32,
    as_integers,
    as_sparse,
    few,
    large,
    plain,
    small,
    tiny,
    wide,
    with_answers,
    with_answers_of_scipy,
    with_bound,
    with_limit,
    with_mask,
    with_own_weights,
    with_penalty,
    with_point_and_penalty,
    with_radius,
    with_start,
    with_weights,
)
from losses import LOSSES

NNLS = [
    Kind("one target", "nnls", "nnls(A, b)", 0.2, few, plain),
    Kind("many targets", "nnls", "nnls(A, B)", 0.3, small, plain),
    Kind("F order", "nnls", "nnls(np.asfortranarray(A), B)", 0.02, small, plain),
    Kind("wide, one", "nnls", "nnls(A, b)", 0.03, wide, plain),
    Kind("wide, many", "nnls", "nnls(A, B)", 0.03, wide, plain),
    Kind("max_atoms, one", "nnls", "nnls(A, b, max_atoms=k)", 0.03, few, with_limit),
    Kind("max_atoms, many", "nnls", "nnls(A, B, max_atoms=k)", 0.05, small, with_limit),
    Kind("weights, one", "nnls", "nnls(A, b, weights=w)", 0.03, few, with_weights),
    Kind("weights, many", "nnls", "nnls(A, B, weights=w)", 0.05, small, with_weights),
    Kind("weights of each", "nnls", "nnls(A, B, weights=W)", 0.01, few, with_own_weights),
    Kind("start", "nnls", "nnls(A, b, start=x)", 0.03, few, with_start),
    Kind("gram, one", "nnls", "nnls_gram(A.T @ A, A.T @ b)", 0.02, few, as_integers),
    Kind("gram, many", "nnls", "nnls_gram(A.T @ A, A.T @ B)", 0.04, small, as_integers),
    Kind("float32", "nnls", "nnls(A.astype(np.float32), B)", 0.03, small, as_float32),
    Kind("large", "nnls", "nnls(A, b)", 0.005, large, plain),
    Kind("large, float32", "nnls", "nnls(A.astype(np.float32), b)", 0.003, large, as_float32),
    Kind("large, many", "nnls", "nnls(A, B)", 0.003, large, plain),
    Kind("sparse", "nnls", "nnls(sparse.csc_array(A), b)", 0.001, large, as_sparse),
    Kind("certify random", "nnls", "certify_nnls(A, b, x)", 0.03, few, with_start),
    Kind("certify answers", "nnls", "certify_nnls(A, b, x)", 0.03, few, with_answers),
    Kind("certify SciPy", "nnls", "certify_nnls(A, b, x)", 0.03, few, with_answers_of_scipy),
    Kind("certify many", "nnls", "certify_nnls(A, B, X)", 0.03, few, with_start),
]

NNFIT = [
    Kind("nnfit squares", "nnfit", "nnfit(LeastSquares(b), A)", 1, tiny, plain),
    Kind("nnfit squares, many", "nnfit", "nnfit(LeastSquares(B), A)", 1, tiny, plain),
    Kind("nnfit weights", "nnfit", "nnfit(LeastSquares(b, weights=w), A)", 0.5, tiny, with_weights),
    Kind("nnfit mask", "nnfit", "nnfit(LeastSquares(b, mask=w == 0), A)", 0.5, tiny, with_mask),
    Kind(
        "nnfit penalty", "nnfit", "nnfit(LeastSquares(b), A, penalty=penalty)", 1, tiny,
        with_penalty,
    ),
    Kind(
        "nnfit penalty, many", "nnfit", "nnfit(LeastSquares(B), A, penalty=penalty)", 1, tiny,
        with_penalty,
    ),
]  # fmt: skip

ALGORITHMS = ["FCMP(variant=0)", "FCMP(variant=1)", "PWMP()", "AMP()", "NNMP()"]
CONE, COST = "Cone(Dictionary(A))", "Cone(Dictionary(A), penalty=penalty)"
KNOWN, HULL = "Cone(Dictionary(A), radius=radius)", "Hull(Dictionary(A), radius=radius)"

MINIMIZE = [
    Kind(
        f"{how} {name}", "minimize",
        f"minimize(LeastSquares(b), {domain}, {how}, max_iter=60)", 1, tiny, prepare,
    )
    for how in ALGORITHMS
    for name, domain, prepare in (
        ("cone", CONE, plain), ("penalty", COST, with_penalty), ("hull", HULL, with_radius),
    )
    if name != "hull" or how not in ("AMP()", "NNMP()")
] + [
    Kind(
        "FCMP radius", "minimize",
        f"minimize(LeastSquares(b), {KNOWN}, FCMP(variant=1), max_iter=60)", 1, tiny, with_bound,
    ),
    Kind(
        "certify cone", "minimize", f"certify(LeastSquares(b), {CONE}, weights=x)", 3, tiny,
        with_start,
    ),
    Kind(
        "certify answers", "minimize", f"certify(LeastSquares(b), {CONE}, weights=x)", 3, tiny,
        with_answers,
    ),
    Kind(
        "certify penalty", "minimize", f"certify(LeastSquares(b), {COST}, weights=x)", 3, tiny,
        with_point_and_penalty,
    ),
    Kind(
        "penalty_path", "minimize",
        "penalty_path(LeastSquares(b), Dictionary(A), n_penalties=4, max_iter=60)", 1, tiny, plain,
    ),
]  # fmt: skip

OTHERS = [
    kind
    for name, loss in LOSSES.items()
    for kind in (
        Kind(
            f"nnfit {name}", "nnfit", f"nnfit({loss.text('b')}, A)", 0.5, tiny,
            loss.prepared(plain), name,
        ),
        Kind(
            f"nnfit {name}, many", "nnfit", f"nnfit({loss.text('B')}, A)", 0.5, tiny,
            loss.prepared(plain), name,
        ),
        Kind(
            f"nnfit {name}, weights", "nnfit",
            f"nnfit({loss.text('b', ', weights=w')}, A)", 0.3, tiny,
            loss.prepared(with_weights), name,
        ),
        Kind(
            f"nnfit {name}, penalty", "nnfit", f"nnfit({loss.text('b')}, A, penalty=penalty)", 0.5,
            tiny, loss.prepared(with_penalty), name,
        ),
        Kind(
            f"minimize {name}", "minimize",
            f"minimize({loss.text('b')}, {COST}, FCMP(variant=1), max_iter=60)", 1, tiny,
            loss.prepared(with_penalty), name,
        ),
    )
]  # fmt: skip

KINDS = [*NNLS, *NNFIT, *MINIMIZE, *OTHERS]
