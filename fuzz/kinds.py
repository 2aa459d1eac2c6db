"""The kinds of calls that are fuzzed."""

from __future__ import annotations

from cases import Kind, few, forms, large, small, wide
from extras import (
    as_float32,
    as_form,
    as_form_of_floats32,
    as_integers,
    as_sparse,
    joined,
    plain,
    with_answers,
    with_answers_of_scipy,
    with_limit,
    with_own_weights,
    with_start,
    with_sum,
    with_weights,
)
from loss_kinds import ESTIMATORS, LOSS_KINDS, OWN_KINDS

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

MATRICES = {
    "": ("A", plain),
    ", F order": ("np.asfortranarray(A)", plain),
    ", float32": ("A.astype(np.float32)", as_float32),
}
TARGETS = {
    "one": ("b", "", few, plain, 0.3),
    "many": ("B", "", small, plain, 1.0),
    "wide, one": ("b", "", wide, plain, 0.2),
    "wide, many": ("B", "", wide, plain, 0.5),
    "large": ("b", "", large, plain, 0.003),
    "large, many": ("B", "", large, plain, 0.003),
    "weights, one": ("b", ", weights=w", few, with_weights, 0.2),
    "weights, many": ("B", ", weights=w", small, with_weights, 0.5),
    "weights of each": ("B", ", weights=W", few, with_own_weights, 0.05),
}

SUMS = [
    Kind(
        f"{condition} {name}{stored}", "sums", f"nnls({matrix}, {data}{extra}, {condition}=s)",
        share, sizes, joined(as_stored, more, with_sum),
    )
    for condition in ("sum_to", "sum_at_most")
    for name, (data, extra, sizes, more, share) in TARGETS.items()
    for stored, (matrix, as_stored) in MATRICES.items()
]  # fmt: skip

GRAM = [
    Kind(f"{name}{stored}", "gram", f"nnls_gram({matrix}, {data})", share, forms, prepare)
    for name, data, share in (("one", "b", 0.5), ("many", "B", 1.0))
    for stored, matrix, prepare in (
        ("", "A", as_form), (", float32", "A.astype(np.float32)", as_form_of_floats32),
    )
]  # fmt: skip

KINDS = [*NNLS, *SUMS, *GRAM, *LOSS_KINDS, *ESTIMATORS, *OWN_KINDS]
