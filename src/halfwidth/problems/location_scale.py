"""Regressions whose responses shift and scale with the deployed parameter: `location-scale`.

Features u ~ N(0, I). While theta is deployed,

    linear     y = u'(beta + M theta) + sqrt(1 + scale |theta|^2) N(0, 1),
    logistic   y ~ Bernoulli(s(u'(beta + M theta))),

with M = epsilon (I / 2 + 11' / (2 d)). The loss is that of the regression. Its mean field vanishes where theta = beta +
M theta: theta* = (I - M)^-1 beta is performatively stable, the Jacobian is H (I - M) and S = v H, with H the static
Hessian there (I, or E s'(u'theta*) u u') and v the noise's variance (1 + scale |theta*|^2, or 1), so that

    Sigma = v (I - M)^-1 H^-1 (I - M)^-T.

The performative optimum minimises the loss along theta itself. In the linear case that is
((I - M)'(I - M) + scale I)^-1 (I - M)'beta; in the logistic case it is not stated. J. Miller, J. Perdomo and T. Zrnic,
*Outside the echo chamber: optimizing the performative risk* (ICML 2021).
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Truth
from halfwidth.problems.quadrature import normal_grid
from halfwidth.problems.row_losses import LINEAR, LOGISTIC, sigmoid
from halfwidth.problems.seed_features import target_parameter


@jitable
def shifted_signal(rng: np.random.Generator, theta: Vector, params: Vector, row: Vector) -> float:
    """Draw the features and return u'(beta + M theta); `params` is (scale, epsilon), then beta."""
    dim = theta.shape[0]
    epsilon, mean = params[1], 0.0
    for j in range(dim):
        mean += theta[j] / dim
    signal = 0.0
    for j in range(dim):
        row[j] = rng.standard_normal()
        signal += row[j] * (params[2 + j] + 0.5 * epsilon * (theta[j] + mean))
    return signal


@jitable
def sample_location_scale(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """y = u'(beta + M theta) + sqrt(1 + scale |theta|^2) N(0, 1)."""
    norm2 = 0.0
    for j in range(theta.shape[0]):
        norm2 += theta[j] * theta[j]
    signal = shifted_signal(rng, theta, params, row)
    row[theta.shape[0]] = signal + np.sqrt(1.0 + params[0] * norm2) * rng.standard_normal()


@jitable
def sample_location_labels(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """y ~ Bernoulli(s(u'(beta + M theta)))."""
    signal = shifted_signal(rng, theta, params, row)
    row[theta.shape[0]] = 1.0 if rng.random() < sigmoid(signal) else 0.0


def location_scale(
    dim: int = 3, *, loss: Literal["linear", "logistic"] = "linear", epsilon: float = 0.5, scale: float = 0.5,
    beta: ArrayLike | None = None, theta_0: ArrayLike | None = None,
) -> Problem:  # fmt: skip
    """A regression whose responses shift (epsilon) and, if linear, spread (scale) with theta."""
    base = target_parameter(beta, dim)
    if loss not in ("linear", "logistic"):
        raise InputError.of("loss", "be 'linear' or 'logistic'", loss)
    if not (np.isfinite(epsilon) and epsilon < 1.0):
        raise InputError.of("epsilon", "be below 1, or there is no stable point", epsilon)
    if not (np.isfinite(scale) and scale >= 0.0):
        raise InputError.of("scale", "be at least 0 and finite", scale)
    row_loss, sample = (LINEAR, sample_location_scale) if loss == "linear" else (LOGISTIC, sample_location_labels)
    return Problem(
        dim,
        row_loss.gradient,
        sample,
        row_loss.curvature,
        row_loss.hessian,
        row_loss.loss,
        row_size=dim + 1,
        params=np.concatenate([[scale, epsilon], base, [1.0 if loss == "linear" else 0.0]]),
        theta_0=theta_0,
        name="location-scale",
        settings={"dim": dim, "loss": loss, "epsilon": epsilon, "scale": scale},
        solve=partial(solve_location_scale, base, loss, epsilon, scale),
    )


def solve_location_scale(beta: Vector, loss: str, epsilon: float, scale: float) -> Truth:
    """theta*, Sigma and, where it is known, the optimum; symbols as in the module's text."""
    dim = beta.size
    K = np.eye(dim) - epsilon * (0.5 * np.eye(dim) + 0.5 / dim)
    inverse = np.linalg.inv(K)
    star = inverse @ beta
    if loss == "linear":
        sigma = (1.0 + scale * float(star @ star)) * inverse @ inverse.T
        optimum = np.linalg.solve(K.T @ K + scale * np.eye(dim), K.T @ beta)
        return Truth(star, sigma, np.asarray(optimum, dtype=np.float64))
    x, weights = normal_grid()
    length = float(np.linalg.norm(star))
    s = 1.0 / (1.0 + np.exp(-length * x))
    bends = s * (1.0 - s)
    along = np.outer(star, star) / length**2 if length > 0.0 else np.zeros((dim, dim))
    H = float(weights @ (bends * x**2)) * along + float(weights @ bends) * (np.eye(dim) - along)
    return Truth(star, inverse @ np.linalg.inv(H) @ inverse.T)
