"""Coverage of `auto` and `auto-gradient`, with the failure they are built against as a negative control.

Every quick row: 100 replicates with fixed seeds, all coordinates scored. Null: each interval covers with probability
0.95. The band is 3.5 binomial standard errors of the replicates alone, 0.95 +- 0.076, as if coordinates were copies of
each other. The control takes away the correction for the data's answer (and the check of the batch length), on the swap
game at rho = 0.9, where the deployed steps mix slowly: it must cover less than the band allows.
"""

import numpy as np
import pytest

from halfwidth import Auto
from halfwidth.learners.auto import learner as auto_learner
from halfwidth.learners.auto.feedback import Response
from halfwidth.problems import problem

REPLICATES = 100
BAND = 3.5 * np.sqrt(0.95 * 0.05 / REPLICATES)


def coverage(world, n, gradient_only=False, replicates=REPLICATES, seed=2026):
    covered = [
        Auto(world, gradient_only=gradient_only, seed=np.random.SeedSequence(seed, spawn_key=(index,)))
        .run(n)
        .result()
        .interval()
        .covers(world.theta_star)
        for index in range(replicates)
    ]
    return float(np.mean(covered))


@pytest.mark.parametrize("gradient_only", [False, True], ids=["auto", "auto-gradient"])
@pytest.mark.parametrize(
    ("name", "settings", "n"),
    [("ar-linear", {"dim": 2}, 10_000), ("seed-logistic", {"dim": 2}, 12_000), ("swap-game", {"rho": 0.9}, 30_000)],
)
def test_intervals_cover(name, settings, n, gradient_only):
    assert abs(coverage(problem(name, **settings), n, gradient_only) - 0.95) < BAND


def test_negative_control_without_the_response_the_swap_game_is_not_covered(monkeypatch):
    def blind(moments, hessian, chunk_rows):
        return Response(np.zeros_like(hessian), 0.0, 0.0)

    monkeypatch.setattr(auto_learner, "regress", blind)
    monkeypatch.setattr(auto_learner.BatchesResult, "inflations", lambda self, directions: np.ones(len(directions)))
    assert coverage(problem("swap-game", rho=0.9), 30_000) < 0.95 - BAND


@pytest.mark.slow
@pytest.mark.parametrize("gradient_only", [False, True], ids=["auto", "auto-gradient"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("iid-linear", {"dim": 20}),
        ("seed-linear", {"dim": 10}),
        ("ar-logistic", {"dim": 5}),
        ("performative-mean", {"dim": 5}),
        ("strategic-logistic", {"dim": 5}),
    ],
)
def test_intervals_cover_at_the_battery_s_length(name, settings, gradient_only):
    found = coverage(problem(name, **settings), 50_000, gradient_only, replicates=400)
    assert abs(found - 0.95) < 3.5 * np.sqrt(0.95 * 0.05 / 400)
