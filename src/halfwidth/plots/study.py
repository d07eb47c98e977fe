"""The picture of a study: coverage, score and covariance error along the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from halfwidth.plots.style import COLOURS, DASHES, MARKERS, log_ticks, new_figure, save, tidy

_PANELS = (
    ("coverage", "coverage of the exact v'theta*", "coverage"),
    ("coverage_of_mean", "coverage of the mean of theta_bar", "coverage"),
    ("mis_ratio", "interval score over the oracle's", "ratio"),
    ("sigma_error", "spectral error of the covariance", "norm"),
)
_DODGE = 0.02  # methods stand beside each other by so much of their x, so that equal values do not hide one another
_WIDEST_DODGE = 0.16


def plot_study(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Four panels against the number of rows seen, one line per method, and the methods below."""
    figure, axes = new_figure(2, 2)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    dodge = min(_DODGE, _WIDEST_DODGE / len(methods))
    for panel, (field, title, y) in zip(axes.flat, _PANELS, strict=True):
        for i, name in enumerate(methods):
            mine = [row for row in rows if row["method"] == name and row[field] is not None]
            beside = 1.0 + dodge * (i - (len(methods) - 1) / 2)
            panel.plot([row["step"] * beside for row in mine], [row[field] for row in mine], label=name, **_look(i))
        panel.set_xscale("log")
        log_ticks(panel.xaxis)
        tidy(panel, title, "rows seen" if len(methods) == 1 else "rows seen (methods side by side)", y)
        if field.startswith("coverage"):
            panel.axhline(rows[0]["level"], color="black", linewidth=0.8, linestyle="--")
            panel.set_ylim(min(0.8, *(row[field] for row in rows)) - 0.02, 1.02)
        else:
            panel.set_ylim(bottom=0.0)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(methods), 5), frameon=False)
    first = rows[0]
    settings = ", ".join(f"{key} = {value}" for key, value in first["params"].items())
    learner = f"{first['learner']} SGD, eta = {first['eta']}, a = {first['exponent']}"
    figure.suptitle(f"{first['problem']} ({settings})\n{learner}, {first['replicates']} replicates", fontsize=11)
    save(figure, path)


def _look(at: int) -> dict[str, Any]:
    """Colour, marker and dashes: no two of the first 42 methods share all three."""
    style = {"color": COLOURS[at % len(COLOURS)], "marker": MARKERS[at % len(MARKERS)]}
    return style | {"linestyle": DASHES[at % len(DASHES)], "markersize": 5, "linewidth": 1.4}
