"""The mini-batch bootstrap for dependent rows (R. Liu, X. Chen and Z. Shang, arXiv:2302.12717).

    theta_t   = theta_{t-1}   -       eta_t mean_{i in I_t} g(theta_{t-1}, x_i)
    theta^b_t = theta^b_{t-1} - w^b_t eta_t mean_{i in I_t} g(theta^b_{t-1}, x_i)

One step for each batch I_t of consecutive rows, one weight for each copy and batch (0 or 2, as in
`halfwidth.learners.replicas.perturbed_copies`). Sums over a batch carry the covariances of rows within it, so that
the copies see the long-run covariance when batches are longer than the memory of the rows. The steps are counted in
batches. Between two steps theta stays deployed; a batch that is not yet full counts for nothing.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Unpack

import numpy as np

from halfwidth.checks import check_count
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import capped_step, no_cap, note
from halfwidth.learners.replicas.perturbed_copies import Copies, CopiesOptions, CopiesResult, draw_weights
from halfwidth.problems import Problem
from halfwidth.state.fields import Array, Fields, Whole


class OpenBatch(NamedTuple):
    """Sums over the rows of the batch that is being filled."""

    gradients: Vector
    """The sum of gradients of each member."""
    curvature: Vector
    """The mean curvature bound of the rows so far, one number."""


def perturb_batches(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop over the trajectory, which is member 0 and has weight 1, and its copies."""

    def minibatch_steps(
        rng: np.random.Generator | None,
        data: RowData,
        path: Path,
        weight_rng: np.random.Generator,
        copies: Copies,
        opened: OpenBatch,
    ) -> None:
        theta, params, grad, batch = path.theta, data.params, copies.grad, copies.block
        members, totals, weights, sums = copies.members, copies.totals, copies.weights, opened.gradients
        for i in range(data.rows.shape[0]):
            row = data.rows[i]
            sample(rng, theta, data.state, params, row)
            if (path.first + i) % batch == 0:
                draw_weights(weight_rng, weights[1:])
                sums[:] = 0.0
                opened.curvature[0] = 0.0
            opened.curvature[0] += curvature(theta, row, params) / batch
            for b in range(members.shape[0]):
                if weights[b] > 0.0:
                    gradient(members[b], row, params, grad)
                    for j in range(theta.shape[0]):
                        sums[b, j] += grad[j]
            if (path.first + i + 1) % batch == 0:
                step = capped_step(path.steps[i], opened.curvature[0])
                for b in range(members.shape[0]):
                    for j in range(theta.shape[0]):
                        members[b, j] -= weights[b] * step * sums[b, j] / batch
                        totals[b, j] += members[b, j] - path.origin[j]
                note(members[0], theta)
            note(theta, path.thetas[i])

    return minibatch_steps


class MiniBatchBootstrap(CopiesResult):
    """Mini-batch SGD with perturbed copies, for dependent rows.

    Parameters
    ----------
    batch : int
        Rows that make a step; longer than the memory of the rows.
    **options
        What `MultiplierBootstrap` takes, but for `block`.

    References
    ----------
    R. Liu, X. Chen and Z. Shang, arXiv:2302.12717.

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.MiniBatchBootstrap(hw.problem("ar-linear", dim=2), copies=20, batch=20, seed=0).run(1_000)
    >>> learner.result().n
    1000
    """

    name = "bootstrap-minibatch"
    settings: ClassVar[Fields] = CopiesResult.settings | {"batch": Whole(1, doc="rows that make a step")}
    kept: ClassVar[Fields] = CopiesResult.kept | {
        "batch_gradients": Array(("members", "d"), doc="sum of the gradients of the open batch"),
        "batch_curvature": Array((1,), doc="mean curvature bound of the open batch"),
    }

    def __init__(self, problem: Problem, *, batch: int = 25, **options: Unpack[CopiesOptions]) -> None:
        self.batch = check_count("batch", batch)
        super().__init__(problem, **options)

    def _prepare(self) -> None:
        super()._prepare()
        self._batch_gradients = np.zeros_like(self._members)
        self._batch_curvature = np.zeros(1)
        self._set_loops(perturb_batches, self.problem.gradient, self.problem.curvature or no_cap)

    def _rows_needed(self) -> int:
        return 2 * self.batch

    def _terms(self) -> tuple[int, int]:
        batches = (self.n_iterates + self.burn_in) // self.batch - self.burn_in // self.batch
        return batches, batches * self.batch

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        opened = OpenBatch(self._batch_gradients, self._batch_curvature)
        steps, copies = self.step((k - 1) // self.batch + 1), self._copies(self.batch)
        self._run_loop(draw, rows, thetas, steps, int(k[0]) - 1, self._weight_rng, copies, opened)
