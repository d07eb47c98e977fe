"""Coverage of `auto` and `auto-gradient`, with the failure they are built against as a negative control.

Every quick row: 640 replicates with fixed seeds, the sum of the coordinates scored, so that replicates are independent
trials. Null: the interval covers with probability 0.95. The test fails where fewer than `FEWEST` cover: a false alarm
has probability below 0.001, and a true coverage of 0.90 fails with probability above 0.95; both are asserted. The
control takes away the correction for feedback (and the check of the batch length), on the swap game at rho = 0.9, where
the deployed steps mix slowly: it goes through the same code and must fail.
"""

import numpy as np
import pytest
from scipy.stats import binom

from halfwidth import Auto
from halfwidth.learners.auto import reading, steered_sums
from halfwidth.learners.auto.feedback import Response
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import problem

REPLICATES = 640
FALSE_ALARM, POWER, NULL, BAD = 0.001, 0.95, 0.95, 0.90
FEWEST = int(binom.ppf(FALSE_ALARM, REPLICATES, NULL))
"""Fewer covered intervals than this are no chance."""


def covered(world, n, replicates=REPLICATES, *, seed=2026, given=False, **options):
    """How many intervals for the sum of the coordinates contain it."""
    direction = np.ones(world.dim)
    truth, count = float(direction @ world.theta_star), 0
    for index in range(replicates):
        sequence = np.random.SeedSequence(seed, spawn_key=(index,))
        if given:
            rows = np.empty((n, world.row_size))
            collect_rows(world, np.random.default_rng(sequence), world.theta_0, np.array(world.state_0), rows)
            learner = Auto(world, **options).consume(rows)
        else:
            learner = Auto(world, seed=sequence, **options).run(n)
        count += bool(learner.result().interval(direction).covers(truth))
    return count


def test_the_design_of_these_tests():
    assert binom.cdf(FEWEST - 1, REPLICATES, NULL) < FALSE_ALARM
    assert binom.cdf(FEWEST - 1, REPLICATES, BAD) > POWER


@pytest.mark.parametrize(
    ("name", "settings", "n", "gradient_only"),
    [("ar-linear", {"dim": 2}, 8_000, False), ("swap-game", {"rho": 0.5}, 12_000, True)],
    ids=["auto", "auto-gradient"],
)
def test_intervals_cover(name, settings, n, gradient_only):
    assert covered(problem(name, **settings), n, gradient_only=gradient_only) >= FEWEST


@pytest.mark.parametrize("gradient_only", [False, True], ids=["auto", "auto-gradient"])
def test_intervals_cover_on_given_rows(gradient_only):
    assert covered(problem("ar-logistic", dim=2), 4_000, gradient_only=gradient_only, given=True) >= FEWEST


def test_negative_control_without_the_feedback_the_swap_game_is_not_covered(monkeypatch):
    def blind(moments, hessian, chunk_rows, excited):
        return Response(np.zeros_like(hessian), 0.0, 0.0)

    monkeypatch.setattr(steered_sums, "regress", blind)
    monkeypatch.setattr(reading.AutoResult, "inflations", lambda self, directions: np.ones(len(directions)))
    assert covered(problem("swap-game", rho=0.9), 12_000) < FEWEST


@pytest.mark.slow
@pytest.mark.parametrize("gradient_only", [False, True], ids=["auto", "auto-gradient"])
@pytest.mark.parametrize(
    ("name", "settings", "n"),
    [
        ("iid-linear", {"dim": 20}, 50_000),
        ("seed-linear", {"dim": 10}, 50_000),
        ("seed-logistic", {"dim": 2}, 12_000),
        ("ar-logistic", {"dim": 5}, 50_000),
        ("swap-game", {"rho": 0.9}, 30_000),
        ("performative-mean", {"dim": 5}, 50_000),
        ("strategic-logistic", {"dim": 5}, 50_000),
    ],
)
def test_intervals_cover_at_the_battery_s_length(name, settings, n, gradient_only):
    assert covered(problem(name, **settings), n, gradient_only=gradient_only) >= FEWEST


@pytest.mark.slow
def test_feedback_is_told_from_correlated_noise():
    """A mean under AR(0.98) noise, 50,000 rows: detected in at most 0.03 of the runs without, in 0.95 with feedback."""

    def detected(epsilon, runs):
        world = problem("performative-ar", dim=1, epsilon=epsilon, psi=0.98)
        found = [Auto(world, seed=seed).run(50_000).result().feedback.detected for seed in range(runs)]
        return int(np.sum(found))

    assert detected(0.0, 300) <= binom.ppf(0.999, 300, 0.03)
    assert detected(0.5, 300) >= binom.ppf(0.001, 300, 0.95)
