"""Adaptively collected data: `adaptive-linear`, a bandit whose design follows the estimate.

While theta is deployed, arm j of d is pulled with probability

    q_j(theta) = explore / d + (1 - explore) exp(theta_j / temperature) / sum_i exp(theta_i / temperature),

and pays y = theta_r,j + N(0, s^2). A row is (e_j, y), the field e_j (theta_j - y). Whatever design theta makes, the
mean field vanishes at theta* = theta_r, where the noise is a martingale difference: A = diag q(theta_r), S = s^2 A and
Sigma = s^2 diag(1 / q_j). With a temperature of 0 the best arm is pulled but for exploration; where the best two arms
tie the design does not settle and there is no normal limit, so that the truth is refused (K. Khamaru, Y. Deshpande, T.
Lattimore, L. Mackey and M. Wainwright, *Near-optimal inference in adaptive linear regression*, 2021).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from halfwidth.checks import check_positive
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Truth
from halfwidth.problems.row_losses import LINEAR
from halfwidth.problems.seed_features import target_parameter

_SMALLEST_GAP = 1e-8
"""Arms that differ by less, relative to the largest, are tied: more rows than anyone has would not tell them apart."""


@jitable
def chosen_arm(rng: Generator, theta: Vector, temperature: float, explore: float) -> int:
    """Draw an arm; `best` is kept for a temperature of 0."""
    dim = theta.shape[0]
    if rng.random() < explore:
        return int(rng.random() * dim)
    best: int = 0
    for j in range(1, dim):
        if theta[j] > theta[best]:
            best = j
    if temperature == 0.0:
        return best
    total = 0.0
    for j in range(dim):
        total += math.exp((theta[j] - theta[best]) / temperature)
    left = rng.random() * total
    arm = 0
    while arm < dim - 1:
        left -= math.exp((theta[arm] - theta[best]) / temperature)
        if left < 0.0:
            break
        arm += 1
    return arm


@jitable
def sample_adaptive_linear(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Pull an arm; `params` is (noise, temperature, explore), then theta_r."""
    dim = theta.shape[0]
    arm = chosen_arm(rng, theta, params[1], params[2])
    for j in range(dim):
        row[j] = 0.0
    row[arm] = 1.0
    row[dim] = params[3 + arm] + params[0] * rng.standard_normal()


def adaptive_linear(
    dim: int = 3, *, noise: float = 1.0, temperature: float = 0.5, explore: float = 0.1,
    theta_r: ArrayLike | None = None, theta_0: ArrayLike | None = None,
) -> Problem:  # fmt: skip
    """A bandit with `dim` arms that pulls those more often which the estimate prefers."""
    target = target_parameter(theta_r, dim)
    check_positive("noise", noise)
    if not (np.isfinite(temperature) and temperature >= 0.0):
        raise InputError.of("temperature", "be at least 0 and finite", temperature)
    if not 0.0 < explore <= 1.0:
        raise InputError.of("explore", "satisfy 0 < explore <= 1, or an arm may never be pulled again", explore)
    return Problem(
        dim,
        **LINEAR._asdict(),
        sample=sample_adaptive_linear,
        row_size=dim + 1,
        params=np.concatenate([[noise, temperature, explore], target, [1.0]]),
        theta_0=theta_0,
        name="adaptive-linear",
        settings={"dim": dim, "noise": noise, "temperature": temperature, "explore": explore},
        solve=partial(_solved, target, noise, temperature, explore),
    )


def _solved(target: Vector, noise: float, temperature: float, explore: float) -> Truth:
    return Truth(target, np.diag(noise**2 / pull_probabilities(target, temperature, explore)))


def pull_probabilities(theta: Vector, temperature: float, explore: float) -> Vector:
    """q(theta); refuses a tie of the best arms where the best one is pulled."""
    if temperature > 0.0:
        weights = np.exp((theta - theta.max()) / temperature)
    else:
        weights = (theta >= theta.max() - _SMALLEST_GAP * np.abs(theta).max()).astype(np.float64)
        if weights.sum() > 1.0:
            raise InputError(
                "the best arms tie: which one is pulled does not settle, and averages have no normal limit; "
                "set a temperature above 0"
            )
    return np.asarray(explore / theta.size + (1.0 - explore) * weights / weights.sum())
