"""A sheet of panels with lines along the number of rows seen, as the paper lays its figures out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfwidth.plots.style import COLOURS, MARKERS, new_figure, save, tidy

RATE_COLOUR = "#B00020"
_DASHES = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (6, 1.5, 1.5, 1.5)), (0, (1, 1)), (0, (8, 2)))


@dataclass(frozen=True)
class Line:
    """A curve; `colour` and `pattern` pick from the palette, so that lines differ in more than colour."""

    x: Sequence[float]
    y: Sequence[float]
    label: str
    colour: int
    pattern: int


@dataclass(frozen=True)
class Panel:
    """One pair of axes; `nominal` draws a level and the band in which chance would leave it."""

    title: str
    y: str
    lines: Sequence[Line]
    log_y: bool = False
    nominal: tuple[float, float] | None = None
    rate: tuple[Sequence[float], Sequence[float]] | None = None
    x: str = "rows seen"
    x_ticks: Sequence[float] = ()


@dataclass(frozen=True)
class Sheet:
    """A picture: panels row by row."""

    name: str
    title: str
    columns: int
    panels: Sequence[Panel]


def draw_sheet(sheet: Sheet, folder: Path) -> list[Path]:
    """Write the sheet as PNG and SVG."""
    rows = -(-len(sheet.panels) // sheet.columns)
    figure, axes = new_figure(rows, sheet.columns, width=3.9, height=2.9, squeeze=False)
    handles: dict[str, Any] = {}
    for axis, panel in zip(axes.flat, sheet.panels, strict=False):
        handles |= _draw_panel(axis, panel)
    for axis in axes.flat[len(sheet.panels) :]:
        axis.set_visible(False)
    across = min(len(handles), 2 * sheet.columns)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=across, frameon=False)
    figure.suptitle(sheet.title, fontsize=12)
    paths = [folder / f"{sheet.name}.{ending}" for ending in ("png", "svg")]
    for path in paths:
        save(figure, path, dpi=110)
        figure.set_layout_engine("none")  # the first picture has settled where everything goes
    return paths


def _log_ticks(axis: Any, ticks: Sequence[float] = ()) -> None:
    """A few plain labels on a logarithmic axis, whatever its range."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high / low < 20 else (1.0, 3.0) if high / low < 500 else (1.0,)
    axis.set_major_locator(FixedLocator(ticks) if ticks else LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axis.set_minor_locator(NullLocator())


def _short(value: float) -> str:
    return f"{value / 1_000:g}k" if value >= 1_000 else f"{value:g}"


def _draw_panel(axis: Any, panel: Panel) -> dict[str, Any]:
    """Draw the panel; returns what the legend needs."""
    handles: dict[str, Any] = {}
    for line in panel.lines:
        style = {
            "color": COLOURS[line.colour % len(COLOURS)],
            "linestyle": _DASHES[line.pattern % len(_DASHES)],
            "marker": MARKERS[line.pattern % len(MARKERS)],
            "markersize": 3.5,
            "linewidth": 1.4,
        }
        handles[line.label] = axis.plot(line.x, line.y, **style)[0]
    if panel.rate is not None:
        handles["n^(-1/8)"] = axis.plot(*panel.rate, color=RATE_COLOUR, linewidth=2.2, alpha=0.8)[0]
    if panel.nominal is not None:
        level, half_band = panel.nominal
        axis.axhspan(level - half_band, min(level + half_band, 1.0), color="black", alpha=0.10, linewidth=0)
        axis.axhline(level, color="black", linewidth=0.8, linestyle="--")
        axis.set_ylim(-0.02, 1.02)
    axis.set_xscale("log")
    _log_ticks(axis.xaxis, panel.x_ticks)
    if panel.log_y:
        axis.set_yscale("log")
        _log_ticks(axis.yaxis)
    tidy(axis, panel.title, panel.x, panel.y)
    return handles
