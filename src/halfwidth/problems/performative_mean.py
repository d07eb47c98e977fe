"""The performative mean: a population that moves towards what is said about it.

    x_{k+1} = (1 - rho) x_k + rho (1 + epsilon theta_k + s N_k),   gradient theta - x.

While theta is fixed, x has mean 1 + epsilon theta, so theta* = 1 / (1 - epsilon) in every coordinate. The Jacobian of
the mean field is (1 - epsilon) I and the long-run variance of x is s^2: Sigma = s^2 (1 - epsilon)^-2 I. The static
Hessian is I: what knows only it is badly wrong here.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator

from halfwidth.checks import check_count, check_positive
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, scaled_truth
from halfwidth.problems.row_losses import MEAN


@jitable
def sample_performative_mean(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Move the population towards 1 + epsilon theta; the row is the population."""
    rho, epsilon, noise = params[0], params[1], params[2]
    for j in range(theta.shape[0]):
        response = 1.0 + epsilon * theta[j] + noise * rng.standard_normal()
        state[j] = (1.0 - rho) * state[j] + rho * response
        row[j] = state[j]


def performative_mean(dim: int = 5, *, epsilon: float = 0.5, rho: float = 0.5, noise: float = 1.0) -> Problem:
    """The mean of a population that moves towards the published estimate."""
    check_count("dim", dim)
    if not (np.isfinite(epsilon) and epsilon < 1.0):
        raise InputError.of("epsilon", "be below 1, or there is no stable point", epsilon)
    if not 0.0 < rho <= 1.0:
        raise InputError.of("rho", "satisfy 0 < rho <= 1", rho)
    check_positive("noise", noise)
    strength = 1.0 / (1.0 - epsilon)
    return Problem(
        dim,
        **MEAN._asdict(),
        sample=sample_performative_mean,
        row_size=dim,
        params=np.array([rho, epsilon, noise]),
        state_0=np.zeros(dim),
        name="performative-mean",
        settings={"dim": dim, "epsilon": epsilon, "rho": rho, "noise": noise},
        solve=partial(scaled_truth, np.full(dim, strength), (noise * strength) ** 2),
    )
