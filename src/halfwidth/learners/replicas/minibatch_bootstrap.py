"""The mini-batch bootstrap for dependent rows (R. Liu, X. Chen and Z. Shang, arXiv:2302.12717).

    theta_t   = theta_{t-1}   -       eta_t mean_{i in I_t} g(theta_{t-1}, x_i)
    theta^b_t = theta^b_{t-1} - w^b_t eta_t mean_{i in I_t} g(theta^b_{t-1}, x_i)

One step for each batch I_t of consecutive rows, one weight for each copy and batch (0 or 2, as in
`halfwidth.learners.replicas.multiplier_bootstrap`). Sums over a batch carry the covariances of rows within it, so that
the copies see the long-run covariance when batches are longer than the memory of the rows. The steps are counted in
batches. Between two steps theta stays deployed; a batch that is not yet full counts for nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.checks import check_count
from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import specialise
from halfwidth.learners.base import Vector
from halfwidth.learners.replicas.multiplier_bootstrap import CopiesResult, Rule, draw_weights
from halfwidth.learners.warm_start import no_cap, no_rows
from halfwidth.problems import Problem


def perturb_batches(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop over the trajectory, which is member 0 and has weight 1, and its copies."""

    def minibatch_steps(  # type: ignore[no-untyped-def]
        draw,
        rng,
        theta,
        state,
        params,
        rows,
        steps,
        grad,
        thetas,
        origin,
        weight_rng,
        first,
        batch,
        weights,
        members,
        totals,
        pulls,
        bend,
    ):
        dim = theta.shape[0]
        for i in range(rows.shape[0]):
            row = rows[i]
            if draw:
                sample(rng, theta, state, params, row)
            if (first + i) % batch == 0:
                draw_weights(weight_rng, weights[1:])
                pulls[:] = 0.0
                bend[0] = 0.0
            bend[0] += curvature(theta, row, params) / batch
            for b in range(members.shape[0]):
                if weights[b] > 0.0:
                    gradient(members[b], row, params, grad)
                    for j in range(dim):
                        pulls[b, j] += grad[j]
            if (first + i + 1) % batch == 0:
                step = steps[i]
                if step * bend[0] > 1.0:
                    step = 1.0 / bend[0]
                for b in range(members.shape[0]):
                    for j in range(dim):
                        members[b, j] -= weights[b] * step * pulls[b, j] / batch
                        totals[b, j] += members[b, j] - origin[j]
                theta[:] = members[0]
            for j in range(dim):
                thetas[i, j] = theta[j]

    return minibatch_steps


class MiniBatchBootstrap(CopiesResult):
    """Mini-batch SGD with B perturbed copies; `batch` rows make a step."""

    name = "bootstrap-minibatch"

    def __init__(
        self, problem: Problem, *, copies: int = 100, batch: int = 25, rule: Rule = "normal", **common: Any
    ) -> None:
        super().__init__(problem, copies=copies, rule=rule, **common)
        self.batch = check_count("batch", batch)
        self._pulls = np.zeros_like(self._members)
        self._bend = np.zeros(1)
        self._kernel = specialise(
            perturb_batches, problem.sample or no_rows, problem.gradient, problem.curvature or no_cap
        )

    def _rows_needed(self) -> int:
        return 2 * self.batch

    def _terms(self) -> tuple[int, int]:
        batches = (self.n_iterates + self.burn_in) // self.batch - self.burn_in // self.batch
        return batches, batches * self.batch

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> None:
        self._kernel(
            draw,
            self.rng,
            self._theta,
            self._state,
            self.problem.params,
            rows,
            self.step((k - 1) // self.batch + 1),
            self._grad,
            thetas,
            self._theta_0,
            self._weight_rng,
            k[0] - 1,
            self.batch,
            self._weights,
            self._members,
            self._totals,
            self._pulls,
            self._bend,
        )
