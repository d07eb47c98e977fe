"""Strategic credit with a reach that matters: intervals cover the exact equilibrium, those of the naive fit do not."""

import warnings

import numpy as np
import pytest

import halfwidth as hw
from halfwidth.problems.strategic_credit import MODIFIABLE, stand_in

pytestmark = pytest.mark.slow

ROWS, REPLICATES, RIDGE = 125_000, 200, 0.01


def naive_interval(features, labels, seed):
    """The fit to as many rows of the population as it stands."""
    drawn = np.random.default_rng([1, seed]).integers(0, len(features), size=ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = hw.LogisticRegression(fit_intercept=False, ridge=RIDGE).fit(features[drawn], labels[drawn])
    return model.inference().interval()


def test_intervals_cover_the_equilibrium_and_naive_ones_do_not():
    """Null: 0.95 in each of ten coefficients, whose errors are nearly independent: 2,000 events, a standard error of
    0.005 to 0.01. The band is 0.93 to 0.97. The negative control goes through the same count and must stay below 0.5.
    """
    world = hw.problem("strategic-credit", reach=0.5, speed=1.0)
    features, labels = stand_in()
    covered, naive = [], []
    for seed in range(REPLICATES):
        covered.append(hw.Auto(world, seed=[0, seed]).run(ROWS).result().interval().covers(world.theta_star))
        naive.append(naive_interval(features, labels, seed).covers(world.theta_star)[list(MODIFIABLE)])
    assert 0.93 <= np.mean(covered) <= 0.97
    assert np.mean(naive) < 0.5
