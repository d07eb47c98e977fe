"""`auto` on rows that cannot respond: every row counts, least squares exactly, states, gradients that jump."""

import numpy as np
import pytest
from numba import njit

from halfwidth import Auto, Problem
from halfwidth.learners.auto.row_sample import RowSample
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import problem

MODES = pytest.mark.parametrize("gradient_only", [False, True], ids=["auto", "auto-gradient"])


def rows_of(world, n, seed=0):
    rows = np.empty((n, world.row_size))
    collect_rows(world, np.random.default_rng(seed), np.zeros(world.dim), np.array(world.state_0), rows)
    return rows


@MODES
@pytest.mark.parametrize("n", [300, 1_024, 5_001])
def test_a_linear_model_is_least_squares_over_every_row(gradient_only, n):
    world = problem("iid-linear", dim=3)
    rows = rows_of(world, n)
    result = Auto(world, gradient_only=gradient_only).consume(rows).result()
    assert result.n == n
    fit = np.linalg.lstsq(rows[:, :3], rows[:, 3], rcond=None)[0]
    np.testing.assert_allclose(result.params, fit, rtol=1e-8, atol=1e-9)
    assert not result.feedback.detected
    assert result.truncations == ()


@MODES
def test_a_curved_model_from_afar_ends_at_the_offline_fit(gradient_only):
    """Rows sorted by a feature, theta_0 three away: early chunks are expanded far from the fit."""
    world = problem("ar-logistic", dim=3)
    rows = rows_of(world, 9_000)
    rows = rows[np.argsort(rows[:, 0])]
    result = Auto(world, gradient_only=gradient_only, theta_0=[-3.0, 3.0, -3.0]).consume(rows).result()
    assert np.abs((result.params - offline(world, rows)) / result.bse).max() < 0.5


def offline(world, rows):
    """Newton steps over all rows at once, from the problem's own functions."""
    theta = np.zeros(world.dim)
    for _ in range(25):
        total, H, grad, u = np.zeros(world.dim), np.zeros((world.dim,) * 2), np.empty(world.dim), np.empty(world.dim)
        for row in rows:
            world.gradient(theta, row, world.params, grad)
            w, c = world.hessian(theta, row, world.params, u)
            total += grad
            H += w * np.outer(u, u) + c * np.eye(world.dim)
        theta = theta - np.linalg.solve(H, total)
    return theta


def test_the_sample_keeps_early_rows_and_stands_for_all():
    sample = RowSample(2, 1)
    for at in range(0, 200_000, 1_000):
        sample.add(np.full((1_000, 2), float(at)), np.zeros(1))
    weights = sample._weights[: sample.count]
    assert sample.count < sample.capacity
    assert weights.sum() == pytest.approx(200_000, rel=0.01)
    np.testing.assert_array_equal(weights[: sample.first], 1.0)


@njit
def quantile_gradient(theta, row, params, grad):
    d = theta.shape[0]
    eta = 0.0
    for j in range(d):
        eta += theta[j] * row[j]
    for j in range(d):
        grad[j] = ((1.0 if row[d] < eta else 0.0) - params[0]) * row[j]


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_gradients_that_jump_end_near_the_quantile(quantile):
    from scipy.special import ndtri

    rng, truth = np.random.default_rng(1), np.array([0.5, 1.0, -1.0])
    X = np.column_stack([np.ones(30_000), rng.standard_normal((30_000, 2))])
    y = X @ truth + rng.standard_normal(30_000) - ndtri(quantile)
    world = Problem(3, quantile_gradient, row_size=4, params=[quantile])
    result = Auto(world).consume(np.column_stack([X, y])).result()
    density = np.exp(-0.5 * ndtri(quantile) ** 2) / np.sqrt(2.0 * np.pi)
    oracle = np.sqrt(quantile * (1.0 - quantile) / 30_000) / density
    np.testing.assert_allclose(result.bse, oracle, rtol=0.15)
    assert np.abs((result.params - truth) / result.bse).max() < 3.5
    assert result.status == "ok"


def test_a_separated_logistic_is_doubted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5_000, 2))
    rows = np.column_stack([X, (X[:, 0] > 0.0).astype(float)])
    world = problem("ar-logistic", dim=2)
    result = Auto(world).consume(rows).result()
    assert {"separation", "not-settled"} & {result.status, *result.coefficient_status}


def test_a_coefficient_that_flips_is_called_unstable():
    world = problem("iid-linear", dim=2)
    rows = rows_of(world, 20_000)
    rows[10_000:, 2] -= 3.0 * rows[10_000:, 0]
    result = Auto(world).consume(rows).result()
    assert result.coefficient_status == ("unstable", "ok")


def test_under_feedback_a_gradient_that_jumps_is_doubted():
    rng = np.random.default_rng(1)
    rows = np.column_stack([np.ones(8_000), rng.standard_normal((8_000, 2))])
    world = Problem(2, quantile_gradient, row_size=3, params=[0.5])
    result = Auto(world, feedback="detect").consume(rows).result()
    assert "jumping-gradient" in dict(result.diagnostics.flags)


@MODES
@pytest.mark.parametrize("seed", range(6))
def test_columns_that_rounding_cannot_tell_apart_are_never_silently_wrong(gradient_only, seed):
    """A column at 1e6 with a spread of one, beside scales of 1e-6 and 1e6: right, doubted or refused."""
    world = problem("troubled-linear", trouble="scales")
    rows = rows_of(world, 50_000, np.random.SeedSequence(0, spawn_key=(seed, 0)))
    result = Auto(world, gradient_only=gradient_only).consume(rows).result()
    trusted = np.array([result.status == status == "ok" for status in result.coefficient_status])
    away = np.abs(result.params - world.theta_star)[trusted]
    assert (away < 5.0 * result.bse[trusted]).all()
