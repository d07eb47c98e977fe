"""A sheet of panels with lines along the number of rows seen, as the paper lays its figures out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfwidth.plots.style import DASHES, MARKERS, log_ticks, new_figure, ramp, save, tidy

RATE = "slope of n^(-1/8)"
_REFERENCE_STYLE: dict[str, Any] = {"color": "#999999", "linewidth": 4.0, "alpha": 0.6, "solid_capstyle": "butt"}
_MARKER_SIZES = (3.0, 6.0, 4.5)


@dataclass(frozen=True)
class Line:
    """A curve: its colour stands for a `value`, and its dashes and markers for a `kind`, where there are several.

    `half_band` shades that much above and below it.
    """

    x: Sequence[float]
    y: Sequence[float]
    value: str
    colour: int
    kind: str = ""
    pattern: int = 0
    half_band: Sequence[float] = ()


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    `nominal` draws a level and the band in which chance would leave it, `references` the curves that theory gives.
    """

    title: str
    y: str
    lines: Sequence[Line]
    log_y: bool = False
    nominal: tuple[float, float] | None = None
    references: Sequence[tuple[Sequence[float], Sequence[float]]] = ()
    x: str = "rows seen"
    x_ticks: Sequence[float] = ()


@dataclass(frozen=True)
class Sheet:
    """A picture: panels row by row; `reference` says what the curves of theory are."""

    name: str
    title: str
    columns: int
    panels: Sequence[Panel]
    reference: str = RATE


def draw_sheet(sheet: Sheet, folder: Path) -> list[Path]:
    """Write the sheet as PNG and SVG."""
    rows = -(-len(sheet.panels) // sheet.columns)
    figure, axes = new_figure(rows, sheet.columns, width=3.9, height=3.2, squeeze=False)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
    lines = [line for panel in sheet.panels for line in panel.lines]
    colours = ramp(1 + max(line.colour for line in lines))
    floor = _floor(sheet.panels)
    for axis, panel in zip(axes.flat, sheet.panels, strict=False):
        _draw_panel(axis, panel, colours, floor)
    for axis in axes.flat[len(sheet.panels) :]:
        axis.set_visible(False)
    handles = _legend(lines, colours, sheet.reference if any(panel.references for panel in sheet.panels) else "")
    lines_of_legend = -(-len(handles) // (5 * sheet.columns // 2))
    across = -(-len(handles) // lines_of_legend)
    figure.legend(handles=handles, loc="outside lower center", ncols=across, frameon=False)
    figure.suptitle(sheet.title, fontsize=12)
    paths = [folder / f"{sheet.name}.{ending}" for ending in ("png", "svg")]
    for path in paths:
        save(figure, path, dpi=110)
        figure.set_layout_engine("none")  # the first picture has settled where everything goes
    return paths


def _floor(panels: Sequence[Panel]) -> float:
    """Where coverage begins, in all panels alike: at 0, or at 1/2 if there is nothing below."""
    lowest = [min(line.y) for panel in panels if panel.nominal is not None for line in panel.lines]
    return 0.5 if lowest and min(lowest) >= 0.5 else 0.0


def _draw_panel(axis: Any, panel: Panel, colours: Sequence[Any], floor: float) -> None:
    for reference in panel.references:
        axis.plot(*reference, **_REFERENCE_STYLE)
    for line in panel.lines:
        axis.plot(line.x, line.y, color=colours[line.colour], **_look(line))
        if line.half_band:
            low = [y - half for y, half in zip(line.y, line.half_band, strict=True)]
            high = [y + half for y, half in zip(line.y, line.half_band, strict=True)]
            axis.fill_between(line.x, low, high, color=colours[line.colour], alpha=0.15, linewidth=0)
    if panel.nominal is not None:
        level, half_band = panel.nominal
        axis.axhspan(level - half_band, min(level + half_band, 1.0), color="black", alpha=0.10, linewidth=0)
        axis.axhline(level, color="black", linewidth=0.8, linestyle="--")
        margin = 0.04 * (1.0 - floor)
        axis.set_ylim(floor - margin, 1.0 + margin)
    axis.set_xscale("log")
    log_ticks(axis.xaxis, panel.x_ticks)
    if panel.log_y:
        axis.set_yscale("log")
        log_ticks(axis.yaxis)
    tidy(axis, panel.title, panel.x, panel.y)


def _look(line: Line) -> dict[str, Any]:
    """Dashes and markers: of the kind, hollow and of unequal size so that lines on top of each other all show."""
    at = line.pattern if line.kind else line.colour
    look = {"linestyle": DASHES[at % len(DASHES)], "marker": MARKERS[at % len(MARKERS)], "linewidth": 1.4}
    if not line.kind:
        return look | {"markersize": 4.0}
    hollow = {} if at == 0 else {"markerfacecolor": "none"}
    return look | {"markersize": _MARKER_SIZES[at % len(_MARKER_SIZES)]} | hollow


def _legend(lines: Sequence[Line], colours: Sequence[Any], reference: str) -> list[Any]:
    """One entry for each value, then one for each kind, then the reference: as few as a reader needs."""
    from matplotlib.lines import Line2D

    values = {line.value: line for line in sorted(lines, key=lambda line: line.colour)}
    kinds = {line.kind: line for line in sorted(lines, key=lambda line: line.pattern) if line.kind}
    handles = [
        Line2D([], [], color=colours[line.colour], label=value, **({"linewidth": 4} if line.kind else _look(line)))
        for value, line in values.items()
    ]
    handles += [Line2D([], [], color="black", label=kind, **_look(line)) for kind, line in kinds.items()]
    return handles + ([Line2D([], [], label=reference, **_REFERENCE_STYLE)] if reference else [])
