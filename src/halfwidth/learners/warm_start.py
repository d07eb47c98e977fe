"""A start from the first rows.

The rows are collected while theta_0 is deployed. Then `WARM_PASSES` passes over the buffer are made with the learner's
own steps, min(eta_k, 1 / kappa_k) where the problem bounds its curvature, and the average over the last pass is the
start.
"""

from __future__ import annotations

import numpy as np

from halfwidth.kernels.arrays import Function, Vector
from halfwidth.kernels.compile import specialise
from halfwidth.kernels.rows import RowData, no_rows
from halfwidth.kernels.steps import capped_step, no_cap
from halfwidth.problems import Problem
from halfwidth.schedules import Schedule

WARM_PASSES = 3


def collect(sample: Function) -> Function:
    """The loop that draws rows while theta stays where it is."""

    def collect_steps(rng: np.random.Generator, theta: Vector, data: RowData) -> None:
        for i in range(data.rows.shape[0]):
            sample(rng, theta, data.state, data.params, data.rows[i])

    return collect_steps


def passes(gradient: Function, curvature: Function) -> Function:
    """The loop over the buffer; theta ends as the average over the last pass."""

    def pass_steps(theta: Vector, params: Vector, buffer: Vector, steps: Vector, grad: Vector) -> None:
        total = np.zeros(theta.shape[0])
        for k in range(steps.shape[0]):
            row = buffer[k % buffer.shape[0]]
            if k % buffer.shape[0] == 0:
                total[:] = 0.0
            gradient(theta, row, params, grad)
            step = capped_step(steps[k], curvature(theta, row, params))
            for j in range(theta.shape[0]):
                theta[j] -= step * grad[j]
                total[j] += theta[j]
        theta[:] = total / buffer.shape[0]

    return pass_steps


def collect_rows(problem: Problem, rng: np.random.Generator, theta: Vector, state: Vector, rows: Vector) -> None:
    """Draw rows into `rows` while theta is deployed."""
    data = RowData(rows, state, np.asarray(problem.params))
    specialise(collect, problem.sample or no_rows)(rng, theta, data)


def warm_theta(problem: Problem, step: Schedule, theta: Vector, buffer: Vector) -> Vector:
    """Where a trajectory should begin, from the rows in the buffer."""
    start = theta.copy()
    steps = step(np.arange(1, WARM_PASSES * len(buffer) + 1))
    kernel = specialise(passes, problem.gradient, problem.curvature or no_cap)
    kernel(start, problem.params, buffer, steps, np.empty(problem.dim))
    return start
