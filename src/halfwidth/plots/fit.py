"""The picture of a fit: the coefficients with their intervals, and how they settled over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halfwidth.plots.style import COLOURS, DASHES, log_ticks, new_figure, save, tidy


def plot_fit(reports: Sequence[dict[str, Any]], path: Path) -> None:
    """Left: t values with the band that holds zero, so that columns of any unit fit one picture; right: the way there.

    `reports` are what `model.report()` gave along the run, the last one at its end. On the right the coefficients are
    shown as distance to their last value in units of their last standard error.
    """
    final = reports[-1]
    shown = [row for row in final["coefficients"] if row["std_err"] is not None]
    figure, (left, right) = new_figure(1, 2, width=5.5, height=max(3.5, 0.28 * len(shown)))
    _coefficients(left, shown, final["level"])
    _settling(right, reports, shown)
    rows = f"{final['n']:,} rows"
    figure.suptitle(f"{final['family']} regression, {rows}, {final['method']}, status {final['status']}", fontsize=11)
    save(figure, path)


def _coefficients(panel: Any, shown: Sequence[dict[str, Any]], level: float) -> None:
    for i, row in enumerate(reversed(shown)):
        low, middle, high = (row[key] / row["std_err"] for key in ("ci_lower", "coef", "ci_upper"))
        colour = COLOURS[0] if row["ci_lower"] > 0 or row["ci_upper"] < 0 else "grey"
        panel.plot([low, high], [i, i], color=colour, linewidth=2)
        panel.plot(middle, i, "o", color=colour, markersize=4)
    panel.axvline(0.0, color="black", linewidth=0.8)
    panel.set_yticks(range(len(shown)), [f"{row['name']}  {row['coef']:.3g}" for row in reversed(shown)], fontsize=8)
    tidy(panel, f"coefficients with {100 * level:g}% intervals", "in standard errors", "")


def _settling(panel: Any, reports: Sequence[dict[str, Any]], shown: Sequence[dict[str, Any]]) -> None:
    told = [report for report in reports if report["coefficients"][0]["std_err"] is not None]
    n = [report["n"] for report in told]
    halves = []
    for i, last in enumerate(shown):
        low, middle, high = (
            (_track(told, last["name"], key) - last["coef"]) / last["std_err"]
            for key in ("ci_lower", "coef", "ci_upper")
        )
        halves.append(0.5 * (high - low))
        panel.plot(n, middle, linewidth=1.2, **_look(i, last["name"]))
    if shown:
        half = np.nanmedian(halves, axis=0)
        panel.fill_between(n, -half, half, color="grey", alpha=0.15, label="half width (median)")
        panel.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    panel.set_xscale("log")
    log_ticks(panel.xaxis)
    tidy(panel, "how they settled: distance to the last value", "rows", "in standard errors")


def _track(reports: Sequence[dict[str, Any]], name: str, key: str) -> Any:
    """One number of a coefficient over the reports; NaN where it was not known, or the coefficient not there yet."""
    found = [{row["name"]: row[key] for row in report["coefficients"]}.get(name) for report in reports]
    return np.array([np.nan if value is None else value for value in found])


def _look(at: int, name: str) -> dict[str, Any]:
    """Colours for as many coefficients as there are; the others are grey, and one entry stands for them all."""
    if at < len(COLOURS):
        return {"color": COLOURS[at], "linestyle": DASHES[at % len(DASHES)], "label": name}
    return {"color": "lightgrey", "zorder": 1, "label": "other coefficients" if at == len(COLOURS) else None}
