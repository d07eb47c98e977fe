"""A curved loss whose noise is that of a handful of events: named, and never a confident wrong number."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest

import halfwidth as hw
from halfwidth.learners.auto import given_status

TRUTH = np.array([-6.5, -0.5, 0.4, 0.3])


@numba.njit
def gradient(theta, row, params, grad):
    grad[:] = (1.0 / (1.0 + np.exp(-(row[:4] * theta).sum())) - row[4]) * row[:4]


@numba.njit
def hessian(theta, row, params, direction):
    direction[:] = row[:4]
    mean = 1.0 / (1.0 + np.exp(-(row[:4] * theta).sum()))
    return mean * (1.0 - mean), 0.0


WORLD = hw.Problem(4, gradient, hessian=hessian, row_size=5)


def labels(seed, n, intercept):
    """A logistic fit, with how many standard errors each coefficient is off by."""
    rng, truth = np.random.default_rng([seed, 99]), np.append(intercept, TRUTH[1:])
    X = rng.standard_normal((n, 4))
    X[:, 0] = 1.0
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-X @ truth))
    result = hw.Auto(WORLD).consume(np.column_stack([X, y])).result()
    return result, np.abs(result.params - truth) / result.bse


def silently_wrong(seeds, n):
    found = 0
    for seed in seeds:
        result, off = labels(seed, n, TRUTH[0])
        ok = np.array([status == "ok" for status in result.coefficient_status]) & (result.status == "ok")
        found += int((off[ok] > 5.0).sum())
    return found


@pytest.mark.parametrize(("n", "seeds"), [(1_000, (0, 5, 9, 11)), (1_500, (11, 16, 20, 21))])
def test_a_handful_of_events_is_named(n, seeds, monkeypatch):
    """The negative control: without the doubt each of these runs was ok and more than 5 standard errors off."""
    assert silently_wrong(seeds, n) == 0
    assert labels(seeds[0], n, TRUTH[0])[0].status == "rare"
    monkeypatch.setattr(given_status, "noisy_batches", lambda *_: np.inf)
    assert silently_wrong(seeds, n) >= len(seeds)


def test_events_enough_are_not_rare():
    assert [labels(seed, 5_000, -5.0)[0].status for seed in range(5)] == ["ok"] * 5


@pytest.mark.parametrize("events", [1, 5, 40])
def test_batches_that_make_the_noise_are_counted_in_any_coordinates(events):
    engine = SimpleNamespace(rough=False, linear=False, without_loss=False, store=SimpleNamespace(single=False))
    engine.theta_0, engine.field = np.zeros(2), None
    engine.sample = SimpleNamespace(curvatures=lambda _, at: at)
    residuals, centre = np.zeros((64, 2)), np.ones(2)
    residuals[:events] = np.random.default_rng(events).choice([-1.0, 1.0], (events, 2))
    for turn in (np.eye(2), np.array([[1e3, 0.0], [2.0, 1e-3]])):
        found = given_status.noisy_batches(engine, centre, residuals @ turn, turn.T @ turn)
        np.testing.assert_allclose(found, events)
    assert given_status.noisy_batches(engine, centre, np.zeros((64, 2)), np.eye(2)) == np.inf
    assert given_status.noisy_batches(engine, engine.theta_0, residuals, np.eye(2)) == np.inf
    engine.linear = True
    assert given_status.noisy_batches(engine, centre, residuals, np.eye(2)) == np.inf
