"""The kinds of calls that are fuzzed."""

from __future__ import annotations

from cases import Kind, few, large, small, wide
from extras import (
    as_float32,
    as_integers,
    as_sparse,
    plain,
    with_answers,
    with_answers_of_scipy,
    with_limit,
    with_own_weights,
    with_start,
    with_weights,
)
from loss_kinds import LOSS_KINDS

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

KINDS = [*NNLS, *LOSS_KINDS]
