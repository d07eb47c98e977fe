"""The picture of one run: estimate, band and truth along the stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.plots.style import COLOURS, log_ticks, new_figure, save, tidy


def plot_trace(trace: Sequence[Any], theta_star: ArrayLike, title: str, path: Path) -> None:
    """One panel per coordinate: the whole run, and below it the distance to the truth, magnified.

    `trace` are the intervals along the run.
    """
    truth = np.asarray(theta_star, dtype=np.float64)
    n = [interval.n for interval in trace]
    estimate, lower, upper = (
        np.array([getattr(interval, name) for interval in trace]) for name in ("estimate", "lower", "upper")
    )
    figure, axes = new_figure(2, truth.size, width=4.0, height=3.0, squeeze=False)
    for j in range(truth.size):
        colour = COLOURS[j % len(COLOURS)]
        for panel, shift in zip(axes[:, j], (0.0, truth[j]), strict=True):
            panel.fill_between(n, lower[:, j] - shift, upper[:, j] - shift, color=colour, alpha=0.25, label="95% band")
            panel.plot(n, estimate[:, j] - shift, color=colour, label="estimate")
            panel.axhline(truth[j] - shift, color="black", linestyle="--", linewidth=0.9, label="truth")
            panel.set_xscale("log")
            log_ticks(panel.xaxis)
        tidy(axes[0, j], f"theta[{j}]", "", "value")
        tidy(axes[1, j], "", "rows seen", "distance to the truth")
        late = len(n) // 2
        reach = 1.3 * np.max(np.abs(np.stack([lower[late:, j], upper[late:, j]]) - truth[j]))
        axes[1, j].set_ylim(-reach, reach)
    axes[0, 0].legend(frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=12)
    save(figure, path)
