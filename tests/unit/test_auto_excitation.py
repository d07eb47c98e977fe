"""Batches that count for less where the deployed theta was noisier, and roots that climb."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from halfwidth import Problem
from halfwidth.equation import Equation
from halfwidth.learners.auto import Auto
from halfwidth.learners.auto.excitation import Excitation, Profile, drift
from halfwidth.learners.auto.slopes import climbs
from halfwidth.problems import problem

ROWS = np.full(40, 100.0)
NOISE = np.where(np.arange(40) < 4, 1.0, 0.02)


def test_the_noise_of_batches_is_that_of_a_slow_twin():
    rng = np.random.default_rng(0)
    per_row = np.repeat(rng.uniform(0.5, 1.0, 8), 250)  # even between marks
    seen = Excitation()
    seen.begin(1_000)
    for at in range(0, 2_000, 250):
        seen.add(per_row[at : at + 250])
        if at < 1_750:
            seen.mark(1_000 + at + 250)
    rows = np.array([100.0, 300.0, 600.0, 1_000.0])
    edges = np.concatenate([[0], np.cumsum(rows)]).astype(int)
    twin = [per_row[a:b].mean() for a, b in pairwise(edges)]
    np.testing.assert_allclose(seen.of_batches(1_000, 3_000, rows), twin, rtol=1e-12)


def test_weights_take_their_share_of_a_shift_off_and_cost_what_they_may():
    profile = Profile.of(NOISE, ROWS)
    shift = 3.0 * NOISE
    weighted = np.average(shift, weights=profile.weights)
    assert weighted == pytest.approx((1.0 - profile.share) * shift.mean(), rel=1e-9)
    assert 0.5 < profile.share < 1.0
    assert 40 * np.square(profile.weights).sum() / profile.weights.sum() ** 2 <= 1.05 + 1e-9
    even = Profile.of(np.linspace(1.0, 0.5, 40), ROWS)  # nothing is quiet: a small share, at the full cost
    assert even.share < 0.1
    assert 40 * np.square(even.weights).sum() / even.weights.sum() ** 2 == pytest.approx(1.05)
    assert Profile.of(np.ones(40), ROWS) is None


def test_weighted_batches_are_repeated_batches():
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((4, 2, 2)) + 5 * np.eye(2), rng.standard_normal((4, 2))
    equation = Equation(A, B, np.ones(4))
    twice = Equation(np.concatenate([A, A[:2]]), np.concatenate([B, B[:2]]), np.ones(6))
    weighted = equation.weighted(np.array([2.0, 2.0, 1.0, 1.0]))
    np.testing.assert_allclose(weighted.solve()[0], twice.solve()[0], rtol=1e-12)


def test_a_shift_is_seen_and_chance_is_not():
    rng, profile = np.random.default_rng(2), Profile.of(NOISE, ROWS)
    draws = rng.standard_normal((1_000, 40, 5))
    draws -= draws.mean(axis=1, keepdims=True)
    assert np.mean([profile.shifts(draw) for draw in draws]) < 0.008
    shift = 3.0 * (NOISE - NOISE.mean())
    assert np.mean([profile.shifts(draw + shift[:, None]) for draw in draws[:100]]) > 0.9


def test_a_root_that_no_step_could_settle_at_is_rejected():
    assert climbs(np.eye(2), np.diag([-1.5, 0.5]))
    assert not climbs(np.eye(2), np.array([[0.0, -5.0], [5.0, 0.0]]))  # a rotation
    assert not climbs(np.eye(2), np.diag([-0.9, 8.0]))


def test_theta_goes_to_the_root_once_feedback_is_known():
    learner = Auto(problem("performative-mean", dim=2), seed=3).run(40_000)
    engine = learner._steered
    assert engine.settled
    early, late = engine.excitation.of_batches(engine.began, engine.k, np.array([10_000.0, 20_000.0, 4_000.0]))[[0, 2]]
    assert late < 0.05 * early
    near = np.abs(learner.theta - learner.result().params) / learner.result().bse
    assert near.max() < 3.0


def test_the_drift_is_the_worst_generalised_eigenvalue():
    from scipy.linalg import eigh

    rng = np.random.default_rng(4)
    X = rng.standard_normal((20, 50, 3)) * np.linspace(1.0, 2.0, 20)[:, None, None]
    H, rows, noise = np.swapaxes(X, 1, 2) @ X, np.full(20, 50.0), np.linspace(1.0, 0.1, 20)
    rows[-1], H[-1] = 25.0, H[-1] / 2.0
    there = np.tensordot(noise, H, 1) / (noise @ rows)
    ratios = eigh(there, H.sum(axis=0) / rows.sum(), eigvals_only=True)
    assert drift(noise, rows, H) == pytest.approx(max(ratios.max(), 1.0 / ratios.min()), rel=1e-9)
    assert drift(np.ones(20), rows, H) == pytest.approx(1.0)
    assert drift(noise, rows, rows[:, None, None] * np.diag([1e-6, 1.0, 1e6])) == pytest.approx(1.0)
    assert drift(noise, rows, rows[:, None, None] * np.diag([1.0, 0.0, 2.0])) == pytest.approx(1.0)


def spells(good, share):
    """Rows that are alike up to row `good`, and come in spells of 400 after it; responses follow forecasts."""
    from numba import njit

    @njit
    def sample(rng, theta, state, params, row):
        d = theta.shape[0]
        state[d] += 1.0
        if state[d] > params[0] and rng.random() < 1.0 / 400.0:
            for j in range(d):
                state[j] = 3.0 * rng.standard_normal()
        total = 0.0
        for j in range(d):
            row[j] = rng.standard_normal() if state[d] <= params[0] else state[j] + 0.1 * rng.standard_normal()
            total += row[j] * (1.0 + params[1] * theta[j])
        row[d] = total + rng.standard_normal()

    @njit
    def gradient(theta, row, params, grad):
        d = theta.shape[0]
        residual = -row[d]
        for j in range(d):
            residual += row[j] * theta[j]
        for j in range(d):
            grad[j] = residual * row[j]

    @njit
    def hessian(theta, row, params, u):
        u[:] = row[: theta.shape[0]]
        return 1.0, 0.0

    return Problem(3, gradient, sample, row_size=4, state_0=np.zeros(4), params=[good, share], hessian=hessian)


def test_rows_that_change_once_the_response_is_known_are_told():
    """By 8 standard errors it was off, status ok; without a response there is nothing to go wrong."""
    for seed in range(3):
        changed = Auto(spells(20_000.0, 0.5), seed=seed).run(80_000).result()
        assert "rows-changed" in dict(changed.diagnostics.flags)
        same = Auto(spells(1e9, 0.5), seed=seed).run(80_000).result()
        assert same.status == "ok"
        assert np.abs((same.params - 2.0) / same.bse).max() < 5.0
