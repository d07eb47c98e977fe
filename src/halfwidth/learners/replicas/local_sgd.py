"""Local SGD: K workers step on their own and meet in their mean every H rows each.

    theta^r_k = theta^r_{k-1} - eta_k g(theta^r_{k-1}, x^r_k),   every H steps theta^r <- K^-1 sum_s theta^s

The mean over the workers is deployed and handed to watchers; its average satisfies the same functional central limit
theorem as that of one SGD with as many rows (X. Li, J. Liang, X. Chang and Z. Zhang, *Statistical estimation and online
inference via local SGD*, COLT 2022).
"""

from __future__ import annotations

from typing import Any

from halfwidth.checks import check_count
from halfwidth.learners.replicas.dealt_rows import DealtRuns
from halfwidth.problems import Problem


class LocalSGD(DealtRuns):
    """`workers` runs over rows dealt in turn, averaged when each has seen `every` more rows."""

    name = "local"

    def __init__(self, problem: Problem, *, workers: int = 4, every: int = 10, **common: Any) -> None:
        super().__init__(problem, runs=check_count("workers", workers, at_least=2), **common)
        self._meet = workers * check_count("every", every)
