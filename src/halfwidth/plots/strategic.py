"""The picture of a strategic population: both classifiers, how far agents moved, and what became of their scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from halfwidth.plots.style import COLOURS, new_figure, save, tidy

_BINS = 40


def plot_strategic(report: Mapping[str, Any], scores: Mapping[str, Any], path: Path) -> None:
    """Left: coefficients with intervals; middle: how far agents moved; right: their scores, by classifier."""
    rows = report["coefficients"]
    figure, (left, middle, right) = new_figure(1, 3, width=4.6, height=max(3.6, 0.3 * len(rows)))
    _coefficients(left, rows, report["level"])
    _moves(middle, [row for row in rows if row["modifiable"]])
    _scores(right, scores, report["classes"][1])
    figure.suptitle(f"{report['agents']:,} agents respond to the classifier; status {report['status']}", fontsize=11)
    save(figure, path)


def _coefficients(panel: Any, rows: list[dict[str, Any]], level: float) -> None:
    for i, row in enumerate(reversed(rows)):
        for prefix, middle, colour, shift in (("", "coef", COLOURS[0], 0.15), ("naive_", "naive", COLOURS[1], -0.15)):
            low, high = row[f"{prefix}ci_lower"], row[f"{prefix}ci_upper"]
            label = ("equilibrium" if not prefix else "naive fit") if i == 0 else None
            if low is not None and high is not None:
                panel.plot([low, high], [i + shift] * 2, color=colour, linewidth=2)
            panel.plot(row[middle], i + shift, "o", color=colour, markersize=4, label=label)
        label = "exact equilibrium" if i == 0 else None
        panel.plot(row["exact"], i + 0.15, "|", color="black", markersize=10, label=label)
    panel.set_yticks(range(len(rows)), [row["name"] for row in reversed(rows)], fontsize=8)
    panel.legend(frameon=False, fontsize=8)
    tidy(panel, f"coefficients with {100 * level:g}% intervals", "per standard deviation of the column", "")


def _moves(panel: Any, rows: list[dict[str, Any]]) -> None:
    places = range(len(rows))
    panel.barh(places, [row["moved"] for row in reversed(rows)], color=COLOURS[2], height=0.5)
    panel.axvline(0.0, color="black", linewidth=0.8)
    panel.set_yticks(places, [row["name"] for row in reversed(rows)], fontsize=8)
    tidy(panel, "how far agents moved", "standard deviations of the column", "")


def _scores(panel: Any, scores: Mapping[str, Any], wanted: str) -> None:
    bins = np.linspace(0.0, 1.0, _BINS + 1)
    for (label, values), colour in zip(scores.items(), (COLOURS[1], COLOURS[4], COLOURS[0]), strict=True):
        panel.hist(values, bins=bins, histtype="step", linewidth=1.6, color=colour, label=label)
    panel.legend(frameon=False, fontsize=8)
    tidy(panel, "scores of the population", f"probability of {wanted!r}", "agents")
