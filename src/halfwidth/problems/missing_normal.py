"""Maximum likelihood with values missing at random: `missing-normal`.

Rows (x_1, x_2) ~ N(mu, C), C = [[1, r], [r, 1]] known. x_2 is missing with probability s(a + b x_1), which the observed
x_1 decides. The missing value is drawn from its law given x_1 and the deployed theta, x_2 = theta_2 + r (x_1 - theta_1)
+ sqrt(1 - r^2) u, by a sampler with memory: u is AR(psi) with unit variance, as one step of a Gibbs sampler that starts
from its last draw. The field is the gradient of the complete data's negative log-likelihood, C^-1 (theta - x).

Its mean over the draws is the observed data's, so theta* = mu. With p the share of missing values,

    A = (1 - p) C^-1 + p e_1 e_1',                       the observed information,
    S = C^-1 (C + 2 psi / (1 - psi) p^2 (1 - r^2) e_2 e_2') C^-1,

since at theta* the completed rows have the law of the complete data, and only the memory of u links them. The static
Hessian is C^-1, the complete information: it knows nothing of what is missing. D. Rubin, Biometrika 63 (1976); B.
Delyon, M. Lavielle and E. Moulines, Annals of Statistics 27 (1999).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from halfwidth.checks import check_vector
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Truth
from halfwidth.problems.quadrature import normal_grid
from halfwidth.problems.row_losses import sigmoid


@jitable
def sample_missing_normal(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Draw a row and impute what is missing; `params` is (r, psi, a, b), then mu, and the state u."""
    r, psi = params[0], params[1]
    rest = math.sqrt(1.0 - r * r)
    e = rng.standard_normal()
    state[0] = psi * state[0] + math.sqrt(1.0 - psi * psi) * rng.standard_normal()
    row[0] = params[4] + e
    if rng.random() < sigmoid(params[2] + params[3] * row[0]):
        row[1] = theta[1] + r * (row[0] - theta[0]) + rest * state[0]
    else:
        row[1] = params[5] + r * e + rest * rng.standard_normal()


@jitable
def normal_score(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """C^-1 (theta - x)."""
    r = params[0]
    first, second = theta[0] - row[0], theta[1] - row[1]
    grad[0] = (first - r * second) / (1.0 - r * r)
    grad[1] = (second - r * first) / (1.0 - r * r)


@jitable
def normal_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """The largest eigenvalue of C^-1."""
    return float(1.0 / (1.0 - abs(params[0])))


@jitable
def normal_hessian(theta: Vector, row: Vector, params: Vector, direction: Vector) -> tuple[float, float]:
    """C^-1 = I / (1 - r) - 2 r / (1 - r^2) u u' with u = (1, 1) / sqrt(2)."""
    r = params[0]
    direction[0] = direction[1] = math.sqrt(0.5)
    return -2.0 * r / (1.0 - r * r), 1.0 / (1.0 - r)


def missing_normal(
    *,
    correlation: float = 0.6,
    psi: float = 0.5,
    missing: ArrayLike = (0.0, 1.0),
    mean: ArrayLike = (1.0, -1.0),
    theta_0: ArrayLike | None = None,
) -> Problem:
    """The mean of a normal pair of which one value is often missing, imputed by a sampler with memory (psi)."""
    if not -1.0 < correlation < 1.0:
        raise InputError.of("correlation", "lie strictly between -1 and 1", correlation)
    if not -1.0 < psi < 1.0:
        raise InputError.of("psi", "lie strictly between -1 and 1", psi)
    a, b = check_vector("missing", missing, 2)
    mu = check_vector("mean", mean, 2)
    return Problem(
        2,
        normal_score,
        sample_missing_normal,
        normal_curvature,
        normal_hessian,
        row_size=2,
        params=np.concatenate([[correlation, psi, a, b], mu]),
        theta_0=theta_0,
        state_0=np.zeros(1),
        name="missing-normal",
        settings={"correlation": correlation, "psi": psi},
        solve=partial(solve_missing_normal, mu, correlation, psi, float(a), float(b)),
    )


def solve_missing_normal(mu: Vector, r: float, psi: float, a: float, b: float) -> Truth:
    """theta* and Sigma; symbols as in the module's text."""
    x, weights = normal_grid()
    p = float(weights @ (1.0 / (1.0 + np.exp(-(a + b * (mu[0] + x))))))
    C = np.array([[1.0, r], [r, 1.0]])
    complete = np.linalg.inv(C)
    A = (1.0 - p) * complete + p * np.diag([1.0, 0.0])
    memory = 2.0 * psi / (1.0 - psi) * p**2 * (1.0 - r * r) * np.diag([0.0, 1.0])
    S = complete @ (C + memory) @ complete
    inverse = np.linalg.inv(A)
    return Truth(mu, inverse @ S @ inverse)
