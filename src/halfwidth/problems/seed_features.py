"""The feature stream of the seed paper, which responds to the deployed parameter.

    u_k = (1 - rho) u_{k-1} + rho v_k + rho epsilon theta_{k-1} w_k,   v_k ~ N(0, s^2 I), w_k ~ N(0, s^2).

While theta stays fixed, u has the stationary law N(0, C(theta)), C(theta) = s^2 rho / (2 - rho) (I + epsilon^2
theta theta'), and correlation (1 - rho)^h at lag h. `params` starts with (rho, epsilon, s), then theta_r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from halfwidth.checks import check_count, check_positive, check_vector
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable


@jitable
def next_features(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> float:
    """Move the features on, write them into row[:dim], and return u'theta_r."""
    rho, epsilon, noise = params[0], params[1], params[2]
    dim = theta.shape[0]
    push = epsilon * rng.standard_normal()
    for j in range(dim):
        row[j] = rng.standard_normal()
    signal = 0.0
    for j in range(dim):
        u = (1.0 - rho) * state[j] + rho * noise * (row[j] + push * theta[j])
        state[j] = u
        row[j] = u
        signal += u * params[3 + j]
    return signal


@dataclass(frozen=True)
class SeedFeatures:
    """The parameters of the stream, checked."""

    dim: int
    epsilon: float
    rho: float
    noise: float
    theta_r: Vector

    def __post_init__(self) -> None:
        if not 0.0 < self.rho <= 1.0:
            raise InputError.of("rho", "satisfy 0 < rho <= 1", self.rho)
        if not np.isfinite(self.epsilon):
            raise InputError.of("epsilon", "be finite", self.epsilon)
        check_positive("noise", self.noise)

    @property
    def kappa(self) -> float:
        """The stationary variance of a feature that theta does not push."""
        return self.noise**2 * self.rho / (2.0 - self.rho)

    def stationary_covariance(self, theta: Vector) -> Vector:
        """C(theta)."""
        return np.asarray(self.kappa * (np.eye(self.dim) + self.epsilon**2 * np.outer(theta, theta)))

    def packed(self) -> Vector:
        return np.concatenate([[self.rho, self.epsilon, self.noise], self.theta_r])


def target_parameter(theta_r: ArrayLike | None, dim: int) -> Vector:
    """theta_r = linspace(0, 1, dim) unless given."""
    check_count("dim", dim)
    return np.linspace(0.0, 1.0, dim) if theta_r is None else check_vector("theta_r", theta_r, dim)
