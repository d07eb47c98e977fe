"""Richardson-Romberg: two trajectories on the same rows, one with half the steps, combined against the bias.

    theta_k = 2 theta_k(eta/2) - theta_k(eta)

E theta_k(eta) = theta* + c eta_k + o(eta_k) for losses that are not quadratic and for rows that depend on each other;
the combination has no term in eta_k (A. Dieuleveut, A. Durmus and F. Bach, Annals of Statistics 48, 2020, for constant
steps; D. Huo, Y. Chen and Q. Xie, 2023, for Markov data). Both averages have the same limit and the same noise, so the
combined average keeps Sigma. Watchers see the combined trajectory, which stays correlated as long as the one with half
the steps: the method of this name takes few, long batches (t over 6) rather than many short ones. Exogenous streams
only: with state-dependent data the two trajectories would need sources of their own.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import capped_step, no_cap
from halfwidth.learners.base import Learner
from halfwidth.state.fields import Array, Fields


def combine(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop over both trajectories; the smaller step is half the larger one, capped or not."""

    def richardson_steps(
        rng: np.random.Generator | None, data: RowData, path: Path, pair: Vector, grad: Vector
    ) -> None:
        theta, params = path.theta, data.params
        for i in range(data.rows.shape[0]):
            row = data.rows[i]
            sample(rng, theta, data.state, params, row)
            step = capped_step(path.steps[i], curvature(pair[0], row, params))
            for t in range(2):
                gradient(pair[t], row, params, grad)
                for j in range(theta.shape[0]):
                    pair[t, j] -= step * grad[j]
                step *= 0.5
            for j in range(theta.shape[0]):
                theta[j] = 2.0 * pair[1, j] - pair[0, j]
                path.thetas[i, j] = theta[j]

    return richardson_steps


class RichardsonRomberg(Learner):
    """Two capped SGD trajectories, extrapolated to step zero row by row.

    Notes
    -----
    theta_k = 2 theta_k(eta / 2) - theta_k(eta) has no bias of order eta_k. Watchers see the combined trajectory.
    Exogenous streams only.

    References
    ----------
    A. Dieuleveut, A. Durmus and F. Bach, *Bridging the gap between constant step size stochastic gradient descent and
    Markov chains*, Annals of Statistics 48 (2020).

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.RichardsonRomberg(hw.problem("iid-linear", dim=2), watchers=[hw.FixedBatchMeans(2)], seed=0)
    >>> learner.run(2_000).result().n
    2000
    """

    name = "richardson-romberg"
    kept: ClassVar[Fields] = {"pair": Array((2, "d"), doc="both trajectories")}

    def _prepare(self) -> None:
        self._pair = np.tile(self._theta, (2, 1))
        self._set_loops(combine, self.problem.gradient, self.problem.curvature or no_cap)

    def _start_at(self, theta: Vector) -> None:
        super()._start_at(theta)
        self._pair[:] = theta

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        self._run_loop(draw, rows, thetas, self.step(k), 0, self._pair, self._grad)
