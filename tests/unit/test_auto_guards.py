"""`auto` under attack: rotations, overcompensation, correlated noise; steps never climb, excursions are taken back."""

import numpy as np
import pytest
from numba import njit
from scipy.stats import binom

from halfwidth import Auto, Problem
from halfwidth.errors import Diverged, NotIdentified
from halfwidth.learners.auto import steered, steered_sums
from halfwidth.learners.auto.absorb import FAR, clipped_step, unusual
from halfwidth.learners.auto.steps import LEAST_EIGENVALUE, Gain, climbing_removed, preconditioner
from halfwidth.problems import problem


def test_a_jacobian_that_climbs_is_raised_and_its_rotation_kept():
    H, J = np.diag([1.0, 4.0]), np.array([[-1.1, 3.0], [-3.0, -1.0]])
    safe = climbing_removed(H, J)
    root = np.diag([1.0, 0.5])
    M = root @ safe @ root
    assert np.linalg.eigvalsh(0.5 * (M + M.T))[0] == pytest.approx(LEAST_EIGENVALUE)
    np.testing.assert_allclose(M - M.T, root @ (J - J.T) @ root, atol=1e-12)
    np.testing.assert_array_equal(climbing_removed(H, 0.0 * J), H)
    rotation = np.array([[0.0, 20.0], [-20.0, 0.0]])
    np.testing.assert_array_equal(climbing_removed(np.eye(2), rotation), np.eye(2) + rotation)


def test_a_negative_slope_on_correlated_noise_steps_downhill():
    """H + J of -0.12, as measured under AR(0.995) noise: the preconditioner is 15, not -8."""
    assert preconditioner(np.eye(1), -1.12 * np.eye(1), np.zeros(1))[0, 0] == pytest.approx(15.0)


def test_directions_that_no_row_has_shown_do_not_move():
    P = preconditioner(np.diag([2.0, 0.0]), np.zeros((2, 2)), np.array([2.0, 0.0]))
    np.testing.assert_allclose(P, np.diag([0.25, 0.0]))


def test_the_gain_begins_small_and_shrinks_after_an_excursion():
    gain = Gain(0.34)
    np.testing.assert_allclose(gain.ahead(5), [0.05, 0.1, 0.2, 0.34, 0.34])
    gain.advance(200)
    assert gain.ahead(1)[0] == pytest.approx(0.34)
    gain.reset(0.25)
    assert gain.ahead(100).max() <= 0.34 * 0.25 * 1.02**99


def test_an_excursion_is_two_decrements_far_above_what_is_usual():
    guard = np.zeros(3)
    rng = np.random.default_rng(0)
    assert not any(unusual(q, guard) for q in rng.chisquare(1.0, 5_000))
    usual = guard[0]
    assert not unusual(2.0 * FAR * usual, guard)
    assert unusual(2.0 * FAR * usual, guard)


def test_clipped_steps_end_at_the_minimum_and_never_climb():
    assert clipped_step(0.5, 2.0, 1.0) == 0.5
    assert clipped_step(0.5, 2.0, 8.0) == 0.25
    assert clipped_step(0.5, -1.0, 1.0) == 0.0


@pytest.mark.parametrize("strength", [2.0, 5.0, 20.0])
def test_a_rotating_game_is_learned_and_its_excursions_are_told(strength):
    world = problem("rotating-game", strength=strength)
    for seed in range(3):
        result = Auto(world, seed=seed).run(30_000).result()
        assert result.feedback.detected
        assert result.feedback.strength == pytest.approx(strength, rel=0.5)
        assert np.abs((result.params - world.theta_star) / result.bse).max() < 5.0
        assert result.diagnostics.truncations == len(result.truncations)
        assert all(0 < row < 30_000 - result.n for row in result.truncations)
        assert bool(result.truncations) == (strength > 2.0)
        assert ("truncations: theta was taken back" in result.summary()) == bool(result.truncations)


def test_after_too_many_excursions_it_gives_up_with_advice():
    """A gradient that points downhill."""

    def gradient(theta, row, params, grad):
        grad[0] = row[0] - theta[0]

    def hessian(theta, row, params, direction):
        direction[0] = 0.0
        return 0.0, 1.0

    rows = np.random.default_rng(0).standard_normal((100_000, 1))
    world = Problem(1, njit(gradient), hessian=njit(hessian), row_size=1)
    with pytest.raises(Diverged, match=r"ran away 13 times.*check that the gradient points uphill"):
        Auto(world, feedback="detect").consume(rows)


