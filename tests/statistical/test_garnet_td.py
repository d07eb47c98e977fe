"""The benchmark of TD(0) on Garnet processes: its windows by the definition, and its coverage at the smallest size."""

import numpy as np
import pytest
from benchmarks.garnet_td import PROCESSES, SIZES, WINDOWS, Z, process, replicate, window_interval


def test_the_interval_of_overlapping_windows_is_that_of_the_definition():
    x = np.random.default_rng(0).standard_normal(50).cumsum()
    b, n = 7, 50
    total = sum((x[t : t + b].mean() - x.mean()) ** 2 for t in range(n - b + 1))
    half = Z * np.sqrt(b * total / (n - b + 1) / n)
    np.testing.assert_allclose(window_interval(x, b), (x.mean() - half, x.mean() + half))


def test_processes_are_those_of_the_paper():
    """A random policy, features of norm 1, and rewards of at most 1; no two processes are the same."""
    worlds = [process(seed) for seed in range(PROCESSES)]
    assert len({tuple(world.theta_star) for world in worlds}) == PROCESSES
    rng, row = np.random.default_rng(0), np.empty(worlds[0].row_size)
    for world in worlds:
        state = np.array(world.state_0)
        for _ in range(50):
            world.sample(rng, np.zeros(2), state, world.params, row)
            assert np.linalg.norm(row[:2]) == pytest.approx(1.0)
            assert np.linalg.norm(row[2:4]) <= 1.8 + 1e-12
            assert 0.0 <= row[4] <= 1.0


@pytest.mark.slow
def test_coverage_at_the_smallest_size():
    """200 replicates: three standard errors around 0.75 and 0.95; windows of 20 iterates are the negative control."""
    found = np.array([replicate(index, SIZES[:1], WINDOWS[:1])[:, 0, 0] for index in range(200)])
    windows, auto = found.mean(axis=0)
    assert 0.658 <= windows <= 0.842
    assert 0.904 <= auto <= 0.996
    short = np.mean([replicate(index, SIZES[:1], (20,))[0, 0, 0] for index in range(60)])
    assert short < 0.5
