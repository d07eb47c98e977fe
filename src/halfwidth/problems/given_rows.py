"""Regression on given rows as a problem for SGD learners: the losses of `halfwidth.families`, row by row.

A row holds (z_1, ..., z_d, y, weight, offset); the parameters are a ridge for each coefficient, then the quantile or
Huber's threshold. With eta = offset + z'theta the gradient is weight * slope(eta, y) * z + ridge * theta.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from halfwidth.families import Loss
from halfwidth.families.huber import HUBER_TUNING
from halfwidth.families.quantile import Quantile
from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem
from halfwidth.problems.seed_logistic import sigmoid

EXTRA_COLUMNS = 3


@jitable
def predictor(theta, row):  # type: ignore[no-untyped-def]
    dim = theta.shape[0]
    eta = row[dim + 2]
    for j in range(dim):
        eta += theta[j] * row[j]
    return eta


@jitable
def row_gradient(slope, theta, row, params, grad):  # type: ignore[no-untyped-def]
    dim = theta.shape[0]
    pull = slope * row[dim + 1]
    for j in range(dim):
        grad[j] = pull * row[j] + params[j] * theta[j]


@jitable
def row_curvature(bend, theta, row, params):  # type: ignore[no-untyped-def]
    dim = theta.shape[0]
    norm2 = 0.0
    ridge = 0.0
    for j in range(dim):
        norm2 += row[j] * row[j]
        ridge = max(ridge, params[j])
    return bend * row[dim + 1] * norm2 + ridge


@jitable
def linear_rows_gradient(theta, row, params, grad):  # type: ignore[no-untyped-def]
    row_gradient(predictor(theta, row) - row[theta.shape[0]], theta, row, params, grad)


@jitable
def linear_rows_curvature(theta, row, params):  # type: ignore[no-untyped-def]
    return row_curvature(1.0, theta, row, params)


@jitable
def logistic_rows_gradient(theta, row, params, grad):  # type: ignore[no-untyped-def]
    row_gradient(sigmoid(predictor(theta, row)) - row[theta.shape[0]], theta, row, params, grad)


@jitable
def logistic_rows_curvature(theta, row, params):  # type: ignore[no-untyped-def]
    return row_curvature(0.25, theta, row, params)


@jitable
def poisson_rows_gradient(theta, row, params, grad):  # type: ignore[no-untyped-def]
    rate = np.exp(min(predictor(theta, row), 50.0))
    row_gradient(rate - row[theta.shape[0]], theta, row, params, grad)


@jitable
def poisson_rows_curvature(theta, row, params):  # type: ignore[no-untyped-def]
    rate = np.exp(min(predictor(theta, row), 50.0))
    return row_curvature(max(rate, row[theta.shape[0]]), theta, row, params)


@jitable
def quantile_rows_gradient(theta, row, params, grad):  # type: ignore[no-untyped-def]
    below = 1.0 if row[theta.shape[0]] < predictor(theta, row) else 0.0
    row_gradient(below - params[theta.shape[0]], theta, row, params, grad)


@jitable
def quantile_rows_curvature(theta, row, params):  # type: ignore[no-untyped-def]
    return row_curvature(0.0, theta, row, params)


@jitable
def huber_rows_gradient(theta, row, params, grad):  # type: ignore[no-untyped-def]
    threshold = params[theta.shape[0]]
    slope = min(max(predictor(theta, row) - row[theta.shape[0]], -threshold), threshold)
    row_gradient(slope, theta, row, params, grad)


_GRADIENTS: dict[str, tuple[Function, Function]] = {
    "linear": (linear_rows_gradient, linear_rows_curvature),
    "logistic": (logistic_rows_gradient, logistic_rows_curvature),
    "poisson": (poisson_rows_gradient, poisson_rows_curvature),
    "quantile": (quantile_rows_gradient, quantile_rows_curvature),
    "huber": (huber_rows_gradient, linear_rows_curvature),
}


def regression_problem(loss: Loss, ridge: NDArray[np.float64], theta_0: NDArray[np.float64]) -> Problem:
    """A problem without a sampler: rows are given. Residuals are in units of their scale where the loss has one."""
    gradient, curvature = _GRADIENTS[loss.name]
    tuning = loss.quantile if isinstance(loss, Quantile) else HUBER_TUNING
    return Problem(
        theta_0.size,
        gradient,
        curvature=curvature,
        row_size=theta_0.size + EXTRA_COLUMNS,
        params=np.append(ridge, tuning),
        theta_0=theta_0,
        name=f"{loss.name}-rows",
    )
