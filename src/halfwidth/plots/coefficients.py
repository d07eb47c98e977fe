"""The panel of coefficients: a line for each, doubts marked, columns of any unit on one axis.

Intervals are in units of the standard error, so that one axis serves all columns; the numbers stand at the right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from halfwidth.plots.style import COLOURS, legend_below, tidy

MOST_SHOWN = 64
FAR = 12.0
"""Intervals are cut this far from zero, with an arrow; one whose middle is beyond has its number beside the arrow."""
CLEAR, UNCLEAR, DOUBTED = COLOURS[0], "#888888", COLOURS[1]
_LONGEST_NAME = 30
_SMALL, _LARGE = 1e-4, 1e7


def chosen(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The coefficients that are drawn, in their order: those with a doubt first, then by their t value."""

    def importance(row: dict[str, Any]) -> tuple[bool, float]:
        return row["status"] == "ok", -abs(row["t"] or 0.0)

    kept = {row["name"] for row in sorted(rows, key=importance)[:MOST_SHOWN]}
    return [row for row in rows if row["name"] in kept]


def draw_coefficients(panel: Any, rows: Sequence[dict[str, Any]], level: float) -> None:
    """Draw the coefficients from the top; what cannot be said of one stands where its interval would."""
    shown = chosen(rows)
    reach = _reach(shown)
    for y, row in enumerate(reversed(shown)):
        _draw(panel, y, row, reach)
    panel.axvline(0.0, color="black", linewidth=0.8, zorder=0)
    panel.set_xlim(-1.06 * reach, 1.06 * reach)
    panel.set_ylim(-0.7, len(shown) - 0.3)
    size = 8 if len(shown) <= 30 else 6.5
    panel.set_yticks(range(len(shown)), [_name(row) for row in reversed(shown)], fontsize=size)
    for label, row in zip(panel.get_yticklabels(), reversed(shown), strict=True):
        label.set_color("black" if row["status"] == "ok" else DOUBTED)
    numbers = panel.secondary_yaxis("right")
    numbers.set_yticks(range(len(shown)), [_numbers(row) for row in reversed(shown)], fontsize=size)
    numbers.tick_params(length=0)
    numbers.spines["right"].set_visible(False)
    left_out = "" if len(shown) == len(rows) else f", {len(shown)} of {len(rows):,}"
    tidy(panel, f"coefficients with {100 * level:g}% intervals{left_out}", "in standard errors from zero", "")
    legend_below(panel, _legend(shown), columns=2)


def _draw(panel: Any, y: int, row: dict[str, Any], reach: float) -> None:
    doubted = row["status"] != "ok"
    if row["std_err"] is None or not row["std_err"] > 0.0:
        panel.plot(0.0, y, "x", color=DOUBTED, markersize=6, zorder=3)
        return
    low, middle, high = (row[key] / row["std_err"] for key in ("ci_lower", "coef", "ci_upper"))
    colour = DOUBTED if doubted else CLEAR if low > 0.0 or high < 0.0 else UNCLEAR
    for cut, end, mark in ((low < -reach, -reach, "<"), (high > reach, reach, ">")):
        if cut:
            panel.plot(end, y, mark, color=colour, markersize=6)
    if abs(middle) > reach:
        inside, side = (0.94 * reach, "right") if middle > 0.0 else (-0.94 * reach, "left")
        panel.text(inside, y, f"{middle:,.0f}", color=colour, fontsize=7, ha=side, va="center")
        return
    panel.plot([max(low, -reach), min(high, reach)], [y, y], color=colour, linewidth=2)
    face = {"markerfacecolor": "white"} if doubted else {}
    panel.plot(middle, y, "D" if doubted else "o", color=colour, markersize=4.5, **face)


def _reach(rows: Sequence[dict[str, Any]]) -> float:
    """Half the width of the axis: all intervals, but no more than `FAR`."""
    ends = [
        abs(row[key]) / row["std_err"] for row in rows if row["std_err"] for key in ("ci_lower", "ci_upper") if row[key]
    ]
    return min(FAR, max(ends, default=3.0))


def short_name(name: str) -> str:
    """A name that fits beside an axis: the middle of a long one is left out."""
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 12]}...{name[-9:]}"


def _name(row: dict[str, Any]) -> str:
    return short_name(row["name"]) + ("" if row["status"] == "ok" else f"  ! {row['status']}")


def _numbers(row: dict[str, Any]) -> str:
    if row["std_err"] is None:
        return "no interval" if row["coef"] is None else f"{row['coef']:.3g}  no interval"
    width = row["ci_upper"] - row["ci_lower"]
    size = max(abs(row["ci_lower"]), abs(row["ci_upper"]))
    if not (width > 0.0 and _SMALL < size < _LARGE):
        return f"{row['coef']:.3g} [{row['ci_lower']:.3g}, {row['ci_upper']:.3g}]"
    digits = min(max(1 - math.floor(math.log10(width)), 0), 6)
    return f"{row['coef']:.{digits}f} [{row['ci_lower']:.{digits}f}, {row['ci_upper']:.{digits}f}]"


def _legend(rows: Sequence[dict[str, Any]]) -> list[Any]:
    """What the colours and marks mean, as far as they occur."""
    from matplotlib.lines import Line2D

    def entry(marker: str, colour: str, label: str, **look: Any) -> Any:
        return Line2D([], [], color=colour, marker=marker, markersize=5, linestyle="none", label=label, **look)

    known = [row for row in rows if row["std_err"]]
    fine = [row for row in known if row["status"] == "ok"]
    clear = [row for row in fine if row["ci_lower"] > 0.0 or row["ci_upper"] < 0.0]
    entries = [entry("o", CLEAR, "zero is outside")] if clear else []
    entries += [entry("o", UNCLEAR, "zero is inside")] if len(clear) < len(fine) else []
    entries += [entry("D", DOUBTED, "doubted (! status)", markerfacecolor="white")] if len(fine) < len(known) else []
    if any(max(-row["ci_lower"], row["ci_upper"]) > FAR * row["std_err"] for row in known):
        entries.append(entry(">", "black", f"goes on beyond {FAR:g}"))
    return entries + ([entry("x", DOUBTED, "no interval")] if len(known) < len(rows) else [])
