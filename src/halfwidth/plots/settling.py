"""The panel of how coefficients settled over the rows: distances to the last value, and the funnel of chance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfwidth.plots.coefficients import short_name
from halfwidth.plots.style import COLOURS, DASHES, log_ticks, tidy

MOST_NAMED = 6
LINEAR = 5.0
_TICKS = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1_000.0, 10_000.0)


class Settling(NamedTuple):
    """After `rows` (m,) rows: distances to the last value (m, d) in standard errors, and where chance would leave them.

    `half_width` (m,) is that of the band at the level of the picture.
    """

    rows: NDArray[np.float64]
    distances: NDArray[np.float64]
    half_width: NDArray[np.float64]
    names: tuple[str, ...]


def draw_settling(panel: Any, settling: Settling, level: float) -> None:
    """One line for each coefficient; those that went farthest for what chance allows have a colour and a name.

    The axis is linear up to five standard errors and logarithmic beyond, so that the last rows can be read too.
    """
    from matplotlib.ticker import NullLocator

    rows, distances, half = settling.rows, settling.distances, settling.half_width
    named = _farthest(settling)
    for j in range(distances.shape[1]):
        if j not in named:
            panel.plot(rows, distances[:, j], color="lightgrey", linewidth=0.8, zorder=1)
    for at, j in enumerate(named):
        look = {"color": COLOURS[at % len(COLOURS)], "linestyle": DASHES[at % len(DASHES)]}
        panel.plot(rows, distances[:, j], linewidth=1.4, label=short_name(settling.names[j]), zorder=2, **look)
    if distances.shape[1] > len(named):
        panel.plot([], [], color="lightgrey", label=f"{distances.shape[1] - len(named):,} others")
    panel.fill_between(
        rows, -half, half, color="grey", alpha=0.2, linewidth=0, label=f"{100 * level:g}% if nothing changes"
    )
    panel.axhline(0.0, color="black", linewidth=0.8)
    known = np.abs(distances[np.isfinite(distances)])
    reach = 1.2 * max(float(half.max(initial=0.0)), float(known.max(initial=0.0)), LINEAR)
    panel.set_yscale("symlog", linthresh=LINEAR, linscale=2.0)
    ticks = [tick for tick in _TICKS if tick <= reach]
    panel.set_yticks([-tick for tick in reversed(ticks)] + [0.0, *ticks])
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.yaxis.set_minor_locator(NullLocator())
    panel.set_ylim(-reach, reach)
    panel.set_xscale("log")
    log_ticks(panel.xaxis)
    tidy(panel, "how they settled: distance to the last value", "rows", "in standard errors")
    panel.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _farthest(settling: Settling) -> list[int]:
    """The coefficients that left the funnel by most, or came nearest to its edge."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(settling.distances[:-1]) / settling.half_width[:-1, None]
    known = np.where(np.isfinite(ratios), ratios, 0.0).max(axis=0, initial=0.0)
    shown = [j for j in np.argsort(-known, kind="stable").tolist() if np.isfinite(settling.distances[:, j]).any()]
    return sorted(shown[:MOST_NAMED])
