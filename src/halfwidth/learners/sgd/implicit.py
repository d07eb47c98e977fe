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

from typing import ClassVar, NamedTuple

import numpy as np

from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.compile import jitable
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import note
from halfwidth.learners.base import Learner
from halfwidth.learners.own_result import needed_hessian
from halfwidth.state.fields import Fields

MOST_ITERATIONS = 50
PRECISION = 1e-12


class ImplicitStep(NamedTuple):
    """Scratch space for one implicit step, each a vector of the problem's dimension."""

    start: Vector
    """theta_{k-1}."""
    grad_0: Vector
    """The gradient there."""
    grad: Vector
    """The gradient at the current trial of theta_k."""
    u: Vector
    """The direction of the row's Hessian."""


@jitable
def change_of_slope(theta: Vector, work: ImplicitStep, norm2: float, c: float) -> float:
    """l'(u'theta) - l'(u'start), from the gradients at both."""
    change = 0.0
    for j in range(theta.shape[0]):
        change += work.u[j] * (work.grad[j] - work.grad_0[j] - c * (theta[j] - work.start[j]))
    return change / norm2


def descend_implicitly(sample: Function, gradient: Function, hessian: Function) -> Function:
    """The loop of implicit SGD around a problem's functions."""

    def implicit_steps(rng: np.random.Generator | None, data: RowData, path: Path, work: ImplicitStep) -> None:
        theta, params = path.theta, data.params
        start, grad_0, grad, u = work
        dim = theta.shape[0]
        for i in range(data.rows.shape[0]):
            row = data.rows[i]
            sample(rng, theta, data.state, params, row)
            gradient(theta, row, params, grad_0)
            w, c = hessian(theta, row, params, u)
            step = path.steps[i] / (1.0 + path.steps[i] * c)
            norm2 = 0.0
            for j in range(dim):
                norm2 += u[j] * u[j]
                start[j] = theta[j]
                theta[j] = start[j] - step * grad_0[j]
            if norm2 > 0.0:
                gradient(theta, row, params, grad)
                value = change_of_slope(theta, work, norm2, c)
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
                    value = change_of_slope(theta, work, norm2, c)
                    if abs(xi - value) <= PRECISION * (abs(xi) + abs(value)):
                        break
            note(theta, path.thetas[i])

    return implicit_steps


class ImplicitSGD(Learner):
    """SGD with implicit steps; needs `Problem.hessian`.

    Notes
    -----
    theta_k = theta_{k-1} - eta_k g(theta_k, x_k): the step ends where the gradient is taken, so that no step size
    diverges. The average has the limit of explicit SGD.

    References
    ----------
    P. Toulis and E. M. Airoldi, *Asymptotic and finite-sample properties of estimators based on stochastic gradients*,
    Annals of Statistics 45 (2017).

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.ImplicitSGD(hw.problem("iid-linear", dim=2), step=hw.PowerStep(100.0), seed=0).run(1_000)
    >>> bool(np.isfinite(learner.theta_bar).all())
    True
    """

    name = "implicit"
    kept: ClassVar[Fields] = {}

    def _prepare(self) -> None:
        hessian = needed_hessian(self.problem, "implicit SGD", "capped SGD")
        self._work = ImplicitStep(*(np.empty(self.problem.dim) for _ in range(4)))
        self._set_loops(descend_implicitly, self.problem.gradient, hessian)

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        self._run_loop(draw, rows, thetas, self.step(k), 0, self._work)
