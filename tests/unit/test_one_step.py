"""The one-step centre: its slow twin, least squares, and the batch length that it chooses."""

from dataclasses import replace

import numpy as np
import pytest

import learner_twins
from halfwidth import PowerStep
from halfwidth.errors import NotIdentified
from halfwidth.inference.batch_result import batch_variance
from halfwidth.inference.student_law import student_quantile
from halfwidth.learners import CappedSGD, OneStep
from halfwidth.learners.sgd.one_step import FEWEST_BATCHES, long_enough
from halfwidth.problems import problem
from halfwidth.problems.row_losses import logistic_gradient
from regression_rows import DIM, gradient, hessian, linear_rows, logistic_rows

STEP = PowerStep(0.5, 0.6)
LINEAR = problem("iid-linear", dim=DIM)
# Through plain Python functions, which costs no compile; the laws hold the compiled ones to the same numbers.
LOGISTIC = replace(problem("ar-logistic", dim=DIM), gradient=lambda *arguments: logistic_gradient(*arguments))


def running_means(world, rows, burn_in=0):
    """theta_bar_{k-1} for each row after the burn-in, whose own mean stands before the first iterate."""
    learner = CappedSGD(world, step=STEP)
    path = np.array([learner.consume(row[None]).theta for row in rows])
    means = [part.cumsum(axis=0) / np.arange(1, len(part) + 1)[:, None] for part in (path[:burn_in], path[burn_in:])]
    return np.vstack([means[0][-1:] if burn_in else np.zeros((1, DIM)), means[1][:-1]])


