"""Plug-in covariances: the sandwich A^-1 S A^-T with both parts estimated along the way.

| paper             | naive                                  | with `long_run=True`                           |
|-------------------|----------------------------------------|------------------------------------------------|
| A = E grad^2 F    | mean of the Hessians at theta_{k-1}    | the same at theta_bar_{k-1}                    |
| S, gradient noise | mean of g_k g_k' at theta_{k-1}        | batch means of g_k at theta_bar_{k-1}, centred |
| law               | normal                                 | t, one degree less than there are batches      |

The naive estimator (X. Chen, J. D. Lee, X. T. Tong and Y. Zhang, Annals of Statistics 48, 2020) assumes that gradients
of different rows are uncorrelated: under dependence its intervals are too short. Gradients at the average mix as fast
as the rows do, not as slowly as the iterates, so short batches give their long-run covariance; here between 128 and 256
batches are kept, of 50 rows at first.

Neither is right when the data answer to theta. There the mean field moves with theta also through the data, its
Jacobian is A = E grad^2 F + J with J = d/dtheta' E_{pi_theta'} grad F(theta), and the Hessian alone is not A.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import BatchStore
from halfwidth.errors import InputError
from halfwidth.inference import Diagnostics, NormalLaw, Result
from halfwidth.inference.laws import LimitLaw
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import specialise
from halfwidth.learners.base import Vector
from halfwidth.learners.own_result import OwnResult, sandwich
from halfwidth.learners.warm_start import no_cap, no_rows
from halfwidth.problems import Problem

FIRST_LENGTH = 50
MOST_BATCHES = 256
FEWEST_BATCHES = 8


def gather(sample: Function, gradient: Function, curvature: Function, hessian: Function) -> Function:
    """The loop of capped SGD that notes each row's gradient and Hessian, at the iterate or at the running mean."""

    def plug_in_steps(  # type: ignore[no-untyped-def]
        draw,
        rng,
        theta,
        state,
        params,
        rows,
        steps,
        grad,
        thetas,
        first,
        at_mean,
        mean,
        grads,
        directions,
        weights,
    ):
        dim = theta.shape[0]
        shift = 0.0
        for i in range(rows.shape[0]):
            row = rows[i]
            if draw:
                sample(rng, theta, state, params, row)
            point = mean if at_mean else theta
            weights[i], more = hessian(point, row, params, directions[i])
            shift += more
            gradient(point, row, params, grads[i])
            gradient(theta, row, params, grad)
            step = steps[i]
            kappa = curvature(theta, row, params)
            if step * kappa > 1.0:
                step = 1.0 / kappa
            for j in range(dim):
                theta[j] -= step * grad[j]
                thetas[i, j] = theta[j]
                mean[j] += (theta[j] - mean[j]) / (first + i + 1)
        return shift

    return plug_in_steps


class PlugIn(OwnResult):
    """SGD with a plug-in covariance; needs `Problem.hessian`."""

    name = "plug-in"

    def __init__(self, problem: Problem, *, long_run: bool = False, **common: Any) -> None:
        super().__init__(problem, **common)
        if problem.hessian is None:
            raise InputError(
                f"the plug-in covariance needs the rows' Hessian, and problem {problem.name!r} has none; "
                "give Problem(..., hessian=...) or use a method that watches iterates, like 'obm'"
            )
        self.long_run = long_run
        self._mean = self._theta.copy()
        self._curvature = np.zeros((problem.dim, problem.dim))
        self._noise = np.zeros((problem.dim, problem.dim))
        self._batches = _gradient_batches(problem.dim)
        self._grad = np.empty(problem.dim)
        self._grads, self._directions = np.empty_like(self._thetas), np.empty_like(self._thetas)
        self._row_weights = np.empty(len(self._thetas))
        self._kernel = specialise(
            gather, problem.sample or no_rows, problem.gradient, problem.curvature or no_cap, problem.hessian
        )

    def _start_at(self, theta: Vector) -> None:
        super()._start_at(theta)
        self._mean[:] = theta

    def _forget(self) -> None:
        self._curvature[:] = 0.0
        self._noise[:] = 0.0
        self._batches = _gradient_batches(self.problem.dim)

    def _rows_needed(self) -> int:
        return FEWEST_BATCHES * FIRST_LENGTH if self.long_run else self.problem.dim + 1

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> None:
        size = len(rows)
        grads, directions, weights = self._grads[:size], self._directions[:size], self._row_weights[:size]
        shift = self._kernel(
            draw,
            self.rng,
            self._theta,
            self._state,
            self.problem.params,
            rows,
            self.step(k),
            self._grad,
            thetas,
            k[0] - 1 - (self.burn_in if k[0] > self.burn_in else 0),
            self.long_run,
            self._mean,
            grads,
            directions,
            weights,
        )
        self._curvature += (directions.T * weights) @ directions
        self._curvature[np.diag_indices_from(self._curvature)] += shift
        if self.long_run:
            at = 0
            while at < len(grads):
                part = grads[at : at + self._batches.room]
                edges = self._batches.edges(len(part))
                self._batches.add(edges, np.add.reduceat(part, edges[:-1]), None)
                at += len(part)
        else:
            self._noise += grads.T @ grads

    def _own_result(self) -> Result:
        n = self.n_iterates
        law: LimitLaw = NormalLaw()
        noise, blocks = self._noise / n, float(n)
        if self.long_run:
            means = self._batches.sums.b[: self._batches.open] / self._batches.length
            centred = means - means.mean(axis=0)
            blocks = len(means) - 1.0
            noise, law = self._batches.length * centred.T @ centred / blocks, StudentLaw(blocks)
        covariance = sandwich(self._curvature / n, noise)
        name = "plug-in-longrun" if self.long_run else self.name
        return Result(self.theta_bar, covariance, n, law, name, Diagnostics(blocks))


def _gradient_batches(dim: int) -> BatchStore:
    return BatchStore(dim, FIRST_LENGTH, MOST_BATCHES, hessians=False)
