"""The exact truth of the credit example against long runs over its stand-in population.

Null: with steps that shrink fast enough for the bias to vanish (a = 0.8), the averages of independent runs scatter
around theta* with covariance Sigma / n. Each coordinate's mean must lie within 4.5 standard errors, and the variance of
the sum within a chi-square band of about 1 in 10,000. The negative control is the truth of a population without
feedback, which the same band must refuse where the feedback is strong.
"""

import numpy as np
import pytest
from scipy.stats import chi2

from halfwidth.learners import CappedSGD
from halfwidth.problems import problem
from halfwidth.schedules import PowerStep

RUNS, ROWS = 40, 400_000


def averages(world):
    found = []
    for seed in range(RUNS):
        learner = CappedSGD(world, step=PowerStep(4.0, 0.8), seed=seed, warm_start=2_000)
        found.append(learner.run(ROWS).theta_bar)
    return np.array(found)


def agrees(runs, truth):
    """Whether the runs scatter around this theta*, and with this Sigma."""
    z = (runs.mean(axis=0) - truth.theta_star) / np.sqrt(np.diag(truth.sigma) / (ROWS * RUNS))
    ratio = runs.sum(axis=1).var(ddof=1) * ROWS / truth.sigma.sum()
    low, high = chi2.ppf([5e-5, 1 - 5e-5], RUNS - 1) / (RUNS - 1)
    return bool(np.abs(z).max() < 4.5), bool(low < ratio < high)


@pytest.mark.slow
@pytest.mark.parametrize("reach", [0.01, 0.4])
def test_long_runs_scatter_around_the_exact_truth(reach):
    world = problem("strategic-credit", movers=2_000, reach=reach)
    runs = averages(world)
    assert agrees(runs, world) == (True, True)
    if reach == 0.4:  # the negative control
        around_theta_star, _ = agrees(runs, problem("strategic-credit", movers=2_000, reach=0.0))
        assert not around_theta_star
