"""Implicit SGD: the gradient is taken where the step ends, so no step is too large.

    theta_k = theta_{k-1} - eta_k g(theta_k, x_k)

(P. Toulis and E. M. Airoldi, Annals of Statistics 45, 2017). For rows whose Hessian is w u u' + c I the gradient is
l'(u'theta) u + c theta + const, and with g_0 = g(theta_{k-1}) the step is

    theta_k = theta_{k-1} - eta_k / (1 + eta_k c) (g_0 + xi u),   xi = l'(u'theta_k) - l'(u'theta_{k-1}):

one scalar equation in xi. Its root lies between 0 and the xi of the explicit step, and its left side xi - xi(theta)
grows with slope 1 + w |u|^2 eta/(1 + eta c): Newton's steps, bisection where they leave the bracket or do not shrink
by half. Squared loss takes one step. xi is read off gradients, so any problem with a `hessian` can be learned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import jitable, specialise
from halfwidth.learners.base import Learner, Vector
from halfwidth.learners.warm_start import no_rows
from halfwidth.problems import Problem

MOST_ITERATIONS = 50
PRECISION = 1e-12


@jitable
def change_of_slope(theta, grad, start, grad_0, u, norm2, c):  # type: ignore[no-untyped-def]
    """l'(u'theta) - l'(u'start), from the gradients at both."""
    change = 0.0
    for j in range(theta.shape[0]):
        change += u[j] * (grad[j] - grad_0[j] - c * (theta[j] - start[j]))
    return change / norm2


def descend_implicitly(sample: Function, gradient: Function, hessian: Function) -> Function:
    """The loop of implicit SGD around a problem's functions."""

    def implicit_steps(  # type: ignore[no-untyped-def]
        draw, rng, theta, state, params, rows, steps, thetas, start, grad_0, grad, u
    ):
        dim = theta.shape[0]
        for i in range(rows.shape[0]):
            row = rows[i]
            if draw:
                sample(rng, theta, state, params, row)
            gradient(theta, row, params, grad_0)
            w, c = hessian(theta, row, params, u)
            step = steps[i] / (1.0 + steps[i] * c)
            norm2 = 0.0
            for j in range(dim):
                norm2 += u[j] * u[j]
                start[j] = theta[j]
                theta[j] = start[j] - step * grad_0[j]
            if norm2 > 0.0:
                gradient(theta, row, params, grad)
                value = change_of_slope(theta, grad, start, grad_0, u, norm2, c)
                low, high, xi = min(value, 0.0), max(value, 0.0), 0.0
                last = 2.0 * (high - low)
                for _ in range(MOST_ITERATIONS):
                    w, c = hessian(theta, row, params, u)
                    gap = xi - value
                    if gap < 0.0:
                        low = xi
                    else:
                        high = xi
                    move = gap / (1.0 + w * norm2 * step)
                    if abs(move) > 0.5 * last or not low <= xi - move <= high:
                        move = xi - 0.5 * (low + high)
                    last = abs(move)
                    xi -= move
                    for j in range(dim):
                        theta[j] = start[j] - step * (grad_0[j] + xi * u[j])
                    gradient(theta, row, params, grad)
                    value = change_of_slope(theta, grad, start, grad_0, u, norm2, c)
                    if abs(xi - value) <= PRECISION * (abs(xi) + abs(value)):
                        break
            for j in range(dim):
                thetas[i, j] = theta[j]

    return implicit_steps


class ImplicitSGD(Learner):
    """SGD with implicit steps; needs `Problem.hessian`."""

    name = "implicit"

    def __init__(self, problem: Problem, **common: Any) -> None:
        super().__init__(problem, **common)
        if problem.hessian is None:
            raise InputError(
                f"implicit SGD needs the rows' Hessian, and problem {problem.name!r} has none; "
                "give Problem(..., hessian=...) or use capped SGD"
            )
        self._work = tuple(np.empty(problem.dim) for _ in range(4))
        self._kernel = specialise(descend_implicitly, problem.sample or no_rows, problem.gradient, problem.hessian)

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> None:
        self._kernel(
            draw,
            self.rng,
            self._theta,
            self._state,
            self.problem.params,
            rows,
            self.step(k),
            thetas,
            *self._work,
        )
