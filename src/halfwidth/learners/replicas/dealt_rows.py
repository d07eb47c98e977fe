"""Several trajectories that share one stream: rows are dealt to them in turn.

Row k goes to one run, which steps by its own count; theta is the mean of the runs, and that is what is deployed, handed
to watchers and sampled from. The runs must not feel each other through the data: exogenous streams only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.checks import check_count
from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import specialise
from halfwidth.learners.base import Learner, Vector
from halfwidth.learners.warm_start import no_cap, no_rows
from halfwidth.problems import Problem


def deal(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop of capped SGD over rows dealt to several runs, which meet in their mean every `meet` rows."""

    def dealt_steps(  # type: ignore[no-untyped-def]
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
        who,
        share,
        first,
        meet,
        runs,
        totals,
    ):
        for i in range(rows.shape[0]):
            row = rows[i]
            if draw:
                sample(rng, theta, state, params, row)
            run = runs[who[i]]
            gradient(run, row, params, grad)
            step = steps[i]
            kappa = curvature(run, row, params)
            if step * kappa > 1.0:
                step = 1.0 / kappa
            for j in range(theta.shape[0]):
                run[j] -= step * grad[j]
                theta[j] -= share * step * grad[j]
                thetas[i, j] = theta[j]
                totals[who[i], j] += run[j] - origin[j]
            if meet > 0 and (first + i + 1) % meet == 0:
                for r in range(runs.shape[0]):
                    runs[r] = theta

    return dealt_steps


class DealtRuns(Learner):
    """K runs of capped SGD over rows dealt round-robin."""

    def __init__(self, problem: Problem, *, runs: int, **common: Any) -> None:
        super().__init__(problem, **common)
        check_count("runs", runs, at_least=2)
        self._runs = np.tile(self._theta, (runs, 1))
        self._totals = np.zeros((runs, problem.dim))  # of each run minus theta_0
        self._grad = np.empty(problem.dim)
        self._meet = 0
        self._kernel = specialise(deal, problem.sample or no_rows, problem.gradient, problem.curvature or no_cap)

    def _start_at(self, theta: Vector) -> None:
        super()._start_at(theta)
        self._runs[:] = theta

    def _forget(self) -> None:
        self._totals[:] = 0.0

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> None:
        runs = len(self._runs)
        self._deal(draw, rows, thetas, k, (k - 1) % runs, (k - 1) // runs + 1, 1.0 / runs)

    def _deal(
        self,
        draw: bool,
        rows: Vector,
        thetas: Vector,
        k: NDArray[np.int64],
        who: NDArray[np.int64],
        counts: NDArray[np.int64],
        share: float,
    ) -> None:
        """Give row i to run who[i] as its counts[i]-th; the mean moves by `share` of each move."""
        self._kernel(
            draw,
            self.rng,
            self._theta,
            self._state,
            self.problem.params,
            rows,
            self.step(counts),
            self._grad,
            thetas,
            self._theta_0,
            who,
            share,
            k[0] - 1,
            self._meet,
            self._runs,
            self._totals,
        )
