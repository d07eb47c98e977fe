"""Designed simulations: fixed seed, stated null, a binomial band, and a negative control that must fail.

Null: with iid rows (seed-linear at epsilon = 0 has Markov features, iid-linear has none) the average is unbiased for
all purposes, so that the calibrated interval covers v'theta* with probability 0.95 and the calibrated Wald test rejects
with probability 0.05. The band is 3.5 binomial standard errors. The normal critical value and the chi-square must
fall outside of it, on the wrong side.
"""

import math

import numpy as np
import pytest

from halfwidth import CappedSGD, OverlappingBatchMeans, PowerStep
from halfwidth.problems import problem

REPLICATES = 400
STEPS = 20_000


def band(p, trials=REPLICATES):
    return 3.5 * math.sqrt(p * (1 - p) / trials)


@pytest.fixture(scope="module", params=["seed-linear", "iid-linear"])
def runs(request):
    """The watchers of all replicates, with the truth."""
    settings = {"epsilon": 0.0} if request.param == "seed-linear" else {}
    built_in = problem(request.param, dim=2, **settings)
    watchers = []
    for seed in np.random.SeedSequence(20_240).spawn(REPLICATES):
        watcher = OverlappingBatchMeans(2)
        CappedSGD(built_in, step=PowerStep(2.0, 0.505), watchers=[watcher], seed=seed).run(STEPS)
        watchers.append(watcher)
    return watchers, built_in


def coverage(runs, critical, level=0.95):
    watchers, built_in = runs
    truth = built_in.theta_star.sum()
    return np.mean([watcher.interval([1.0, 1.0], level, critical).covers(truth) for watcher in watchers])


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_calibrated_intervals_cover_at_their_level(runs, level):
    assert abs(coverage(runs, "calibrated", level) - level) < band(level)


def test_normal_intervals_do_not(runs):
    assert coverage(runs, "normal") < 0.95 - band(0.95)


def rejections(runs, critical):
    watchers, built_in = runs
    tests = (watcher.result(critical).wald_test(np.eye(2), built_in.theta_star) for watcher in watchers)
    return np.mean([test.p_value < 0.05 for test in tests])


def test_the_calibrated_wald_test_has_its_size(runs):
    assert abs(rejections(runs, "calibrated") - 0.05) < band(0.05)


def test_the_chi_square_test_rejects_too_often(runs):
    assert rejections(runs, "normal") > 0.05 + band(0.05)


def ellipsoid_coverage(runs, level, shift=0.0):
    watchers, built_in = runs
    point = built_in.theta_star + shift
    return np.mean([watcher.result().ellipsoid(level=level).contains(point) for watcher in watchers])


def test_the_ellipsoid_covers_at_its_level(runs):
    assert abs(ellipsoid_coverage(runs, 0.9) - 0.9) < band(0.9)


def test_the_ellipsoid_excludes_a_shift_of_ten_standard_errors(runs):
    assert ellipsoid_coverage(runs, 0.9, 10.0 * math.sqrt(runs[1].sigma[0, 0] / STEPS)) < 0.5


def test_the_mean_of_the_covariance_is_sigma_less_its_known_bias(runs):
    """E D = sum of the weights of the law; 3.5 standard errors over replicates, and 0.02 for what n leaves over."""
    watchers, built_in = runs
    law = watchers[0].law()
    ratios = np.array([w.covariance() for w in watchers]) / built_in.sigma[0, 0]
    for j in range(2):
        mean, error = ratios[:, j, j].mean(), ratios[:, j, j].std() / math.sqrt(REPLICATES)
        assert abs(mean - (sum(law.weights) + law.rest)) < 3.5 * error + 0.02


def test_pooled_intervals_cover_at_their_level(runs):
    watchers, built_in = runs
    truth = built_in.theta_star.sum()
    pairs = zip(watchers[::2], watchers[1::2], strict=True)
    hits = [one.pool(other).interval([1.0, 1.0]).covers(truth) for one, other in pairs]
    assert abs(np.mean(hits) - 0.95) < band(0.95, REPLICATES // 2)
