"""Columns that are constant for long: what no row has shown does not move, is not dithered, and comes in time."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.late_events import FIRST, made_up_world

import halfwidth as hw
from halfwidth.errors import Diverged, NotEnoughData, NotIdentified
from halfwidth.learners.auto import careful, expanded
from halfwidth.learners.auto.probes import saturates
from halfwidth.learners.auto.unseen import HIDDEN, filled_up, hidden_directions, with_hidden
from halfwidth.problems import problem

RNG = np.random.default_rng(3)


def moments(X):
    return X.T @ X / len(X)


def test_a_column_that_is_constant_is_hidden_along_with_the_intercept():
    x = RNG.standard_normal(1_000)
    H = moments(np.column_stack([np.ones(1_000), x, np.full(1_000, -0.07)]))
    v = np.array([0.07, 0.0, 1.0]) / np.hypot(1.0, 0.07)  # no row says anything of a move along it
    np.testing.assert_allclose(H @ v, 0.0, atol=1e-12)
    Q = hidden_directions(H)
    np.testing.assert_allclose(Q @ Q.T, np.outer(v, v), atol=1e-8)
    np.testing.assert_allclose(filled_up(H), H + np.median(np.diag(H)) * np.outer(v, v), atol=1e-8)


def test_among_thetas_that_say_the_same_of_all_rows_the_nearest_is_taken():
    X = np.column_stack([np.ones(1_000), RNG.standard_normal((1_000, 2)), np.full(1_000, -0.07)])
    y = X @ np.array([1.0, 0.5, -0.5, 0.0]) + RNG.standard_normal(1_000)
    H, prior = moments(X), 1e-6 * np.diag(moments(X))
    smallest = np.linalg.lstsq(X, y)[0]
    matrix = with_hidden(prior, H, 1e-6)
    np.testing.assert_allclose(np.linalg.solve(H + matrix, X.T @ y / 1_000), smallest, atol=1e-5)
    shared = np.linalg.solve(H + np.diag(prior), X.T @ y / 1_000)  # in each column's own units: half of it each
    assert abs(shared[3]) > 5.0


def test_a_prior_is_left_alone_where_rows_have_shown_every_direction():
    H = moments(RNG.standard_normal((1_000, 3)))
    np.testing.assert_array_equal(with_hidden(np.arange(1.0, 4.0), H, 512.0), np.diag(np.arange(1.0, 4.0)))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_nothing_is_hidden_where_columns_vary_whatever_their_size(scale):
    X = np.column_stack([np.ones(1_000), scale * (20.0 + RNG.standard_normal(1_000)), RNG.standard_normal(1_000)])
    assert hidden_directions(moments(X)).shape == (3, 0)


def test_columns_without_curvature_stay_as_they_are():
    H = np.zeros((3, 3))
    assert not filled_up(H).any()
    assert not with_hidden(np.zeros(3), H, 512.0).any()
    H[0, 0] = 1.0
    assert np.array_equal(filled_up(H), H)


def test_the_limit_is_where_columns_cancel_to_a_hundredth_of_their_size():
    ones, other = np.ones(10_000), np.resize([1.0, -1.0], 10_000)
    for away, expected in ((0.3, 1), (3.0, 0)):  # the least eigenvalue is about the square of that / 4
        H = moments(np.column_stack([ones, ones + away * np.sqrt(HIDDEN) * other]))
        assert hidden_directions(H).shape[1] == expected


@pytest.fixture
def late_event(tmp_path):
    """A centred event whose first spell comes after 12,000 rows; labels follow forecasts by half."""
    return made_up_world(tmp_path)


def forecasts_of_the_first_spell(world):
    """By how much the coefficient of the event moves forecasts when its first rows come; and the run's k."""
    row = world.params[2 + world.dim : -1].reshape(-1, world.dim)[FIRST + 10]
    found = []
    for seed in range(6):
        learner = hw.Auto(world, seed=seed).run(FIRST - 32)
        assert learner._steered.careful
        found.append(abs(float(learner._steered.moving.theta[3] * row[3])))
    return max(found)


