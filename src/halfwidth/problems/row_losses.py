"""The losses of the built-in problems, one row at a time: gradient, curvature bound, Hessian and value.

| loss     | row    | value at theta                                          | last of `params` |
|----------|--------|---------------------------------------------------------|------------------|
| LINEAR   | (u, y) | scale (u'theta - y)^2 / 2                               | scale            |
| LOGISTIC | (u, y) | log(1 + exp(u'theta)) - y u'theta + ridge |theta|^2 / 2 | ridge            |
| POISSON  | (u, y) | exp(u'theta) - y u'theta                                |                  |
| MEAN     | x      | |theta - x|^2 / 2                                       |                  |

The functions have the signatures that `halfwidth.problems.base` describes. The curvature is an upper bound along the
way to the row's own minimum, at which capped steps stop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Curvature, Gradient, Hessian, Loss, Problem


class RowLoss(NamedTuple):
    """The functions of a loss; `Problem(dim, **loss._asdict(), sample=...)` takes them all."""

    gradient: Gradient
    curvature: Curvature
    hessian: Hessian
    loss: Loss


@jitable
def fitted(theta: Vector, row: Vector) -> float:
    """u'theta."""
    eta = 0.0
    for j in range(theta.shape[0]):
        eta += theta[j] * row[j]
    return eta


@jitable
def fitted_along(theta: Vector, row: Vector, direction: Vector) -> float:
    """u'theta, with u written to the direction of a Hessian."""
    eta = 0.0
    for j in range(theta.shape[0]):
        direction[j] = row[j]
        eta += theta[j] * row[j]
    return eta


@jitable
def squared_norm(row: Vector, dim: int) -> float:
    """|u|^2."""
    norm2 = 0.0
    for j in range(dim):
        norm2 += row[j] * row[j]
    return norm2


@jitable
def linear_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """scale (u'theta - y) u."""
    dim = theta.shape[0]
    residual = -row[dim]
    for j in range(dim):
        residual += theta[j] * row[j]
    residual *= params[params.shape[0] - 1]
    for j in range(dim):
        grad[j] = residual * row[j]


@jitable
def linear_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """scale |u|^2."""
    scale: float = params[params.shape[0] - 1]
    return squared_norm(row, theta.shape[0]) * scale


@jitable
def linear_hessian(theta: Vector, row: Vector, params: Vector, direction: Vector) -> tuple[float, float]:
    """scale u u'."""
    for j in range(theta.shape[0]):
        direction[j] = row[j]
    return params[params.shape[0] - 1], 0.0


@jitable
def linear_loss(theta: Vector, row: Vector, params: Vector) -> float:
    """scale (u'theta - y)^2 / 2."""
    dim = theta.shape[0]
    residual = -row[dim]
    for j in range(dim):
        residual += theta[j] * row[j]
    loss: float = 0.5 * params[params.shape[0] - 1] * residual * residual
    return loss


LINEAR = RowLoss(linear_gradient, linear_curvature, linear_hessian, linear_loss)


@jitable
def sigmoid(x: float) -> float:
    """The logistic function s(x) = 1 / (1 + exp(-x))."""
    e: float = np.exp(-abs(x))  # never overflows, and leaves no branch on the sign, which no processor can guess
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


@jitable
def logistic_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """(s(u'theta) - y) u + ridge theta."""
    dim = theta.shape[0]
    ridge = params[params.shape[0] - 1]
    residual = sigmoid(fitted(theta, row)) - row[dim]
    for j in range(dim):
        grad[j] = residual * row[j] + ridge * theta[j]


@jitable
def logistic_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """|u|^2 / 4 + ridge, since s' is at most 1/4."""
    ridge: float = params[params.shape[0] - 1]
    return 0.25 * squared_norm(row, theta.shape[0]) + ridge


@jitable
def logistic_hessian(theta: Vector, row: Vector, params: Vector, direction: Vector) -> tuple[float, float]:
    """s(u'theta) (1 - s(u'theta)) u u' + ridge I."""
    s = sigmoid(fitted_along(theta, row, direction))
    return s * (1.0 - s), params[params.shape[0] - 1]


@jitable
def logistic_loss(theta: Vector, row: Vector, params: Vector) -> float:
    """log(1 + exp(u'theta)) - y u'theta + ridge |theta|^2 / 2."""
    margin = 0.0
    norm2 = 0.0
    for j in range(theta.shape[0]):
        margin += theta[j] * row[j]
        norm2 += theta[j] * theta[j]
    softplus = max(margin, 0.0) + np.log1p(np.exp(-abs(margin)))
    loss: float = softplus - row[len(theta)] * margin + 0.5 * params[params.shape[0] - 1] * norm2
    return loss


LOGISTIC = RowLoss(logistic_gradient, logistic_curvature, logistic_hessian, logistic_loss)


@jitable
def poisson_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """(exp(u'theta) - y) u."""
    dim = theta.shape[0]
    residual = np.exp(fitted(theta, row)) - row[dim]
    for j in range(dim):
        grad[j] = residual * row[j]


@jitable
def poisson_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """The largest curvature between theta and the row's own minimum, where the mean is y."""
    dim = theta.shape[0]
    mean: float = max(np.exp(fitted(theta, row)), row[dim])
    return mean * squared_norm(row, dim)


@jitable
def poisson_hessian(theta: Vector, row: Vector, params: Vector, direction: Vector) -> tuple[float, float]:
    """exp(u'theta) u u'."""
    return np.exp(fitted_along(theta, row, direction)), 0.0


@jitable
def poisson_loss(theta: Vector, row: Vector, params: Vector) -> float:
    """exp(u'theta) - y u'theta."""
    margin = fitted(theta, row)
    loss: float = np.exp(margin) - row[len(theta)] * margin
    return loss


POISSON = RowLoss(poisson_gradient, poisson_curvature, poisson_hessian, poisson_loss)


@jitable
def mean_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """theta - x."""
    for j in range(theta.shape[0]):
        grad[j] = theta[j] - row[j]


@jitable
def mean_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """1, everywhere."""
    return 1.0


@jitable
def mean_hessian(theta: Vector, row: Vector, params: Vector, direction: Vector) -> tuple[float, float]:
    """The identity."""
    direction[:] = 0.0
    return 0.0, 1.0


@jitable
def mean_loss(theta: Vector, row: Vector, params: Vector) -> float:
    """|theta - x|^2 / 2."""
    distance2 = 0.0
    for j in range(theta.shape[0]):
        distance2 += (theta[j] - row[j]) ** 2
    return 0.5 * distance2


MEAN = RowLoss(mean_gradient, mean_curvature, mean_hessian, mean_loss)


def is_quadratic(problem: Problem) -> bool:
    """Whether the problem's loss is known to be quadratic in theta, row by row: that of `LINEAR` or `MEAN`."""
    return any((problem.gradient, problem.hessian) == (loss.gradient, loss.hessian) for loss in (LINEAR, MEAN))
