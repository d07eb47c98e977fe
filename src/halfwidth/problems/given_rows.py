"""Regression on given rows as a problem for SGD learners: the losses of `halfwidth.families`, row by row.

A row holds (z_1, ..., z_d, y, weight, offset); the parameters are a ridge for each coefficient, then the quantile,
Huber's threshold or the dispersion. With eta = offset + z'theta the gradient is
weight * slope(eta, y) * z + ridge * theta.
"""

from __future__ import annotations

import numpy as np

from halfwidth.families import Loss
from halfwidth.families.dispersed import Dispersed
from halfwidth.families.huber import HUBER_TUNING
from halfwidth.families.quantile import Quantile
from halfwidth.kernels.arrays import Function, Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem
from halfwidth.problems.row_losses import sigmoid

EXTRA_COLUMNS = 3


@jitable
def predictor(theta: Vector, row: Vector) -> float:
    """eta = offset + z'theta."""
    dim = len(theta)
    eta: float = row[dim + 2]
    for j in range(dim):
        eta += theta[j] * row[j]
    return eta


@jitable
def row_gradient(slope: float, theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """weight * slope * z + ridge * theta."""
    dim = len(theta)
    pull = slope * row[dim + 1]
    for j in range(dim):
        grad[j] = pull * row[j] + params[j] * theta[j]


@jitable
def row_curvature(bend: float, theta: Vector, row: Vector, params: Vector) -> float:
    """bend * weight * |z|^2 + the largest ridge."""
    dim = len(theta)
    norm2, ridge = 0.0, 0.0
    for j in range(dim):
        norm2 += row[j] * row[j]
        ridge = max(ridge, params[j])
    weight: float = row[dim + 1]
    return bend * weight * norm2 + ridge


@jitable
def linear_rows_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """The slope is eta - y."""
    row_gradient(predictor(theta, row) - row[len(theta)], theta, row, params, grad)


@jitable
def linear_rows_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """The slope changes by at most 1 per unit of eta."""
    bound: float = row_curvature(1.0, theta, row, params)
    return bound


@jitable
def logistic_rows_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """The slope is s(eta) - y."""
    row_gradient(sigmoid(predictor(theta, row)) - row[len(theta)], theta, row, params, grad)


@jitable
def logistic_rows_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """The slope changes by at most 1/4 per unit of eta."""
    bound: float = row_curvature(0.25, theta, row, params)
    return bound


@jitable
def poisson_rows_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """The slope is exp(eta) - y, with eta capped at 50."""
    rate = np.exp(min(predictor(theta, row), 50.0))
    row_gradient(rate - row[len(theta)], theta, row, params, grad)


@jitable
def poisson_rows_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """The largest change of the slope on the way to the row's own minimum, where the mean is y."""
    rate = np.exp(min(predictor(theta, row), 50.0))
    bound: float = row_curvature(max(rate, row[len(theta)]), theta, row, params)
    return bound


@jitable
def quantile_rows_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """The slope is 1{y < eta} - tau."""
    below = 1.0 if row[len(theta)] < predictor(theta, row) else 0.0
    row_gradient(below - params[len(theta)], theta, row, params, grad)


@jitable
def quantile_rows_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """The slope is a step function: there is no curvature to cap at."""
    bound: float = row_curvature(0.0, theta, row, params)
    return bound


@jitable
def huber_rows_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """The slope is eta - y, clipped at the threshold."""
    threshold = params[len(theta)]
    slope = min(max(predictor(theta, row) - row[len(theta)], -threshold), threshold)
    row_gradient(slope, theta, row, params, grad)


@jitable
def gamma_rows_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """The slope is 1 - y exp(-eta), with -eta capped at 50."""
    ratio = row[len(theta)] * np.exp(min(-predictor(theta, row), 50.0))
    row_gradient(1.0 - ratio, theta, row, params, grad)


@jitable
def gamma_rows_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """The largest change of the slope on the way to the row's own minimum, where y exp(-eta) is 1."""
    ratio = row[len(theta)] * np.exp(min(-predictor(theta, row), 50.0))
    bound: float = row_curvature(max(ratio, 1.0), theta, row, params)
    return bound


@jitable
def negative_binomial_rows_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """The slope is (m - y) / (1 + alpha m), m = exp(eta), with eta capped at 50."""
    rate = np.exp(min(predictor(theta, row), 50.0))
    row_gradient((rate - row[len(theta)]) / (1.0 + params[len(theta)] * rate), theta, row, params, grad)


@jitable
def negative_binomial_rows_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """m (1 + alpha y) / (1 + alpha m)^2 is at most the larger of m and y, and at most (1/alpha + y) / 4."""
    rate = np.exp(min(predictor(theta, row), 50.0))
    y = row[len(theta)]
    bound: float = row_curvature(min(max(rate, y), 0.25 * (1.0 / params[len(theta)] + y)), theta, row, params)
    return bound


_GRADIENTS: dict[str, tuple[Function, Function]] = {
    "linear": (linear_rows_gradient, linear_rows_curvature),
    "logistic": (logistic_rows_gradient, logistic_rows_curvature),
    "poisson": (poisson_rows_gradient, poisson_rows_curvature),
    "gamma": (gamma_rows_gradient, gamma_rows_curvature),
    "negative-binomial": (negative_binomial_rows_gradient, negative_binomial_rows_curvature),
    "quantile": (quantile_rows_gradient, quantile_rows_curvature),
    "huber": (huber_rows_gradient, linear_rows_curvature),
}


def regression_problem(loss: Loss, ridge: Vector, theta_0: Vector) -> Problem:
    """A problem without a sampler: rows are given. Residuals are in units of their scale where the loss has one."""
    gradient, curvature = _GRADIENTS[loss.name]
    tuning = HUBER_TUNING
    if isinstance(loss, Quantile):
        tuning = loss.quantile
    elif isinstance(loss, Dispersed):
        tuning = loss.scale
    return Problem(
        theta_0.size,
        gradient,
        curvature=curvature,
        row_size=theta_0.size + EXTRA_COLUMNS,
        params=np.append(ridge, tuning),
        theta_0=theta_0,
        name=f"{loss.name}-rows",
    )
