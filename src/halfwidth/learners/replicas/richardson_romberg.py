"""Richardson-Romberg: two trajectories on the same rows, one with half the steps, combined against the bias.

    theta_k = 2 theta_k(eta/2) - theta_k(eta)

E theta_k(eta) = theta* + c eta_k + o(eta_k) for losses that are not quadratic and for rows that depend on each other;
the combination has no term in eta_k (A. Dieuleveut, A. Durmus and F. Bach, Annals of Statistics 48, 2020, for constant
steps; D. Huo, Y. Chen and Q. Xie, 2023, for Markov data). Both averages have the same limit and the same noise, so the
combined average keeps Sigma. Watchers see the combined trajectory, which stays correlated as long as the one with half
the steps: the method of this name takes few, long batches (t over 6) rather than many short ones. Exogenous streams
only: where the data answer, the two trajectories would need worlds of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import specialise
from halfwidth.learners.base import Learner, Vector
from halfwidth.learners.warm_start import no_cap, no_rows
from halfwidth.problems import Problem


def combine(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop over both trajectories; the smaller step is half the larger one, capped or not."""

    def richardson_steps(  # type: ignore[no-untyped-def]
        draw, rng, theta, state, params, rows, steps, grad, thetas, pair
    ):
        for i in range(rows.shape[0]):
            row = rows[i]
            if draw:
                sample(rng, theta, state, params, row)
            step = steps[i]
            kappa = curvature(pair[0], row, params)
            if step * kappa > 1.0:
                step = 1.0 / kappa
            for t in range(2):
                gradient(pair[t], row, params, grad)
                for j in range(theta.shape[0]):
                    pair[t, j] -= step * grad[j]
                step *= 0.5
            for j in range(theta.shape[0]):
                theta[j] = 2.0 * pair[1, j] - pair[0, j]
                thetas[i, j] = theta[j]

    return richardson_steps


class RichardsonRomberg(Learner):
    """Two capped SGD trajectories, extrapolated to step zero row by row."""

    name = "richardson-romberg"

    def __init__(self, problem: Problem, **common: Any) -> None:
        super().__init__(problem, **common)
        self._pair = np.tile(self._theta, (2, 1))
        self._grad = np.empty(problem.dim)
        self._kernel = specialise(combine, problem.sample or no_rows, problem.gradient, problem.curvature or no_cap)

    def _start_at(self, theta: Vector) -> None:
        super()._start_at(theta)
        self._pair[:] = theta

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> None:
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
            self._pair,
        )
