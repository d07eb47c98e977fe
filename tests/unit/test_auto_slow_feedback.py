"""Feedback that comes late: traces, the regression on them, and what is told of it."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.stats import binom

from halfwidth import Problem
from halfwidth.learners.auto import Auto, feedback
from halfwidth.learners.auto.absorb import follow
from halfwidth.learners.auto.feedback import regress
from halfwidth.learners.auto.moments import NOTES, FeedbackNotes
from halfwidth.learners.auto.slopes import late_share, regression
from halfwidth.problems import problem

M = 64


def noted(gradients, offsets, dithers, renewals):
    """The notes of a run, chunk by chunk."""
    notes, dim = FeedbackNotes(gradients.shape[1]), gradients.shape[1]
    trace = np.full(dim, np.nan)
    for g, x, z, r in zip(gradients, offsets, dithers, renewals, strict=True):
        page = notes.blank()
        page.gradient[0], page.offset[0], page.dither[0] = g, x, z
        follow(x, r, trace, page.lag[0])
        notes.note(np.array([r]), np.zeros(dim), np.zeros(dim))
    return notes


def test_traces_are_those_of_a_slow_twin():
    rng = np.random.default_rng(0)
    chunks, dim = 2 * NOTES + 17, 2
    g, x, z = rng.standard_normal((3, chunks, dim))
    renewals = rng.uniform(0.05, 0.3, chunks)
    moments = noted(g, x, z, renewals).moments()
    late = []
    for values in (x, z):
        trace, lags = values[0].copy(), []
        for value, r in zip(values, renewals, strict=True):
            trace = np.exp(-2.0 * r) * trace + (1.0 - np.exp(-2.0 * r)) * value
            lags.append(trace - value)
        late.append(np.array(lags))
    v = np.concatenate([g, x, late[0], np.ones((chunks, 1))], axis=1)
    w = np.concatenate([z, late[1]], axis=1)
    np.testing.assert_allclose(moments.products, v.T @ v, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(moments.dither_products, w.T @ v, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(moments.dither_spread, w.T @ w, rtol=1e-12, atol=1e-9)
    base = np.concatenate([x, late[0]], axis=1) - w
    centred = base - base.mean(axis=0)
    np.testing.assert_allclose(
        moments.centred(M, base=True, slow=True)[1], M * centred.T @ centred, rtol=1e-9, atol=1e-7
    )


def slow_world(memory, seed, chunks=3_000, J=-0.5, step=0.1):
    """H = 1, one coordinate; the response to theta is a moving average that forgets over `memory` chunks."""
    rng, theta, response = np.random.default_rng(seed), 0.0, 0.0
    share = 1.0 - np.exp(-1.0 / memory) if memory else 1.0
    g, x = np.empty((2, chunks, 1))
    for c in range(chunks):
        response += share * (theta - response)
        noise = rng.standard_normal() / np.sqrt(M)
        g[c], x[c] = M * (J * response + noise), theta
        theta -= step / (1.0 + J) * (theta + J * response + noise)
    return noted(g, x, np.zeros_like(x), np.full(chunks, step)).moments()


def test_the_whole_of_a_slow_response_is_seen():
    found = [regress(slow_world(4.0, seed), np.eye(1), M) for seed in range(20)]
    assert np.mean([response.J[0, 0] for response in found]) == pytest.approx(-0.5, abs=0.05)
    assert np.median([response.memory_chunks for response in found]) > 2.0


def test_negative_control_without_the_trace_a_slow_response_looks_small():
    plain = [regression(slow_world(4.0, seed), M)[0][0, 0] for seed in range(20)]
    assert np.mean(plain) > -0.4


def test_a_response_at_once_is_not_called_slow():
    found = [regress(slow_world(0.0, seed, chunks=800), np.eye(1), M).memory_chunks for seed in range(40)]
    assert np.mean(np.array(found) == 1.0) >= 0.85


def test_a_response_that_is_late_by_less_than_a_chunk_is_seen_whole():
    worlds = [slow_world(0.8, seed, chunks=600, step=0.3) for seed in range(30)]
    found = [regress(moments, np.eye(1), M).J[0, 0] for moments in worlds]
    assert np.mean([late_share(moments, M) for moments in worlds]) > 0.15
    assert np.mean(found) == pytest.approx(-0.5, abs=0.05)
    assert np.mean([regression(moments, M)[0][0, 0] for moments in worlds]) > -0.46  # without it


def test_a_response_at_once_has_no_late_share():
    late = [late_share(slow_world(0.0, seed, chunks=600, step=0.3), M) for seed in range(30)]
    assert np.mean(late) < 0.08


def test_feedback_that_nearly_cancels_the_gradient_is_corrected_for():
    """A response of 0.95 amplifies errors twentyfold; it is well determined by 50,000 rows."""
    world = problem("performative-mean", dim=2, epsilon=0.95)
    results = [Auto(world, seed=seed).run(50_000).result() for seed in range(12)]
    assert sum(result.status == "ok" for result in results) >= 9
    assert np.mean([result.interval().covers(world.theta_star) for result in results]) >= 0.8
    assert all(result.feedback.strength == pytest.approx(0.95, abs=0.1) for result in results if result.status == "ok")


@njit
def draw_slow(rng, theta, state, params, row):
    """A mean that follows theta over 1 / params[0] rows, and white noise: none of it passes through the memory."""
    state[0] += params[0] * (theta[0] - state[0])
    row[0] = 1.0 + params[1] * state[0] + rng.standard_normal()


@njit
def slow_gradient(theta, row, params, grad):
    grad[0] = theta[0] - row[0]


@njit
def slow_hessian(theta, row, params, direction):
    direction[0] = 0.0
    return 0.0, 1.0


def slow_mean(rate, share):
    return Problem(1, slow_gradient, draw_slow, row_size=1, hessian=slow_hessian, params=[rate, share], state_0=[0.0])


def slow_runs(share, seeds):
    world, root = slow_mean(0.01, share), 1.0 / (1.0 - share)
    results = [Auto(world, seed=seed).run(50_000).result() for seed in range(seeds)]
    return results, np.array([result.interval().covers([root]) for result in results if result.status == "ok"])


def test_a_slow_response_that_nearly_cancels_the_gradient_is_doubted():
    """Measured as 0.80 to 0.85, one of 0.9 over 286 rows was ok, up to 11 standard errors off."""
    results, calm = slow_runs(0.8, 30)
    assert len(calm) <= 3
    assert sum("slow-feedback" in dict(result.diagnostics.flags) for result in results) >= 24


def test_errors_allow_for_a_slow_response_that_was_measured_low(monkeypatch):
    results, calm = slow_runs(0.5, 80)
    assert len(calm) >= 40
    assert calm.mean() >= binom.ppf(0.01, len(calm), 0.95) / len(calm)
    assert np.median([result.feedback.memory_rows for result in results if result.status == "ok"]) > M
    widths = np.array([result.bse[0] for result in results])
    monkeypatch.setattr(feedback, "LOW", 0.0)
    plain = np.array([result.bse[0] for result in slow_runs(0.5, 80)[0]])
    assert np.median(widths / plain) == pytest.approx((1.0 - 0.45) / (1.0 - 1.15 * 0.45), rel=0.05)


def shortfalls(world, seeds):
    """By how much errors allow for a response that was measured low, in runs that detect one."""
    found = [Auto(world, seed=seed).run(50_000)._steered.response() for seed in range(seeds)]
    return np.array([response.shortfall for response in found if response.detected])


def test_correlated_noise_is_not_taken_for_a_response_that_is_late():
    """Noise that outlasts a chunk makes a slope on the trace, of the opposite sign: of 1,000 runs 999 were covered."""
    at_once = shortfalls(problem("performative-ar", dim=2, epsilon=0.5, psi=0.98), 30)
    assert len(at_once) >= 25
    assert np.mean(at_once == 1.0) >= 0.9


def test_noise_that_passes_through_the_memory_makes_errors_little_wider():
    passing = shortfalls(problem("performative-mean", dim=2, rho=0.01), 60)
    assert len(passing) >= 20
    assert np.median(passing) < 1.15


def test_negative_control_without_such_noise_a_late_response_makes_them_wider():
    late = shortfalls(slow_mean(0.01, 0.5), 30)
    assert len(late) >= 20
    assert np.median(late) == pytest.approx((1.0 - 0.45) / (1.0 - 1.15 * 0.45), rel=0.05)


def test_noise_that_outlasts_a_chunk_gets_a_kernel():
    world = problem("performative-ar", dim=2, epsilon=0.0, psi=0.98)
    learners = [Auto(world, seed=seed).run(50_000) for seed in range(6)]
    denied = [learner for learner in learners if not learner.result().feedback.detected]
    assert len(denied) >= 5
    for learner in denied:
        result = learner.result()
        assert any("no feedback" in note for note in result.diagnostics.notes)
        assert result.diagnostics.effective_blocks < len(result.influences) - 1.0
