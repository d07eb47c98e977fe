"""Figure 1: BM on the synthetic state-dependent streams, d = 2 to 50, as printed and stabilised."""

from __future__ import annotations

from collections.abc import Sequence

from halfwidth.paper.arms import BM, MODELS, Arm, synthetic_arm, with_auto
from halfwidth.paper.comparisons import Comparison, against, covers, growth, last, log_ratio, slopes
from halfwidth.paper.panels import EXACT, PAPER, sheet
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.target import Order, Target, studied
from halfwidth.plots.sheet import Sheet

DIMS = (2, 5, 10, 20, 30, 50)
AS_PRINTED, STABILISED = "as printed", "stabilised"
PAPERS_GAP = 0.57  # log error at d = 5 minus that at d = 2, linear regression


def arms(order: Order) -> list[Arm]:
    """The studies of the figure."""
    size, seed = order.size, order.seed
    dims = size.some(DIMS)
    printed = [
        synthetic_arm(size, seed, model, dim, BM, learner="truncated", variant=AS_PRINTED)
        for model in MODELS
        for dim in dims
    ]
    return printed + [synthetic_arm(size, seed, model, dim, *with_auto(BM)) for model in MODELS for dim in dims]


def sheets(rows: Sequence[Row]) -> list[Sheet]:
    """The pictures."""
    drawn = []
    for variant, name in ((AS_PRINTED, "synthetic-as-printed"), (STABILISED, "synthetic")):
        mine = [row for row in rows if row["variant"] == variant]
        bm = [row for row in mine if row["name"] == "BM"]
        drawn.append(sheet(bm, name, f"Synthetic streams, {variant}", PAPER, "dim", "model", across=False))
        drawn.append(
            sheet(mine, f"{name}-exact", f"The same against the exact truth, {variant}", EXACT, "dim", "model")
        )
    return drawn


def compare(rows: Sequence[Row]) -> list[Comparison]:
    """What the paper says, against these rows."""
    bm = [row for row in rows if row["name"] == "BM"]
    keys = ("variant", "model", "dim")
    found = slopes(bm, *keys) + covers(rows, *keys)
    for variant in (AS_PRINTED, STABILISED):
        for model in MODELS:
            mine = [row for row in bm if row["variant"] == variant and row["model"] == model]
            found.append(growth(mine, f"{variant}, {model}"))
        ends = {row["dim"]: row for row in last(bm, variant=variant, model="linear")}
        if 5 in ends:
            gap, error = log_ratio(ends[5], ends[2], "sigma_error")
            claim = "log error at d = 5 exceeds that at d = 2 by 0.57"
            found.append(against(claim, f"{variant}, linear", gap, error, PAPERS_GAP))
    return found


TARGET = Target(
    "synthetic",
    "Batch means on synthetic state-dependent streams",
    "The slope of the log error matches the rate -1/8, the error grows like the square root of d, and the intervals "
    "reach the correct coverage.",
    studied(arms),
    sheets,
    compare,
)
