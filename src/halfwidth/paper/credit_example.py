"""The data example: strategic classification with GiveMeSomeCredit, n_1 = 50 to 2,000 movers, BM against Boot."""

from __future__ import annotations

from collections.abc import Sequence

from halfwidth.paper.arms import BM, Arm, boot, paper_spec, with_auto
from halfwidth.paper.comparisons import Comparison, covers, last, log_ratio, slopes, unchanged
from halfwidth.paper.panels import EXACT, PAPER_AND_MIS, panel
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.target import Order, Target, studied
from halfwidth.paper.versus import duels
from halfwidth.plots.sheet import Sheet

MOVERS = (50, 500, 1_000, 2_000)
COPIES = 60


def arms(order: Order) -> list[Arm]:
    """The studies of the figure."""
    size = order.size
    found = []
    for movers in size.some(MOVERS):
        labels = {"variant": "stand-in" if order.population is None else "GiveMeSomeCredit", "movers": movers}
        settings = {"movers": movers, "population": order.population}
        methods = with_auto(BM, boot(COPIES))
        spec = paper_spec(size, order.seed, "strategic-credit", settings, size.rows["credit"], methods, "capped")
        found.append(Arm(labels, spec))
    return found


def sheets(rows: Sequence[Row]) -> list[Sheet]:
    """The pictures."""
    data = rows[0]["variant"]
    papers = [row for row in rows if row["name"] != "auto"]
    return [
        Sheet("credit", f"Strategic classification, {data}", 2, [panel(papers, f, "movers") for f in PAPER_AND_MIS]),
        Sheet(
            "credit-exact", f"The same against the exact truth, {data}", 2, [panel(rows, f, "movers") for f in EXACT]
        ),
    ]


def compare(rows: Sequence[Row]) -> list[Comparison]:
    """What the paper says, against these rows."""
    found = slopes([row for row in rows if row["name"] in ("BM", "Boot")], "name", "movers")
    found += duels(rows, "movers") + covers(rows, "movers")
    for name in ("BM", "Boot"):
        ends = sorted(last(rows, name=name), key=lambda row: int(row["movers"]))
        change = log_ratio(ends[-1], ends[0], "sigma_error")
        where = f"{name}, n1 {ends[0]['movers']} to {ends[-1]['movers']}"
        found.append(unchanged("the error does not depend on n1 (log ratio)", where, *change))
    return found


TARGET = Target(
    "credit",
    "Strategic classification: borrowers who respond to the classifier",
    "The slope of the log error matches the rate; BM and Boot behave alike in coverage, width and interval score; the "
    "error of BM converges better and depends less on n_1.",
    studied(arms),
    sheets,
    compare,
)
