"""The kinds of calls about losses: every loss times every way of calling it."""

from __future__ import annotations

from dataclasses import replace

from cases import Kind, several, some, tiny
from extras import (
    joined,
    plain,
    priced,
    with_bound,
    with_entry_mask,
    with_how,
    with_how_in_hulls,
    with_mask,
    with_own_weights,
    with_penalty,
    with_points,
    with_radius,
    with_steps,
    with_weights,
    within,
)
from losses import FUNCTIONS, LOSSES, OWN

SLOW = {"BetaDivergence 1": 0.1, "BetaDivergence 2": 0.1}
"""Losses that no kernel knows, each with the share of its kinds: they take milliseconds."""

ONE = {
    "": ("", plain),
    ", weights": (", weights=w", with_weights),
    ", mask": (", mask=w == 0", with_mask),
}
"""What may be said of one target: the name, the text and the data."""

MANY = {
    "": ("", plain),
    ", rows": (", weights=w[:, None]", with_weights),
    ", entries": (", weights=W", with_own_weights),
    ", mask": (", mask=W == 0", with_entry_mask),
}
"""What may be said of many targets."""

COSTS = {"": ("", plain), ", penalty": (", penalty=penalty", with_penalty)}
"""Fits without and with a penalty."""

CONE, COST = "Cone(Dictionary(A))", "Cone(Dictionary(A), penalty=penalty)"
KNOWN, HULL = "Cone(Dictionary(A), radius=radius)", "Hull(Dictionary(A), radius=radius)"

DOMAINS = {
    "": (CONE, plain),
    ", penalty": (COST, with_penalty),
    ", hull": (HULL, with_radius),
}
"""Where `minimize` and `certify` look: the name, the text and the data."""


def nnfits(name, loss):
    """Return kinds of fits of one target and of many."""
    share = SLOW.get(name, 1.0)
    for extra, (text, prepare) in ONE.items():
        call = loss.text("b", text)
        for cost, (option, costly) in COSTS.items():
            yield Kind(
                f"{name}{extra}{cost}", "nnfit", f"nnfit({call}, A{option}, max_iter=steps)",
                0.1 * share, tiny, loss.prepared(joined(prepare, costly, with_steps)), name,
            )  # fmt: skip
    for extra, (text, prepare) in MANY.items():
        call = loss.text("B", text)
        for cost, (option, costly) in COSTS.items():
            yield Kind(
                f"{name}, many{extra}{cost}", "nnfit", f"nnfit({call}, A{option}, max_iter=steps)",
                share, several, loss.prepared(joined(prepare, costly, with_steps)), name,
            )  # fmt: skip
    yield Kind(
        f"{name}, intercept", "nnfit",
        f"nnfit(FreeIntercept({loss.text('b')}), A, max_iter=steps)", 0.2 * share, tiny,
        loss.prepared(with_steps), name,
    )  # fmt: skip


def minimizes(name, loss):
    """Return kinds of runs of all algorithms, each stopped somewhere."""
    for where, (domain, prepare) in DOMAINS.items():
        how = with_how_in_hulls if domain == HULL else with_how
        yield Kind(
            f"{name}{where}", "minimize",
            f"minimize({loss.text('b')}, {domain}, how, max_iter=steps)", 1, tiny,
            loss.prepared(joined(prepare, how)), name,
        )  # fmt: skip
    yield Kind(
        f"{name}, intercept", "minimize",
        f"minimize(FreeIntercept({loss.text('b')}), {CONE}, how, max_iter=steps)", 0.5, tiny,
        loss.prepared(with_how), name,
    )  # fmt: skip
    yield Kind(
        f"{name}, path", "minimize",
        f"penalty_path({loss.text('b')}, Dictionary(A), n_penalties=4, max_iter=steps)", 0.3,
        tiny, loss.prepared(with_steps), name,
    )  # fmt: skip


def audits(name, loss):
    """Return kinds of audits of points wherever they are."""
    points = with_points(loss.text("B"))
    for where, (domain, prepare) in DOMAINS.items():
        for extra, (text, weighted) in ONE.items():
            if domain == HULL and extra:
                continue
            call = f"certify({loss.text('b', text)}, {domain}, weights=x)"
            inside = within(points) if domain == HULL else points
            yield Kind(
                f"{name}{where}{extra}", "audits", call, 0.3 if extra else 1.0, some,
                loss.prepared(joined(prepare, weighted, inside)), name,
            )  # fmt: skip
    yield Kind(
        f"{name}, intercept", "audits",
        f"certify(FreeIntercept({loss.text('b')}), {CONE}, weights=x)", 0.5, some,
        loss.prepared(points), name,
    )  # fmt: skip


BOUNDED = [
    Kind(
        "FCMP radius", "minimize",
        f"minimize(LeastSquares(b), {KNOWN}, FCMP(variant=1), max_iter=60)", 1, tiny, with_bound,
    )
]  # fmt: skip

LOSS_KINDS = [
    kind
    for make in (nnfits, minimizes, audits)
    for name, loss in LOSSES.items()
    for kind in make(name, loss)
] + BOUNDED

OWN_KINDS = [
    replace(kind, group="own", name=f"{make.__name__} {kind.name}")
    for make in (nnfits, minimizes, audits)
    for name, loss in OWN.items()
    for kind in make(name, loss)
    if loss.call not in FUNCTIONS or (kind.single and "=w" not in kind.text and not kind.intercept)
]
"""The same calls with losses and objectives of users."""


def regressors():
    """Return kinds of fits of the estimators."""
    names = {
        "Poisson": '"poisson", ', "KullbackLeibler": '"kullback_leibler", ',
        "Huber": '"huber", delta=1.0, ', "LeastSquares": "",
    }  # fmt: skip
    for name, said in names.items():
        for flat in (False, True):
            for how in ("fcmp", "pwmp"):
                made = f'{said}algorithm="{how}", fit_intercept={flat}, max_iter=steps'
                for cost, alpha, prepare in (("", "", plain), (", alpha", ", alpha=alpha", priced)):
                    call = f"ConicRegressor({made}{alpha}).fit(A, b)"
                    yield Kind(
                        f"{name}, {how}{', intercept' * flat}{cost}", "estimators", call, 1, tiny,
                        LOSSES[name].prepared(joined(prepare, with_steps)), name,
                    )  # fmt: skip


def classifiers():
    """Return kinds of fits of the classifier."""
    for flat in (False, True):
        for cost, alpha, prepare in (("", "0.0", plain), (", alpha", "alpha", priced)):
            made = f"alpha={alpha}, fit_intercept={flat}, max_iter=steps"
            yield Kind(
                f"classifier{', intercept' * flat}{cost}", "estimators",
                f"ConicClassifier({made}).fit(A, b > 0)", 2, tiny,
                LOSSES["Logistic"].prepared(joined(prepare, with_steps)), "Logistic",
            )  # fmt: skip


ESTIMATORS = [*regressors(), *classifiers()]