def test_an_event_that_no_row_has_shown_yet_makes_no_forecast(late_event, monkeypatch):
    assert forecasts_of_the_first_spell(late_event) < 1.5
    monkeypatch.setattr(careful, "with_hidden", lambda prior, H, rows: np.diag(prior))
    assert forecasts_of_the_first_spell(late_event) > 3.0


def distances(world):
    """Of eight runs: how far the worst coefficient is from the truth, doubted or not, and how many have status ok."""
    worst, ok = [], 0
    for seed in range(8):
        try:
            result = hw.Auto(world, seed=seed).run(30_000).result()
        except (Diverged, NotEnoughData, NotIdentified):
            worst.append(np.inf)
            continue
        away = np.abs(result.params - world.theta_star) / np.sqrt(np.diag(result.covariance) / result.n)
        worst.append(np.inf if np.isnan(away).any() else away.max())
        flags = result.diagnostics.coefficient_flags or ((),) * 4
        ok += sum(result.status == "ok" and not own for own in flags)
    return np.array(worst), ok


def test_a_late_event_spoils_nothing(late_event, monkeypatch):
    worst, ok = distances(late_event)
    assert np.median(worst) < 3.0
    assert ok >= 16  # of 32
    monkeypatch.setattr(careful, "with_hidden", lambda prior, H, rows: np.diag(prior))
    assert np.median(distances(late_event)[0]) > 10.0


def batches(points, curvature):
    """Batches of 64 rows of one coefficient, expanded at these points with this curvature per row."""
    n, one = np.full(len(points), 64.0), np.ones((len(points), 1))
    H = (64.0 * np.asarray(curvature, dtype=float))[:, None, None]
    return expanded.Sums(H, one, n[:, None] * np.asarray(points, dtype=float)[:, None], one, one, n, np.zeros(len(n)))


def test_coefficients_that_were_expanded_far_out_are_doubted():
    sums, root = batches([0.0, 0.4], [1.0, 1.0]), np.zeros(1)
    distance = np.sqrt(0.08)  # in the mean square, by curvature
    near, far = distance / expanded.FAR * np.array([[1.01], [0.99]])
    steep, flat = expanded.LOST / 0.08 * np.array([[1.01], [0.99]])
    assert expanded.far(sums, root, far, steep).tolist() == [True]
    assert expanded.far(sums, root, near, steep).tolist() == [False]  # within its own error
    assert expanded.far(sums, root, far, flat).tolist() == [False]  # the loss hardly bends over that distance
    assert expanded.far(batches([0.0, 0.4], [1.0, 0.0]), root, far, steep).tolist() == [False]  # no row rests on it
    assert expanded.far(sums, root, np.array([np.nan]), steep).tolist() == [False]  # it has no interval


@pytest.mark.parametrize(("loss", "expected"), [("logistic", True), ("poisson", False)])
def test_a_logistic_loss_saturates_and_an_exponential_does_not(loss, expected):
    engine = hw.Auto(problem(f"table-{loss}", epsilon=0.5), seed=4).run(12_000)._steered
    assert engine.careful
    assert saturates(engine.moving.probed) == expected


def test_where_curvature_has_vanished_careful_steps_begin_at_theta_0():
    engine = hw.Auto(problem("table-logistic", epsilon=0.5), seed=4).run(4_096)._steered
    for left, at_root in ((1.0, True), (0.9 * careful.FLATTER, False)):
        engine.shares, engine.phase = None, 2
        engine.steering.point[:] = 0.25
        engine.prior[:] = np.diag(engine.mean_hessian()) * np.sqrt(engine.m) / left
        engine._be_careful()
        assert np.array_equal(engine.moving.theta, np.full(6, 0.25) if at_root else engine.moving.theta_0)
        assert not engine.jumps
        engine.hessian_sum[:], engine.hessian_rows = np.eye(6), 1.0
