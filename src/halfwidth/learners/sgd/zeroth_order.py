"""Zeroth-order SGD: gradients from differences of the loss.

    g_j = (d/m) (F(theta + h_k e_j, x_k) - F(theta - h_k e_j, x_k)) / (2 h_k)   for m of the d coordinates, 0 elsewhere

(J. Kiefer and J. Wolfowitz 1952; inference: X. Chen, Z. Lai, H. Li and Y. Zhang, JASA 119, 2024). The coordinates are
drawn without replacement for each row. Both evaluations see the same row, so h_k may shrink quickly, and the bias
h_k^2 is negligible. With all coordinates (the default, 2d evaluations a row) the limit covariance is that of SGD with
gradients; with m < d the gradient noise is larger, up to d/m times, and the watchers see it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import specialise
from halfwidth.learners.base import Learner, Vector
from halfwidth.learners.warm_start import no_cap, no_rows
from halfwidth.problems import Problem
from halfwidth.schedules import PowerStep, Schedule


def probe(sample: Function, loss: Function, curvature: Function) -> Function:
    """The loop of SGD with differences along coordinates; capped so that no probed move passes the row's minimum."""

    def zeroth_steps(  # type: ignore[no-untyped-def]
        draw, rng, theta, state, params, rows, steps, thetas, spacings, pick_rng, order, moves
    ):
        dim, probes = theta.shape[0], moves.shape[0]
        for i in range(rows.shape[0]):
            row = rows[i]
            if draw:
                sample(rng, theta, state, params, row)
            if probes < dim:
                for p in range(probes):
                    q = p + int(pick_rng.random() * (dim - p))
                    order[p], order[q] = order[q], order[p]
            step = steps[i] * dim / probes
            kappa = curvature(theta, row, params)
            if step * kappa > 1.0:
                step = 1.0 / kappa
            h = spacings[i]
            for p in range(probes):
                j = order[p]
                here = theta[j]
                theta[j] = here + h
                above = loss(theta, row, params)
                theta[j] = here - h
                below = loss(theta, row, params)
                theta[j] = here
                moves[p] = step * (above - below) / (2.0 * h)
            for p in range(probes):
                theta[order[p]] -= moves[p]
            for j in range(dim):
                thetas[i, j] = theta[j]

    return zeroth_steps


class ZerothOrderSGD(Learner):
    """SGD that knows the loss only; `probes` coordinates a row (all by default), `spacing` the schedule h_k."""

    name = "zeroth-order"

    def __init__(
        self, problem: Problem, *, probes: int | None = None, spacing: Schedule | None = None, **common: Any
    ) -> None:
        super().__init__(problem, **common)
        if problem.loss is None:
            raise InputError(
                f"zeroth-order SGD needs the loss, and problem {problem.name!r} has none; "
                "give Problem(..., loss=...) or use SGD with gradients"
            )
        probes = problem.dim if probes is None else check_count("probes", probes)
        if probes > problem.dim:
            raise InputError.of("probes", f"be at most the dimension {problem.dim}", probes)
        self.spacing: Schedule = PowerStep(0.1, 0.505) if spacing is None else spacing
        self._pick_rng = self.rng.spawn(1)[0]  # of its own, so that the rows are those of every other learner
        self._order = np.arange(problem.dim)
        self._moves = np.empty(probes)
        self._kernel = specialise(probe, problem.sample or no_rows, problem.loss, problem.curvature or no_cap)

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
            self.spacing(k),
            self._pick_rng,
            self._order,
            self._moves,
        )
