"""The table of losses: every row works wherever it says so, and old names still do."""

import inspect

import numpy as np
import pytest

import conepursuit
from conepursuit import BetaDivergence, ConicRegressor, GreedyNMF, LeastSquares, nnfit
from conepursuit.losses import LOSSES, OLD_NAMES, kernel_code, loss_named, named_losses
from conepursuit.objectives import EntrywiseLoss

RNG = np.random.default_rng(0)
A = RNG.random((20, 4))
COUNTS = RNG.poisson(5 * A @ [1.0, 0.0, 2.0, 1.0]).astype(float)


def data_of(loss):
    return np.median(COUNTS) < COUNTS if loss.labels else COUNTS


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_a_row_says_what_its_class_says(loss):
    kind = getattr(conepursuit, loss.kind)
    assert issubclass(kind, EntrywiseLoss)
    assert kind.__module__ == f"conepursuit.objectives.{loss.module}"
    own = set(inspect.signature(kind).parameters) - {"y", "weights", "mask"}
    assert own == ({loss.parameter} - {None})
    if loss.parameter is not None:
        default = inspect.signature(kind).parameters[loss.parameter].default
        assert default == (inspect.Parameter.empty if loss.default is None else loss.default)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_every_row_fits_one_target_and_many(loss):
    given = {loss.parameter: loss.default or 1.5} if loss.parameter else {}
    one = nnfit(loss.of(data_of(loss), **given), A, penalty=0.1)
    many = nnfit(loss.of(np.stack([data_of(loss)] * 2, axis=1), **given), A, penalty=0.1)
    assert one.proven
    assert many.proven.all()
    np.testing.assert_allclose(many.x[:, 1], one.x, atol=1e-3)


def test_losses_with_counts_refuse_negative_data_and_others_take_them():
    for loss in LOSSES.values():
        given = {loss.parameter: loss.default or 1.5} if loss.parameter else {}
        if loss.counts:
            with pytest.raises(ValueError, match="negative"):
                loss.of(-COUNTS, **given)
        elif not loss.labels:
            loss.of(-COUNTS, **given)


def test_the_kernels_know_the_classes_of_the_table_and_no_others():
    class Own(LeastSquares):
        pass

    assert kernel_code(LeastSquares(COUNTS)) is not None
    assert kernel_code(Own(COUNTS)) is None
    assert kernel_code(BetaDivergence(COUNTS, 1.5))[1] == 1.5
    assert kernel_code(BetaDivergence(COUNTS, 2.0)) is None


@pytest.mark.parametrize("name", named_losses(labels=False))
def test_regressors_take_every_name_that_is_not_for_labels(name):
    assert (ConicRegressor(name).fit(A, COUNTS).coef_ >= 0).all()


@pytest.mark.parametrize("old", ["frobenius", "kullback-leibler"])
def test_old_names_of_factorisations_warn_and_work(old):
    X = RNG.random((6, 5))
    new = GreedyNMF(2, loss=OLD_NAMES[old]).fit(X).components_
    with pytest.warns(
        DeprecationWarning, match=f"'{old}' is called '{OLD_NAMES[old]}' now"
    ) as caught:
        model = GreedyNMF(2, loss=old).fit(X)
    assert caught[0].filename == __file__  # so that scripts show it
    np.testing.assert_array_equal(model.components_, new)
    assert model.get_params()["loss"] == old


def test_a_name_that_is_unknown_lists_those_that_are():
    with pytest.raises(ValueError, match=r"one of 'squared_error', 'poisson'.*got 'squared'"):
        loss_named("squared", named_losses())
    with pytest.raises(ValueError, match="got 3"):
        loss_named(3, named_losses())
