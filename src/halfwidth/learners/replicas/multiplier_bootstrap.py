"""The multiplier bootstrap: B perturbed copies of the trajectory, advanced together with it.

    theta^b_k = theta^b_{k-1} - w^b_k eta_k g(theta^b_{k-1}, x_k),   w independent, mean 1, variance 1,

on the same rows; the main trajectory (w = 1) is the one deployed. The spread of the copies' averages stands for the
error of the average. The weights are 0 or 2 with equal chances: half of the copies rest at each row, and no weighted
step exceeds twice a capped one, which keeps a copy as stable as the trajectory itself.

| rule         | interval                                                       | source                          |
|--------------|----------------------------------------------------------------|---------------------------------|
| `normal`     | theta_bar +- z sd over copies                                  | Fang, Xu and Yang, JMLR 2018    |
| `percentile` | quantiles of the copies                                        | the same                        |
| `cheap`      | theta_bar +- t_B S, S^2 = B^-1 sum (theta_bar^b - theta_bar)^2 | Lam, 2022; Lam and Wang, 2023   |

| paper              | here                                   |
|--------------------|----------------------------------------|
| theta^b, theta     | `_members[b]`, `_members[0]`           |
| B                  | `copies`                               |
| w^b_k              | `_weights`, drawn every `block` rows |

Independent weights target H^-1 S_0 H^-T, with the static Hessian and the covariance S_0 of a single gradient: right for
independent rows only. With `block=m` a weight stays for m rows, so that covariances up to that lag enter: it repairs
dependence that is shorter than the block. Feedback is not seen: the copies share the rows of the main trajectory.

Y. Fang, J. Xu and L. Yang, *Online bootstrap confidence intervals for the SGD estimator*, JMLR 19 (2018); P. Ramprasad
et al., *Online bootstrap inference for policy evaluation in RL*, JASA 118 (2023); H. Lam, *A cheap bootstrap method for
fast inference*, 2022; H. Lam and Z. Wang, *Resampling stochastic gradient descent cheaply for efficient uncertainty
quantification*, 2023.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from halfwidth.checks import check_count
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import capped_step, no_cap
from halfwidth.learners.replicas.perturbed_copies import Copies, CopiesOptions, CopiesResult, draw_weights
from halfwidth.problems import Problem
from halfwidth.state.fields import Fields, Whole


def perturb(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop over the trajectory, which is member 0 and has weight 1, and its copies."""

    def bootstrap_steps(
        rng: np.random.Generator | None, data: RowData, path: Path, weight_rng: np.random.Generator, copies: Copies
    ) -> None:
        theta, params, grad = path.theta, data.params, copies.grad
        members, totals, weights = copies.members, copies.totals, copies.weights
        size, dim = data.rows.shape[0], theta.shape[0]
        moving = np.empty(members.shape[0], np.int64)
        n_moving = 0
        # A member's place before the chunk counts at every row, and each of its moves at every row from there on: the
        # half that rests costs nothing.
        for b in range(members.shape[0]):
            for j in range(dim):
                totals[b, j] += size * (members[b, j] - path.origin[j])
        for i in range(size):
            row = data.rows[i]
            sample(rng, theta, data.state, params, row)
            fresh = (path.first + i) % copies.block == 0
            if fresh:
                draw_weights(weight_rng, weights[1:])
            if fresh or i == 0:
                n_moving = 0
                for b in range(members.shape[0]):
                    moving[n_moving] = b
                    n_moving += int(weights[b] > 0.0)
            step = capped_step(path.steps[i], curvature(theta, row, params))
            for m in range(n_moving):
                b = moving[m]
                gradient(members[b], row, params, grad)
                move = weights[b] * step
                counted = move * (size - i)
                for j in range(dim):
                    members[b, j] -= move * grad[j]
                    totals[b, j] -= counted * grad[j]
            for j in range(dim):
                theta[j] = members[0, j]
                path.thetas[i, j] = theta[j]

    return bootstrap_steps


class MultiplierBootstrap(CopiesResult):
    """SGD with perturbed copies of its trajectory.

    Parameters
    ----------
    block : int
        Rows over which a weight stays the same; 1 for independent rows, longer than the dependence otherwise.
    **options
        Number of `copies` (100 by default), the `rule` that makes an interval of them ("normal", "percentile" or
        "cheap"; the module's text has the table), and what every learner takes; see `Learner`.

    Raises
    ------
    InputError
        `rule` is unknown, or there are fewer than two copies (one for "cheap").

    References
    ----------
    Y. Fang, J. Xu and L. Yang, *Online bootstrap confidence intervals for the stochastic gradient descent estimator*,
    JMLR 19 (2018).

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.MultiplierBootstrap(hw.problem("iid-linear", dim=2), copies=20, seed=0).run(1_000)
    >>> learner.result().covariance.shape
    (2, 2)
    """

    name = "bootstrap"
    settings: ClassVar[Fields] = CopiesResult.settings | {"block": Whole(1, doc="rows that share a weight")}

    def __init__(self, problem: Problem, *, block: int = 1, **options: Unpack[CopiesOptions]) -> None:
        self.block = check_count("block", block)
        super().__init__(problem, **options)

    def _prepare(self) -> None:
        super()._prepare()
        self._set_loops(perturb, self.problem.gradient, self.problem.curvature or no_cap)

    def _rows_needed(self) -> int:
        return 2 * self.block

    def _terms(self) -> tuple[int, int]:
        return self.n_iterates, self.n_iterates

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        work = self._copies(self.block)
        self._run_loop(draw, rows, thetas, self.step(k), int(k[0]) - 1, self._weight_rng, work)
