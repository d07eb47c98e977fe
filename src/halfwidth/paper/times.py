"""The appendix's table: milliseconds per iteration of BM and Boot, ours beside theirs.

Ours are one thread, the data's generation included, the median of several timings after the compile; theirs are as
printed, on a machine they do not name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halfwidth.methods import method
from halfwidth.paper.arms import BM, MODELS, boot, short_name, synthetic_arm
from halfwidth.paper.comparisons import Comparison, place
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.run_arms import Runner
from halfwidth.paper.target import Order, Target
from halfwidth.paper.versus import COPIES
from halfwidth.plots.sheet import Line, Panel, Sheet
from halfwidth.study.replicate import microseconds_per_row

PAPERS_MS = {
    (0.5, "linear", "BM"): (0.28, 0.49, 0.70),
    (0.5, "linear", "Boot"): (0.63, 1.37, 3.39),
    (0.5, "logistic", "BM"): (0.29, 0.51, 0.68),
    (0.5, "logistic", "Boot"): (0.76, 1.63, 3.88),
    (0.0, "linear", "BM"): (0.12, 0.18, 0.25),
    (0.0, "linear", "Boot"): (0.23, 0.59, 1.70),
    (0.0, "logistic", "BM"): (0.076, 0.12, 0.18),
    (0.0, "logistic", "Boot"): (0.18, 0.47, 1.38),
}
_TIMINGS = 7
_FASTER, _DEARER = 1_000.0, 8.0


def run(order: Order, runner: Runner) -> list[Row]:
    """Time every method at every dimension."""
    rows: list[Row] = []
    for epsilon in (0.5, 0.0):
        for model in MODELS:
            for at, (dim, copies) in enumerate(COPIES.items()):
                for name in (BM, boot(copies)):
                    arm = synthetic_arm(order.size, order.seed, model, dim, name, epsilon=epsilon)
                    timings = [microseconds_per_row(arm.spec, method(name)) / 1_000.0 for _ in range(_TIMINGS)]
                    theirs = PAPERS_MS[epsilon, model, short_name(name)][at]
                    label = {"model": model, "dim": dim, "epsilon": epsilon, "name": short_name(name), "method": name}
                    rows.append(label | {"ms": float(np.median(timings)), "ms_se": _error(timings), "ms_paper": theirs})
            runner.tell(f"{model}, epsilon {epsilon}")
    return rows


def _error(timings: Sequence[float]) -> float:
    return float(np.std(timings, ddof=1) / np.sqrt(len(timings)))


def sheets(rows: Sequence[Row]) -> list[Sheet]:
    """The pictures."""
    panels = []
    for epsilon, kind in ((0.5, "state-dependent"), (0.0, "state-independent")):
        for model in MODELS:
            mine = [row for row in rows if row["model"] == model and row["epsilon"] == epsilon]
            lines = [
                Line([r["dim"] for r in curve], [r[field] for r in curve], name, colour, whose, pattern)
                for colour, name in enumerate(("BM", "Boot"))
                for pattern, (field, whose) in enumerate((("ms", "ours"), ("ms_paper", "the paper's")))
                for curve in [[row for row in mine if row["name"] == name]]
            ]
            panels.append(
                Panel(f"{model}, {kind}", "ms per iteration", lines, log_y=True, x="dimension d", x_ticks=tuple(COPIES))
            )
    return [Sheet("times", "Milliseconds per iteration, data generation included", 2, panels)]


def compare(rows: Sequence[Row]) -> list[Comparison]:
    """What the paper says, against these rows."""
    found = []
    for row in rows:
        where = f"{row['name']}, {place(row, 'model', 'dim', 'epsilon')}"
        factor = row["ms_paper"] / row["ms"]
        error = factor * row["ms_se"] / row["ms"]
        verdict = f"at least {_FASTER:,.0f} times" if factor >= _FASTER else "faster" if factor > 1.0 else "slower"
        found.append(Comparison("ours is this many times faster", where, factor, error, None, verdict))
    for bm, other in zip(rows[::2], rows[1::2], strict=True):
        ratio = other["ms"] / bm["ms"]
        error = ratio * float(np.hypot(bm["ms_se"] / bm["ms"], other["ms_se"] / other["ms"]))
        theirs = other["ms_paper"] / bm["ms_paper"]
        verdict = "up to the 8 they report" if ratio <= _DEARER else "more than the 8 they report"
        claim = "an iteration of Boot costs this many of BM (theirs beside it)"
        found.append(Comparison(claim, place(bm, "model", "dim", "epsilon"), ratio, error, theirs, verdict))
    return found


TARGET = Target(
    "times",
    "Time per iteration",
    "With many coefficients an iteration of Boot costs up to about 8 times one of BM.",
    run,
    sheets,
    compare,
    lambda order: "one thread, data generation included.",
)
