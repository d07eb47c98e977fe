"""Plug-in covariances: the sandwich A^-1 S A^-T with both parts estimated along the way.

| paper             | naive                                  | with `long_run=True`                           |
|-------------------|----------------------------------------|------------------------------------------------|
| A = E grad^2 F    | mean of the Hessians at theta_{k-1}    | the same at theta_bar_{k-1}                    |
| S, gradient noise | mean of g_k g_k' at theta_{k-1}        | batch sums of g_k at theta_bar_{k-1}, centred  |
| law               | normal                                 | t, each coefficient with its own degrees       |

The naive estimator (X. Chen, J. D. Lee, X. T. Tong and Y. Zhang, Annals of Statistics 48, 2020) assumes that gradients
of different rows are uncorrelated: under dependence its intervals are too short. Gradients at the average mix as fast
as the rows do, not as slowly as the iterates, so short batches give their long-run covariance; here between 128 and 256
batches are kept, of 50 rows at first. With the sums G_b and H_b of a batch of n_b rows

    r_b = n_b / n sum_c G_c - G_b,   u_b = (sum_c H_c - H_b)^-1 r_b,   Sigma = n sum_b u_b u_b',

where a batch is deleted from the Hessian too (`halfwidth.equation.jackknife`): to first order this is A^-1 S A^-1.

Neither is right for state-dependent data. There the mean field moves with theta also through the data, its
Jacobian is A = E grad^2 F + J with J = d/dtheta' E_{pi_theta'} grad F(theta), and the Hessian alone is not A.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from halfwidth.equation import BatchStore, Equation, restored_store
from halfwidth.equation.result import EquationResult, Jackknifed
from halfwidth.inference import Diagnostics, NormalLaw, Result
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import capped_step
from halfwidth.learners.base import LearnerOptions
from halfwidth.learners.learner_state import State, batches_hold_iterates
from halfwidth.learners.newton.expansion import stream_batches
from halfwidth.learners.own_result import sandwich
from halfwidth.learners.sgd.row_expansions import ExpandingLearner, RowExpansions
from halfwidth.problems import Problem
from halfwidth.state.containers import Nested
from halfwidth.state.fields import Array, Bool, Fields
from halfwidth.state.schema import Relation

FIRST_LENGTH = 50
FEWEST_BATCHES = 8


def gather(sample: Function, gradient: Function, curvature: Function, hessian: Function) -> Function:
    """The loop of capped SGD that notes each row's gradient and Hessian, at the running mean or at the iterate."""

    def plug_in_steps(
        rng: np.random.Generator | None, data: RowData, path: Path, at_mean: bool, work: RowExpansions
    ) -> None:
        theta, params, mean = path.theta, data.params, work.mean
        for i in range(data.rows.shape[0]):
            row = data.rows[i]
            sample(rng, theta, data.state, params, row)
            point = mean if at_mean else theta
            work.weights[i], work.shifts[i] = hessian(point, row, params, work.directions[i])
            gradient(point, row, params, work.vectors[i])
            gradient(theta, row, params, work.grad)
            step = capped_step(path.steps[i], curvature(theta, row, params))
            for j in range(theta.shape[0]):
                theta[j] -= step * work.grad[j]
                path.thetas[i, j] = theta[j]
                mean[j] += (theta[j] - mean[j]) / (path.first + i + 1)

    return plug_in_steps


def _fits(state: State) -> bool:
    if state["settings"]["long_run"]:
        return batches_hold_iterates(state)
    return not state["parts"]["batches"]["n"].any()


class PlugIn(ExpandingLearner):
    """Capped SGD with a plug-in covariance A^-1 S A^-T.

    Parameters
    ----------
    problem : Problem
        Must have a `hessian`.
    long_run : bool, default False
        Whether S is the long-run covariance of the gradients, for dependent rows, rather than that of single ones.

    Notes
    -----
    Not valid for state-dependent data with either setting: the feedback is missing from A. The module's text compares
    both estimators.

    References
    ----------
    X. Chen, J. D. Lee, X. T. Tong and Y. Zhang, *Statistical inference for model parameters in stochastic gradient
    descent*, Annals of Statistics 48 (2020).

    Examples
    --------
    >>> import halfwidth as hw
    >>> result = hw.PlugIn(hw.problem("iid-linear", dim=2), seed=0).run(2_000).result()
    >>> result.covariance.shape
    (2, 2)
    """

    name = "plug-in"
    settings: ClassVar[Fields] = {"long_run": Bool(doc="whether gradients of different rows correlate")}
    kept: ClassVar[Fields] = {
        "mean": Array(("d",), doc="running mean of the iterates"),
        "curvature": Array(("d", "d"), doc="sum of the Hessians"),
        "noise": Array(("d", "d"), doc="sum of g g', for independent rows"),
    }
    parts: ClassVar[Fields] = {
        "batches": Nested(BatchStore.SCHEMA, doc="gradients and Hessians in batches, for `long_run`")
    }
    relations = (Relation("have every iterate that counts in `parts.batches` with `long_run`, none without", _fits),)

    def __init__(self, problem: Problem, *, long_run: bool = False, **options: Unpack[LearnerOptions]) -> None:
        self.long_run = bool(long_run)
        super().__init__(problem, **options)

    def _prepare(self) -> None:
        dim = self.problem.dim
        self._set_expanding_loop(gather, "the plug-in covariance", "a method that watches iterates, like 'obm'")
        self._curvature = np.zeros((dim, dim))
        self._noise = np.zeros((dim, dim))
        self._batches = stream_batches(dim, FIRST_LENGTH)

    def _forget(self) -> None:
        self._curvature[:] = 0.0
        self._noise[:] = 0.0
        self._batches.clear()

    def _rows_needed(self) -> int:
        return FEWEST_BATCHES * FIRST_LENGTH if self.long_run else self.problem.dim + 1

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        part, work = self._noted(len(rows))
        grads = part.vectors
        self._run_loop(draw, rows, thetas, self.step(k), self._averaged(k), self.long_run, work)
        self._curvature += part.hessian()
        if self.long_run:
            part.enter(self._batches)
        else:
            self._noise += grads.T @ grads

    def _parts(self) -> State:
        return {"batches": self._batches.to_state()}

    def _restore_parts(self, state: State) -> None:
        self._batches = restored_store(self._batches, state["batches"])

    def _own_result(self) -> Result:
        n = self.n_iterates
        if not self.long_run:
            covariance = sandwich(self._curvature / n, self._noise / n)
            return Result(self.theta_bar, covariance, n, NormalLaw(), self.name, Diagnostics(float(n)))
        sums = self._batches.closed()
        equation = Equation(sums.H, -sums.b, sums.n)
        found = Jackknifed.of(equation, equation.centred_residuals(np.zeros(self.problem.dim)), independent=True)
        notes = (f"batches: {len(sums.n)} of {self._batches.length:,} rows",)
        return EquationResult(
            self.theta_bar, n * found.covariance, n, found.law, "plug-in-longrun", found.diagnostics((), notes),
            errors=found.errors, basis=np.eye(self.problem.dim), df=found.df,
        )  # fmt: skip
