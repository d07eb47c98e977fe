"""Renewable Newton on a problem's stream: its slow twin, least squares, what it deploys, and hard first chunks."""

import numpy as np
import pytest
from scipy.optimize import root

import learner_twins
from halfwidth import Problem
from halfwidth.errors import NotIdentified
from halfwidth.inference.autoregressive_bias import shortfall
from halfwidth.inference.longrun import andrews_bandwidth, kernel_weights
from halfwidth.learners import ChunkedNewton
from halfwidth.learners.newton.chunked import CHUNK_ROWS
from halfwidth.problems import problem
from regression_rows import DIM, gradient, hessian, linear_rows, logistic_rows

LINEAR, LOGISTIC = problem("iid-linear", dim=DIM), problem("ar-logistic", dim=DIM)


def minimise(rows, Q, centre):
    def slope(theta):
        return np.sum([gradient(theta, row) for row in rows], axis=0) + Q @ (theta - centre)

    return root(slope, centre, tol=1e-10).x


@pytest.mark.parametrize("burn_in", [0, 300])
def test_renewable_newton_is_its_definition(burn_in):
    """Two full chunks and one that is expanded for the result only; the burn-in ends within a chunk."""
    rows = logistic_rows(700)
    thetas, centre, H, residuals = learner_twins.renewable_newton(
        rows, gradient, hessian, minimise, CHUNK_ROWS, 8, burn_in
    )
    learner = ChunkedNewton(LOGISTIC, burn_in=burn_in)
    path = np.array([learner.consume(row[None]).theta for row in rows])
    for j in range(2):
        np.testing.assert_allclose(path[CHUNK_ROWS * (j + 1) - 1], thetas[j], atol=1e-4)
    result = learner.result()
    np.testing.assert_allclose(result.params, centre, atol=1e-5)  # theta_j is found to 1e-4 of the way to it
    n, K = 700 - burn_in, len(H)
    bandwidth = min(andrews_bandwidth(np.linalg.solve(H.sum(axis=0), residuals.T).T), K / 4)
    W = kernel_weights(K, bandwidth)[np.abs(np.subtract.outer(np.arange(K), np.arange(K)))]
    u, df = learner_twins.deletions(H, residuals, W)
    assert 1.0 < bandwidth < 3.0  # too few batches to merge them, and dependence for a kernel
    information = np.array([np.diag(np.linalg.inv(H.sum(axis=0) - h) - np.linalg.inv(H.sum(axis=0))) for h in H])
    u = u * np.sqrt(shortfall(u, information, bandwidth))
    np.testing.assert_allclose(result.covariance, n * u.T @ W @ u, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(result.df, df, rtol=1e-3)
    assert result.law.degrees_of_freedom == pytest.approx(np.median(df), rel=1e-3)
    assert result.diagnostics.notes[0].startswith(f"batches: {K} of 8 rows, covariances over about")


def test_the_linear_centre_is_least_squares_and_reading_changes_nothing():
    rows = linear_rows(3_000)
    learner = ChunkedNewton(LINEAR)
    for part in np.split(rows, [100, 700, 701]):
        learner.consume(part)
        learner.result()
    result, expected = learner.result(), np.linalg.lstsq(rows[:, :DIM], rows[:, DIM])[0]
    np.testing.assert_allclose(result.params, expected, rtol=1e-10)
    np.testing.assert_array_equal(result.covariance, ChunkedNewton(LINEAR).consume(rows).result().covariance)


def test_batches_merge_in_flat_memory():
    learner = ChunkedNewton(LINEAR).run(40_000)
    assert learner._batches.capacity == 256
    assert learner._batches.length == 256
    sizes = learner._batches.closed().n
    assert (sizes[:-1] == 256).all()
    learner.result()
    assert learner._batches.closed().n.sum() == 40_000 - 40_000 % CHUNK_ROWS


def test_the_world_sees_one_theta_for_a_whole_chunk():
    deployed = []

    def sample(rng, theta, state, params, row):
        deployed.append(theta[0])
        row[0] = 1.0 + rng.standard_normal()

    def mean_gradient(theta, row, params, grad):
        grad[0] = theta[0] - row[0]

    def mean_hessian(theta, row, params, direction):
        direction[0] = 0.0
        return 0.0, 1.0

    world = Problem(1, mean_gradient, sample, hessian=mean_hessian, row_size=1)
    learner = ChunkedNewton(world, theta_0=[5.0]).run(600)
    seen = np.array(deployed)
    assert (seen[:CHUNK_ROWS] == 5.0).all()
    assert len(set(seen)) == 3
    assert (seen[CHUNK_ROWS:] != 5.0).all()
    np.testing.assert_array_equal(learner.deployed, seen[-1:])


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_a_separable_first_chunk_does_no_harm(size):
    """Undamped steps, or none of the prior, would leave the finite numbers here."""
    rows = logistic_rows(20_000) * np.append(np.full(DIM, size), 1.0)
    rows[:CHUNK_ROWS, DIM] = rows[:CHUNK_ROWS, 0] > 0.0
    result = ChunkedNewton(LOGISTIC).consume(rows).result()
    offline = minimise(rows[CHUNK_ROWS:5_000], np.zeros((DIM, DIM)), result.params)
    assert np.abs(size * (result.params - offline)).max() < 0.3
    assert (result.bse > 0.0).all()


def test_long_dependence_is_said():
    """A constant column, and errors that hardly change over a hundred rows."""
    rows = linear_rows(2_000)
    rows[:, 0] = 1.0
    rows[:, DIM] += 10.0 * np.sin(np.arange(2_000) / 300.0)
    assert ChunkedNewton(LINEAR).consume(rows).result().status == "long-dependence"


def test_a_direction_without_curvature_is_named():
    with pytest.raises(NotIdentified, match="singular"):
        ChunkedNewton(LINEAR).consume(linear_rows(500) * np.array([1.0, 0.0, 1.0, 1.0])).result()


def test_a_rare_column_has_its_own_degrees_of_freedom_and_a_lone_one_is_refused():
    rows = linear_rows(4_000)
    rows[:, DIM] -= rows[:, DIM - 1]
    rows[:, DIM - 1] = 0.0
    for at in (100, 1_100, 2_100, 3_100):
        rows[at : at + 30, DIM - 1] = 1.0
    result = ChunkedNewton(LINEAR).consume(rows).result()
    assert result.df[-1] < 8.0 < 40.0 < result.df[0]
    assert result.coefficient_status == ("ok", "ok", "rare")
    rows[200:, DIM - 1] = 0.0
    rows[100:200, DIM - 1] = 0.0
    rows[100:104, DIM - 1] = 1.0
    lone = ChunkedNewton(LINEAR).consume(rows).result()
    assert lone.coefficient_status == ("ok", "ok", "unidentified")
    assert np.isfinite(lone.bse).tolist() == [True, True, False]
