"""The picture of a study: coverage, width, score and covariance error along the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from halfwidth.plots.style import COLOURS, MARKERS, new_figure, save, tidy

_PANELS = (
    ("coverage", "coverage of the exact v'theta*", "coverage"),
    ("coverage_of_mean", "coverage of the mean of theta_bar", "coverage"),
    ("mis_ratio", "interval score over the oracle's", "ratio"),
    ("sigma_error", "spectral error of the covariance", "norm"),
)


def plot_study(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Four panels against the number of rows seen, one line a method."""
    figure, axes = new_figure(2, 2)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for panel, (field, title, y) in zip(axes.flat, _PANELS, strict=True):
        for i, name in enumerate(methods):
            mine = [row for row in rows if row["method"] == name and row[field] is not None]
            style = {"color": COLOURS[i % 7], "marker": MARKERS[i % 7], "markersize": 4, "label": name}
            panel.plot([row["step"] for row in mine], [row[field] for row in mine], **style)
        panel.set_xscale("log")
        tidy(panel, title, "rows seen", y)
        if field.startswith("coverage"):
            panel.axhline(rows[0]["level"], color="black", linewidth=0.8, linestyle="--")
            panel.set_ylim(min(0.8, *(row[field] for row in rows)) - 0.02, 1.0)
        else:
            panel.set_ylim(bottom=0.0)
    axes.flat[0].legend(frameon=False)
    first = rows[0]
    settings = ", ".join(f"{key} = {value}" for key, value in first["params"].items())
    learner = f"{first['learner']} SGD, eta = {first['eta']}, a = {first['exponent']}"
    figure.suptitle(f"{first['problem']} ({settings})\n{learner}, {first['replicates']} replicates", fontsize=11)
    save(figure, path)
