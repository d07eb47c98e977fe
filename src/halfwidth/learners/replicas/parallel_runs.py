"""Independent runs over one exogenous stream: Student's t over their averages, or their hull.

    theta_bar = K^-1 sum_r theta_bar_r,   S^2 = (K - 1)^-1 sum_r (theta_bar_r - theta_bar)^2,
    theta_bar +- t_{K-1} S / sqrt(K)

(W. Zhu, Z. Lou, Z. Wei and W. B. Wu, *High confidence level inference is almost free using parallel stochastic
optimization*, 2024). The hull of the runs (HulC; see `halfwidth.inference.replicate_result`) needs no variance at all.
Nothing is estimated but the runs' averages: O(d) per row and O(K d) memory. Each run has its own transient, and its
bias is that of n/K rows: it does not shrink with K. Neighbouring rows go to different runs, so gradients that correlate
over a few rows correlate the runs, and the intervals are too short: independent rows only.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from halfwidth.inference import Diagnostics, Result
from halfwidth.inference.replicate_result import HullResult
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.base import LearnerOptions
from halfwidth.learners.learner_state import State
from halfwidth.learners.own_result import OwnResult
from halfwidth.learners.replicas.dealt_rows import DealtRuns
from halfwidth.problems import Problem
from halfwidth.state.fields import Fields, Whole
from halfwidth.state.schema import Relation


def _one_each(state: State) -> bool:
    return bool(len(state["kept"]["runs"]) == state["settings"]["runs"])


class ParallelRuns(DealtRuns, OwnResult):
    """Independent runs of capped SGD with Student's t over their averages; independent rows only.

    References
    ----------
    W. Zhu, Z. Lou, Z. Wei and W. B. Wu, *High confidence level inference is almost free using parallel stochastic
    optimization* (2024).

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.ParallelRuns(hw.problem("iid-linear", dim=2), runs=5, seed=0).run(2_000)
    >>> learner.averages().shape, learner.result().law.degrees_of_freedom
    ((5, 2), 4.0)
    """

    name = "parallel-runs"
    settings: ClassVar[Fields] = {"runs": Whole(2, doc="runs")}
    relations = (Relation("have as many `kept.runs` as runs", _one_each),)

    def __init__(self, problem: Problem, *, runs: int = 6, **options: Unpack[LearnerOptions]) -> None:
        super().__init__(problem, runs=runs, **options)

    def _rows_needed(self) -> int:
        return 2 * len(self._runs)

    def averages(self) -> Vector:
        """Average of every run.

        Returns
        -------
        ndarray of shape (K, dim)
            One run in each row, without the rows of the burn-in; rows are dealt in turn, so that the runs differ in
            length by at most one.
        """
        K = len(self._runs)
        late = K - 1 - np.arange(K)
        lengths = (self.n_iterates + self.burn_in + late) // K - (self.burn_in + late) // K
        return np.asarray(self._theta_0 + self._totals / lengths[:, None])

    def _own_result(self) -> Result:
        averages = self.averages()
        K, n = len(averages), self.n_iterates
        estimate = averages.mean(axis=0)
        centred = averages - estimate
        covariance = centred.T @ centred * (n / (K * (K - 1)))
        return Result(estimate, covariance, n, StudentLaw(K - 1.0), self.name, Diagnostics(K - 1.0))


class HullOfRuns(ParallelRuns):
    """The runs of `ParallelRuns`, with the hull of their averages as interval.

    Notes
    -----
    The interval is the smallest that holds the averages of enough runs (HulC): it needs no variance. Its level is
    limited by the number of runs.

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.HullOfRuns(hw.problem("iid-linear", dim=2), seed=0).run(2_000)
    >>> learner.result().interval(level=0.95).lower.shape
    (2,)
    """

    name = "hull"

    def _own_result(self) -> Result:
        by_t = super()._own_result()
        basis = (by_t.params, by_t.covariance, by_t.n, by_t.law, self.name, by_t.diagnostics)
        return HullResult(*basis, draws=self.averages())
