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
| w^b_k              | `_weights`, drawn anew every `block` rows |

Independent weights target H^-1 S_0 H^-T, with the static Hessian and the covariance S_0 of a single gradient: right for
independent rows only. With `block=m` a weight stays for m rows, so that covariances up to that lag enter: it repairs
dependence that is shorter than the block. Nothing here knows how the data answer to theta: the copies share the rows of
the main trajectory.

Y. Fang, J. Xu and L. Yang, *Online bootstrap confidence intervals for the SGD estimator*, JMLR 19 (2018); P. Ramprasad
et al., *Online bootstrap inference for policy evaluation in RL*, JASA 118 (2023); H. Lam, *A cheap bootstrap method for
fast inference*, 2022; H. Lam and Z. Wang, *Resampling stochastic gradient descent cheaply for efficient uncertainty
quantification*, 2023.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.inference import Diagnostics, NormalLaw, Result
from halfwidth.inference.laws import LimitLaw
from halfwidth.inference.replicate_result import PercentileResult
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import jitable, specialise
from halfwidth.learners.base import Vector
from halfwidth.learners.own_result import OwnResult
from halfwidth.learners.warm_start import no_cap, no_rows
from halfwidth.problems import Problem

Rule = Literal["normal", "percentile", "cheap"]


@jitable
def draw_weights(rng, weights):  # type: ignore[no-untyped-def]
    """Weights 0 or 2, 32 of them from one random number."""
    bits = 0
    for b in range(weights.shape[0]):
        if b % 32 == 0:
            bits = int(rng.random() * 4294967296.0)
        weights[b] = 2.0 * (bits & 1)
        bits >>= 1


def perturb(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop over the trajectory, which is member 0 and has weight 1, and its copies."""

    def bootstrap_steps(  # type: ignore[no-untyped-def]
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
        block,
        weights,
        members,
        totals,
    ):
        dim = theta.shape[0]
        moving = np.empty(members.shape[0], np.int64)
        n_moving = 0
        # A member's place before the chunk counts at every row, and each of its moves at every row from there on: the
        # half that rests costs nothing.
        for b in range(members.shape[0]):
            for j in range(dim):
                totals[b, j] += rows.shape[0] * (members[b, j] - origin[j])
        for i in range(rows.shape[0]):
            row = rows[i]
            if draw:
                sample(rng, theta, state, params, row)
            fresh = (first + i) % block == 0
            if fresh:
                draw_weights(weight_rng, weights[1:])
            if fresh or i == 0:
                n_moving = 0
                for b in range(members.shape[0]):
                    moving[n_moving] = b
                    n_moving += int(weights[b] > 0.0)
            step = steps[i]
            kappa = curvature(theta, row, params)
            if step * kappa > 1.0:
                step = 1.0 / kappa
            for m in range(n_moving):
                b = moving[m]
                gradient(members[b], row, params, grad)
                move = weights[b] * step
                counted = move * (rows.shape[0] - i)
                for j in range(dim):
                    members[b, j] -= move * grad[j]
                    totals[b, j] -= counted * grad[j]
            for j in range(dim):
                theta[j] = members[0, j]
                thetas[i, j] = theta[j]

    return bootstrap_steps


class CopiesResult(OwnResult):
    """What the averages of perturbed copies say about the average of the trajectory."""

    def __init__(self, problem: Problem, *, copies: int, rule: Rule, **common: Any) -> None:
        super().__init__(problem, **common)
        if rule not in ("normal", "percentile", "cheap"):
            raise InputError.of("rule", "be 'normal', 'percentile' or 'cheap'", rule)
        check_count("copies", copies, at_least=1 if rule == "cheap" else 2)
        self.rule = rule
        self._weight_rng = self.rng.spawn(1)[0]  # of its own, so that the rows are those of every other learner
        self._weights = np.ones(copies + 1)
        self._members = np.tile(self._theta, (copies + 1, 1))
        self._totals = np.zeros((copies + 1, problem.dim))  # of each member minus theta_0
        self._grad = np.empty(problem.dim)

    def _start_at(self, theta: Vector) -> None:
        super()._start_at(theta)
        self._members[:] = theta

    def _forget(self) -> None:
        self._totals[:] = 0.0

    @abstractmethod
    def _terms(self) -> tuple[int, int]:
        """How many terms the totals have, and how many rows stand behind them."""

    def _own_result(self) -> Result:
        terms, n = self._terms()
        averages = self._theta_0 + self._totals / terms
        estimate, copies = averages[0], averages[1:]
        B = len(copies)
        law: LimitLaw = StudentLaw(float(B)) if self.rule == "cheap" else NormalLaw()
        centred = copies - (estimate if self.rule == "cheap" else copies.mean(axis=0))
        covariance = centred.T @ centred * (n / (B if self.rule == "cheap" else B - 1))
        basis = (estimate, covariance, n, law, self.name, Diagnostics(float(B)))
        return PercentileResult(*basis, draws=copies) if self.rule == "percentile" else Result(*basis)


class MultiplierBootstrap(CopiesResult):
    """SGD with B perturbed copies; see the module's text for `rule` and `block`."""

    name = "bootstrap"

    def __init__(
        self, problem: Problem, *, copies: int = 100, block: int = 1, rule: Rule = "normal", **common: Any
    ) -> None:
        super().__init__(problem, copies=copies, rule=rule, **common)
        self.block = check_count("block", block)
        self._kernel = specialise(perturb, problem.sample or no_rows, problem.gradient, problem.curvature or no_cap)

    def _rows_needed(self) -> int:
        return 2 * self.block

    def _terms(self) -> tuple[int, int]:
        return self.n_iterates, self.n_iterates

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
            self._theta_0,
            self._weight_rng,
            k[0] - 1,
            self.block,
            self._weights,
            self._members,
            self._totals,
        )