@pytest.mark.parametrize(
    ("n", "burn_in", "shortest", "batches", "length"),
    [(2_013, 0, 50, 10, 200), (2_090, 77, 50, 40, 50), (2_045, 0, 50, 41, 50), (13_040, 0, 100, 130, 100)],
)
def test_one_step_is_its_definition(n, burn_in, shortest, batches, length):
    """The last batch joins its neighbour, stands alone when more than half full, and neighbours merge at 256."""
    rows = logistic_rows(n)
    points = running_means(LOGISTIC, rows, burn_in)
    centre, influences, A = learner_twins.one_step(points, rows[burn_in:], gradient, hessian, shortest)
    total = A.sum(axis=0)
    floor = 5.0 / (0.5 * n**-0.6 * np.linalg.eigvalsh(total / (n - burn_in))[0])
    influences, A, found = learner_twins.one_step_choice(influences, A, shortest, floor)
    assert (len(influences), found) == (batches, length)
    deleted, df = learner_twins.deletions(A, influences @ total)
    result = OneStep(LOGISTIC, step=STEP, burn_in=burn_in).consume(rows).result()
    np.testing.assert_allclose(result.params, centre, rtol=1e-9)
    np.testing.assert_allclose(result.influences, deleted, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(result.covariance, (n - burn_in) * deleted.T @ deleted, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(result.df, df, rtol=1e-7)
    assert (df < batches - 1).all()
    assert result.law.degrees_of_freedom == pytest.approx(np.median(df))
    assert result.diagnostics.notes[0].startswith(f"batches: {batches} of {length} rows")
    assert result.n == n - burn_in


def test_the_linear_centre_is_least_squares():
    rows = linear_rows(3_000)
    result = OneStep(LINEAR, step=STEP).consume(rows).result()
    np.testing.assert_allclose(result.params, np.linalg.lstsq(rows[:, :DIM], rows[:, DIM])[0], rtol=1e-10)


def test_a_far_start_loses_no_digits():
    rows = linear_rows(3_000)
    rows[:, DIM] += rows[:, :DIM] @ np.full(DIM, 1e8)
    result = OneStep(LINEAR, step=STEP, theta_0=np.full(DIM, 1e8)).consume(rows).result()
    assert np.abs(result.params - np.linalg.lstsq(rows[:, :DIM], rows[:, DIM])[0]).max() < 1e-6
    near = OneStep(LINEAR, step=STEP).consume(linear_rows(3_000)).result()
    np.testing.assert_allclose(result.covariance, near.covariance, rtol=1e-4, atol=1e-6)


def test_white_influences_keep_their_batches():
    x = np.random.default_rng(0).standard_normal((200, 5))
    chosen, length = long_enough(x, 50, 1_000.0)
    assert chosen is x
    assert length == 50


@pytest.mark.parametrize(("floor", "batches", "length"), [(300.0, 25, 400), (1e9, 12, 800)])
def test_correlated_influences_get_longer_batches_down_to_a_limit(floor, batches, length):
    """Moving sums over four batches: twice the length gives far more, eight times is enough by itself."""
    white = np.random.default_rng(1).standard_normal((203, 5))
    x = white[3:] + white[2:-1] + white[1:-2] + white[:-3]
    chosen, rows = long_enough(x, 50, floor)
    assert (len(chosen), rows) == (batches, length)
    assert batches >= FEWEST_BATCHES
    np.testing.assert_allclose(chosen.sum(axis=0), x.sum(axis=0), rtol=1e-9)
    assert (batch_variance(chosen) > 2.0 * batch_variance(x)).all()


def test_state_dependent_data_get_batches_of_five_correlation_times():
    """tau = 30,000^0.505 / 0.5 = 365 rows: five of them need batches of 200 rows doubled four times."""
    result = OneStep(problem("performative-mean"), step=PowerStep(0.5, 0.505), seed=1).run(30_000).result()
    assert result.law.degrees_of_freedom == pytest.approx(7.86, rel=0.01)  # the first of nine batches is longer
    assert set(result.coefficient_status) == {"ok"}
    (note,) = result.diagnostics.notes
    assert note == "batches: 9 of 3,200 rows; those of 200 rows were still correlated, and steps forget over 365"


def test_batches_that_cannot_be_long_enough_are_said_to_be_short():
    result = OneStep(problem("swap-game", rho=0.9), step=PowerStep(0.3, 0.505), seed=1).run(9_000).result()
    assert result.status == "short-batches"
    assert "feed more rows, or take larger steps" in result.summary()


def test_a_direction_without_curvature_is_named():
    with pytest.raises(NotIdentified, match="singular"):
        OneStep(LINEAR).consume(linear_rows(500) * np.array([1.0, 0.0, 1.0, 1.0])).result()


def rare_rows(n, spells):
    """Independent rows; the last column is one in the spells only."""
    rows = linear_rows(n)
    rows[:, DIM] -= rows[:, DIM - 1]
    rows[:, DIM - 1] = 0.0
    for spell in spells:
        rows[spell, DIM - 1] = 1.0
    rows[:, DIM] += rows[:, DIM - 1]
    return rows


def test_a_rare_column_has_fewer_degrees_of_freedom_than_the_others():
    spells = [slice(at, at + 40) for at in (100, 900, 1_700, 2_400)]
    result = OneStep(LINEAR, step=STEP).consume(rare_rows(3_000, spells)).result()
    assert result.df[-1] < 5.0 < 40.0 < result.df[0]
    assert result.coefficient_status == ("ok", "ok", "rare")
    interval = result.interval()
    t = interval.half_width / interval.std_error
    np.testing.assert_allclose(t, student_quantile(0.95, result.df), rtol=1e-12)
    contrast = result.degrees_of_freedom(np.array([[1.0, 0.0, 1.0]]))[0]
    assert result.df[-1] <= contrast < result.df[0]
    normal = OneStep(LINEAR, step=STEP).consume(rare_rows(3_000, spells)).result(critical="normal")
    np.testing.assert_allclose(normal.interval().critical, 1.959963984540054)
    np.testing.assert_allclose(normal.tvalues, result.tvalues)
    assert normal.wald_test(np.eye(DIM)).p_value <= result.wald_test(np.eye(DIM)).p_value


def test_a_column_in_one_batch_is_refused_and_the_others_are_given():
    result = OneStep(LINEAR, step=STEP).consume(rare_rows(3_000, [slice(110, 130)])).result()
    assert result.coefficient_status == ("ok", "ok", "unidentified")
    assert np.isfinite(result.bse).tolist() == [True, True, False]
    with pytest.raises(NotIdentified, match=r"no error for theta\[2\]"):
        result.interval([0.0, 0.0, 1.0])
    assert result.interval([1.0, 0.0, 0.0]).half_width > 0.0
