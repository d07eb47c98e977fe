"""Local SGD: K workers step on their own and meet in their mean every H rows each.

    theta^r_k = theta^r_{k-1} - eta_k g(theta^r_{k-1}, x^r_k),   every H steps theta^r <- K^-1 sum_s theta^s

The mean over the workers is deployed and handed to watchers; its average satisfies the same functional central limit
theorem as that of one SGD with as many rows (X. Li, J. Liang, X. Chang and Z. Zhang, *Statistical estimation and online
inference via local SGD*, COLT 2022).
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from halfwidth.checks import check_count
from halfwidth.learners.base import LearnerOptions
from halfwidth.learners.learner_state import State
from halfwidth.learners.replicas.dealt_rows import DealtRuns
from halfwidth.problems import Problem
from halfwidth.state.fields import Fields, Whole
from halfwidth.state.schema import Relation


def _one_each(state: State) -> bool:
    return bool(len(state["kept"]["runs"]) == state["settings"]["workers"])


class LocalSGD(DealtRuns):
    """SGD by several workers that are averaged now and then; exogenous streams only.

    Parameters
    ----------
    workers : int
        Number K of workers; rows are dealt to them in turn.
    every : int
        Rows that each worker sees between two averagings.

    References
    ----------
    X. Li, J. Liang, X. Chang and Z. Zhang, *Statistical estimation and online inference via local SGD*, COLT 2022.

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.LocalSGD(hw.problem("iid-linear", dim=2), workers=3, watchers=[hw.FixedBatchMeans(2)], seed=0)
    >>> learner.run(2_000).result().n
    2000
    """

    name = "local"
    settings: ClassVar[Fields] = {
        "workers": Whole(2, doc="workers"),
        "every": Whole(1, doc="rows of each between two averagings"),
    }
    relations = (Relation("have as many `kept.runs` as workers", _one_each),)

    def __init__(
        self, problem: Problem, *, workers: int = 4, every: int = 10, **options: Unpack[LearnerOptions]
    ) -> None:
        self.workers = check_count("workers", workers, at_least=2)
        self.every = check_count("every", every)
        super().__init__(problem, runs=self.workers, meet=self.workers * self.every, **options)
