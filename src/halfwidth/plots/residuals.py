"""The panels of residuals and of calibration, from a sample of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfwidth.plots.style import COLOURS, legend_below, tidy

Numbers = NDArray[np.float64]


class Bins(NamedTuple):
    """Means over bins of the fitted values: where the bin is, the mean, and two standard errors of it."""

    x: Numbers
    mean: Numbers
    half: Numbers


class SampleTable(NamedTuple):
    """What a sample of `rows` rows says: single residuals (none for classes), and means over bins of fitted values.

    `reference` is where the means of calibration should lie: a number, or None for the diagonal.
    """

    rows: int
    all_rows: bool
    fitted: Numbers
    residuals: Numbers
    residual_bins: Bins
    calibration_bins: Bins
    reference: float | None


def draw_residuals(panel: Any, sample: SampleTable) -> None:
    """Residuals against fitted values, and their means in bins, which should be zero unless a quantile is fitted."""
    if len(sample.fitted):
        panel.plot(sample.fitted, sample.residuals, ".", color="grey", markersize=2.5, alpha=0.35, zorder=1)
        low, high = np.quantile(sample.residuals, [0.005, 0.995])
        ends = _wider(min(low, 0.0), max(high, 0.0))
        panel.set_ylim(*ends)
        hidden = int(np.count_nonzero((sample.residuals < ends[0]) | (sample.residuals > ends[1])))
        panel.plot([], [], ".", color="grey", markersize=6, label=_points(len(sample.fitted), sample.rows, hidden))
    panel.axhline(0.0, color="black", linewidth=0.8)
    if sample.reference is None:
        _draw_bins(panel, sample.residual_bins)
    legend_below(panel)
    tidy(panel, f"residuals of {_of(sample)}", "fitted", "observed less fitted")


def draw_calibration(panel: Any, sample: SampleTable) -> None:
    """Observed means against fitted ones, which should be equal; for a quantile the share of rows below it."""
    bins = sample.calibration_bins
    if sample.reference is None:
        ends = _wider(float(bins.x.min()), float(bins.x.max()))
        panel.plot(ends, ends, color="black", linewidth=0.8, zorder=1)
        observed = "observed mean"
    else:
        panel.axhline(sample.reference, color="black", linewidth=0.8, zorder=1)
        observed = "share of rows below"
    _draw_bins(panel, bins)
    legend_below(panel)
    tidy(panel, f"calibration on {_of(sample)}", "fitted", observed)


def _draw_bins(panel: Any, bins: Bins) -> None:
    panel.errorbar(
        bins.x, bins.mean, yerr=bins.half, fmt="o", color=COLOURS[0], markersize=4, linewidth=1.4, zorder=3,
        label="mean of a bin, +- 2 standard errors of independent rows",
    )  # fmt: skip


def _points(drawn: int, rows: int, hidden: int) -> str:
    """What the points are, and how many of them are not in the picture."""
    which = "a row" if drawn == rows else f"a row, {drawn:,} of them"
    return f"{which}; {hidden:,} farther out are not shown" if hidden else which


def _of(sample: SampleTable) -> str:
    return f"all {sample.rows:,} rows" if sample.all_rows else f"a sample of {sample.rows:,} rows"


def _wider(low: float, high: float) -> tuple[float, float]:
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin
