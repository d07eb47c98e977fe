"""Data that respond to the deployed parameter: an interval that allows for the feedback, and one that does not.

Each row is a person whose value drifts towards what is published: the mean that the rows settle at is not the mean they
had before anything was published, and the static Hessian is not the slope of the mean field.
"""

import numpy as np

import halfwidth as hw

world = hw.problem("performative-mean", dim=2, epsilon=0.5)
learner = hw.Auto(world, seed=1).run(50_000)
result = learner.result()
print(result.summary())

naive = hw.PlugIn(world, seed=1).run(50_000).result().interval()  # takes the Hessian for the slope of the mean field
interval = result.interval()
print(f"the stable point is {world.theta_star}")
print(f"auto:    {np.round(interval.lower, 4)} to {np.round(interval.upper, 4)}")
print(f"plug-in: {np.round(naive.lower, 4)} to {np.round(naive.upper, 4)}, valid for independent rows only")
