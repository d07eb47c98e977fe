"""Trajectory regression: the curvature from regressing gradients on the iterates they were taken at.

    g_k = A (theta_{k-1} - theta*) + noise,  A_hat = C_{g theta} C_{theta theta}^-1,  S_hat = C_{gg} - A_hat C_{theta g}

with C the centred second moments along the run; Sigma_hat = A_hat^-1 S_hat A_hat^-T (Y. Ni and X. Huo, 2026,
arXiv:2604.10814, who regress the increments -eta_k g_k). No Hessian is needed, and the rate n^-(1-a)/2 is the best
without one.

The noise must not depend on the past: where rows depend on each other theta_{k-1} knows part of the noise of row k, the
slope is biased, and S_hat has no covariances between rows. The result carries the flag `iid-only`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.inference import Diagnostics, NormalLaw, Result
from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import specialise
from halfwidth.learners.base import Vector
from halfwidth.learners.own_result import OwnResult, sandwich
from halfwidth.learners.warm_start import no_cap, no_rows
from halfwidth.problems import Problem


def record(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop of capped SGD that notes every (theta_{k-1} - theta_0, g_k)."""

    def recorded_steps(  # type: ignore[no-untyped-def]
        draw, rng, theta, state, params, rows, steps, grad, thetas, origin, notes
    ):
        dim = theta.shape[0]
        for i in range(rows.shape[0]):
            row = rows[i]
            if draw:
                sample(rng, theta, state, params, row)
            gradient(theta, row, params, grad)
            step = steps[i]
            kappa = curvature(theta, row, params)
            if step * kappa > 1.0:
                step = 1.0 / kappa
            for j in range(dim):
                notes[i, j] = theta[j] - origin[j]
                notes[i, dim + j] = grad[j]
                theta[j] -= step * grad[j]
                thetas[i, j] = theta[j]

    return recorded_steps


class TrajectoryRegression(OwnResult):
    """SGD whose covariance comes from its own gradients and iterates; independent rows only."""

    name = "trajectory-regression"

    def __init__(self, problem: Problem, **common: Any) -> None:
        super().__init__(problem, **common)
        self._notes = np.empty((len(self._thetas), 2 * problem.dim))
        self._sums = np.zeros(2 * problem.dim)
        self._products = np.zeros((2 * problem.dim, 2 * problem.dim))
        self._grad = np.empty(problem.dim)
        self._kernel = specialise(record, problem.sample or no_rows, problem.gradient, problem.curvature or no_cap)

    def _forget(self) -> None:
        self._sums[:] = 0.0
        self._products[:] = 0.0

    def _rows_needed(self) -> int:
        return 2 * self.problem.dim + 2

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> None:
        notes = self._notes[: len(rows)]
        self._kernel(
            draw,
            self.rng,
            self._theta,
            self._state,
            self.problem.params,
            rows,
            self.step(k),
            self._grad,
            thetas,
            self._theta_0,
            notes,
        )
        self._sums += notes.sum(axis=0)
        self._products += notes.T @ notes

    def _own_result(self) -> Result:
        n, dim = self.n_iterates, self.problem.dim
        mean = self._sums / n
        moments = self._products / n - np.outer(mean, mean)
        places, cross = moments[:dim, :dim], moments[:dim, dim:]
        A: Vector = np.linalg.lstsq(places, cross, rcond=None)[0].T.astype(np.float64)
        covariance = sandwich(A, moments[dim:, dim:] - A @ cross)
        flag = (
            "iid-only",
            "trajectory regression is valid for independent rows only: with rows that depend on each other or on "
            "theta its standard errors are wrong; use 'obm' there",
        )
        diagnostics = Diagnostics(float(n), flags=(flag,))
        return Result(self.theta_bar, covariance, n, NormalLaw(), self.name, diagnostics)
