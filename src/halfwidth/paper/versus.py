"""BM against Boot on the synthetic streams: Figure 2 (epsilon = 0.5) and the appendix's figure (epsilon = 0).

d = 2, 30, 50 with B = 50, 100, 200.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfwidth.paper.arms import BM, MODELS, Arm, Scale, boot, synthetic_arm, with_auto
from halfwidth.paper.comparisons import Comparison, covers, difference, last, log_ratio, place, sign, slopes
from halfwidth.paper.panels import EXACT, PAPER_AND_MIS, sheet
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.target import Target, studied
from halfwidth.plots.sheet import Sheet

COPIES = {2: 50, 30: 100, 50: 200}


def versus_arms(size: Scale, seed: int, epsilon: float) -> list[Arm]:
    """The studies: BM, Boot and auto at every dimension."""
    return [
        synthetic_arm(size, seed, model, dim, *with_auto(BM, boot(COPIES[dim])), epsilon=epsilon)
        for model in MODELS
        for dim in size.some(tuple(COPIES))
    ]


def versus_sheets(rows: Sequence[Row], name: str, title: str) -> list[Sheet]:
    """The pictures: the paper's, and against the exact truth."""
    papers = [row for row in rows if row["name"] != "auto"]
    return [
        sheet(papers, name, title, PAPER_AND_MIS, "dim", "model"),
        sheet(rows, f"{name}-exact", f"{title}: against the exact truth", EXACT, "dim", "model"),
    ]


def versus_compare(rows: Sequence[Row]) -> list[Comparison]:
    """What the paper says, against these rows."""
    keys = ("model", "dim")
    return slopes([row for row in rows if row["name"] == "BM"], *keys) + duels(rows, *keys) + covers(rows, *keys)


def duels(rows: Sequence[Row], *keys: str) -> list[Comparison]:
    """BM minus Boot at the end of every arm: coverage, width and score."""
    found: list[Comparison] = []
    for bm in last(rows, name="BM"):
        labels = {key: bm[key] for key in keys}
        (other,) = last(rows, name="Boot", **labels)
        where = place(bm, *keys)
        coverage = difference(bm, other, "coverage_paper")
        found.append(sign("BM covers less than Boot (difference)", where, *coverage, negative=True))
        width = log_ratio(bm, other, "width")
        found.append(sign("BM is narrower than Boot (log ratio)", where, *width, negative=True))
        for field, which in (("mis_paper", "theta* from the runs"), ("mis", "exact theta*")):
            score = log_ratio(bm, other, field)
            found.append(sign(f"BM has the better MIS (log ratio, {which})", where, *score, negative=True))
    return found


def _target(name: str, kind: str, epsilon: float, title: str, says: str) -> Target:
    return Target(
        name,
        f"Batch means against the multiplier bootstrap{title}",
        says,
        studied(lambda order: versus_arms(order.size, order.seed, epsilon)),
        lambda rows: versus_sheets(rows, name, f"BM and Boot, {kind} streams (epsilon = {epsilon:g})"),
        versus_compare,
    )


_WIDER = (
    "Boot covers more often by wider intervals; on the interval score BM is comparable at d = 2 and better at d = 50, "
    "most of all in linear regression."
)
_AS_BEFORE = (
    "As with state-dependent data: Boot covers more often by wider intervals, and BM has the better interval score, "
    "most of all in linear regression with many coefficients."
)
BOOTSTRAP = _target("bootstrap", "state-dependent", 0.5, "", _WIDER)
INDEPENDENT = _target("independent", "state-independent", 0.0, ", state-independent data", _AS_BEFORE)
