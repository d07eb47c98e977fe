"""The theorem at the scale where it holds: BM from 2^10 to 2^24 rows, 400 replicates, `auto` beside it to 2^22.

The paper proves that the error of Sigma_hat falls like sqrt(d) n^-(1-a)/4; its experiments end at 50,000 rows (linear)
and 125,000 (logistic), where it does not do so yet. Streams at a = 0.505: linear with epsilon = 0 and 0.5 in d = 2, 5,
10, and logistic with epsilon = 0.5 in d = 2, 5; at a = 0.6 and 0.7: linear in d = 2. Steps 0.5 k^-a, capped at
1 / curvature of the row; half squared loss; blocks floor(2 m^(2/(1-a))).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halfwidth.paper.comparisons import Comparison
from halfwidth.paper.lanes import LANES
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.rate_compare import compare
from halfwidth.paper.rate_runs import Case, run_groups
from halfwidth.paper.rate_scores import AUTO, LEVEL, auto_rows, case_rows
from halfwidth.paper.rate_sheets import sheets
from halfwidth.paper.rate_words import in_words
from halfwidth.paper.run_arms import Runner
from halfwidth.paper.target import Order, Target
from halfwidth.study.run import collect
from halfwidth.study.spec import Spec

A = 0.505
OTHER_EXPONENTS = (0.6, 0.7)
_FIRST = 10


@dataclass(frozen=True)
class Reach:
    """How many replicates run how far, in powers of two."""

    groups: int
    top: int
    auto_replicates: int
    auto_top: int

    def checkpoints(self) -> tuple[int, ...]:
        return tuple(2**power for power in range(_FIRST, self.top + 1))

    def auto_checkpoints(self) -> tuple[int, ...]:
        return tuple(2**power for power in range(_FIRST, self.auto_top + 1))


REACHES = {"paper": Reach(10, 24, 100, 22), "smoke": Reach(1, 16, 4, 13)}

CASES: tuple[Case, ...] = (
    *(Case("linear", dim, epsilon, A) for epsilon in (0.0, 0.5) for dim in (2, 5, 10)),
    *(Case("logistic", dim, 0.5, A) for dim in (2, 5)),
    *(Case("linear", 2, epsilon, a) for epsilon in (0.0, 0.5) for a in OTHER_EXPONENTS),
)


def run(order: Order, runner: Runner) -> list[Row]:
    """The rows of all cases, and of `auto` beside those with the paper's steps."""
    reach = REACHES[order.size.name]
    checkpoints = reach.checkpoints()
    found = run_groups(CASES, checkpoints, order.seed, reach.groups, runner)
    rows = [row for case, runs in zip(CASES, found, strict=True) for row in case_rows(case, runs, checkpoints)]
    for case in CASES:
        if case.exponent == A:
            rows += _auto(case, reach, order, runner)
    return rows


def _auto(case: Case, reach: Reach, order: Order, runner: Runner) -> list[Row]:
    spec = Spec(
        f"seed-{case.model}",
        {"dim": case.dim, "epsilon": case.epsilon},
        (AUTO,),
        2**reach.auto_top,
        reach.auto_replicates,
        level=LEVEL,
        seed=order.seed,
        checkpoints=reach.auto_checkpoints(),
    )
    collected = collect(spec, backend=runner.backend, store=runner.store)
    runner.tell(f"auto: {case.model}, d = {case.dim}, epsilon = {case.epsilon}")
    for reason in collected.refusals.values():
        raise reason
    return auto_rows(case, spec, collected.notes[AUTO], collected.times[AUTO])


def _how(order: Order) -> str:
    reach = REACHES[order.size.name]
    return (
        f"{LANES * reach.groups} replicates of BM to 2^{reach.top} rows, all cases on the same innovations, and "
        f"{reach.auto_replicates} of `auto` to 2^{reach.auto_top} rows. Steps 0.5 k^-a capped at 1 / curvature of the "
        "row, half squared loss, blocks floor(2 m^(2/(1-a))); everything against the exact theta* and Sigma."
    )


def _compare(rows: Sequence[Row]) -> list[Comparison]:
    return compare(rows, A)


TARGET = Target(
    "rate",
    "The theorem at the scale where it holds",
    "The error of Sigma_hat falls like sqrt(d) n^-(1-a)/4, and the intervals reach the correct coverage.",
    run,
    sheets,
    _compare,
    _how,
    in_words,
)
