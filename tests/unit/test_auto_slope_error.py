"""What the error of the feedback's slope does to root and variance, held to simulations of that error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from halfwidth.equation import Sums
from halfwidth.learners.auto import Auto, steered_sums
from halfwidth.learners.auto.slope_error import added, leverage, taken
from halfwidth.problems import problem
from halfwidth.problems.strategic import strategic_problem
from halfwidth.problems.strategic_population import Population, synthetic_population

D = 4


def sums_of(x, lengths):
    """Batches of so many rows, of deployed thetas x, one per row."""
    edges = np.concatenate([[0], np.cumsum(lengths)])
    T = np.add.reduceat(x, edges[:-1], axis=0)
    empty, K = np.zeros((len(lengths), x.shape[1])), len(lengths)
    known = {"H": np.zeros((K, x.shape[1], x.shape[1])), "T": T, "n": np.asarray(lengths, float), "moved": np.zeros(K)}
    return Sums(**{name: known.get(name, empty) for name in Sums._fields})


def fixed_design(rng, rows=600):
    """Deployed thetas that move slowly, about a mean that is not zero, and their V."""
    x = np.cumsum(rng.standard_normal((rows, D)), axis=0) / 10.0
    x += np.array([3.0, -2.0, 0.0, 1.0]) - x.mean(axis=0)
    return x, (x - x.mean(axis=0)).T @ (x - x.mean(axis=0))


def test_the_variance_of_a_root_away_from_the_mean_of_theta_is_that_of_a_simulation():
    rng = np.random.default_rng(0)
    x, V = fixed_design(rng)
    lengths, M = np.full(12, 50), 2.0 * np.eye(D)
    centre = np.zeros(D)  # of the field M x, so that the root of M x + noise - (slope's error) x is read here
    noise = rng.standard_normal((4_000, len(x), D))
    error = np.einsum("srd,re->sde", noise, (x - x.mean(axis=0)) @ np.linalg.inv(V))
    roots = np.linalg.solve(M, (noise.mean(axis=1) - error @ (x.mean(axis=0) - centre))[:, :, None])[:, :, 0]
    factor = len(x) * 4.0 * roots.var(axis=0).mean()
    assert factor == pytest.approx(1.0 + leverage(V, sums_of(x, lengths), centre), rel=0.05)
    assert factor > 1.5  # negative control: 1 is refused
    assert leverage(V, sums_of(x, lengths), x.mean(axis=0)) == pytest.approx(0.0, abs=1e-12)


def test_the_noise_that_batches_lose_to_the_slope_is_that_of_a_simulation():
    rng = np.random.default_rng(1)
    x, V = fixed_design(rng)
    lengths = np.full(12, 50)
    noise = rng.standard_normal((2_000, len(x), D))
    error = np.einsum("srd,re->sde", noise, (x - x.mean(axis=0)) @ np.linalg.inv(V))
    left = noise - noise.mean(axis=1, keepdims=True) - np.einsum("sde,re->srd", error, x - x.mean(axis=0))
    batches = left.reshape(len(noise), 12, 50, D).sum(axis=2)
    kept = np.square(batches).sum(axis=(1, 2)).mean() / (D * len(x))
    u = taken(V, sums_of(x, lengths))
    assert u > 0.1
    assert kept == pytest.approx(1.0 - 1.0 / 12 - u, rel=0.02)


def test_an_uncertain_slope_makes_variances_too_large_by_what_is_added():
    rng = np.random.default_rng(2)
    mix = rng.standard_normal((D, D))
    M, omega = 2.0 * np.eye(D) + 0.3 * mix, np.eye(D) + 0.1 * mix @ mix.T
    sigma = np.linalg.solve(M, np.linalg.solve(M, omega).T)
    R = 400.0
    V = 0.5 * R * sigma  # theta was renewed R times in every direction
    E = np.linalg.cholesky(omega) @ rng.standard_normal((40_000, D, D)) @ np.linalg.inv(np.linalg.cholesky(V)).T
    inverse = np.linalg.inv(M + E)
    seen = (inverse @ omega @ inverse.transpose(0, 2, 1)).mean(axis=0)
    excess = np.trace(np.linalg.solve(sigma, seen)) / D - 1.0
    assert excess == pytest.approx(added(D, R), rel=0.1)
    assert added(D, R) == pytest.approx(np.trace(np.linalg.solve(V, sigma)) * (1 + 2 / D))


def excess_of(world, jacobian, runs=60):
    """By what share (H + J)^-1 Omega (H + J)^-T is too large on average, over runs and directions, and `added`."""
    sigma, found, expected = world.sigma, [], []
    omega = jacobian @ sigma @ jacobian.T
    for seed in range(runs):
        engine = Auto(world, seed=seed).run(50_000)._steered
        response = engine.response()
        inverse = np.linalg.inv(engine.mean_hessian() + response.J)
        found.append(np.trace(np.linalg.solve(sigma, inverse @ omega @ inverse.T)) / world.dim - 1.0)
        expected.append(added(world.dim, 4.0 * response.freedom))
    return np.mean(found), np.std(found) / np.sqrt(runs), np.mean(expected)


def test_the_slope_of_a_linear_response_makes_variances_too_large_and_that_of_a_curved_one_does_not():
    linear, error, expected = excess_of(problem("performative-mean", dim=5), 0.5 * np.eye(5))
    assert abs(linear - expected) < 3.0 * error < expected
    features, labels = synthetic_population(5, 1_000)
    population = Population(features, labels, (2, 3, 4), np.ones(3), 0.4, 0.5, 0.1, 0.01)
    world = strategic_problem(features, labels, (2, 3, 4), reach=0.4)
    curved, error, expected = excess_of(world, population.mean_field(world.theta_star, 0.4)[1])
    assert curved < expected - 3.0 * error  # so that nothing must be taken off for it
    assert abs(curved) < 0.5 * expected


def test_what_is_added_is_taken_off_where_gradients_are_linear():
    engine = Auto(problem("performative-mean", dim=3), seed=1).run(50_000)._steered
    response, sums, centre = engine.response(), engine.store.closed(), np.zeros(3)
    assert response.settled
    linear, curved = (replace(response, linear=one) for one in (True, False))
    a, u = added(3, 4.0 * response.freedom), response.taken(sums)
    expected = (1.0 - u) / (1.0 + a - u)
    assert linear.inflation(sums, centre) / curved.inflation(sums, centre) == pytest.approx(expected)
    assert engine.quadratic()


def test_the_mean_of_the_deployed_thetas_is_kept_at_the_root(monkeypatch):
    def levers():
        found = []
        for seed in range(8):
            learner = Auto(problem("performative-mean", dim=3), seed=seed).run(50_000)
            engine, result = learner._steered, learner.result()
            assert engine.settled
            response, sums = engine.response(), engine.store.closed()
            if response.spread is not None:
                found.append(leverage(response.spread, sums, result.params - engine.steering.origin))
        assert len(found) >= 7
        return np.mean(found)

    balanced = levers()
    monkeypatch.setattr(steered_sums.SteeredSums, "_balancing", lambda self, target: target)
    assert balanced < 0.6 * levers()


def test_no_theta_is_deployed_further_from_the_root_than_noise_would_carry_it():
    engine = Auto(problem("performative-mean", dim=3), seed=1).run(30_000)._steered
    target = engine.steering.point
    engine.store.sums.T[:] += 1e3  # far off on one side
    away = engine._balancing(target) - target
    size = np.linalg.solve(engine._noise_root(), away)
    assert size @ size == pytest.approx(0.5 * 3 * engine._plain_steps(1)[0])
