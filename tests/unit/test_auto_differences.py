"""Hessians from differences of gradients on given rows: as good as the problem's own, whatever the columns are."""

import numpy as np
import pytest

from halfwidth import Auto, Problem
from halfwidth.learners.auto import difference_widths
from halfwidth.problems.row_losses import LOGISTIC, POISSON

LOSSES = {"poisson": (POISSON, []), "logistic": (LOGISTIC, [0.0])}


def both(X, y, loss):
    """The results of the same rows with a Hessian, and from gradients alone."""
    own, params = LOSSES[loss]
    rows = np.column_stack([X, y])
    world = Problem(X.shape[1], own.gradient, hessian=own.hessian, row_size=rows.shape[1], params=params)
    return [Auto(world, gradient_only=gradient_only).consume(rows).result() for gradient_only in (False, True)]


def labels(rng, eta, loss):
    return rng.poisson(np.exp(eta)) if loss == "poisson" else rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))


def apart(X, eta, loss, seed=0):
    """How far apart the two are in standard errors, and the largest ratio of these."""
    told, differenced = both(X, labels(np.random.default_rng(seed), eta, loss), loss)
    assert told.status == differenced.status == "ok"
    ratios = differenced.bse / told.bse
    return np.abs((differenced.params - told.params) / told.bse).max(), max(ratios.max(), 1.0 / ratios.min())


@pytest.mark.parametrize("n", [1_000, 20_000])
@pytest.mark.parametrize("loss", LOSSES)
def test_one_coefficient_is_not_taken_for_a_linear_gradient(loss, n):
    """Along one coordinate a step adds up to itself: any loss was linear, up to 800 standard errors off, status ok."""
    x = 1.0 + 0.5 * np.random.default_rng(1).standard_normal((n, 1))
    away, ratio = apart(x, x[:, 0], loss)
    assert away < 0.02
    assert ratio < 1.01


def blocks(n):
    """A constant and three dummies, each in a stretch of its own: the first chunk shows one coordinate."""
    group = np.repeat(np.arange(4), n // 4)
    X = np.column_stack([np.ones(n), group == 1, group == 2, group == 3]).astype(float)
    return X, X @ [0.3, 0.5, -0.5, 0.2]


def test_groups_one_after_the_other_are_those_of_a_hessian():
    away, ratio = apart(*blocks(20_000), "poisson")
    assert away < 0.02
    assert ratio < 1.01


def test_steps_along_all_coordinates_alone_take_them_for_linear(monkeypatch):
    """The negative control of both."""
    monkeypatch.setattr(difference_widths, "_STEPS", (1.0,))
    X, eta = blocks(20_000)
    assert apart(X, eta, "poisson")[0] > 2.0


@pytest.mark.parametrize("mean", [30.0, 1_000.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_column_far_from_zero_has_the_hessian_of_its_differences(loss, mean):
    """In the direction in which it nearly is a constant, bends within a difference were more than the curvature."""
    X = np.random.default_rng(2).normal([0.0, mean, 0.0], 1.0, (600, 3))
    X[:, 0] = 1.0
    eta = 0.3 + 0.8 * (X[:, 1] - mean) - 0.5 * X[:, 2]
    away, ratio = apart(X, eta, loss)
    assert away < 0.02
    assert ratio < 1.01


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("units", [1e-4, 1e3, 1e6])
def test_the_units_of_a_column_change_nothing(loss, units):
    """Differences of the first rows were 1e-4 wide, whatever the column's units."""
    X = np.random.default_rng(3).standard_normal((600, 2))
    eta = X @ [0.8, -0.5]
    away, ratio = apart(X * [units, 1.0], eta, loss)
    assert away < 0.02
    assert ratio < 1.01


def test_wide_differences_lose_such_columns(monkeypatch):
    """The negative control of the two before."""
    monkeypatch.setattr(difference_widths, "_MOST_NARROWINGS", 0)
    X = np.random.default_rng(2).normal([0.0, 100.0, 0.0], 1.0, (600, 3))
    X[:, 0] = 1.0
    told, differenced = both(X, labels(np.random.default_rng(0), 0.8 * (X[:, 1] - 100.0), "poisson"), "poisson")
    assert np.abs((differenced.params - told.params) / told.bse).max() > 1.0


def test_an_exponential_that_overflows_within_the_first_difference_is_no_crash():
    """SciPy's own error about a matrix that is not finite came out of `result()`."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.ones(600), 1e6 * rng.standard_normal(600), rng.standard_normal(600)])
        told, differenced = both(X, rng.poisson(np.exp(X @ [0.3, 8e-7, -0.5])), "poisson")
        np.testing.assert_allclose(differenced.params, told.params, atol=0.02 * told.bse.max())
