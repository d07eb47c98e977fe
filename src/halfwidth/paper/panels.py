"""From rows to the panels of the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from halfwidth.paper.comparisons import RATE
from halfwidth.paper.paper_scores import Row
from halfwidth.plots.sheet import Line, Panel, Sheet

PAPER = ("sigma_error_paper", "coverage_paper", "width")
PAPER_AND_MIS = (*PAPER, "mis_paper")
EXACT = ("sigma_error", "coverage", "mis_ratio", "bias_over_sd")
_TITLES = {
    "sigma_error_paper": "estimation error (Sigma from 500 runs)",
    "coverage_paper": "coverage (theta* from 500 runs)",
    "width": "width of the interval",
    "mis_paper": "mean interval score",
    "sigma_error": "estimation error (exact Sigma)",
    "coverage": "coverage of the exact theta*",
    "mis_ratio": "interval score over the oracle's",
    "bias_over_sd": "bias of the estimate",
}
_UNITS = {
    "sigma_error_paper": "spectral norm",
    "coverage_paper": "coverage",
    "width": "width",
    "mis_paper": "score",
    "sigma_error": "spectral norm",
    "coverage": "coverage",
    "mis_ratio": "ratio",
    "bias_over_sd": "standard deviations",
}
_WORDS = {"dim": "d = {}", "epsilon": "epsilon = {}", "movers": "n1 = {}"}
_METHODS = ("BM", "Boot", "auto")


def panel(rows: Sequence[Row], field: str, key: str, where: str = "") -> Panel:
    """A field along the run, one line for each value of `key` (its colour) and method (its dashes and markers)."""
    values = list(dict.fromkeys(row[key] for row in rows))
    names = [name for name in _METHODS if any(row["name"] == name for row in rows)]
    lines = []
    for name in names:
        for at, value in enumerate(values):
            mine = [row for row in rows if row[key] == value and row["name"] == name and row[field] is not None]
            if mine:
                kind, pattern = (name, _METHODS.index(name)) if len(names) > 1 else ("", 0)
                steps, ys = [row["step"] for row in mine], [row[field] for row in mine]
                lines.append(Line(steps, ys, _WORDS[key].format(value), at, kind, pattern))
    coverage = field.startswith("coverage")
    title = _title(field, rows) + (f"\n{where}" if where else "")
    return Panel(
        title,
        _UNITS[field],
        lines,
        log_y=not coverage and field != "bias_over_sd",
        nominal=nominal(rows) if coverage else None,
        references=_rate(lines) if field.startswith("sigma_error") else (),
    )


def _title(field: str, rows: Sequence[Row]) -> str:
    return _TITLES[field].replace("500 runs", f"{rows[0]['reference_runs']} runs")


def nominal(rows: Sequence[Row]) -> tuple[float, float]:
    """The level, and half the band in which chance leaves it."""
    level, replicates = rows[0]["level"], rows[0]["replicates"]
    return level, 2.0 * math.sqrt(level * (1.0 - level) / replicates)


def _rate(lines: Sequence[Line]) -> list[tuple[list[float], list[float]]]:
    """A line of the theoretical slope, through the middle of the picture: only its slope means something."""
    if not lines:
        return []
    steps = [float(step) for step in lines[0].x]
    middle = math.exp(sum(math.log(line.y[-1]) for line in lines) / len(lines))
    return [(steps, [middle * (step / steps[-1]) ** RATE for step in steps])]


def sheet(
    rows: Sequence[Row], name: str, title: str, fields: Sequence[str], key: str, rows_by: str, *, across: bool = True
) -> Sheet:
    """A panel for every field and every value of `rows_by`; fields run across, or down with `across=False`."""
    values = list(dict.fromkeys(row[rows_by] for row in rows))
    cells: list[tuple[str, Any]] = (
        [(field, value) for value in values for field in fields]
        if across
        else [(field, value) for field in fields for value in values]
    )
    panels = []
    for field, value in cells:
        mine = [row for row in rows if row[rows_by] == value]
        panels.append(panel(mine, field, key, _WORDS.get(rows_by, "{}").format(value)))
    return Sheet(name, title, len(fields) if across else len(values), panels)
