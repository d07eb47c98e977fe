"""What a type checker sees of problems, learners and watchers."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import halfwidth as hw

Vector = NDArray[np.float64]

world = hw.problem("seed-linear", dim=3, epsilon=0.5)
assert_type(world, hw.Problem)
assert_type(world.theta_star, Vector)
assert_type(world.sigma, Vector)

watcher = hw.OverlappingBatchMeans(3)
assert_type(watcher.update_many(np.zeros((5, 3))), hw.OverlappingBatchMeans)
assert_type(watcher.interval(level=0.9), hw.Interval)
assert_type(watcher.covariance(), Vector)

learner = hw.CappedSGD(world, step=hw.PowerStep(0.5, 0.505), watchers=[watcher], seed=0)
assert_type(learner.result(), hw.Result)
assert_type(learner.theta_bar, Vector)
assert_type(hw.Auto(world, seed=1).result(), hw.Result)
