"""Several trajectories that share one stream: rows are dealt to them in turn.

Row k goes to one run, which steps by its own count; theta is the mean of the runs, and that is what is deployed, handed
to watchers and sampled from. Data must not depend on theta: a run would see the others through
them.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Unpack

import numpy as np

from halfwidth.checks import check_count
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import capped_step, no_cap
from halfwidth.learners.base import Learner, LearnerOptions
from halfwidth.problems import Problem
from halfwidth.state.fields import Array, Fields


class Deal(NamedTuple):
    """Which run takes which row, and where the runs are."""

    who: Indices
    """The run that takes each row of the chunk."""
    share: float
    """What part of a run's move the mean makes."""
    meet: int
    """The runs are set to their mean after every so many rows; 0 for never."""
    runs: Vector
    """The runs, one in each row; updated in place."""
    totals: Vector
    """The sums of each run minus theta_0; updated in place."""
    grad: Vector
    """Scratch space for a gradient."""


def deal(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop of capped SGD over rows dealt to several runs, which meet in their mean every `meet` rows."""

    def dealt_steps(rng: np.random.Generator | None, data: RowData, path: Path, work: Deal) -> None:
        theta, params, grad, origin = path.theta, data.params, work.grad, path.origin
        for i in range(data.rows.shape[0]):
            row = data.rows[i]
            sample(rng, theta, data.state, params, row)
            run, total = work.runs[work.who[i]], work.totals[work.who[i]]
            gradient(run, row, params, grad)
            step = capped_step(path.steps[i], curvature(run, row, params))
            for j in range(theta.shape[0]):
                run[j] -= step * grad[j]
                theta[j] -= work.share * step * grad[j]
                path.thetas[i, j] = theta[j]
                total[j] += run[j] - origin[j]
            if work.meet > 0 and (path.first + i + 1) % work.meet == 0:
                for r in range(work.runs.shape[0]):
                    work.runs[r] = theta

    return dealt_steps


class DealtRuns(Learner):
    """K runs of capped SGD over rows dealt round-robin.

    Parameters
    ----------
    problem : Problem
        Its data must not depend on theta.
    runs : int
        Number K of runs; rows are dealt to them in turn.
    meet : int
        The runs are set to their mean after every so many rows; 0 for never.
    """

    kept: ClassVar[Fields] = {
        "runs": Array(("runs", "d"), doc="where the runs are"),
        "totals": Array(("runs", "d"), doc="sum of each run - theta_0"),
    }

    def __init__(self, problem: Problem, *, runs: int, meet: int = 0, **options: Unpack[LearnerOptions]) -> None:
        self.runs = check_count("runs", runs, at_least=2)
        self._meet = meet
        super().__init__(problem, **options)

    def _prepare(self) -> None:
        problem = self.problem
        self._runs = np.tile(self._theta, (self.runs, 1))
        self._totals = np.zeros((self.runs, problem.dim))  # of each run minus theta_0
        self._set_loops(deal, problem.gradient, problem.curvature or no_cap)

    def _start_at(self, theta: Vector) -> None:
        super()._start_at(theta)
        self._runs[:] = theta

    def _forget(self) -> None:
        self._totals[:] = 0.0

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        work = Deal((k - 1) % self.runs, 1.0 / self.runs, self._meet, self._runs, self._totals, self._grad)
        self._run_loop(draw, rows, thetas, self.step((k - 1) // self.runs + 1), int(k[0]) - 1, work)
