"""The benchmark of constant steps under Markov noise: its processes and weights, and its published coverages."""

import numpy as np
import pytest
from benchmarks.constant_steps import ALPHAS, BATCHES, DIM, STATES, WEIGHTS, batch_means, coverage, covered, process


def test_weights_keep_the_limit_and_remove_the_bias_of_first_order():
    assert WEIGHTS.sum() == pytest.approx(1.0)
    assert abs(WEIGHTS @ ALPHAS) < 1e-15


def test_processes_have_a_stable_mean_and_its_root():
    for seed in range(5):
        cumulated, A, b, truth = process(seed)
        P = np.diff(cumulated, axis=1, prepend=0.0)
        pi = np.linalg.matrix_power(P, 1_000)[0]
        mean = np.einsum("x,xij->ij", pi, A)
        assert np.linalg.eigvals(mean).real.max() < 0.0
        np.testing.assert_allclose(mean @ truth + pi @ b, 0.0, atol=1e-10)


def test_batches_are_those_of_the_recursion():
    """Two batches of a chain that stays where it is, by the definition."""
    rng, means = np.random.default_rng(3), np.zeros((20_000, 2, DIM))
    A, b = -np.eye(DIM) + 0.1 * rng.standard_normal((STATES, DIM, DIM)), rng.standard_normal((STATES, DIM))
    stays = np.zeros((STATES, STATES))
    stays[:, 4:] = 1.0  # cumulated: always the fifth state
    batch_means(rng, stays, A, b, means)  # five steps each
    for m, alpha in enumerate(ALPHAS):
        theta, steps = np.zeros(DIM), []
        for _ in range(10):
            theta = theta + alpha * (A[4] @ theta + b[4])
            steps.append(theta)
        np.testing.assert_allclose(means[:2, m], np.reshape(steps, (2, 5, DIM)).mean(axis=1))
    batches = np.arange(12.0).reshape(4, 3) ** 2
    half = 1.959963984540054 * np.sqrt(np.mean((batches - batches.mean(axis=0)) ** 2, axis=0) / 4)
    assert covered(batches, batches.mean(axis=0) + 0.999 * half).all()
    assert not covered(batches, batches.mean(axis=0) + 1.001 * half).any()
    assert BATCHES == 31


@pytest.mark.slow
def test_published_coverages_hold():
    """Medians over 100 processes, 20 runs of each, in the first coefficient: 0.11, 0.90 and 0.94 are published. The
    large constant step is the negative control; its coverages spread from 0 to 1, so that their median is noisy.
    """
    large, small, extrapolated = np.median([coverage(seed, 20)[:, 0] for seed in range(100)], axis=0)
    assert large < 0.25
    assert 0.85 <= small <= 0.95
    assert 0.89 <= extrapolated <= 0.97
