"""Plus/minus the learning rate: an interval of the simplest form, theta_N +- z sqrt(gamma / N).

Steps are gamma / k and the estimate is the last iterate (J. Chee, H. Kim and P. Toulis, AISTATS 2023). For a loss that
is minus a log-likelihood of independent rows, with information F, N var(theta_N) tends to gamma^2 F (2 gamma F - I)^-1,
which is at most gamma I as soon as gamma F >= I. So no covariance is estimated, and the interval is conservative. In a
direction of information f it is sqrt(gamma f) times as wide as the best one, and its own variance is a share of gamma f
/ (2 gamma f - 1) of what it claims: half of it, a coverage of 0.994, where gamma f is large.

| paper                  | here                                                                                      |
|------------------------|-------------------------------------------------------------------------------------------|
| gamma >= 1 / min eig F | 2 / the smallest eigenvalue of the mean Hessian over the pilot rows, which take `step`    |
| N                      | the rows after those                                                                      |
| 2                      | the normal quantile, 1.96 at 95%                                                          |
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import NotEnoughData
from halfwidth.inference import Diagnostics, NormalLaw, Result
from halfwidth.kernels.arrays import Indices, Vector
from halfwidth.learners.base import LearnerOptions
from halfwidth.learners.sgd.plug_in import gather
from halfwidth.learners.sgd.row_expansions import ExpandingLearner
from halfwidth.problems import Problem
from halfwidth.state.fields import Array, Fields, Whole

_MARGIN = 2.0
_FLAG = (
    "likelihood-only",
    "plus/minus the learning rate assumes independent rows and a loss that is minus a log-likelihood: with dependent "
    "rows or another noise variance its intervals are wrong; use 'auto' there",
)


class PlusMinus(ExpandingLearner):
    """Capped SGD with steps gamma / k, whose last iterate has the interval theta +- z sqrt(gamma / N).

    Parameters
    ----------
    problem : Problem
        Must have a `hessian`.
    pilot_rows : int, default 1_000
        The first rows, which take the steps of `step` and show how large gamma must be.

    Notes
    -----
    For independent rows and a loss that is minus a log-likelihood; the result is flagged `likelihood-only`. The
    interval is conservative and wide: gamma is twice the inverse of the smallest eigenvalue of the information, and
    every direction gets the width of the worst one.

    References
    ----------
    J. Chee, H. Kim and P. Toulis, *"Plus/minus the learning rate": easy and scalable statistical inference with SGD*,
    AISTATS (2023).

    Examples
    --------
    >>> import halfwidth as hw
    >>> result = hw.learners.PlusMinus(hw.problem("iid-linear", dim=2), seed=0).run(5_000).result()
    >>> result.law.name, result.n
    ('normal', 5000)
    """

    name = "plus-minus"
    settings: ClassVar[Fields] = {"pilot_rows": Whole(1, doc="rows that gamma is chosen on")}
    kept: ClassVar[Fields] = {
        "curvature": Array(("d", "d"), doc="sum of the Hessians of the pilot rows"),
        "gamma": Array((1,), doc="the learning rate; 0 before it is chosen"),
    }

    def __init__(self, problem: Problem, *, pilot_rows: int = 1_000, **options: Unpack[LearnerOptions]) -> None:
        self.pilot_rows = check_count("pilot_rows", pilot_rows)
        super().__init__(problem, **options)

    def _prepare(self) -> None:
        dim = self.problem.dim
        self._set_expanding_loop(gather, "plus/minus the learning rate", "a method that watches iterates, like 'obm'")
        self._curvature = np.zeros((dim, dim))
        self._gamma = np.zeros(1)

    def _rows_needed(self) -> int:
        return self.pilot_rows + 1 - self.burn_in

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        pilot = min(max(self.pilot_rows + 1 - int(k[0]), 0), len(rows))
        if pilot:
            self._steps(draw, rows[:pilot], thetas[:pilot], self.step(k[:pilot]))
            self._curvature += self._expansion[:pilot].hessian()
            if k[pilot - 1] == self.pilot_rows:
                self._gamma[0] = learning_rate(self._curvature / self.pilot_rows)
        if pilot < len(rows):
            steps = self._gamma[0] / (k[pilot:] - self.pilot_rows)
            self._steps(draw, rows[pilot:], thetas[pilot:], steps)

    def _steps(self, draw: bool, rows: Vector, thetas: Vector, steps: Vector) -> None:
        _, work = self._noted(len(rows))
        self._run_loop(draw, rows, thetas, steps, 0, False, work)

    def _own_result(self) -> Result:
        n, steps = self.n_iterates, self.n_seen - self.warm_start - self.pilot_rows
        covariance = n / steps * self._gamma[0] * np.eye(self.problem.dim)
        return Result(self.theta, covariance, n, NormalLaw(), self.name, Diagnostics(float(steps), flags=(_FLAG,)))


def learning_rate(information: Vector) -> float:
    """Gamma: twice the inverse of the smallest eigenvalue; rounded, so that the order of the sums does not matter."""
    smallest = float(np.linalg.eigvalsh(0.5 * (information + information.T))[0])
    if not smallest > 0.0:
        raise NotEnoughData("the pilot rows do not show every direction: give more of them, or drop a column")
    return float(f"{_MARGIN / smallest:.6g}")
