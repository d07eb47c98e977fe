"""The exact truth of the credit example against long runs over its stand-in population.

Null: with steps that shrink fast enough for the bias to vanish (a = 0.8), the averages of independent runs scatter
around theta* with covariance Sigma / n. Each coordinate's mean must lie within 4.5 standard errors, and the variance of
the sum within a chi-square band of about 1 in 10,000. The negative control is the truth of a population that does not
answer, which the same band must refuse where the answers are strong.
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


@pytest.mark.slow
@pytest.mark.parametrize("reach", [0.01, 0.4])
def test_long_runs_scatter_around_the_exact_truth(reach):
    world = problem("strategic-credit", movers=2_000, reach=reach)
    runs = averages(world)
    z = (runs.mean(axis=0) - world.theta_star) / np.sqrt(np.diag(world.sigma) / (ROWS * RUNS))
    assert np.abs(z).max() < 4.5
    ratio = runs.sum(axis=1).var(ddof=1) * ROWS / world.sigma.sum()
    low, high = chi2.ppf([5e-5, 1 - 5e-5], RUNS - 1) / (RUNS - 1)
    assert low < ratio < high
    if reach == 0.4:
        still = problem("strategic-credit", movers=2_000, reach=0.0)
        z = (runs.mean(axis=0) - still.theta_star) / np.sqrt(np.diag(still.sigma) / (ROWS * RUNS))
        assert np.abs(z).max() > 4.5