def test_nothing_is_reported_between_an_excursion_and_a_fresh_start():
    world = problem("rotating-game", strength=5.0)
    learner = Auto(world, seed=0)
    while not learner._steered or not learner._steered.truncations:
        learner.run(64)
    assert learner._steered.store.rows == 0
    assert learner._steered.notes.moments().chunks == 0
    np.testing.assert_array_equal(learner.theta, world.theta_0)


@pytest.mark.parametrize("error", [np.linalg.LinAlgError(), OverflowError(), NotIdentified("singular", "singular")])
def test_matrices_that_are_not_finite_end_in_advice(monkeypatch, error):
    def overflows(moments, hessian, chunk_rows, excited):
        raise error

    monkeypatch.setattr(steered_sums, "regress", overflows)
    with pytest.raises(Diverged, match=r"non-finite numbers at row .*; scale the columns"):
        Auto(problem("iid-linear", dim=2), seed=0).run(10_000)


@pytest.mark.parametrize("chunk_rows", [1, 64, 65, 200, 390, 1_000])
def test_batches_hold_whole_chunks_whatever_their_length(chunk_rows):
    """Otherwise no chunk fits into what is left of the last batch, and a run never ends."""
    learner = Auto(problem("iid-linear", dim=2), chunk_rows=chunk_rows, seed=0).run(max(1_000, 2 * chunk_rows))
    assert learner._steered.store.length % chunk_rows == 0


@pytest.mark.parametrize("scale", [1e154, 1e200, 1e300])
@pytest.mark.parametrize("given", [True, False])
def test_extreme_rows_end_in_an_error_with_advice_and_no_warnings(scale, given):
    rng = np.random.default_rng(0)

    def consumed():
        rows = rng.standard_normal((4_000, 5))
        rows[1_000:1_003, :4] *= scale
        Auto(problem("seed-logistic", dim=4), seed=1).consume(rows).result()

    def told():
        learner = Auto(dim=4, chunk_rows=64)
        for chunk in range(80):
            request = learner.ask()
            gradients = request.points[:, None, :] - rng.standard_normal((1, request.rows, 4))
            learner.tell(request, gradients * (scale if chunk == 40 else 1.0))

    with pytest.raises(Diverged, match="look for extreme values"):
        consumed() if given else told()


@pytest.mark.parametrize(("uphill", "hessian"), [(-1.0, None), (1.0, -1.0), (-1.0, -1.0)])
def test_a_sign_that_is_wrong_ends_in_advice_about_it(uphill, hessian):
    rng, learner = np.random.default_rng(1), Auto(dim=2, seed=1)

    def told():
        for _ in range(200):
            request = learner.ask()
            rows = rng.standard_normal((request.rows, 2))
            H = None if hessian is None else hessian * request.rows * np.eye(2)
            learner.tell(request, [uphill * (point - rows) for point in request.points], H)

    with pytest.raises(Diverged, match=r"(?i)check that the gradient points uphill"):
        told()


def far_starts(runs):
    """Errors, in standard errors, of the runs that are ok, from a start far off the root of a mean that responds."""
    world = problem("performative-mean", dim=2, epsilon=0.5, theta_0=np.full(2, 1000.0))
    results = [Auto(world, seed=seed).run(50_000).result() for seed in range(runs)]
    return np.array([(r.params - world.theta_star) / r.bse for r in results if r.status == "ok"])


def test_a_far_start_under_feedback_is_covered(monkeypatch):
    """Estimation began on the way: its prior kept theta off the root, which then rested on the error of the slope."""
    away = far_starts(40)
    assert len(away) >= 36
    assert (np.abs(away) < 2.0).sum() >= binom.ppf(0.001, away.size, 0.95)
    monkeypatch.setattr(steered, "FAR_ORIGIN", np.inf)  # negative control
    with_prior = far_starts(20)
    assert (np.abs(with_prior) < 2.0).mean() < 0.5
