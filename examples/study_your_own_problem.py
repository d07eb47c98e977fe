"""What do methods cover on a problem of your own? Give its rows, its gradient and its truth."""

import numba
import numpy as np

import halfwidth as hw
from halfwidth.problems import Truth


@numba.njit
def sample(rng, theta, state, params, row):
    """Prices with inertia, which move towards the published forecast."""
    state[0] = 0.8 * state[0] + 0.2 * (params[0] + 0.5 * theta[0] + rng.standard_normal())
    row[0] = state[0]


@numba.njit
def gradient(theta, row, params, grad):
    grad[0] = theta[0] - row[0]


@numba.njit
def curvature(theta, row, params):
    return 1.0


@numba.njit
def hessian(theta, row, params, direction):
    """w u u' + c I with w = 0 and c = 1: the Hessian of a mean."""
    direction[0] = 0.0
    return 0.0, 1.0


def truth():
    """The stable point solves theta = 3 + theta / 2; noise of long-run variance 1 over a slope of 1 - 1/2."""
    return Truth(np.array([6.0]), np.array([[4.0]]))


prices = hw.Problem(
    1, gradient, sample, curvature, hessian, row_size=1, params=[3.0], state_0=[0.0], name="prices", solve=truth
)
learners = {
    "auto": lambda seed: hw.Auto(prices, seed=seed),
    "equal batches": lambda seed: hw.CappedSGD(prices, watchers=[hw.EqualBatchMeans(1)], burn_in=1_000, seed=seed),
    "plug-in": lambda seed: hw.PlugIn(prices, seed=seed),
}
for name, learner in learners.items():
    covered = [learner(seed).run(20_000).result().interval().covers(prices.theta_star) for seed in range(40)]
    print(f"{name:<14} covers {np.mean(covered):.2f} (nominal 0.95, 40 replicates)")
