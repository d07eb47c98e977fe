"""A response that few rows do not show: doubted, where theta has not moved enough to exclude it."""

import numpy as np
import pytest

from halfwidth import Auto
from halfwidth.learners.auto import feedback_status, reading
from halfwidth.learners.auto.slopes import share_of
from halfwidth.problems import problem


def ok_and_covered(epsilon, n, runs=40, feedback=None):
    """How many runs are ok, and what share of their coefficients is covered."""
    world, covered = problem("performative-ar", dim=2, epsilon=epsilon, psi=0.0), []
    for seed in range(runs):
        result = Auto(world, seed=60_000 + seed, feedback=feedback).run(n).result()
        if result.status == "ok":
            covered.append(result.interval().covers(world.theta_star).mean())
    return len(covered), np.mean(covered) if covered else None


def test_a_response_of_a_third_in_ten_thousand_rows_is_hardly_ever_ok(monkeypatch):
    """Nine in ten were ok before, and covered 0.9 of the time: 40 runs, 80 coefficients."""
    ok, _ = ok_and_covered(0.3, 10_000)
    assert ok <= 8
    monkeypatch.setattr(feedback_status, "MOST_UNSEEN", np.inf)  # negative control
    ok, covered = ok_and_covered(0.3, 10_000)
    assert ok >= 24
    assert covered < 0.93


@pytest.mark.parametrize(("n", "fewest"), [(20_000, 34), (50_000, 37)])
def test_rows_enough_exclude_a_response(n, fewest):
    ok, covered = ok_and_covered(0.0, n)
    assert ok >= fewest
    assert covered > 0.88


def test_who_declares_that_nothing_responds_is_not_asked_to_show_it():
    assert ok_and_covered(0.0, 6_000, 10, "none")[0] >= 9


def test_what_may_be_unseen_is_two_standard_errors_above_what_is_seen():
    """Slow twin: generalised least squares of all chunks' gradients on theta, as `share_of` is held elsewhere."""
    engine = Auto(problem("iid-linear", dim=3), seed=1).run(20_000)._steered
    share, error = share_of(engine.notes.moments(), engine.store.curvature() / engine.store.rows, engine.m)
    assert reading._unseen(engine, engine.response()) == max(share, 0.0) + 2.0 * error
    young = Auto(problem("iid-linear", dim=30), seed=1).run(9_000)._steered
    assert young.notes.moments().chunks < 68
    assert reading._unseen(young, young.response()) == np.inf
