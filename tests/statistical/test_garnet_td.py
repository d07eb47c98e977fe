"""The benchmark of TD(0) on a Garnet process: its windows by the definition, and its coverage at the smallest size."""

import numpy as np
import pytest
from benchmarks.garnet_td import SIZES, WINDOWS, Z, replicate, window_interval


def test_the_interval_of_overlapping_windows_is_that_of_the_definition():
    x = np.random.default_rng(0).standard_normal(50).cumsum()
    b, n = 7, 50
    total = sum((x[t : t + b].mean() - x.mean()) ** 2 for t in range(n - b + 1))
    half = Z * np.sqrt(b * total / (n - b + 1) / n)
    np.testing.assert_allclose(window_interval(x, b), (x.mean() - half, x.mean() + half))


@pytest.mark.slow
def test_coverage_at_the_smallest_size():
    """200 replicates: three standard errors around 0.85 and 0.95; windows of 20 iterates are the negative control."""
    found = np.array([replicate(index, SIZES[:1], WINDOWS[:1])[:, 0, 0] for index in range(200)])
    windows, auto = found.mean(axis=0)
    assert 0.775 <= windows <= 0.925
    assert 0.904 <= auto <= 0.996
    short = np.mean([replicate(index, SIZES[:1], (20,))[0, 0, 0] for index in range(60)])
    assert short < 0.6
