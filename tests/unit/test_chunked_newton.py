"""Renewable Newton on a problem's stream: its slow twin, least squares, what it deploys, and hard first chunks."""

import numpy as np
import pytest
from scipy.optimize import root

import learner_twins
from halfwidth import Problem
from halfwidth.errors import NotIdentified
from halfwidth.inference.longrun import long_run_covariance
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
    thetas, centre, influences = learner_twins.renewable_newton(
        rows, gradient, hessian, minimise, CHUNK_ROWS, 8, burn_in
    )
    learner = ChunkedNewton(LOGISTIC, burn_in=burn_in)
    path = np.array([learner.consume(row[None]).theta for row in rows])
    for j in range(2):
        np.testing.assert_allclose(path[CHUNK_ROWS * (j + 1) - 1], thetas[j], atol=1e-4)
    result = learner.result()
    np.testing.assert_allclose(result.params, centre, atol=1e-5)  # theta_j is found to 1e-4 of the way to it
    long_run = long_run_covariance(influences)
    n = 700 - burn_in
    np.testing.assert_allclose(result.covariance, n * long_run.covariance * n / (n - DIM), rtol=1e-4, atol=1e-6)
    assert result.law.degrees_of_freedom == pytest.approx(long_run.degrees_of_freedom, rel=1e-4)
    assert result.diagnostics.notes[0].startswith(f"batches: {len(influences)} of 8 rows, covariances over about")


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
